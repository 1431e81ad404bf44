/*
 * Labels of enumerations of an application, as they are at the moment.
 */
#ifndef EA_LABELS_H
#define EA_LABELS_H

#include "openapi/writer.h"

/* `,"enum":[...]` of a field with `enum: database`. */
extern void ea_openapi_labels(EaApi *api, const EaField *field);

/*
 * Another text, palloc'd, whenever labels of the database are others: they
 * come and go without a word to the service.
 */
extern char *ea_openapi_labels_state(const EaCatalog *catalog);

#endif							/* EA_LABELS_H */
