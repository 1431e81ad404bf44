/*
 * An id, or a part of one, that is of one column.
 *
 * The canonical form of a text differs: only one that is an id by itself has
 * `~3` before it where no address could end in it.  `whole` says that it is.
 */
#ifndef EA_ID_PART_H
#define EA_ID_PART_H

#include "model/id.h"

extern bool ea_id_part_parse(EaRequest *req, const EaIdKey *key,
							 const char *str, int len, bool whole, EaId *id);
extern void ea_id_part_nobody(EaRequest *req, const EaIdKey *key, EaId *id);
extern void ea_id_part_take(EaRequest *req, const EaIdKey *key, Datum value,
							bool whole, EaId *id);
extern bool ea_id_part_fits(const EaIdKey *key, const EaId *id);
extern Datum ea_id_part_datum(const EaIdKey *key, const EaId *id);
extern void ea_id_part_append(StringInfo out, const EaIdKey *key,
							  const EaId *id);
/* An array of their values, of key->type->array_oid; palloc'd. */
extern Datum ea_id_part_array(const EaIdKey *key, const EaId *ids, int n);

extern int	ea_id_part_bytes(const EaIdKey *key, const EaId *id);

/* The order of the values, of texts by their bytes: for people to read. */
extern int	ea_id_part_compare(const EaIdKey *key, const EaId *a,
							   const EaId *b);

#endif							/* EA_ID_PART_H */
