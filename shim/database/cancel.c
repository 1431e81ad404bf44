#include <stdlib.h>

#include "database/cancel.h"

struct cancellation
{
	struct task task;
	PGcancel   *handle;
};

static void
run(struct task *task)
{
	char		error[256];

	PQcancel(((struct cancellation *) task)->handle, error, sizeof(error));
}

static void
done(struct task *task)
{
	struct cancellation *cancellation = (struct cancellation *) task;

	PQfreeCancel(cancellation->handle);
	free(cancellation);
}

void
cancel_later(struct helpers *helpers, PGconn *connection)
{
	struct cancellation *cancellation = calloc(1, sizeof(*cancellation));

	if (cancellation == NULL)
		return;
	cancellation->task.run = run;
	cancellation->task.done = done;
	cancellation->handle = PQgetCancel(connection);
	if (cancellation->handle == NULL ||
		!helpers_give(helpers, &cancellation->task))
		done(&cancellation->task);
}
