/*
 * Functions that checks of values and manifests need of the program that runs
 * them.
 *
 * They are compiled into the shim, too, which has these functions a second
 * time (shim/standin/host.c): there nothing is stored, and no regular
 * expression compiled.
 */
#ifndef EA_HOST_H
#define EA_HOST_H

#include "lib/stringinfo.h"

#include "model/types.h"

/* Report to the client that applies or checks; the hint may be NULL. */
extern void ea_host_warn(const char *message, const char *hint);

/*
 * Numbers are read in any form in which a document may have one, and written
 * as they are stored: without an exponent, with all digits of the fraction.
 * The short form has no zeros at its end.  The texts are palloc'd.
 */
extern Datum ea_host_number_read(const char *digits);
extern char *ea_host_number_write(Datum number);
extern char *ea_host_number_short(Datum number);

/* Less than, equal to or greater than 0 */
extern int	ea_host_number_compare(Datum a, Datum b);

/*
 * Floating-point numbers, of four bytes or of eight: false for one that is
 * beyond them.  Written as the shortest text that is read as the same.
 */
extern bool ea_host_float_read(const char *text, bool single, Datum *number);
extern char *ea_host_float_write(Datum number, bool single);

/* JSON, which was found to be sound and to fit */
extern Datum ea_host_jsonb_read(const char *json);
extern void ea_host_jsonb_write(StringInfo buf, Datum value);

/*
 * The table is there, and belongs to the role of the service, so it is no
 * application's; nobody to ask: the guess.
 */
extern bool ea_host_is_ours(const char *schema, const char *table,
							bool guess);

/* It is a view, a materialized view or a foreign table. */
extern bool ea_host_is_view(const char *schema, const char *table);

/*
 * One row at most has these values in two columns of a table, as its unique
 * indexes are; nobody to ask: true.
 */
extern bool ea_host_is_unique(const char *schema, const char *table,
							  const char *one, const char *other);

/* A column that is there, as tables of others have them. */
typedef struct EaHostColumn
{
	Oid			type;			/* below domains */
	int32		modifier;		/* -1: none */
	bool		has_default;	/* or makes its values itself */
	bool		is_enum;
	bool		is_domain;
	bool		is_array;
	int			dimensions;		/* as declared */
	bool		is_listed;		/* there are arrays of its type */
	const char *schema;			/* of the type, */
	const char *name;			/* and its name */

	/* as the key of an entity, or what refers to it */
	const char *key_type;		/* by the name of PostgreSQL's catalog; NULL:
								 * not known, or none of a key */
	int			length;			/* characters that it may have, 0: any */
	EaPolicyType policy;		/* as which policies take it */
} EaHostColumn;

/* False: it is not there, or there is nobody to ask; nothing is known then. */
extern bool ea_host_column(const char *schema, const char *table,
						   const char *column, EaHostColumn *found);

/* The enumeration of this name has the label. */
extern bool ea_host_has_label(const EaHostColumn *column, const char *label);

/* NULL, or the fault of a regular expression. */
extern const char *ea_host_pattern_fault(const char *pattern);

/* Whether it matches anywhere in a value. */
extern bool ea_host_pattern_matches(const char *pattern, const text *value);

#endif							/* EA_HOST_H */
