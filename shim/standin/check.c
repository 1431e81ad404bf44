/*
 * As apply_manifest() reads json: in the order that the files have, with one
 * form for each number, so that faults come in the same order and quote the
 * same digits.
 */
#include "postgres.h"

#include "base/jsonwrite.h"
#include "manifest/check.h"
#include "manifest/documents.h"
#include "manifest/manifest.h"
#include "manifest/normalize.h"
#include "standin/check.h"
#include "standin/host.h"

void
standin_check(const char *documents, size_t length,
			  struct manifest_findings *findings)
{
	EaJsonFault fault;
	EaJson	   *json = ea_jsonread_parse(documents, length,
										 EA_MANIFEST_MAX_DEPTH + 1, &fault);
	StringInfoData text;
	EaManifest *m;

	if (json == NULL)
		standin_host_fail(fault.message);
	ea_manifest_normalize(json);
	initStringInfo(&text);
	ea_jsonwrite_tree(&text, json);

	m = ea_manifest_read(text.data, text.len);
	ea_manifest_check(m);
	findings->documents = json->count;
	findings->entities = list_length(m->entities);
	findings->patterns = standin_host_patterns;
	findings->faults = m->nfaults > 0 ? psprintf("[%s]", m->faults.data) :
		NULL;
}
