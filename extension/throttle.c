/*-------------------------------------------------------------------------
 *
 * throttle.c
 *	  How often passwords may be tried, and how many be hashed at once.
 *
 * A try has to count before its password is hashed, or else parallel ones
 * slip through; but a request is one transaction, so what it writes counts
 * for others only when it is over, and a row that it locks is locked for the
 * whole hash, which would let an attacker queue up in front of the user.  So
 * a try under way is a lock on one of a few slots of its username, which
 * others see at once and never wait for, and becomes a row when it has
 * failed.  Whoever enters takes a slot, counts the slots taken and then the
 * failures: locks go after the commit has made the rows visible, so that
 * each try is found at one place at least.  A gate lets one in at a time; it
 * is held for that count only.
 *
 * All locks are advisory ones of classes that SQL functions cannot reach,
 * and end with the transaction, whatever becomes of it.
 *
 * extension/throttle.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/socket.h>
#include <unistd.h>

#include "catalog/pg_type.h"
#include "common/cryptohash.h"
#include "common/hashfn.h"
#include "exec.h"
#include "guc.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "storage/lock.h"
#include "throttle.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/inet.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

/* Classes of advisory locks; those of SQL functions are 1 and 2. */
#define LOCK_GATE 0xEA00
#define LOCK_USERNAME 0xEA01
#define LOCK_ADDRESS 0xEA02
#define LOCK_HASH 0xEA03

/* Tries at once of one username, of one address. */
#define MAX_SLOTS 64

#define ADDRESS_WINDOW 60		/* s */

/* How often a waiting login looks for a free slot. */
#define POLL_MS 10

/* What is known about the failures of a username and an address. */
typedef struct Failures
{
	int			username;
	TimestampTz last;			/* of the username */
	int64		address;		/* within the window, up to its limit */
	TimestampTz oldest;			/* of these */
} Failures;

/* -------- slots -------- */

static bool
take(uint16 class, uint64 name, int slot, bool wait)
{
	LOCKTAG		tag;

	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, (uint32) (name >> 32),
						 (uint32) name + slot, class);
	return LockAcquire(&tag, ExclusiveLock, false, !wait) !=
		LOCKACQUIRE_NOT_AVAIL;
}

static void
give_back(uint16 class, uint64 name, int slot)
{
	LOCKTAG		tag;

	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, (uint32) (name >> 32),
						 (uint32) name + slot, class);
	LockRelease(&tag, ExclusiveLock, false);
}

/*
 * Take the first free of n slots and return how many others are taken; n if
 * all are.
 */
static int
take_slot(uint16 class, uint64 name, int n)
{
	bool		have = false;
	int			taken = 0;

	for (int slot = 0; slot < n; slot++)
	{
		if (!take(class, name, slot, false))
			taken++;
		else if (have)
			give_back(class, name, slot);
		else
			have = true;
	}
	return taken;
}

/* The number that the slots of a name start from. */
static uint64
slots_of(const void *name, int len)
{
	uint64		hash = hash_bytes_extended(name, len, 0);

	return hash - hash % MAX_SLOTS;
}

