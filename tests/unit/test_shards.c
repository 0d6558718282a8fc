/* The keys of shards, and a queue with shards. */
#include "shards_fixture.h"

#include "redis/slots.h"

/* -- keys ----------------------------------------------------------------------- */

static bool
has(char *const *keys, const char *key)
{
	for (; *keys != NULL; keys++) {
		if (strcmp(*keys, key) == 0)
			return true;
	}
	return false;
}

TEST(each_part_has_the_first_key_whose_slot_lies_in_it)
{
	char **keys, key[32];
	unsigned part;

	for (unsigned n = 1; n <= SHARDS_MAX; n *= 2) {
		keys = shard_keys_new("orders", n);
		for (unsigned i = 0; i < n; i++) {
			part = slot_of(keys[i], strlen(keys[i])) / (SLOTS / n);
			assert_int_equal(part, i);
			for (unsigned k = 0;; k++) {
				snprintf(key, sizeof(key), "{orders.%u}", k);
				if (slot_of(key, strlen(key)) / (SLOTS / n) == i)
					break;
			}
			assert_string_equal(keys[i], key);
		}
		assert_null(keys[n]);
		assert_true(has(keys, "{orders.0}"));
		util_free_list(keys);
	}
}

TEST(twice_as_many_shards_have_the_same_keys_and_others)
{
	char **few, **many;

	for (unsigned n = 1; n < SHARDS_MAX; n *= 2) {
		few = shard_keys_new("q", n);
		many = shard_keys_new("q", 2 * n);
		for (unsigned i = 0; i < n; i++)
			assert_true(has(many, few[i]));
		util_free_list(few);
		util_free_list(many);
	}
}

TEST(shards_lie_evenly_on_three_masters)
{
	char **keys = shard_keys_new("orders", 16);
	unsigned on[3] = { 0 };

	for (unsigned i = 0; i < 16; i++)
		on[slot_of(keys[i], strlen(keys[i])) * 3 / SLOTS]++;
	for (int i = 0; i < 3; i++)
		assert_true(on[i] == 5 || on[i] == 6);
	util_free_list(keys);
}

TEST(producers_agree_about_the_part_of_an_id)
{
	/* CRC16("123456789") is 0x31C3: the check value of CRC-16/XMODEM. */
	assert_int_equal(shard_keys_part("123456789", 9, 16384 / 64), 0x31C3 % 16384 / 64);
	assert_int_equal(shard_keys_part("123456789", 9, 8), 0x31C3 % 16384 / 2048);
	/* Braces in an id are not a hash tag. */
	assert_int_equal(shard_keys_part("a{b}c", 5, 256), slot_of_text("a{b}c", 5) / 64);
	assert_int_not_equal(slot_of_text("a{b}c", 5), slot_of("a{b}c", 5));
	assert_int_equal(shard_keys_part("", 0, 256), 0);
}

TEST(numbers_of_shards)
{
	for (int64_t n = -2; n <= 2 * SHARDS_MAX; n++)
		assert_int_equal(shard_keys_count_ok(n), n == 1 || n == 2 || n == 4 || n == 8 ||
		    n == 16 || n == 32 || n == 64 || n == 128 || n == 256);
}

TEST(keys_of_a_queue_that_another_process_serves)
{
	static const int64_t wrong[] = { INT64_MIN, -8, 0, 1, 3, 257, 512, INT64_MAX };
	char **keys;

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		assert_null(shard_keys_all("orders", wrong[i]));
	assert_null(shard_keys_all("", 8));
	assert_null(shard_keys_all("a}b", 8));
	assert_null(shard_keys_all("{a}{b}", 8));
	keys = shard_keys_all("orders", 4);
	assert_true(has(keys, "{orders.0}") && keys[4] != NULL && keys[5] == NULL);
	assert_string_equal(keys[4], "orders");
	util_free_list(keys);
	keys = shard_keys_all("{orders}", 4);	/* on a cluster */
	assert_true(has(keys, "{orders.0}"));
	assert_string_equal(keys[4], "{orders}");
	util_free_list(keys);
}

