/*
 * Batches in simulated time: the messages of a run, its beginning, and the result of
 * each message.
 */
#include <errno.h>
#include <time.h>
#include "unit.h"

#include "engine_fixture.h"

/* The first letter of a message says how it ends: see ends_as_it_says(). */
static struct fake_end
ends_as_it_says(struct message *msg, void *arg)
{
	(void)arg;
	switch (msg->payload[0]) {
	case 'x':		/* the whole run fails */
		return (struct fake_end){ .after = 10 * MSEC, .status = 1 };
	case 'd':		/* a dead_status */
		return (struct fake_end){ .after = 10 * MSEC, .status = 65 };
	case 'r':		/* this message alone: retry */
		return (struct fake_end){ .said = SAID_RETRY, .delay = HOUR };
	case 'o':		/* this message alone: ok */
		return (struct fake_end){ .said = SAID_OK };
	case 'a':		/* the handler says ok after a second, and goes on running */
		return (struct fake_end){ .after = USEC_MAX, .ok_after = SEC };
	case 'l':		/* takes a minute */
		return (struct fake_end){ .after = MINUTE };
	case 'h':		/* hangs */
		return (struct fake_end){ .after = USEC_MAX };
	default:
		return (struct fake_end){ .after = 10 * MSEC };
	}
}

static void
batch_begin(struct world *w, int concurrency, int batch, usec_t wait)
{
	world_begin(w, ends_as_it_says);
	w->cfg->concurrency = concurrency;
	w->cfg->batch = batch;
	w->cfg->batch_wait = wait;
}

static void
push_many(struct world *w, unsigned n)
{
	while (n-- > 0)
		push_text(w, "good", 0);
}

/* -- which messages share a run ------------------------------------------------------ */

TEST(runs_are_counted_and_messages_are_not)
{
	struct world w;

	batch_begin(&w, 2, 10, 0);
	push_many(&w, 100);
	world_start(&w);
	loop_run_for(w.loop, MSEC);
	assert_int_equal(w.fake.running, 2);
	assert_int_equal(consumer_in_flight(w.consumer), 20);
	assert_int_equal(consumer_block(w.consumer), BLOCK_FULL);
	loop_run_for(w.loop, SEC);
	assert_int_equal(mem_count(w.store, MEM_ACKED), 100);
	assert_int_equal(w.fake.started, 10);
	assert_int_equal(w.fake.peak, 2);
	assert_int_equal(w.fake.largest, 10);
	assert_int_equal(consumer_stats(w.consumer)->n[STAT_ACKED], 100);
	assert_int_equal(consumer_stats(w.consumer)->duration.count, 10);
	world_end(&w);
}

TEST(a_slot_is_a_run)
{
	struct world w;

	batch_begin(&w, 4, 10, 0);
	dispatcher_set_slots(w.dispatcher, 1);
	push_many(&w, 100);
	world_start(&w);
	loop_run_for(w.loop, SEC);
	assert_int_equal(mem_count(w.store, MEM_ACKED), 100);
	assert_int_equal(w.fake.peak, 1);
	assert_int_equal(w.fake.started, 10);
	world_end(&w);
}

TEST(what_is_there_runs_at_once_without_batch_wait)
{
	struct world w;

	batch_begin(&w, 2, 10, 0);
	push_many(&w, 3);
	world_start(&w);
	loop_run_for(w.loop, MSEC);
	assert_int_equal(w.fake.started, 1);
	assert_int_equal(w.fake.largest, 3);
	assert_int_equal(dispatcher_taken(w.dispatcher), 1);
	world_end(&w);
}

/* A batch holds at most 16 MiB, or one message that is larger. */
TEST(a_batch_holds_16_MiB)
{
	size_t len = 6 << 20, i;
	char *text = xcalloc(1, 4 * len);
	struct world w;

	batch_begin(&w, 10, 10, 0);
	w.cfg->message_max = 64 << 20;
	for (i = 0; i < 6; i++)
		mem_push(w.store, text, len, 0);
	mem_push(w.store, text, 4 * len, 0);
	world_start(&w);
	loop_run_for(w.loop, SEC);
	assert_int_equal(mem_count(w.store, MEM_ACKED), 7);
	assert_int_equal(w.fake.started, 4);
	assert_int_equal(w.fake.largest, 2);
	free(text);
	world_end(&w);
}

