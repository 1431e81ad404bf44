/*
 * Large answers are compressed by threads of their own, beside the loop.
 */
#ifndef PRESS_H
#define PRESS_H

#include <stdbool.h>

#include "serve/exchange.h"

struct press;

/* "pressed" is called, by another thread, when there is one to take. */
extern struct press *press_create(void (*pressed) (void *argument),
								  void *argument);

/* Whether the answer of an exchange has come here; then it comes back. */
extern bool press_give(struct press *press, struct exchange *exchange);

/* One that has been done, or NULL. */
extern struct exchange *press_take(struct press *press);

/* Ends the threads; what has not been taken is given to "rest". */
extern void press_destroy(struct press *press,
						  void (*rest) (struct exchange *exchange));

#endif							/* PRESS_H */
