/*
 * Documents come to apply_manifest() as jsonb, which has an order of its own
 * for keys and one form for each number.  They get both here first, so that
 * faults come in the same order and quote the same digits.
 */
#include "postgres.h"

#include "base/jsonwrite.h"
#include "manifest/check.h"
#include "manifest/documents.h"
#include "manifest/manifest.h"
#include "model/host.h"
#include "standin/check.h"
#include "standin/host.h"

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
	if (json->kind == EA_JSON_NUMBER)
	{
		json->text = ea_host_number_write(ea_host_number_read(json->text));
		json->len = strlen(json->text);
	}
	if (json->kind == EA_JSON_OBJECT)
		sort_members(json);
	for (EaJson *at = json->first; at != NULL; at = at->next)
		normalize(at);
}

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
	normalize(json);
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
