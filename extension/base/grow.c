#include "postgres.h"

#include "utils/memutils.h"

#include "base/grow.h"

/* Most arrays have few items: as many as a small chunk of memory holds. */
#define FIRST_BYTES 128

void *
ea_grow(void *items, int *max, size_t size)
{
	if (items == NULL)
	{
		*max = Max(FIRST_BYTES / size, 4);
		return palloc(*max * size);
	}
	if (*max > PG_INT32_MAX / 2 || (Size) *max * 2 > MaxAllocHugeSize / size)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("more than %d items in one list", *max)));
	*max = Max(2 * *max, 4);
	return repalloc_huge(items, *max * size);
}
