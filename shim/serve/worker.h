/*
 * One connection of a client: its requests and their answers.
 *
 * civetweb calls back for everything that happens on a connection, in the
 * thread that serves it.
 */
#ifndef WORKER_H
#define WORKER_H

#include <civetweb.h>

#include "serve/door.h"

/* What civetweb calls; the data of its context is a struct door. */
extern const struct mg_callbacks worker_callbacks;

#endif							/* WORKER_H */
