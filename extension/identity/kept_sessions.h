/*
 * Cache of sessions' accounts, for as long as they are known to be unchanged.
 */
#ifndef EA_KEPT_SESSIONS_H
#define EA_KEPT_SESSIONS_H

#include "utils/snapshot.h"

#include "direct/seen_row.h"
#include "identity/account.h"

/* Of the session, its account, the tenant and its administrator. */
#define EA_SESSION_ROWS 4

/* The rows that an account was made of. */
typedef struct EaSessionRows
{
	TimestampTz until;			/* when the session ends */
	int			n;
	EaSeenRow	items[EA_SESSION_ROWS];
	bool		incomplete;		/* there were others */
} EaSessionRows;

/*
 * The account of a session that has not ended, its strings in the current
 * context, if the newest snapshot, which is given, sees what that one saw
 * under which it was read.
 */
extern bool ea_kept_sessions_find(const pg_uuid_t *session,
								  const pg_uuid_t *id, Snapshot newest,
								  TimestampTz now, EaAccount *account);

/*
 * The same if the snapshot sees all rows that it was made of as they were; a
 * row that was not there may be there now.
 */
extern bool ea_kept_sessions_find_rows(const pg_uuid_t *session,
									   const pg_uuid_t *id, Snapshot snapshot,
									   TimestampTz now, EaAccount *account);

/*
 * Keep what was read under a newest snapshot (ea_newest_ended), while the
 * transaction had written nothing, or under another one: then ended is 0.
 * Large accounts are not kept.
 */
extern void ea_kept_sessions_put(const pg_uuid_t *session, uint64 ended,
								 const EaSessionRows *rows,
								 EaAccount *account);

/* An account just found by its rows is as that snapshot sees it, too. */
extern void ea_kept_sessions_confirm(const pg_uuid_t *session, uint64 ended);

#endif							/* EA_KEPT_SESSIONS_H */
