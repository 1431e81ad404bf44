/*
 * Content negotiation (JSON:API 1.1 "Content Negotiation", RFC 9110 section
 * 12.5.1).
 */
#ifndef EA_NEGOTIATION_H
#define EA_NEGOTIATION_H

#include "request/route.h"

/* Content type of the answers of a route, errors included. */
extern const char *ea_negotiation_answer(EaMedia media);

/*
 * Check Content-Type (where the request has a body) and Accept against the
 * route.  Throws 415 and 406.
 */
extern void ea_negotiation_check(EaRequest *req);

/* The body is form-encoded (EA_MEDIA_JSON_OR_FORM only). */
extern bool ea_negotiation_is_form(EaRequest *req);

#endif							/* EA_NEGOTIATION_H */
