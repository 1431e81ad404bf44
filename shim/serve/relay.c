#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "serve/way.h"

/* Requests that begin ahead, beside those that connections have. */
#define MORE 2

/* Threads that compress answers. */
#define PRESS_THREADS 4

/* How often the settings are looked at while housekeeping is switched off. */
#define OFF_MICROS 1000000

/* Requests that wait for a connection or for their turn to log in. */
static long
relay_waiting(const struct relay *relay)
{
	long		count = relay->logging_in;
	int			i;

	for (i = 0; i < relay->count; i++)
		count += way_waiting(&relay->ways[i]);
	return count;
}

/* -------- logins -------- */

/* Some have got a place, or will not. */
static void
let_in(struct relay *relay)
{
	struct login *login;

	while ((login = logins_decided(&relay->logins)) != NULL)
	{
		struct exchange *exchange = login->owner;

		relay->logging_in--;
		if (login->state == LOGIN_PLACED)
		{
			way_add_last(exchange);
			way_dispatch(exchange->way);
		}
		else
			way_give_up(exchange, false, now_micros());
	}
}

/* Those who have waited for their turn for too long. */
static void
look_at_logins(struct relay *relay, uint64_t now)
{
	struct login *login = relay->logins.first;

	while (login != NULL)
	{
		struct exchange *exchange = login->owner;

		login = login->next;
		if (exchange->login.state != LOGIN_WAITS)
			continue;
		if (now >= way_deadline(exchange))
		{
			relay->logging_in--;
			way_give_up(exchange, false, now);
		}
		else if (relay->wait_ms < 0)
			relay->wait_ms = WAY_LOOK_MS;
	}
	let_in(relay);
}

/* -------- housekeeping -------- */

/*
 * Expired rows are deleted in short steps, each a transaction of its own, and
 * nothing in PostgreSQL would start them.  Any number of shims may do so: a
 * step that another one is at does nothing.
 */
static void
sweep(struct relay *relay, uint64_t now)
{
	const struct config *config = relay->server->config;
	struct exchange *exchange;

	if (relay->sweep != NULL || now < relay->sweep_at ||
		relay->server->draining)
		return;
	relay->sweep_at = now + OFF_MICROS;
	if (config->sweep_interval_ms == 0 ||
		(exchange = way_new_exchange(relay)) == NULL)
		return;
	exchange_start(exchange, config, 0);
	exchange->client = NULL;
	exchange->way = relay->ways;
	relay->sweep = exchange;
	way_add_last(exchange);
	way_dispatch(exchange->way);
}

bool
relay_sweeps(const struct relay *relay)
{
	return relay->sweep != NULL;
}

int
relay_turn(struct relay *relay)
{
	uint64_t	now = now_micros();
	int			i;

	relay->wait_ms = -1;
	helpers_collect(relay->desk.press);
	for (i = 0; i < relay->count; i++)
		way_look(&relay->ways[i], now);
	look_at_logins(relay, now);
	sweep(relay, now);
	return relay->wait_ms;
}

/* -------- a request -------- */

static bool
has_room(void *argument)
{
	const struct relay *relay = argument;

	return relay->outstanding < relay->most;
}

/* Chooses who is to be asked, and waits for a connection to it. */
static void
line_up(struct relay *relay, struct exchange *exchange)
{
	struct request *request = &exchange->request;
	int			standby = replicas_choose(relay->server->replicas, request);

	exchange->way = standby >= 0 ?
		&relay->ways[nodes_count(relay->server->nodes) + standby] :
		&relay->ways[nodes_choose(relay->server->nodes, request)];
	if (logins_concern(request))
	{
		request->lane = LANE_LOGIN;
		exchange->login.owner = exchange;
		relay->logging_in++;
		logins_enter(&relay->logins, &exchange->login, request,
					 exchange->config);
		let_in(relay);
		return;
	}
	exchange->beyond = standby >= 0 ? 0 :
		nodes_beyond(relay->server->nodes, exchange->way->number, request);
	if (exchange->beyond != 0 && way_is_stuck(exchange, now_micros()))
	{
		way_give_up(exchange, false, now_micros());
		return;
	}

	/* those who wait for another node keep nobody else from beginning */
	exchange->aside = way_is_crowded(exchange) && relay->aside < relay->most;
	exchange->counted = !exchange->aside;
	relay->aside += exchange->aside;
	relay->outstanding += exchange->counted;
	if (request->probe != NULL)
		way_add_first(exchange);
	else
		way_add_last(exchange);
	way_dispatch(exchange->way);
}

/* Waited for too long before it came here; health is told all the same. */
static const struct refusal *
check_wait(struct exchange *exchange)
{
	const struct request *request = &exchange->request;

	if (!request->overdue || request->probe != NULL)
		return NULL;
	metrics_add(METRIC_POOL_TIMEOUTS_DATA, 1);
	exchange->answer.waited_until = now_micros();
	exchange->answer.wait_micros = exchange->answer.waited_until -
		exchange->started;
	return &refusal_busy;
}

/* The value of a header as a text, which has to be freed, or NULL. */
static char *
copy_header(const struct head *head, const char *name)
{
	int			i;

	for (i = 0; i < head->count; i++)
	{
		const struct header *header = &head->headers[i];

		if (header_is_named(header, name))
			return strndup(header->value, header->value_length);
	}
	return NULL;
}

