/*
 * Knowledge of the tables that statements are over, until it changes.
 *
 * A statement is written for tables of some form: columns of these types,
 * whose owners may be trusted.  This is checked once for a table and
 * remembered here.  PostgreSQL's invalidation messages say when to look again;
 * while none comes, a statement compares one number.
 */
#ifndef EA_HELD_H
#define EA_HELD_H

#include "utils/relcache.h"

#include "base/compat.h"
#include "trust/application_role.h"

/* How a statement wants its tables. */
typedef struct EaHeld
{
	/*
	 * the statement's source still holds; asked as whoever runs the statement,
	 * be it the role of an application
	 */
	bool		(*is_current) (void *arg);

	/* throws unless the table, which is locked, is as it must be */
	void		(*check) (void *arg, Relation rel);
	void	   *arg;

	/* its tables are shards on this node, by their own names */
	bool		here;

	/* the role as which a statement over its tables runs, or NULL */
	const EaApplication *application;
	bool		by_settings;	/* policies on them may ask for its settings */
	bool		spells;			/* values are read as texts of their types */
	bool		of_both;		/* it reads tables of the service as well */
	bool		looks;			/* it locks rows that it does not write */
} EaHeld;

/* Registers the callbacks; called from _PG_init. */
extern void ea_held_init(void);

/*
 * For invalidate.c, whose callback gets the messages for relations; 0: all of
 * them.
 */
extern void ea_held_relation_changed(Oid relid);
extern void ea_held_all_changed(void);

/*
 * Grows with each invalidation message for something that a table was looked
 * at for; and its value at the last message that concerned all tables.
 */
extern uint64 ea_held_epoch(void);
extern uint64 ea_held_since(void);

/* Grows with any invalidation message: for any table, in use or not. */
extern uint64 ea_held_messages(void);

/* Nothing has changed since the table was found to be as it must be. */
extern bool ea_held_is_known(Oid relid);

/* Invalidation messages for a table count from here on. */
extern void ea_held_follow(Oid relid);

/*
 * The table, which is followed, or was found to be as it must be, has the name
 * that it had in that epoch.
 */
extern bool ea_held_means_same(Oid relid, uint64 then);

/*
 * See to it that a table is as it must be.  It is locked already, and it is
 * checked only if it is not known.  An error that lets the request be
 * repeated, if the declarations are others by now, or the snapshot is older
 * than the table's present form: then it may see no rows.  False if something
 * that all tables depend upon has changed meanwhile, which the check may have
 * missed.
 */
extern bool ea_held_table(const EaHeld *held, Oid relid);

/*
 * An object on which the tables depend changes them: by its oid, of one of the
 * caches of roles, databases, schemas, functions and types; or a relation.
 */
extern void ea_held_watch(int cache, Oid oid);
extern void ea_held_watch_relation(Oid relid);

/* The declarations have moved, or what was looked at: try again. */
extern EA_NORETURN void ea_held_throw(void);

#endif							/* EA_HELD_H */
