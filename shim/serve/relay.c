/*
 * Requests, from a front to the database and back, all in one thread.
 *
 * What is sent to a connection that is at work waits there, in the server's
 * socket: the server finds it without being woken.  But it waits for what is
 * before it, however long that takes.  So only requests that read are sent
 * after others, and after such: if the first one takes long, those behind it
 * are sent to other connections, and what the first connection makes of them
 * is thrown away.  For the same reason a request that is cancelled takes
 * nobody with it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "serve/exchange.h"
#include "serve/line.h"
#include "serve/relay.h"

/* Requests that begin ahead, beside those that connections have. */
#define MORE 2

/* How often times are looked at. */
#define HOLD_MS 5
#define LOOK_MS 20
#define LINES_MICROS 1000

/* So long nothing is sent behind others where a function writes in a read. */
#define WRITING_MICROS 60000000

/*
 * A connection, and the session behind it, keeps the memory of the largest
 * answer it has carried; after a larger one than this it is closed.
 */
#define KEEP_ANSWER (8 * 1024 * 1024)

/* What is shorter is compressed at once; of others, by so many. */
#define PRESS_LEAST (16 * 1024)
#define PRESS_THREADS 4

/* How often the settings are looked at while housekeeping is switched off. */
#define OFF_MICROS 1000000

enum line_kind
{
	LINE_READS,
	LINE_WRITES,
	LINE_LOGINS
};

#define LINES 3

/* A server, and those that wait for a connection to it. */
struct way
{
	struct relay *relay;
	struct pool *pool;
	int			number;
	bool		is_standby;
	struct line lines[LINES];
	uint64_t	looked_at;		/* when, whether somebody waits too long */
};

struct relay
{
	struct server *server;
	struct service service;
	struct desk desk;
	struct helpers *press;
	struct way *ways;			/* the primary or the nodes, then standbys */
	int			count;
	struct logins logins;
	struct exchange *unused;
	long		most;			/* so many may begin */
	long		outstanding;	/* requests that have, beside waiting logins */
	long		logging_in;		/* those */
	struct exchange *sweep;		/* NULL: it is not under way */
	uint64_t	sweep_at;		/* when it is next */
	int			wait_ms;
	bool		stopping;
};

/* -------- those that wait -------- */

static bool
is_read(const struct exchange *exchange)
{
	return strcmp(exchange->request.method, "GET") == 0 ||
		exchange->request.is_head;
}

static enum line_kind
kind_of(const struct exchange *exchange)
{
	return exchange->request.lane == LANE_LOGIN ? LINE_LOGINS :
		is_read(exchange) ? LINE_READS : LINE_WRITES;
}

static void
wait_last(struct exchange *exchange)
{
	line_add_last(&exchange->way->lines[kind_of(exchange)], exchange);
}

static void
wait_first(struct exchange *exchange)
{
	line_add_first(&exchange->way->lines[kind_of(exchange)], exchange);
}

static long
count_waiting(const struct way *way)
{
	long		count = 0;
	int			i;

	for (i = 0; i < LINES; i++)
		count += way->lines[i].count;
	return count;
}

/* Requests that wait for a connection or for their turn to log in. */
static long
relay_waiting(const struct relay *relay)
{
	long		count = relay->logging_in;
	int			i;

	for (i = 0; i < relay->count; i++)
		count += count_waiting(&relay->ways[i]);
	return count;
}

/* -------- answers -------- */

static struct exchange *
new_exchange(struct relay *relay)
{
	struct exchange *exchange = relay->unused;

	if (exchange == NULL)
		return calloc(1, sizeof(*exchange));
	relay->unused = exchange->next;
	return exchange;
}

static void
put_away(struct relay *relay, struct exchange *exchange)
{
	PQclear(exchange->answer.result);
	exchange->answer.result = NULL;
	buffer_free(&exchange->compressed);
	if (exchange->counted)
		relay->outstanding--;
	exchange->counted = false;
	exchange->next = relay->unused;
	relay->unused = exchange;
}

/* The housekeeping has done a step; there may be more to do at once. */
static void
end_sweep(struct relay *relay, const struct answer *answer, bool refused)
{
	const struct config *config = relay->server->config;
	bool		more = !refused && answer->status == 200 &&
		strcmp(answer->body, "t") == 0;

	relay->sweep_at = now_micros() +
		(more ? 0 : (uint64_t) config->sweep_interval_ms * 1000);
	relay->sweep = NULL;
}

