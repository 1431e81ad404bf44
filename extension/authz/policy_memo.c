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
#include "miscadmin.h"
#include "utils/memutils.h"

#include "authz/policy_memo.h"
#include "base/text.h"
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

/* What is done with a part of a description; false: no more of them. */
typedef bool (*TakePart) (void *arg, const char *bytes, int len);

static bool
take_text(const char *text, TakePart take, void *arg)
{
	return text == NULL ? take(arg, "", 1) :
		take(arg, "\1", 1) && take(arg, text, strlen(text) + 1);
}

/* All that a policy can see, each thing with where it ends. */
static bool
describe(const EaPrincipal *principal, TakePart take, void *arg)
{
	const char	flags[] = {
		principal->kind, principal->has_tenant, principal->super_admin,
		principal->tenant_admin
	};

	if (!take(arg, flags, sizeof(flags)) ||
		(principal->has_tenant &&
		 !take(arg, (const char *) principal->tenant.data, UUID_LEN)) ||
		!take(arg, (const char *) &principal->nroles,
			  sizeof(principal->nroles)))
		return false;
	for (int i = 0; i < principal->nroles; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (!take(arg, principal->roles[i], strlen(principal->roles[i]) + 1))
			return false;
	}
	return take_text(principal->user_id, take, arg) &&
		take_text(principal->username, take, arg) &&
		take_text(principal->profile, take, arg) &&
		take_text(principal->attributes, take, arg);
}

static bool
append_part(void *arg, const char *bytes, int len)
{
	ea_text_bytes(arg, bytes, len);
	return true;
}

/* What of a kept description has not been compared yet. */
typedef struct Rest
{
	const char *bytes;
	int			len;
} Rest;

static bool
is_next(void *arg, const char *bytes, int len)
{
	Rest	   *rest = arg;

	if (rest->len < len || memcmp(rest->bytes, bytes, len) != 0)
		return false;
	rest->bytes += len;
	rest->len -= len;
	return true;
}

/* The number of this caller, or 0. */
static uint64
number_of(const EaPrincipal *principal)
{
	uint32		hash = hash_bytes((const unsigned char *) principal->user_id,
								  strlen(principal->user_id));
	int			slot = hash % CALLERS;
	Rest		rest = {callers[slot].bytes, callers[slot].len};
	StringInfoData buf;
	char	   *bytes;

	if (rest.bytes != NULL && describe(principal, is_next, &rest) &&
		rest.len == 0)
		return callers[slot].number;
	initStringInfo(&buf);
	describe(principal, append_part, &buf);
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
