/*
 * Members of the plain JSON bodies of /auth and /manage.
 */
#ifndef EA_BODY_H
#define EA_BODY_H

#include "request/request.h"

struct EaDraft;
struct EaValue;

/*
 * The value to be stored for a member, which is NULL when it is absent or
 * null, in a record that is being made or changed (management/records.h).
 * Notes faults at the pointer.
 */
typedef struct EaValue (*EaMemberRead) (struct EaDraft *draft,
										const EaJson *sent,
										const char *pointer);

/* A member that an endpoint takes. */
typedef struct EaMemberRule
{
	const char *name;
	EaJsonKind	kind;
	bool		required;
	const char *schema;			/* more of its JSON schema, NULL: nothing
								 * (openapi/openapi.h has the notation) */
	bool		never_null;		/* optional, but null is not a way to leave it
								 * out: in a change that would mean to empty
								 * what cannot be empty */

	/* of a record */
	EaMemberRead read;			/* NULL: a string, stored as it was sent */
	const char *column;			/* NULL: it is stored in no column as such */
	const char *unique;			/* column with what no other record has; if it
								 * can change, `before` keeps others away */
} EaMemberRule;

/* All members of a body. */
typedef struct EaBodyForm
{
	const EaMemberRule *rules;
	int			nrules;
} EaBodyForm;

#define EA_BODY_FORM(...) \
	{(const EaMemberRule[]) {__VA_ARGS__}, \
		lengthof(((const EaMemberRule[]) {__VA_ARGS__}))}

/*
 * Compare an object with the members an endpoint takes, noting every fault:
 * unknown members, required ones that are missing or null, nulls where there
 * can be none, wrong kinds.  base is the pointer to the object, "" for the
 * whole body.  Throws 400 when it is no object.  A caller that goes on to look
 * for further faults reads the members with ea_body_member(); those that are
 * not there have been reported.
 */
extern void ea_body_check(EaRequest *req, const EaJson *object,
						  const char *base, const EaBodyForm *form);

/* The same for the body of the request; ends the request on a fault. */
extern const EaJson *ea_body_read(EaRequest *req, const EaBodyForm *form);

/*
 * A member that is there, is of its kind, and is not null; or else NULL.
 * An optional member may be null, which is as good as absent, unless its rule
 * says that it is never null.
 */
extern const EaJson *ea_body_member(const EaJson *object, const char *name,
									EaJsonKind kind);

/*
 * The body as a JSON tree.  Throws MALFORMED_JSON (400) when it is missing
 * or no JSON as base/jsonread.h has it.
 */
extern EaJson *ea_body_json(EaRequest *req);

#endif							/* EA_BODY_H */
