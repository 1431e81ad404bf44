#include "postgres.h"

#include "access/xact.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/lock.h"

#include "cluster/distributed.h"
#include "cluster/platform_node.h"
#include "cluster/shards.h"
#include "cluster/turn.h"
#include "engine/exec.h"

static bool
take_lock(EaTurn turn, bool wait)
{
	LOCKTAG		tag;

	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, 0, 0, turn);
	return LockAcquire(&tag, ExclusiveLock, false, !wait) !=
		LOCKACQUIRE_NOT_AVAIL;
}

/*
 * Declarations are changed on the coordinator alone, where a session that
 * waits for its turn can give up.
 */
bool
ea_turn_take(EaTurn turn, bool wait)
{
	return ea_distributed() && turn != EA_TURN_DECLARATIONS ?
		ea_platform_node_ask(EA_PLATFORM_ASK("take_turn", "$1, $2"),
							 ea_params(EA_INT4(turn), EA_BOOL(wait))) > 0 :
		take_lock(turn, wait);
}

/* -------- for rows that all nodes have -------- */

/* The (sub)transaction that has taken it; its rollback gives it back. */
static SubTransactionId taken_in = InvalidSubTransactionId;

static void
forget_turns(XactEvent event, void *arg)
{
	taken_in = InvalidSubTransactionId;
}

bool
ea_turn_everywhere(bool wait)
{
	if (!ea_distributed() || SubTransactionIsActive(taken_in))
		return true;
	if (!ea_turn_take(EA_TURN_EVERYWHERE, wait))
		return false;
	taken_in = GetCurrentSubTransactionId();
	return true;
}

static void
wait_for_turn(const EaPlan *kept)
{
	bool		everywhere = kept->of_accounts;

	if (!ea_distributed())
		return;
	for (int i = 0; i < kept->ntables && !everywhere; i++)
		everywhere = kept->tables[i].written &&
			ea_shards_everywhere(kept->tables[i].relid);
	if (everywhere)
		ea_turn_everywhere(true);
}

void
ea_turn_init(void)
{
	RegisterXactCallback(forget_turns, NULL);
	ea_exec_in_turn(wait_for_turn);
}

/* -------- by SQL -------- */

PG_FUNCTION_INFO_V1(ea_sql_take_turn);

/* entityapi.take_turn(anchor bigint, turn int, wait boolean) */
Datum
ea_sql_take_turn(PG_FUNCTION_ARGS)
{
	int			turn = PG_GETARG_INT32(1);

	if (turn < EA_TURN_DECLARATIONS || turn > EA_TURN_EVERYWHERE)
		elog(ERROR, "there is no turn %d", turn);
	PG_RETURN_INT32(take_lock(turn, PG_GETARG_BOOL(2)));
}

PG_FUNCTION_INFO_V1(ea_sql_take_audit_turn);

/* entityapi.take_audit_turn(wait boolean) returns boolean */
Datum
ea_sql_take_audit_turn(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(take_lock(EA_TURN_AUDIT, PG_GETARG_BOOL(0)));
}
