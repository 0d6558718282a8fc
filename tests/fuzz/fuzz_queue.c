/*
 * Fuzzes the replies to the scripts of a queue, for each kind of queue, without a
 * connection and under simulated time.
 *
 * The first byte is the kind; 128 more: messages may be large.  Then come steps, each a byte:
 *
 *	a N N BYTES	the oldest call is answered by this reply (RESP, length N N)
 *	o C N N BYTES	the same for the oldest call of one script, if there is one.  C is the
 *			first letter of pop, settle, renew, tick; m: reclaim
 *	l u c		the connection is lost; is back; is back, to another server
 *	n		the oldest call was never sent
 *	f N		N messages are fetched, if the queue has said that there are some
 *	w		the engine wants no messages; the next time, it wants them again
 *	A R D B S	the oldest message in hand: ack, retry, dead, return, stale
 *	t		a tick
 *	T N		N tenths of a second pass
 *	k		all keys that are watched change
 *	s		the subscriber's connection is made, or lost
 *	m N N BYTES	it gets this message, on the channel that the first byte names
 *
 * With any replies each message that is delivered is settled once, fetches are answered
 * once, and the queue closes.
 */
#include "fuzz.h"

#include <stdbool.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "base/clock.h"
#include "base/util.h"
#include "loop/loop.h"
#include "queue/queue.h"
#include "redis/conn.h"
#include "redis/script.h"

FUZZ_MAIN("queue")

#define CHECK(what) do { if (!(what)) abort(); } while (0)
#define MESSAGES_MAX	4096

/* -- functions in place of redis/, without a connection ----------------------- */

struct pending {
	conn_answer_fn		*fn;
	void			*arg;
};

struct call {
	struct pending		 pending;
	TAILQ_ENTRY(call)	 entry;
	const struct script	*script;	/* NULL: another command */
};

static TAILQ_HEAD(, call) calls = TAILQ_HEAD_INITIALIZER(calls);
static TAILQ_HEAD(, watch_key) keys = TAILQ_HEAD_INITIALIZER(keys);
static bool up;
static bool reset;		/* the queue has called conn_reset() */
static size_t reclaimed, all_delivered, all_settled;	/* of all inputs */
static double redis_time;

static bool	is_sub(const struct conn *);
static bool	sub_is_up(void);

bool
conn_is_ready(const struct conn *c)
{
	return is_sub(c) ? sub_is_up() : up;
}

double
conn_redis_time(const struct conn *c UNUSED)
{
	return redis_time;
}

void
conn_saw_time(struct conn *c UNUSED, double t)
{
	redis_time = t;
}

usec_t
conn_timely_since(const struct conn *c UNUSED)
{
	return up ? 1 : 0;
}

uint64_t
conn_generation(const struct conn *c UNUSED)
{
	return 1;
}

void
conn_reset(struct conn *c UNUSED, const char *cause)
{
	CHECK(strlen(cause) < 100000);
	reset = true;
}

/* The connection of a kind that subscribes; it goes up and down apart from the other. */
static char sub_object;
#define SUB	((struct conn *)(void *)&sub_object)
static const struct conn_events *sub_events;
static void *sub_arg;
static struct { conn_message_fn *fn; void *arg; } subs[4];
static size_t nsubs;
static bool sub_up;

struct conn *
conn_new(struct loop *l UNUSED, const struct redis_options *o UNUSED, const char *n UNUSED,
    unsigned flags UNUSED, const struct conn_events *e, void *arg)
{
	sub_events = e;
	sub_arg = arg;
	return SUB;
}

void
conn_start(struct conn *c)
{
	CHECK(c == SUB);
}

void
conn_free(struct conn *c)
{
	CHECK(c == SUB);
	sub_events = NULL;
	nsubs = 0;
}

void
conn_probe(struct conn *c)
{
	CHECK(c == SUB);
}

void
conn_subscribe(struct conn *c, bool pattern UNUSED, const char *s UNUSED, conn_message_fn *fn,
    void *arg)
{
	CHECK(c == SUB && nsubs < ARRAY_LEN(subs));
	subs[nsubs].fn = fn;
	subs[nsubs++].arg = arg;
}

static bool
is_sub(const struct conn *c)
{
	return c == SUB;
}

static bool
sub_is_up(void)
{
	return sub_up;
}