/* -- batch_wait ---------------------------------------------------------------------- */

TEST(the_first_waits_for_others)
{
	struct world w;
	int i;

	batch_begin(&w, 1, 10, 200 * MSEC);
	push_many(&w, 1);
	world_start(&w);
	for (i = 0; i < 4; i++) {
		loop_run_for(w.loop, 30 * MSEC);
		push_many(&w, 1);
	}
	loop_run_for(w.loop, 75 * MSEC);
	assert_int_equal(w.fake.started, 0);
	assert_int_equal(consumer_in_flight(w.consumer), 5);
	assert_int_equal(dispatcher_taken(w.dispatcher), 1);
	loop_run_for(w.loop, 10 * MSEC);
	assert_int_equal(w.fake.started, 1);
	assert_int_equal(w.fake.largest, 5);
	loop_run_for(w.loop, SEC);
	assert_int_equal(mem_count(w.store, MEM_ACKED), 5);
	assert_int_equal(dispatcher_taken(w.dispatcher), 0);
	world_end(&w);
}

TEST(a_full_batch_does_not_wait)
{
	struct world w;

	batch_begin(&w, 1, 10, 10 * SEC);
	push_many(&w, 4);
	world_start(&w);
	loop_run_for(w.loop, 100 * MSEC);
	assert_int_equal(w.fake.started, 0);
	push_many(&w, 6);
	loop_run_for(w.loop, MSEC);
	assert_int_equal(w.fake.started, 1);
	assert_int_equal(w.fake.largest, 10);
	world_end(&w);
}

TEST(a_drain_gives_back_what_waits)
{
	const struct mem_entry *e;
	struct world w;

	batch_begin(&w, 1, 10, 10 * SEC);
	push_many(&w, 4);
	world_start(&w);
	loop_run_for(w.loop, 100 * MSEC);
	assert_int_equal(consumer_in_flight(w.consumer), 4);
	consumer_drain(w.consumer);
	loop_run_for(w.loop, MSEC);
	assert_true(w.closed);
	assert_int_equal(w.fake.started, 0);
	assert_int_equal(mem_count(w.store, MEM_LEASED), 0);
	TAILQ_FOREACH(e, mem_entries(w.store), entry)
		assert_int_equal(e->attempts + e->crashes, 0);
	world_end(&w);
}

/* The messages that wait are returned, and run under the new configuration, here one by one. */
TEST(a_reload_while_messages_wait)
{
	struct config *config = config_new();
	struct queue_config *cfg = queue_config(config);
	struct world w;

	batch_begin(&w, 1, 10, 10 * SEC);
	push_many(&w, 4);
	world_start(&w);
	loop_run_for(w.loop, 100 * MSEC);
	assert_int_equal(consumer_in_flight(w.consumer), 4);
	cfg->concurrency = 1;
	consumer_reconfigure(w.consumer, config, cfg, false);
	config_unref(config);
	loop_run_for(w.loop, SEC);
	assert_int_equal(mem_count(w.store, MEM_ACKED), 4);
	assert_int_equal(w.fake.started, 4);
	assert_int_equal(w.fake.peak, 1);
	assert_int_equal(dispatcher_taken(w.dispatcher), 0);
	world_end(&w);
}

/* A reload that does not change the queue: the batch goes on waiting, and runs as one. */
TEST(a_reload_without_a_change_while_messages_wait)
{
	struct config *config = config_new();
	struct queue_config *cfg = queue_config(config);
	struct world w;

	batch_begin(&w, 1, 10, 10 * SEC);
	push_many(&w, 4);
	world_start(&w);
	loop_run_for(w.loop, 100 * MSEC);
	cfg->concurrency = 1;
	cfg->batch = 10;
	cfg->batch_wait = 10 * SEC;
	consumer_reconfigure(w.consumer, config, cfg, true);
	config_unref(config);
	loop_run_for(w.loop, SEC);
	assert_int_equal(w.fake.started, 0);
	assert_int_equal(mem_count(w.store, MEM_LEASED), 4);
	assert_int_equal(dispatcher_taken(w.dispatcher), 1);
	loop_run_for(w.loop, 10 * SEC);
	assert_int_equal(w.fake.started, 1);
	assert_int_equal(mem_count(w.store, MEM_ACKED), 4);
	assert_int_equal(consumer_stats(w.consumer)->n[STAT_RETURNED], 0);
	assert_int_equal(dispatcher_taken(w.dispatcher), 0);
	world_end(&w);
}