/* -- the queue ------------------------------------------------------------------- */

FIXTURE_TEST(every_key_is_drained_and_every_message_settled_where_it_came_from)
{
	for (size_t i = 0; i < KEYS; i++)
		push(i, 20);
	want(true);
	while (f.readies > 0) {
		f.readies = 0;
		assert_in_range(fetch(7), 0, 7);
		ack_all();
	}
	assert_int_equal(acked(), 20 * KEYS);
	assert_int_equal(f.settled, 20 * KEYS);
	assert_true(queue_is_empty(f.queue));
}

FIXTURE_TEST(shards_take_turns)
{
	bool seen[KEYS] = { false };

	for (size_t i = 0; i < KEYS; i++)
		push(i, 2);
	want(true);
	for (size_t i = 0; i < KEYS; i++) {
		assert_int_equal(fetch(1), 1);
		seen[f.msgs[i]->id[0] - '0'] = true;
		loop_run_for(f.loop, 30 * MSEC);
	}
	for (size_t i = 0; i < KEYS; i++)
		assert_true(seen[i]);
}

FIXTURE_TEST(fetches_stay_with_a_shard_for_a_moment)
{
	for (size_t i = 0; i < KEYS; i++)
		push(i, 20);
	want(true);
	for (size_t i = 0; i < 10; i++) {
		assert_int_equal(fetch(1), 1);
		assert_int_equal(f.msgs[i]->id[0], f.msgs[0]->id[0]);
		loop_run_for(f.loop, MSEC);
	}
	loop_run_for(f.loop, 20 * MSEC);
	fetch(1);
	assert_int_equal(fetch(1), 1);
	assert_int_not_equal(f.msgs[11]->id[0], f.msgs[0]->id[0]);
}

/* The shard of the last fetch says nothing for 2 ms: others are asked. */
FIXTURE_TEST(fetches_wait_for_that_shard_no_longer_than_a_moment)
{
	size_t first;

	for (size_t i = 0; i < KEYS; i++)
		push(i, 20);
	want(true);
	fetch(1);
	first = (size_t)(f.msgs[0]->id[0] - '0');
	f.readies = 0;
	want(false);
	mem_set_up(f.store[first], false);	/* so it will not call ready() */
	want(true);
	assert_int_equal(f.readies, 0);
	loop_run_for(f.loop, 3 * MSEC);
	assert_int_equal(f.readies, 1);
	assert_int_equal(fetch(1), 1);
	assert_int_not_equal(f.msgs[1]->id[0], f.msgs[0]->id[0]);
}

/* Fetches that ask for little do not make a shard count as one that holds little. */
FIXTURE_TEST(small_fetches_make_no_shard_small)
{
	size_t i;

	push(0, 600);
	want(true);
	for (unsigned n = 1; n <= 64; n *= 2)
		assert_int_equal(fetch(n), n);
	fetch(1);
	for (i = 1; i < KEYS; i++)
		push(i, 1);
	turn();
	memset(f.fetches, 0, sizeof(f.fetches));
	assert_int_equal(fetch(60), 60);
	assert_int_equal(f.asked_of[0], 60);
}

FIXTURE_TEST(all_that_are_ready_are_asked_at_once_where_each_has_little)
{
	for (size_t i = 0; i < KEYS; i++)
		push(i, 1);
	want(true);
	assert_int_equal(f.readies, 1);
	assert_int_equal(fetch(2 * KEYS), KEYS);
	for (size_t i = 0; i < KEYS; i++) {
		assert_int_equal(f.fetches[i], 1);
		assert_int_equal(f.asked_of[i], 2);
	}
}

FIXTURE_TEST(few_are_asked_for_much_where_they_have_much)
{
	unsigned asked = 0;

	for (size_t i = 0; i < KEYS; i++)
		push(i, 600);
	want(true);
	for (int i = 0; i < 8; i++) {
		assert_int_equal(fetch(64), 64);
		ack_all();
	}
	memset(f.fetches, 0, sizeof(f.fetches));
	assert_int_equal(fetch(64), 64);
	for (size_t i = 0; i < KEYS; i++)
		asked += f.fetches[i];
	assert_in_range(asked, 1, 2);
}

