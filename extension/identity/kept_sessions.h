/*
 * Accounts of sessions, as they were found while nothing was written.
 */
#ifndef EA_KEPT_SESSIONS_H
#define EA_KEPT_SESSIONS_H

#include "utils/snapshot.h"

#include "identity/account.h"

/*
 * The account of a session that has not ended, its strings in the current
 * context, if the newest snapshot, which is given, sees what that one saw
 * under which it was read.
 */
extern bool ea_kept_sessions_find(const pg_uuid_t *session,
								  const pg_uuid_t *id, Snapshot newest,
								  TimestampTz now, EaAccount *account);

/*
 * Keep what was read under a newest snapshot (ea_newest_ended), while the
 * transaction had written nothing; until is when the session ends.  Large
 * accounts are not kept.
 */
extern void ea_kept_sessions_put(const pg_uuid_t *session, uint64 ended,
								 TimestampTz until, const EaAccount *account);

#endif							/* EA_KEPT_SESSIONS_H */
