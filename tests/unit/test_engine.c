/*
 * The engine in simulated time: consumer, dispatcher and policy over a queue in memory
 * and a handler without processes.  Hours of retries take milliseconds.
 */
#include <errno.h>
#include "unit.h"

#include "engine_fixture.h"

/* -- scenarios ----------------------------------------------------------------- */

static struct fake_end
takes_100ms(struct message *msg, void *arg)
{
	(void)msg, (void)arg;
	return (struct fake_end){ .after = 100 * MSEC };
}

TEST(concurrency_is_used_and_kept)
{
	struct world w;

	world_begin(&w, takes_100ms);
	push(&w, 40);
	world_start(&w);
	loop_run_for(w.loop, 1500 * MSEC);
	assert_int_equal(mem_count(w.store, MEM_ACKED), 40);
	assert_int_equal(w.fake.peak, 4);
	assert_int_equal(w.fake.started, 40);
	world_end(&w);
}

static struct fake_end
fails(struct message *msg, void *arg)
{
	(void)msg, (void)arg;
	return (struct fake_end){ .after = 10 * MSEC, .status = 1 };
}

TEST(a_failing_message_is_dead_after_max_attempts)
{
	const struct mem_entry *e;
	struct world w;

	world_begin(&w, fails);
	push(&w, 1);
	world_start(&w);
	/* The four delays are 5 + 10 + 20 + 40 s at most, and half of that at least. */
	loop_run_for(w.loop, 30 * SEC);
	assert_int_equal(mem_count(w.store, MEM_DEAD), 0);
	loop_run_for(w.loop, 60 * SEC);
	assert_int_equal(mem_count(w.store, MEM_DEAD), 1);
	assert_int_equal(w.fake.started, 5);
	e = TAILQ_FIRST(mem_entries(w.store));
	assert_int_equal(e->reason, REASON_ATTEMPTS);
	world_end(&w);
}

static struct fake_end
cannot_start_for_a_minute(struct message *msg, void *arg)
{
	(void)msg, (void)arg;
	if (clock_mono() < 61 * SEC)
		return (struct fake_end){ .end = END_NOT_STARTED, .error = ENOENT };
	return (struct fake_end){ .after = MSEC };
}

/*
 * While the command is missing, single probes run after 1, 2, 4, 5, 5 .. s, and no attempt is
 * counted.  When it is there, all messages run.
 */
TEST(a_missing_command_suspends_and_costs_no_attempt)
{
	const struct mem_entry *e;
	struct world w;

	world_begin(&w, cannot_start_for_a_minute);
	push(&w, 10);
	world_start(&w);
	loop_run_for(w.loop, 59 * SEC);
	assert_int_equal(consumer_block(w.consumer), BLOCK_SUSPENDED);
	/* The first four at once, then probes after 1 3 7 12 17 .. 57 s. */
	assert_in_range(w.fake.started, 14, 18);
	loop_run_for(w.loop, 70 * SEC);
	assert_int_equal(mem_count(w.store, MEM_ACKED), 10);
	TAILQ_FOREACH(e, mem_entries(w.store), entry)
		assert_int_equal(e->attempts, 0);
	assert_int_equal(consumer_block(w.consumer), BLOCK_NONE);
	world_end(&w);
}

TEST(failures_in_a_row_suspend)
{
	struct world w;
	unsigned started;

	world_begin(&w, fails);
	w.cfg->max_attempts = 1000;
	push(&w, 200);
	world_start(&w);
	loop_run_for(w.loop, SEC / 2);
	assert_int_equal(consumer_block(w.consumer), BLOCK_SUSPENDED);
	started = w.fake.started;
	assert_in_range(started, 20, 24);
	/* Probes begin 1 2 4 5 5 .. s after the one before has ended. */
	loop_run_for(w.loop, 7200 * MSEC);
	assert_int_equal(w.fake.started - started, 3);
	loop_run_for(w.loop, 50 * SEC);
	assert_int_equal(w.fake.started - started, 13);
	world_end(&w);
}

/* While broken is set, every handler fails; else "x.." fails, "d.." exits with 65. */
static bool	broken;