FIXTURE_TEST(ready_comes_once_and_only_while_the_engine_wants)
{
	push(0, 1);
	turn();
	assert_int_equal(f.readies, 0);
	want(true);
	assert_int_equal(f.readies, 1);
	push(1, 1);
	turn();
	assert_int_equal(f.readies, 1);
	want(false);
	push(2, 1);
	turn();
	assert_int_equal(f.readies, 1);
	want(true);
	assert_int_equal(f.readies, 2);
	assert_int_equal(fetch(9), 3);
	/* When the engine wants again, there is nothing: ready() does not come. */
	want(false);
	want(true);
	assert_int_equal(f.readies, 2);
}

FIXTURE_TEST(a_queue_that_is_not_wanted_for_long_watches_no_more)
{
	want(true);
	want(false);
	CALL(queue_tick(f.queue));
	turn();
	push(3, 1);
	turn();
	assert_int_equal(f.readies, 0);
	want(true);
	assert_int_equal(f.readies, 1);
	assert_int_equal(fetch(1), 1);
}

FIXTURE_TEST(a_fetch_after_the_messages_are_gone_is_answered)
{
	push(0, 1);
	want(true);
	assert_int_equal(fetch(1), 1);
	assert_int_equal(fetch(1), 0);
	assert_int_equal(f.status, FETCH_OK);
}

FIXTURE_TEST(messages_that_a_shard_holds_take_their_room)
{
	push(0, 10);
	push(1, 10);
	want(true);
	f.held[2] = 3;		/* as if it loaded their payloads: it is not ready */
	assert_int_equal(fetch(4), 1);
	f.readies = 0;
	assert_int_equal(fetch(3), 0);	/* no room for others */
	turn();
	assert_int_equal(f.readies, 0);
	f.held[2] = 0;
	ack_all();	/* makes the queue look again */
	assert_int_equal(f.readies, 1);
	assert_int_equal(fetch(3), 3);
}

FIXTURE_TEST(a_shard_is_asked_for_what_it_holds)
{
	push(0, 10);
	push(1, 10);
	want(true);
	f.held[1] = 5;		/* as if their payloads had come: it is ready */
	fetch(5);
	assert_int_equal(f.asked_of[1], 5);
	assert_int_equal(f.fetches[0], 0);
}

FIXTURE_TEST(a_batch_comes_from_one_shard)
{
	f.cfg->batch = 10;
	for (size_t i = 0; i < KEYS; i++)
		push(i, 30);
	want(true);
	assert_int_equal(fetch(20), 20);
	for (size_t i = 0; i < KEYS; i++)
		assert_true(f.asked_of[i] == 0 || f.asked_of[i] == 10);
}

FIXTURE_TEST(the_queue_is_paused_when_all_its_keys_are)
{
	want(true);
	for (size_t i = 0; i < KEYS; i++) {
		assert_int_equal(f.paused, 0);
		mem_set_paused(f.store[i], true);
		turn();
	}
	assert_int_equal(f.paused, 1);
	mem_set_paused(f.store[2], false);
	turn();
	assert_int_equal(f.unpaused, 1);
	push(2, 1);
	push(3, 1);
	turn();
	assert_int_equal(fetch(5), 1);
	/* The warning comes late and once: rqctl pause pauses one key after the other. */
	CALL(queue_tick(f.queue));
	turn();
	assert_int_equal(f.warnings, 0);
	for (int i = 0; i < 3; i++)
		queue_tick(f.queue);
	assert_int_equal(f.warnings, 1);
	assert_non_null(strstr(f.warning, "4 of its 5 keys are paused"));
	for (size_t i = 0; i < KEYS; i++)
		mem_set_paused(f.store[i], false);
	turn();
	assert_int_equal(f.unpaused, 1);
	assert_int_equal(fetch(5), 1);
}

