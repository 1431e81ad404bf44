/*
 * A try has to count before its password is hashed, or else parallel ones slip
 * through; but a request is one transaction, so what it writes counts for
 * others only when it is over, and a row that it locks is locked for the whole
 * hash, which would let an attacker queue up in front of the user.  So a try
 * under way is a lock on one of a few slots of its username, which others see
 * at once and never wait for, and becomes a row when it has failed.  Each try
 * takes a slot, counts the slots taken and then the failures: locks go after
 * the commit has made the rows visible, so that each try is found at one place
 * at least.  A gate lets one in at a time; it is held for that count only.
 *
 * Tries from where a user has logged in lately are counted for themselves: the
 * failures of strangers elsewhere do not keep the user out, nor do the user's
 * own let them in.
 */
#include "postgres.h"

#include <sys/socket.h>

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/fmgrprotos.h"
#include "utils/inet.h"
#include "utils/timestamp.h"

#include "base/guc.h"
#include "base/sha256.h"
#include "cluster/distributed.h"
#include "cluster/platform_node.h"
#include "engine/exec.h"
#include "identity/throttle.h"
#include "identity/throttle_slot.h"
#include "request/errors.h"

#define ADDRESS_WINDOW 60		/* s */

/* How long a login counts for where it came from, s */
#define ORIGIN_LIFETIME EA_THROTTLE_ORIGIN_LIFETIME

/*
 * The failures of a username and an address; of the two together where the
 * user has logged in from there.
 */
typedef struct Failures
{
	bool		known;			/* the user has */
	int			username;
	TimestampTz last;			/* of the username */
	int64		address;		/* within the window, up to its limit */
	TimestampTz oldest;			/* of these */
} Failures;

/* -------- failures -------- */

/*
 * The network of a client: an IPv6 host may have a whole /64 to itself.  Where
 * a translator gives hosts of IPv4 addresses of IPv6 (RFC 6052, section 2.1),
 * each is a network.
 */
static void
read_address(EaRequest *req, EaThrottle *throttle)
{
	static const unsigned char translated[12] = {0x00, 0x64, 0xff, 0x9b};
	Datum		address;
	int			bits = 32;

	throttle->has_address = req->remote != NULL;
	if (!throttle->has_address)
		return;
	address = DirectFunctionCall1(inet_in, CStringGetDatum(req->remote));
	if (ip_family(DatumGetInetPP(address)) == PGSQL_AF_INET6)
		bits = memcmp(ip_addr(DatumGetInetPP(address)), translated,
					  sizeof(translated)) == 0 ? 128 : 64;
	address = DirectFunctionCall2(inet_set_masklen, address,
								  Int32GetDatum(bits));
	throttle->address = DirectFunctionCall1(network_network, address);
}

void
ea_throttle_read(EaRequest *req, EaThrottle *throttle, const char *name)
{
	StringInfoData origin;
	inet	   *address;

	memset(throttle, 0, sizeof(*throttle));
	ea_sha256(name, strlen(name), throttle->name_hash);
	read_address(req, throttle);
	if (!throttle->has_address)
		return;
	address = DatumGetInetPP(throttle->address);
	initStringInfo(&origin);
	appendBinaryStringInfo(&origin, (const char *) throttle->name_hash,
						   sizeof(throttle->name_hash));
	appendBinaryStringInfo(&origin, VARDATA_ANY(address),
						   VARSIZE_ANY_EXHDR(address));
	ea_sha256(origin.data, origin.len, throttle->origin_hash);
}

const uint8 *
ea_throttle_subject(const EaThrottle *throttle)
{
	return throttle->known ? throttle->origin_hash : throttle->name_hash;
}

static void
read_failures(void *arg, TupleTableSlot *slot)
{
	Failures   *failures = arg;
	Datum	   *values = slot->tts_values;

	int			username = 0;

	failures->known = !slot->tts_isnull[4];
	if (failures->known)
		username = 4;
	if (!slot->tts_isnull[username + 1])
	{
		failures->username = DatumGetInt32(values[username]);
		failures->last = DatumGetTimestampTz(values[username + 1]);
	}
	failures->address = DatumGetInt64(values[2]);
	failures->oldest = slot->tts_isnull[3] ? 0 :
		DatumGetTimestampTz(values[3]);
}