static struct fake_end
by_payload(struct message *msg, void *arg)
{
	(void)arg;
	if (broken || msg->payload[0] == 'x')
		return (struct fake_end){ .after = 10 * MSEC, .status = 1 };
	return (struct fake_end){ .after = 10 * MSEC, .status = msg->payload[0] == 'd' ? 65 : 0 };
}

static usec_t
time_until_acked(struct world *w, const struct mem_entry *e, usec_t most)
{
	usec_t began = clock_mono();

	while (e->state != MEM_ACKED && clock_mono() - began < most)
		loop_run_for(w->loop, 100 * MSEC);
	assert_int_equal(e->state, MEM_ACKED);
	return clock_mono() - began;
}

/* Messages that always fail, however many, do not keep a good message from running. */
TEST(a_producer_cannot_wedge_a_queue)
{
	const struct mem_entry *good, *first;
	struct world w;
	int i;

	broken = false;
	world_begin(&w, by_payload);
	w.cfg->max_attempts = 25;
	w.cfg->concurrency = 1;
	for (i = 0; i < 60; i++)
		push_text(&w, "x", 0);
	good = push_text(&w, "good", 0);
	world_start(&w);
	(void)time_until_acked(&w, good, 30 * SEC);
	/* They keep failing, and the queue is suspended: a new good message runs soon. */
	loop_run_for(w.loop, 10 * MINUTE);
	assert_int_equal(consumer_block(w.consumer), BLOCK_SUSPENDED);
	good = push_text(&w, "good", 0);
	(void)time_until_acked(&w, good, 30 * SEC);
	/* So does a message that failed while the command was broken. */
	broken = true;
	good = push_text(&w, "late", 0);
	loop_run_for(w.loop, MINUTE);
	broken = false;
	first = push_text(&w, "good", 0);
	(void)time_until_acked(&w, first, 30 * SEC);
	(void)time_until_acked(&w, good, 10 * MINUTE);
	world_end(&w);
}

/*
 * The command exits with 127 for one message only.  A suspended queue does not count that,
 * so the message keeps few attempts; probes must take others, too.
 */
static struct fake_end
status_127_for_x(struct message *msg, void *arg)
{
	struct fake_end end = by_payload(msg, arg);

	if (msg->payload[0] == 'x')
		end.status = 127;
	return end;
}

TEST(an_uncounted_failure_does_not_hide_others)
{
	const struct mem_entry *good, *bad;
	struct world w;

	broken = true;
	world_begin(&w, status_127_for_x);
	w.cfg->max_attempts = 1000;
	w.cfg->suspend_after = 0;
	good = push_text(&w, "late", 0);
	world_start(&w);
	/* It has more attempts than the other message will get. */
	loop_run_for(w.loop, 2 * MINUTE);
	assert_in_range(good->attempts, 3, 20);
	bad = push_text(&w, "x", 0);
	loop_run_for(w.loop, 5 * MINUTE);
	broken = false;
	(void)time_until_acked(&w, good, 2 * HOUR);
	assert_in_range(bad->attempts, 1, good->attempts);
	world_end(&w);
}

/* While the queue is suspended for a broken command, no message becomes a dead letter. */
TEST(no_probe_kills)
{
	const struct mem_entry *e;
	unsigned dead, i;
	struct world w;

	broken = true;
	world_begin(&w, by_payload);
	w.cfg->max_attempts = 4;
	w.cfg->backoff = SEC;
	w.cfg->backoff_max = 10 * SEC;
	for (i = 0; i < 50; i++)
		push_text(&w, "good", 0);
	world_start(&w);
	loop_run_for(w.loop, SEC);
	assert_int_equal(consumer_block(w.consumer), BLOCK_SUSPENDED);
	dead = mem_count(w.store, MEM_DEAD);
	assert_int_equal(dead, 0);
	loop_run_for(w.loop, HOUR);
	assert_int_equal(mem_count(w.store, MEM_DEAD), 0);
	TAILQ_FOREACH(e, mem_entries(w.store), entry)
		assert_in_range(e->attempts, 0, 1);
	broken = false;
	loop_run_for(w.loop, MINUTE);
	assert_int_equal(mem_count(w.store, MEM_ACKED), 50);
	world_end(&w);
}