FIXTURE_TEST(a_fetch_that_asks_nobody_is_answered_although_the_queue_closes)
{
	want(true);
	CALL(queue_fetch(f.queue, 1, TURN_SHARE));
	CALL(queue_close(f.queue));
	turn();
	assert_int_equal(f.fetched, 1);
}

FIXTURE_TEST(one_broken_key_does_not_stop_the_others)
{
	mem_set_error(f.store[1], "WRONGTYPE");
	for (size_t i = 0; i < KEYS; i++)
		push(i, 5);
	want(true);
	for (int i = 0; i < 40; i++) {
		fetch(4);
		assert_int_equal(f.status, FETCH_OK);
	}
	assert_int_equal(f.n, 5 * (KEYS - 1));
	assert_int_equal(f.warnings, 1);
	assert_non_null(strstr(f.warning, f.each[1].key));
	assert_non_null(strstr(f.warning, "WRONGTYPE"));
	mem_set_error(f.store[1], NULL);
	turn();
	while (f.n < 5 * KEYS)
		fetch(4);
}

FIXTURE_TEST(the_queue_is_broken_when_all_keys_are)
{
	for (size_t i = 0; i < KEYS; i++) {
		mem_set_error(f.store[i], "NOPERM");
		push(i, 1);
	}
	want(true);
	for (int i = 0; i < KEYS && f.status != FETCH_ERROR; i++)
		fetch(1);
	assert_int_equal(f.status, FETCH_ERROR);
	assert_string_equal(f.cause, "NOPERM");
	fetch(1);
	assert_int_equal(f.status, FETCH_ERROR);
	mem_set_error(f.store[0], NULL);
	for (int i = 0; i < KEYS && f.n == 0; i++)
		fetch(1);
	assert_int_equal(f.n, 1);
	assert_int_equal(f.status, FETCH_OK);
}

static size_t
first_shard(void)
{
	for (size_t i = 0; i < KEYS; i++) {
		if (strcmp(config_key_at(f.cfg, i), "{q.0}") == 0)
			return i;
	}
	fail();
	return 0;
}

FIXTURE_TEST(counters_are_sent_once)
{
	size_t first = first_shard(), other = first == 0 ? 1 : 0;

	push(first, 3);
	push(other, 3);
	want(true);
	while (f.n < 5)
		fetch(5 - f.n);
	f.stats.n[STAT_DELIVERED] = 6;
	CALL(queue_tick(f.queue));
	CALL(queue_tick(f.queue));
	for (size_t i = 0; i < KEYS; i++)
		assert_int_equal(f.stats_of[i]->n[STAT_DELIVERED], i == first ? 6 : 0);
	while (f.n < 6)
		fetch(1);
	/* The queue does not close while a shard has messages to settle. */
	CALL(queue_close(f.queue));
	turn();
	assert_int_equal(f.closes, 0);
	ack_all();
	assert_int_equal(f.closes, 1);
	assert_int_equal(f.stats_of[first]->n[STAT_ACKED], 3);
	assert_int_equal(f.stats_of[other]->n[STAT_ACKED], 3);
}

FIXTURE_TEST(refused_results_of_several_shards_are_one_report)
{
	const struct queue_events *e = f.part[0]->events;
	struct tick_report why = { .refused = "OOM", .warning = NULL };
	struct tick_report over = { .refused = "", .warning = "accepts" };
	unsigned most = config_most(f.cfg);

	for (size_t i = 0; i < KEYS; i++)
		push(i, 10);
	want(true);
	fetch(most - 2);
	e->ticked(&why, f.part[0]->arg);
	e->ticked(&why, f.part[1]->arg);
	assert_int_equal(f.refusals, 1);
	/* Results that could not be sent keep their slots. */
	assert_int_equal(fetch(5), 2);
	f.readies = 0;
	turn();
	assert_int_equal(f.readies, 0);
	e->ticked(&over, f.part[0]->arg);
	assert_int_equal(f.acceptances, 0);
	e->ticked(&over, f.part[1]->arg);
	assert_int_equal(f.acceptances, 1);
	assert_int_equal(f.warnings, 1);
	turn();
	assert_int_equal(f.readies, 1);
	assert_int_equal(fetch(5), 5);
}