/* Failures committed by now. */
static Failures
count_failures(EaRequest *req, const EaThrottle *throttle)
{
	TimestampTz window = req->now - ADDRESS_WINDOW * USECS_PER_SEC;
	TimestampTz lifetime = req->now - ORIGIN_LIFETIME * USECS_PER_SEC;
	Datum		origin = ea_sha256_stored(throttle->origin_hash);
	Failures	failures = {0};

	/* the slots that others gave back have become rows there, first of all */
	const char *where = ea_distributed() ?
		" CROSS JOIN (SELECT count(*) FROM " EA_PLATFORM_NOTHING ") p" : "";

	ea_exec_one(EA_EXEC_WRITE,
				psprintf("SELECT t.failures, t.last_failure_at, f.n, f.oldest,"
				" o.failures, o.failed_at"
				" FROM (SELECT count(*) AS n, min(w.failed_at) AS oldest"
				" FROM (SELECT failed_at FROM entityapi.address_failure"
				" WHERE address = $2 AND failed_at > $3"
				" ORDER BY failed_at DESC LIMIT $4) w) f"
				" LEFT JOIN entityapi.login_throttle t"
				" ON t.username_hash = $1"
				" LEFT JOIN entityapi.login_origin o"
				" ON o.origin_hash = $5 AND o.succeeded_at > $6%s", where),
				ea_params(EA_BYTEA(ea_sha256_stored(throttle->name_hash)),
						  EA_NULL_IF(!throttle->has_address,
									 EA_VALUE(INETOID, throttle->address)),
						  EA_TIMESTAMP(window),
						  EA_INT4(ea_guc_login_address_failures),
						  EA_NULL_IF(!throttle->has_address, EA_BYTEA(origin)),
						  EA_TIMESTAMP(lifetime)),
				EA_READER(read_failures, INT4OID, TIMESTAMPTZOID, INT8OID,
						  TIMESTAMPTZOID, INT4OID, TIMESTAMPTZOID), &failures);
	return failures;
}

/* One failure of the username is forgotten after each longest delay. */
static int
remembered_failures(const Failures *failures, TimestampTz now)
{
	int64		elapsed = Max(now - failures->last, 0) / USECS_PER_SEC;

	return Max(failures->username - elapsed / ea_guc_login_max_delay, 0);
}

/* Delay after so many failures: none, then doubling.  Seconds. */
static int
delay_after(int failures)
{
	int64		delay = ea_guc_login_delay;

	if (failures < ea_guc_login_free_failures)
		return 0;
	for (; failures > ea_guc_login_free_failures; failures--)
	{
		if (delay >= ea_guc_login_max_delay)
			break;
		delay *= 2;
	}
	return Min(delay, ea_guc_login_max_delay);
}

/* So many failures lead to the longest delay; more would only take longer
 * to forget. */
static int
failures_kept(void)
{
	int			n = ea_guc_login_free_failures;

	while (delay_after(n) < ea_guc_login_max_delay)
		n++;
	return n + 1;
}

/* wait: microseconds */
static EA_NORETURN void
refuse_try(EaRequest *req, int64 wait)
{
	int64		seconds = Max((wait + USECS_PER_SEC - 1) / USECS_PER_SEC, 1);

	ea_request_answer(req, "retry-after",
					  psprintf(INT64_FORMAT, seconds));
	ea_errors_throw(req, EA_ERR_THROTTLED, EA_AT_NONE, NULL,
					"There have been too many failed logins; "
					"try again later.");
}

/*
 * Throw unless there is room for one more try.  others: tries under way, of
 * the username and of the address.
 */
static void
check_failures(EaRequest *req, const Failures *failures, int username_others,
			   int address_others)
{
	int			n = remembered_failures(failures, req->now);
	int64		elapsed = Max(req->now - failures->last, 0);
	int64		wait = delay_after(n) * USECS_PER_SEC - elapsed;
	int			room = Max(ea_guc_login_free_failures - n, 1);

	if (failures->username > 0 && wait > 0)
		refuse_try(req, wait);
	if (username_others >= room)
		refuse_try(req, USECS_PER_SEC);

	if (failures->address >= ea_guc_login_address_failures)
		refuse_try(req, failures->oldest + ADDRESS_WINDOW * USECS_PER_SEC -
				   req->now);
	if (failures->address + address_others >= ea_guc_login_address_failures)
		refuse_try(req, USECS_PER_SEC);
}