void
ea_throttle_hash(EaRequest *req)
{
	int			slots = ea_guc_max_hashes;
	TimestampTz end = TimestampTzPlusMilliseconds(GetCurrentTimestamp(),
												  ea_guc_hash_wait);

	if (slots == 0)
		slots = Max(1, (int) sysconf(_SC_NPROCESSORS_ONLN) / 2);
	for (;;)
	{
		for (int slot = 0; slot < slots; slot++)
		{
			if (take(LOCK_HASH, 0, slot, false))
				return;
		}
		if (GetCurrentTimestamp() >= end)
			break;
		(void) WaitLatch(MyLatch,
						 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 POLL_MS, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
	ea_context_answer(req, "retry-after", "1");
	ea_errors_throw(req, EA_ERR_UNAVAILABLE, EA_AT_NONE, NULL,
					"Too many passwords are being checked; try again soon.");
}

/* -------- failures -------- */

static void
hash_name(const char *name, uint8 *hash)
{
	pg_cryptohash_ctx *ctx = pg_cryptohash_create(PG_SHA256);

	if (ctx == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
	if (pg_cryptohash_init(ctx) < 0 ||
		pg_cryptohash_update(ctx, (const uint8 *) name, strlen(name)) < 0 ||
		pg_cryptohash_final(ctx, hash, PG_SHA256_DIGEST_LENGTH) < 0)
	{
		pg_cryptohash_free(ctx);
		elog(ERROR, "could not compute the hash of a username");
	}
	pg_cryptohash_free(ctx);
}

static Datum
name_datum(const EaThrottle *throttle)
{
	bytea	   *hash = palloc(VARHDRSZ + sizeof(throttle->name_hash));

	SET_VARSIZE(hash, VARHDRSZ + sizeof(throttle->name_hash));
	memcpy(VARDATA(hash), throttle->name_hash, sizeof(throttle->name_hash));
	return PointerGetDatum(hash);
}

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

static void
read_failures(void *arg, TupleTableSlot *slot)
{
	Failures   *failures = arg;
	Datum	   *values = slot->tts_values;

	if (!slot->tts_isnull[0])
	{
		failures->username = DatumGetInt32(values[0]);
		failures->last = DatumGetTimestampTz(values[1]);
	}
	failures->address = DatumGetInt64(values[2]);
	failures->oldest = slot->tts_isnull[3] ? 0 :
		DatumGetTimestampTz(values[3]);
}

/* What has been committed by now. */
static Failures
count_failures(EaRequest *req, const EaThrottle *throttle)
{
	static const Oid types[] = {
		BYTEAOID, INETOID, TIMESTAMPTZOID, INT4OID
	};
	Datum		values[lengthof(types)];
	bool		isnull[lengthof(types)] = {false};
	Failures	failures = {0};

	values[0] = name_datum(throttle);
	values[1] = throttle->address;
	isnull[1] = !throttle->has_address;
	values[2] = TimestampTzGetDatum(req->now -
									ADDRESS_WINDOW * USECS_PER_SEC);
	values[3] = Int32GetDatum(ea_guc_login_address_failures);
	ea_exec_run("SELECT t.failures, t.last_failure_at, f.n, f.oldest"
				" FROM (SELECT count(*) AS n, min(w.failed_at) AS oldest"
				" FROM (SELECT failed_at FROM entityapi.address_failure"
				" WHERE address = $2 AND failed_at > $3"
				" ORDER BY failed_at DESC LIMIT $4) w) f"
				" LEFT JOIN entityapi.login_throttle t"
				" ON t.username_hash = $1",
				lengthof(types), types, values, isnull, EA_EXEC_WRITE, true,
				read_failures, &failures);
	return failures;
}

/* One failure of the username is forgotten after each longest delay. */
static int
remembered(const Failures *failures, TimestampTz now)
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

static EA_NORETURN void refuse(EaRequest *req, int64 wait) EA_NORETURN_END;

/* wait: microseconds */
static void
refuse(EaRequest *req, int64 wait)
{
	int64		seconds = Max((wait + USECS_PER_SEC - 1) / USECS_PER_SEC, 1);

	ea_context_answer(req, "retry-after",
					  psprintf(INT64_FORMAT, seconds));
	ea_errors_throw(req, EA_ERR_THROTTLED, EA_AT_NONE, NULL,
					"There have been too many failed logins; try again later.");
}

/*
 * Throw unless there is room for one more try.  others: tries under way, of
 * the username and of the address.
 */
static void
check_failures(EaRequest *req, const Failures *failures, int username_others,
			   int address_others)
{
	int			n = remembered(failures, req->now);
	int64		elapsed = Max(req->now - failures->last, 0);
	int64		wait = delay_after(n) * USECS_PER_SEC - elapsed;
	int			room = Max(ea_guc_login_free_failures - n, 1);

	if (failures->username > 0 && wait > 0)
		refuse(req, wait);
	if (username_others >= room)
		refuse(req, USECS_PER_SEC);

	if (failures->address >= ea_guc_login_address_failures)
		refuse(req, failures->oldest + ADDRESS_WINDOW * USECS_PER_SEC -
			   req->now);
	if (failures->address + address_others >= ea_guc_login_address_failures)
		refuse(req, USECS_PER_SEC);
}

void
ea_throttle_enter(EaRequest *req, EaThrottle *throttle,
				  const char *username_key)
{
	int			username_others;
	int			address_others = 0;
	Failures	failures;

	hash_name(username_key, throttle->name_hash);
	read_address(req, throttle);

	/* most refusals need no gate */
	failures = count_failures(req, throttle);
	check_failures(req, &failures, 0, 0);

	take(LOCK_GATE, 0, 0, true);
	username_others = take_slot(LOCK_USERNAME,
								slots_of(throttle->name_hash,
										 sizeof(throttle->name_hash)),
								Min(ea_guc_login_free_failures, MAX_SLOTS));
	if (throttle->has_address)
	{
		inet	   *address = DatumGetInetPP(throttle->address);

		address_others = take_slot(LOCK_ADDRESS,
								   slots_of(VARDATA_ANY(address),
											VARSIZE_ANY_EXHDR(address)),
								   Min(ea_guc_login_address_failures,
									   MAX_SLOTS));
	}
	failures = count_failures(req, throttle);
	give_back(LOCK_GATE, 0, 0);
	check_failures(req, &failures, username_others, address_others);

	/* without a slot this try would not be seen by others */
	if (username_others == MAX_SLOTS || address_others == MAX_SLOTS)
		refuse(req, USECS_PER_SEC);
}

void
ea_throttle_failed(EaRequest *req, const EaThrottle *throttle)
{
	static const Oid types[] = {
		BYTEAOID, TIMESTAMPTZOID, INT4OID, INT4OID
	};
	static const Oid address_types[] = {INETOID, TIMESTAMPTZOID};
	Datum		values[lengthof(types)];

	values[0] = name_datum(throttle);
	values[1] = TimestampTzGetDatum(req->now);
	values[2] = Int32GetDatum(failures_kept());
	values[3] = Int32GetDatum(ea_guc_login_max_delay);
	ea_exec_run("INSERT INTO entityapi.login_throttle AS t"
				" (username_hash, failures, last_failure_at)"
				" VALUES ($1, 1, $2) ON CONFLICT (username_hash) DO UPDATE"
				" SET failures = least($3, 1 + greatest(0, t.failures"
				" - greatest(0, floor(extract(epoch FROM"
				" $2 - t.last_failure_at) / $4)))),"
				" last_failure_at = $2",
				lengthof(types), types, values, NULL, EA_EXEC_WRITE, true,
				NULL, NULL);
	if (!throttle->has_address)
		return;

	values[0] = throttle->address;
	ea_exec_run("INSERT INTO entityapi.address_failure (address, failed_at)"
				" VALUES ($1, $2)",
				lengthof(address_types), address_types, values, NULL,
				EA_EXEC_WRITE, true, NULL, NULL);
}

void
ea_throttle_succeeded(EaRequest *req, const EaThrottle *throttle)
{
	static const Oid types[] = {BYTEAOID};
	Datum		values[] = {name_datum(throttle)};

	ea_exec_run("DELETE FROM entityapi.login_throttle"
				" WHERE username_hash = $1",
				lengthof(types), types, values, NULL, EA_EXEC_WRITE, true,
				NULL, NULL);
}
