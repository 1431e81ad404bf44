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
					"The answer would be larger than %zu bytes; ask for less.",
					ea_limits_most());
}

/*
 * The memory that the request keeps, and twice its body, which has come in and
 * been handed over. work_mem limits the memory of its statements while they
 * run.
 */
static Size
taken(EaRequest *req)
{
	return MemoryContextMemAllocated(req->mcxt, true) +
		2 * (Size) req->body_len;
}

bool
ea_limits_fits(EaRequest *req, Size more)
{
	return taken(req) + more <= (Size) ea_guc_max_memory * 1024;
}

void
ea_limits_memory(EaRequest *req, Size more, const char *parameter)
{
	req->unseen = 0;
	if (likely(ea_limits_fits(req, more)))
		return;
	ea_errors_throw(req, EA_ERR_ANSWER_TOO_LARGE,
					parameter != NULL ? EA_AT_PARAMETER : EA_AT_NONE,
					parameter,
					"The request would take more than %d kB of memory; ask "
					"for less.", ea_guc_max_memory);
}