/* A batch that was fetched before a reload arrives after it: still only one run at once. */
TEST(a_reload_while_a_batch_is_fetched)
{
	struct config *config = config_new();
	struct queue_config *cfg = queue_config(config);
	struct world w;

	batch_begin(&w, 1, 10, 0);
	w.cfg->concurrency = 1;
	world_start(&w);
	loop_run_for(w.loop, MSEC);
	push_many(&w, 30);
	cfg->concurrency = 1;
	/* The turn in which the fetch is asked for ends before the reply comes. */
	loop_turn(w.loop, 0);
	consumer_reconfigure(w.consumer, config, cfg, false);
	config_unref(config);
	loop_run_for(w.loop, 10 * SEC);
	assert_int_equal(mem_count(w.store, MEM_ACKED), 30);
	assert_int_equal(w.fake.peak, 1);
	world_end(&w);
}

/* An operator pauses the queue: a waiting batch is returned, and runs after the pause. */
TEST(a_pause_gives_back_what_waits)
{
	const struct mem_entry *e;
	struct world w;

	batch_begin(&w, 1, 10, 10 * SEC);
	push_many(&w, 4);
	world_start(&w);
	loop_run_for(w.loop, 100 * MSEC);
	assert_int_equal(consumer_in_flight(w.consumer), 4);
	mem_set_paused(w.store, true);
	loop_run_for(w.loop, MINUTE);
	assert_int_equal(consumer_block(w.consumer), BLOCK_PAUSED);
	assert_int_equal(consumer_in_flight(w.consumer), 0);
	assert_int_equal(w.fake.started, 0);
	assert_int_equal(mem_count(w.store, MEM_RETRY), 4);
	assert_int_equal(dispatcher_taken(w.dispatcher), 0);
	TAILQ_FOREACH(e, mem_entries(w.store), entry)
		assert_int_equal(e->attempts + e->crashes, 0);
	mem_set_paused(w.store, false);
	loop_run_for(w.loop, MINUTE);
	assert_int_equal(mem_count(w.store, MEM_ACKED), 4);
	assert_int_equal(w.fake.started, 1);
	world_end(&w);
}

/* The connection ends while a batch waits: it runs in time, and its results are kept. */
TEST(redis_goes_while_messages_wait)
{
	struct world w;

	batch_begin(&w, 1, 10, 200 * MSEC);
	push_many(&w, 4);
	world_start(&w);
	loop_run_for(w.loop, 100 * MSEC);
	mem_set_up(w.store, false);
	loop_run_for(w.loop, 10 * SEC);
	assert_int_equal(w.fake.started, 1);
	assert_int_equal(w.fake.largest, 4);
	assert_int_equal(mem_count(w.store, MEM_LEASED), 4);
	mem_set_up(w.store, true);
	loop_run_for(w.loop, SEC);
	assert_int_equal(mem_count(w.store, MEM_ACKED), 4);
	world_end(&w);
}

/* -- failures -------------------------------------------------------------------------- */

/* The run fails as a whole; then each message runs alone, and only the bad one fails. */
TEST(one_bad_message_costs_the_others_one_attempt)
{
	const struct mem_entry *e;
	unsigned i;
	struct world w;

	batch_begin(&w, 1, 500, 0);
	for (i = 0; i < 500; i++)
		push_text(&w, i == 250 ? "x" : "good", 0);
	world_start(&w);
	loop_run_for(w.loop, SEC);
	assert_int_equal(w.fake.started, 1);
	assert_int_equal(w.fake.largest, 500);
	loop_run_for(w.loop, 20 * SEC);
	assert_int_equal(mem_count(w.store, MEM_ACKED), 499);
	assert_in_range(w.fake.started, 501, 503);
	TAILQ_FOREACH(e, mem_entries(w.store), entry) {
		if (e->payload[0] != 'x')
			assert_int_equal(e->attempts, 1);
	}
	loop_run_for(w.loop, HOUR);
	assert_int_equal(mem_count(w.store, MEM_DEAD), 1);
	world_end(&w);
}