static struct pending *
add_call(const struct script *s, conn_answer_fn *fn, void *arg)
{
	struct call *call = xcalloc(1, sizeof(*call));

	call->script = s;
	call->pending.fn = fn;
	call->pending.arg = arg;
	TAILQ_INSERT_TAIL(&calls, call, entry);
	return &call->pending;
}

void
conn_drop_answer(struct pending *p)
{
	p->fn = NULL;
}

struct pending *
conn_command(struct conn *c UNUSED, conn_answer_fn *fn, void *arg,
    const struct words *w UNUSED)
{
	return add_call(NULL, fn, arg);
}

void
conn_words(struct conn *c UNUSED, conn_answer_fn *fn, void *arg, ...)
{
	add_call(NULL, fn, arg);
}

struct pending *
conn_script(struct conn *c UNUSED, bool caching UNUSED, const struct script *s,
    conn_answer_fn *fn, void *arg, const struct words *w)
{
	CHECK(s != NULL && w->nkeys <= w->n);
	return add_call(s, fn, arg);
}

bool
watch_is_on(const struct watch *w UNUSED)
{
	return up;
}

void
watch_request(struct watch *w UNUSED, struct request *r, const struct script *s,
    struct words *words)
{
	request_script(r, NULL, s, words);
}

void
watch_add(struct watch *w UNUSED, struct watch_key *k)
{
	TAILQ_INSERT_TAIL(&keys, k, entry);
}

void
watch_remove(struct watch *w UNUSED, struct watch_key *k)
{
	TAILQ_REMOVE(&keys, k, entry);
}

static bool
is_of(const struct call *call, char of)
{
	static const struct { char c; const char *name; } names[] = {
		{ 'p', "pop" }, { 's', "settle" }, { 'm', "reclaim" }, { 'r', "renew" },
		{ 't', "tick" },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(names); i++) {
		if (names[i].c == of)
			return call->script != NULL &&
			    strstr(call->script->name, names[i].name) != NULL;
	}
	return false;
}

/* Answers the oldest call of the script `of`; 0: of any script or command. */
static void
answer(enum conn_answer how, const struct redisReply *r, char of)
{
	struct call *call;

	TAILQ_FOREACH(call, &calls, entry) {
		if (of == 0 || is_of(call, of))
			break;
	}
	if (call == NULL)
		return;
	if (how == CONN_REPLY && is_of(call, 'm'))
		reclaimed++;
	TAILQ_REMOVE(&calls, call, entry);
	if (call->pending.fn != NULL)
		call->pending.fn(how, r, call->pending.arg);
	free(call);
}

/* -- the engine --------------------------------------------------------------- */

static struct queue *queue;
static struct message *hand[MESSAGES_MAX];
static size_t nhand, delivered, settled;
static unsigned asked;	/* by the last fetch */
static bool wanted, ready, fetching, paused, closed;

static void
on_ready(void *arg UNUSED)
{
	CHECK(wanted && !fetching);
	ready = true;
}

static void
on_deliver(struct message *m, void *arg UNUSED)
{
	CHECK(fetching && nhand < MESSAGES_MAX);
	CHECK(m->id != NULL && m->tag != NULL && m->token != NULL);
	CHECK(message_id_ok(m->id, strlen(m->id)));
	CHECK(m->too_large == (m->payload == NULL));
	hand[nhand++] = m;
	delivered++;
}

static void
on_fetched(const struct fetched *f, void *arg UNUSED)
{
	CHECK(fetching && f->got <= asked);
	fetching = false;
}

static void
on_lost(struct message *m, void *arg UNUSED)
{
	CHECK(m->id != NULL);
}

static void
on_cancelled(struct message *m, void *arg UNUSED)
{
	CHECK(m->cancel != CANCEL_NONE);
}

static void
on_settled(struct message *m, const struct verdict *v UNUSED, const struct result *r UNUSED,
    enum settled how UNUSED, void *arg UNUSED)
{
	CHECK(m->id != NULL);
	settled++;
}

static void
on_ticked(const struct tick_report *t, void *arg UNUSED)
{
	CHECK(t->warning == NULL || t->warning[0] != '\0');
}

static void
on_paused(bool is, const char *why UNUSED, void *arg UNUSED)
{
	CHECK(paused != is);
	paused = is;
}

static void
on_listening(bool is, const char *why, void *arg UNUSED)
{
	CHECK(is == (why == NULL));
	CHECK(!is || sub_up);
}

static void
on_closed(void *arg UNUSED)
{
	CHECK(!closed && nhand == 0);
	closed = true;
}

