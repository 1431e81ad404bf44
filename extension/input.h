/*-------------------------------------------------------------------------
 *
 * input.h
 *	  An incoming resource object, read against its entity.
 *
 * Reading has two steps, because another answer may stand between them
 * (contract section 1.1): the form of the document first, then, once the
 * caller is known to see the resource, its values.
 *
 * extension/input.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef EA_INPUT_H
#define EA_INPUT_H

#include "catalog.h"
#include "context.h"
#include "document.h"

/* What came for one field. */
typedef struct EaInputField
{
	bool		given;
	bool		isnull;			/* attributes, and to-one set to null */
	Datum		value;			/* attributes */
	int			ntargets;		/* relationships */
	EaTarget   *targets;
	const char *pointer;		/* of the value, for later faults */
} EaInputField;

typedef struct EaInput
{
	EaRequest  *req;
	EaEntity   *entity;
	EaOperation op;				/* create or update */
	const char *pointer;		/* of the resource object: "/data" */
	EaJson	   *attributes;		/* objects, or NULL */
	EaJson	   *relationships;
	EaInputField *fields;		/* by field index */
} EaInput;

/*
 * Read the form of a body: `data` with its type, id and members.  id is that
 * of the URL for an update, NULL for a create.  Throws 400, 403 (client id)
 * and 409 (type or id differs).
 */
extern EaInput *ea_input_form(EaRequest *req, EaEntity *entity,
							  EaOperation op, const pg_uuid_t *id);

/* Read the values.  Every fault is noted; the caller checks for them. */
extern void ea_input_values(EaInput *input);

/*
 * Note a fault for each target that the caller does not see; one statement
 * for each entity pointed at.
 */
extern void ea_input_targets(EaInput *input);

/*
 * An input that names one relationship only, from a body with `data` as its
 * linkage.  Faults are noted.  removing: identifiers that can exist nowhere
 * are left out instead of being faults.
 */
extern EaInput *ea_input_relationship(EaRequest *req, EaField *field,
									  const EaJson *json,
									  const char *pointer, bool removing);

/*
 * The field may be set by this caller, here and now; notes the fault that it
 * answers with otherwise.
 */
extern bool ea_input_writable(EaInput *input, EaField *field,
							  const char *pointer);

#endif							/* EA_INPUT_H */
