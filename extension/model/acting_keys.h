/*
 * Foreign keys that act when rows of an entity are deleted.
 *
 * The service's own only refuse: write/delete.c deletes or changes the rows
 * that depend on a deleted one, with rights and records.  A key with an action
 * (CASCADE, SET NULL, SET DEFAULT) beside them does so unseen, and so do those
 * that the rows which it deletes set in motion.  "unseen" of an entity names
 * the tables for which that is meant.
 */
#ifndef EA_ACTING_KEYS_H
#define EA_ACTING_KEYS_H

#include "nodes/pg_list.h"

#include "model/catalog.h"

/* A key that nothing says is meant. */
typedef struct EaActingKey
{
	EaEntity   *entity;			/* whose rows set it in motion */
	Oid			relid;			/* of the table whose key it is */
	char	   *name;
	char	   *message;
	char	   *hint;			/* statement, or what to declare */
} EaActingKey;

/*
 * The table of an entity as it is now, or InvalidOid if there is none.  The
 * usual one goes by the declared name.
 */
typedef Oid (*EaTableOf) (const EaEntity *entity, void *arg);

/*
 * The service may delete rows of the entity: callers, the sweep, or along with
 * what they refer to.
 */
extern bool ea_acting_keys_deletes(EaEntity *entity);

extern Oid	ea_acting_keys_table(const EaEntity *entity, void *arg);

/*
 * Such keys (EaActingKey *) for all entities of a catalog whose rows the
 * service may delete for good.  All entities must have been loaded.
 */
extern List *ea_acting_keys(EaCatalog *catalog, EaTableOf table_of, void *arg);

/*
 * An error if there is one for this entity, of which rows are being deleted.
 * The result is kept until the tables concerned change; these are locked by
 * the deletion itself, so it comes first.
 */
extern void ea_acting_keys_check(EaEntity *entity);

/* The same where links alone are deleted, of an owning field. */
extern void ea_acting_keys_check_links(EaField *field);

#endif							/* EA_ACTING_KEYS_H */
