/*
 * The caller of a request.
 */
#ifndef EA_PRINCIPAL_H
#define EA_PRINCIPAL_H

#include "utils/uuid.h"

#include "base/jsonread.h"

typedef enum EaKind
{
	EA_KIND_USER,
	EA_KIND_SERVICE_ACCOUNT,
	EA_KIND_PERSONAL_API_KEY
} EaKind;

/* Filled from the database, or from JSON that somebody vouches for. */
typedef struct EaPrincipal
{
	EaKind		kind;
	char	   *user_id;		/* text form */
	pg_uuid_t	account;		/* the same, binary, for built-in subjects */
	pg_uuid_t	session;		/* session of the token, all zero without */
	bool		has_key;		/* PERSONAL_API_KEY: it came with this key */
	pg_uuid_t	key;
	bool		unnoted;		/* its last use is to be noted */
	bool		has_tenant;		/* false for a SuperAdmin */
	pg_uuid_t	tenant;
	char	   *username;
	int			nroles;
	char	  **roles;
	bool		super_admin;
	bool		tenant_admin;
	bool		force_change;	/* only change-password is open */
	const char *profile;		/* JSON text of an object */
	const char *attributes;		/* JSON text: securityAttributes */
	EaJson	   *profile_tree;	/* of the two, once a policy asked for them */
	EaJson	   *attribute_tree;
	uint64		numbers[2];		/* of authz, by EaCallerPart; 0: not asked for
								 * yet */
} EaPrincipal;

#endif							/* EA_PRINCIPAL_H */
