/*
 * RSQL text to a tree.  Pure: knows no catalog.
 */
#ifndef EA_RSQL_H
#define EA_RSQL_H

#include "lib/stringinfo.h"

typedef enum EaRsqlKind
{
	EA_RSQL_AND,
	EA_RSQL_OR,
	EA_RSQL_COMPARISON
} EaRsqlKind;

/* EA_RSQL_EQ and so on; the index into ea_rsql_operators. */
typedef enum EaRsqlOp
{
#define EA_OPERATOR(id, ...) EA_RSQL_##id,
#include "query/operatorlist.h"
#undef EA_OPERATOR
	EA_N_RSQL_OPS
} EaRsqlOp;

/* The right-hand side of an operator. */
typedef enum EaRsqlOperand
{
	EA_OF_ONE,				/* value of the type */
	EA_OF_LIST,				/* of them, in parentheses, or one */
	EA_OF_PATTERN,
	EA_OF_TRUTH				/* true or false, whatever the type */
} EaRsqlOperand;

/* SQL around the column and the parameter. */
typedef struct EaRsqlSql
{
	const char *before;
	const char *between;		/* NULL: there is no such SQL */
	const char *after;
} EaRsqlSql;

/* A row of operatorlist.h. */
typedef struct EaRsqlOperator
{
	const char *name;			/* as the specification spells it: "=gt=" */
	const char *other;			/* another spelling, or NULL */
	const char *title;
	int			needs;			/* EA_CAN_* */
	EaRsqlOperand takes;
	EaRsqlSql	sql;
	EaRsqlSql	member;
} EaRsqlOperator;

extern const EaRsqlOperator ea_rsql_operators[EA_N_RSQL_OPS];

typedef struct EaRsqlValue
{
	const char *text;			/* unescaped, NUL-terminated */
	int			len;
	int			offset;			/* characters into the input, for messages */
} EaRsqlValue;

typedef struct EaRsql EaRsql;

struct EaRsql
{
	EaRsqlKind	kind;
	int			nchildren;		/* AND, OR: two or more */
	EaRsql	  **children;

	/* COMPARISON */
	int			nhops;			/* names in the selector */
	const char **hops;
	EaRsqlOp	op;
	int			nvalues;
	EaRsqlValue *values;
	int			offset;			/* of the selector, for messages */
	void	   *bound;			/* filter.c: the selector, resolved */
};

typedef struct EaRsqlLimits
{
	int			max_length;		/* bytes */
	int			max_depth;		/* parentheses */
	int			max_comparisons;
	int			max_patterns;	/* comparisons with one */
	int			max_pattern_length; /* characters of all of them */
	int			max_items;		/* of one list */
	int			max_hops;		/* relationships of one path */
} EaRsqlLimits;

typedef struct EaRsqlFault
{
	const char *message;		/* a clause without position */
	int			offset;			/* character position, from 0 */
} EaRsqlFault;

/* Relationships that one path in filter or sort may cross. */
#define EA_RSQL_MAX_HOPS 5

/* The limits as the settings have them. */
extern EaRsqlLimits ea_rsql_limits(void);

/*
 * Parse len bytes of valid UTF-8.  Returns the tree, in the current memory
 * context, or NULL with *fault.  Never throws for bad input.
 */
extern EaRsql *ea_rsql_parse(const char *str, int len,
							 const EaRsqlLimits *limits, EaRsqlFault *fault);

/* The tree as JSON, for entityapi.parse_rsql() and tests. */
extern void ea_rsql_write(StringInfo buf, const EaRsql *tree);

#endif							/* EA_RSQL_H */
