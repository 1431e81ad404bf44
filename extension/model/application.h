/*
 * The application whose tables are served, as the Service declares it.
 */
#ifndef EA_APPLICATION_H
#define EA_APPLICATION_H

#include "utils/relcache.h"

#include "model/catalog.h"
#include "request/request.h"
#include "trust/application_role.h"

/* A setting of the Service, or what ALTER ROLE ... SET says. */
typedef struct EaApplicationSetting
{
	char	   *name;
	char	   *value;			/* or #user.x: of the caller */
	bool		declared;		/* by the Service, so that it must be right */
} EaApplicationSetting;

typedef struct EaApplicationModel
{
	char	   *role;			/* its name */
	Oid			role_oid;		/* InvalidOid: not of the stored state */
	Oid			owner;			/* of the tables, beside superusers */
	int			nsettings;
	EaApplicationSetting *settings;
	struct EaTenantTable *tenants;	/* NULL: no table says who they are */
} EaApplicationModel;

/* Of a Service's definition, into the catalog's memory; json may be NULL. */
extern void ea_application_load(EaCatalog *catalog, const EaJson *json);

/*
 * The rest, from the database: the role as it was when this was applied, and
 * settings of its own that the Service says nothing of.
 */
extern void ea_application_read(EaCatalog *catalog);

/* Its table says who the tenants are, so they are not written here. */
extern bool ea_application_has_tenants(const EaCatalog *catalog);

/* As its statements are run for a request; never NULL if there is one. */
extern const EaApplication *ea_application_of(EaRequest *req);

/* A relation is what a view, or else a table, may be. */
extern bool ea_application_is_kind(char relkind, bool view);

/*
 * All faults of a table as one of the application's (char *), by how it is
 * now: what it is, its owner, rights of entityapi_owner on it, row-level
 * security unless that may be, rules.
 */
extern List *ea_application_table_faults(Relation rel, Oid role, Oid owner,
										 bool view, bool may_hide);

/* An error if there is any. */
extern void ea_application_check_table(const EaCatalog *catalog, Relation rel,
									   bool view, bool may_hide);

#endif							/* EA_APPLICATION_H */
