/*
 * What a change of the manifests leaves for after its transaction.
 */
#ifndef STEPS_H
#define STEPS_H

#include <stdbool.h>

#include <libpq-fe.h>

/*
 * Let only one apply at a time work on the database, also between its
 * transactions; waits for another one.  Released with the connection, and by
 * a statement that fails: so this comes before each that is not to run beside
 * another apply.  others, unless NULL: whether another one had to be waited
 * for, so that nothing is known any more.
 */
extern bool steps_claim(PGconn *connection, bool *others);

/*
 * Run the statements of entityapi.list_steps(), printing each; those that
 * were left by an earlier run, too.  limit: seconds to try again for when a
 * table is in use.  expected: there are some, so that it is a failure when
 * the login may not run any.  False when not all is done then, which stderr
 * says.
 */
extern bool steps_run(PGconn *connection, int limit, bool expected);

#endif							/* STEPS_H */
