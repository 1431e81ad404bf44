/*
 * Work that one session does at a time.
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "storage/lock.h"

#include "engine/turn.h"

static bool
take(EaTurn turn, bool session, bool wait)
{
	LOCKTAG		tag;

	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, 0, 0, turn);
	return LockAcquire(&tag, ExclusiveLock, session, !wait) !=
		LOCKACQUIRE_NOT_AVAIL;
}

bool
ea_turn_take(EaTurn turn, bool wait)
{
	return take(turn, false, wait);
}

PG_FUNCTION_INFO_V1(ea_sql_take_audit_turn);

/* entityapi.take_audit_turn(wait boolean) returns boolean */
Datum
ea_sql_take_audit_turn(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(take(EA_TURN_AUDIT, false, PG_GETARG_BOOL(0)));
}

PG_FUNCTION_INFO_V1(ea_sql_claim_apply);

/* entityapi.claim_apply() returns boolean; it lasts as long as the session */
Datum
ea_sql_claim_apply(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(take(EA_TURN_STEPS, true, false));
}
