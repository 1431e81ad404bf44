/*
 * The rest of a document: its linkage and the resources it includes.
 */
#ifndef EA_INCLUDE_H
#define EA_INCLUDE_H

#include "read/document.h"

/* Fetch linkage and included resources. */
extern void ea_document_complete(EaDocument *doc);

#endif							/* EA_INCLUDE_H */
