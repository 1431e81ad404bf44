/*
 * The values of a comparison over a column of known type.
 *
 * For the lists of records; paths over entities have their own reading,
 * where a one-of gives a name several types.
 */
#ifndef EA_RSQL_LITERAL_H
#define EA_RSQL_LITERAL_H

#include "base/compat.h"
#include "model/types.h"
#include "query/rsql.h"
#include "request/request.h"

/* Throw 400 for a filter, with the position counted from 1. */
extern EA_NORETURN void ea_rsql_literal_refuse(EaRequest *req,
											   const char *why, int offset);

/*
 * The value of a comparison, or for =in= and =out= the array of them, and in
 * *param_type the type of the parameter that holds it.  Throws 400 for a
 * literal that does not fit, and for a pattern that is too long or ends in a
 * lone escape character, which PostgreSQL would fail on.
 */
extern Datum ea_rsql_literal_read(EaRequest *req, const EaRsql *comparison,
								  const EaType *type, Oid *param_type);

/* What =isnull= asks for; throws 400 unless it is true or false. */
extern bool ea_rsql_literal_isnull(EaRequest *req, const EaRsql *comparison);

#endif							/* EA_RSQL_LITERAL_H */
