/*
 * Limits of one request: bytes of its answer, and memory.
 *
 * Code that writes a piece of an answer, or keeps values read for it, asks
 * here on the way, so that a request that would take too much ends long before
 * it has.  The parameter is the one that can make the answer smaller, the
 * place of the refusal: "include", "page[size]"; NULL: there is none.
 */
#ifndef EA_LIMITS_H
#define EA_LIMITS_H

#include "base/compat.h"
#include "base/guc.h"
#include "request/request.h"

/* So much may be kept between two looks at the request's memory. */
#define EA_LIMITS_LOOK ((Size) 1024 * 1024)

/*
 * An answer is there so many times at most: as it is put together, as it is
 * handed over, and as it is sent.
 */
#define EA_LIMITS_COPIES 3

/* Bytes that an answer may have. */
static inline Size
ea_limits_most(void)
{
	return Min((Size) ea_guc_max_answer,
			   (Size) ea_guc_max_memory * 1024 / EA_LIMITS_COPIES);
}

/* Refuse an answer of more bytes than are allowed. */
extern EA_NORETURN void ea_limits_refuse(EaRequest *req,
										  const char *parameter);

static inline void
ea_limits_answer(EaRequest *req, Size len, const char *parameter)
{
	if (unlikely(len > ea_limits_most()))
		ea_limits_refuse(req, parameter);
}

/*
 * Refuse a request that has taken more memory than is allowed, or would with
 * so many bytes more.  This walks the contexts of the request.
 */
extern void ea_limits_memory(EaRequest *req, Size more,
							 const char *parameter);

/* The same as a question: there is room for so many bytes more. */
extern bool ea_limits_fits(EaRequest *req, Size more);

/*
 * So many bytes are kept from now on, or are needed for a while: said before
 * they are taken wherever they may be many.  Bytes are counted, not items, as
 * one value may have as many as a thousand others.
 */
static inline void
ea_limits_keep(EaRequest *req, Size size, const char *parameter)
{
	req->unseen += size;
	if (unlikely(req->unseen >= EA_LIMITS_LOOK))
		ea_limits_memory(req, size, parameter);
}

#endif							/* EA_LIMITS_H */
