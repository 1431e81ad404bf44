/*-------------------------------------------------------------------------
 *
 * refusal.h
 *	  The errors that the shim itself answers with.
 *
 *-------------------------------------------------------------------------
 */
#ifndef REFUSAL_H
#define REFUSAL_H

/* Why a request is answered without, or in spite of, the database. */
struct refusal
{
	const char *kind;			/* its name in the metrics */
	int			status;
	const char *code;
	const char *title;
	const char *detail;
};

extern const struct refusal refusal_busy;
extern const struct refusal refusal_unavailable;
extern const struct refusal refusal_timeout;
extern const struct refusal refusal_internal;
extern const struct refusal refusal_malformed;
extern const struct refusal refusal_headers_too_large;
extern const struct refusal refusal_version;
extern const struct refusal refusal_target_too_long;
extern const struct refusal refusal_body_too_large;
extern const struct refusal refusal_body_too_slow;
extern const struct refusal refusal_head_too_slow;
extern const struct refusal refusal_too_many;
extern const struct refusal refusal_length_required;
extern const struct refusal refusal_expectation;
extern const struct refusal refusal_bad_line;
extern const struct refusal refusal_bad_target;
extern const struct refusal refusal_bad_encoding;
extern const struct refusal refusal_bad_host;
extern const struct refusal refusal_repeated_header;
extern const struct refusal refusal_bad_length;
extern const struct refusal refusal_bad_transfer;
extern const struct refusal refusal_upgrade;
extern const struct refusal refusal_bad_body;
extern const struct refusal refusal_not_found;
extern const struct refusal refusal_method;

#endif							/* REFUSAL_H */
