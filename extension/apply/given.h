/*
 * The documents that a function was given, as text.
 */
#ifndef EA_GIVEN_H
#define EA_GIVEN_H

#include "fmgr.h"

/*
 * The first argument, in the memory context that is current.  Documents of
 * type json or text keep the order of their members, those of type jsonb have
 * that of jsonb.  What is no JSON is returned as it is, for its reader to say
 * so.
 */
extern char *ea_given_documents(FunctionCallInfo fcinfo);

/* Whether the order of their members is that in which they were written. */
extern bool ea_given_in_order(FunctionCallInfo fcinfo);

#endif							/* EA_GIVEN_H */