/* A success before the command broke, and runs that began then, blame no message. */
TEST(an_earlier_success_blames_nobody)
{
	const struct mem_entry *e;
	struct world w;
	int i;

	broken = false;
	world_begin(&w, by_payload);
	w.cfg->max_attempts = 4;
	w.cfg->backoff = SEC;
	w.cfg->backoff_max = 10 * SEC;
	push_text(&w, "good", 0);
	world_start(&w);
	loop_run_for(w.loop, SEC);
	assert_int_equal(mem_count(w.store, MEM_ACKED), 1);
	broken = true;
	for (i = 0; i < 50; i++)
		push_text(&w, "good", 0);
	loop_run_for(w.loop, HOUR);
	assert_int_equal(consumer_block(w.consumer), BLOCK_SUSPENDED);
	assert_int_equal(mem_count(w.store, MEM_DEAD), 0);
	TAILQ_FOREACH(e, mem_entries(w.store), entry)
		assert_in_range(e->attempts, 0, 1);
	world_end(&w);
}

/* "slow" takes 5 s and succeeds; all others fail. */
static struct fake_end
slow_or_bad(struct message *msg, void *arg UNUSED)
{
	if (msg->payload[0] == 's')
		return (struct fake_end){ .after = 5 * SEC };
	return (struct fake_end){ .after = MSEC, .status = 1 };
}

/* A run that was under way when the messages failed shows nothing about them. */
TEST(a_run_from_before_blames_nobody)
{
	const struct mem_entry *e;
	struct world w;

	world_begin(&w, slow_or_bad);
	w.cfg->max_attempts = 3;
	w.cfg->suspend_after = 4;
	w.cfg->backoff = w.cfg->backoff_max = HOUR;
	push_text(&w, "slow", 0);
	world_start(&w);
	loop_run_for(w.loop, SEC);
	push(&w, 8);
	loop_run_for(w.loop, HOUR / 2);
	assert_int_equal(mem_count(w.store, MEM_ACKED), 1);
	assert_int_equal(consumer_block(w.consumer), BLOCK_SUSPENDED);
	assert_int_equal(mem_count(w.store, MEM_DEAD), 0);
	TAILQ_FOREACH(e, mem_entries(w.store), entry)
		assert_in_range(e->attempts, 0, 2);
	world_end(&w);
}

/*
 * A fifth of the messages always fails.  Since others succeed it is not the command: the bad ones
 * use up their attempts, the queue is not suspended, and a good one never waits.
 */
TEST(bad_messages_do_not_delay_good_ones)
{
	const struct mem_entry *good;
	usec_t longest = 0, took;
	struct world w;
	int i;

	broken = false;
	world_begin(&w, by_payload);
	w.cfg->max_attempts = 6;
	for (i = 0; i < 1200; i++)
		push_text(&w, i % 5 == 4 ? "x" : "good", 0);
	world_start(&w);
	/* While the bad ones are tried again and again a good one comes now and then. */
	for (i = 0; i < 60; i++) {
		loop_run_for(w.loop, 7 * SEC);
		good = push_text(&w, "good", 0);
		took = time_until_acked(&w, good, MINUTE);
		longest = took > longest ? took : longest;
	}
	assert_in_range(longest, 0, SEC);
	assert_int_equal(mem_count(w.store, MEM_ACKED), 960 + 60);
	assert_int_equal(mem_count(w.store, MEM_DEAD), 240);
	assert_int_equal(consumer_stats(w.consumer)->n[STAT_SUSPENDED], 0);
	world_end(&w);
}

/*
 * Eight messages have only failed: nothing shows whether it is the command, so nobody is charged.
 * After the next good one it is the messages, which become dead letters.
 */
TEST(an_idle_queue_of_bad_messages)
{
	struct world w;
	const struct mem_entry *e;
	int i;

	broken = false;
	world_begin(&w, by_payload);
	w.cfg->max_attempts = 6;
	for (i = 0; i < 8; i++)
		push_text(&w, "x", 0);
	world_start(&w);
	loop_run_for(w.loop, HOUR);
	assert_int_equal(consumer_block(w.consumer), BLOCK_SUSPENDED);
	assert_int_equal(consumer_suspension(w.consumer)->nrow, 8);
	assert_int_equal(mem_count(w.store, MEM_DEAD), 0);
	TAILQ_FOREACH(e, mem_entries(w.store), entry)
		assert_in_range(e->attempts, 1, 3);
	push_text(&w, "good", 0);
	loop_run_for(w.loop, 4 * MINUTE);
	assert_int_equal(mem_count(w.store, MEM_ACKED), 1);
	assert_int_equal(mem_count(w.store, MEM_DEAD), 8);
	assert_int_equal(consumer_block(w.consumer), BLOCK_NONE);
	assert_int_equal(consumer_suspension(w.consumer)->nremembered, 0);
	world_end(&w);
}

