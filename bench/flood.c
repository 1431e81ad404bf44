/*
 * More requests than a service can answer, at a fixed rate.
 *
 *	flood PORT CALM FLOOD SECONDS CONNECTIONS <REQUEST
 *
 * sends the request so many times a second, whether or not earlier ones have
 * been answered: CALM for two seconds, FLOOD for SECONDS, CALM for two more.
 * Each request has a connection of its own meanwhile, of at most CONNECTIONS,
 * which are kept; without a free one the request is not sent, and counted.
 * Meanwhile somebody else, a thread, asks for the service's health, twenty
 * times a second.
 *
 * Prints one line: of the flood, answers of 2xx a second, the median of their
 * times, answers of 503 a second, the longest time of one, other answers and
 * broken connections, requests not sent, the longest time of health; and the
 * medians of the first calm and of the second second of the last.  Times are
 * microseconds.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CALM_MICROS 2000000
#define LAST_MICROS 2000000
#define HEALTH_MICROS 50000
#define ANSWER_SIZE 65536
#define MOST_TIMES 4000000

static const char health_request[] =
"GET /actuator/health HTTP/1.1\r\nHost: localhost\r\n\r\n";

enum phase
{
	PHASE_CALM,
	PHASE_FLOOD,
	PHASE_AFTER,				/* the first second after it */
	PHASE_LAST,
	PHASE_COUNT
};

struct connection
{
	int			socket;			/* -1: not open */
	enum phase	phase;			/* in which it was sent */
	uint64_t	sent;			/* 0: nothing is under way */
	size_t		got;			/* bytes of the head, then of all */
	size_t		whole;			/* 0: not known yet */
	char		head[4096];
	struct connection *next;	/* free one */
};

struct times
{
	uint32_t   *micros;
	size_t		count;
};

static struct sockaddr_in address = {.sin_family = AF_INET};
static struct connection *unused;
static struct times good[PHASE_COUNT];
static uint64_t refused,
			longest_refusal,
			faults,
			unsent;
static int	epoll;

/* Of the thread that asks for health; its faults are read when it has ended */
static _Atomic int phase_of_now;
static uint64_t health_faults;

static uint64_t
now_micros(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t) now.tv_sec * 1000000 + (uint64_t) now.tv_nsec / 1000;
}

static void
drop(struct connection *connection)
{
	close(connection->socket);
	connection->socket = -1;
	connection->sent = 0;
	connection->next = unused;
	unused = connection;
}

static int
open_socket(void)
{
	int			opened = socket(AF_INET, SOCK_STREAM, 0);
	int			on = 1;

	setsockopt(opened, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (connect(opened, (struct sockaddr *) &address, sizeof(address)) != 0)
	{
		perror("flood: connect");
		exit(1);
	}
	return opened;
}

static void
ask(struct connection *connection, const char *request, size_t length,
	enum phase phase, uint64_t now)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};

	connection->phase = phase;
	connection->sent = now;
	connection->got = 0;
	connection->whole = 0;
	if (connection->socket < 0)
	{
		connection->socket = open_socket();
		epoll_ctl(epoll, EPOLL_CTL_ADD, connection->socket, &event);
	}
	if (send(connection->socket, request, length, MSG_NOSIGNAL) !=
		(ssize_t) length)
	{
		faults++;
		drop(connection);
	}
}

static void
note(struct connection *connection, uint64_t now)
{
	uint64_t	micros = now - connection->sent;
	int			status = atoi(connection->head + strlen("HTTP/1.1 "));
	struct times *times = &good[connection->phase];
	int			in_flood = connection->phase == PHASE_FLOOD;

	connection->sent = 0;
	if (status >= 200 && status < 300)
	{
		if (times->count < MOST_TIMES)
			times->micros[times->count++] = (uint32_t) micros;
	}
	else if (status == 503 &&
			 strcasestr(connection->head, "\r\nRetry-After: ") != NULL)
	{
		refused += in_flood;
		if (micros > longest_refusal)
			longest_refusal = micros;
	}
	else
		faults++;
	if (strcasestr(connection->head, "\r\nConnection: close") != NULL)
		drop(connection);
	else
	{
		connection->next = unused;
		unused = connection;
	}
}

static void
receive(struct connection *connection)
{
	static char rest[ANSWER_SIZE];
	int			in_head = connection->whole == 0;
	char	   *to = in_head ? connection->head + connection->got : rest;
	size_t		size = in_head ?
		sizeof(connection->head) - 1 - connection->got : sizeof(rest);
	ssize_t		got = recv(connection->socket, to, size, MSG_DONTWAIT);
	char	   *end;
	char	   *length;

	if (got < 0 && errno == EAGAIN)
		return;
	if (got <= 0)
	{
		faults += connection->sent != 0;
		if (connection->sent != 0)
			drop(connection);
		else
		{
			/* one that is free; it is opened again when it is used */
			close(connection->socket);
			connection->socket = -1;
		}
		return;
	}
	connection->got += (size_t) got;
	if (in_head)
	{
		connection->head[connection->got] = '\0';
		end = strstr(connection->head, "\r\n\r\n");
		if (end == NULL)
			return;
		length = strcasestr(connection->head, "\r\nContent-Length: ");
		connection->whole = (size_t) (end + 4 - connection->head) +
			(length ? strtoul(length + strlen("\r\nContent-Length: "), NULL,
							  10) : 0);
		end[2] = '\0';
	}
	if (connection->got >= connection->whole)
		note(connection, now_micros());
}

