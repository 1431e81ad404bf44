#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_index.h"
#include "utils/builtins.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "model/table_indexes.h"

/* A column of the table, by its number in an index; 0 is an expression. */
static bool
is_column(Relation rel, AttrNumber number, const char *column)
{
	return number > 0 &&
		strcmp(quote_identifier(NameStr(TupleDescAttr(RelationGetDescr(rel),
													  number - 1)->attname)),
			   column) == 0;
}

static bool
keeps_apart(Relation rel, HeapTuple index, const char *one, const char *other)
{
	Form_pg_index form = (Form_pg_index) GETSTRUCT(index);
	const int16 *keys = form->indkey.values;

	return form->indisunique && form->indisvalid && form->indimmediate &&
		form->indnkeyatts == 2 &&
		heap_attisnull(index, Anum_pg_index_indpred, NULL) &&
		((is_column(rel, keys[0], one) && is_column(rel, keys[1], other)) ||
		 (is_column(rel, keys[0], other) && is_column(rel, keys[1], one)));
}

bool
ea_table_is_unique(Relation rel, const char *one, const char *other)
{
	List	   *indexes = RelationGetIndexList(rel);
	bool		unique = false;
	ListCell   *lc;

	foreach(lc, indexes)
	{
		HeapTuple	index = SearchSysCache1(INDEXRELID,
											ObjectIdGetDatum(lfirst_oid(lc)));

		if (!HeapTupleIsValid(index))
			continue;
		unique |= keeps_apart(rel, index, one, other);
		ReleaseSysCache(index);
	}
	list_free(indexes);
	return unique;
}
