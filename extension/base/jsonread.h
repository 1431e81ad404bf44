/*
 * JSON text to a tree, strictly, with numbers kept as text.
 *
 * The grammar is PostgreSQL's own parser (pg_parse_json); texts that it lets
 * pass and this API does not are refused here: duplicate keys, a byte-order
 * mark, invalid UTF-8, U+0000, and nesting beyond a depth.  The tree lives in
 * the memory context that is current during the call.
 */
#ifndef EA_JSONREAD_H
#define EA_JSONREAD_H

typedef enum EaJsonKind
{
	EA_JSON_NULL,
	EA_JSON_BOOL,
	EA_JSON_NUMBER,
	EA_JSON_STRING,
	EA_JSON_ARRAY,
	EA_JSON_OBJECT
} EaJsonKind;

typedef struct EaJson EaJson;

struct EaJson
{
	EaJsonKind	kind;
	bool		truth;			/* BOOL */
	int			len;			/* STRING, NUMBER: bytes of str */
	char	   *text;			/* STRING unescaped, NUMBER as written; both
								 * NUL-terminated */
	int			count;			/* ARRAY, OBJECT: number of members */
	EaJson	   *first;			/* ARRAY, OBJECT: first member */
	EaJson	   *next;			/* next member of the same parent */
	char	   *key;			/* name, for a member of an object */
	int			start;			/* the value's own str in the input: */
	int			end;			/* [start, end) */
};

typedef struct EaJsonFault
{
	const char *message;		/* a clause, for the end of a sentence */
	int			offset;			/* byte of the input */
	bool		too_deep;		/* it may be JSON, but for its nesting */
} EaJsonFault;

/* How deep a document of the API may nest by default. */
#define EA_JSON_MAX_DEPTH 64

/*
 * Parse len bytes.  Returns the root, or NULL with *fault filled.  Never
 * throws for bad input.
 */
extern EaJson *ea_jsonread_parse(const char *str, int len, int max_depth,
								 EaJsonFault *fault);

/* Member of an object by name, or NULL (also when object is no object). */
extern EaJson *ea_jsonread_get(const EaJson *object, const char *name);

/* Text of a string member, or NULL when absent or no string. */
extern const char *ea_jsonread_string(const EaJson *object, const char *name);

/* Truth of a boolean member, or otherwise when absent or no boolean. */
extern bool ea_jsonread_bool(const EaJson *object, const char *name,
							 bool otherwise);

/* Value of an integer member within int32, or otherwise. */
extern int	ea_jsonread_int(const EaJson *object, const char *name,
							int otherwise);

/* "string", "object", ...: for messages. */
extern const char *ea_jsonread_kind(const EaJson *value);

#endif							/* EA_JSONREAD_H */
