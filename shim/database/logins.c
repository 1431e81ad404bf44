/*
 * A hash is slow on purpose, so whoever asks for many at once makes all others
 * wait.  Of the places for logins one address, and one name, gets half at
 * most, and of those that wait he is next whose address and name were let in
 * least of late: the first one of an address comes before the fortieth of
 * another, whoever has gone away and come back meanwhile.  Among equals who
 * came first is next.  When too many wait, the one goes who has had most, with
 * those counted that waited before him.
 *
 * A name is what a body calls "username", as it is written.  There may be a
 * better name for it, or none; the extension knows who is meant, and limits
 * hashes by that.
 */
#include "base/address.h"
#include "base/json_read.h"
#include "database/logins.h"

/* FNV-1a */
#define HASH_START 0xcbf29ce484222325u
#define HASH_FACTOR 0x100000001b3u

/*
 * Of those let in last it is told who has had how much.  So much anybody may
 * have had, or else all that have never been here would come before who has
 * been here once.
 */
#define FREE 8

static uint64_t
hash(const void *bytes, size_t length)
{
	const unsigned char *p = bytes;
	uint64_t	result = HASH_START;

	while (length-- > 0)
		result = (result ^ *p++) * HASH_FACTOR;
	return result;
}

/* The client's network: an IPv6 host may have a whole /64 to itself. */
static uint64_t
address_of(const struct request *request)
{
	struct address address;

	if (!address_parse(request->remote, &address))
		return 0;
	return hash(address.bytes, address.family == AF_INET6 ? 8 : 4);
}

/* NULL, too, where it is nested deeper than the extension would have it. */
static json_t *
body_of(const struct request *request)
{
	return json_read(request->message.data + request->body_start,
					 request->message.length - request->body_start, 0,
					 JSON_DEPTH, NULL);
}

/*
 * Administrators make accounts and passwords, which are hashed as those of
 * logins are; what they do otherwise, to end an account for one, never waits
 * for logins.
 */
bool
logins_concern(const struct request *request)
{
	static const char *const members[] =
	{"username", "admin", "temporaryPassword"};
	json_t	   *body;
	bool		concerned = request->lane == LANE_LOGIN;
	size_t		i;

	if (concerned || request->message.length == request->body_start ||
		request_path_rest(request->target.data, "/manage/tenants") == NULL)
		return concerned;
	body = body_of(request);

	/* numbers may be larger there than they may be here */
	concerned = body == NULL;
	for (i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		concerned |= json_object_get(body, members[i]) != NULL;
	json_decref(body);
	return concerned;
}

/*
 * The name in the body; one that has none counts by its address alone, and an
 * administrator by what he makes himself known with.
 */
static uint64_t
name_of(const struct request *request, uint64_t otherwise)
{
	static const char *const members[] = {"username", "clientId"};
	json_t	   *body;
	uint64_t	name = otherwise;
	size_t		i;

	if (request_path_rest(request->target.data, "/manage") != NULL)
		return request->credential != 0 ? request->credential : otherwise;
	body = body_of(request);
	for (i = 0; i < sizeof(members) / sizeof(members[0]); i++)
	{
		json_t	   *member = json_object_get(body, members[i]);

		if (json_is_string(member))
			name = hash(json_string_value(member),
						json_string_length(member));
	}
	json_decref(body);
	return name;
}

/* How many have the address and how many the name. */
static void
count_alike(const struct logins *logins, const struct login *login,
			bool placed_only, int *address, int *name)
{
	const struct login *other;

	*address = 0;
	*name = 0;
	for (other = logins->first; other != NULL; other = other->next)
	{
		if (placed_only && other->state != LOGIN_PLACED)
			continue;
		*address += other->address == login->address;
		*name += other->name == login->name;
	}
}

static int
count_in(const struct logins *logins, enum login_state state)
{
	const struct login *login;
	int			count = 0;

	for (login = logins->first; login != NULL; login = login->next)
		count += login->state == state;
	return count;
}

static bool
has_share_left(const struct logins *logins, const struct login *login)
{
	int			half = logins->share > 1 ? logins->share / 2 : 1;
	int			address;
	int			name;

	count_alike(logins, login, true, &address, &name);
	return address < half && name < half;
}

/* How many places its address and its name have had too many. */
static int
has_had(const struct logins *logins, const struct login *login)
{
	size_t		n = logins->nlet_in < LOGINS_REMEMBERED ?
		(size_t) logins->nlet_in : LOGINS_REMEMBERED;
	size_t		i;
	int			count = 0;

	for (i = 0; i < n; i++)
		count += (logins->let_in[i].address == login->address) +
			(logins->let_in[i].name == login->name);
	return count > FREE ? count - FREE : 0;
}

static void
admit(struct logins *logins, struct login *login)
{
	size_t		place = logins->nlet_in++ % LOGINS_REMEMBERED;

	logins->let_in[place].address = login->address;
	logins->let_in[place].name = login->name;
	login->state = LOGIN_PLACED;
}

/* Gives away the free places. */
static void
place(struct logins *logins)
{
	while (count_in(logins, LOGIN_PLACED) < logins->share)
	{
		struct login *best = NULL;
		struct login *login;
		int			least = 0;

		for (login = logins->first; login != NULL; login = login->next)
		{
			int			had = has_had(logins, login);

			if (login->state == LOGIN_WAITS &&
				(best == NULL || had < least) &&
				has_share_left(logins, login))
			{
				least = had;
				best = login;
			}
		}
		if (best == NULL)
			return;
		admit(logins, best);
	}
}

/* Refuses those who would be last, if too many wait. */
static void
refuse(struct logins *logins, const struct config *config)
{
	while (count_in(logins, LOGIN_WAITS) > (config->pool_queue + 1) / 2)
	{
		struct login *worst = NULL;
		struct login *login;
		int			most = 0;

		for (login = logins->first; login != NULL; login = login->next)
		{
			int			had = has_had(logins, login) + login->before;

			if (login->state == LOGIN_WAITS && had >= most)
			{
				most = had;
				worst = login;
			}
		}
		worst->state = LOGIN_REFUSED;
	}
}

void
logins_enter(struct logins *logins, struct login *login,
			 const struct request *request, const struct config *config)
{
	struct login **end = &logins->first;
	int			address;
	int			name;

	login->address = address_of(request);
	login->name = name_of(request, login->address);
	count_alike(logins, login, false, &address, &name);
	login->before = address + name;
	login->state = LOGIN_WAITS;
	login->told = false;
	login->next = NULL;
	while (*end != NULL)
		end = &(*end)->next;
	*end = login;
	logins->share = (int) config->login_pool_share;
	place(logins);
	refuse(logins, config);
}

struct login *
logins_decided(struct logins *logins)
{
	struct login *login = logins->first;

	while (login != NULL && (login->told || login->state == LOGIN_WAITS))
		login = login->next;
	if (login != NULL)
		login->told = true;
	return login;
}

void
logins_leave(struct logins *logins, struct login *login)
{
	struct login **link = &logins->first;

	if (login->state == LOGIN_NONE)
		return;
	while (*link != login)
		link = &(*link)->next;
	*link = login->next;
	login->state = LOGIN_NONE;
	place(logins);
}