/*
 * Asks and waits for the answer, which is one piece.  Who floods may be late
 * himself, so that he could not tell how long somebody else has to wait.
 */
static void *
ask_for_health(void *arg)
{
	uint64_t   *longest = arg;
	char		answer[4096];
	int			socket = open_socket();

	while (phase_of_now < PHASE_COUNT)
	{
		int			in_flood = phase_of_now == PHASE_FLOOD;
		uint64_t	sent = now_micros();
		ssize_t		got = send(socket, health_request,
							   sizeof(health_request) - 1, MSG_NOSIGNAL);

		if (got > 0)
			got = recv(socket, answer, sizeof(answer), 0);
		sent = now_micros() - sent;
		if (in_flood && sent > *longest)
			*longest = sent;
		if (got <= 0 || strncmp(answer, "HTTP/1.1 200", 12) != 0)
			health_faults++;
		if (got <= 0)
		{
			close(socket);
			socket = open_socket();
		}
		usleep(HEALTH_MICROS);
	}
	close(socket);
	return NULL;
}

static int
compare(const void *one, const void *other)
{
	uint32_t	a = *(const uint32_t *) one;
	uint32_t	b = *(const uint32_t *) other;

	return (a > b) - (a < b);
}

static unsigned
median(struct times *times)
{
	if (times->count == 0)
		return 0;
	qsort(times->micros, times->count, sizeof(*times->micros), compare);
	return times->micros[times->count / 2];
}

int
main(int argc, char **argv)
{
	static char request[ANSWER_SIZE];
	pthread_t	health;
	uint64_t	longest_health = 0;
	struct epoll_event events[256];
	double		rates[PHASE_COUNT];
	uint64_t	ends[PHASE_COUNT];
	size_t		length = fread(request, 1, sizeof(request), stdin);
	uint64_t	now;
	double		next;
	int			phase = 0;
	int			i;

	if (argc != 6)
		return 2;
	address.sin_port = htons((uint16_t) atoi(argv[1]));
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	epoll = epoll_create1(0);
	for (i = 0; i < atoi(argv[5]); i++)
	{
		struct connection *connection = calloc(1, sizeof(*connection));

		connection->socket = -1;
		connection->next = unused;
		unused = connection;
	}
	now = now_micros();
	for (i = 0; i < PHASE_COUNT; i++)
	{
		rates[i] = atof(argv[i == PHASE_FLOOD ? 3 : 2]);
		good[i].micros = calloc(MOST_TIMES, sizeof(uint32_t));
	}
	ends[PHASE_CALM] = now + CALM_MICROS;
	ends[PHASE_FLOOD] = ends[PHASE_CALM] + (uint64_t) (atof(argv[4]) * 1e6);
	ends[PHASE_AFTER] = ends[PHASE_FLOOD] + 1000000;
	ends[PHASE_LAST] = ends[PHASE_FLOOD] + LAST_MICROS;
	next = (double) now;
	if (pthread_create(&health, NULL, ask_for_health,
					   &longest_health) != 0)
		return 1;
	while (phase < PHASE_COUNT || now < ends[PHASE_LAST] + 3000000)
	{
		int			count = epoll_wait(epoll, events, 256, 1);

		for (i = 0; i < count; i++)
			receive(events[i].data.ptr);
		now = now_micros();
		while (phase < PHASE_COUNT && now >= ends[phase])
			phase_of_now = ++phase;
		while (phase < PHASE_COUNT && next <= (double) now)
		{
			struct connection *connection = unused;

			next += 1e6 / rates[phase];
			if (connection == NULL)
			{
				unsent++;
				continue;
			}
			unused = connection->next;
			ask(connection, request, length, (enum phase) phase, now);
		}
	}
	pthread_join(health, NULL);
	printf("%.0f %u %.0f %llu %llu %llu %llu %u %u\n",
		   (double) good[PHASE_FLOOD].count / atof(argv[4]),
		   median(&good[PHASE_FLOOD]), (double) refused / atof(argv[4]),
		   (unsigned long long) longest_refusal,
		   (unsigned long long) (faults + health_faults),
		   (unsigned long long) unsent, (unsigned long long) longest_health,
		   median(&good[PHASE_CALM]), median(&good[PHASE_LAST]));
	return 0;
}