/*
 * While the command is broken, a message that is to blame is charged for its probes; the others
 * are not.
 */
TEST(a_probe_charges_only_whom_it_blames)
{
	const struct mem_entry *bad, *good;
	struct world w;
	int i;

	broken = false;
	world_begin(&w, by_payload);
	w.cfg->concurrency = 1;
	w.cfg->max_attempts = 4;
	w.cfg->suspend_after = 5;
	bad = push_text(&w, "x", 0);
	push_text(&w, "good", 0);
	world_start(&w);
	loop_run_for(w.loop, SEC);
	assert_int_equal(bad->attempts, 1);
	broken = true;
	for (i = 0; i < 7; i++)
		good = push_text(&w, "good", 0);
	loop_run_for(w.loop, 5 * MINUTE);
	assert_int_equal(bad->state, MEM_DEAD);
	assert_int_equal(mem_count(w.store, MEM_DEAD), 1);
	assert_in_range(good->attempts, 0, 1);
	broken = false;
	loop_run_for(w.loop, MINUTE);
	assert_int_equal(mem_count(w.store, MEM_ACKED), 8);
	world_end(&w);
}

/*
 * A probe that exits with a dead_status makes its message a dead letter.  The queue stays
 * suspended, and the next probe follows at once.
 */
TEST(a_probe_may_judge_its_message)
{
	struct world w;
	int i;

	broken = false;
	world_begin(&w, by_payload);
	for (i = 0; i < 20; i++)
		push_text(&w, "x", 0);
	world_start(&w);
	loop_run_for(w.loop, 500 * MSEC);
	assert_int_equal(consumer_block(w.consumer), BLOCK_SUSPENDED);
	for (i = 0; i < 20; i++)
		push_text(&w, "d", 0);
	loop_run_for(w.loop, 1500 * MSEC);
	/* Every other pair of probes takes messages that have failed. */
	assert_in_range(mem_count(w.store, MEM_DEAD), 2, 20);
	loop_run_for(w.loop, 2 * MINUTE);
	assert_int_equal(mem_count(w.store, MEM_DEAD), 20);
	assert_int_equal(consumer_block(w.consumer), BLOCK_SUSPENDED);
	world_end(&w);
}

/* Retries that are always due at once do not keep new messages from running. */
static struct fake_end
retries_at_once(struct message *msg, void *arg)
{
	(void)arg;
	if (msg->payload[0] == 'x')
		return (struct fake_end){ .after = 10 * MSEC, .end = END_ANSWER,
		    .said = SAID_RETRY, .delay = 0 };
	return (struct fake_end){ .after = 10 * MSEC };
}

TEST(retries_and_new_messages_take_turns)
{
	struct world w;
	int i;

	world_begin(&w, retries_at_once);
	w.cfg->max_attempts = 100000;
	w.cfg->suspend_after = 0;
	w.cfg->concurrency = 1;
	for (i = 0; i < 10; i++)
		push_text(&w, "x", 0);
	for (i = 0; i < 50; i++)
		push_text(&w, "good", 0);
	world_start(&w);
	loop_run_for(w.loop, 1500 * MSEC);
	assert_in_range(mem_count(w.store, MEM_ACKED), 45, 50);
	world_end(&w);
}

static struct fake_end
poison(struct message *msg, void *arg)
{
	(void)msg, (void)arg;
	return (struct fake_end){ .after = MSEC, .status = 65 };
}

TEST(dead_status_is_no_failure_of_the_command)
{
	struct world w;

	world_begin(&w, poison);
	push(&w, 100);
	world_start(&w);
	loop_run_for(w.loop, SEC);
	assert_int_equal(mem_count(w.store, MEM_DEAD), 100);
	world_end(&w);
}

