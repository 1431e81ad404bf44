/*
 * The keys that ids are of.
 */
#ifndef EA_ID_KEY_H
#define EA_ID_KEY_H

#include "catalog/pg_type.h"

#include "model/types.h"

/* How the bytes are to be taken. */
typedef enum EaIdForm
{
	EA_ID_UUID,
	EA_ID_NUMBER,				/* an int64: of all integers, and of dates */
	EA_ID_TEXT,					/* an EaIdText * */
	EA_ID_PARTS					/* an EaIdParts * (model/id_parts.h) */
} EaIdForm;

/* Columns that a key may have. */
#define EA_ID_MOST_PARTS 8

/*
 * A column that has ids, or several: an entity's key, or what refers to it.
 *
 * An id of several parts is read as a record.  As a value of a statement it is
 * an EaIdParts *, and a list of such an EaIdRows *, which have the type's oids
 * all the same: ea_sqlbuf_value() writes a parameter for each part.
 */
typedef struct EaIdKey
{
	EaIdForm	form;
	const EaType *type;			/* of its values as they are read, compared
								 * and written */
	int			length;			/* characters of a text; 0: any number */
	int			nparts;			/* 0: it is one column */
	const struct EaIdKey *parts;
} EaIdKey;

#define ea_id_is_padded(key) ((key)->type->oid == BPCHAROID)
#define ea_id_is_date(key) ((key)->type->form == EA_FORM_DATE)

/* The key of all tables that the service makes. */
extern const EaIdKey ea_id_uuids;

/*
 * By the name of PostgreSQL's type, as stored definitions have it, with the
 * characters that it may have, 0 if any number.  NULL is the UUID; false for a
 * type that is no key's.
 */
extern bool ea_id_key(const char *type, int length, EaIdKey *key);

/* The key that has these parts, two or more. */
extern EaIdKey ea_id_key_of(const EaIdKey *parts, int nparts);

/* One refers to the other: their ids have the same bytes. */
extern bool ea_id_same_kind(const EaIdKey *a, const EaIdKey *b);

/* The widest key whose ids have the same bytes, and a letter for it. */
extern const EaIdKey *ea_id_kind(const EaIdKey *key, char *letter);

#endif							/* EA_ID_KEY_H */
