/*
 * From one attribute's type to another's.
 */
#ifndef EA_CONVERT_H
#define EA_CONVERT_H

#include "ddl/tables.h"

typedef enum EaDdlChange
{
	EA_DDL_SAME,
	EA_DDL_WIDER,				/* every value has a place */
	EA_DDL_NARROWER,			/* some values may not */
	EA_DDL_OTHER				/* no way from one to the other */
} EaDdlChange;

/* From one attribute's type to another's. */
extern EaDdlChange ea_ddl_compare_types(const EaDdlColumn *from,
										const EaDdlColumn *to);

/* The same of columns of ids. */
extern EaDdlChange ea_ddl_compare_ids(const EaDdlColumn *from,
									  const EaDdlColumn *to);

/* The value in SQL as one of the new type. */
extern const char *ea_ddl_convert(const EaDdlColumn *from,
								  const EaDdlColumn *to, const char *value);

/* SQL that holds for values with a place in the new type; NULL: for all. */
extern const char *ea_ddl_fits(const EaDdlColumn *from, const EaDdlColumn *to,
							   const char *value);

/* SQL that holds for values that are cut or rounded. */
extern const char *ea_ddl_cuts(const EaDdlColumn *from, const EaDdlColumn *to,
							   const char *value);

#endif							/* EA_CONVERT_H */
