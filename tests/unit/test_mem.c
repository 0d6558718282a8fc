/*
 * The queue in memory (tests/sim/mem.c) keeps the contract of queue.h.
 */
#include "unit.h"

#include "../sim/mem.h"

struct fixture {
	struct loop	*loop;
	struct config	*config;
	struct queue_config cfg;
	struct mem_store *store;
	struct queue_env env;
	struct stats	 stats;
	struct queue	*queue;
	unsigned	 slots;
	bool		 busy;		/* inside a call into the queue */
	unsigned	 asked;		/* by the last fetch */
	struct message	*msgs[16];
	unsigned	 n, readies, losts, closes, paused, downs, errors;
	unsigned	 settled[SETTLED_GAVE_UP + 1];
};

static struct fixture f;

#define CALL(call) do { f.busy = true; call; f.busy = false; } while (0)

static void
ready(void *arg)
{
	(void)arg;
	assert_false(f.busy);
	f.readies++;
}

static void
deliver(struct message *m, void *arg)
{
	(void)arg;
	assert_false(f.busy);
	f.msgs[f.n++] = m;
}

static void
fetched(const struct fetched *r, void *arg)
{
	(void)arg;
	assert_false(f.busy);
	assert_true(r->got <= f.asked);
	f.downs += r->status == FETCH_DOWN;
	f.errors += r->status == FETCH_ERROR;
	assert_int_equal(r->status == FETCH_ERROR, r->cause != NULL);
}

static void
lost(struct message *m, void *arg)
{
	(void)arg;
	assert_ptr_equal(m, f.msgs[0]);
	f.losts++;
}

static void
settled(struct message *m, const struct verdict *v, const struct result *r,
    enum settled how, void *arg)
{
	(void)arg;
	(void)v;
	(void)r;
	assert_non_null(m->id);
	f.settled[how]++;
}

static void
ticked(const struct tick_report *t, void *arg)
{
	(void)t;
	(void)arg;
}

static void
paused(bool is, const char *why, void *arg)
{
	(void)arg;
	assert_int_equal(is, why != NULL);
	f.paused += is;
}

static void
closed(void *arg)
{
	(void)arg;
	f.closes++;
}

static const struct queue_events events = {
	.ready = ready, .deliver = deliver, .fetched = fetched, .lost = lost,
	.settled = settled, .ticked = ticked, .paused = paused, .closed = closed
};

static void
open_queue(void)
{
	f.queue = queue_mem.open(&f.env, f.cfg.key, f.config, &f.cfg, &f.stats, &events, NULL);
}

static int
setup(void **state)
{
	(void)state;
	memset(&f, 0, sizeof(f));
	clock_fake(SEC, 1000 * SEC);
	f.loop = loop_new_simulated();
	f.config = config_new();
	f.cfg.key = (char *)(size_t)"q";
	f.cfg.lease = 60 * SEC;
	f.cfg.message_max = 100;
	f.env.loop = f.loop;
	f.store = mem_store_new("q");
	open_queue();
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	queue_free(f.queue);
	loop_free(f.loop);
	mem_store_free(f.store);
	config_unref(f.config);
	clock_real(0);
	return 0;
}

#define FIXTURE_TEST(name)	TEST_WITH(name, setup, teardown)

static void
fetch(unsigned n)
{
	CALL(queue_want(f.queue, true));
	loop_run_for(f.loop, 0);
	f.asked = n;
	CALL(queue_fetch(f.queue, n, TURN_SHARE));
	loop_run_for(f.loop, 0);
}

static void
settle(unsigned i, enum verdict_op op, bool failed, usec_t delay)
{
	struct verdict v = { .op = op, .failed = failed, .delay = delay };
	struct result r = { .error_tail = xstrdup("x"), .error_len = 1 };
	struct message *m = f.msgs[i];

	f.msgs[i] = f.msgs[--f.n];
	CALL(queue_settle(f.queue, m, &v, &r));
	assert_null(r.error_tail);
	loop_run_for(f.loop, 0);
}

