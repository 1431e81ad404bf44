/*
 * The id of a new resource, where a key has several parts: its fields say
 * them, or the id says the fields.
 */
#ifndef EA_KEY_PARTS_H
#define EA_KEY_PARTS_H

#include "write/input.h"

/* All columns of the field are parts of the key: an id says its value. */
extern bool ea_key_parts_say(const EaField *field);

/* What the client's id says of such a field. */
extern Datum ea_key_parts_value(EaInput *input, const EaField *field);
extern void ea_key_parts_target(EaInput *input, const EaField *field,
								EaId *target);

typedef enum EaKeyParts
{
	EA_PARTS_NONE,				/* there is no id: some parts are not given */
	EA_PARTS_MADE,
	EA_PARTS_DIFFER				/* two fields, or a field and the id */
} EaKeyParts;

/*
 * The id by the client's own, if there is one, and by the fields that are
 * given; *differing is a field that says something else.
 */
extern EaKeyParts ea_key_parts_make(EaInput *input, EaId *id,
									const EaField **differing);

/* The same by fields that hooks may have set, whatever it was before. */
extern void ea_key_parts_remake(EaInput *input, EaId *id);

/* Some field that has parts of the key is given. */
extern bool ea_key_parts_given(const EaInput *input);

#endif							/* EA_KEY_PARTS_H */
