/*
 * A request that is sent to a connection at work waits there, in the server's
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
#include "serve/way.h"

/* How often times are looked at. */
#define HOLD_MS 5
#define LINES_MICROS 1000

/* So long nothing is sent behind others where a function writes in a read. */
#define WRITING_MICROS 60000000

/*
 * A connection, and the session behind it, keeps the memory of the largest
 * answer it has carried; after a larger one than this it is closed.
 */
#define KEEP_ANSWER (8 * 1024 * 1024)

/* Shorter answers are compressed at once. */
#define PRESS_LEAST (16 * 1024)

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

void
way_add_last(struct exchange *exchange)
{
	line_add_last(&exchange->way->lines[kind_of(exchange)], exchange);
}

void
way_add_first(struct exchange *exchange)
{
	line_add_first(&exchange->way->lines[kind_of(exchange)], exchange);
}

long
way_waiting(const struct way *way)
{
	long		count = 0;
	int			i;

	for (i = 0; i < LINES; i++)
		count += way->lines[i].count;
	return count;
}

/* How long one has waited, for its turn and for connections, altogether. */
static uint64_t
waited(const struct exchange *exchange, uint64_t now)
{
	return now - exchange->started - exchange->called;
}

/* -------- another node -------- */

/*
 * A node that hangs keeps whoever asks it by way of another one, until the
 * statement times out and longer.  So requests about one have half of the
 * connections at most, and the others are for the rest.
 */
static bool
has_share(const struct exchange *exchange, uint64_t *latest)
{
	long		half = exchange->config->pool_size / 2;

	return pool_beyond(exchange->way->pool, exchange->beyond, latest) <
		(half > 0 ? half : 1);
}

bool
way_is_stuck(const struct exchange *exchange, uint64_t now)
{
	uint64_t	latest;

	return exchange->beyond != 0 && !has_share(exchange, &latest) &&
		now > latest + (uint64_t) exchange->config->pool_wait_ms * 1000;
}

bool
way_is_crowded(const struct exchange *exchange)
{
	uint64_t	latest;

	return exchange->beyond != 0 && !has_share(exchange, &latest);
}

/* The first that may be sent, or NULL. */
static struct exchange *
first_of(const struct line *line)
{
	struct exchange *exchange = line->first;

	while (exchange != NULL && way_is_crowded(exchange))
		exchange = exchange->next;
	return exchange;
}

/* -------- answers -------- */

struct exchange *
way_new_exchange(struct relay *relay)
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
	exchange_put_away(exchange, &relay->desk);
	if (exchange->counted)
		relay->outstanding--;
	if (exchange->aside)
		relay->aside--;
	exchange->counted = exchange->aside = false;
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

void
way_end(struct relay *relay, struct exchange *exchange, int status)
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

void
way_finish(struct exchange *exchange, const struct refusal *refusal)
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
	way_end(relay, exchange, exchange_answer(exchange, &relay->desk, refusal));
}

static void
press(struct task *task)
{
	struct exchange *exchange = (struct exchange *) task;

	exchange_compress(exchange, &exchange->compressed);
}

void
way_free_exchange(struct exchange *exchange)
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
		way_free_exchange(exchange);
	else
		way_finish(exchange, NULL);
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
		!helpers_give(relay->desk.press, &exchange->task))
		way_finish(exchange, refusal);
}

/* -------- another server -------- */

