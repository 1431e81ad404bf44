/*-------------------------------------------------------------------------
 *
 * media.h
 *	  Content negotiation (JSON:API 1.1 "Content Negotiation", RFC 9110
 *	  section 12.5.1).
 *
 * extension/media.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef EA_MEDIA_H
#define EA_MEDIA_H

#include "route.h"

/* Content type of the answers of a route, errors included. */
extern const char *ea_media_answer(EaMedia media);

/*
 * Check Content-Type (where the request has a body) and Accept against the
 * route.  Throws 415 and 406.
 */
extern void ea_media_check(EaRequest *req);

/* The body is form-encoded (EA_MEDIA_JSON_OR_FORM only). */
extern bool ea_media_is_form(EaRequest *req);

#endif							/* EA_MEDIA_H */
