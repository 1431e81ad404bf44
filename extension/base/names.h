/*
 * Names derived from declared names, and a map by name.
 *
 * Declared names are ASCII letters and digits, which manifest/documents.c
 * makes sure of.  All results are palloc'd.
 */
#ifndef EA_NAMES_H
#define EA_NAMES_H

/* "LineItem" -> "line_item", "HTMLPage" -> "html_page". */
extern char *ea_names_snake(const char *name);

/* "LineItem" -> "lineItem", "HTMLPage" -> "htmlPage". */
extern char *ea_names_camel(const char *name);

/* ASCII letters in lower case. */
extern char *ea_names_lower(const char *name);

/* The last word in its English plural: "LineItem" -> "LineItems". */
extern char *ea_names_plural(const char *name);

/*
 * The name itself when PostgreSQL keeps it whole, otherwise a shortened one
 * that ends in a hash of the whole, so that different names stay different.
 */
extern char *ea_names_identifier(const char *name);

/*
 * `schema.table`, a part with a dot or a quotation mark in quotation marks, as
 * manifests name tables: one text for each table.
 */
extern char *ea_names_table(const char *schema, const char *table);

/* Of the n candidates the one that name may be a typing error of, or NULL. */
extern const char *ea_names_nearest(const char *name,
									const char *const *candidates, int n);

/* ` (did you mean "x"?)` for that one, or ""; after a name in an error. */
extern const char *ea_names_guess(const char *name,
								  const char *const *candidates, int n);

/* The same of one that is known; NULL: "". */
extern const char *ea_names_meant(const char *name);

/* One of the n names is this one. */
extern bool ea_names_contain(char *const *names, int n, const char *name);

/*
 * A map from names to pointers that are not NULL; names are not copied.  It
 * grows in the memory context that was current when it was created.
 */
typedef struct EaNameMap EaNameMap;

extern EaNameMap *ea_names_map_create(int size);
extern void *ea_names_map_get(EaNameMap *map, const char *name);

/* False, and nothing changed, when the name is there already. */
extern bool ea_names_map_put(EaNameMap *map, const char *name, void *value);

/* Nothing happens when the name is not there. */
extern void ea_names_map_remove(EaNameMap *map, const char *name);

/* All n names, in the order in which they came; palloc'd. */
extern const char **ea_names_map_list(EaNameMap *map, int *n);

#endif							/* EA_NAMES_H */
