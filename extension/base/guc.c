#include "postgres.h"

#include <limits.h>

#include "access/parallel.h"
#include "utils/guc.h"

#include "base/compat.h"
#include "base/guc.h"
#include "base/jsonread.h"

int			ea_guc_apply_lock_timeout;
int			ea_guc_default_page_size;
int			ea_guc_max_page_size;
int			ea_guc_max_linkage;
int			ea_guc_max_included;
int			ea_guc_max_include_depth;
int			ea_guc_max_body;
int			ea_guc_max_body_auth;
int			ea_guc_max_url;
int			ea_guc_max_json_depth;
int			ea_guc_max_filter_length;
int			ea_guc_max_filter_depth;
int			ea_guc_max_filter_comparisons;
int			ea_guc_max_filter_items;
int			ea_guc_max_filter_patterns;
int			ea_guc_max_filter_crossings;
int			ea_guc_max_sort_crossings;
int			ea_guc_max_like_length;
int			ea_guc_max_operations;
int			ea_guc_max_answer;
int			ea_guc_max_memory;
int			ea_guc_max_include_paths;
int			ea_guc_online_rows;
int			ea_guc_plan_cache_size;
int			ea_guc_access_token_ttl;
int			ea_guc_forced_token_ttl;
int			ea_guc_refresh_idle_ttl;
int			ea_guc_refresh_max_ttl;
int			ea_guc_invite_ttl;
int			ea_guc_bcrypt_cost;
int			ea_guc_max_hashes;
int			ea_guc_hash_wait;
int			ea_guc_login_free_failures;
int			ea_guc_login_delay;
int			ea_guc_login_max_delay;
int			ea_guc_login_address_failures;
bool		ea_guc_asks_primary;
bool		ea_guc_direct_scans;
bool		ea_guc_direct_reads;
bool		ea_guc_direct_writes;
bool		ea_guc_openapi;
bool		ea_guc_report_counters;
int			ea_guc_pool_size;
char	   *ea_guc_issuer;
char	   *ea_guc_audience;
char	   *ea_guc_base_url;
char	   *ea_guc_clock;
char	   *ea_guc_credential_validator;

