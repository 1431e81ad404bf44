#include "postgres.h"

#include <ctype.h>

#include "common/hashfn.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"

#include "cluster/shard_name.h"

/* `_` and eight digits of a hash, in a name that was too long. */
#define HASH_LENGTH 9

/* The text before the shard's number, if that has so many digits. */
static char *
before_number(const char *name, int digits)
{
	int			len = strlen(name);
	int			room = NAMEDATALEN - 1 - digits;

	if (len < room)
		return psprintf("%s_", name);
	len = pg_mbcliplen(name, len, room - HASH_LENGTH - 1);
	return psprintf("%.*s_%.8x_", len, name,
					hash_bytes((const unsigned char *) name, strlen(name)));
}

char *
ea_shard_name(const char *name, int64 shard)
{
	char	   *number = psprintf(INT64_FORMAT, shard);

	return psprintf("%s%s", before_number(name, strlen(number)), number);
}

/* A quote, of whatever language: no space, and nothing that names are of. */
static bool
is_quote(char c)
{
	return !isalnum((unsigned char) c) && c != '_' && c != '$' && c != ' ';
}

/* The text stands in the message as a whole, or before a shard's number. */
static bool
stands_in(const char *message, const char *text, bool number)
{
	size_t		len = strlen(text);

	for (const char *at = strstr(message, text); at != NULL;
		 at = strstr(at + 1, text))
	{
		size_t		digits = number ? strspn(at + len, "0123456789") : 0;

		if ((at == message || is_quote(at[-1])) && (!number || digits > 0) &&
			is_quote(at[len + digits]))
			return true;
	}
	return false;
}

bool
ea_shard_name_is_in(const char *message, const char *name)
{
	/* numbers begin at 102008, and the name is cut by how long they are */
	if (stands_in(message, name, false) ||
		stands_in(message, psprintf("%s_", name), true))
		return true;
	for (int digits = 6; digits <= MAXINT8LEN; digits++)
	{
		const char *cut = before_number(name, digits);

		if (strlen(name) + 1 + digits >= NAMEDATALEN &&
			stands_in(message, cut, true))
			return true;
	}
	return false;
}
