/*
 * Initialisation, and the extension's description of itself.
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#include "authz/policy_sql.h"
#include "base/guc.h"
#include "cluster/turn.h"
#include "engine/exec.h"
#include "entry/routes.h"
#include "openapi/openapi.h"
#include "trust/guard.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(ea_sql_version);
PG_FUNCTION_INFO_V1(ea_sql_statement_count);

void		_PG_init(void);

/*
 * PostgreSQL calls this again where it failed, and settings cannot be defined
 * twice: the session would fail for good.  A warning about a setting would
 * suffice, as that is where a cancellation is met, so none is met here.
 */
void
_PG_init(void)
{
	static bool begun = false;

	if (begun)
		ereport(FATAL,
				(errmsg("entityapi was initialized by half"),
				 errhint("What kept it from that is above in the log.")));
	begun = true;
	HOLD_INTERRUPTS();
	ea_guc_define();
	ea_guard_init();
	ea_held_init();
	ea_own_text_init();
	ea_invalidate_init();
	ea_policy_sql_init();
	ea_turn_init();
	ea_openapi_install(ea_routes, ea_nroutes);
	RESUME_INTERRUPTS();
}

Datum
ea_sql_version(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(cstring_to_text(EA_VERSION));
}

/* Statements this backend has run for requests since the last call. */
Datum
ea_sql_statement_count(PG_FUNCTION_ARGS)
{
	int			count = ea_exec_count();

	ea_exec_reset_count();
	PG_RETURN_INT32(count);
}
