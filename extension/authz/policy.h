/*
 * Policy expressions to a checked tree.  Pure: knows no catalog.
 *
 * policy.c parses, policy_types.c finds the types.  A resolver says what a
 * path stands for, so that the same rules hold for documents under way and for
 * stored declarations.
 */
#ifndef EA_POLICY_H
#define EA_POLICY_H

#include "lib/stringinfo.h"

#include "model/types.h"

/* Size of one expression. */
#define EA_POLICY_MAX_NODES 256
#define EA_POLICY_MAX_DEPTH 32

/* Relationships that one path may follow. */
#define EA_POLICY_MAX_HOPS 5

typedef enum EaPolicyKind
{
	EA_POLICY_OR,
	EA_POLICY_AND,
	EA_POLICY_NOT,
	EA_POLICY_COMPARE,			/* two children */
	EA_POLICY_IN,				/* value, list or path */
	EA_POLICY_CONTAINS,			/* path, value */
	EA_POLICY_STARTS_WITH,		/* path, value */
	EA_POLICY_LITERAL,
	EA_POLICY_LIST,
	EA_POLICY_USER,				/* #user.<text>, #user.<text>['<key>'] */
	EA_POLICY_RECORD,			/* #record.<names> */
	EA_POLICY_INPUT,			/* #input.<names> */
	EA_POLICY_ROW,				/* #row.<names>: one of these, once checked */
	EA_POLICY_NOW
} EaPolicyKind;

typedef enum EaPolicyOp
{
	EA_POLICY_EQ, EA_POLICY_NE, EA_POLICY_LT, EA_POLICY_LE,
	EA_POLICY_GT, EA_POLICY_GE
} EaPolicyOp;

typedef struct EaPolicy EaPolicy;

struct EaPolicy
{
	EaPolicyKind kind;
	EaPolicyOp	op;				/* COMPARE */
	EaPolicyType type;			/* by ea_policy_check(); a literal's own
								 * before */
	int			nchildren;
	int			room;			/* for so many */
	EaPolicy  **children;
	const char *text;			/* LITERAL, property of USER */
	const char *key;			/* USER: between the brackets, or NULL */
	bool		truth;			/* boolean LITERAL */
	int			nnames;			/* RECORD, INPUT */
	const char **names;
	int			offset;			/* characters into the expression */
	bool		null_test;		/* COMPARE with the literal null */
	void	   *bound;			/* RECORD, INPUT: the resolver's finding */
};

typedef struct EaPolicyFault
{
	const char *message;		/* without position */
	const char *hint;			/* or NULL */
	int			offset;			/* character position, from 0 */
} EaPolicyFault;

/*
 * Parse a NUL-terminated text of valid UTF-8.  Returns the tree, in the
 * current memory context, or NULL with *fault.  Never throws for bad input.
 */
extern EaPolicy *ea_policy_parse(const char *str, EaPolicyFault *fault);

/*
 * The resolver of #user.<property>['<key>'], #record.<names> and
 * #input.<names>, of which #row.<names> is the first, or the second where no
 * row is stored yet: their type, with node->bound as the resolver likes, or
 * EA_POLICY_UNKNOWN with *message and perhaps *hint.
 */
typedef struct EaPolicyScope EaPolicyScope;

struct EaPolicyScope
{
	EaPolicyType (*path) (EaPolicyScope *scope, EaPolicy *node,
						  const char **message, const char **hint);
	EaPolicyType (*attribute) (EaPolicyScope *scope, const char *key,
							   const char **message, const char **hint);
	bool		record;			/* the variable is there */
	bool		input;
};

/* The tree as JSON, for entityapi.check_expression() and tests. */
extern void ea_policy_write(StringInfo buf, const EaPolicy *tree);

#endif							/* EA_POLICY_H */
