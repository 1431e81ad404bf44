#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "command/retry.h"

#define LOCK_NOT_AVAILABLE "55P03"
#define DEADLOCK_DETECTED "40P01"

#define FIRST_PAUSE 100			/* ms, doubled each time */
#define LONGEST_PAUSE 2000

double
retry_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

bool
retry_lock(struct retry *retry, const PGresult *result)
{
	const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	int			pause = FIRST_PAUSE;
	int			i;

	if (sqlstate == NULL || (strcmp(sqlstate, LOCK_NOT_AVAILABLE) != 0 &&
							 strcmp(sqlstate, DEADLOCK_DETECTED) != 0))
		return false;
	if (retry->since == 0)
		retry->since = retry_clock();
	if (retry_clock() - retry->since > retry->limit)
		return false;
	for (i = 0; i < retry->tries && pause < LONGEST_PAUSE; i++)
		pause *= 2;
	if (pause > LONGEST_PAUSE)
		pause = LONGEST_PAUSE;
	retry->tries++;
	fprintf(stderr, "entityapi-shim apply: in use, trying again (%d): %s\n",
			retry->tries, PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY));
	sleep_ms(pause);
	return true;
}
