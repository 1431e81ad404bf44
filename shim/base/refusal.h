/*
 * The errors that the shim itself answers with.
 */
#ifndef REFUSAL_H
#define REFUSAL_H

#include <stdbool.h>

/* Why a request is answered without, or in spite of, the database. */
struct refusal
{
	const char *kind;			/* its name in the metrics */
	int			status;
	const char *code;
	const char *title;
	const char *detail;
};

/*
 * All of them: the name in the metrics, status, code, title and detail of the
 * error document.
 */
#define REFUSALS(REFUSAL) \
	REFUSAL(busy, 503, "UNAVAILABLE", "Service unavailable", \
			"The service is busy. Try again soon.") \
	REFUSAL(unavailable, 503, "UNAVAILABLE", "Service unavailable", \
			"The database cannot be reached. Try again soon.") \
	REFUSAL(timeout, 503, "UNAVAILABLE", "Service unavailable", \
			"The request took too long and was given up.") \
	REFUSAL(outcome_unknown, 503, "OUTCOME_UNKNOWN", "Outcome unknown", \
			"The database was lost, or took too long, while the request was " \
			"carried out: it may have been done. Look what is there before " \
			"it is sent again.") \
	REFUSAL(internal, 500, "INTERNAL_ERROR", "Internal error", \
			"The request failed for a reason that the log of the service " \
			"holds under the id of the request.") \
	REFUSAL(malformed, 400, "MALFORMED_REQUEST", "Malformed request", \
			"The request is not well-formed HTTP.") \
	REFUSAL(headers_too_large, 431, "HEADERS_TOO_LARGE", \
			"Request header fields too large", \
			"The headers are too many or too large.") \
	REFUSAL(version, 505, "HTTP_VERSION_NOT_SUPPORTED", \
			"HTTP version not supported", \
			"Use HTTP/1.1.") \
	REFUSAL(target_too_long, 414, "URI_TOO_LONG", "URI too long", \
			"The target of the request is too long.") \
	REFUSAL(body_too_large, 413, "PAYLOAD_TOO_LARGE", "Payload too large", \
			"The body of the request is too large.") \
	REFUSAL(body_too_slow, 408, "REQUEST_TIMEOUT", "Request timeout", \
			"The body of the request did not arrive in time.") \
	REFUSAL(head_too_slow, 408, "REQUEST_TIMEOUT", "Request timeout", \
			"The head of the request did not arrive in time.") \
	REFUSAL(too_many, 429, "THROTTLED", "Too many requests", \
			"Too many connections from this address are open.") \
	REFUSAL(length_required, 411, "LENGTH_REQUIRED", "Length required", \
			"The request needs a Content-Length.") \
	REFUSAL(expectation, 400, "MALFORMED_REQUEST", "Malformed request", \
			"The only expectation that can be met is 100-continue.") \
	REFUSAL(not_found, 404, "NOT_FOUND", "Not found", \
			"There is nothing at this address.") \
	REFUSAL(method, 405, "METHOD_NOT_ALLOWED", "Method not allowed", \
			"This address takes GET, HEAD.") \
	REFUSAL(bad_line, 400, "MALFORMED_REQUEST", "Malformed request", \
			"The request line or a header line is not well-formed.") \
	REFUSAL(bad_target, 400, "MALFORMED_REQUEST", "Malformed request", \
			"The target of the request must be an absolute path, in UTF-8.") \
	REFUSAL(bad_encoding, 400, "MALFORMED_REQUEST", "Malformed request", \
			"A header is not valid UTF-8.") \
	REFUSAL(bad_host, 400, "MALFORMED_REQUEST", "Malformed request", \
			"The request must have one valid Host header.") \
	REFUSAL(repeated_header, 400, "MALFORMED_REQUEST", "Malformed request", \
			"A header that must be unique is repeated.") \
	REFUSAL(bad_length, 400, "MALFORMED_REQUEST", "Malformed request", \
			"The Content-Length is not a plain number.") \
	REFUSAL(bad_transfer, 400, "MALFORMED_REQUEST", "Malformed request", \
			"The only transfer coding understood is chunked, in HTTP/1.1 " \
			"and without a Content-Length.") \
	REFUSAL(encoding, 415, "UNSUPPORTED_MEDIA_TYPE", \
			"Unsupported media type", \
			"Bodies are taken as they are, without a Content-Encoding.") \
	REFUSAL(upgrade, 400, "MALFORMED_REQUEST", "Malformed request", \
			"The protocol of the connection cannot be changed.") \
	REFUSAL(bad_body, 400, "MALFORMED_REQUEST", "Malformed request", \
			"The body of the request is incomplete or its chunks are not " \
			"well-formed.")

#define DECLARE_REFUSAL(name, status, code, title, detail) \
	extern const struct refusal refusal_##name;
REFUSALS(DECLARE_REFUSAL)

/* Whether the same request may be sent again soon, without more ado. */
extern bool refusal_passes(const struct refusal *refusal);

#endif							/* REFUSAL_H */
