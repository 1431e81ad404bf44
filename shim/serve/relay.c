/*
 * Requests that are served side by side by one thread.
 *
 * What is sent to a connection that is at work waits there, in the server's
 * socket: the server finds it without being woken.  But it waits for what is
 * before it, however long that takes.  So only requests that read are sent
 * after others, and after such: if the first one takes long, those behind it
 * are sent to other connections, and what the first connection makes of them
 * is thrown away.  For the same reason a request that is cancelled takes
 * nobody with it.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "database/call.h"
#include "database/channels.h"
#include "connections/front_loop.h"
#include "serve/press.h"
#include "serve/relay.h"

/* Requests that are read ahead, beside those that connections have. */
#define MORE 2

/* How often times are looked at. */
#define HOLD_MS 5
#define LOOK_MS 20
#define LINES_MICROS 1000

/* So long nothing is sent behind others where a function writes in a read. */
#define WRITING_MICROS 60000000

/* In the order in which they came. */
struct line
{
	struct exchange *first;
	struct exchange *last;
};

struct relay
{
	struct server *server;
	struct desk *desk;			/* of the loop's thread */
	struct mg_connection *connection;
	struct press *press;
	struct channels channels;
	struct line reads;			/* those that wait for a connection */
	struct line writes;
	struct exchange *unused;
	long		ahead;			/* so many may begin, beside writes */
	long		outstanding;	/* requests that have begun */
	uint64_t	lines_seen_at;
};

/* -------- those that wait -------- */

static bool
is_read(const struct exchange *exchange)
{
	return strcmp(exchange->request.method, "GET") == 0;
}

static struct line *
line_of(struct relay *relay, const struct exchange *exchange)
{
	return is_read(exchange) ? &relay->reads : &relay->writes;
}

static void
wait_last(struct relay *relay, struct exchange *exchange)
{
	struct line *line = line_of(relay, exchange);

	exchange->next = NULL;
	*(line->last ? &line->last->next : &line->first) = exchange;
	line->last = exchange;
}

static void
wait_first(struct relay *relay, struct exchange *exchange)
{
	struct line *line = line_of(relay, exchange);

	exchange->next = line->first;
	line->first = exchange;
	if (line->last == NULL)
		line->last = exchange;
}

static struct exchange *
take_first(struct line *line)
{
	struct exchange *exchange = line->first;

	line->first = exchange->next;
	if (line->first == NULL)
		line->last = NULL;
	return exchange;
}

/* -------- answers -------- */

static void
finish(struct relay *relay, struct exchange *exchange,
	   const struct refusal *refusal)
{
	struct server *server = relay->server;
	struct desk *desk = relay->desk;
	struct peer *peer = exchange->peer;
	int			status;

	if (atomic_load(&server->draining))
		exchange->request.keep_alive = false;
	front_loop_speak(peer);
	status = exchange_answer(exchange, desk, relay->connection, refusal);
	PQclear(exchange->answer.result);
	exchange->answer.result = NULL;
	buffer_free(&exchange->compressed);
	exchange_end(exchange, desk, status);
	front_loop_answered(server->main.front, peer,
						!exchange->request.keep_alive || desk->reply.broken);
	atomic_fetch_sub(&server->under_way, 1);
	relay->outstanding--;
	exchange->next = relay->unused;
	relay->unused = exchange;
}

/* The answer has come, or will not. */
static void
conclude(struct relay *relay, struct exchange *exchange,
		 const struct refusal *refusal)
{
	if (refusal != NULL || !press_give(relay->press, exchange))
		finish(relay, exchange, refusal);
}

/*
 * What is behind others may be done twice, so it writes nothing; and who is
 * refused may have to be written down.
 */
static void
do_alone(struct relay *relay, struct exchange *exchange, uint64_t micros)
{
	exchange->alone = true;
	channels_hold(&relay->channels, micros);
	wait_first(relay, exchange);
}

/* Tells what has come of a call, or sends it once more. */
static enum verdict
judge(struct relay *relay, struct channel *channel,
	  struct exchange *exchange, PGresult *result)
{
	struct answer *answer = &exchange->answer;
	enum verdict verdict;

