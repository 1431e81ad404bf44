/*
 * Names of tables, indexes and constraints on a shard.
 *
 * Citus puts the number of the shard behind each name, and shortens names that
 * get too long by that.  Errors of another node have no fields but their
 * message, in which such names stand in quotes of the server's language.
 */
#ifndef EA_SHARD_NAME_H
#define EA_SHARD_NAME_H

/* The name that something has on a shard, palloc'd. */
extern char *ea_shard_name(const char *name, int64 shard);

/*
 * Whether a message, or a name alone, speaks of something called so: as it is,
 * or as it is on a shard.
 */
extern bool ea_shard_name_is_in(const char *message, const char *name);

#endif							/* EA_SHARD_NAME_H */
