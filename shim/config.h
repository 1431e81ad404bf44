/*-------------------------------------------------------------------------
 *
 * config.h
 *	  The settings of the shim.
 *
 * A setting is given by a flag (--pool-size 8), by a variable of the
 * environment (ENTITYAPI_POOL_SIZE=8) or in the JSON configuration file
 * ({"pool_size": 8}); the first of these three that names it wins.
 *
 * A struct config never changes once loaded, so that threads read it without
 * a lock; a reload makes a new one.  Old ones stay until the process ends,
 * because a request may still be looking at them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef CONFIG_H
#define CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "address.h"
#include "buffer.h"

/* A network, as in "trusted_proxies": IPv4 or IPv6, with its prefix length. */
struct network
{
	struct address address;
	int			bits;
};

struct config
{
	char	   *listen;
	char	   *database;
	char	   *replicas;
	char	   *replica_staleness;
	char	   *trusted_proxies;
	char	   *keep_alive;
	char	   *pid_file;
	char	   *admin_listen;
	char	   *socket_mode;
	char	   *cors_origins;
	long		pool_size;
	long		pool_wait_ms;
	long		login_pool_share;
	long		connect_timeout_s;
	long		pool_queue;
	long		replica_max_lag_ms;
	long		read_your_writes_ms;
	long		threads;
	long		max_connections_per_address;
	long		max_body;
	long		max_body_auth;
	long		max_url;
	long		max_headers_bytes;
	long		max_headers;
	long		body_timeout_ms;
	long		write_timeout_ms;
	long		request_timeout_ms;
	long		keep_alive_timeout_ms;
	long		drain_timeout_ms;
	long		statement_timeout_ms;
	long		sweep_interval_ms;
	long		access_log_delay_ms;
	long		compression_min;
	long		cors_max_age_s;
	bool		access_log;
	bool		metrics;
	bool		compression;
	bool		server_timing;

	/* Derived from the settings above. */
	bool		reuse_connections;
	long		socket_mode_bits;
	struct network *networks;
	size_t		network_count;

	struct config *previous;	/* what a reload replaced */
};

/* What the command line and the environment said; kept for reloads. */
struct config_source
{
	const char *file;			/* --config or ENTITYAPI_CONFIG, or NULL */
	char	  **flags;			/* one value for each setting, or NULL */
};

/*
 * Takes the flags that are settings out of argv: on return "argc" and "argv"
 * hold what is left.  Returns false after writing a line to stderr.
 */
extern bool config_parse_flags(int *argc, char **argv,
							   struct config_source *source);

/*
 * Loads the settings.  Returns NULL after writing one line for each fault to
 * stderr.
 */
extern struct config *config_load(const struct config_source *source);

/*
 * Loads the settings again; those that need a restart keep their value, with
 * a line in the log.  Returns NULL, and "old" goes on, if there is a fault.
 */
extern struct config *config_reload(const struct config_source *source,
									struct config *old);

/* Writes the settings as a JSON object; secrets are masked. */
extern void config_print(const struct config *config, struct buffer *out);

/* Writes the table of settings for --help. */
extern void config_help(struct buffer *out);

/* Frees the configuration and all that it replaced. */
extern void config_free(struct config *config);
extern void config_source_free(struct config_source *source);

/* True if the textual address lies in one of the trusted networks. */
extern bool config_trusts(const struct config *config, const char *address);

#endif							/* CONFIG_H */
