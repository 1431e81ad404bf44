/*
 * The table of routes: one row says all about each.
 */
#ifndef EA_ROUTES_H
#define EA_ROUTES_H

#include "request/route.h"

extern const EaRoute ea_routes[];
extern const int ea_nroutes;

#endif							/* EA_ROUTES_H */
