/*
 * Types of others come with functions of theirs, which nothing but a statement
 * calls: that runs as the role of the application.  Their operators are named
 * with their schema, which is on no path of the service.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/stratnum.h"
#include "catalog/namespace.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

#include "model/held_column.h"

/* -------- names -------- */

static char *
qualified_function(Oid function)
{
	const char *schema = get_namespace_name(get_func_namespace(function));

	return quote_qualified_identifier(schema, get_func_name(function));
}

/* `OPERATOR(public.=)`; NULL: there is no such operator. */
static char *
qualified_operator(Oid operator)
{
	HeapTuple	tuple = OidIsValid(operator) ?
	SearchSysCache1(OPEROID, ObjectIdGetDatum(operator)) : NULL;
	Form_pg_operator form;
	const char *schema;
	char	   *name;

	if (!HeapTupleIsValid(tuple))
		return NULL;
	form = (Form_pg_operator) GETSTRUCT(tuple);
	schema = get_namespace_name(form->oprnamespace);
	name = psprintf("OPERATOR(%s.%s)", quote_identifier(schema),
					NameStr(form->oprname));
	ReleaseSysCache(tuple);
	return name;
}

/* -------- operators -------- */

static const StrategyNumber strategies[EA_N_COMPARISONS] = {
	[EA_COMPARES_EQ] = BTEqualStrategyNumber,
	[EA_COMPARES_NE] = 0,
	[EA_COMPARES_LT] = BTLessStrategyNumber,
	[EA_COMPARES_LE] = BTLessEqualStrategyNumber,
	[EA_COMPARES_GT] = BTGreaterStrategyNumber,
	[EA_COMPARES_GE] = BTGreaterEqualStrategyNumber,
	[EA_COMPARES_LIKE] = 0,
	[EA_COMPARES_ILIKE] = 0
};

/* One of the type's own schema, as citext has it. */
static char *
matching_operator(Oid type, Oid namespace, const char *name)
{
	if (namespace == PG_CATALOG_NAMESPACE)
		return NULL;
	return qualified_operator(GetSysCacheOid4(OPERNAMENSP,
											  Anum_pg_operator_oid,
											  CStringGetDatum(name),
											  ObjectIdGetDatum(type),
											  ObjectIdGetDatum(type),
											  ObjectIdGetDatum(namespace)));
}

static void
load_operators(EaColumn *column, Oid type, Oid namespace)
{
	TypeCacheEntry *cache = lookup_type_cache(type, TYPECACHE_EQ_OPR |
											  TYPECACHE_LT_OPR |
											  TYPECACHE_BTREE_OPFAMILY);

	column->operators = palloc0(EA_N_COMPARISONS * sizeof(char *));
	for (int i = 0; OidIsValid(cache->lt_opr) &&
		 OidIsValid(cache->btree_opf) && i < EA_N_COMPARISONS; i++)
	{
		if (strategies[i] != 0)
			column->operators[i] =
				qualified_operator(get_opfamily_member(cache->btree_opf,
													   cache->btree_opintype,
													   cache->btree_opintype,
													   strategies[i]));
	}
	if (OidIsValid(cache->eq_opr))
	{
		column->operators[EA_COMPARES_EQ] = qualified_operator(cache->eq_opr);
		column->operators[EA_COMPARES_NE] =
			qualified_operator(get_negator(cache->eq_opr));
	}
	column->operators[EA_COMPARES_LIKE] = matching_operator(type, namespace,
															"~~");
	column->operators[EA_COMPARES_ILIKE] = matching_operator(type, namespace,
															 "~~*");
}

/* EA_CAN_*, of a type that only the database knows. */
static int
can_of(const EaColumn *column)
{
	int			can = 0;

	if (column->operators[EA_COMPARES_EQ] != NULL &&
		column->operators[EA_COMPARES_NE] != NULL)
		can |= EA_CAN_EQUAL;
	if (column->operators[EA_COMPARES_LT] != NULL &&
		column->operators[EA_COMPARES_GT] != NULL &&
		column->operators[EA_COMPARES_LE] != NULL &&
		column->operators[EA_COMPARES_GE] != NULL &&
		(can & EA_CAN_EQUAL) != 0)
		can |= EA_CAN_ORDER | EA_CAN_SORT;
	return can;
}

/* -------- loading -------- */

static Oid
type_named(const char *schema, const char *type)
{
	return GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid,
						   CStringGetDatum(type),
						   ObjectIdGetDatum(get_namespace_oid(schema, true)));
}

bool
ea_held_column_is_moved(const EaColumn *column)
{
	return column->held_type != NULL &&
		type_named(column->held_schema, column->held_type) != column->held;
}

void
ea_held_column_load(EaField *field, const char *schema, const char *type)
{
	EaColumn   *column = &field->columns[0];
	Oid			namespace = get_namespace_oid(schema, true);
	EaType	   *own = palloc(sizeof(EaType));
	Oid			output;
	bool		varlena;

	*own = *field->type;
	field->type = field->shown = own;
	column->held = type_named(schema, type);
	column->held_schema = pstrdup(schema);
	column->held_type = pstrdup(type);
	column->after = ")";
	if (own->crosses == EA_CROSSES_AS_JSON)
	{
		column->before = "pg_catalog.to_jsonb(";
		return;
	}
	column->input = quote_qualified_identifier(schema, type);
	if (!OidIsValid(column->held))
	{
		column->before = "(";
		own->can = 0;
		return;
	}

	/* the text of these is what they are without their padding */
	if (own->id == EA_TYPE_CHAR || own->id == EA_TYPE_CITEXT)
	{
		column->before = "(";
		column->after = ")::pg_catalog.text";
	}
	else
	{
		getTypeOutputInfo(column->held, &output, &varlena);
		column->before = psprintf("pg_catalog.textin(%s(",
								  qualified_function(output));
		column->after = "))";
	}
	if (own->can == 0)
		return;
	load_operators(column, column->held, namespace);
	own->can &= can_of(column) | EA_CAN_MATCH;
}
