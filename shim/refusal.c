/*-------------------------------------------------------------------------
 *
 * refusal.c
 *	  The errors that the shim itself answers with (contract, section 1.2).
 *
 *-------------------------------------------------------------------------
 */
#include "refusal.h"

#define DEFINE_REFUSAL(name, status, code, title, detail) \
	const struct refusal refusal_##name = {#name, status, code, title, detail}
#define BAD_REQUEST(name, detail) \
	DEFINE_REFUSAL(name, 400, "MALFORMED_REQUEST", "Malformed request", detail)

DEFINE_REFUSAL(busy, 503, "UNAVAILABLE", "Service unavailable",
			   "The service is busy. Try again soon.");
DEFINE_REFUSAL(unavailable, 503, "UNAVAILABLE", "Service unavailable",
			   "The database cannot be reached. Try again soon.");
DEFINE_REFUSAL(timeout, 503, "UNAVAILABLE", "Service unavailable",
			   "The request took too long and was given up.");
DEFINE_REFUSAL(internal, 500, "INTERNAL_ERROR", "Internal error",
			   "The request failed for a reason that the log of the service "
			   "holds under the id of the request.");
DEFINE_REFUSAL(malformed, 400, "MALFORMED_REQUEST", "Malformed request",
			   "The request is not well-formed HTTP.");
DEFINE_REFUSAL(headers_too_large, 431, "HEADERS_TOO_LARGE",
			   "Request header fields too large",
			   "The headers are too many or too large.");
DEFINE_REFUSAL(version, 505, "HTTP_VERSION_NOT_SUPPORTED",
			   "HTTP Version Not Supported",
			   "Use HTTP/1.1.");

DEFINE_REFUSAL(target_too_long, 414, "URI_TOO_LONG", "URI too long",
			   "The target of the request is too long.");
DEFINE_REFUSAL(body_too_large, 413, "PAYLOAD_TOO_LARGE", "Payload too large",
			   "The body of the request is too large.");
DEFINE_REFUSAL(body_too_slow, 408, "REQUEST_TIMEOUT", "Request timeout",
			   "The body of the request did not arrive in time.");
DEFINE_REFUSAL(head_too_slow, 408, "REQUEST_TIMEOUT", "Request timeout",
			   "The head of the request did not arrive in time.");
DEFINE_REFUSAL(too_many, 429, "THROTTLED", "Too many requests",
			   "Too many connections from this address are open.");
DEFINE_REFUSAL(length_required, 411, "LENGTH_REQUIRED", "Length required",
			   "The request needs a Content-Length.");
DEFINE_REFUSAL(expectation, 400, "MALFORMED_REQUEST", "Malformed request",
			   "The only expectation that can be met is 100-continue.");
DEFINE_REFUSAL(not_found, 404, "NOT_FOUND", "Not found",
			   "There is nothing at this address.");
DEFINE_REFUSAL(method, 405, "METHOD_NOT_ALLOWED", "Method not allowed",
			   "This address takes GET, HEAD.");
BAD_REQUEST(bad_line, "The request line or a header line is not well-formed.");
BAD_REQUEST(bad_target, "The target of the request must be an absolute path.");
BAD_REQUEST(bad_encoding, "A header is not valid UTF-8.");
BAD_REQUEST(bad_host, "The request must have one valid Host header.");
BAD_REQUEST(repeated_header, "A header that must be unique is repeated.");
BAD_REQUEST(bad_length, "The Content-Length is not a plain number.");
BAD_REQUEST(bad_transfer, "The only transfer coding understood is chunked, in "
			"HTTP/1.1 and without a Content-Length.");
BAD_REQUEST(upgrade, "The protocol of the connection cannot be changed.");
BAD_REQUEST(bad_body, "The body of the request is incomplete or its chunks "
			"are not well-formed.");
