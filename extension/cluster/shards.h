/*
 * Shards that are on this node, by their own names.
 *
 * Where Citus keeps the rows of a tenant on this very node, they are in a
 * plain table beside the one that it stands for, and a statement over that
 * needs nothing of Citus.  Tables that are on every node are there, too.
 */
#ifndef EA_SHARDS_H
#define EA_SHARDS_H

#include "utils/uuid.h"

typedef struct EaShard
{
	Oid			shell;			/* the table that it is of */
	Oid			relid;			/* InvalidOid: it is on another node */
	int64		number;			/* 0: the table has none */
	const char *name;			/* as in statements, NULL like relid */
	int			node;			/* number of the group of nodes that has it */
	int			here;			/* and of that which this one belongs to */
} EaShard;

/*
 * The shard with the rows of a tenant; NULL for a table that each node has.
 * The table is named as in statements.  It stays where it is until the end of
 * the transaction, as Citus moves no shard whose metadata others hold; the
 * result's target lasts until the next invalidation message for the table.
 * SPI must be connected, and the deployment distributed.
 */
extern const EaShard *ea_shards_find(const char *table,
									 const pg_uuid_t *tenant);

/*
 * The same for a caller that reads it under the active snapshot.  If that is
 * older than the shard's being here it is an error that lets the request be
 * repeated.
 */
extern const EaShard *ea_shards_read(const char *table,
									 const pg_uuid_t *tenant);

/*
 * A table that each node has, as a statement with a snapshot of its own may
 * name it: code within a statement of Citus can run none through it.
 */
extern const char *ea_shards_name(const char *table);

/* Each node has the table. */
extern bool ea_shards_everywhere(Oid shell);

/* A table as statements name it, palloc'd; NULL if there is none any more. */
extern char *ea_shards_qualified(Oid relid);

/* The table that a shard found before is of; InvalidOid for any other. */
extern Oid	ea_shards_shell(Oid relid);

#endif							/* EA_SHARDS_H */
