/*
 * How many rows a role reads, as the declarations are and as they are to be.
 *
 * A holder is taken with that role alone, and with all else that a policy can
 * see of it; the same rows for the same reason are counted once.  Only numbers
 * leave here.
 */
#ifndef EA_ROLE_ROWS_H
#define EA_ROLE_ROWS_H

#include "nodes/pg_list.h"

#include "request/request.h"

#define EA_ROLE_EVERYBODY "*"
#define EA_ROLE_TENANT_ADMIN "TenantAdmin"	/* no role can be called so */

/* The declarations of one time; entity: NULL when they have none such. */
typedef struct EaRoleSide
{
	EaRequest	req;			/* its principal is the holder in question */
	struct EaEntity *entity;
} EaRoleSide;

/* The task for one role and one entity, and its result. */
typedef struct EaRoleRows
{
	int			callers;		/* holders whose rows or reasons differ */
	bool		differ;			/* by what they are asked; perhaps not the
								 * rows that it leaves */
	int64		before;
	int64		after;
	int64		both;			/* of them in both */
	bool		complete;		/* no bound was hit */
} EaRoleRows;

/* The one principal that has the role and nothing else. */
extern void ea_role_rows_assume(EaPrincipal *principal, const char *role);

/*
 * The accounts (EaPrincipal *) that have the role and could log in, the first
 * of them; *all: there are no more.
 */
extern List *ea_role_rows_holders(const char *role, bool *all);

/*
 * Count for these holders; at most max_rows rows are looked at, and no
 * statement is begun after the deadline.
 */
extern void ea_role_rows_count(EaRoleRows *rows, EaRoleSide *before,
							   EaRoleSide *after, const char *role,
							   List *holders, int max_rows,
							   TimestampTz deadline);

#endif							/* EA_ROLE_ROWS_H */
