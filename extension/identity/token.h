/*
 * Access tokens for service accounts.
 */
#ifndef EA_TOKEN_H
#define EA_TOKEN_H

#include "request/body.h"
#include "request/request.h"

/* Without a credential. */
extern void ea_token_grant(EaRequest *req);

/* Its body, to be described. */
extern const EaBodyForm ea_token_form;

#endif							/* EA_TOKEN_H */
