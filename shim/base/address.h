/*
 * Internet addresses, each in one form only.
 */
#ifndef ADDRESS_H
#define ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

struct address
{
	int			family;			/* AF_INET or AF_INET6 */
	unsigned char bytes[16];
};

/*
 * Reads an address.  One of IPv4 that is written as one of IPv6
 * (::ffff:192.0.2.1, as systems do that listen for both) is the one of IPv4.
 * False for what is none, zones ("%eth0") included.
 */
extern bool address_parse(const char *text, struct address *address);

/* The address of a socket's end; without a family where it is of Unix. */
extern void address_take(const struct sockaddr *from,
						 struct address *address);

/*
 * Reads an address or a network with its bits behind a slash, which are then
 * those of the form above.
 */
extern bool address_parse_network(const char *text, struct address *address,
								  int *bits);

/* Writes it to a place of INET6_ADDRSTRLEN. */
extern void address_write(const struct address *address, char *text);

/* Whether it has these first bits in common with a network. */
extern bool address_within(const struct address *address,
						   const struct address *network, int bits);

#endif							/* ADDRESS_H */
