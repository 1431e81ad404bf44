/*
 * What introspect was asked for.
 */
#ifndef INTROSPECT_OPTIONS_H
#define INTROSPECT_OPTIONS_H

#include <stdbool.h>

enum introspect_mode
{
	INTROSPECT_WRITE, INTROSPECT_UPDATE, INTROSPECT_CHECK
};

struct introspect_options
{
	char	  **schemas;
	int			schema_count;
	char	  **tables;			/* schema.name, or a name alone */
	int			table_count;
	const char *role;			/* NULL: the owner of the tables */
	const char *tenant;			/* a column; NULL: there is one tenant */
	bool		utc;			/* times without zone are UTC */
	enum introspect_mode mode;
	const char *folder;
};

#endif							/* INTROSPECT_OPTIONS_H */
