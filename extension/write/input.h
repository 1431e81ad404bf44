/*
 * An incoming resource object, read against its entity.
 *
 * Reading has two steps, because another answer may stand between them
 * (403 and 404 come before 400): the form first, then, once the
 * caller is known to see the resource, its values.
 */
#ifndef EA_INPUT_H
#define EA_INPUT_H

#include "model/catalog.h"
#include "read/document.h"
#include "request/request.h"

/* The input for one field. */
typedef struct EaInputField
{
	bool		given;
	bool		isnull;			/* attributes, and to-one set to null */
	Datum		value;			/* attributes */
	int			ntargets;		/* relationships */
	EaTarget   *targets;
	const char *odd;			/* an attribute that is taken only if the row
								 * has this value: why not else; or NULL */
	bool		later;			/* a later operation answers for the target */
	const char *pointer;		/* of the value, for later faults */
} EaInputField;

/*
 * A member of an update that nobody may set: it says nothing new where the row
 * has its value (write/repeated.h).
 */
typedef struct EaRepeated
{
	EaField    *field;
	EaField    *side;			/* that cannot be set: it, or its mirror */
	const EaJson *json;
	const char *pointer;
} EaRepeated;

typedef struct EaInput EaInput;

/*
 * Fill a required to-one relationship that the resource object leaves out;
 * false when nothing is known to fill it with.
 */
typedef bool (*EaCompletion) (EaInput *input, EaField *field,
							  EaInputField *in);

struct EaInput
{
	EaRequest  *req;
	EaEntity   *entity;
	EaOperation op;				/* create or update */
	const EaJson *data;			/* the resource object, NULL: linkage only */
	const char *pointer;		/* of the resource object: "/data" */
	const char *operation;		/* of the atomic operation, or NULL */
	bool		has_id;			/* a client gave one to a new resource */
	EaId		id;
	EaJson	   *attributes;		/* objects, or NULL */
	EaJson	   *relationships;
	EaInputField *fields;		/* by field index */
	int			nrepeated;
	int			maxrepeated;
	EaRepeated *repeated;		/* those that the caller may read */
	EaCompletion complete;		/* within atomic operations, else NULL */
	void	   *complete_arg;
};

/*
 * Read the form of a body: `data` with its type, id and members.  id is that
 * of the URL for an update, NULL for a create.  Throws 400, 403 (client id)
 * and 409 (type or id differs).
 */
extern EaInput *ea_input_form(EaRequest *req, EaEntity *entity,
							  EaOperation op, const EaId *id);

/*
 * The same for a resource object that stands elsewhere, whose id has been
 * compared already.
 */
extern EaInput *ea_input_object(EaRequest *req, EaEntity *entity,
								EaOperation op, const EaJson *data,
								const char *pointer);

/* That of a new resource; its id is read if the client makes it. */
extern EaInput *ea_input_added(EaRequest *req, EaEntity *entity,
							   const EaJson *data, const char *pointer);

/*
 * Read the values.  Every fault is noted; the caller checks for them, and for
 * what is repeated.
 */
extern void ea_input_values(EaInput *input);

/* Note that a field cannot be set: the fault of a repeated member, too. */
extern void ea_input_refuse(EaRequest *req, const EaField *field,
							const EaField *side, const char *pointer);


/*
 * Note a fault for each target that the caller does not see; one statement
 * for each entity pointed at.  All inputs are of one entity.
 */
extern void ea_input_targets(EaInput *const *inputs, int n);

/*
 * The id of a new resource, by what the client gave: an id, or the field that
 * is the key.  The values have been read; faults are noted.  False where the
 * database makes it.
 */
extern bool ea_input_id(EaInput *input, EaId *id);

/* The same once more, as hooks may have set the field. */
extern void ea_input_take_id(EaInput *input, EaId *id);

/* Targets with one id have another: the resource has got that instead. */
extern void ea_input_retarget(EaInput *input, const EaId *from,
							  const EaId *to);

/* The value that a column of the field is to hold in the row. */
extern EaValue ea_input_value(const EaField *field, const EaInputField *in,
							  int column);

/*
 * An input that names one relationship only, from a body with `data` as its
 * linkage.  Faults are noted.  removing: identifiers that can exist nowhere
 * are left out instead of being faults.
 */
extern EaInput *ea_input_relationship(EaRequest *req, EaField *field,
									  const EaJson *json,
									  const char *pointer, bool removing);

#endif							/* EA_INPUT_H */
