/*
 * A refresh token that was used stays until it would have expired, so that
 * its reuse is noticed; with its session it can go at once, because then it
 * is refused anyway.
 */
#include "postgres.h"

#include "base/guc.h"
#include "cluster/distributed.h"
#include "cluster/turn.h"
#include "engine/exec.h"
#include "identity/sweep.h"
#include "identity/throttle.h"

/*
 * $1 is a time before which rows are over, $2 how many go at most.  All nodes
 * of a cluster have them, each in places of its own: there all rows go that
 * are over, or else each node might take others; but the rows of one node show
 * whether there are any.
 */
#define DELETE_FROM(table, condition) \
	"DELETE FROM entityapi." table " WHERE ctid = ANY (ARRAY(" \
	"SELECT ctid FROM entityapi." table " WHERE " condition \
	" LIMIT $2 FOR UPDATE SKIP LOCKED))", \
	"SELECT 1 FROM entityapi." table " WHERE " condition " LIMIT 1", \
	"DELETE FROM entityapi." table " WHERE " condition

typedef enum Age
{
	NOW,						/* rows hold the time they end */
	WINDOW,						/* failures of an address */
	FORGOTTEN,					/* failures of a username */
	ORIGIN						/* logins from an address */
} Age;

static const struct
{
	const char *sql;
	const char *look;
	const char *everywhere;
	Age			age;
}			sweeps[] =
{
	{DELETE_FROM("session", "expires_at < $1"), NOW},
	{DELETE_FROM("session", "revoked_at < $1"), NOW},
	{DELETE_FROM("refresh_token", "expires_at < $1"), NOW},
	{DELETE_FROM("address_failure", "failed_at < $1"), WINDOW},
	{DELETE_FROM("login_throttle", "last_failure_at < $1"), FORGOTTEN},
	{DELETE_FROM("login_origin", "succeeded_at < $1"), ORIGIN}
};

/*
 * Seconds after which a row is over.  A username has at most so many failures
 * on record as lead to the longest delay, and loses one after each.
 */
static int64
row_age(Age age)
{
	switch (age)
	{
		case NOW:
			return 0;
		case WINDOW:
			return 60;
		case FORGOTTEN:
			return (int64) ea_guc_login_max_delay *
				(ea_guc_login_free_failures + 32);
		case ORIGIN:
			return EA_THROTTLE_ORIGIN_LIFETIME;
	}
	return 0;
}

/*
 * A reference table is locked as a whole, and other sessions would wait for
 * that: so only where there is something to delete, and by one session at a
 * time.
 */
static int64
sweep_everywhere(TimestampTz now)
{
	int64		deleted = 0;
	bool		mine = false;

	for (int i = 0; i < lengthof(sweeps); i++)
	{
		int64		before = now - row_age(sweeps[i].age) * USECS_PER_SEC;
		EaParams	params = ea_params(EA_TIMESTAMP(before));

		if (ea_exec_one(EA_EXEC_READ, sweeps[i].look, params, NULL, NULL) == 0)
			continue;
		mine = mine || ea_turn_take(EA_TURN_SWEEP, false);
		if (!mine)
			break;
		deleted += ea_exec_write(sweeps[i].everywhere, params);
	}
	return deleted;
}

int64
ea_sweep_run(TimestampTz now, int max_rows)
{
	int64		deleted = 0;

	if (ea_distributed())
		return sweep_everywhere(now);
	for (int i = 0; i < lengthof(sweeps); i++)
	{
		int64		before = now - row_age(sweeps[i].age) * USECS_PER_SEC;

		deleted += ea_exec_write(sweeps[i].sql,
								 ea_params(EA_TIMESTAMP(before),
										   EA_INT4(max_rows)));
	}
	return deleted;
}
