/*
 * Values of types of time: RFC 3339 in documents, addresses and manifests.
 * The functions are those of a row of model/typelist.h.
 */
#ifndef EA_TIMES_H
#define EA_TIMES_H

#include "lib/stringinfo.h"

extern bool ea_times_read_date(const char *in, int len, bool in_document,
							   Datum *value, const char **why);
extern void ea_times_write_date(StringInfo buf, Datum value);

extern bool ea_times_read_datetime(const char *in, int len, bool in_document,
								   Datum *value, const char **why);
extern void ea_times_write_datetime(StringInfo buf, Datum value);

/* Without an offset */
extern bool ea_times_read_local(const char *in, int len, bool in_document,
								Datum *value, const char **why);
extern void ea_times_write_local(StringInfo buf, Datum value);

/*
 * What PostgreSQL has besides, as it is shown: infinity, and years before 1 or
 * beyond 9999.
 */
extern bool ea_times_read_odd_date(const char *in, int len, Datum *value);
extern bool ea_times_read_odd(const char *in, int len, bool local,
							  bool in_document, Datum *value);

#endif							/* EA_TIMES_H */