	channels_written(&relay->channels, channel);
	PQclear(answer->result);
	answer->result = result;
	answer->late = result != NULL && channel->took_late;
	if (exchange->behind && call_would_write(result))
	{
		do_alone(relay, exchange, WRITING_MICROS);
		return VERDICT_ANSWERED;
	}
	verdict = call_judge(channel->connection, &exchange->request, answer);
	if (exchange->behind && verdict == VERDICT_ANSWERED &&
		answer->status >= 400)
	{
		do_alone(relay, exchange, CHANNEL_HOLD_MICROS);
		return verdict;
	}
	if (verdict == VERDICT_RETRY && exchange->tries++ < CALL_RETRIES)
	{
		metrics_add(METRIC_RETRIES, 1);
		wait_first(relay, exchange);
		return verdict;
	}
	answer->database_micros = now_micros() - answer->waited_until;
	metrics_observe(METRIC_DATABASE, answer->database_micros);
	conclude(relay, exchange, call_refusal(&exchange->request, verdict,
										   exchange->tries));
	return verdict;
}

/* -------- connections -------- */

/* Sends it elsewhere. */
static void
go_elsewhere(void *argument, void *owner)
{
	wait_first(argument, owner);
}

/* Gives a connection back; what is under way there goes elsewhere. */
static void
give_back(struct relay *relay, struct channel *channel)
{
	channels_take_away(&relay->channels, channel, 0, go_elsewhere, relay);
	channels_give_back(&relay->channels, channel, false);
}

static void
send_to(struct relay *relay, struct channel *channel,
		struct exchange *exchange)
{
	struct answer *answer = &exchange->answer;

	answer->waited_until = now_micros();
	exchange->behind = channel->count > 0;
	request_set_reads_only(&exchange->request, exchange->behind);
	if (exchange->tries == 0 && !exchange->alone)
	{
		answer->wait_micros = answer->waited_until - exchange->started;
		metrics_observe(METRIC_POOL_WAIT, answer->wait_micros);
	}
	answer->sent = channels_send(&relay->channels, channel,
								 &exchange->request, !is_read(exchange),
								 exchange);
	if (answer->sent)
		return;
	judge(relay, channel, exchange, NULL);
	give_back(relay, channel);
}

static bool
dispatch_read(struct relay *relay)
{
	struct channel *channel;

	if (relay->reads.first == NULL)
		return false;
	channel = channels_idle(&relay->channels, true);
	if (channel == NULL && !relay->reads.first->alone)
		channel = channels_busy(&relay->channels);
	if (channel != NULL)
		send_to(relay, channel, take_first(&relay->reads));
	return channel != NULL;
}

static bool
dispatch_write(struct relay *relay)
{
	struct channel *channel;

	if (relay->writes.first == NULL)
		return false;
	channel = channels_idle(&relay->channels, false);
	if (channel != NULL)
		send_to(relay, channel, take_first(&relay->writes));
	return channel != NULL;
}

/* Sends all there is a connection for; who came first is asked first. */
static void
dispatch(struct relay *relay)
{
	const struct exchange *read = relay->reads.first;
	const struct exchange *write = relay->writes.first;

	while (read != NULL || write != NULL)
	{
		bool		reads = read != NULL &&
			(write == NULL || read->started <= write->started);

		if (!(reads ? dispatch_read(relay) : dispatch_write(relay)) &&
			!(reads ? dispatch_write(relay) : dispatch_read(relay)))
			return;
		read = relay->reads.first;
		write = relay->writes.first;
	}
}

/* The answer of a channel's first call has come; whether it stays ours. */
static bool
take_answer(struct relay *relay, struct channel *channel,
			struct exchange *exchange, PGresult *result)
{
	enum verdict verdict = VERDICT_ANSWERED;
	bool		is_large = PQntuples(result) > 0 &&
		PQgetlength(result, 0, 0) > KEEP_ANSWER;

	if (exchange == NULL)
		PQclear(result);
	else
		verdict = judge(relay, channel, exchange, result);
	if (!is_large && !call_spoils(verdict))
		return !channels_yield(&relay->channels, channel);
	give_back(relay, channel);
	return false;
}

