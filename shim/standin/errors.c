/*
 * Errors: one that is thrown ends the check.
 *
 * Refusals are no errors: faults of manifests are collected.  What comes here
 * is what no check answers, as a number that no server stores, and warnings.
 */
#include "postgres.h"

#include <sys/resource.h>

#include "miscadmin.h"

#include "base/compat.h"
#include "base/format.h"
#include "standin/errors.h"

/* No more than half of what programs are usually given, or of what this is. */
#define MOST_STACK (4 * 1024 * 1024)

volatile sig_atomic_t InterruptPending = false;

sigjmp_buf	standin_errors_border;

static char last_error[1024];
static const char *stack_base;
static long most_stack;

/* The one that is being told of. */
static int	level;
static char *message;
static char *hint;

void
standin_errors_begin(void)
{
	struct rlimit limit;

	stack_base = __builtin_frame_address(0);
	most_stack = MOST_STACK;
	if (getrlimit(RLIMIT_STACK, &limit) == 0 &&
		limit.rlim_cur / 2 < MOST_STACK)
		most_stack = limit.rlim_cur / 2;
}

const char *
standin_errors_text(void)
{
	return last_error;
}

void
ProcessInterrupts(void)
{
}

bool
stack_is_too_deep(void)
{
	return labs(stack_base - (char *) __builtin_frame_address(0)) > most_stack;
}

void
check_stack_depth(void)
{
	if (stack_is_too_deep())
		ereport(ERROR, (errmsg("stack depth limit exceeded")));
}

bool
errstart(int elevel, const char *domain)
{
	level = elevel;
	message = hint = NULL;
	return elevel >= WARNING;
}

bool
errstart_cold(int elevel, const char *domain)
{
	return errstart(elevel, domain);
}

int
errcode(int sqlerrcode)
{
	return 0;
}

#define FORMATTED(text) \
	do { \
		va_list		args; \
		va_start(args, fmt); \
		(text) = ea_format(fmt, args); \
		va_end(args); \
	} while (0)

int
errmsg(const char *fmt,...)
{
	FORMATTED(message);
	return 0;
}

int
errmsg_internal(const char *fmt,...)
{
	FORMATTED(message);
	return 0;
}

int
errhint(const char *fmt,...)
{
	FORMATTED(hint);
	return 0;
}

/* As libpq prints what a server says */
void
errfinish(const char *filename, int lineno, const char *funcname)
{
	if (level >= ERROR)
	{
		strlcpy(last_error, message, sizeof(last_error));
		siglongjmp(standin_errors_border, 1);
	}
	fprintf(stderr, "WARNING:  %s\n", message);
	if (hint != NULL)
		fprintf(stderr, "HINT:  %s\n", hint);
}

/* A server that was built with assertions has what it compiles check, too. */
#ifdef USE_ASSERT_CHECKING
void
ExceptionalCondition(EA_COMPAT_ASSERTION)
{
	fprintf(stderr, "entityapi-shim: %s:%d: does not hold: %s\n", fileName,
			lineNumber, conditionName);
	abort();
}
#endif
