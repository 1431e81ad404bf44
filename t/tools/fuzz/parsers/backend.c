/*
 * Runs the targets within a backend: all of PostgreSQL that a parser uses
 * is the real one.
 *
 * 	fuzz_replay(target text, inputs bytea[]) returns int
 * 	fuzz_run(target text, arguments text[]) returns int
 *
 * The first runs given inputs.  The second hands over to libFuzzer, which is
 * only there in a build with clang, and ends the process when it is done.
 */
#include "target.h"

#include <unistd.h>

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "base/guc.h"
#include "request/errors.h"

/* Inputs until all has been made that is made once; bytes that may come. */
#define WARM_INPUTS 2000
#define LOOK_EVERY 5000
#define MAX_GROWTH (256 * 1024)

PG_MODULE_MAGIC;

static const Target *target;
static MemoryContext input_context;
static long ninputs;
static Size warm_size;

PG_FUNCTION_INFO_V1(fuzz_replay);

void		_PG_init(void);

void
_PG_init(void)
{
	ea_guc_define();
}

void
target_fault(const char *what, const char *more)
{
	fprintf(stderr, "target %s: does not hold: %s\n%s\n", target->name, what,
			more != NULL ? more : "");
	abort();
}

char *
target_text(const char *bytes, int len)
{
	char	   *text = palloc(len + 1);

	memcpy(text, bytes, len);
	text[len] = '\0';
	for (int i = 0; i < len;)
	{
		int			n = pg_utf_mblen((unsigned char *) text + i);

		if (text[i] == '\0' || n > len - i ||
			!pg_utf8_islegal((unsigned char *) text + i, n))
		{
			text[i] = '?';
			n = 1;
		}
		i += n;
	}
	return text;
}

EaRequest *
target_request(void)
{
	EaRequest  *req = palloc0(sizeof(EaRequest));

	req->mcxt = CurrentMemoryContext;
	req->now = (TimestampTz) 800000000 * USECS_PER_SEC;
	req->out = makeStringInfo();
	return req;
}

static bool
may_throw(int sqlstate)
{
	for (int i = 0; i < MAX_THROWN; i++)
	{
		if (target->thrown[i] == sqlstate && sqlstate != 0)
			return true;
	}
	return false;
}

static void
look_at_memory(void)
{
	Size		size = MemoryContextMemAllocated(TopMemoryContext, true);

	if (ninputs == WARM_INPUTS)
		warm_size = size;
	else if (size > warm_size + MAX_GROWTH)
	{
		MemoryContextStats(TopMemoryContext);
		target_fault("memory does not grow", NULL);
	}
}

static int
run_input(const uint8 *data, size_t size)
{
	MemoryContext old = MemoryContextSwitchTo(input_context);
	char	   *bytes = palloc(size);

	memcpy(bytes, data, size);
	PG_TRY();
	{
		target->run(bytes, size);
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(input_context);
		error = CopyErrorData();
		FlushErrorState();
		if (!may_throw(error->sqlerrcode))
			target_fault("nothing else is thrown",
						 psprintf("%s %s", unpack_sql_state(error->sqlerrcode),
								  error->message));
	}
	PG_END_TRY();
	MemoryContextSwitchTo(old);
	MemoryContextReset(input_context);
	if (++ninputs >= WARM_INPUTS && ninputs % LOOK_EVERY ==
		WARM_INPUTS % LOOK_EVERY)
		look_at_memory();
	return 0;
}

static void
choose(const char *name)
{
	target = NULL;
	for (int i = 0; i < nform_targets; i++)
	{
		if (strcmp(form_targets[i].name, name) == 0)
			target = &form_targets[i];
	}
	for (int i = 0; i < nlanguage_targets; i++)
	{
		if (strcmp(language_targets[i].name, name) == 0)
			target = &language_targets[i];
	}
	if (target == NULL)
		ereport(ERROR, (errmsg("there is no target \"%s\"", name)));
	input_context = AllocSetContextCreate(TopMemoryContext, "input",
										  ALLOCSET_DEFAULT_SIZES);
	ninputs = 0;
}

Datum
fuzz_replay(PG_FUNCTION_ARGS)
{
	ArrayType  *array = PG_GETARG_ARRAYTYPE_P(1);
	Datum	   *inputs;
	bool	   *nulls;
	int			n;

	choose(text_to_cstring(PG_GETARG_TEXT_PP(0)));
	deconstruct_array(array, BYTEAOID, -1, false, TYPALIGN_INT, &inputs,
					  &nulls, &n);
	for (int i = 0; i < n; i++)
	{
		bytea	   *input = DatumGetByteaPP(inputs[i]);

		run_input((uint8 *) VARDATA_ANY(input), VARSIZE_ANY_EXHDR(input));
	}
	MemoryContextDelete(input_context);
	PG_RETURN_INT32(n);
}

#ifdef WITH_LIBFUZZER

extern int	LLVMFuzzerRunDriver(int *argc, char ***argv,
								int (*run) (const uint8 *data, size_t size));

PG_FUNCTION_INFO_V1(fuzz_run);

Datum
fuzz_run(PG_FUNCTION_ARGS)
{
	ArrayType  *array = PG_GETARG_ARRAYTYPE_P(1);
	Datum	   *words;
	bool	   *nulls;
	char	  **argv;
	int			argc;

	choose(text_to_cstring(PG_GETARG_TEXT_PP(0)));
	deconstruct_array(array, TEXTOID, -1, false, TYPALIGN_INT, &words, &nulls,
					  &argc);
	argv = palloc0((argc + 2) * sizeof(char *));
	argv[0] = pstrdup(target->name);
	for (int i = 0; i < argc; i++)
		argv[i + 1] = TextDatumGetCString(words[i]);
	argc++;
	PG_RETURN_INT32(LLVMFuzzerRunDriver(&argc, &argv, run_input));
}

#endif
