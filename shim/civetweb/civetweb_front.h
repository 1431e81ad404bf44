/*
 * The front that is the library civetweb, by its documented interface and
 * nothing else: a thread for each connection.
 *
 * The library reads some bytes in its own way, and they are handed over so: it
 * is for use behind a proxy that normalises, or for clients that are trusted
 * (docs/shim.md).
 */
#ifndef CIVETWEB_FRONT_H
#define CIVETWEB_FRONT_H

#include "http/front.h"

/* See front_create of http/front.h; "connections" are its threads. */
extern struct front *civetweb_front_create(const struct config *config,
										   long connections,
										   struct loop *loop,
										   const struct service *service);

#endif							/* CIVETWEB_FRONT_H */
