/*
 * Whose the rows of a table are, where the service has tenants: by the column
 * that --tenant names, or by what a row refers to.
 */
#ifndef INTROSPECT_TENANTS_H
#define INTROSPECT_TENANTS_H

#include "command/introspect_catalog.h"

/* Rows have tenants, by a column or by a reference. */
static inline bool
introspect_tenants_own(const struct introspect_table *table)
{
	return table->tenant >= 0 || table->leader != NULL;
}

/*
 * Why a key (a place in keys) cannot be the id: a client that chooses one that
 * another tenant has is told so.  NULL: it can.
 */
extern const char *introspect_tenants_key(const struct introspect_table *table,
										  int key);

/* References by which rows have tenants; tables have their keys by then. */
extern void introspect_tenants_lead(struct introspect_catalog *catalog);

/* The next name for "global" of a table, from *place on; NULL: no more */
extern const char *introspect_tenants_global(const struct introspect_table
											 *table, int *place);

#endif							/* INTROSPECT_TENANTS_H */
