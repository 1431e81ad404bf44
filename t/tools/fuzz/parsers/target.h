/*
 * Parsers as targets of a fuzzer, and what they have in common.
 *
 * A target takes any bytes and either comes back or, where what it was given
 * is refused by an error, throws one that it may throw.  Everything else is a
 * fault, which ends the process; so is memory that stays behind.
 */
#ifndef TARGET_H
#define TARGET_H

#include "postgres.h"

#include "base/compat.h"
#include "request/request.h"

/* SQLSTATEs that a target may throw, at most. */
#define MAX_THROWN 4

typedef struct Target
{
	const char *name;
	void		(*run) (const char *bytes, int len);
	int			thrown[MAX_THROWN];
} Target;

extern const Target form_targets[];
extern const int nform_targets;
extern const Target language_targets[];
extern const int nlanguage_targets;

/* What must hold does not: say it and end the process. */
extern EA_NORETURN void target_fault(const char *what, const char *more);

#define must_hold(condition, more) \
	((condition) ? (void) 0 : target_fault(#condition, (more)))

/*
 * The bytes as the text that they would have to be to come as far: valid
 * UTF-8 without NUL, wrong bytes replaced.  palloc'd, with a NUL behind it
 * and nothing more.
 */
extern char *target_text(const char *bytes, int len);

/* An empty request, with all that errors need. */
extern EaRequest *target_request(void);

#endif							/* TARGET_H */
