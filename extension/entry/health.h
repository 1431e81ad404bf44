/*
 * Health, liveness and readiness.
 */
#ifndef EA_HEALTH_H
#define EA_HEALTH_H

#include "request/request.h"

/* GET /actuator/health */
extern void ea_health_show(EaRequest *req);

/* GET /actuator/health/readiness: the same of a cluster */
extern void ea_health_ready(EaRequest *req);

/* GET /actuator/health/liveness */
extern void ea_health_probe(EaRequest *req);

#endif							/* EA_HEALTH_H */
