/*
 * The one question about documents that the database answers.  All others are
 * in check.c, and are asked without one, too (shim/standin).
 */
#include "postgres.h"

#include "miscadmin.h"

#include "manifest/faults.h"
#include "manifest/hook_functions.h"
#include "manifest/manifest.h"
#include "trust/udf.h"

/* As the role that will call it, which runs this, too. */
void
ea_manifest_check_functions(EaManifest *m)
{
	ListCell   *lc;

	foreach(lc, m->hooks)
	{
		const EaDeclHook *hook = lfirst(lc);
		const char *name = hook->function;
		const char *dot;
		const char *why;

		if (name == NULL)
			continue;
		dot = strchr(name, '.');
		why = ea_udf_fault(pnstrdup(name, dot - name), dot + 1, GetUserId());
		if (why != NULL)
			ea_manifest_fault(m, hook->document->label, "/spec/function",
							  psprintf("the function \"%s\" cannot be called: "
									   "%s", name, why),
							  psprintf("CREATE FUNCTION %s(jsonb) "
									   "RETURNS jsonb, granted to %s", name,
									   GetUserNameFromId(GetUserId(), false)));
	}
}
