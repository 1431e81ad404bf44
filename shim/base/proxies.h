/*
 * The proxies that are trusted to say whom a request comes from.
 */
#ifndef PROXIES_H
#define PROXIES_H

#include <stdbool.h>

#include "base/config.h"

/* True if the textual address lies in one of the trusted networks. */
extern bool config_trusts(const struct config *config, const char *address);

#endif							/* PROXIES_H */
