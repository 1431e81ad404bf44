/*
 * Ids of several parts.
 *
 * The parts that an id keeps are of one kind whatever columns they are of:
 * integers are all of the widest type, and texts are text, but for those that
 * are padded.  So ids are equal by their bytes also where the columns of a
 * reference are of other types than those of the key.
 */
#ifndef EA_ID_PARTS_H
#define EA_ID_PARTS_H

#include "model/id.h"

typedef struct EaIdParts
{
	int			len;
	const char *canonical;
	int			n;
	const EaIdKey *kinds[EA_ID_MOST_PARTS];
	EaId		ids[EA_ID_MOST_PARTS];	/* of these kinds */
} EaIdParts;

/* A list of ids as a value of a statement. */
typedef struct EaIdRows
{
	int			nparts;
	Datum		arrays[EA_ID_MOST_PARTS];	/* with the values of a part */
	Oid			types[EA_ID_MOST_PARTS];
} EaIdRows;

/* The parts that the bytes of an id stand for. */
static inline const EaIdParts *
ea_id_parts(const EaId *id)
{
	const EaIdParts *parts;

	memcpy(&parts, id, sizeof(parts));
	return parts;
}

static inline void
ea_id_of_parts(const EaIdParts *parts, EaId *id)
{
	memset(id, 0, sizeof(EaId));
	memcpy(id, &parts, sizeof(parts));
}

extern bool ea_id_parts_parse(EaRequest *req, const EaIdKey *key,
							  const char *str, int len, EaId *id);
extern void ea_id_parts_nobody(EaRequest *req, const EaIdKey *key, EaId *id);

/* Of a record with the values of the columns, none of them null. */
extern void ea_id_parts_take(EaRequest *req, const EaIdKey *key, Datum value,
							 EaId *id);

/* Of values of the columns' types, by the kinds of model/id_parts.c. */
extern void ea_id_parts_make(EaRequest *req, const EaIdKey *key,
							 const Datum *values, EaId *id);

extern bool ea_id_parts_fit(const EaIdKey *key, const EaId *id);
extern int	ea_id_parts_compare(const EaIdKey *key, const EaId *a,
								const EaId *b);

/* palloc'd, with an array for each part */
extern EaIdRows *ea_id_parts_rows(const EaIdKey *key, const EaId *ids, int n);

/* Number i, as a value of its kind's type. */
#define ea_id_parts_type(parts, i) ((parts)->kinds[i]->type->oid)
extern Datum ea_id_parts_datum(const EaIdParts *parts, int i);

#endif							/* EA_ID_PARTS_H */
