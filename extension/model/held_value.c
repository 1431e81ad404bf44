#include "postgres.h"

#include "access/xact.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/syscache.h"

#include "base/text.h"
#include "model/held_value.h"
#include "model/sqlbuf.h"

static bool
is_label(Oid type, Datum value)
{
	char	   *label = TextDatumGetCString(value);
	HeapTuple	tuple;

	if (strlen(label) >= NAMEDATALEN)
		return false;
	tuple = SearchSysCache2(ENUMTYPOIDNAME, ObjectIdGetDatum(type),
							CStringGetDatum(label));
	if (!HeapTupleIsValid(tuple))
		return false;
	ReleaseSysCache(tuple);
	return true;
}

/* An error of an input function, or of code in it, that is the value's. */
static bool
is_of_value(const ErrorData *edata)
{
	if (edata->elevel > ERROR ||
		edata->sqlerrcode == ERRCODE_INSUFFICIENT_PRIVILEGE)
		return false;
	switch (ERRCODE_TO_CATEGORY(edata->sqlerrcode))
	{
		case ERRCODE_DATA_EXCEPTION:
		case ERRCODE_INTEGRITY_CONSTRAINT_VIOLATION:
		case ERRCODE_PLPGSQL_ERROR:
		case ERRCODE_PROGRAM_LIMIT_EXCEEDED:
		case ERRCODE_SYNTAX_ERROR_OR_ACCESS_RULE_VIOLATION:
		case ERRCODE_FEATURE_NOT_SUPPORTED:
			return true;
		default:
			return false;
	}
}

/*
 * In a subtransaction, which an error of the input ends.  All that the request
 * keeps is as it was then.
 */
static bool
converts(EaRequest *req, const EaField *field, Datum value)
{
	MemoryContext caller = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	volatile bool fine = true;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(caller);
	PG_TRY();
	{
		EaSqlBuf	b;

		ea_sqlbuf_init(&b, req);
		ea_sqlbuf_convert(&b, field, value);
		ea_sqlbuf_run(&b, EA_EXEC_LOOK, false, NULL, NULL);
		ReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(caller);
		CurrentResourceOwner = owner;
	}
	PG_CATCH();
	{
		ErrorData  *edata;

		MemoryContextSwitchTo(caller);
		edata = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(caller);
		CurrentResourceOwner = owner;
		if (!is_of_value(edata))
			ReThrowError(edata);
		ereport(LOG,
				(errcode(edata->sqlerrcode),
				 errmsg("entityapi request %s: a value of \"%s\" is refused "
						"by its type: %s", req->request_id, field->name,
						ea_text_logged(edata->message)),
				 errhidestmt(true)));
		fine = false;
	}
	PG_END_TRY();
	return fine;
}

bool
ea_held_value_takes(EaRequest *req, const EaField *field, Datum value,
					 const char **why)
{
	switch (field->type->id)
	{
		case EA_TYPE_ENUM:
			return is_label(field->columns[0].held, value) ||
				ea_types_refuse(why, "must be a label of the enumeration");
		case EA_TYPE_NATIVE:
			return converts(req, field, value) ||
				ea_types_refuse(why, "is no value of its type");
		default:
			return true;
	}
}

bool
ea_held_value_keeps_null(const EaField *field)
{
	return field->entity->of_application && field->kind == EA_ATTRIBUTE &&
		(field->type->form == EA_FORM_JSONB ||
		 field->type->form == EA_FORM_JSON);
}
