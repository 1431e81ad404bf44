/*
 * Faults of memory on purpose, for the check of the memory checks.
 *
 * Each function makes one fault that only a palloc exact to the byte shows:
 * blocks of memory contexts are larger than what was asked of them, so that
 * plain AddressSanitizer finds nothing here.
 */
#include "postgres.h"

#include "fmgr.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(planted_overflow);
PG_FUNCTION_INFO_V1(planted_use_after_free);
PG_FUNCTION_INFO_V1(planted_nothing);

/* Not to be seen through by the compiler. */
static volatile int thirteen = 13;

Datum
planted_overflow(PG_FUNCTION_ARGS)
{
	char	   *bytes = palloc0(thirteen);

	PG_RETURN_INT32(((volatile char *) bytes)[thirteen]);
}

Datum
planted_use_after_free(PG_FUNCTION_ARGS)
{
	char	   *bytes = palloc0(thirteen);

	pfree(bytes);
	PG_RETURN_INT32(((volatile char *) bytes)[0]);
}

Datum
planted_nothing(PG_FUNCTION_ARGS)
{
	char	   *bytes = palloc0(thirteen);

	PG_RETURN_INT32(((volatile char *) bytes)[thirteen - 1]);
}
