/*
 * What one request may take: bytes of its answer, and memory.
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "request/errors.h"
#include "request/limits.h"

void
ea_limits_refuse(EaRequest *req, const char *parameter)
{
	ea_errors_throw(req, EA_ERR_ANSWER_TOO_LARGE,
					parameter != NULL ? EA_AT_PARAMETER : EA_AT_NONE,
					parameter,
					"The answer would be larger than %d bytes; ask for less.",
					ea_guc_max_answer);
}

void
ea_limits_memory(EaRequest *req, const char *parameter)
{
	Size		allocated = MemoryContextMemAllocated(req->mcxt, true);

	if (likely(allocated <= (Size) ea_guc_max_memory * 1024))
		return;
	ea_errors_throw(req, EA_ERR_ANSWER_TOO_LARGE,
					parameter != NULL ? EA_AT_PARAMETER : EA_AT_NONE,
					parameter,
					"The request would take more than %d kB of memory; ask "
					"for less.", ea_guc_max_memory);
}