/* New messages do not share a run with one that has failed, and do not wait for it. */
TEST(a_failed_message_spoils_no_batch_again)
{
	const struct mem_entry *e;
	struct world w;
	int i;

	batch_begin(&w, 2, 10, 0);
	push_text(&w, "x", 0);
	world_start(&w);
	for (i = 0; i < 200; i++) {
		loop_run_for(w.loop, 100 * MSEC);
		push_many(&w, 5);
	}
	loop_run_for(w.loop, SEC);
	assert_int_equal(mem_count(w.store, MEM_ACKED), 1000);
	TAILQ_FOREACH(e, mem_entries(w.store), entry)
		assert_int_equal(e->deliveries > 1, e->payload[0] == 'x');
	world_end(&w);
}

TEST(single_messages_have_their_own_verdict)
{
	const struct mem_entry *e;
	struct world w;

	batch_begin(&w, 1, 10, 0);
	push_text(&w, "x", 0);
	push_text(&w, "o", 0);
	push_text(&w, "r", 0);
	world_start(&w);
	loop_run_for(w.loop, 100 * MSEC);
	assert_int_equal(w.fake.started, 1);
	assert_int_equal(mem_count(w.store, MEM_ACKED), 1);
	e = TAILQ_FIRST(mem_entries(w.store));
	assert_int_equal(e->state, MEM_RETRY);
	assert_int_equal(e->reason, REASON_EXIT);
	e = TAILQ_NEXT(TAILQ_NEXT(e, entry), entry);
	assert_int_equal(e->state, MEM_RETRY);
	assert_int_equal(e->reason, REASON_ANSWER);
	assert_in_range(e->due - clock_mono(), HOUR - SEC, HOUR);
	world_end(&w);
}

TEST(dead_status_is_for_one_message)
{
	struct world w;

	batch_begin(&w, 1, 10, 0);
	push_many(&w, 3);
	push_text(&w, "d", 0);
	world_start(&w);
	loop_run_for(w.loop, SEC);
	assert_int_equal(mem_count(w.store, MEM_RETRY), 4);
	assert_int_equal(mem_count(w.store, MEM_DEAD), 0);
	loop_run_for(w.loop, 10 * SEC);
	assert_int_equal(mem_count(w.store, MEM_ACKED), 3);
	assert_int_equal(mem_count(w.store, MEM_DEAD), 1);
	world_end(&w);
}

TEST(the_time_limit_is_of_the_run)
{
	struct world w;

	batch_begin(&w, 1, 10, 0);
	w.cfg->time_limit = MINUTE;
	w.cfg->max_attempts = 1;
	push_many(&w, 2);
	push_text(&w, "h", 0);
	world_start(&w);
	loop_run_for(w.loop, 2 * MINUTE);
	assert_int_equal(mem_count(w.store, MEM_DEAD), 3);
	assert_int_equal(consumer_stats(w.consumer)->n[STAT_TIMEOUTS], 1);
	world_end(&w);
}

/* Ten messages that fail in one run count as one failure for suspend_after. */
TEST(suspend_after_counts_runs)
{
	struct world w;
	int i;

	batch_begin(&w, 1, 10, 0);
	w.cfg->suspend_after = 3;
	w.cfg->backoff = w.cfg->backoff_max = HOUR;
	for (i = 0; i < 20; i++)
		push_text(&w, "x", 0);
	world_start(&w);
	loop_run_for(w.loop, SEC);
	assert_int_equal(w.fake.started, 2);
	assert_int_equal(consumer_block(w.consumer), BLOCK_NONE);
	push_text(&w, "x", 0);
	loop_run_for(w.loop, 100 * MSEC);
	assert_int_equal(consumer_block(w.consumer), BLOCK_SUSPENDED);
	/* The probe is a run of one message; the others follow in batches. */
	w.fake.largest = 0;
	push_many(&w, 100);
	while (w.fake.largest == 0)
		loop_run_for(w.loop, 5 * MSEC);
	assert_int_equal(w.fake.largest, 1);
	loop_run_for(w.loop, SEC);
	assert_int_equal(w.fake.largest, 10);
	assert_int_equal(mem_count(w.store, MEM_ACKED), 100);
	world_end(&w);
}

static struct fake_end
cannot_start(struct message *msg, void *arg)
{
	(void)msg, (void)arg;
	if (clock_mono() < 20 * SEC)
		return (struct fake_end){ .end = END_NOT_STARTED, .error = ENOENT };
	return (struct fake_end){ .after = MSEC };
}

