/*
 * Statements that change rows of one table by key.
 */
#ifndef EA_WRITE_RUN_H
#define EA_WRITE_RUN_H

#include "nodes/params.h"
#include "tcop/dest.h"

#include "base/exec_params.h"
#include "engine/plancache.h"
#include "engine/reader.h"
#include "trust/application_role.h"

/*
 * Run a kept statement that changes rows by key; it sees all that is committed
 * by now.  "params" and "list" are the same values, "nested" says that another
 * statement runs, "reader" may be NULL, and "dest" is for its rows.  "n" is
 * how many rows were changed, "triggered" whether user-defined triggers had a
 * say in it (direct/triggers.h).  Any write of an application's table runs so,
 * as its settings begin once the plan is made.  Returns false, with nothing
 * run, if it is anything else; where the replaced row is asked for in vain,
 * "n" is 0 and reader->replaced says so.
 */
extern bool ea_write_run(EaPlan *kept, bool nested,
						 const EaApplication *application, EaParams params,
						 ParamListInfo list, const EaReader *reader, void *arg,
						 DestReceiver *dest, uint64 *n, bool *triggered);

#endif							/* EA_WRITE_RUN_H */
