/*
 * The names of entities, collections and fields that are made of a database's.
 *
 * They depend on nothing but the tables that are there, not on their order;
 * names that manifests have by now stay.
 */
#ifndef INTROSPECT_NAMES_H
#define INTROSPECT_NAMES_H

#include "command/introspect_catalog.h"

/* `schema.name` as manifests spell it, and back: false if it is none. */
extern char *introspect_names_spell(struct memory *memory,
									const char *schema, const char *table);
extern bool introspect_names_split(struct memory *memory,
								   const char *spelling, char **schema,
								   char **table);

/*
 * Names each table that is served, but for those that have names; then the
 * fields of its columns, then the other sides of references.
 */
extern void introspect_names_give(struct introspect_catalog *catalog);

/*
 * The column that a field has unless "columns" names one; a reference's has a
 * suffix.
 */
extern char *introspect_names_column(struct memory *memory,
									 const char *field, bool is_reference);

#endif							/* INTROSPECT_NAMES_H */
