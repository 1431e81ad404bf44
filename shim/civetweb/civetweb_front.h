/*
 * The front that is the library civetweb, by its documented interface and
 * nothing else: a thread for each connection.
 *
 * What the library reads in its own way, it hands over so: for a proxy in
 * front that normalises, or clients that are trusted (docs/shim.md).
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
