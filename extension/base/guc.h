/*
 * Settings.  All are entityapi.*, superuser only, defined in guc.c.
 */
#ifndef EA_GUC_H
#define EA_GUC_H

extern int	ea_guc_apply_lock_timeout;	/* ms, 500 */
extern int	ea_guc_default_page_size;	/* 20 */
extern int	ea_guc_max_page_size;	/* 100 */
extern int	ea_guc_max_linkage; /* 1000 */
extern int	ea_guc_max_included;	/* 10000 */
extern int	ea_guc_max_include_depth;	/* 5 */
extern int	ea_guc_max_body;	/* bytes, 1 MiB */
extern int	ea_guc_max_body_auth;	/* bytes, 64 KiB */
extern int	ea_guc_max_url;		/* bytes, 8 KiB */
extern int	ea_guc_max_json_depth;	/* 64 */
extern int	ea_guc_max_filter_length;	/* 4 KiB */
extern int	ea_guc_max_filter_depth;	/* 64 */
extern int	ea_guc_max_filter_comparisons;	/* 256 */
extern int	ea_guc_max_filter_items;	/* 1000 */
extern int	ea_guc_max_filter_patterns;
extern int	ea_guc_max_filter_crossings;
extern int	ea_guc_max_sort_crossings;
extern int	ea_guc_max_like_length; /* 256 */
extern int	ea_guc_max_operations;	/* 1000 */
extern int	ea_guc_max_answer;	/* bytes, 64 MiB */
extern int	ea_guc_max_memory;	/* kB, 256 MiB */
extern int	ea_guc_max_include_paths;	/* 64 */
extern int	ea_guc_online_rows; /* 1: every table that has any */
extern int	ea_guc_plan_cache_size; /* plans a backend, 256 */
extern int	ea_guc_access_token_ttl;	/* s, 900 */
extern int	ea_guc_forced_token_ttl;	/* s, 600 */
extern int	ea_guc_refresh_idle_ttl;	/* s, 7 d */
extern int	ea_guc_refresh_max_ttl; /* s, 30 d */
extern int	ea_guc_invite_ttl;	/* s, 72 h */
extern int	ea_guc_bcrypt_cost; /* 12, at least 10 */
extern int	ea_guc_max_hashes;	/* 0: half the processors */
extern int	ea_guc_hash_wait;	/* ms, 2000 */
extern int	ea_guc_login_free_failures; /* 5 */
extern int	ea_guc_login_delay; /* s, 10 */
extern int	ea_guc_login_max_delay; /* s, 900 */
extern int	ea_guc_login_address_failures;	/* a minute, 60 */
extern bool ea_guc_asks_primary;	/* off; the shim sets it on standbys */
extern bool ea_guc_direct_scans;	/* off: neither of these, till 1.4 */
extern bool ea_guc_direct_reads;	/* bypass the executor; true if tested */
extern bool ea_guc_direct_writes;
extern bool ea_guc_openapi;		/* openapi.json is served, true */
extern bool ea_guc_report_counters; /* off; the shim sets it */
extern int	ea_guc_pool_size;	/* 0: none; the shim sets it */
extern char *ea_guc_issuer;		/* "entityapi" */
extern char *ea_guc_audience;	/* "entityapi" */
extern char *ea_guc_base_url;	/* "": links are path-absolute */
extern char *ea_guc_credential_validator;	/* schema.function, "": none */
extern char *ea_guc_clock;		/* timestamptz text for tests, "": real */

extern void ea_guc_define(void);

/* Whether direct/ may read and write, as far as settings say. */
static inline bool
ea_guc_may_read(void)
{
	return ea_guc_direct_reads && ea_guc_direct_scans;
}

static inline bool
ea_guc_may_write(void)
{
	return ea_guc_direct_writes && ea_guc_direct_scans;
}

#endif							/* EA_GUC_H */
