/*
 * Partitions of the log are made by the function of SQL that also moves what
 * came to the default partition meanwhile (extend_audit()).
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "pgtime.h"
#include "utils/lsyscache.h"
#include "utils/resowner.h"
#include "utils/timestamp.h"

#include "audit/months.h"
#include "cluster/distributed.h"
#include "request/errors.h"

/* Months made ahead of the one that is written to. */
#define MONTHS_AHEAD 2

/* The wait before the next attempt when a month could not be made. */
#define RETRY_MS 60000

/* For so long partitions that were found are taken to be there. */
#define FOUND_MICROS 1000000

/* A month, counted from the year 0, and the name of its partition. */
static int
month_of(TimestampTz at)
{
	struct pg_tm tm;
	fsec_t		fraction;

	/* without a zone argument the fields come out in UTC */
	if (timestamp2tm(at, NULL, &tm, &fraction, NULL, NULL) != 0)
		elog(ERROR, "timestamp out of range");
	return tm.tm_year * 12 + tm.tm_mon - 1;
}

/* Each write of a record asks for the same names as before. */
static const char *
month_name(int month)
{
	static struct
	{
		int			month;
		char		text[NAMEDATALEN];
	}			names[MONTHS_AHEAD + 1];
	int			i = month % lengthof(names);

	if (names[i].month != month || names[i].text[0] == '\0')
	{
		names[i].month = month;
		snprintf(names[i].text, sizeof(names[i].text), "audit_%04d_%02d",
				 month / 12, month % 12 + 1);
	}
	return names[i].text;
}

static bool
has_month(Oid namespace, int month)
{
	return OidIsValid(get_relname_relid(month_name(month), namespace));
}

bool
ea_audit_months_has(TimestampTz at)
{
	/* times are counted from the year 2000 */
	return at >= 0 && has_month(get_namespace_oid("entityapi", false),
								month_of(at));
}

static void
make_months(TimestampTz at)
{
	Oid			types[] = {TIMESTAMPTZOID, INT4OID};
	Datum		values[] = {
		TimestampTzGetDatum(at), Int32GetDatum(MONTHS_AHEAD)
	};

	SPI_execute_with_args("SELECT entityapi.extend_audit($1, $2)",
						  lengthof(types), types, values, NULL, false, 0);
}

/*
 * Make missing partitions.  If this fails, because a lock is not to be had in
 * time, no request fails: the record goes to the default partition, and the
 * session that makes the month later moves it.
 */
static bool
try_to_make_months(TimestampTz at)
{
	MemoryContext mcxt = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	volatile bool made = true;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(mcxt);
	PG_TRY();
	{
		make_months(at);
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		ErrorData  *edata;

		MemoryContextSwitchTo(mcxt);
		edata = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(mcxt);
		if (ERRCODE_TO_CATEGORY(edata->sqlerrcode) ==
			ERRCODE_OPERATOR_INTERVENTION)
			ea_errors_rethrow(edata);
		ereport(LOG,
				(errcode(edata->sqlerrcode),
				 errmsg("entityapi could not make a partition of the audit "
						"log: %s", edata->message),
				 errhidestmt(true)));
		made = false;
	}
	PG_END_TRY();
	MemoryContextSwitchTo(mcxt);
	CurrentResourceOwner = owner;
	return made;
}

/*
 * A session that found them a moment ago does not look again: if one goes
 * meanwhile, its records stay in the default partition for a while.
 */
bool
ea_audit_months_prepare(TimestampTz at)
{
	static TimestampTz failed_at = 0;
	static TimestampTz found_at = 0;
	Oid			namespace;
	int			month;

	if (at >= found_at && at < found_at + FOUND_MICROS)
		return false;
	namespace = get_namespace_oid("entityapi", false);
	month = month_of(at);
	for (int i = 0; i <= MONTHS_AHEAD; i++)
	{
		if (has_month(namespace, month + i))
			continue;
		if (failed_at != 0 &&
			!TimestampDifferenceExceeds(failed_at, GetCurrentTimestamp(),
										RETRY_MS))
			return false;
		failed_at = try_to_make_months(at) ? 0 : GetCurrentTimestamp();
		return true;
	}
	found_at = at;
	return false;
}

/*
 * Citus makes them on all nodes, which is no request's business, and from the
 * coordinator alone.
 */
bool
ea_audit_months_keep_ahead(EaRequest *req)
{
	return ea_distributed() && !XactReadOnly && ea_distributed_leads() &&
		ea_audit_months_prepare(req->now);
}