static const struct
{
	const char *name;
	const char *description;
	int		   *variable;
	int			initial;
	int			minimum;
	int			maximum;
	int			unit;			/* GUC_UNIT_* or 0 */
}			integers[] =
{
	{"entityapi.access_token_ttl", "Lifetime of an access token.",
	&ea_guc_access_token_ttl, 900, 1, 86400, GUC_UNIT_S},
	{"entityapi.apply_lock_timeout",
		"How long a change of the tables waits for them, and others behind "
		"it.",
	&ea_guc_apply_lock_timeout, 500, 1, 3600000, GUC_UNIT_MS},
	{"entityapi.bcrypt_cost", "Cost of a password hash, as a power of two.",
	&ea_guc_bcrypt_cost, 12, 10, 31, 0},
	{"entityapi.default_page_size", "Size of a page that names none.",
	&ea_guc_default_page_size, 20, 1, 10000, 0},
	{"entityapi.forced_token_ttl",
		"Lifetime of an access token that only changes a password.",
	&ea_guc_forced_token_ttl, 600, 1, 86400, GUC_UNIT_S},
	{"entityapi.hash_wait",
		"How long a login waits until it may hash its password.",
	&ea_guc_hash_wait, 2000, 0, 60000, GUC_UNIT_MS},
	{"entityapi.invite_ttl", "Lifetime of an invite.",
	&ea_guc_invite_ttl, 72 * 3600, 60, 366 * 86400, GUC_UNIT_S},
	{"entityapi.login_address_failures",
		"Failed logins of one address within a minute.",
	&ea_guc_login_address_failures, 60, 1, 1000000, 0},
	{"entityapi.login_delay",
		"First delay after too many failed logins of one username.",
	&ea_guc_login_delay, 10, 1, 86400, GUC_UNIT_S},
	{"entityapi.login_free_failures",
		"Failed logins of one username before each further one is delayed.",
	&ea_guc_login_free_failures, 5, 1, 1000000, 0},
	{"entityapi.login_max_delay",
		"Longest delay, and time in which one failure is forgotten.",
	&ea_guc_login_max_delay, 900, 1, 86400, GUC_UNIT_S},
	{"entityapi.max_answer", "Bytes of an answer.",
	&ea_guc_max_answer, 64 * 1024 * 1024, 64 * 1024, 512 * 1024 * 1024,
	GUC_UNIT_BYTE},
	{"entityapi.max_body", "Bytes of a request body below /api.",
	&ea_guc_max_body, 1024 * 1024, 1024, 256 * 1024 * 1024, GUC_UNIT_BYTE},
	{"entityapi.max_body_auth",
		"Bytes of a request body below /auth and /manage.",
	&ea_guc_max_body_auth, 64 * 1024, 1024, 16 * 1024 * 1024, GUC_UNIT_BYTE},
	{"entityapi.max_filter_comparisons", "Comparisons in one filter.",
	&ea_guc_max_filter_comparisons, 256, 1, 10000, 0},
	{"entityapi.max_filter_crossings",
		"Relationships that the paths of one filter cross.",
	&ea_guc_max_filter_crossings, 32, 1, 4096, 0},
	{"entityapi.max_filter_depth", "Nested parentheses in one filter.",
	&ea_guc_max_filter_depth, 64, 1, 1000, 0},
	{"entityapi.max_filter_items", "Items of one list in a filter.",
	&ea_guc_max_filter_items, 1000, 1, 100000, 0},
	{"entityapi.max_filter_length", "Bytes of one filter, decoded.",
	&ea_guc_max_filter_length, 4096, 16, 1024 * 1024, GUC_UNIT_BYTE},
	{"entityapi.max_filter_patterns", "LIKE patterns of one filter.",
	&ea_guc_max_filter_patterns, 8, 0, 10000, 0},
	{"entityapi.max_hashes",
		"Password hashes at once; 0: half as many as there are processors.",
	&ea_guc_max_hashes, 0, 0, 1024, 0},
	{"entityapi.max_include_depth", "Hops of one path.",
	&ea_guc_max_include_depth, 5, 1, 20, 0},
	{"entityapi.max_include_paths", "Paths of one include parameter.",
	&ea_guc_max_include_paths, 64, 1, 10000, 0},
	{"entityapi.max_included", "Included resources of one answer.",
	&ea_guc_max_included, 10000, 1, 1000000, 0},
	{"entityapi.max_json_depth", "Nesting of a JSON body.",
	&ea_guc_max_json_depth, EA_JSON_MAX_DEPTH, 8, 1000, 0},
	{"entityapi.max_like_length",
		"Characters of the LIKE patterns of one filter.",
	&ea_guc_max_like_length, 256, 1, 10000, 0},
	{"entityapi.max_linkage",
		"Members of a to-many relationship shown inside a resource.",
	&ea_guc_max_linkage, 1000, 0, 1000000, 0},
	{"entityapi.max_memory",
		"Memory that one request may take for what it has read.",
	&ea_guc_max_memory, 256 * 1024, 1024, INT_MAX, GUC_UNIT_KB},
	{"entityapi.max_operations", "Operations of one atomic request.",
	&ea_guc_max_operations, 1000, 1, 100000, 0},
	{"entityapi.max_page_size", "Largest page a list may be asked for.",
	&ea_guc_max_page_size, 100, 1, 10000, 0},
	{"entityapi.max_sort_crossings",
		"Relationships that the keys of one sort cross.",
	&ea_guc_max_sort_crossings, 8, 0, 256, 0},
	{"entityapi.max_url", "Bytes of a request target.",
	&ea_guc_max_url, 8192, 256, 65536, GUC_UNIT_BYTE},
	{"entityapi.online_rows",
		"Rows from which on a table gets indexes and checked constraints "
		"later, without a lock that others notice; 0: never.",
	&ea_guc_online_rows, 1, 0, INT_MAX, 0},
	{"entityapi.plan_cache_size", "Plans a backend keeps.",
	&ea_guc_plan_cache_size, 256, 8, 65536, 0},
	{"entityapi.refresh_idle_ttl", "Lifetime of an unused refresh token.",
	&ea_guc_refresh_idle_ttl, 7 * 86400, 1, 366 * 86400, GUC_UNIT_S},
	{"entityapi.refresh_max_ttl", "Lifetime of a session.",
	&ea_guc_refresh_max_ttl, 30 * 86400, 1, 3660 * 86400, GUC_UNIT_S}
};

