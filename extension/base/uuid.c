#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/timestamp.h"

#include "base/uuid.h"

#define UNIX_EPOCH_OFFSET \
	(((int64) POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY)

/*
 * Eight random bytes.  A call of pg_strong_random() costs much the same for
 * eight bytes as for some hundred, and ids are no secrets that must not lie in
 * memory ahead of their use.  Secrets have random bytes of their own.
 */
static void
take_random(unsigned char *bytes)
{
	static unsigned char pool[512];
	static int	left = 0;

	if (left == 0)
	{
		if (!pg_strong_random(pool, sizeof(pool)))
			ereport(ERROR,
					(errcode(ERRCODE_INTERNAL_ERROR),
					 errmsg("could not generate random values")));
		left = sizeof(pool);
	}
	left -= 8;
	memcpy(bytes, pool + left, 8);
}

/*
 * 48 bits of milliseconds, then 12 bits of the fraction of a millisecond
 * (RFC 9562 section 6.2, method 3), so that ids made one after the other by
 * one backend sort in that order.
 */
void
ea_uuid_make(pg_uuid_t *uuid)
{
	static int64 last = 0;
	int64		now = GetCurrentTimestamp() + UNIX_EPOCH_OFFSET;
	int64		tick;
	uint64		ms;

	/* a tick is 1/4096 of a millisecond */
	tick = (now / 1000) * 4096 + (now % 1000) * 4096 / 1000;
	if (tick <= last)
		tick = last + 1;
	last = tick;
	ms = tick >> 12;

	take_random(uuid->data + 8);
	for (int i = 0; i < 6; i++)
		uuid->data[i] = (ms >> (40 - 8 * i)) & 0xFF;
	uuid->data[6] = 0x70 | ((tick >> 8) & 0x0F);
	uuid->data[7] = tick & 0xFF;
	uuid->data[8] = 0x80 | (uuid->data[8] & 0x3F);
}

int
ea_uuid_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

bool
ea_uuid_parse(const char *str, int len, pg_uuid_t *uuid)
{
	const char *p = str;

	if (len != EA_UUID_TEXT)
		return false;
	for (int i = 0; i < UUID_LEN; i++)
	{
		int			high;
		int			low;

		if (i == 4 || i == 6 || i == 8 || i == 10)
		{
			if (*p++ != '-')
				return false;
		}
		high = ea_uuid_hex_digit(*p++);
		low = ea_uuid_hex_digit(*p++);
		if (high < 0 || low < 0)
			return false;
		uuid->data[i] = high << 4 | low;
	}
	return true;
}

void
ea_uuid_format(const pg_uuid_t *uuid, char *out)
{
	static const char digits[] = "0123456789abcdef";

	/* where the digits of each byte stand */
	static const uint8 places[UUID_LEN] = {
		0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34
	};

	for (int i = 0; i < UUID_LEN; i++)
	{
		out[places[i]] = digits[uuid->data[i] >> 4];
		out[places[i] + 1] = digits[uuid->data[i] & 0x0F];
	}
	out[8] = out[13] = out[18] = out[23] = '-';
}

char *
ea_uuid_text(const pg_uuid_t *uuid)
{
	char	   *str = palloc(EA_UUID_TEXT + 1);

	ea_uuid_format(uuid, str);
	str[EA_UUID_TEXT] = '\0';
	return str;
}

int
ea_uuid_compare(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(pg_uuid_t));
}
