/*
 * What one request may take: bytes of its answer, and memory.
 *
 * Whoever writes a piece of an answer, or keeps what was read for it, asks
 * here on the way, so that a request that would take too much ends long before
 * it has.  The parameter is the one that can make the answer smaller, the
 * place of the refusal: "include", "page[size]"; NULL: there is none.
 */
#ifndef EA_LIMITS_H
#define EA_LIMITS_H

#include "base/compat.h"
#include "base/guc.h"
#include "request/request.h"

/* Refuse an answer of more bytes than are allowed. */
extern EA_NORETURN void ea_limits_refuse(EaRequest *req,
										  const char *parameter);

static inline void
ea_limits_answer(EaRequest *req, Size len, const char *parameter)
{
	if (unlikely(len > (Size) ea_guc_max_answer))
		ea_limits_refuse(req, parameter);
}

/*
 * Refuse a request that has taken more memory than is allowed.  This walks
 * the contexts of the request, so it is asked once for many rows.
 */
extern void ea_limits_memory(EaRequest *req, const char *parameter);

#endif							/* EA_LIMITS_H */
