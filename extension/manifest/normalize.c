#include "postgres.h"

#include "miscadmin.h"

#include "manifest/normalize.h"
#include "model/host.h"

void
ea_manifest_normalize(EaJson *json)
{
	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	if (json->kind == EA_JSON_NUMBER)
	{
		json->text = ea_host_number_write(ea_host_number_read(json->text));
		json->len = strlen(json->text);
	}
	for (EaJson *at = json->first; at != NULL; at = at->next)
		ea_manifest_normalize(at);
}
