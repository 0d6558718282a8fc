/*
 * Fixture for tests of queues with shards: a queue of four shards, and the plain key "q"
 * that it also reads.  Each key is a queue in memory; the loop is simulated.
 */
#pragma once

#include "unit.h"

#include "../sim/mem.h"
#include "policy/shard_keys.h"
#include "queue/shards.h"

#define SHARDS	4
#define KEYS	(SHARDS + 1)
#define MOST	1000

struct fixture {
	struct loop	*loop;
	struct config	*config;
	struct queue_config *cfg;	/* config owns it */
	struct queue_config each[KEYS];	/* for each shard a copy with its key */
	struct stats	*stats_of[KEYS];
	struct queue	*part[KEYS];
	struct mem_store *store[KEYS];
	struct queue_env env;
	struct stats	 stats;
	struct queue	*queue;
	bool		 busy;		/* inside a call into the queue */
	/* What the callbacks of the engine got, and how often each was called. */
	struct message	*msgs[MOST];
	unsigned	 n, asked, got, fetched, readies, settled, closes, paused, unpaused;
	unsigned	 warnings, refusals, acceptances, empties;
	enum fetch_status status;
	char		 cause[100];
	char		 warning[200];
	/* Fetches from each shard, the size of the last one, and what held() answers. */
	unsigned	 fetches[KEYS], asked_of[KEYS], held[KEYS];
	/* Whether a shard's master hangs and answers no fetch; whether the fetch was deferred. */
	bool		 hangs[KEYS], deferred[KEYS];
	unsigned	 unanswered[KEYS];
};

static struct fixture f;

#define CALL(call) do { f.busy = true; call; f.busy = false; } while (0)

static inline void
on_ready(void *arg UNUSED)
{
	assert_false(f.busy);
	f.readies++;
}

static inline void
on_deliver(struct message *m, void *arg UNUSED)
{
	assert_false(f.busy);
	assert_true(f.n < MOST);
	f.msgs[f.n++] = m;
	f.got++;
}

static inline void
on_fetched(const struct fetched *r, void *arg UNUSED)
{
	assert_false(f.busy);
	assert_int_equal(r->got, f.got);
	assert_true(r->got <= f.asked);
	f.fetched++;
	f.status = r->status;
	snprintf(f.cause, sizeof(f.cause), "%s", r->cause != NULL ? r->cause : "");
}

static inline void
on_settled(struct message *m UNUSED, const struct verdict *v UNUSED,
    const struct result *r UNUSED, enum settled how UNUSED, void *arg UNUSED)
{
	f.settled++;
	f.stats.n[STAT_ACKED]++;
}

static inline void
on_ticked(const struct tick_report *t, void *arg UNUSED)
{
	f.empties += t->warning == NULL && t->refused == NULL && t->requeued == 0;
	if (t->warning != NULL) {
		f.warnings++;
		snprintf(f.warning, sizeof(f.warning), "%s", t->warning);
	}
	if (t->refused != NULL)
		t->refused[0] != '\0' ? f.refusals++ : f.acceptances++;
}

static inline void
on_paused(bool is, const char *why UNUSED, void *arg UNUSED)
{
	is ? f.paused++ : f.unpaused++;
}

static inline void
on_closed(void *arg UNUSED)
{
	f.closes++;
}

static const struct queue_events events = {
	.ready = on_ready, .deliver = on_deliver, .fetched = on_fetched, .settled = on_settled,
	.ticked = on_ticked, .paused = on_paused, .closed = on_closed
};

static inline size_t
index_of(const struct queue *q)
{
	size_t i = 0;

	while (f.part[i] != q)
		i++;
	return i;
}

static inline void
spy_fetch(struct queue *q, unsigned n, enum turn turn)
{
	size_t i = index_of(q);

	assert_int_equal(f.unanswered[i], 0);
	f.fetches[i]++;
	f.asked_of[i] = n;
	f.deferred[i] = false;
	if (f.hangs[i]) {
		f.unanswered[i] = n;
		return;
	}
	f.held[i] -= f.held[i] < n ? f.held[i] : n;
	queue_mem.fetch(q, n, turn);
}