FIXTURE_TEST(the_same_warning_of_many_shards_is_said_once)
{
	const struct queue_events *e = f.part[0]->events;
	struct tick_report t = { .warning = "tick: NOPERM" };

	for (size_t i = 0; i < KEYS; i++)
		e->ticked(&t, f.part[i]->arg);
	assert_int_equal(f.warnings, 1);
	t.warning = "renew: NOPERM";
	e->ticked(&t, f.part[0]->arg);
	assert_int_equal(f.warnings, 2);
}

FIXTURE_TEST(it_is_empty_when_all_shards_are)
{
	struct tick_report nothing = { .warning = NULL };
	const struct queue_events *e = f.part[0]->events;

	push(2, 1);
	assert_false(queue_is_empty(f.queue));
	e->ticked(&nothing, f.part[0]->arg);
	assert_int_equal(f.empties, 0);
	want(true);
	fetch(1);
	assert_false(queue_is_empty(f.queue));
	ack_all();
	assert_true(queue_is_empty(f.queue));
	e->ticked(&nothing, f.part[0]->arg);
	assert_int_equal(f.empties, 1);
}

FIXTURE_TEST(redis_away_is_no_error)
{
	for (size_t i = 0; i < KEYS; i++) {
		push(i, 1);
		mem_set_up(f.store[i], i == 2);
	}
	want(true);
	while (f.n == 0)
		fetch(1);
	assert_int_equal(f.status, FETCH_OK);
	for (size_t i = 0; i < KEYS; i++)
		mem_set_up(f.store[i], false);
	turn();
	fetch(3);
	assert_true(f.status == FETCH_DOWN || f.status == FETCH_OK);
	for (size_t i = 0; i < KEYS; i++)
		mem_set_up(f.store[i], true);
	turn();
	while (f.n < KEYS)
		fetch(3);
}

/* -- results of quick handlers ------------------------------------------------------------- */

/* Fetches eight messages, and acks them one after the other, `each` apart. */
static void
run_eight(usec_t each)
{
	assert_int_equal(fetch(8), 8);
	while (f.n > 0) {
		ack(f.msgs[--f.n]);
		loop_run_for(f.loop, each);
	}
}

static void
ack_one_and_want(void)
{
	f.readies = 0;
	ack(f.msgs[--f.n]);
	want(true);
}

FIXTURE_TEST(a_pop_fills_the_slots_of_several_quick_handlers)
{
	for (size_t i = 0; i < KEYS; i++)
		push(i, 100);
	want(true);
	for (int i = 0; i < 10; i++)
		run_eight(10);
	fetch(8);
	want(false);
	ack_one_and_want();
	assert_int_equal(f.readies, 0);
	ack_one_and_want();
	assert_int_equal(f.readies, 0);
	ack_one_and_want();	/* five are in hand */
	assert_int_equal(f.readies, 1);
	fetch(3);
	want(false);
	ack_one_and_want();	/* no other result follows */
	loop_run_for(f.loop, 900);
	assert_int_equal(f.readies, 0);
	loop_run_for(f.loop, 200);
	assert_int_equal(f.readies, 1);
}

FIXTURE_TEST(a_pop_waits_for_no_slow_handlers)
{
	for (size_t i = 0; i < KEYS; i++)
		push(i, 100);
	want(true);
	for (int i = 0; i < 10; i++)
		run_eight(MSEC);
	fetch(8);
	want(false);
	ack_one_and_want();
	assert_int_equal(f.readies, 1);
}

/* No result has come for 2 ms: a new message is reported at once. */
FIXTURE_TEST(a_new_message_waits_for_no_results)
{
	push(0, 88);
	want(true);
	for (int i = 0; i < 10; i++)
		run_eight(10);
	fetch(8);
	ack(f.msgs[--f.n]);
	loop_run_for(f.loop, 2 * MSEC);
	f.readies = 0;
	push(1, 1);
	turn();
	assert_int_equal(f.readies, 1);
}
