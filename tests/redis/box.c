/*
 * The box; see box.h.
 */
#include "box.h"

#include "redis/reply.h"
#include "redis/script.h"

static void
box_update(void *arg)
{
	struct box *b = arg;
	bool want = b->n < b->slots;

	if (b->queue == NULL || b->fetching)
		return;
	if (want != b->wanted) {
		b->wanted = want;
		b->ready = false;
		queue_want(b->queue, want);
	}
	if (b->ready && want) {
		b->ready = false;
		b->fetching = true;
		b->fetches++;
		b->asked = b->slots - b->n;
		queue_fetch(b->queue, b->asked, TURN_SHARE);
	}
}

static void
box_touch(struct box *b)
{
	loop_defer(b->loop, &b->update, box_update, b);
}

/* -- queue_events ----------------------------------------------------------- */

static void
box_ready(void *arg)
{
	struct box *b = arg;

	assert_true(b->wanted);
	assert_false(b->ready);
	b->ready = true;
	b->readies++;
	box_touch(b);
}

static void
box_deliver(struct message *m, void *arg)
{
	struct box *b = arg;

	assert_true(b->fetching);
	assert_true(b->n < BOX_MAX);
	b->msgs[b->n++] = m;
	b->delivered++;
	b->last_delivery = clock_mono();
	if (b->on_deliver != NULL)
		b->on_deliver(b, m);
}

static void
box_fetched(const struct fetched *f, void *arg)
{
	struct box *b = arg;

	assert_true(b->fetching);
	assert_true(f->got <= b->asked);
	b->fetching = false;
	b->fetched[f->status]++;
	if (f->cause != NULL)
		snprintf(b->cause, sizeof(b->cause), "%s", f->cause);
	box_touch(b);
}

static void
box_lost(struct message *m, void *arg)
{
	struct box *b = arg;

	b->losts++;
	b->lost = m;
}

static void
box_cancelled(struct message *m, void *arg)
{
	struct box *b = arg;

	assert_true(m->cancel != CANCEL_NONE);
	b->cancels++;
}

static void
box_settled(struct message *m, const struct verdict *v, const struct result *r,
    enum settled how, void *arg)
{
	struct box *b = arg;
	static const enum stat of[] = {
		[VERDICT_ACK] = STAT_ACKED, [VERDICT_RETRY] = STAT_RETRIED,
		[VERDICT_DEAD] = STAT_DEAD, [VERDICT_RETURN] = STAT_RETURNED,
		[VERDICT_STALE] = STAT_STALE, [VERDICT_DROP] = STAT_CANCELLED,
	};

	(void)r;
	assert_non_null(m->id);
	b->settled[how]++;
	b->last_settled = how;
	if (how == SETTLED_OK)
		b->stats.n[of[v->op]]++;
	if (b->on_settled != NULL)
		b->on_settled(b, m, v->op, how);
	box_touch(b);
}

static void
box_ticked(const struct tick_report *t, void *arg)
{
	struct box *b = arg;

	assert_int_equal(b->closes, 0);		/* no callback comes after closed() */
	b->ticks++;
	b->requeued += t->requeued;
	b->promoted += t->promoted;
	b->dropped += t->dropped;
	if (t->warning != NULL) {
		b->warnings++;
		snprintf(b->warning, sizeof(b->warning), "%s", t->warning);
	}
}

static void
box_paused(bool paused, const char *why, void *arg)
{
	struct box *b = arg;

	assert_int_not_equal(b->paused, paused);
	b->paused = paused;
	snprintf(b->why, sizeof(b->why), "%s", why != NULL ? why : "");
}

static void
box_listening(bool on, const char *why, void *arg)
{
	struct box *b = arg;

	assert_true(on == (why == NULL));
	if (on)
		b->hears++;
	else
		b->deafs++;
	if (why != NULL)
		snprintf(b->why, sizeof(b->why), "%s", why);
}

static void
box_closed(void *arg)
{
	((struct box *)arg)->closes++;
}

static const struct queue_events box_events = {
	.ready = box_ready, .deliver = box_deliver, .fetched = box_fetched,
	.lost = box_lost, .cancelled = box_cancelled, .settled = box_settled, .ticked = box_ticked,
	.paused = box_paused, .listening = box_listening,
	.closed = box_closed,
};

/* -- connection ------------------------------------------------------------- */

static void
box_saw_time(enum conn_answer answer, const struct redisReply *r, void *arg)
{
	struct box *b = arg;

	if (answer == CONN_REPLY)
		conn_saw_time(b->conn, reply_double(reply_at(r, 0), 0) +
		    reply_double(reply_at(r, 1), 0) / 1e6);
}

