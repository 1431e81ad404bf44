/*
 * Locks of whole tables, as statements over them need them.
 *
 * ALTER TABLE, VACUUM FULL or REINDEX hold a table for as long as they take,
 * and each request for it would hold a connection of the pool as long.  So
 * only a share of the pool's sessions wait for such locks at once, each in a
 * slot that all of them see; another one is refused without waiting, and so
 * is one whose wait has lasted too long (lock_timeout).  Requests for other
 * tables find the rest of the pool free.
 */
#ifndef EA_TABLE_LOCK_H
#define EA_TABLE_LOCK_H

#include "nodes/pg_list.h"
#include "storage/lockdefs.h"

/* SQLSTATE of a request that finds no slot. */
#define ERRCODE_EA_BUSY MAKE_SQLSTATE('J', 'A', '5', '0', '4')

/*
 * A request begins whose pool has that many sessions, as the shim says
 * (entityapi.pool_size); 0 where sessions are not counted: a caller without a
 * shim, or work that is no request.  It then waits as any statement does.
 */
extern void ea_table_lock_begin(int sessions);

/*
 * Lock a table, which belongs to the database, until the end of the
 * transaction.  Throws ERRCODE_EA_BUSY.
 *
 * A session that builds or rebuilds an index holds that index besides.  So
 * where others hold or want more of the table than ordinary statements do, its
 * indexes are locked with it.
 */
extern void ea_table_lock(Oid relid, LOCKMODE mode);

/*
 * The same for a table that may as well be the extension's own: for one of
 * these all requests wait, as any of them would need it.
 */
extern void ea_table_lock_any(Oid relid, LOCKMODE mode);

/*
 * The same for the tables that a statement names, which is about to be parsed:
 * that locks them, too.  A name that leads nowhere is left to the parser.
 */
extern void ea_table_lock_named(const char *sql);

/*
 * A table by its qualified name, as it stands in statements: InvalidOid if
 * there is none.  It is not locked, and no right on its schema is asked for.
 */
extern Oid	ea_table_find(const char *qualified);

/*
 * Tables whose foreign keys lead to that one.  To delete a row of it means to
 * look into them.
 */
extern List *ea_table_lock_referring(Oid relid);

/*
 * The error under way was thrown while the request waited for a table or an
 * index of it; or for want of a slot.
 */
extern bool ea_table_lock_gave_up(int sqlstate);

#endif							/* EA_TABLE_LOCK_H */