TEST(a_batch_that_cannot_start_costs_no_attempt)
{
	const struct mem_entry *e;
	struct world w;

	world_begin(&w, cannot_start);
	w.cfg->batch = 50;
	w.cfg->batch_wait = 5 * SEC;
	push_many(&w, 60);
	world_start(&w);
	loop_run_for(w.loop, 10 * MSEC);
	assert_int_equal(consumer_block(w.consumer), BLOCK_SUSPENDED);
	assert_int_equal(w.fake.largest, 50);
	w.fake.largest = 0;
	loop_run_for(w.loop, 18 * SEC);
	assert_int_equal(w.fake.largest, 1);
	assert_in_range(mem_count(w.store, MEM_LEASED), 0, 1);
	loop_run_for(w.loop, MINUTE);
	assert_int_equal(mem_count(w.store, MEM_ACKED), 60);
	TAILQ_FOREACH(e, mem_entries(w.store), entry)
		assert_int_equal(e->attempts, 0);
	world_end(&w);
}

/* -- leases ------------------------------------------------------------------------------ */

/* A run goes on when it loses a message; rqd ends it when it has lost the last one. */
TEST(a_lost_message_does_not_end_the_run)
{
	struct mem_entry *a, *b;
	struct world w;

	batch_begin(&w, 1, 2, 0);
	a = push_text(&w, "h", 0);
	b = push_text(&w, "h", 0);
	world_start(&w);
	loop_run_for(w.loop, SEC);
	mem_steal(w.store, a);
	loop_run_for(w.loop, 10 * SEC);
	assert_int_equal(w.fake.running, 1);
	mem_steal(w.store, b);
	loop_run_for(w.loop, 6 * SEC);
	assert_int_equal(w.fake.running, 0);
	assert_int_equal(a->state, MEM_LEASED);
	assert_int_equal(consumer_stats(w.consumer)->n[STAT_STALE], 2);
	world_end(&w);
}

/* One message of a run is lost, the other is acked early: rqd ends the run then. */
TEST(a_run_ends_with_its_last_message_that_counts)
{
	struct mem_entry *lost;
	struct world w;

	batch_begin(&w, 1, 2, 0);
	lost = push_text(&w, "h", 0);
	push_text(&w, "a", 0);
	world_start(&w);
	loop_run_for(w.loop, 500 * MSEC);
	mem_steal(w.store, lost);
	loop_run_for(w.loop, 400 * MSEC);
	assert_int_equal(w.fake.running, 1);
	/* SIGTERM, SIGKILL after kill_grace. */
	loop_run_for(w.loop, 6 * SEC);
	assert_int_equal(w.fake.running, 0);
	assert_int_equal(mem_count(w.store, MEM_ACKED), 1);
	assert_int_equal(consumer_stats(w.consumer)->n[STAT_STALE], 1);
	assert_int_equal(dispatcher_taken(w.dispatcher), 0);
	world_end(&w);
}

static unsigned lingering;

static void
count_lingering(void *arg, enum log_level level, const char *text, size_t len)
{
	(void)arg, (void)len;
	lingering += level == LOG_LV_WARN && strstr(text, "its process runs on") != NULL;
}

/*
 * A run whose messages are all acked early keeps its slot until its time_limit.  A tick
 * logs that once.
 */
TEST(a_run_may_outlive_its_messages)
{
	struct world w;
	int i;

	batch_begin(&w, 1, 2, 0);
	w.cfg->time_limit = 2 * MINUTE;
	push_text(&w, "a", 0);
	push_text(&w, "a", 0);
	world_start(&w);
	log_set_sink(count_lingering, NULL);
	lingering = 0;
	loop_run_for(w.loop, 2 * SEC);
	assert_int_equal(mem_count(w.store, MEM_ACKED), 2);
	assert_int_equal(consumer_in_flight(w.consumer), 0);
	consumer_tick(w.consumer);
	assert_int_equal(lingering, 0);
	for (i = 0; i < 3; i++) {
		loop_run_for(w.loop, 10 * SEC);
		consumer_tick(w.consumer);
		assert_int_equal(lingering, 1);
		assert_int_equal(consumer_block(w.consumer), BLOCK_FULL);
	}
	loop_run_for(w.loop, 2 * MINUTE);
	assert_int_equal(w.fake.running, 0);
	assert_int_equal(dispatcher_taken(w.dispatcher), 0);
	world_end(&w);
}