static const struct queue_events events = {
	.ready = on_ready, .deliver = on_deliver, .fetched = on_fetched, .lost = on_lost,
	.cancelled = on_cancelled, .settled = on_settled, .ticked = on_ticked, .paused = on_paused,
	.listening = on_listening, .closed = on_closed,
};

static void
settle_one(char how)
{
	struct verdict v = { .op = VERDICT_ACK };
	struct result r = { .end = END_EXIT, .error_tail = xstrdup("tail"), .error_len = 4 };
	struct message *m;

	if (nhand == 0) {
		free(r.error_tail);
		return;
	}
	m = hand[0];
	memmove(hand, hand + 1, --nhand * sizeof(hand[0]));
	switch (how) {
	case 'R': v.op = VERDICT_RETRY; v.failed = true; v.delay = SEC; break;
	case 'D': v.op = VERDICT_DEAD; v.failed = true; v.reason = REASON_EXIT; break;
	case 'B': v.op = VERDICT_RETURN; break;
	case 'S': v.op = VERDICT_STALE; break;
	default: break;
	}
	queue_settle(queue, m, &v, &r);
	free(r.error_tail);
}

/* -- steps -------------------------------------------------------------------- */

static void
conn_goes(bool is, bool changed)
{
	struct conn_server server = { .address = "fuzz", .changed = changed };

	if (up == is)
		return;
	up = is;
	if (is) {
		queue_conn_up(queue, &server);
		return;
	}
	while (!TAILQ_EMPTY(&calls))
		answer(CONN_LOST, NULL, 0);
	queue_conn_down(queue);
}

static void
answer_bytes(const uint8_t *p, size_t n, char of)
{
	redisReader *reader = redisReaderCreate();
	void *reply = NULL;

	CHECK(reader != NULL);
	if (redisReaderFeed(reader, (const char *)p, n) == REDIS_OK &&
	    redisReaderGetReply(reader, &reply) == REDIS_OK && reply != NULL) {
		if (up)
			answer(CONN_REPLY, reply, of);
		freeReplyObject(reply);
	}
	redisReaderFree(reader);
}

static void
sub_turns(void)
{
	struct conn_server server = { .address = "fuzz" };

	if (sub_events == NULL)
		return;
	sub_up = !sub_up;
	if (sub_up)
		sub_events->up(&server, sub_arg);
	else
		sub_events->down("cut", sub_arg);
}

/* Gives a published message to all subscriptions; each may take the reply's string. */
static void
hear(const uint8_t *p, size_t n)
{
	size_t i;

	for (i = 0; sub_up && i < nsubs; i++) {
		redisReply r = { .type = REDIS_REPLY_STRING, .len = n };

		r.str = malloc(n + 1);
		CHECK(r.str != NULL);
		memcpy(r.str, p, n);
		r.str[n] = '\0';
		subs[i].fn((const char *)p, n > 0, &r, subs[i].arg);
		free(r.str);
	}
}

/* Reads a length in front of bytes: sets *n, and returns the bytes, or the end. */
static const uint8_t *
take_length(const uint8_t *p, const uint8_t *end, size_t *n)
{
	*n = 0;
	if (end - p < 2)
		return end;
	*n = (size_t)p[0] << 8 | p[1];
	p += 2;
	if (*n > (size_t)(end - p))
		*n = (size_t)(end - p);
	return p;
}

/* Does one step; returns the input after it. */
static const uint8_t *
step(const uint8_t *p, const uint8_t *end)
{
	size_t n;
	char of;

	switch (*p++) {
	case 'a':
		p = take_length(p, end, &n);
		/* A real connection refuses such a large array before the queue gets it. */
		if (memmem(p, n, "*1000", 5) == NULL)
			answer_bytes(p, n, 0);
		return p + n;
	case 'o':
		if (p == end)
			return end;
		of = (char)*p++;
		p = take_length(p, end, &n);
		if (memmem(p, n, "*1000", 5) == NULL)
			answer_bytes(p, n, of);
		return p + n;
	case 'm':
		p = take_length(p, end, &n);
		hear(p, n);
		return p + n;
	case 's': sub_turns(); break;
	case 'l': conn_goes(false, false); break;
	case 'u': conn_goes(true, false); break;
	case 'c': conn_goes(true, true); break;
	case 'n': answer(CONN_NOT_SENT, NULL, 0); break;
	case 'f':
		if (p < end && !fetching && wanted && ready) {
			fetching = true;
			ready = false;
			asked = 1 + *p % 16;
			queue_fetch(queue, asked, (enum turn)(*p % (TURN_LONGEST + 1)));
			p++;
		}
		break;
	case 'A': case 'R': case 'D': case 'B': case 'S': settle_one((char)p[-1]); break;
	case 't': queue_tick(queue); break;
	case 'w':
		if (fetching)
			break;
		wanted = !wanted;
		ready = false;
		queue_want(queue, wanted);
		break;
	case 'k': {
		struct watch_key *k;

		TAILQ_FOREACH(k, &keys, entry)
			k->changed(k->arg);
		break;
	}
	default: break;
	}
	return p;
}