/* It has been answered with that status. */
static void
end(struct relay *relay, struct exchange *exchange, int status)
{
	struct client *client = exchange->client;
	bool		leaves = !exchange->request.keep_alive ||
		relay->desk.reply.failed;

	exchange_end(exchange, &relay->desk, status);
	if (!exchange->is_admin)
		relay->server->under_way--;
	put_away(relay, exchange);
	client->calls->end(client, leaves);
}

static void
finish(struct exchange *exchange, const struct refusal *refusal)
{
	struct relay *relay = exchange->way->relay;

	if (exchange->login.state != LOGIN_NONE)
		logins_leave(&relay->logins, &exchange->login);
	if (exchange == relay->sweep)
	{
		end_sweep(relay, &exchange->answer, refusal != NULL);
		put_away(relay, exchange);
		return;
	}
	if (relay->server->draining)
		exchange->request.keep_alive = false;
	end(relay, exchange, exchange_answer(exchange, &relay->desk, refusal));
}

static void
press(struct task *task)
{
	struct exchange *exchange = (struct exchange *) task;

	exchange_compress(exchange, &exchange->compressed);
}

static void
free_exchange(struct exchange *exchange)
{
	if (exchange->login.state != LOGIN_NONE)
		logins_leave(&exchange->way->relay->logins, &exchange->login);
	request_free(&exchange->request);
	buffer_free(&exchange->compressed);
	PQclear(exchange->answer.result);
	free(exchange);
}

static void
pressed(struct task *task)
{
	struct exchange *exchange = (struct exchange *) task;

	if (exchange->way->relay->stopping)
		free_exchange(exchange);
	else
		finish(exchange, NULL);
}

/* The answer has come, or will not. */
static void
conclude(struct exchange *exchange, const struct refusal *refusal)
{
	struct relay *relay = exchange->way->relay;

	if (!exchange->way->is_standby && exchange != relay->sweep)
		replicas_note(relay->server->replicas, &exchange->request, refusal,
					  &exchange->answer);
	exchange->task.run = press;
	exchange->task.done = pressed;
	if (refusal != NULL || exchange == relay->sweep ||
		exchange->answer.length < PRESS_LEAST ||
		!extra_prefers_gzip(&exchange->request.extra,
							exchange->answer.length) ||
		!helpers_give(relay->press, &exchange->task))
		finish(exchange, refusal);
}

/* -------- another server -------- */

/* Asks that one; what the other has said does not count. */
static void
turn_to(struct exchange *exchange, struct way *way)
{
	PQclear(exchange->answer.result);
	memset(&exchange->answer, 0, sizeof(exchange->answer));
	exchange->way = way;
	exchange->tries = 0;
	exchange->alone = false;
	exchange->queued = now_micros();
	wait_last(exchange);
}

/*
 * A standby has not answered well.  Only answers below 400 are taken from one:
 * the primary has the last word about errors, and keeps the audit log.
 */
static bool
asks_primary(struct exchange *exchange, const struct refusal *refusal)
{
	struct relay *relay = exchange->way->relay;

	/* the primary would need as long */
	if (!exchange->way->is_standby || refusal == &refusal_timeout ||
		(refusal == NULL && exchange->answer.status < 400))
		return false;
	if (refusal == &refusal_unavailable)
		replicas_lost(relay->server->replicas, exchange->way->number);
	turn_to(exchange, relay->ways);
	return true;
}

/*
 * A node could not be reached, or is gone; what it has answered says more.
 * Another one is asked if nothing has got there, or it changes nothing.
 */
static bool
asks_node(struct exchange *exchange, const struct refusal *refusal)
{
	struct relay *relay = exchange->way->relay;
	struct nodes *nodes = relay->server->nodes;
	const struct answer *answer = &exchange->answer;

	if (exchange->way->is_standby || exchange == relay->sweep)
		return false;
	if (refusal == NULL)
		nodes_learn(nodes, exchange->way->number, &exchange->request, answer);
	if ((refusal != &refusal_unavailable &&
		 refusal != &refusal_outcome_unknown) || answer->result != NULL)
		return false;
	nodes_lost(nodes, exchange->way->number);
	if (++exchange->servers >= nodes_count(nodes) ||
		(answer->sent && request_may_write(&exchange->request)))
		return false;
	turn_to(exchange,
			&relay->ways[nodes_choose(nodes, &exchange->request)]);
	return true;
}

