/*
 * Here none is made up where there is none: a request has its own id already.
 * serve/spans.c does, for those that it sends to a collector.
 */
#include <string.h>

#include "http/trace.h"

/* version "-" trace-id "-" parent-id "-" flags */
#define TRACE_AT 3
#define SPAN_AT 36
#define FLAGS_AT 53
#define HEADER_LENGTH 55

/* Lower-case hexadecimal digits; where "not_zero", not all of them 0. */
static bool
is_hex(const char *digits, size_t length, bool not_zero)
{
	bool		zero = true;
	size_t		i;

	for (i = 0; i < length; i++)
	{
		if (!((digits[i] >= '0' && digits[i] <= '9') ||
			  (digits[i] >= 'a' && digits[i] <= 'f')))
			return false;
		zero = zero && digits[i] == '0';
	}
	return !(zero && not_zero);
}

/*
 * Version 00 is exactly that long; later ones may go on behind another dash,
 * and ff is none.
 */
bool
trace_read(struct trace *trace, const char *value, size_t length)
{
	trace->trace_id[0] = '\0';
	trace->span_id[0] = '\0';
	if (length < HEADER_LENGTH ||
		!is_hex(value, 2, false) || memcmp(value, "ff", 2) == 0 ||
		(length > HEADER_LENGTH &&
		 (memcmp(value, "00", 2) == 0 || value[HEADER_LENGTH] != '-')))
		return false;
	if (value[TRACE_AT - 1] != '-' || value[SPAN_AT - 1] != '-' ||
		value[FLAGS_AT - 1] != '-' ||
		!is_hex(value + TRACE_AT, TRACE_ID_SIZE - 1, true) ||
		!is_hex(value + SPAN_AT, SPAN_ID_SIZE - 1, true) ||
		!is_hex(value + FLAGS_AT, 2, false))
		return false;
	memcpy(trace->trace_id, value + TRACE_AT, TRACE_ID_SIZE - 1);
	trace->trace_id[TRACE_ID_SIZE - 1] = '\0';
	memcpy(trace->span_id, value + SPAN_AT, SPAN_ID_SIZE - 1);
	trace->span_id[SPAN_ID_SIZE - 1] = '\0';

	/* the last bit of the flags */
	trace->sampled = strchr("13579bdf", value[FLAGS_AT + 1]) != NULL;
	return true;
}