void
ea_throttle_enter(EaRequest *req, EaThrottle *throttle,
				  const char *username_key)
{
	int			username_others;
	int			address_others = 0;
	Failures	failures;

	/* a failure must count before its outcome shows */
	PreventCommandIfReadOnly("a login");
	ea_throttle_read(req, throttle, username_key);

	/* most refusals need no gate */
	failures = count_failures(req, throttle);
	check_failures(req, &failures, 0, 0);
	throttle->known = failures.known;

	ea_slot_pass_gate(true);
	username_others = ea_slot_take_first(EA_LOCK_USERNAME,
								ea_slots_of(ea_throttle_subject(throttle),
											PG_SHA256_DIGEST_LENGTH),
								Min(ea_guc_login_free_failures,
									EA_MAX_SLOTS));
	if (throttle->has_address)
	{
		inet	   *address = DatumGetInetPP(throttle->address);

		address_others = ea_slot_take_first(EA_LOCK_ADDRESS,
								   ea_slots_of(VARDATA_ANY(address),
											   VARSIZE_ANY_EXHDR(address)),
								   Min(ea_guc_login_address_failures,
									   EA_MAX_SLOTS));
	}
	failures = count_failures(req, throttle);
	ea_slot_pass_gate(false);
	check_failures(req, &failures, username_others, address_others);

	/* without a slot this try would not be seen by others */
	if (username_others == EA_MAX_SLOTS ||
		address_others == EA_MAX_SLOTS)
		refuse_try(req, USECS_PER_SEC);
}

#define FORGETTING(failures, last) \
	"least($3, 1 + greatest(0, " failures " - greatest(0," \
	" floor(extract(epoch FROM $2 - " last ") / $4))))"

/* A failure where the user has logged in from, and is not to keep out of. */
static void
count_origin(EaParams params)
{
	ea_exec_write("UPDATE entityapi.login_origin SET failures = "
				  FORGETTING("failures", "coalesce(failed_at, $2)") ","
				  " failed_at = $2 WHERE origin_hash = $1", params);
}

static void
count_username(EaParams params)
{
	ea_exec_write("INSERT INTO entityapi.login_throttle AS t"
				  " (username_hash, failures, last_failure_at)"
				  " VALUES ($1, 1, $2) ON CONFLICT (username_hash) DO UPDATE"
				  " SET failures = " FORGETTING("t.failures",
												"t.last_failure_at") ","
				  " last_failure_at = $2", params);
}

void
ea_throttle_failed(EaRequest *req, const EaThrottle *throttle)
{
	EaParams	params =
		ea_params(EA_BYTEA(ea_sha256_stored(ea_throttle_subject(throttle))),
				  EA_TIMESTAMP(req->now), EA_INT4(failures_kept()),
				  EA_INT4(ea_guc_login_max_delay));

	if (throttle->known)
		count_origin(params);
	else
		count_username(params);
	if (throttle->has_address)
		ea_exec_write("INSERT INTO entityapi.address_failure"
					  " (address, failed_at) VALUES ($1, $2)",
					  ea_params(EA_VALUE(INETOID, throttle->address),
								EA_TIMESTAMP(req->now)));
}

/* From here the user has logged in, and failed no time since. */
static void
note_origin(EaRequest *req, const EaThrottle *throttle,
			const pg_uuid_t *account)
{
	ea_exec_write("INSERT INTO entityapi.login_origin"
				  " (origin_hash, account_id, succeeded_at, failures)"
				  " VALUES ($1, $2, $3, 0) ON CONFLICT (origin_hash) DO UPDATE"
				  " SET account_id = $2, succeeded_at = $3, failures = 0,"
				  " failed_at = NULL",
				  ea_params(EA_BYTEA(ea_sha256_stored(throttle->origin_hash)),
							EA_UUID(account), EA_TIMESTAMP(req->now)));
}

/*
 * A login past the failures of strangers does not clear these: strangers would
 * get new guesses with each login of the user.
 */
void
ea_throttle_succeeded(EaRequest *req, const EaThrottle *throttle,
					  const pg_uuid_t *account)
{
	if (throttle->has_address)
		note_origin(req, throttle, account);
	if (throttle->known)
		return;
	ea_exec_write("DELETE FROM entityapi.login_throttle"
				  " WHERE username_hash = $1",
				  ea_params(EA_BYTEA(ea_sha256_stored(throttle->name_hash))));
}
