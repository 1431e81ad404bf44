#include <malloc.h>
#include <sys/resource.h>

#include "base/log.h"
#include "database/nodes.h"
#include "database/replicas.h"
#include "serve/resources.h"

/* Descriptors for logs, listening, waking, and connections to operators. */
#define OTHER_FILES 512

/* What each standby's watch has. */
#define WATCH_FILES 2

/*
 * Memory that one thread has freed should be of use to the next: a few arenas,
 * and large pieces go back to the system.
 *
 * Clients and database together may need more than the usual 1024 descriptors.
 */
void
resources_prepare(void)
{
	struct rlimit limit;

	mallopt(M_ARENA_MAX, 4);
	mallopt(M_MMAP_THRESHOLD, 128 * 1024);
	mallopt(M_TRIM_THRESHOLD, 256 * 1024);

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
	{
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

long
resources_connections(const struct config *config)
{
	long		others = OTHER_FILES + config->pool_size +
		config->pool_writes +
		(config->nodes[0] == '\0' ? 0 : MAX_NODES * config->pool_size) +
		(config->replicas[0] == '\0' ? 0 :
		 MAX_REPLICAS * (config->pool_size + WATCH_FILES));
	struct rlimit limit;
	long		room;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 ||
		limit.rlim_cur >= (rlim_t) (config->connections + others))
		return config->connections;
	room = (long) limit.rlim_cur - others;
	if (room < (long) limit.rlim_cur / 2)
		room = (long) limit.rlim_cur / 2;
	log_event(LOG_WARNING, "start", NULL, NULL,
			  "the limit of open files is %ld: %ld connections of clients "
			  "instead of %ld", (long) limit.rlim_cur, room,
			  config->connections);
	return room;
}