/* The status of an answer by the service itself; 0: nothing was sent. */
static int
serve_own(struct relay *relay, struct exchange *exchange,
		  const struct arrival *arrival, const struct refusal **refusal)
{
	char	   *if_none_match = copy_header(arrival->head, "if-none-match");
	int			status;

	relay->desk.waiting = relay_waiting(relay);
	status = exchange_serve(exchange, &relay->desk, if_none_match, refusal);
	free(if_none_match);
	return status;
}

static void
begin(void *argument, const struct arrival *arrival)
{
	struct relay *relay = argument;
	struct server *server = relay->server;
	struct exchange *exchange = way_new_exchange(relay);
	const struct refusal *refusal = arrival->refusal;
	int			status = 0;

	if (exchange == NULL)
	{
		arrival->client->calls->end(arrival->client, true);
		return;
	}
	exchange_start(exchange, server->config, arrival->waited);
	exchange->client = arrival->client;
	exchange->is_admin = arrival->is_admin;
	exchange->way = relay->ways;
	server->under_way += !exchange->is_admin;
	request_note(&exchange->request, arrival);
	if (refusal == NULL)
		refusal = request_write(&exchange->request, arrival,
								exchange->config,
								pool_has_nodes(server->pool));
	if (!exchange->config->reuse_connections || server->draining ||
		arrival->leaves)
		exchange->request.keep_alive = false;
	if (refusal == NULL)
		status = serve_own(relay, exchange, arrival, &refusal);
	if (status == 0 && refusal == NULL && server->ending)
		refusal = &refusal_unavailable;
	if (status == 0 && refusal == NULL)
		refusal = check_wait(exchange);
	if (status != 0)
		way_end(relay, exchange, status);
	else if (refusal != NULL)
		way_finish(exchange, refusal);
	else
		line_up(relay, exchange);
}

const struct service *
relay_service(struct relay *relay)
{
	return &relay->service;
}

/* -------- beginning and end -------- */

static bool
open_ways(struct relay *relay)
{
	struct server *server = relay->server;
	const struct config *config = server->config;
	int			nodes;
	int			standbys;
	int			i;

	server->pool = pool_create(server->loop, config, SESSION_PRIMARY,
							   config->database, way_happened, relay);
	if (server->pool == NULL)
		return false;
	server->nodes = nodes_create(server->loop, config, server->pool,
								 way_happened, relay);
	server->replicas = replicas_create(server->loop, config, way_happened,
									   relay);
	if (server->nodes == NULL || server->replicas == NULL)
		return false;
	nodes = nodes_count(server->nodes);
	standbys = replicas_count(server->replicas);
	relay->ways = calloc((size_t) (nodes + standbys), sizeof(struct way));
	if (relay->ways == NULL)
		return false;
	relay->count = nodes + standbys;
	for (i = 0; i < relay->count; i++)
	{
		struct way *way = &relay->ways[i];

		way->relay = relay;
		way->is_standby = i >= nodes;
		way->number = way->is_standby ? i - nodes : i;
		way->pool = way->is_standby ?
			replicas_pool(server->replicas, way->number) :
			nodes_pool(server->nodes, way->number);
		relay->most += config->pool_size * CHANNEL_DEPTH + MORE +
			pool_most(way->pool);
	}
	return true;
}

struct relay *
relay_create(struct server *server)
{
	struct relay *relay = calloc(1, sizeof(*relay));

	if (relay == NULL)
		return NULL;
	relay->server = server;
	relay->desk.server = server;
	relay->service = (struct service)
	{
		.argument = relay,.has_room = has_room,.begin = begin
	};
	relay->desk.press = helpers_create(server->loop, PRESS_THREADS);
	if (relay->desk.press != NULL && open_ways(relay))
		return relay;
	relay_destroy(relay);
	return NULL;
}

static void
free_owner(void *argument, void *owner)
{
	(void) argument;
	way_free_exchange(owner);
}

/* Those that wait for a connection, and logins that wait for their turn. */
static void
free_waiting(struct relay *relay)
{
	struct login *login = relay->logins.first;
	int			i;
	int			k;

	while (login != NULL)
	{
		struct exchange *exchange = login->owner;

		login = login->next;
		if (exchange->login.state == LOGIN_WAITS)
			way_free_exchange(exchange);
	}
	for (i = 0; i < relay->count; i++)
	{
		for (k = 0; k < LINES; k++)
		{
			while (relay->ways[i].lines[k].first != NULL)
				way_free_exchange(line_take(&relay->ways[i].lines[k]));
		}
	}
}

bool
relay_destroy(struct relay *relay)
{
	struct server *server;
	bool		ended;

	if (relay == NULL)
		return true;
	server = relay->server;
	relay->stopping = true;
	relay->logins.share = 0;
	ended = helpers_destroy(relay->desk.press);
	free_waiting(relay);
	ended &= replicas_destroy(server->replicas, free_owner, NULL);
	ended &= nodes_destroy(server->nodes, free_owner, NULL);
	ended &= pool_destroy(server->pool, free_owner, NULL);
	while (relay->unused != NULL)
		way_free_exchange(way_new_exchange(relay));
	reply_free(&relay->desk.reply);
	buffer_free(&relay->desk.line);
	buffer_free(&relay->desk.compressed);
	free(relay->ways);
	free(relay);
	return ended;
}
