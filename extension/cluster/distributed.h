/*
 * Tables whose rows Citus keeps elsewhere.
 *
 * It leaves such a table here empty, or as it was on the day when it was
 * distributed, and has only what its planner handles look at the shards.  A
 * read or write that bypasses the planner would answer with rows that are no
 * more, and records of the log would commit apart from the writes that they
 * report.
 *
 * So a deployment is distributed as a whole, as its declarations say, or not
 * at all.  Then nothing here bypasses the planner to read or write a table,
 * but for its shards.
 */
#ifndef EA_DISTRIBUTED_H
#define EA_DISTRIBUTED_H

/* The service refuses to work on such tables: 503, and the log says why. */
#define ERRCODE_EA_DISTRIBUTED MAKE_SQLSTATE('J', 'A', '5', '0', '3')

/* Whether Citus owns the table: distributed, reference or local to a node. */
extern bool ea_distributed_is(Oid relid);

/* Whether its code is there. */
extern bool ea_distributed_loaded(void);

/*
 * Whether Citus owns a table of the extension, and so, by the declarations,
 * all of this deployment.  Looks only after an invalidation message for any
 * table since it looked.
 */
extern bool ea_distributed(void);

/* This node is the coordinator, where tables are made and dropped. */
extern bool ea_distributed_leads(void);

/*
 * An error of that code if Citus owns a table of the extension, whether it is
 * loaded or not: the declarations know nothing of it, or it is not.
 */
extern void ea_distributed_refuse_own(void);

/*
 * The same if the declarations give the tables to Citus and those of the
 * extension are not there: they are about to come, or have just come back.  A
 * statement that began before that sees none of their rows.
 */
extern void ea_distributed_refuse_alone(void);

/*
 * The same on a worker of a cluster, where nothing is declared while the
 * service is not distributed: its tables are the coordinator's, and the rows
 * that are here would say that nobody has ever logged in.
 */
extern void ea_distributed_refuse_idle(void);

#endif							/* EA_DISTRIBUTED_H */
