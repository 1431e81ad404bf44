#include <arpa/inet.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/address.h"

/* RFC 4291, section 2.5.5.2 */
static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};

#define MAPPED_BITS 96

static int
bits_of(int family)
{
	return family == AF_INET6 ? 128 : 32;
}

static bool
is_mapped(const struct address *address)
{
	return address->family == AF_INET6 &&
		memcmp(address->bytes, mapped, sizeof(mapped)) == 0;
}

static void
unmap(struct address *address)
{
	address->family = AF_INET;
	memmove(address->bytes, address->bytes + sizeof(mapped), 4);
	memset(address->bytes + 4, 0, sizeof(address->bytes) - 4);
}

static bool
read_plain(const char *text, struct address *address)
{
	memset(address, 0, sizeof(*address));
	address->family = strchr(text, ':') ? AF_INET6 : AF_INET;
	return inet_pton(address->family, text, address->bytes) == 1;
}

bool
address_parse(const char *text, struct address *address)
{
	if (!read_plain(text, address))
		return false;
	if (is_mapped(address))
		unmap(address);
	return true;
}

void
address_take(const struct sockaddr *from, struct address *address)
{
	const struct sockaddr_in *four = (const struct sockaddr_in *) from;
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *) from;

	memset(address, 0, sizeof(*address));
	if (from->sa_family == AF_INET)
		memcpy(address->bytes, &four->sin_addr, sizeof(four->sin_addr));
	else if (from->sa_family == AF_INET6)
		memcpy(address->bytes, &six->sin6_addr, sizeof(six->sin6_addr));
	else
		return;
	address->family = from->sa_family;
	if (is_mapped(address))
		unmap(address);
}

bool
address_parse_network(const char *text, struct address *address, int *bits)
{
	char		plain[INET6_ADDRSTRLEN];
	const char *slash = strchr(text, '/');
	size_t		length = slash ? (size_t) (slash - text) : strlen(text);

	if (length >= sizeof(plain))
		return false;
	memcpy(plain, text, length);
	plain[length] = '\0';
	if (!read_plain(plain, address))
		return false;
	*bits = bits_of(address->family);
	if (slash != NULL)
	{
		char	   *end;
		long		prefix = strtol(slash + 1, &end, 10);

		if (!isdigit((unsigned char) slash[1]) || *end != '\0' ||
			prefix > *bits)
			return false;
		*bits = (int) prefix;
	}
	if (is_mapped(address) && *bits >= MAPPED_BITS)
	{
		unmap(address);
		*bits -= MAPPED_BITS;
	}
	return true;
}

/* As inet_ntop() writes it, which does so by way of printf(). */
static void
write_four(const unsigned char *bytes, char *text)
{
	int			i;

	for (i = 0; i < 4; i++)
	{
		unsigned char byte = bytes[i];

		if (i > 0)
			*text++ = '.';
		if (byte >= 100)
			*text++ = (char) ('0' + byte / 100);
		if (byte >= 10)
			*text++ = (char) ('0' + byte / 10 % 10);
		*text++ = (char) ('0' + byte % 10);
	}
	*text = '\0';
}

void
address_write(const struct address *address, char *text)
{
	if (address->family == AF_INET)
		write_four(address->bytes, text);
	else if (inet_ntop(address->family, address->bytes, text,
					   INET6_ADDRSTRLEN) == NULL)
		*text = '\0';
}

bool
address_within(const struct address *address, const struct address *network,
			   int bits)
{
	size_t		whole = (size_t) bits / 8;
	int			rest = bits % 8;

	return address->family == network->family &&
		memcmp(address->bytes, network->bytes, whole) == 0 &&
		(rest == 0 ||
		 ((address->bytes[whole] ^ network->bytes[whole]) >> (8 - rest)) == 0);
}