static struct fake_end
hangs(struct message *msg, void *arg)
{
	(void)msg, (void)arg;
	return (struct fake_end){ .after = USEC_MAX, .traps_term = true, .term_status = 0 };
}

/* A handler that traps SIGTERM and exits with 0 after its time_limit has failed. */
TEST(the_time_limit_outweighs_the_status)
{
	const struct mem_entry *e;
	struct world w;

	world_begin(&w, hangs);
	w.cfg->max_attempts = 1;
	push(&w, 1);
	world_start(&w);
	loop_run_for(w.loop, 31 * MINUTE);
	assert_int_equal(mem_count(w.store, MEM_DEAD), 1);
	e = TAILQ_FIRST(mem_entries(w.store));
	assert_int_equal(e->attempts, 1);
	world_end(&w);
}

TEST(a_drain_gives_messages_back_uncounted)
{
	const struct mem_entry *e;
	struct world w;

	world_begin(&w, hangs);
	push(&w, 10);
	world_start(&w);
	loop_run_for(w.loop, SEC);
	assert_int_equal(consumer_in_flight(w.consumer), 4);
	consumer_drain(w.consumer);
	loop_run_for(w.loop, 10 * SEC);
	assert_false(w.closed);
	consumer_stop_handlers(w.consumer, false);
	loop_run_for(w.loop, 6 * SEC);
	assert_true(w.closed);
	assert_int_equal(w.fake.started, 4);
	assert_int_equal(mem_count(w.store, MEM_LEASED), 0);
	TAILQ_FOREACH(e, mem_entries(w.store), entry)
		assert_int_equal(e->attempts, 0);
	world_end(&w);
}

TEST(quiet_starts_nothing_until_it_ends)
{
	struct world w;

	world_begin(&w, takes_100ms);
	world_start(&w);
	consumer_set_quiet(w.consumer, true);
	push(&w, 8);
	loop_run_for(w.loop, MINUTE);
	assert_int_equal(w.fake.started, 0);
	consumer_set_quiet(w.consumer, false);
	loop_run_for(w.loop, SEC);
	assert_int_equal(mem_count(w.store, MEM_ACKED), 8);
	world_end(&w);
}

TEST(a_lost_delivery_is_ended_and_writes_nothing)
{
	struct mem_entry *e;
	struct world w;

	world_begin(&w, hangs);
	push(&w, 1);
	world_start(&w);
	loop_run_for(w.loop, SEC);
	e = TAILQ_FIRST(mem_entries(w.store));
	mem_steal(w.store, e);
	loop_run_for(w.loop, 6 * SEC);
	assert_int_equal(consumer_in_flight(w.consumer), 0);
	assert_int_equal(e->state, MEM_LEASED);
	assert_int_equal(consumer_stats(w.consumer)->n[STAT_STALE], 1);
	world_end(&w);
}

TEST(a_refused_pop_suspends_until_it_is_taken)
{
	struct world w;

	world_begin(&w, takes_100ms);
	mem_set_error(w.store, "WRONGTYPE");
	push(&w, 3);
	world_start(&w);
	loop_run_for(w.loop, 10 * SEC);
	assert_int_equal(consumer_block(w.consumer), BLOCK_SUSPENDED);
	mem_set_error(w.store, NULL);
	loop_run_for(w.loop, 70 * SEC);
	assert_int_equal(mem_count(w.store, MEM_ACKED), 3);
	assert_int_equal(w.fake.peak, 3);	/* it resumed before one had succeeded */
	assert_int_equal(consumer_block(w.consumer), BLOCK_NONE);
	world_end(&w);
}

static struct fake_end
cannot_start(struct message *msg, void *arg)
{
	(void)msg, (void)arg;
	return (struct fake_end){ .end = END_NOT_STARTED, .error = ENOENT };
}

/* A queue suspended for a missing command stays so when Redis accepts pops again. */
TEST(a_refused_pop_resumes_no_other_suspension)
{
	struct world w;

	world_begin(&w, cannot_start);
	push(&w, 10);
	world_start(&w);
	loop_run_for(w.loop, 2 * SEC);
	mem_set_error(w.store, "OOM");
	loop_run_for(w.loop, 10 * SEC);
	mem_set_error(w.store, NULL);
	loop_run_for(w.loop, 10 * MINUTE);
	assert_int_equal(consumer_block(w.consumer), BLOCK_SUSPENDED);
	assert_int_equal(consumer_stats(w.consumer)->n[STAT_SUSPENDED], 1);
	world_end(&w);
}

