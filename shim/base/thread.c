#include "base/thread.h"

bool
thread_begin(pthread_t *thread, void *(*routine) (void *), void *argument)
{
	pthread_attr_t attributes;
	int			failure;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, THREAD_STACK);
	failure = pthread_create(thread, &attributes, routine, argument);
	pthread_attr_destroy(&attributes);
	return failure == 0;
}
