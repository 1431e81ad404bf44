/*
 * A kept tree differs from newly analysed SQL in parts without meaning, as the
 * places of words and names that columns had when it was made.  So trees that
 * are not equal are written as SQL again, both, and compared.
 */
#include "postgres.h"

#include "access/relation.h"
#include "parser/parse_coerce.h"
#include "parser/parse_collate.h"
#include "parser/parse_expr.h"
#include "parser/parse_node.h"
#include "parser/parse_relation.h"
#include "parser/parser.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/ruleutils.h"

#include "ddl/expressions.h"

/* Dumps that an expression has been through, at most, as far as they show. */
#define DUMPS 4

/* As the commands that make them do it. */
static Node *
analyse_expression(Relation rel, const char *sql, bool check)
{
	List	   *raw = raw_parser(psprintf("SELECT %s", sql),
								 RAW_PARSE_DEFAULT);
	SelectStmt *select = castNode(SelectStmt,
								  linitial_node(RawStmt, raw)->stmt);
	ResTarget  *target = linitial_node(ResTarget, select->targetList);
	ParseState *pstate = make_parsestate(NULL);
	Node	   *node;

	addNSItemToQuery(pstate,
					 addRangeTableEntryForRelation(pstate, rel,
												   AccessShareLock, NULL,
												   false, false),
					 false, true, true);
	node = transformExpr(pstate, target->val, check ?
						 EXPR_KIND_CHECK_CONSTRAINT : EXPR_KIND_POLICY);
	node = coerce_to_boolean(pstate, node, check ? "CHECK" : "POLICY");
	assign_expr_collations(pstate, node);
	free_parsestate(pstate);
	return node;
}

/*
 * A dump has what is kept, written as SQL, and restoring it another tree, that
 * is written in another way again; after some such rounds it stays the same.
 */
static bool
is_same(Relation rel, Node *kept, const char *sql, bool check)
{
	List	   *names = deparse_context_for(RelationGetRelationName(rel),
											RelationGetRelid(rel));
	char	   *written = NULL;

	for (int i = 0; i < DUMPS; i++)
	{
		Node	   *node = analyse_expression(rel, sql, check);

		if (equal(kept, node))
			return true;
		if (written == NULL)
			written = deparse_expression(kept, names, false, false);
		sql = deparse_expression(node, names, false, false);
		if (strcmp(written, sql) == 0)
			return true;
	}
	return false;
}

bool
ea_ddl_same_expression(Oid relid, const char *tree, const char *sql,
					   bool check)
{
	MemoryContext mcxt = AllocSetContextCreate(CurrentMemoryContext,
											   "entityapi expression",
											   ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(mcxt);
	Relation	rel = relation_open(relid, AccessShareLock);
	bool		same;

	same = is_same(rel, stringToNode(tree), sql, check);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(mcxt);
	relation_close(rel, NoLock);
	return same;
}