/* A refused pop is tried again at least as often as leases are renewed. */
TEST(a_refused_pop_is_tried_within_a_lease)
{
	struct world w;

	world_begin(&w, takes_100ms);
	w.cfg->lease = 9 * SEC;
	mem_set_error(w.store, "WRONGTYPE");
	push(&w, 3);
	world_start(&w);
	loop_run_for(w.loop, 65 * SEC);		/* longer than delays that double to 32 s */
	mem_set_error(w.store, NULL);
	loop_run_for(w.loop, 5 * SEC);
	assert_int_equal(mem_count(w.store, MEM_ACKED), 3);
	world_end(&w);
}

static void
count_suspended(void *arg, enum log_level level, const char *text, size_t len)
{
	(void)level, (void)len;
	*(unsigned *)arg += strstr(text, "event=suspended ") != NULL;
}

TEST(a_suspension_is_told_every_hour)
{
	unsigned told = 0;
	struct world w;

	world_begin(&w, fails);
	w.cfg->max_attempts = 100000;
	log_set_sink(count_suspended, &told);
	push(&w, 30);
	world_start(&w);
	loop_run_for(w.loop, 50 * MINUTE);
	assert_int_equal(told, 1);
	loop_run_for(w.loop, 100 * MINUTE);
	assert_int_equal(told, 3);
	world_end(&w);
}

static struct fake_end
fails_by_minute(struct message *msg UNUSED, void *arg UNUSED)
{
	usec_t now = clock_mono();
	int status = 1;

	if (now > 10 * MINUTE)
		status = now > 20 * MINUTE ? 3 + (int)(now / SEC % 50) : 2;
	return (struct fake_end){ .after = MSEC, .status = status };
}

/* A cause that changes is logged, but not each time if it is always another. */
TEST(a_suspension_is_told_when_its_cause_changes)
{
	unsigned told = 0;
	struct world w;

	world_begin(&w, fails_by_minute);
	w.cfg->max_attempts = 100000;
	log_set_sink(count_suspended, &told);
	push(&w, 30);
	world_start(&w);
	loop_run_for(w.loop, 9 * MINUTE);
	assert_int_equal(told, 1);
	loop_run_for(w.loop, 9 * MINUTE);
	assert_int_equal(told, 2);
	assert_non_null(strstr(consumer_suspension(w.consumer)->cause, "exit status 2"));
	loop_run_for(w.loop, 12 * MINUTE);
	assert_in_range(told, 9, 13);
	world_end(&w);
}

/* -- reload ---------------------------------------------------------------------- */

TEST(a_reload_changes_what_comes_next)
{
	struct config *config = config_new();
	struct queue_config *cfg = queue_config(config);
	struct world w;
	unsigned started;

	world_begin(&w, fails);
	w.cfg->suspend_after = 0;
	push(&w, 30);
	world_start(&w);
	loop_run_for(w.loop, SEC);
	assert_int_equal(consumer_block(w.consumer), BLOCK_NONE);
	assert_int_equal(mem_count(w.store, MEM_DEAD), 0);
	cfg->max_attempts = 1;
	cfg->suspend_after = 3;
	cfg->concurrency = 1;
	consumer_reconfigure(w.consumer, config, cfg, false);
	config_unref(config);
	started = w.fake.started;
	push(&w, 30);
	loop_run_for(w.loop, SEC / 2);
	/* Failures count from the time on at which they can suspend the queue. */
	assert_int_equal(w.fake.started - started, 3);
	assert_int_equal(mem_count(w.store, MEM_DEAD), 3);
	assert_int_equal(consumer_block(w.consumer), BLOCK_SUSPENDED);
	world_end(&w);
}

static struct queue_config *
other_queue(struct config *config, int priority)
{
	struct queue_config *q = queue_config(config);

	free(q->key);
	q->key = xstrdup("r");
	q->priority = priority;
	return q;
}

