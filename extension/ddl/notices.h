/*
 * Code of others on made tables.
 *
 * A trigger, or a function that a check, a default, a generated column or a
 * domain calls, runs with each write, with the rights of entityapi_owner, and
 * with those of a superuser who writes by hand or restores a dump.  It may be
 * meant, so it is told and left alone; what other roles own is refused
 * (existing_check.c).  PostgreSQL confines the code of indexes itself.
 */
#ifndef EA_NOTICES_H
#define EA_NOTICES_H

#include "nodes/pg_list.h"

#include "ddl/tables.h"

typedef struct EaDdlNotice
{
	EaDdlTable *table;
	const char *message;
	const char *hint;
} EaDdlNotice;

/* Notices (EaDdlNotice *) of the made tables of a state that are there. */
extern List *ea_ddl_notices(const EaDdlState *stored);

#endif							/* EA_NOTICES_H */