static void
happened(void *argument, uint32_t number)
{
	struct relay *relay = argument;
	struct channel *channel = &relay->channels.list[number];
	bool		stays = channel->connection != NULL;

	if (stays)
		channels_look(&relay->channels, channel);
	while (stays)
	{
		void	   *owner;
		PGresult   *result;
		enum channel_news news = channel_next(channel, &owner, &result);

		if (news == CHANNEL_NOTHING)
			break;
		channels_note(&relay->channels, channel);
		stays = take_answer(relay, channel, owner, result);
		if (news == CHANNEL_LOST && stays)
		{
			give_back(relay, channel);
			stays = false;
		}
	}
	dispatch(relay);
}

/* -------- times -------- */

/* What takes too long; returns when to look again, in ms. */
static int
look_at(struct relay *relay, struct channel *channel, uint64_t now)
{
	const struct config *config = atomic_load(&relay->server->config);
	uint64_t	most = (uint64_t) (config->statement_timeout_ms +
								   CALL_GRACE_MS) * 1000;
	uint64_t	age = channel_age(channel, now);
	void	   *owner = channel->count > 0 ? channel->owners[0] : NULL;

	if (config->statement_timeout_ms > 0 && age > most)
	{
		channel->owners[0] = NULL;
		if (owner != NULL)
			judge(relay, channel, owner, NULL);
		give_back(relay, channel);
		return LOOK_MS;
	}
	if (channel->count > 1 && age > CHANNEL_HOLD_MICROS)
		channels_take_away(&relay->channels, channel, 1, go_elsewhere,
						   relay);
	return channel->count > 1 ? HOLD_MS : LOOK_MS;
}

/* Refuses one, as nobody connects or it has waited for too long. */
static void
give_up(struct relay *relay, struct exchange *exchange, bool in_vain,
		uint64_t now)
{
	const struct trouble *trouble = in_vain ?
		pool_trouble(relay->server->pool) : NULL;

	exchange->answer.waited_until = now;
	exchange->answer.wait_micros = now - exchange->started;
	exchange->answer.trouble = trouble ? trouble->name : NULL;
	if (!in_vain)
		metrics_add(METRIC_POOL_TIMEOUTS_DATA, 1);
	finish(relay, exchange, in_vain ? &refusal_unavailable : &refusal_busy);
}

/*
 * Refuses those who have waited for too long, or to whom nobody connects.
 * They may stand behind others who have not: health comes first.
 */
static void
look_at_line(struct relay *relay, struct line *line, uint64_t failed,
			 uint64_t now)
{
	struct exchange **link = &line->first;

	line->last = NULL;
	while (*link != NULL)
	{
		struct exchange *exchange = *link;
		const struct probe *probe = exchange->request.probe;
		long		wait_ms = probe != NULL && probe->wait_ms > 0 ?
			probe->wait_ms : exchange->config->pool_wait_ms;
		uint64_t	until = exchange->started + (uint64_t) wait_ms * 1000;
		bool		in_vain = exchange->started <= failed;

		if (in_vain || now >= until)
		{
			*link = exchange->next;
			give_up(relay, exchange, in_vain, now);
		}
		else
		{
			line->last = exchange;
			link = &exchange->next;
		}
	}
}

static int
pause_for(void *argument)
{
	struct relay *relay = argument;
	struct channels *channels = &relay->channels;
	uint64_t	now = now_micros();
	uint64_t	failed;
	struct exchange *pressed;
	int			wait_ms;
	long		i;

	while ((pressed = press_take(relay->press)) != NULL)
		finish(relay, pressed, NULL);
	wait_ms = channels_tidy(channels, now);
	for (i = 0; i < channels->most; i++)
	{
		if (channel_may_hold(&channels->list[i]))
			happened(relay, (uint32_t) i);
		if (channels->list[i].count > 0 &&
			look_at(relay, &channels->list[i], now) == HOLD_MS)
			wait_ms = HOLD_MS;
	}
	dispatch(relay);
	pool_pass_on(channels->pool);
	if (relay->reads.first == NULL && relay->writes.first == NULL)
		return wait_ms;

	/* all who wait are looked at, but not in each turn */
	if (now < relay->lines_seen_at + LINES_MICROS)
		return LINES_MICROS / 1000;
	relay->lines_seen_at = now;
	failed = channels_failed(channels);
	look_at_line(relay, &relay->reads, failed, now);
	look_at_line(relay, &relay->writes, failed, now);
	return wait_ms < 0 ? LOOK_MS : wait_ms;
}

