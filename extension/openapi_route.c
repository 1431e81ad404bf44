/*-------------------------------------------------------------------------
 *
 * openapi_route.c
 *	  What the description says of each route, beyond what router.c does.
 *
 * Method, address, authority and media type are the route table's.  A route
 * without a row here is described by its address alone, and a test fails.
 *
 * extension/openapi_route.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "openapi_part.h"
#include "params.h"

#define TENANT "/manage/tenants/{id}"
#define RESOURCE "/api/v{n}/{entities}/{id}"
#define RELATIONSHIP RESOURCE "/relationships/{relationship}"

static const EaApiRoute descriptions[] = {
	{EA_POST, "/auth/login", "login", "Log in with username and password",
	0, EA_API_RETRY, "LoginRequest", 200, "TokenPair", "401"},
	{EA_POST, "/auth/refresh", "refresh",
		"Exchange a refresh token for a new pair of tokens",
	0, 0, "RefreshRequest", 200, "TokenPair", "401"},
	{EA_POST, "/auth/logout", "logout", "End the session",
	0, EA_API_NO_BODY, "LogoutRequest", 204, NULL, NULL},
	{EA_POST, "/auth/token", "issueToken",
		"Get an access token for a service account",
	0, 0, "TokenRequest", 200, "Token", "401"},
	{EA_POST, "/auth/accept-invite", "acceptInvite",
		"Redeem an invite and create the account",
	0, 0, "InviteAcceptance", 201, "AcceptedInvite", "409"},
	{EA_GET, "/auth/me", "getMe", "Show the caller",
	0, 0, NULL, 200, "Me", NULL},
	{EA_PATCH, "/auth/me", "updateMe", "Change the own profile",
	0, 0, "ProfileUpdate", 200, "Me", NULL},
	{EA_POST, "/auth/change-password", "changePassword",
		"Change the own password; every other session ends",
	0, EA_API_RETRY, "PasswordChange", 200, "TokenPair", NULL},
	{EA_GET, "/auth/me/api-keys", "listOwnApiKeys", "List the own keys",
	EA_TAKES_LIST, 0, NULL, 200, "ApiKeyPage", NULL},
	{EA_POST, "/auth/me/api-keys", "createApiKey",
		"Create a personal key; it is shown this once",
	0, 0, "ApiKeyCreation", 201, "NewApiKey", "409"},
	{EA_POST, "/auth/me/api-keys/{keyId}/disable", "disableApiKey",
		"Disable an own key",
	0, EA_API_NO_BODY, NULL, 200, "ApiKey", NULL},

	{EA_POST, "/manage/tenants", "createTenant",
		"Create a tenant, and its first administrator if one is named",
	0, EA_API_LOCATION, "TenantCreation", 201, "NewTenant", "409"},
	{EA_GET, "/manage/tenants", "listTenants", "List the tenants",
	EA_TAKES_LIST, 0, NULL, 200, "TenantPage", NULL},
	{EA_GET, TENANT, "getTenant", "Show a tenant",
	0, 0, NULL, 200, "Tenant", NULL},
	{EA_PATCH, TENANT, "updateTenant", "Change or suspend a tenant",
	0, 0, "TenantUpdate", 200, "Tenant", "409"},
	{EA_DELETE, TENANT, "deleteTenant",
		"End every credential of a tenant and remove its data",
	0, 0, NULL, 204, NULL, NULL},
	{EA_POST, TENANT "/users", "createUser",
		"Create a user; a password that is made is shown this once",
	0, EA_API_LOCATION, "UserCreation", 201, "NewUser", "409"},
	{EA_GET, TENANT "/users", "listUsers", "List the users",
	EA_TAKES_LIST, 0, NULL, 200, "UserPage", NULL},
	{EA_PATCH, TENANT "/users/{uid}", "updateUser",
		"Change, disable or enable a user",
	0, 0, "UserUpdate", 200, "User", NULL},
	{EA_DELETE, TENANT "/users/{uid}", "deleteUser", "Delete a user",
	0, 0, NULL, 204, NULL, NULL},
	{EA_PUT, TENANT "/users/{uid}/roles", "setRoles",
		"Replace the roles of a user",
	0, 0, "RoleAssignment", 200, "User", NULL},
	{EA_POST, TENANT "/tenant-admins/{uid}", "grantTenantAdmin",
		"Make a user an administrator of the tenant",
	0, 0, NULL, 204, NULL, NULL},
	{EA_DELETE, TENANT "/tenant-admins/{uid}", "revokeTenantAdmin",
		"Take the authority of an administrator back",
	0, 0, NULL, 204, NULL, NULL},
	{EA_GET, TENANT "/invites", "listInvites", "List the invites",
	EA_TAKES_LIST, 0, NULL, 200, "InvitePage", NULL},
	{EA_POST, TENANT "/invites", "createInvite",
		"Invite a user; the token is shown this once",
	0, 0, "InviteCreation", 201, "NewInvite", NULL},
	{EA_DELETE, TENANT "/invites/{inviteId}", "deleteInvite",
		"Take an invite back",
	0, 0, NULL, 204, NULL, NULL},
	{EA_GET, TENANT "/service-accounts", "listServiceAccounts",
		"List the service accounts",
	EA_TAKES_LIST, 0, NULL, 200, "ServiceAccountPage", NULL},
	{EA_POST, TENANT "/service-accounts", "createServiceAccount",
		"Create a service account; its secret is shown this once",
	0, 0, "ServiceAccountCreation", 201, "NewServiceAccount", NULL},
	{EA_POST, TENANT "/service-accounts/{accountId}/disable",
		"disableServiceAccount", "Disable a service account at once",
	0, 0, NULL, 200, "ServiceAccount", NULL},
	{EA_POST, TENANT "/service-accounts/{accountId}/rotate-secret",
		"rotateServiceAccountSecret",
		"Make a new secret; it is shown this once",
	0, 0, NULL, 200, "NewServiceAccount", NULL},
	{EA_GET, TENANT "/personal-api-keys", "listApiKeys",
		"List the personal keys of all users of the tenant",
	EA_TAKES_LIST, 0, NULL, 200, "TenantApiKeyPage", NULL},
	{EA_POST, TENANT "/personal-api-keys/{keyId}/revoke", "revokeApiKey",
		"Revoke a personal key for good",
	0, 0, NULL, 200, "TenantApiKey", NULL},
	{EA_GET, TENANT "/settings/personal-api-keys", "getApiKeySettings",
		"Show what holds for the personal keys of the tenant",
	0, 0, NULL, 200, "TenantApiKeySettings", NULL},
	{EA_PUT, TENANT "/settings/personal-api-keys", "setApiKeySettings",
		"Set what holds for the personal keys of the tenant; null inherits",
	0, 0, "ApiKeySettingsUpdate", 200, "TenantApiKeySettings", NULL},
	{EA_GET, "/manage/settings/personal-api-keys",
		"getGlobalApiKeySettings",
		"Show what holds for personal keys where no tenant says otherwise",
	0, 0, NULL, 200, "ApiKeySettings", NULL},
	{EA_PUT, "/manage/settings/personal-api-keys",
		"setGlobalApiKeySettings",
		"Set what holds for personal keys where no tenant says otherwise",
	0, 0, "ApiKeySettingsUpdate", 200, "ApiKeySettings", NULL},
	{EA_GET, "/manage/audit", "listAudit",
		"Read the audit log, newest first",
	EA_TAKES_KEYSET, 0, NULL, 200, "AuditPage", NULL},
	{EA_GET, "/manage/migrations/status", "getMigrationStatus",
		"Show which manifests have been applied",
	0, 0, NULL, 200, "MigrationStatus", NULL},

	{EA_GET, "/actuator/health", "getHealth", "Health with its components",
	0, 0, NULL, 200, "Health", "503"},
	{EA_GET, "/actuator/health/liveness", "getLiveness",
		"Whether the service runs",
	0, 0, NULL, 200, "Health", NULL},
	{EA_GET, "/actuator/health/readiness", "getReadiness",
		"Whether the service can take requests",
	0, 0, NULL, 200, "Health", "503"},

	{EA_GET, "/api/v{n}/openapi.json", "getOpenApi",
		"This description",
	0, EA_API_IF_NONE_MATCH, NULL, 200, "OpenApi", NULL},
	{EA_POST, "/api/v{n}/operations", "runOperations",
		"Run operations in order, all or none",
	0, 0, "AtomicOperations", 200, "AtomicResults", "403 404 409 412"},
	{EA_GET, "/api/v{n}/{entities}", "list{Entities}",
		"List {entities} with filter, sort and pagination",
	EA_TAKES_LIST | EA_TAKES_CURSOR | EA_TAKES_SHAPE, 0, NULL, 200,
	"ListDocument", NULL},
	{EA_POST, "/api/v{n}/{entities}", "create{Entity}",
		"Create a {entity}",
		EA_TAKES_SHAPE, EA_API_LOCATION | EA_API_ETAG,
	"CreateDocument", 201, "Document", "404 409"},
	{EA_GET, RESOURCE, "get{Entity}", "Get a {entity}",
		EA_TAKES_SHAPE, EA_API_IF_NONE_MATCH | EA_API_ETAG,
	NULL, 200, "Document", NULL},
	{EA_PATCH, RESOURCE, "update{Entity}", "Change a {entity}",
		EA_TAKES_SHAPE, EA_API_IF_MATCH | EA_API_ETAG,
	"UpdateDocument", 200, "Document", "409"},
	{EA_DELETE, RESOURCE, "delete{Entity}", "Delete a {entity}",
	0, EA_API_IF_MATCH, NULL, 204, NULL, "409"},
	{EA_GET, RELATIONSHIP, "get{Entity}{Field}Relationship",
		"Get whom {field} links to",
	0, EA_API_ETAG, NULL, 200, "RelationshipDocument", NULL},
	{EA_POST, RELATIONSHIP, "add{Entity}{Field}Relationship",
		"Add members to {field}",
		0, EA_API_MAY_IF_MATCH | EA_API_ETAG | EA_API_TO_MANY,
	"RelationshipDocument", 204, NULL, "409"},
	{EA_PATCH, RELATIONSHIP, "replace{Entity}{Field}Relationship",
		"Replace whom {field} links to",
		0, EA_API_IF_MATCH | EA_API_ETAG,
	"RelationshipDocument", 204, NULL, "409"},
	{EA_DELETE, RELATIONSHIP, "remove{Entity}{Field}Relationship",
		"Remove members from {field}",
		0, EA_API_IF_MATCH | EA_API_ETAG | EA_API_TO_MANY,
	"RelationshipDocument", 204, NULL, "409"},
	{EA_GET, RESOURCE "/{relationship}", "getRelated{Entity}{Field}",
		"Get what {field} links to",
	EA_TAKES_SHAPE, EA_API_TARGET_ETAG, NULL, 200, "RelatedDocument", NULL}
};

const EaApiRoute *
ea_openapi_route(const EaRoute *route)
{
	for (int i = 0; i < lengthof(descriptions); i++)
	{
		if (descriptions[i].method == route->method &&
			strcmp(descriptions[i].pattern, route->pattern) == 0)
			return &descriptions[i];
	}
	return NULL;
}