FIXTURE_TEST(test_deliver)
{
	CALL(queue_want(f.queue, true));
	loop_run_for(f.loop, SEC);
	assert_int_equal(f.readies, 0);
	assert_true(queue_is_empty(f.queue));
	mem_push(f.store, "{\"id\":7}", 8, 0);
	mem_push(f.store, "b\0c", 3, 0);
	mem_push(f.store, "later", 5, 10 * SEC);
	loop_run_for(f.loop, 0);
	assert_int_equal(f.readies, 1);
	fetch(5);
	assert_int_equal(f.n, 2);
	assert_string_equal(f.msgs[0]->id, "7");
	assert_int_equal(f.msgs[1]->len, 3);
	assert_memory_equal(f.msgs[1]->payload, "b\0c", 3);
	settle(0, VERDICT_ACK, false, 0);
	settle(0, VERDICT_DEAD, true, 0);
	assert_int_equal(f.settled[SETTLED_OK], 2);
	assert_int_equal(mem_count(f.store, MEM_ACKED), 1);
	assert_int_equal(mem_count(f.store, MEM_DEAD), 1);
	loop_run_for(f.loop, 11 * SEC);
	fetch(5);
	assert_int_equal(f.n, 1);
	settle(0, VERDICT_RETRY, true, 5 * SEC);
	assert_int_equal(TAILQ_LAST(mem_entries(f.store), mem_entries)->attempts, 1);
	loop_run_for(f.loop, 6 * SEC);
	fetch(1);
	assert_int_equal(f.msgs[0]->attempts, 1);
	settle(0, VERDICT_RETURN, false, 0);
	fetch(1);
	assert_int_equal(f.msgs[0]->attempts, 1);
	settle(0, VERDICT_ACK, false, 0);
}

FIXTURE_TEST(test_states)
{
	mem_push(f.store, "x", 1, 0);
	mem_set_paused(f.store, true);
	fetch(1);
	assert_int_equal(f.n, 0);
	assert_int_equal(f.paused, 1);
	mem_set_paused(f.store, false);
	mem_set_error(f.store, "WRONGTYPE");
	fetch(1);
	assert_int_equal(f.errors, 1);
	mem_set_error(f.store, NULL);
	mem_set_up(f.store, false);
	fetch(1);
	assert_int_equal(f.downs, 1);
	mem_set_up(f.store, true);
	fetch(1);
	assert_int_equal(f.n, 1);
	mem_set_up(f.store, false);
	settle(0, VERDICT_ACK, false, 0);
	assert_int_equal(f.settled[SETTLED_OK], 0);
	CALL(queue_close(f.queue));
	loop_run_for(f.loop, 0);
	assert_int_equal(f.closes, 0);
	mem_set_up(f.store, true);
	loop_run_for(f.loop, 0);
	assert_int_equal(f.settled[SETTLED_OK], 1);
	assert_int_equal(f.closes, 1);
}

FIXTURE_TEST(test_steal)
{
	struct mem_entry *e = mem_push(f.store, "x", 1, 0);

	fetch(1);
	mem_steal(f.store, e);
	loop_run_for(f.loop, 0);
	assert_int_equal(f.losts, 1);
	settle(0, VERDICT_ACK, false, 0);
	assert_int_equal(f.settled[SETTLED_STALE], 1);
	assert_int_equal(mem_count(f.store, MEM_LEASED), 1);
}

/* A daemon dies with messages in flight: when their leases expire, each counts a crash. */
FIXTURE_TEST(test_die)
{
	mem_push(f.store, "x", 1, 0);
	mem_push(f.store, "y", 1, 0);
	mem_push(f.store, "0123456789012345678901234567890123456789012345678901234567890123456789"
	    "0123456789012345678901234567890123456789", 110, 0);
	fetch(3);
	assert_true(f.msgs[2]->too_large);
	assert_null(f.msgs[2]->payload);
	mem_set_up(f.store, false);
	settle(0, VERDICT_ACK, false, 0);
	queue_free(f.queue);
	f.n = 0;
	assert_int_equal(f.settled[SETTLED_GAVE_UP], 1);
	assert_int_equal(mem_count(f.store, MEM_RETRY), 3);
	mem_set_up(f.store, true);
	open_queue();
	fetch(3);
	assert_int_equal(f.n, 0);
	loop_run_for(f.loop, 61 * SEC);
	fetch(3);
	assert_int_equal(f.n, 3);
	assert_int_equal(f.msgs[0]->crashes, 1);
	assert_int_equal(f.msgs[0]->attempts, 0);
}
