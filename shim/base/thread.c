/*
 * The shim's threads, all with stacks of one size.
 */
#include "base/calls.h"
#include "base/thread.h"

void
thread_attributes(pthread_attr_t *attributes)
{
	pthread_attr_init(attributes);
	pthread_attr_setstacksize(attributes, THREAD_STACK);
}

bool
thread_begin(pthread_t *thread, void *(*routine) (void *), void *argument)
{
	pthread_attr_t attributes;
	int			failure;

	thread_attributes(&attributes);
	failure = calls_real.pthread_create(thread, &attributes, routine,
										argument);
	pthread_attr_destroy(&attributes);
	return failure == 0;
}
