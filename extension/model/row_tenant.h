/*
 * The tenant of a row, in statements.
 *
 * A made table has it in a column, and so may have a table of an application.
 * There it can also be that of a row that the row refers to, of up to four
 * rows one behind the other, or one tenant has all of them.  Nothing else
 * reads entity->row_tenant (scripts/check/layers).
 */
#ifndef EA_ROW_TENANT_H
#define EA_ROW_TENANT_H

#include "model/sqlbuf.h"

/* References that lead to a tenant, at most */
#define EA_ROW_TENANT_HOPS 4

/* The column that an INSERT writes; NULL where the row itself has none. */
#define ea_row_tenant_column(entity) \
	((const char *) (entity)->row_tenant.column)

/* A reference leads to it. */
#define ea_row_tenant_is_led(entity) ((entity)->row_tenant.by != NULL)

/* Equal rows of two declarations have the same one. */
extern bool ea_row_tenant_is_same(const EaEntity *a, const EaEntity *b);

/* It is the reference that does. */
extern bool ea_row_tenant_leads(const EaField *field);

/* One tenant has all rows, and it is another one. */
extern bool ea_row_tenant_is_closed(const EaEntity *entity,
									const pg_uuid_t *tenant);

/* `t<alias>.tenant_id = $<tenant>`, or what comes to the same */
extern void ea_row_tenant_add(EaSqlBuf *b, EaEntity *entity, int alias,
							  int tenant);

/* The tenant itself, as an expression */
extern void ea_row_tenant_select(EaSqlBuf *b, EaEntity *entity, int alias);

/*
 * `, <table> o1, ...` behind the entity's own table in FROM: the rows that
 * lead to the tenant.  They are the condition's from then on, and are held
 * with ea_row_tenant_hold().  ea_sqlbuf_from_as() writes it where b->holds is
 * set.
 */
extern void ea_row_tenant_from(EaSqlBuf *b, EaEntity *entity, int alias);

/*
 * The lock of rows t<alias>, as ` FOR UPDATE`, and of those that lead to their
 * tenant, which stay as they are; and of these alone.
 */
extern void ea_row_tenant_hold(EaSqlBuf *b, const char *lock, int alias);
extern void ea_row_tenant_hold_way(EaSqlBuf *b);

/*
 * A foreign key of this column alone, without the tenant, leads from the
 * entity's table: rows of other tenants may refer to the same one.
 */
extern bool ea_row_tenant_is_crossed(EaEntity *entity, const char *column);

/*
 * "SHARE", or "KEY SHARE" where that is enough: the lock by which a row stays
 * its tenant's.
 */
extern const char *ea_row_tenant_lock(EaEntity *entity);

/* A statement that is written again is over the same tables. */
extern void ea_row_tenant_note(EaSqlBuf *b, EaEntity *entity);

/* A row of the tenant in the place of the table, without its references */
extern void ea_row_tenant_stand_in(EaEntity *stand_in);

#endif							/* EA_ROW_TENANT_H */
