/*
 * What read policies have said to a caller, for whoever is the same again.
 *
 * Before a row is looked at a policy knows the caller, and nothing else that
 * changes but the clock.  Who he is comes from the database at every request;
 * if that is to the byte what it was before, the policies say what they said.
 * So what is kept for a caller is all that a policy can see of him, under a
 * number that is never used again, and with each entity what was said to the
 * last callers, by that number.  It goes with the declarations.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "lib/stringinfo.h"
#include "utils/memutils.h"

#include "authz/policy_memo.h"
#include "model/catalog.h"

/* Callers that a backend knows, and those an entity has verdicts for. */
#define CALLERS 64
#define JUDGED 16

/* Who has more about him is not kept. */
#define MAX_CALLER 8192

static struct
{
	uint64		number;
	int			len;
	char	   *bytes;
}			callers[CALLERS];
static uint64 last_number = 0;

static void
add_text(StringInfo buf, const char *text)
{
	appendStringInfoChar(buf, text != NULL);
	if (text != NULL)
		appendBinaryStringInfo(buf, text, strlen(text) + 1);
}

/* All that a policy can see, each thing with where it ends. */
static void
describe(StringInfo buf, const EaPrincipal *principal)
{
	const char	flags[] = {
		principal->kind, principal->has_tenant, principal->super_admin,
		principal->tenant_admin
	};

	appendBinaryStringInfo(buf, flags, sizeof(flags));
	if (principal->has_tenant)
		appendBinaryStringInfo(buf, (const char *) principal->tenant.data,
							   UUID_LEN);
	appendBinaryStringInfo(buf, (const char *) &principal->nroles,
						   sizeof(principal->nroles));
	for (int i = 0; i < principal->nroles; i++)
		add_text(buf, principal->roles[i]);
	add_text(buf, principal->user_id);
	add_text(buf, principal->username);
	add_text(buf, principal->profile);
	add_text(buf, principal->attributes);
}

/* The number of this caller, or 0. */
static uint64
number_of(const EaPrincipal *principal)
{
	uint32		hash = hash_bytes((const unsigned char *) principal->user_id,
								  strlen(principal->user_id));
	int			slot = hash % CALLERS;
	StringInfoData buf;
	char	   *bytes;

	initStringInfo(&buf);
	describe(&buf, principal);
	if (callers[slot].bytes != NULL && callers[slot].len == buf.len &&
		memcmp(callers[slot].bytes, buf.data, buf.len) == 0)
	{
		pfree(buf.data);
		return callers[slot].number;
	}
	if (buf.len > MAX_CALLER)
		return 0;
	bytes = MemoryContextAlloc(TopMemoryContext, buf.len);
	memcpy(bytes, buf.data, buf.len);
	if (callers[slot].bytes != NULL)
		pfree(callers[slot].bytes);
	callers[slot].bytes = bytes;
	callers[slot].len = buf.len;
	callers[slot].number = ++last_number;
	return last_number;
}

static void
make_room(EaJudged *judged, const EaEntity *entity, MemoryContext mcxt)
{
	if (judged->rules != NULL)
		return;
	judged->verdicts = MemoryContextAlloc(mcxt, entity->nrules);
	judged->rules = MemoryContextAlloc(mcxt, entity->nrules * sizeof(uint16));
}

EaJudged *
ea_policy_memo(EaPrincipal *principal, EaEntity *entity, bool *known)
{
	MemoryContext mcxt = entity->catalog->mcxt;
	EaJudged   *judged;

	if (principal->number == 0)
		principal->number = number_of(principal);
	*known = false;
	if (principal->number == 0)
	{
		judged = palloc0(sizeof(EaJudged));
		make_room(judged, entity, CurrentMemoryContext);
		return judged;
	}
	if (entity->judged == NULL)
		entity->judged = MemoryContextAllocZero(mcxt,
												JUDGED * sizeof(EaJudged));
	judged = &entity->judged[principal->number % JUDGED];
	*known = judged->caller == principal->number;
	if (!*known)
	{
		/* nobody's until all policies have been asked */
		judged->caller = 0;
		judged->n = 0;
		make_room(judged, entity, mcxt);
	}
	return judged;
}