/* Two queues share one slot; after the reload the second one has a higher priority. */
TEST(a_reload_changes_priority)
{
	struct config *before = config_new(), *after = config_new();
	struct queue_config *q = other_queue(before, 0), *important = other_queue(after, 5);
	struct mem_store *store = mem_store_new("r");
	struct consumer *second;
	struct world w;
	unsigned acked, i;

	world_begin(&w, takes_100ms);
	dispatcher_set_slots(w.dispatcher, 1);
	push(&w, 200);
	for (i = 0; i < 200; i++)
		mem_push(store, "x", 1, 0);
	world_start(&w);
	second = consumer_new(&w.env, before, q, &queue_mem);
	loop_run_for(w.loop, 4 * SEC);
	assert_in_range(mem_count(store, MEM_ACKED), 15, 25);
	consumer_reconfigure(second, after, important, false);
	acked = mem_count(w.store, MEM_ACKED);
	loop_run_for(w.loop, 4 * SEC);
	assert_in_range(mem_count(w.store, MEM_ACKED) - acked, 0, 2);
	consumer_set_quiet(w.consumer, true);
	consumer_set_quiet(second, true);
	loop_run_for(w.loop, SEC);
	consumer_free(second);
	mem_store_free(store);
	config_unref(before);
	config_unref(after);
	world_end(&w);
}

/* Ends of one run after the other, and when each began. */
struct ends {
	const int	*status;
	unsigned	 n, begun;
	usec_t		 at[16];
};

static struct ends ends;

static struct fake_end
ends_in_turn(struct message *msg UNUSED, void *arg UNUSED)
{
	unsigned i = ends.begun;

	if (i < ARRAY_LEN(ends.at))
		ends.at[ends.begun++] = clock_mono();
	return (struct fake_end){ .after = 10 * MSEC, .status = i < ends.n ? ends.status[i] : 0 };
}

/* A probe waits longer after each that failed for the same reason; a verdict on a message helps. */
TEST(probes_become_rarer)
{
	static const int status[] = { 127, 127, 127, 127, 127, 1, 1, 65, 1, 127, 65, 1, 0 };
	static const usec_t gaps[] = { 1, 2, 4, 5, 5, 1, 2, 0, 4, 1, 0, 0 };
	struct world w;

	ends = (struct ends){ .status = status, .n = ARRAY_LEN(status) };
	world_begin(&w, ends_in_turn);
	w.cfg->concurrency = 1;
	push(&w, 40);
	world_start(&w);
	loop_run_for(w.loop, MINUTE);
	for (size_t i = 0; i < ARRAY_LEN(gaps); i++)
		assert_in_range(ends.at[i + 1] - ends.at[i], gaps[i] * SEC,
		    gaps[i] * SEC + 100 * MSEC);
	assert_int_equal(consumer_stats(w.consumer)->n[STAT_SUSPENDED], 1);
	assert_int_equal(consumer_block(w.consumer), BLOCK_NONE);
	world_end(&w);
}

/* Of the failures of one message, three count at most. */
TEST(one_message_counts_three_times)
{
	struct world w;

	for (unsigned n = 3; n <= 4; n++) {
		world_begin(&w, fails);
		w.cfg->max_attempts = 1000;
		w.cfg->suspend_after = 10;
		w.cfg->backoff = w.cfg->backoff_max = SEC;
		push(&w, n);
		world_start(&w);
		loop_run_for(w.loop, MINUTE);
		assert_int_equal(consumer_block(w.consumer), n * 3 < 10 ? BLOCK_NONE :
		    BLOCK_SUSPENDED);
		world_end(&w);
	}
}

static struct fake_end
the_second_hangs(struct message *msg UNUSED, void *arg)
{
	unsigned before = ((struct world *)arg)->fake.started;

	return (struct fake_end){ .after = before == 1 ? USEC_MAX : 0,
	    .status = before == 0 ? 127 : 0 };
}

/* A probe whose message is lost proves nothing: the next one does not follow at once. */
TEST(a_lost_probe_is_followed_by_a_pause)
{
	struct mem_entry *e;
	struct world w;

	world_begin(&w, the_second_hangs);
	w.cfg->concurrency = 1;
	w.cfg->time_limit = 0;
	push(&w, 20);
	world_start(&w);
	loop_run_for(w.loop, 1500 * MSEC);
	assert_int_equal(w.fake.started, 2);
	TAILQ_FOREACH(e, mem_entries(w.store), entry) {
		if (e->state == MEM_LEASED)
			break;
	}
	mem_steal(w.store, e);
	while (consumer_in_flight(w.consumer) > 0)
		loop_run_for(w.loop, 10 * MSEC);
	loop_run_for(w.loop, 900 * MSEC);
	assert_int_equal(w.fake.started, 2);
	loop_run_for(w.loop, 200 * MSEC);
	assert_in_range(w.fake.started, 3, 21);
	world_end(&w);
}

