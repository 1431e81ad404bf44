/*
 * Stored definitions to structs; for catalog.c alone.
 */
#ifndef EA_CATALOG_LOAD_H
#define EA_CATALOG_LOAD_H

#include "model/catalog.h"

/*
 * Both read the JSON text that manifest/compile.c wrote and allocate in
 * catalog->mcxt.
 */
extern EaEntity *ea_catalog_load_entity(EaCatalog *catalog,
										const char *definition);
extern void ea_catalog_load_service(EaCatalog *catalog,
									const char *definition);

#endif							/* EA_CATALOG_LOAD_H */