static void
take_pressed(void *argument)
{
	struct relay *relay = argument;

	front_loop_wake(relay->server->main.front);
}

static bool
has_room(void *argument)
{
	const struct relay *relay = argument;

	return relay->outstanding < relay->ahead + relay->channels.most;
}

static void
take_news(void *argument, enum pool_event event, uint64_t began)
{
	struct relay *relay = argument;

	channels_tell(&relay->channels, event, began);
	front_loop_wake(relay->server->main.front);
}

/* -------- beginning and end -------- */

void
relay_attach(struct relay *relay, struct desk *desk,
			 struct mg_connection *connection)
{
	relay->desk = desk;
	relay->connection = connection;
	relay->channels.front = relay->server->main.front;
}

static struct exchange *
new_exchange(struct relay *relay)
{
	struct exchange *exchange = relay->unused;

	if (exchange == NULL)
		return calloc(1, sizeof(*exchange));
	relay->unused = exchange->next;
	return exchange;
}

/*
 * The request is read here; nothing of it is left with civetweb, who gets to
 * read the next one.
 */
void
relay_begin(struct relay *relay)
{
	struct mg_connection *connection = relay->connection;
	struct server *server = relay->server;
	struct exchange *exchange = new_exchange(relay);
	const struct refusal *refusal;
	struct request *request;

	if (exchange == NULL)
	{
		front_loop_answered(server->main.front, front_loop_peer(), true);
		return;
	}
	atomic_fetch_add(&server->under_way, 1);
	relay->outstanding++;
	request = &exchange->request;
	exchange_start(exchange, atomic_load(&server->config));
	refusal = request_read(request, connection, exchange->config);
	request->method = metrics_method(request->method);
	if (!exchange->config->reuse_connections)
		request->keep_alive = false;
	exchange->peer = front_loop_peer();
	if (exchange->peer->refused)
		refusal = &refusal_too_many;
	if (refusal == NULL && atomic_load(&server->ending))
		refusal = &refusal_unavailable;
	if (refusal == NULL && request->overdue && request->probe == NULL)
	{
		metrics_add(METRIC_POOL_TIMEOUTS_DATA, 1);
		refusal = &refusal_busy;
		exchange->answer.waited_until = now_micros();
		exchange->answer.wait_micros = exchange->answer.waited_until -
			exchange->started;
	}
	if (refusal != NULL)
		finish(relay, exchange, refusal);
	else
	{
		if (request->probe != NULL)
			wait_first(relay, exchange);
		else
			wait_last(relay, exchange);
		dispatch(relay);
	}
}

struct relay *
relay_create(struct server *server, const struct config *config,
			 struct front_loop *loop)
{
	struct relay *relay = calloc(1, sizeof(*relay));

	if (relay == NULL)
		return NULL;
	relay->server = server;
	relay->ahead = config->pool_size * CHANNEL_DEPTH + MORE;
	relay->press = press_create(take_pressed, relay);
	if (!channels_create(&relay->channels, server->pool, config) ||
		relay->press == NULL)
	{
		relay_destroy(relay);
		return NULL;
	}
	*loop = (struct front_loop)
	{
		.argument = relay,.has_room = has_room,.happened = happened,
			.pause = pause_for
	};
	front_loop_prepare(loop);
	pool_tell(server->pool, take_news, relay);
	return relay;
}

static void
free_exchange(struct exchange *exchange)
{
	request_free(&exchange->request);
	buffer_free(&exchange->compressed);
	PQclear(exchange->answer.result);
	free(exchange);
}

static void
free_owner(void *argument, void *owner)
{
	(void) argument;
	free_exchange(owner);
}

void
relay_destroy(struct relay *relay)
{
	struct exchange *next;

	if (relay == NULL)
		return;
	pool_tell(relay->server->pool, NULL, NULL);
	press_destroy(relay->press, free_exchange);
	channels_destroy(&relay->channels, free_owner, NULL);
	while (relay->reads.first != NULL)
		free_exchange(take_first(&relay->reads));
	while (relay->writes.first != NULL)
		free_exchange(take_first(&relay->writes));
	for (; relay->unused != NULL; relay->unused = next)
	{
		next = relay->unused->next;
		free_exchange(relay->unused);
	}
	free(relay);
}
