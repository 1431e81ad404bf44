/*
 * Writes of the extension's triggers to tables of entities.
 *
 * A table of the extension is the installer's, and a role that writes to it,
 * be it a superuser with SQL, trusts nobody else.  Its triggers reach tables
 * of entities, to which a deployer attaches any code.  All such writes pass
 * here.
 */
#ifndef EA_TRIGGER_WRITE_H
#define EA_TRIGGER_WRITE_H

/*
 * The table, named as in statements, is there and its dependent objects belong
 * to nobody whose code must not run as the owner; an error if not.
 */
extern void ea_trigger_write_check(const char *table);

/* So many rows a query over such a table finds, as they are by now. */
extern uint64 ea_trigger_write_count(const char *sql, int n, Oid *types,
									 Datum *values);

/* A query over the system catalogs, $1 being the table's name, finds a row. */
extern bool ea_trigger_write_asks(const char *sql, const char *table);

/*
 * Run a statement that writes to such a table.  Within a call that settles
 * waiting triggers (trust/owner.h), deferred ones wait for that.  Otherwise
 * nothing is left when this returns: deferrable constraints of the table, and
 * of those that refer to it, are immediate until the end of the transaction,
 * what waits for them runs now, and code that would have anything else wait
 * fails the statement.  The current user must be the owner, confined in that
 * case, and SPI connected.
 */
extern void ea_trigger_write(const char *table, const char *sql, int n,
							 Oid *types, Datum *values);

#endif							/* EA_TRIGGER_WRITE_H */
