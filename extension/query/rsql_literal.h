/*
 * The values of a comparison over a column of known type.
 */
#ifndef EA_RSQL_LITERAL_H
#define EA_RSQL_LITERAL_H

#include "base/compat.h"
#include "base/exec_params.h"
#include "model/entity.h"
#include "model/sqlbuf.h"
#include "query/rsql.h"
#include "request/request.h"

/* Throw 400 for a filter, with the position counted from 1. */
extern EA_NORETURN void ea_rsql_literal_refuse(EaRequest *req,
											   const char *why, int offset);

/*
 * The value of a comparison, or for =in= and =out= the array of them.  False
 * with *fault for a literal that does not fit the type, or is none of those
 * that the field, if there is one, declares; and for a pattern that is too
 * long or ends in a lone escape character, which PostgreSQL would fail on.
 */
extern bool ea_rsql_literal_read(const EaRsql *comparison, const EaType *type,
								 const EaField *field, EaValue *value,
								 EaRsqlFault *fault);

/* The same for ids, of which each literal is the canonical form of one. */
extern bool ea_rsql_literal_ids(EaRequest *req, const EaRsql *comparison,
								const EaIdKey *key, EaValue *value,
								EaRsqlFault *fault);

/*
 * The same with a literal that the field's column must take, too; and a
 * comparison with the column as its type does it.
 */
extern bool ea_rsql_literal_takes(EaRequest *req, const EaRsql *comparison,
								  const EaField *field, EaRsqlFault *fault);
extern void ea_rsql_literal_compare_field(EaSqlBuf *b,
										  const EaRsqlOperator *operator,
										  int alias, const EaField *field,
										  const EaValue *value);

/*
 * Append the comparison of a column, t<alias>.<column>, or a column's own SQL
 * with an alias below 0, with a value.
 */
extern void ea_rsql_literal_compare(EaSqlBuf *b, const EaRsqlSql *sql,
									int alias, const char *column,
									const EaValue *value);

/* `must be one of A, B (did you mean "A"?)`: the answer to a wrong one. */
extern char *ea_rsql_literal_choices(const char *text,
									 const char *const *names, int n);

/* The value of =isnull=; throws 400 unless it is true or false. */
extern bool ea_rsql_literal_isnull(EaRequest *req, const EaRsql *comparison);

#endif							/* EA_RSQL_LITERAL_H */