/* Asks that one; what the other has said does not count. */
static void
turn_to(struct exchange *exchange, struct way *way)
{
	PQclear(exchange->answer.result);
	memset(&exchange->answer, 0, sizeof(exchange->answer));
	exchange->way = way;
	exchange->beyond = way->is_standby ? 0 :
		nodes_beyond(way->relay->server->nodes, way->number,
					 &exchange->request);
	exchange->tries = 0;
	exchange->alone = false;
	exchange->queued = now_micros();
	way_add_last(exchange);
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
 * A request behind others may be done twice, so it writes nothing; and a
 * refusal may have to be recorded.
 */
static void
do_alone(struct exchange *exchange, uint64_t micros)
{
	exchange->alone = true;
	pool_hold(exchange->way->pool, micros);
	way_add_first(exchange);
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
	exchange->called += now_micros() - answer->waited_until;
	if (is_behind && call_would_write(result))
	{
		do_alone(exchange, WRITING_MICROS);
		return VERDICT_ANSWERED;
	}
	verdict = call_judge(channel->connection, statement, &exchange->request,
						 answer);
	if (channel->backend != 0 &&
		!call_keeps_backend(answer, verdict, channel->backend))
		pool_distrust(channel->pool);
	if (is_behind && verdict == VERDICT_ANSWERED && answer->status >= 400)
	{
		do_alone(exchange, CHANNEL_HOLD_MICROS);
		return verdict;
	}
	if (verdict == VERDICT_RETRY && exchange->tries++ < CALL_RETRIES)
	{
		metrics_add(METRIC_RETRIES, 1);
		way_add_first(exchange);
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
	way_add_first(owner);
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
		answer->wait_micros = waited(exchange, answer->waited_until);
		if (exchange != exchange->way->relay->sweep)
			metrics_observe(METRIC_POOL_WAIT, answer->wait_micros);
	}
	if (!exchange->behind)
		channel->beyond = exchange->beyond;
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
	struct exchange *first = first_of(line);
	struct channel *channel;

	if (first == NULL)
		return false;
	channel = pool_idle(way->pool, kind == LINE_LOGINS ? LANE_LOGIN :
						LANE_DATA, kind == LINE_WRITES);
	if (channel == NULL && kind == LINE_READS && !first->alone &&
		first->beyond == 0)
		channel = pool_busy(way->pool);
	if (channel == NULL)
		return false;
	line_remove(line, first);
	send_to(channel, first);
	return true;
}

void
way_dispatch(struct way *way)
{
	const struct config *config = way->relay->server->config;
	bool		goes_on = true;

	while (goes_on && way_waiting(way) > 0)
	{
		bool		tried[LINES] = {false};
		int			n;

		pool_want(way->pool, way_waiting(way), config->login_pool_share);
		goes_on = false;
		for (n = 0; n < LINES && !goes_on; n++)
		{
			int			best = -1;
			uint64_t	queued = 0;
			int			i;

			for (i = 0; i < LINES; i++)
			{
				const struct exchange *first = tried[i] ? NULL :
					first_of(&way->lines[i]);

				if (first == NULL || (best >= 0 && first->queued >= queued))
					continue;
				best = i;
				queued = first->queued;
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

void
way_happened(void *argument, struct channel *channel)
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
	way_dispatch(way);
}

/* -------- times -------- */

/* Gives up calls that take too long. */
static void
look_at_calls(void *argument, struct channel *channel)
{
	struct relay *relay = argument;
	const struct config *config = relay->server->config;
	uint64_t	most = (uint64_t) (config->statement_timeout_ms +
								   CALL_GRACE_MS) * 1000;
	uint64_t	age = channel_age(channel, now_micros());
	void	   *owner = channel->owners[0];

	if (config->statement_timeout_ms > 0 && age > most && !channel->lent)
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
		relay->wait_ms = WAY_LOOK_MS;
}

void
way_give_up(struct exchange *exchange, bool in_vain, uint64_t now)
{
	const struct refusal *refusal = in_vain ? &refusal_unavailable :
		&refusal_busy;
	const struct trouble *trouble = in_vain ?
		pool_trouble(exchange->way->pool) : NULL;

	exchange->answer.waited_until = now;
	exchange->answer.wait_micros = waited(exchange, now);
	if (asks_primary(exchange, refusal) || asks_node(exchange, refusal))
		return;
	exchange->answer.trouble = trouble ? trouble->name : NULL;
	if (!in_vain && exchange->client != NULL)
		metrics_add(exchange->request.lane == LANE_LOGIN ?
					METRIC_POOL_TIMEOUTS_LOGIN : METRIC_POOL_TIMEOUTS_DATA,
					1);
	conclude(exchange, refusal);
}

uint64_t
way_deadline(const struct exchange *exchange)
{
	return exchange->started + exchange->called +
		(uint64_t) exchange->config->pool_wait_ms * 1000;
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
		if (in_vain || now >= way_deadline(exchange) ||
			way_is_stuck(exchange, now))
			way_give_up(exchange, in_vain, now);
		else
			way_add_last(exchange);
	}
}

void
way_look(struct way *way, uint64_t now)
{
	struct relay *relay = way->relay;
	uint64_t	failed;
	int			i;

	pool_turn(way->pool, look_at_calls, relay);
	way_dispatch(way);
	if (way_waiting(way) == 0)
		return;
	if (relay->wait_ms < 0)
		relay->wait_ms = WAY_LOOK_MS;

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
