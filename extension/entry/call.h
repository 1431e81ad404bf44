/*
 * One call of the service, by whichever function: what it runs in.
 */
#ifndef EA_CALL_H
#define EA_CALL_H

#include "fmgr.h"

#include "request/request.h"

/*
 * One function of the service: how its request is read, served and answered.
 * read may be NULL, and returns the method as it was sent; finish, too, and is
 * called for what was refused as well.
 */
typedef struct EaCall
{
	const char *name;			/* "entityapi.handle()" */
	bool		is_request;		/* of a client, with others behind it */
	char	   *(*read) (EaRequest *req, FunctionCallInfo fcinfo);
	void		(*serve) (EaRequest *req, const char *method);
	void		(*finish) (EaRequest *req);
	Datum		(*write) (EaRequest *req, FunctionCallInfo fcinfo);
} EaCall;

/*
 * Run it: there is never more than one in a backend.  The service's role must
 * be current; guest is what ea_handle_door() said.
 */
extern Datum ea_call_run(const EaCall *call, FunctionCallInfo fcinfo,
						 bool guest);

#endif							/* EA_CALL_H */