/* -------- what has come of a call -------- */

static const struct statement *
statement_of(const struct exchange *exchange)
{
	return exchange == exchange->way->relay->sweep ? &call_housekeep :
		exchange->way->is_standby ? &call_handle_on_standby : &call_handle;
}

/*
 * What is behind others may be done twice, so it writes nothing; and who is
 * refused may have to be written down.
 */
static void
do_alone(struct exchange *exchange, uint64_t micros)
{
	exchange->alone = true;
	pool_hold(exchange->way->pool, micros);
	wait_first(exchange);
}

/* Tells what has come of a call, or sends it once more. */
static enum verdict
judge(struct channel *channel, struct exchange *exchange, PGresult *result)
{
	struct answer *answer = &exchange->answer;
	bool		is_behind = exchange->behind && !exchange->way->is_standby;
	const struct statement *statement = statement_of(exchange);
	const struct refusal *refusal;
	enum verdict verdict;

	PQclear(answer->result);
	answer->result = result;
	answer->late = result != NULL && channel->took_late;
	if (is_behind && call_would_write(result))
	{
		do_alone(exchange, WRITING_MICROS);
		return VERDICT_ANSWERED;
	}
	verdict = call_judge(channel->connection, statement, &exchange->request,
						 answer);
	if (is_behind && verdict == VERDICT_ANSWERED && answer->status >= 400)
	{
		do_alone(exchange, CHANNEL_HOLD_MICROS);
		return verdict;
	}
	if (verdict == VERDICT_RETRY && exchange->tries++ < CALL_RETRIES)
	{
		metrics_add(METRIC_RETRIES, 1);
		wait_first(exchange);
		return verdict;
	}
	answer->database_micros = now_micros() - answer->waited_until;
	metrics_observe(METRIC_DATABASE, answer->database_micros);
	refusal = call_refusal(statement, &exchange->request, verdict,
						   exchange->tries);
	if (!asks_primary(exchange, refusal) && !asks_node(exchange, refusal))
		conclude(exchange, refusal);
	return verdict;
}

/* -------- sending -------- */

/* Sends it elsewhere. */
static void
go_elsewhere(void *argument, void *owner)
{
	(void) argument;
	wait_first(owner);
}

/* Gives a connection up; what is under way there goes elsewhere. */
static void
give_up_channel(struct channel *channel)
{
	pool_take_away(channel, 0, go_elsewhere, NULL);
	pool_give_up(channel);
}

static void
send_to(struct channel *channel, struct exchange *exchange)
{
	struct answer *answer = &exchange->answer;

	answer->waited_until = now_micros();
	exchange->behind = channel->count > 0;
	request_set_reads_only(&exchange->request, exchange->behind);
	if (exchange->tries == 0 && !exchange->alone)
	{
		answer->wait_micros = answer->waited_until - exchange->queued;
		if (exchange != exchange->way->relay->sweep)
			metrics_observe(METRIC_POOL_WAIT, answer->wait_micros);
	}
	answer->sent = pool_send(channel, statement_of(exchange),
							 &exchange->request, !is_read(exchange),
							 exchange);
	if (answer->sent)
		return;
	judge(channel, exchange, NULL);
	give_up_channel(channel);
}

static bool
dispatch_first(struct way *way, enum line_kind kind)
{
	struct line *line = &way->lines[kind];
	struct channel *channel;

	if (line->first == NULL)
		return false;
	channel = pool_idle(way->pool, kind == LINE_LOGINS ? LANE_LOGIN :
						LANE_DATA, kind == LINE_WRITES);
	if (channel == NULL && kind == LINE_READS && !line->first->alone)
		channel = pool_busy(way->pool);
	if (channel != NULL)
		send_to(channel, line_take(line));
	return channel != NULL;
}