TEST(the_result_of_a_lost_message_is_dropped)
{
	struct mem_entry *a;
	struct world w;

	batch_begin(&w, 1, 3, 0);
	a = push_text(&w, "good", 0);
	push_many(&w, 2);
	world_start(&w);
	loop_run_for(w.loop, 5 * MSEC);
	mem_steal(w.store, a);
	loop_run_for(w.loop, SEC);
	assert_int_equal(mem_count(w.store, MEM_ACKED), 2);
	assert_int_equal(a->state, MEM_LEASED);
	assert_int_equal(consumer_stats(w.consumer)->n[STAT_STALE], 1);
	world_end(&w);
}

TEST(a_message_lost_while_it_waits_does_not_run)
{
	struct mem_entry *a;
	struct world w;

	batch_begin(&w, 1, 3, 10 * SEC);
	a = push_text(&w, "good", 0);
	push_text(&w, "good", 0);
	world_start(&w);
	loop_run_for(w.loop, SEC);
	mem_steal(w.store, a);
	loop_run_for(w.loop, 20 * SEC);
	assert_int_equal(w.fake.largest, 1);
	assert_int_equal(mem_count(w.store, MEM_ACKED), 1);
	assert_int_equal(a->deliveries, 1);
	world_end(&w);
}

static void
hold_now(const struct message *m, pid_t pid UNUSED, const char *progress UNUSED,
    usec_t age UNUSED, void *arg UNUSED)
{
	((struct message *)(uintptr_t)m)->ours_at = clock_boot();
}

/*
 * The daemon stands still while a batch waits, for as long as a lease.  Another daemon may
 * have finished the messages, so they must not run.
 */
TEST(a_lease_that_may_have_ended_begins_no_run)
{
	struct mem_entry *a, *b;
	struct world w;

	batch_begin(&w, 2, 3, 10 * SEC);
	world_start(&w);
	a = push_text(&w, "good", 0);
	b = push_text(&w, "good", 0);
	loop_run_for(w.loop, SEC);
	assert_int_equal(consumer_in_flight(w.consumer), 2);
	consumer_each(w.consumer, hold_now, NULL);
	clock_fake_advance(w.cfg->lease);
	loop_run_for(w.loop, 10 * MSEC);
	assert_int_equal(w.fake.started, 0);
	assert_int_equal(a->deliveries, 2);
	assert_int_equal(b->deliveries, 2);
	loop_run_for(w.loop, 20 * SEC);
	assert_int_equal(w.fake.largest, 2);
	assert_int_equal(mem_count(w.store, MEM_ACKED), 2);
	world_end(&w);
}

TEST(a_drain_ends_the_run_and_counts_nothing)
{
	const struct mem_entry *e;
	struct world w;

	batch_begin(&w, 1, 10, 0);
	push_many(&w, 5);
	push_text(&w, "h", 0);
	world_start(&w);
	loop_run_for(w.loop, SEC);
	consumer_drain(w.consumer);
	consumer_stop_handlers(w.consumer, false);
	loop_run_for(w.loop, 6 * SEC);
	assert_true(w.closed);
	assert_int_equal(mem_count(w.store, MEM_RETRY), 6);
	TAILQ_FOREACH(e, mem_entries(w.store), entry)
		assert_int_equal(e->attempts, 0);
	world_end(&w);
}

/* -- slots --------------------------------------------------------------------------------- */

/*
 * Each message that has failed needs a run of its own.  One that finds no slot within a
 * second is returned, uncounted.
 */
TEST(what_finds_no_slot_is_given_back)
{
	struct mem_entry *e;
	struct world w;
	int i;

	batch_begin(&w, 1, 10, 0);
	for (i = 0; i < 10; i++)
		push_text(&w, "h", 0);
	w.cfg->time_limit = 10 * SEC;
	w.cfg->backoff = w.cfg->backoff_max = SEC;
	world_start(&w);
	loop_run_for(w.loop, 20 * SEC);
	/* All ten failed once, in one run; now one runs, and nine are back in the queue. */
	assert_int_equal(w.fake.running, 1);
	assert_int_equal(mem_count(w.store, MEM_LEASED), 1);
	assert_int_equal(mem_count(w.store, MEM_RETRY), 9);
	TAILQ_FOREACH(e, mem_entries(w.store), entry)
		assert_int_equal(e->attempts, 1);
	world_end(&w);
}