/* Failures alone do not suspend the queue, and end a suspension: the command can be executed. */
TEST(without_a_limit_failures_do_not_suspend)
{
	static const int status[] = { 1, 1, 1, 1, 1, 127, 1, 1 };
	struct world w;

	ends = (struct ends){ .status = status, .n = ARRAY_LEN(status) };
	world_begin(&w, ends_in_turn);
	w.cfg->concurrency = 1;
	w.cfg->suspend_after = 0;
	push(&w, 40);
	world_start(&w);
	loop_run_for(w.loop, MINUTE);
	assert_in_range(ends.at[6] - ends.at[5], SEC, SEC + 100 * MSEC);
	assert_in_range(ends.at[7] - ends.at[6], 0, 100 * MSEC);
	assert_int_equal(consumer_stats(w.consumer)->n[STAT_SUSPENDED], 1);
	assert_int_equal(consumer_block(w.consumer), BLOCK_NONE);
	world_end(&w);
}

static struct fake_end
takes_up_to_a_second(struct message *msg UNUSED, void *arg UNUSED)
{
	return (struct fake_end){ .after = rand() % SEC };
}

/* Many queues want more than there are slots.  None waits for more than one turn of the others. */
TEST(slots_are_shared)
{
	enum { QUEUES = 20, SLOTS = 7 };
	struct config *config[QUEUES];
	struct consumer *consumer[QUEUES];
	struct mem_store *store[QUEUES];
	unsigned acked, least = UINT32_MAX, most = 0;
	struct queue_config *q;
	struct world w;

	srand((unsigned)unit_random());
	world_begin(&w, takes_up_to_a_second);
	dispatcher_set_slots(w.dispatcher, SLOTS);
	world_start(&w);
	for (size_t i = 0; i < QUEUES; i++) {
		config[i] = config_new();
		q = queue_config(config[i]);
		q->concurrency = 1 + rand() % 5;
		free(q->key);
		q->key = xasprintf("q%zu", i);
		store[i] = mem_store_new(q->key);
		for (size_t k = 0; k < 1000; k++)
			mem_push(store[i], "x", 1, 0);
		consumer[i] = consumer_new(&w.env, config[i], q, &queue_mem);
	}
	for (size_t step = 0; step < 1000; step++) {
		loop_run_for(w.loop, 300 * MSEC);
		assert_int_equal(w.fake.running, SLOTS);
		assert_int_equal(dispatcher_taken(w.dispatcher), SLOTS);
	}
	assert_int_equal(w.fake.peak, SLOTS);
	for (size_t i = 0; i < QUEUES; i++) {
		acked = mem_count(store[i], MEM_ACKED);
		least = acked < least ? acked : least;
		most = acked > most ? acked : most;
		consumer_set_quiet(consumer[i], true);
	}
	assert_true(least > 0 && most < 3 * least);
	loop_run_for(w.loop, MINUTE);
	for (size_t i = 0; i < QUEUES; i++) {
		consumer_free(consumer[i]);
		mem_store_free(store[i]);
		config_unref(config[i]);
	}
	world_end(&w);
}

static struct fake_end
fails_often(struct message *msg UNUSED, void *arg UNUSED)
{
	return random_end(12, 5 * SEC);
}

/* However handlers end, every message is acked or dead in the end, and none is in flight. */
TEST(random_handlers_finish_everything)
{
	struct world w;

	srand((unsigned)unit_random());
	world_begin(&w, fails_often);
	push(&w, 200);
	world_start(&w);
	loop_run_for(w.loop, 10 * HOUR);
	assert_int_equal(mem_count(w.store, MEM_ACKED) + mem_count(w.store, MEM_DEAD), 200);
	assert_int_equal(consumer_in_flight(w.consumer), 0);
	world_end(&w);
}
