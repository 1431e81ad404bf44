/*
 * A principal that comes as JSON, from a credential validator, a trusted
 * middleware or an operator that vouches for it.
 */
#ifndef EA_PRINCIPAL_JSON_H
#define EA_PRINCIPAL_JSON_H

#include "utils/jsonb.h"

#include "request/request.h"

/*
 * Read an object of the fields userId, tenantId, username, roles, kind,
 * profile, securityAttributes, scopes, superAdmin, tenantAdmin; source is the
 * text it was parsed from.  Unknown members are ignored, a wrong type never
 * is.  Returns NULL with *why; lives in the current memory context.
 */
extern EaPrincipal *ea_principal_read(const EaJson *json, const char *source,
									  const char **why);

/* The same of an argument of a function; throws what is wrong with it. */
extern EaPrincipal *ea_principal_of_jsonb(Jsonb *jsonb);

#endif							/* EA_PRINCIPAL_JSON_H */
