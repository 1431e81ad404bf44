/*
 * What introspect tells on standard output.
 */
#ifndef INTROSPECT_REPORT_H
#define INTROSPECT_REPORT_H

#include "command/introspect_catalog.h"

/* The rights that the role lacks, a line for each reason, and the sum. */
extern void introspect_report(const struct introspect_catalog *catalog);

#endif							/* INTROSPECT_REPORT_H */