/* Sends all there is a connection for; who came first is asked first. */
static void
dispatch(struct way *way)
{
	const struct config *config = way->relay->server->config;
	bool		goes_on = true;

	while (goes_on && count_waiting(way) > 0)
	{
		bool		tried[LINES] = {false};
		int			n;

		pool_want(way->pool, count_waiting(way), config->login_pool_share);
		goes_on = false;
		for (n = 0; n < LINES && !goes_on; n++)
		{
			int			best = -1;
			int			i;

			for (i = 0; i < LINES; i++)
			{
				if (!tried[i] && way->lines[i].first != NULL &&
					(best < 0 || way->lines[i].first->queued <
					 way->lines[best].first->queued))
					best = i;
			}
			if (best < 0)
				break;
			tried[best] = true;
			goes_on = dispatch_first(way, (enum line_kind) best);
		}
	}
}

/* -------- news of a connection -------- */

static struct way *
way_of(struct relay *relay, const struct pool *pool)
{
	struct way *way = relay->ways;

	while (way->pool != pool)
		way++;
	return way;
}

/* The answer of a channel's first call has come; whether it stays. */
static bool
take_answer(struct channel *channel, struct exchange *exchange,
			PGresult *result)
{
	enum verdict verdict = VERDICT_ANSWERED;
	bool		is_large = PQntuples(result) > 0 &&
		PQgetlength(result, 0, 0) > KEEP_ANSWER;

	if (exchange == NULL)
		PQclear(result);
	else
		verdict = judge(channel, exchange, result);
	if (!is_large && !call_spoils(verdict))
		return true;
	give_up_channel(channel);
	return false;
}

static void
happened(void *argument, struct channel *channel)
{
	struct way *way = way_of(argument, channel->pool);
	bool		stays = true;

	pool_look(channel);
	while (stays)
	{
		void	   *owner;
		PGresult   *result;
		enum channel_news news = channel_next(channel, &owner, &result);

		if (news == CHANNEL_NOTHING)
			break;
		pool_note(channel);
		stays = take_answer(channel, owner, result);
		if (news == CHANNEL_LOST && stays)
		{
			give_up_channel(channel);
			stays = false;
		}
	}
	dispatch(way);
}

/* -------- times -------- */

/* What takes too long. */
static void
look_at_calls(void *argument, struct channel *channel)
{
	struct relay *relay = argument;
	const struct config *config = relay->server->config;
	uint64_t	most = (uint64_t) (config->statement_timeout_ms +
								   CALL_GRACE_MS) * 1000;
	uint64_t	age = channel_age(channel, now_micros());
	void	   *owner = channel->owners[0];

	if (config->statement_timeout_ms > 0 && age > most)
	{
		channel->owners[0] = NULL;
		if (owner != NULL)
			judge(channel, owner, NULL);
		give_up_channel(channel);
		return;
	}
	if (channel->count > 1 && age > CHANNEL_HOLD_MICROS)
		pool_take_away(channel, 1, go_elsewhere, NULL);
	if (channel->count > 1)
		relay->wait_ms = HOLD_MS;
	else if (relay->wait_ms != HOLD_MS)
		relay->wait_ms = LOOK_MS;
}

/* Refuses one, as nobody connects or it has waited for too long. */
static void
give_up(struct exchange *exchange, bool in_vain, uint64_t now)
{
	const struct refusal *refusal = in_vain ? &refusal_unavailable :
		&refusal_busy;
	const struct trouble *trouble = in_vain ?
		pool_trouble(exchange->way->pool) : NULL;

	exchange->answer.waited_until = now;
	exchange->answer.wait_micros = now - exchange->queued;
	if (asks_primary(exchange, refusal) || asks_node(exchange, refusal))
		return;
	exchange->answer.trouble = trouble ? trouble->name : NULL;
	if (!in_vain && exchange->client != NULL)
		metrics_add(exchange->request.lane == LANE_LOGIN ?
					METRIC_POOL_TIMEOUTS_LOGIN : METRIC_POOL_TIMEOUTS_DATA,
					1);
	conclude(exchange, refusal);
}

/* Until when it may wait. */
static uint64_t
deadline_of(const struct exchange *exchange)
{
	const struct probe *probe = exchange->request.probe;
	long		wait_ms = probe != NULL && probe->wait_ms > 0 ?
		probe->wait_ms : exchange->config->pool_wait_ms;

	return exchange->queued + (uint64_t) wait_ms * 1000;
}

/*
 * Refuses those who have waited for too long, or to whom nobody connects.
 * They may stand behind others who have not: health comes first.
 */
