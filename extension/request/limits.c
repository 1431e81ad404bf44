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
					"The answer would be larger than %zu bytes; ask for less.",
					ea_limits_most());
}

static bool
is_within(MemoryContext mcxt, MemoryContext outer)
{
	while (mcxt != NULL && mcxt != outer)
		mcxt = mcxt->parent;
	return mcxt != NULL;
}

/*
 * What the request keeps, what its statements do, and twice its body, which
 * has come in and been handed over.  Called from within another statement, it
 * is part of that one's transaction, whose memory is not the request's.
 */
static Size
taken(EaRequest *req)
{
	Size		size = MemoryContextMemAllocated(req->mcxt, true);

	if (!is_within(req->mcxt, TopTransactionContext))
		size += MemoryContextMemAllocated(TopTransactionContext, true);
	return size + 2 * (Size) req->body_len;
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
