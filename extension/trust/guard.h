/*
 * Limits of user-defined code while the service works.
 */
#ifndef EA_GUARD_H
#define EA_GUARD_H

/*
 * Bits of the security context, beside PostgreSQL's own (miscadmin.h), which
 * keeps, hands down and restores them all with the current user.
 */
#define EA_GUARD_SERVICE	0x10000000	/* the service works */
#define EA_GUARD_CODE		0x20000000	/* within a function it has called */
#define EA_GUARD_BOTH		0x40000000	/* as an application's role, and made
										 * tables are read, too */

extern void ea_guard_init(void);

/* The owner of the tables of that application. */
extern void ea_guard_application(Oid owner);

/* Whether a function in a procedural language has been called since then. */
extern void ea_guard_forget_code(void);
extern bool ea_guard_code_ran(void);

/* How many there were. */
extern uint64 ea_guard_calls(void);

#endif							/* EA_GUARD_H */
