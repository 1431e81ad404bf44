/*
 * The settings of the shim.
 *
 * A struct config never changes once loaded, so that threads read it without
 * a lock; a reload makes a new one.  Old ones stay until the process ends,
 * because a request may still be looking at them.
 */
#ifndef CONFIG_H
#define CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/address.h"

/* A network, as in "trusted_proxies": IPv4 or IPv6, with its prefix length. */
struct network
{
	struct address address;
	int			bits;
};

struct config
{
	char	   *front;
	char	   *listen;
	char	   *database;
	char	   *replicas;
	char	   *nodes;
	char	   *replica_staleness;
	char	   *trusted_proxies;
	char	   *keep_alive;
	char	   *pid_file;
	char	   *admin_listen;
	char	   *socket_mode;
	char	   *cors_origins;
	char	   *security_txt;
	char	   *otlp_endpoint;
	char	   *otlp_headers;
	char	   *otlp_ca_file;
	char	   *otlp_service_name;
	long		pool_size;
	long		pool_writes;
	long		pool_wait_ms;
	long		login_pool_share;
	long		connect_timeout_s;
	long		pool_queue;
	long		replica_max_lag_ms;
	long		read_your_writes_ms;
	long		threads;
	long		connections;
	long		max_connections_per_address;
	long		max_body;
	long		max_body_auth;
	long		max_url;
	long		max_headers_bytes;
	long		max_headers;
	long		max_unfinished;
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
	long		otlp_delay_ms;
	long		trace_per_million;
	bool		access_log;
	bool		metrics;
	bool		compression;
	bool		server_timing;
	bool		console;

	/* Derived from the settings above. */
	bool		reuse_connections;
	long		socket_mode_bits;
	char	   *security_text;	/* of the file security_txt, or NULL */
	struct network *networks;
	size_t		network_count;

	struct config *previous;	/* what a reload replaced */
};

#endif							/* CONFIG_H */
