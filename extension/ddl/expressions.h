/*
 * Compare expressions as PostgreSQL keeps them with their SQL.
 */
#ifndef EA_EXPRESSIONS_H
#define EA_EXPRESSIONS_H

/*
 * Is the tree of a check constraint or a policy of a table, as its catalog has
 * it, what the SQL means?  All that the SQL names must be there, and is locked
 * for reading until the transaction ends.
 */
extern bool ea_ddl_same_expression(Oid relid, const char *tree,
								   const char *sql, bool check);

#endif							/* EA_EXPRESSIONS_H */
