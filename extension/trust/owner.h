/*
 * The rights of entityapi_owner.
 *
 * The functions of the extension belong to the role that installed it, so that
 * no member of entityapi_owner can change what a superuser calls.  Those in C
 * that look at tables take the rights of entityapi_owner here, whoever calls,
 * and a pinned search path with them.  Four in SQL, of which no statement
 * touches a table of others, are SECURITY DEFINER: export_manifest(),
 * extend_audit(), purge_audit() and is_announced().
 */
#ifndef EA_OWNER_H
#define EA_OWNER_H

#include "fmgr.h"

#include "trust/pin.h"

#define EA_OWNER "entityapi_owner"

/*
 * Between the two all is done as the owner.  After an error, the end of the
 * (sub)transaction restores user and path.  Code that runs meanwhile can leave
 * deferred triggers, which before PostgreSQL 18 would run as the role that
 * commits: the caller that enters settles them (write/links_deferred.h) or
 * undoes all that was done.  Nobody else enters; ea_owner_settles() relies on
 * it.
 */
extern void ea_owner_enter(EaPin *before);
extern void ea_owner_leave(const EaPin *before);

/* Whether this runs between the two. */
extern bool ea_owner_settles(void);

/*
 * As ea_owner_enter(), and so that no code that runs meanwhile gets to other
 * rights, neither at once nor by what it leaves for the transaction's end.
 */
extern void ea_owner_confine(EaPin *before);

/*
 * As the role that installed the extension, for what belongs to nobody else:
 * the declarations, which are read without doubting them.
 */
extern void ea_owner_install(EaPin *before);

/*
 * As the role that a table belongs to, as whom its owner's code may run: for
 * what a superuser asks of tables that others can replace at any time.
 */
extern void ea_owner_of(EaPin *before, Oid relid);

/* The role that a table belongs to; InvalidOid: it is gone. */
extern Oid	ea_owner_of_table(Oid relid);

extern Datum ea_owner_call(PGFunction body, FunctionCallInfo fcinfo,
						   bool confined);

/* The role that called the function of ours that runs. */
extern Oid	ea_owner_caller(void);

#define EA_FUNCTION_BY_OWNER(name, confined) \
PG_FUNCTION_INFO_V1(name); \
static Datum name##_as_owner(PG_FUNCTION_ARGS); \
Datum \
name(PG_FUNCTION_ARGS) \
{ \
	return ea_owner_call(name##_as_owner, fcinfo, confined); \
} \
static Datum \
name##_as_owner(PG_FUNCTION_ARGS)

/* Stands before the body of a function that SQL calls. */
#define EA_CONFINED_FUNCTION(name) EA_FUNCTION_BY_OWNER(name, true)

/* The same for one that settles, or undoes, what is left: ea_owner_enter(). */
#define EA_SETTLING_FUNCTION(name) EA_FUNCTION_BY_OWNER(name, false)

/*
 * For a trigger of a table of the extension, which fires for any role that
 * writes to that.  For tables of entities it uses model/trigger_write.h.
 */
#define EA_TRIGGER_FUNCTION(name) \
EA_FUNCTION_BY_OWNER(name, !ea_owner_settles())

#endif							/* EA_OWNER_H */
