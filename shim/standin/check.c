/*
 * The extension's checks of manifests, without a server.
 *
 * Documents come to apply_manifest() as jsonb, which has an order of its own
 * for keys and one form for each number.  They get both here first, so that
 * faults come in the same order and quote the same digits.
 */
#include "postgres.h"

#include "utils/builtins.h"
#include "utils/fmgrprotos.h"

#include "base/jsonwrite.h"
#include "manifest/check.h"
#include "manifest/documents.h"
#include "manifest/manifest.h"
#include "standin/check.h"
#include "standin/errors.h"
#include "standin/memory.h"
#include "standin/pattern.h"

/* As jsonb has them: shorter keys first. */
static int
compare_members(const void *a, const void *b)
{
	const char *one = (*(EaJson *const *) a)->key;
	const char *other = (*(EaJson *const *) b)->key;
	size_t		length = strlen(one);
	size_t		other_length = strlen(other);

	if (length != other_length)
		return length < other_length ? -1 : 1;
	return memcmp(one, other, length);
}

static void
sort_members(EaJson *object)
{
	EaJson	  **members = palloc((object->count + 1) * sizeof(EaJson *));
	int			n = 0;

	for (EaJson *at = object->first; at != NULL; at = at->next)
		members[n++] = at;
	qsort(members, n, sizeof(EaJson *), compare_members);
	members[n] = NULL;
	for (int i = 0; i < n; i++)
		members[i]->next = members[i + 1];
	object->first = members[0];
	pfree(members);
}

static void
normalize(EaJson *json)
{
	Datum		number;

	if (json->kind == EA_JSON_NUMBER)
	{
		number = DirectFunctionCall3(numeric_in, CStringGetDatum(json->text),
									 ObjectIdGetDatum(InvalidOid),
									 Int32GetDatum(-1));
		json->text = DatumGetCString(DirectFunctionCall1(numeric_out,
														 number));
		json->len = strlen(json->text);
	}
	if (json->kind == EA_JSON_OBJECT)
		sort_members(json);
	for (EaJson *at = json->first; at != NULL; at = at->next)
		normalize(at);
}

static void
check(const char *documents, size_t length,
	  struct manifest_findings *findings)
{
	EaJsonFault fault;
	EaJson	   *json = ea_jsonread_parse(documents, length,
										 EA_MANIFEST_MAX_DEPTH + 1, &fault);
	StringInfoData text;
	EaManifest *m;

	if (json == NULL)
		ereport(ERROR, (errmsg("%s", fault.message)));
	normalize(json);
	initStringInfo(&text);
	ea_jsonwrite_tree(&text, json);

	standin_pattern_left = false;
	m = ea_manifest_read(text.data, text.len);
	ea_manifest_check(m);
	findings->patterns = standin_pattern_left;
	findings->documents = json->count;
	findings->entities = list_length(m->entities);
	findings->failed = m->nfaults > 0;
	if (findings->failed)
		findings->faults = strdup(psprintf("[%s]", m->faults.data));
}

void
standin_check(const char *documents, size_t length,
			  struct manifest_findings *findings)
{
	memset(findings, 0, sizeof(*findings));
	standin_errors_begin();
	if (sigsetjmp(standin_errors_border, 0) == 0)
		check(documents, length, findings);
	else
	{
		findings->failed = true;
		findings->error = strdup(standin_errors_text());
	}
	standin_memory_free();
}

void
standin_check_free(struct manifest_findings *findings)
{
	free(findings->faults);
	free(findings->error);
}
