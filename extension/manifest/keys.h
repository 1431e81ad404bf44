/*
 * Members of a JSON object into a struct, by a table of known keys.
 */
#ifndef EA_KEYS_H
#define EA_KEYS_H

#include "base/jsonread.h"
#include "manifest/manifest.h"

typedef enum EaKeyForm
{
	EA_KEY_STRING,				/* char *, not empty */
	EA_KEY_TEXT,				/* char *, may be empty */
	EA_KEY_BOOL,				/* bool */
	EA_KEY_COUNT,				/* int, from 0 */
	EA_KEY_NUMBER,				/* int, from 1 */
	EA_KEY_CHOICE,				/* int, index into choices */
	EA_KEY_NAMES,				/* List of char * */
	EA_KEY_OBJECT,				/* const EaJson * */
	EA_KEY_ARRAY,				/* const EaJson * */
	EA_KEY_VALUE				/* const EaJson *, of any kind */
} EaKeyForm;

#define EA_KEY_REQUIRED 0x01

/* A key that an object may have, and where its value goes. */
typedef struct EaKey
{
	const char *name;
	EaKeyForm	form;
	int			flags;
	size_t		offset;
	const char *const *choices; /* CHOICE: NULL-terminated */
} EaKey;

/*
 * Read the members of an object into a struct by a table of keys; every
 * other key, every missing required one and every wrong kind is a fault.
 * False when there was one.
 */
extern bool ea_manifest_keys(EaManifest *m, const char *label,
							 const char *pointer, const EaJson *object,
							 const EaKey *keys, int nkeys, void *into);

/*
 * A list of operations, of the first so many, to a mask of EaOperation; faults
 * are noted.
 */
extern int	ea_manifest_operations(EaManifest *m, const char *label,
								   const char *pointer, const EaJson *list,
								   int known);

#endif							/* EA_KEYS_H */