static inline void
spy_defer_fetch(struct queue *q)
{
	assert_true(f.unanswered[index_of(q)] > 0);
	f.deferred[index_of(q)] = true;
}

static inline unsigned
spy_held(const struct queue *q)
{
	return f.held[index_of(q)];
}

static struct queue_ops spy;

static inline struct queue *
open_part(const struct queue_env *env, const char *key, struct config *config,
    const struct queue_config *cfg, struct stats *stats, const struct queue_events *e, void *arg)
{
	size_t i = 0;

	while (strcmp(config_key_at(cfg, i), key) != 0)
		i++;
	f.each[i] = *cfg;
	f.each[i].key = (char *)(uintptr_t)key;
	f.stats_of[i] = stats;
	f.part[i] = queue_mem.open(env, config, &f.each[i], stats, e, arg);
	f.part[i]->ops = &spy;
	return f.part[i];
}

static inline int
setup(void **state UNUSED)
{
	static const struct conn_server server = { .first = true, .changed = true };

	memset(&f, 0, sizeof(f));
	spy = queue_mem;
	spy.fetch = spy_fetch;
	spy.held = spy_held;
	spy.defer_fetch = spy_defer_fetch;
	clock_fake(SEC, 1000 * SEC);
	f.loop = loop_new_simulated();
	f.config = config_new();
	f.cfg = xcalloc(1, sizeof(*f.cfg));
	f.cfg->key = xstrdup("q");
	f.cfg->keys = xcalloc(2, sizeof(char *));
	f.cfg->keys[0] = xstrdup("q");
	f.cfg->shards = SHARDS;
	f.cfg->shards_drain = 1;
	f.cfg->lease = 60 * SEC;
	f.cfg->message_max = 1000;
	f.cfg->batch = 1;
	f.cfg->concurrency = 8;
	shard_keys_set(f.cfg);
	*APPEND(f.config->queues, f.config->nqueues) = f.cfg;
	f.env.loop = f.loop;
	for (size_t i = 0; i < KEYS; i++)
		f.store[i] = mem_store_new(config_key_at(f.cfg, i));
	f.queue = shards_new(open_part, &f.env, f.config, f.cfg, &f.stats, &events, NULL);
	queue_conn_up(f.queue, &server);
	return 0;
}

static inline int
teardown(void **state UNUSED)
{
	queue_free(f.queue);
	loop_free(f.loop);
	for (size_t i = 0; i < KEYS; i++)
		mem_store_free(f.store[i]);
	config_unref(f.config);
	clock_real(0);
	return 0;
}

#define FIXTURE_TEST(name)	TEST_WITH(name, setup, teardown)

static inline void
turn(void)
{
	loop_run_for(f.loop, 0);
}

static inline void
push(size_t i, unsigned n)
{
	char text[32];

	for (unsigned k = 0; k < n; k++) {
		snprintf(text, sizeof(text), "{\"id\":\"%zu.%u\"}", i, k);
		mem_push(f.store[i], text, strlen(text), 0);
	}
}

static inline void
want(bool wanted)
{
	CALL(queue_want(f.queue, wanted));
	turn();
}

/* Fetches up to n; returns how many came. */
static inline unsigned
fetch(unsigned n)
{
	unsigned before = f.fetched;

	f.asked = n;
	f.got = 0;
	CALL(queue_fetch(f.queue, n, TURN_SHARE));
	turn();
	assert_int_equal(f.fetched, before + 1);
	return f.got;
}

static inline void
ack(struct message *m)
{
	const struct verdict v = { .op = VERDICT_ACK };
	struct result r = { .end = END_EXIT };

	CALL(queue_settle(f.queue, m, &v, &r));
}

static inline void
ack_all(void)
{
	while (f.n > 0)
		ack(f.msgs[--f.n]);
	turn();
}

static inline unsigned
acked(void)
{
	unsigned n = 0;

	for (size_t i = 0; i < KEYS; i++)
		n += mem_count(f.store[i], MEM_ACKED);
	return n;
}