static void
look_at_line(struct line *line, uint64_t failed, uint64_t now)
{
	struct exchange *next = line->first;

	memset(line, 0, sizeof(*line));
	while (next != NULL)
	{
		struct exchange *exchange = next;
		bool		in_vain = exchange->queued <= failed;

		next = exchange->next;
		if (in_vain || now >= deadline_of(exchange))
			give_up(exchange, in_vain, now);
		else
			wait_last(exchange);
	}
}

static void
look_at_way(struct way *way, uint64_t now)
{
	struct relay *relay = way->relay;
	uint64_t	failed;
	int			i;

	pool_turn(way->pool, look_at_calls, relay);
	dispatch(way);
	if (count_waiting(way) == 0)
		return;
	if (relay->wait_ms < 0)
		relay->wait_ms = LOOK_MS;

	/* all who wait are looked at, but not in each turn */
	if (now < way->looked_at + LINES_MICROS)
	{
		relay->wait_ms = LINES_MICROS / 1000;
		return;
	}
	way->looked_at = now;
	failed = pool_failed(way->pool);
	for (i = 0; i < LINES; i++)
		look_at_line(&way->lines[i], failed, now);
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
			wait_last(exchange);
			dispatch(exchange->way);
		}
		else
			give_up(exchange, false, now_micros());
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
		if (now >= deadline_of(exchange))
		{
			relay->logging_in--;
			give_up(exchange, false, now);
		}
		else if (relay->wait_ms < 0)
			relay->wait_ms = LOOK_MS;
	}
	let_in(relay);
}

/* -------- housekeeping -------- */

/*
 * What is over is deleted in short steps, each a transaction of its own, and
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
		(exchange = new_exchange(relay)) == NULL)
		return;
	exchange_start(exchange, config, 0);
	exchange->client = NULL;
	exchange->way = relay->ways;
	relay->sweep = exchange;
	wait_last(exchange);
	dispatch(exchange->way);
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
	helpers_collect(relay->press);
	for (i = 0; i < relay->count; i++)
		look_at_way(&relay->ways[i], now);
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
	exchange->counted = true;
	relay->outstanding++;
	if (request->probe != NULL)
		wait_first(exchange);
	else
		wait_last(exchange);
	dispatch(exchange->way);
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

/* What the service answers by itself; 0: nothing has been sent. */
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
	struct exchange *exchange = new_exchange(relay);
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
								exchange->config);
	if (!exchange->config->reuse_connections || server->draining)
		exchange->request.keep_alive = false;
	if (refusal == NULL)
		status = serve_own(relay, exchange, arrival, &refusal);
	if (status == 0 && refusal == NULL && server->ending)
		refusal = &refusal_unavailable;
	if (status == 0 && refusal == NULL)
		refusal = check_wait(exchange);
	if (status != 0)
		end(relay, exchange, status);
	else if (refusal != NULL)
		finish(exchange, refusal);
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
							   config->database, happened, relay);
	if (server->pool == NULL)
		return false;
	server->nodes = nodes_create(server->loop, config, server->pool, happened,
								 relay);
	server->replicas = replicas_create(server->loop, config, happened, relay);
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
	relay->press = helpers_create(server->loop, PRESS_THREADS);
	if (relay->press != NULL && open_ways(relay))
		return relay;
	relay_destroy(relay);
	return NULL;
}

static void
free_owner(void *argument, void *owner)
{
	(void) argument;
	free_exchange(owner);
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
			free_exchange(exchange);
	}
	for (i = 0; i < relay->count; i++)
	{
		for (k = 0; k < LINES; k++)
		{
			while (relay->ways[i].lines[k].first != NULL)
				free_exchange(line_take(&relay->ways[i].lines[k]));
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
	ended = helpers_destroy(relay->press);
	free_waiting(relay);
	ended &= replicas_destroy(server->replicas, free_owner, NULL);
	ended &= nodes_destroy(server->nodes, free_owner, NULL);
	ended &= pool_destroy(server->pool, free_owner, NULL);
	while (relay->unused != NULL)
		free_exchange(new_exchange(relay));
	reply_free(&relay->desk.reply);
	buffer_free(&relay->desk.line);
	buffer_free(&relay->desk.compressed);
	free(relay->ways);
	free(relay);
	return ended;
}
