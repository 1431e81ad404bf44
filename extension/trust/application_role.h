/*
 * The role of an application, as which statements on its tables run.
 *
 * Its tables have triggers, defaults, checks and types that are its own
 * affair.  So nothing of them runs as entityapi_owner: the statement runs as a
 * role that its people name, with the rights that this role has, and gains
 * none by it.  Neither does code of others run as that role: a write of one
 * side lets nothing wait that the other would start.
 */
#ifndef EA_APPLICATION_ROLE_H
#define EA_APPLICATION_ROLE_H

#include "nodes/pg_list.h"

#include "trust/pin.h"

typedef struct EaApplication
{
	const char *name;			/* of the role, as it was declared */
	Oid			role;			/* as it was then; InvalidOid: it was not */
	Oid			owner;			/* of its tables, beside superusers */

	/*
	 * makes the settings that hold while it writes, until ea_pin_end(); or
	 * those of them that no name in a statement is looked up by
	 */
	void		(*set) (void *arg, bool path);
	void	   *arg;
} EaApplication;

/*
 * Why a role can be no application's, in words; NULL: it can.  It would lend
 * the rights of a superuser, or those of the service.
 */
extern const char *ea_application_fault(Oid role);

/* The same with the name that was declared. */
extern const char *ea_application_named_fault(Oid role, const char *name);

/*
 * An error unless the role is the one that was declared, and can be one.  The
 * catalogs are asked again whenever any invalidation message has come.
 */
extern void ea_application_check(const EaApplication *application);

/*
 * Until ea_pin_end(), give way to who changes the application's tables.
 * PostgreSQL looks for a deadlock once a wait, and who looks loses: so the
 * service looks first, and no wait of its lasts until others look.
 */
extern void ea_application_give_way(void);

/*
 * By that it, or the service, is a member of other roles than when this was
 * asked before: rights on tables may be others, of which nothing else tells.
 */
extern bool ea_application_lent_anew(void);

/*
 * Go on as the role, until ea_pin_end(); of_both: to read tables of the
 * service as well, so that functions of deployers are none of its.
 */
extern void ea_application_enter(const EaApplication *application,
								 bool of_both);

/*
 * Pinned, and as a role that leaves nothing: to read what may be its tables,
 * when manifests are applied.
 */
extern void ea_application_look(Oid role, EaPin *pin);

/*
 * The service's own code goes on as the role, where no statement of the
 * service belongs: the role may see none of its tables.
 */
extern bool ea_application_is_entered(void);

/*
 * A statement begins over a table whose policies may ask for the settings.
 */
extern void ea_application_set(const EaApplication *application);

/*
 * A write begins, as the role, once it is planned: what others let wait has
 * run, and from here on settings are those of the application.
 */
extern void ea_application_write(const EaApplication *application);

/* Code of others, on tables of the service, may have let something wait. */
extern void ea_application_note_others(void);

/* Code of it ran, which may have left something as if it were a write. */
extern void ea_application_note_code(const EaApplication *application);

/*
 * Run what its constraints let wait, as the role: before code of others runs,
 * all but foreign keys; at the end of a request, all.
 */
extern void ea_application_settle(bool all);

/*
 * Let constraints of its tables (RangeVar *) wait, or run what they let wait.
 */
extern void ea_application_set_constraints(const EaApplication *application,
										   List *constraints, bool deferred);

/* A request begins: nothing waits. */
extern void ea_application_forget(void);

/* Run all that waits, as a role that lends and leaves nothing. */
extern void ea_application_run_others(void);

/*
 * The same before the role writes, if others have left something.  Not within
 * a subtransaction that may be undone alone.
 */
extern void ea_application_settle_others(const EaApplication *application);

#endif							/* EA_APPLICATION_ROLE_H */