static void
box_up(const struct conn_server *s, void *arg)
{
	struct box *b = arg;

	b->ups++;
	if (b->queue != NULL)
		queue_conn_up(b->queue, s);
	watch_conn_up(b->watch);
	conn_words(b->conn, box_saw_time, b, "TIME", NULL);
}

static void
box_down(const char *cause, void *arg)
{
	struct box *b = arg;

	snprintf(b->cause, sizeof(b->cause), "%s", cause);
	watch_conn_down(b->watch);
	if (b->queue != NULL)
		queue_conn_down(b->queue);
}

static void
box_mode(bool on, const char *why, void *arg)
{
	struct box *b = arg;

	(void)on;
	(void)why;
	b->watching++;
}

void
box_init(struct box *b, const struct server *s, const char *name)
{
	static const struct conn_events events = { .up = box_up, .down = box_down };

	memset(b, 0, sizeof(*b));
	b->loop = loop_new();
	b->config = config_new();
	b->config->redis.servers = xcalloc(2, sizeof(char *));
	b->config->redis.servers[0] = xstrdup(s->uri);
	b->config->redis.username = xstrdup("");
	b->config->redis.password_file = xstrdup("");
	b->config->redis.timeout = 5 * SEC;
	b->cfg = xcalloc(1, sizeof(*b->cfg));
	b->config->queues = xreallocarray(b->config->queues, 2, sizeof(*b->config->queues));
	b->config->queues[0] = b->cfg;
	b->config->queues[1] = NULL;
	b->config->nqueues = 1;
	b->cfg->kind = KIND_ACK;
	b->cfg->name = xstrdup("orders");
	b->cfg->key = xstrdup("orders");
	b->cfg->rate = xstrdup("");
	b->cfg->consumer_group = xstrdup("rqd");
	b->cfg->id = xstrdup("id");
	b->cfg->delayed_key = xstrdup("");
	b->cfg->group_by = xstrdup("");
	b->cfg->group_concurrency = 1;
	b->cfg->lease = b->cfg->foreign_timeout = 60 * SEC;
	b->cfg->message_max = 16 << 20;
	snprintf(b->instance, sizeof(b->instance), "%s-%06x", name, (unsigned)unit_below(1 << 24));
	b->conn = conn_new(b->loop, &b->config->redis, name, 0, &events, b);
	/* Tests cut connections often: do not wait longer each time. */
	conn_set_limits(b->conn, &(struct conn_limits){ .backoff_max = 100 * MSEC });
	b->watch = watch_new(b->loop, b->conn, &b->config->redis, name, box_mode, b);
	b->env = (struct queue_env){
		.loop = b->loop, .conn = b->conn, .watch = b->watch,
		.redis = &b->config->redis,
		.instance = b->instance, .host = "testhost",
	};
}

void
box_start(struct box *b, unsigned slots)
{
	b->queue = queue_ops(b->cfg->kind)->open(&b->env, b->cfg->key, b->config, b->cfg,
	    &b->stats, &box_events, b);
	conn_start(b->conn);
	box_set_slots(b, slots);
	WAIT(b, b->ups == 1 && b->watching == 1);
	if (slots > 0)
		WAIT(b, b->fetched[FETCH_OK] + b->fetched[FETCH_PAUSED] +
		    b->fetched[FETCH_LIMITED] > 0);
	box_turn(b, 20 * MSEC);
}

void
box_take(struct box *b, unsigned slots)
{
	box_start(b, slots);
	WAIT(b, b->n == slots);
}

void
box_ack_until(struct box *b, unsigned delivered)
{
	while (b->n > 0 || b->delivered < delivered) {
		if (b->n > 0)
			box_settle(b, 0, VERDICT_ACK, false, 0);
		else
			loop_turn(b->loop, SEC);
	}
}

void
box_drain(struct box *const *fleet, unsigned n, void (*each)(void))
{
	usec_t end = clock_mono() + BOX_WAIT;
	unsigned i;

	while (left_over() || server_int(&server, "EXISTS orders") > 0) {
		assert_true(clock_mono() < end);
		for (i = 0; i < n; i++) {
			while (fleet[i]->n > 0)
				box_settle(fleet[i], 0, VERDICT_ACK, false, 0);
			queue_tick(fleet[i]->queue);
			box_turn(fleet[i], 10 * MSEC);
		}
		if (each != NULL)
			each();
	}
}

void
box_set_slots(struct box *b, unsigned slots)
{
	b->slots = slots;
	box_touch(b);
}

