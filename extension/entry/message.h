/*
 * A request and its answer, in the two forms that callers use.
 *
 * To SQL a request is five arguments and its answer a record, headers being
 * JSON objects.  To the shim both are one message, which costs neither of us
 * a parser of JSON.  A request is
 *
 * 		METHOD SP target SP address LF
 * 		{ name ":" SP value LF }		names in lower case
 * 		LF
 * 		body
 *
 * where the address is "-" if it is not known.  If the first header is
 * x-entityapi-reads-only, it is none of the client's: with 1 the request
 * writes nothing, not even of its refusal, as on a standby.  Its answer is
 *
 * 		status LF
 * 		{ name ":" SP value LF }		for the shim alone
 * 		LF
 * 		{ Name ":" SP value CR LF }		as they go out
 * 		CR LF
 * 		body
 */
#ifndef EA_MESSAGE_H
#define EA_MESSAGE_H

#include "fmgr.h"

#include "request/request.h"

/*
 * Fill in what came in, all but the id and the time, from the arguments of
 * handle(method, target, headers, body, remote).  Returns the method's name.
 * Throws when method or target is null.
 */
extern char *ea_message_read_arguments(EaRequest *req,
									   FunctionCallInfo fcinfo);

/* The answer as handle()'s record, in the current memory context. */
extern Datum ea_message_write_record(EaRequest *req, FunctionCallInfo fcinfo);

/*
 * The same from and to a message.  Throws for a malformed message: it is the
 * shim's fault, never its client's.
 */
extern char *ea_message_read(EaRequest *req, bytea *message);
extern bytea *ea_message_write(const EaRequest *req);

#endif							/* EA_MESSAGE_H */