static const struct
{
	const char *name;
	const char *description;
	char	  **variable;
	const char *initial;
}			strings[] =
{
	{"entityapi.audience", "The aud claim of access tokens.",
	&ea_guc_audience, "entityapi"},
	{"entityapi.base_url", "What links begin with; empty: only the path.",
	&ea_guc_base_url, ""},
	{"entityapi.clock", "A fixed time for tests; empty: the real one.",
	&ea_guc_clock, ""},
	{"entityapi.credential_validator",
		"The function that takes the place of login and keys; empty: none.",
	&ea_guc_credential_validator, ""},
	{"entityapi.issuer", "The iss claim of access tokens.",
	&ea_guc_issuer, "entityapi"}
};

static const int tested_majors[] = {EA_COMPAT_TESTED_MAJORS};

static bool
is_tested(int major)
{
	for (int i = 0; i < lengthof(tested_majors); i++)
	{
		if (tested_majors[i] == major)
			return true;
	}
	return false;
}

static void
define_direct(void)
{
	const int	major = EA_COMPAT_MAJOR;

	DefineCustomBoolVariable("entityapi.direct_reads",
							 "Whether look-ups by key and counts bypass the "
							 "executor.",
							 NULL, &ea_guc_direct_reads, is_tested(major),
							 PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("entityapi.direct_writes",
							 "Whether updates of one row and audit records "
							 "bypass the executor.",
							 NULL, &ea_guc_direct_writes, is_tested(major),
							 PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("entityapi.direct_scans",
							 "Off: direct_reads and direct_writes are off.",
							 NULL, &ea_guc_direct_scans, true,
							 PGC_SUSET, 0, NULL, NULL, NULL);
	if (!is_tested(major) && !ea_guc_may_read() && !ea_guc_may_write() &&
		!IsParallelWorker())
		ereport(WARNING,
				(errmsg("entityapi was not tested with PostgreSQL %d: direct "
						"reads and writes are off", major),
				 errdetail("Look-ups by key, counts, updates of one row and "
						   "audit records go through the executor, which is "
						   "slower."),
				 errhint("A superuser can set entityapi.direct_reads and "
						 "entityapi.direct_writes.")));
}

void
ea_guc_define(void)
{
	for (int i = 0; i < lengthof(integers); i++)
		DefineCustomIntVariable(integers[i].name, integers[i].description,
								NULL, integers[i].variable,
								integers[i].initial, integers[i].minimum,
								integers[i].maximum, PGC_SUSET,
								integers[i].unit, NULL, NULL, NULL);

	for (int i = 0; i < lengthof(strings); i++)
		DefineCustomStringVariable(strings[i].name, strings[i].description,
								   NULL, strings[i].variable,
								   strings[i].initial, PGC_SUSET, 0,
								   NULL, NULL, NULL);

	DefineCustomBoolVariable("entityapi.openapi",
							 "Whether openapi.json is served.",
							 NULL, &ea_guc_openapi, true,
							 PGC_SUSET, 0, NULL, NULL, NULL);
	define_direct();

	/* its value is no secret: any role may read it */
	DefineCustomBoolVariable("entityapi.report_counters",
							 "Whether answers tell at times what was counted.",
							 NULL, &ea_guc_report_counters, false,
							 PGC_USERSET, 0, NULL, NULL, NULL);

	/* a session that sets it and asks no primary has no answer itself */
	DefineCustomBoolVariable("entityapi.asks_primary",
							 "Whether a standby throws what the primary is to "
							 "be asked for.",
							 NULL, &ea_guc_asks_primary, false,
							 PGC_USERSET, 0, NULL, NULL, NULL);

	/* a session that says less or more waits for less or longer itself */
	DefineCustomIntVariable("entityapi.pool_size",
							"Sessions of the pool that this one belongs to.",
							NULL, &ea_guc_pool_size, 0, 0, 65536,
							PGC_USERSET, 0, NULL, NULL, NULL);

	MarkGUCPrefixReserved("entityapi");
}