static struct config *
make_config(uint8_t first)
{
	static const enum kind kinds[] = { KIND_ACK, KIND_UNIQUE, KIND_STREAM,
	    KIND_LIST, KIND_CHANNEL, KIND_PATTERN, KIND_EXPIRED };
	struct config *config = config_new();
	struct queue_config *cfg = xcalloc(1, sizeof(*cfg));

	config->redis.timeout = 5 * SEC;
	config->queues = xreallocarray(config->queues, 2, sizeof(*config->queues));
	config->queues[0] = cfg;
	config->queues[1] = NULL;
	config->nqueues = 1;
	cfg->kind = kinds[first % 128 % ARRAY_LEN(kinds)];
	cfg->name = xstrdup("q");
	cfg->key = xstrdup("q");
	cfg->keys = xcalloc(3, sizeof(char *));
	cfg->keys[0] = xstrdup("q");
	cfg->keys[1] = xstrdup("q2");
	cfg->match = xcalloc(2, sizeof(char *));
	cfg->match[0] = xstrdup("*a*");
	cfg->backlog = 5;
	cfg->backlog_bytes = 2000;
	cfg->notifications = NOTIFICATIONS_SET;
	cfg->skew = SEC;
	cfg->rate = xstrdup("");
	cfg->consumer_group = xstrdup("rqd");
	cfg->id = xstrdup("id");
	cfg->delayed_key = xstrdup("");
	cfg->group_by = xstrdup("");
	cfg->group_concurrency = 1;
	cfg->lease = cfg->foreign_timeout = 10 * SEC;
	cfg->message_max = first < 128 ? 1000 : 1 << 20;
	return config;
}

static void
finish(struct loop *l)
{
	while (nhand > 0)
		settle_one('A');
	loop_turn(l, 0);
	queue_close(queue);
	loop_turn(l, 0);
	conn_goes(false, false);
	loop_turn(l, 0);
	queue_free(queue);
	CHECK(settled == delivered && TAILQ_EMPTY(&keys));
	all_delivered += delivered;
	all_settled += settled;
	while (!TAILQ_EMPTY(&calls))
		answer(CONN_LOST, NULL, 0);
}

#ifndef RQD_FUZZING
/* Fails if the corpus does not make the queue deliver messages, and reclaim lost ones. */
static void
reached(void)
{
	printf("# delivered %zu, settled %zu, reclaim answered %zu times\n", all_delivered,
	    all_settled, reclaimed);
	CHECK(all_delivered > 1000 && reclaimed > 10);
}
#endif

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = data + size;
	struct stats stats = { 0 };
	struct queue_env env = { .instance = "fuzz", .host = "host" };
	struct config *config;
	struct loop *l;

	if (size == 0)
		return 0;
#ifndef RQD_FUZZING
	static bool first = true;

	if (first)
		atexit(reached);
	first = false;
#endif
	nhand = delivered = settled = 0;
	ready = fetching = paused = closed = reset = false;
	up = sub_up = false;
	redis_time = 0;
	clock_fake(1000 * SEC, 1000 * SEC);
	env.loop = l = loop_new_simulated();
	config = make_config(data[0]);
	env.redis = &config->redis;
	queue = queue_ops(config->queues[0]->kind)->open(&env, config->queues[0]->key, config,
	    config->queues[0], &stats, &events, NULL);
	wanted = true;
	queue_want(queue, true);
	for (data++; data < end;) {
		uint8_t what = *data;

		data = step(data, end);
		if (what == 'T' && data < end)
			loop_run_for(l, *data++ * 100 * MSEC);
		else
			loop_turn(l, 0);
		if (reset)
			conn_goes(false, false);
		reset = false;
	}
	finish(l);
	loop_free(l);
	config_unref(config);
	clock_real(0);
	return 0;
}
