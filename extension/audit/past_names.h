/*
 * Names that the audit log had for an entity and its fields, and others'
 * types.
 *
 * Whoever shows what a record says of a resource, the log itself, histories
 * and past states, asks here for the entity and the field that are meant.  A
 * thing that is there no more has none, whatever has its name today.
 */
#ifndef EA_PAST_NAMES_H
#define EA_PAST_NAMES_H

#include "model/catalog.h"
#include "request/request.h"

typedef struct EaPastNames EaPastNames;

/* For records about resources of an entity; NULL: of types alone. */
extern EaPastNames *ea_past_names_read(EaRequest *req, EaEntity *entity);

/* The entity's resources were of this type then. */
extern bool ea_past_names_is_type(const EaPastNames *names, const char *type,
								  int revision);

/* All types that they have had, a text[]. */
extern Datum ea_past_names_types(const EaPastNames *names);

/* The entity, as it is called today, whose resources were of this type. */
extern const char *ea_past_names_entity(const EaPastNames *names,
										const char *type, int revision);

/* The field that was called so then; NULL: it is there no more. */
extern EaField *ea_past_names_field(const EaPastNames *names,
									const char *name, int revision);

/* The revision that brought the field; PG_INT32_MAX: nothing is known of it */
extern int	ea_past_names_since(const EaPastNames *names,
								const EaField *field);

/*
 * The revision since which records of the entity have been written without a
 * gap; PG_INT32_MAX: none are.
 */
extern int	ea_past_names_on_since(const EaPastNames *names);

/* The revision that was in force at a time; 0: none. */
extern int	ea_past_names_revision(TimestampTz at);

#endif							/* EA_PAST_NAMES_H */
