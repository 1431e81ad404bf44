#include "postgres.h"

#include "common/hashfn.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "authz/caller_number.h"
#include "base/text.h"

/* Descriptions that a backend knows of each part. */
#define KNOWN 64

/* Places that are tried for what may take nobody's. */
#define TRIES 8

/* Longer ones are not kept. */
#define MAX_DESCRIPTION 8192

typedef struct Known
{
	uint64		number;
	int			len;
	char	   *bytes;
} Known;

StaticAssertDecl(lengthof(((EaPrincipal *) NULL)->numbers) ==
				 EA_N_CALLER_PARTS,
				 "a caller must have a number for each EaCallerPart");

static Known known[EA_N_CALLER_PARTS][KNOWN];
static uint64 last_number = 0;

/* Called with each part of a description; false: no more of them. */
typedef bool (*TakePart) (void *arg, const char *bytes, int len);

static bool
take_text(const char *text, TakePart take, void *arg)
{
	return text == NULL ? take(arg, "", 1) :
		take(arg, "\1", 1) && take(arg, text, strlen(text) + 1);
}

static bool
describe_rights(const EaPrincipal *principal, TakePart take, void *arg)
{
	const char	flags[] = {principal->super_admin, principal->tenant_admin};

	if (!take(arg, flags, sizeof(flags)) ||
		!take(arg, (const char *) &principal->nroles,
			  sizeof(principal->nroles)))
		return false;
	for (int i = 0; i < principal->nroles; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (!take(arg, principal->roles[i], strlen(principal->roles[i]) + 1))
			return false;
	}
	return true;
}

/* Each thing with where it ends. */
static bool
describe_caller(const EaPrincipal *principal, EaCallerPart part, TakePart take,
				void *arg)
{
	const char	flags[] = {principal->kind, principal->has_tenant};

	if (!describe_rights(principal, take, arg))
		return false;
	if (part == EA_CALLER_RIGHTS)
		return true;
	return take(arg, flags, sizeof(flags)) &&
		(!principal->has_tenant ||
		 take(arg, (const char *) principal->tenant.data, UUID_LEN)) &&
		take_text(principal->user_id, take, arg) &&
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

static bool
hash_part(void *arg, const char *bytes, int len)
{
	uint32	   *hash = arg;

	*hash = hash_combine(*hash, hash_bytes((const unsigned char *) bytes,
										   len));
	return true;
}

/* The rest of a kept description, not compared yet. */
typedef struct Rest
{
	const char *bytes;
	int			len;
} Rest;

static bool
is_next_part(void *arg, const char *bytes, int len)
{
	Rest	   *rest = arg;

	if (rest->len < len || memcmp(rest->bytes, bytes, len) != 0)
		return false;
	rest->bytes += len;
	rest->len -= len;
	return true;
}

static bool
is_described(const EaPrincipal *principal, EaCallerPart part,
			 const Known *place)
{
	Rest		rest = {place->bytes, place->len};

	return describe_caller(principal, part, is_next_part, &rest) &&
		rest.len == 0;
}

/*
 * Where a description is, or may be put.  A caller takes the place of another
 * one; entries kept by rights stay for good (read/shape.c), so these take
 * none, and if there is none left, NULL is returned.
 */
static Known *
place_of_caller(const EaPrincipal *principal, EaCallerPart part)
{
	uint32		hash = 0;

	if (part == EA_CALLER_WHOLE)
	{
		take_text(principal->user_id, hash_part, &hash);
		return &known[part][hash % KNOWN];
	}
	describe_rights(principal, hash_part, &hash);
	for (int i = 0; i < TRIES; i++)
	{
		Known	   *place = &known[part][(hash + i) % KNOWN];

		if (place->bytes == NULL || is_described(principal, part, place))
			return place;
	}
	return NULL;
}

static uint64
number_of(const EaPrincipal *principal, EaCallerPart part)
{
	Known	   *place = place_of_caller(principal, part);
	StringInfoData buf;
	char	   *bytes;

	if (place == NULL)
		return 0;
	if (place->bytes != NULL && is_described(principal, part, place))
		return place->number;
	initStringInfo(&buf);
	describe_caller(principal, part, append_part, &buf);
	if (buf.len > MAX_DESCRIPTION)
		return 0;
	bytes = MemoryContextAlloc(TopMemoryContext, buf.len);
	memcpy(bytes, buf.data, buf.len);
	if (place->bytes != NULL)
		pfree(place->bytes);
	place->bytes = bytes;
	place->len = buf.len;
	place->number = ++last_number;
	return last_number;
}

uint64
ea_caller_number(EaPrincipal *principal, EaCallerPart part)
{
	if (principal->numbers[part] == 0)
		principal->numbers[part] = number_of(principal, part);
	return principal->numbers[part];
}

void
ea_caller_changed(EaPrincipal *principal)
{
	principal->profile_tree = NULL;
	principal->attribute_tree = NULL;
	memset(principal->numbers, 0, sizeof(principal->numbers));
}