void
box_free_queue(struct box *b)
{
	queue_free(b->queue);
	b->queue = NULL;
	b->n = 0;
}

void
box_done(struct box *b)
{
	box_free_queue(b);
	loop_defer_cancel(b->loop, &b->update);
	watch_free(b->watch);
	conn_free(b->conn);
	config_unref(b->config);
	loop_free(b->loop);
}

void
box_settle(struct box *b, unsigned i, enum verdict_op op, bool failed, usec_t delay)
{
	struct verdict v = { .op = op, .failed = failed, .delay = delay, .reason = REASON_EXIT };
	struct result r = { .end = END_EXIT, .status = failed ? 1 : 0 };
	struct message *m = b->msgs[i];

	assert_true(i < b->n);
	r.error_tail = xstrdup("oops");
	r.error_len = 4;
	memmove(&b->msgs[i], &b->msgs[i + 1], (b->n - i - 1) * sizeof(b->msgs[0]));
	b->n--;
	queue_settle(b->queue, m, &v, &r);
	assert_null(r.error_tail);
	box_touch(b);
}

void
box_settle_each_way(struct box *b)
{
	static const enum verdict_op ops[] = {
		VERDICT_ACK, VERDICT_RETRY, VERDICT_RETURN, VERDICT_DEAD, VERDICT_DEFER
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(ops); i++)
		box_settle(b, 0, ops[i], ops[i] == VERDICT_RETRY || ops[i] == VERDICT_DEAD, HOUR);
}

void
box_turn(struct box *b, usec_t time)
{
	usec_t end = clock_mono() + time;

	while (clock_mono() < end)
		loop_turn(b->loop, end - clock_mono());
}

static void
box_answered(enum conn_answer answer UNUSED, const struct redisReply *reply UNUSED, void *arg)
{
	*(bool *)arg = true;
}

void
box_deafen(struct box *b)
{
	bool answered = false;

	/*
	 * Wait for this reply: a pop sent earlier could still take what the test pushes
	 * next.
	 */
	conn_words(b->conn, box_answered, &answered, "PING", NULL);
	WAIT(b, answered);
	conn_words(b->conn, NULL, NULL, "CLIENT", "REPLY", "OFF", NULL);
}

void
box_cut(struct box *b, struct server *s)
{
	unsigned ups = b->ups;

	assert_int_equal(server_int(s, "CLIENT KILL ID %lld", (long long)conn_id(b->conn)), 1);
	WAIT(b, b->ups == ups + 1);
}

/* -- what the tests share ----------------------------------------------------- */

struct server	server;
struct box	box;

int
fixture_setup(void **state)
{
	(void)state;
	server_start(&server, NULL);
	/* Tests count calls, and stop reading before the reply to one. */
	for (const struct script *s = script_table; s->name != NULL; s++)
		server_do(&server, "SCRIPT LOAD %s", s->text);
	box_init(&box, &server, "a");
	return 0;
}

int
fixture_teardown(void **state)
{
	(void)state;
	box_done(&box);
	server_stop(&server);
	return 0;
}

void
push(const char *payload)
{
	server_int(&server, "LPUSH orders %s", payload);
}

void
push_numbers(int n)
{
	int i;

	for (i = 0; i < n; i++)
		server_int(&server, "LPUSH orders {\"id\":%d}", i);
}

long long
keys(void)
{
	return server_int(&server, "EVAL %s 0", "local n = 0 "
	    "for _, key in ipairs(redis.call('KEYS', '*')) do "
	    "if key ~= 'ordersSTATS' then n = n + 1 end end return n");
}

bool
left_over(void)
{
	return server_int(&server,
	    "EXISTS ordersBACKUP ordersRETRY ordersCONTEXT ordersDELIVERY") > 0;
}

unsigned
total_settled(const struct box *b)
{
	unsigned n = 0, i;

	for (i = 0; i <= SETTLED_GAVE_UP; i++)
		n += b->settled[i];
	return n;
}

void
finish(struct box *b, unsigned i, enum verdict_op op, bool failed, usec_t delay, enum settled how)
{
	unsigned before = total_settled(b);

	box_settle(b, i, op, failed, delay);
	WAIT(b, total_settled(b) == before + 1);
	assert_int_equal(b->last_settled, how);
}

void
bury_too_large(enum settled how)
{
	box.cfg->message_max = 10;
	push("0123456789012");
	box_take(&box, 1);
	assert_true(box.msgs[0]->too_large);
	assert_null(box.msgs[0]->payload);
	assert_int_equal(box.msgs[0]->len, 13);
	finish(&box, 0, VERDICT_DEAD, false, 0, how);
}