/*
 * There is one slot, and each run is long.  A pop takes a batch of new messages or one
 * retry, never both, because the rest would have to wait.  The two take turns.
 */
TEST(nothing_is_taken_that_finds_no_run)
{
	struct mem_entry *e;
	struct world w;
	unsigned turn = 0, changes = 0, i, retries;

	batch_begin(&w, 1, 10, 0);
	for (i = 0; i < 10; i++)
		push_text(&w, "long", 1)->attempts = 1;
	for (i = 0; i < 100; i++)
		push_text(&w, "long", 0);
	loop_run_for(w.loop, MSEC);
	world_start(&w);
	for (i = 0; i < 20; i++) {
		retries = 0;
		loop_run_for(w.loop, 30 * SEC);
		assert_int_equal(w.fake.running, 1);
		TAILQ_FOREACH(e, mem_entries(w.store), entry)
			retries += e->state == MEM_LEASED && e->attempts > 0;
		assert_in_range(retries, 0, 1);
		assert_int_equal(mem_count(w.store, MEM_LEASED), retries > 0 ? 1 : 10);
		changes += i > 0 && turn != retries;
		turn = retries;
		loop_run_for(w.loop, 30 * SEC);
	}
	loop_run_for(w.loop, SEC);
	assert_int_equal(mem_count(w.store, MEM_ACKED), 110);
	assert_int_equal(w.fake.started, 20);
	assert_int_equal(changes, 19);
	assert_int_equal(consumer_stats(w.consumer)->n[STAT_RETURNED], 0);
	world_end(&w);
}

/* The daemon dies during a run: each message gets a crash counted, and then runs alone. */
TEST(after_a_crash_each_runs_alone)
{
	struct mem_entry *e;
	struct consumer *dead;
	struct world w;

	batch_begin(&w, 1, 10, 0);
	push_many(&w, 3);
	push_text(&w, "h", 0);
	world_start(&w);
	loop_run_for(w.loop, SEC);
	assert_int_equal(mem_count(w.store, MEM_LEASED), 4);
	dead = w.consumer;
	consumer_free(dead);
	dispatcher_release(w.dispatcher, dispatcher_taken(w.dispatcher));
	w.fake.largest = 0;
	world_start(&w);
	loop_run_for(w.loop, 2 * MINUTE);
	assert_int_equal(w.fake.largest, 1);
	assert_int_equal(mem_count(w.store, MEM_ACKED), 3);
	TAILQ_FOREACH(e, mem_entries(w.store), entry)
		assert_int_equal(e->crashes, 1);
	consumer_stop_handlers(w.consumer, true);
	world_end(&w);
}

static struct fake_end
fails_seldom(struct message *msg UNUSED, void *arg UNUSED)
{
	return random_end(40, SEC);
}

/* With random results every message is acked or dead in the end, and no slot is left taken. */
TEST(random_batches_finish_everything)
{
	unsigned seed = (unsigned)time(NULL);
	struct world w;
	int i;

	print_message("# seed %u\n", seed);
	srand(seed);
	world_begin(&w, fails_seldom);
	w.cfg->batch = 7;
	w.cfg->batch_wait = 50 * MSEC;
	world_start(&w);
	for (i = 0; i < 300; i++) {
		push_many(&w, (unsigned)rand() % 6);
		loop_run_for(w.loop, rand() % (100 * MSEC));
		if (rand() % 50 == 0) {
			consumer_set_quiet(w.consumer, true);
			loop_run_for(w.loop, rand() % SEC);
			consumer_set_quiet(w.consumer, false);
		}
	}
	loop_run_for(w.loop, 10 * HOUR);
	assert_int_equal(mem_count(w.store, MEM_ACKED) + mem_count(w.store, MEM_DEAD),
	    mem_count(w.store, MEM_ACKED) + mem_count(w.store, MEM_DEAD) +
	    mem_count(w.store, MEM_WAITING) + mem_count(w.store, MEM_RETRY) +
	    mem_count(w.store, MEM_LEASED));
	assert_int_equal(consumer_in_flight(w.consumer), 0);
	assert_int_equal(dispatcher_taken(w.dispatcher), 0);
	world_end(&w);
}
