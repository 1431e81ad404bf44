#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "engine/reader.h"

/* A column has the type that it is read by. */
static bool
is_of_type(Oid type, Oid wanted)
{
	/* most are; only a domain has to be looked up */
	if (type == wanted || (type == VARCHAROID && wanted == TEXTOID))
		return true;
	type = getBaseType(type);
	return type == wanted || (type == VARCHAROID && wanted == TEXTOID);
}

/* Compared with the rows' description, before the first of them is read. */
void
ea_reader_check(const EaReader *reader, TupleDesc desc)
{
	if (desc == NULL || desc->natts != reader->ntypes)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("a statement has %d columns, not the %d that are read",
						desc == NULL ? 0 : desc->natts, reader->ntypes)));
	for (int i = 0; i < reader->ntypes; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (!is_of_type(att->atttypid, reader->types[i]))
			ereport(ERROR,
					(errcode(ERRCODE_DATATYPE_MISMATCH),
					 errmsg("column %s of a statement is %s, and not %s as it "
							"is read", NameStr(att->attname),
							format_type_be(att->atttypid),
							format_type_be(reader->types[i]))));
	}
}
