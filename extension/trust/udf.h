/*
 * Functions of the deployment, from jsonb to jsonb, called as their owners.
 */
#ifndef EA_UDF_H
#define EA_UDF_H

#include "request/request.h"

typedef enum EaUdfOutcome
{
	EA_UDF_DONE,
	EA_UDF_FAILED,				/* it raised an error, or is not there */
	EA_UDF_TIMEOUT
} EaUdfOutcome;

/* Why the role could not have the function run as its owner, or NULL. */
extern const char *ea_udf_fault(const char *schema, const char *function,
								Oid caller);

/*
 * Call schema.function(argument); *answer is its result as JSON text, NULL for
 * null.  as_owner refuses one that would run as its caller.  label names it in
 * the log.  timeout_ms of 0 leaves the limit of the statement.  When it is not
 * done the transaction is in no state to go on: the caller must throw.  Errors
 * that are none of the function's own, a deadlock or a shutdown, are thrown
 * on.
 */
extern EaUdfOutcome ea_udf_call(EaRequest *req, const char *label,
								const char *schema, const char *function,
								bool as_owner, int timeout_ms,
								Datum argument, char **answer);

#endif							/* EA_UDF_H */
