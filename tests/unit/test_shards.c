/* The keys of shards, and a consumer of a queue with shards. */
#include <errno.h>
#include "unit.h"

#include "engine_fixture.h"
#include "policy/shard_keys.h"
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

/* -- the consumer ------------------------------------------------------------------ */

#define SHARDS	4
#define KEYS	(SHARDS + 1)	/* the key of the queue itself is the last */

static struct fixture {
	struct world	 w;
	struct mem_store *store[KEYS];
	usec_t		 takes;		/* a handler's run */
	unsigned	 switches;	/* runs whose message came from another key than the last */
	const void	*last;
	unsigned	 warnings;
	char		 warning[500];
} f;

static struct fake_end
run(struct message *msg, void *arg UNUSED)
{
	f.switches += msg->source != f.last;
	f.last = msg->source;
	return (struct fake_end){ .after = f.takes };
}

static void
note_warning(void *arg UNUSED, enum log_level level UNUSED, const char *text, size_t len)
{
	if (memmem(text, len, "event=warning", 13) == NULL)
		return;
	f.warnings++;
	snprintf(f.warning, sizeof(f.warning), "%.*s", (int)len, text);
}

static int
setup(void **state UNUSED)
{
	memset(&f, 0, sizeof(f));
	f.takes = 5 * MSEC;
	world_begin(&f.w, run);
	log_set_sink(note_warning, NULL);
	f.w.cfg->keys = xcalloc(2, sizeof(char *));
	f.w.cfg->keys[0] = xstrdup(KEY);
	f.w.cfg->shards = SHARDS;
	f.w.cfg->shards_drain = 1;
	shard_keys_set(f.w.cfg);
	assert_int_equal(config_key_count(f.w.cfg), KEYS);
	for (size_t i = 0; i < SHARDS; i++)
		f.store[i] = mem_store_new(config_key_at(f.w.cfg, i));
	f.store[SHARDS] = f.w.store;
	return 0;
}

static int
teardown(void **state UNUSED)
{
	world_end(&f.w);
	for (size_t i = 0; i < SHARDS; i++)
		mem_store_free(f.store[i]);
	return 0;
}

#define SHARDS_TEST(name)	TEST_WITH(name, setup, teardown)

static void
push_to(size_t i, unsigned n)
{
	while (n-- > 0)
		mem_push(f.store[i], "x", 1, 0);
}

static void
push_to_each(unsigned n)
{
	for (size_t i = 0; i < KEYS; i++)
		push_to(i, n);
}

static void
pass(usec_t time)
{
	loop_run_for(f.w.loop, time);
}

static unsigned
acked(size_t i)
{
	return mem_count(f.store[i], MEM_ACKED);
}

static unsigned
all_acked(void)
{
	unsigned n = 0;

	for (size_t i = 0; i < KEYS; i++)
		n += acked(i);
	return n;
}

SHARDS_TEST(every_key_is_drained_and_every_message_settled_where_it_came_from)
{
	push_to_each(20);
	world_start(&f.w);
	pass(SEC);
	for (size_t i = 0; i < KEYS; i++)
		assert_int_equal(acked(i), 20);
	assert_int_equal(f.w.fake.started, 20 * KEYS);
	assert_int_equal(f.w.fake.peak, 4);
	assert_true(consumer_is_idle(f.w.consumer));
	push_to(2, 1);
	assert_false(consumer_is_idle(f.w.consumer));
	pass(SEC);
	assert_int_equal(acked(2), 21);
	assert_true(consumer_is_idle(f.w.consumer));
}

SHARDS_TEST(keys_take_turns_and_fetches_stay_with_one_for_a_moment)
{
	push_to_each(200);
	world_start(&f.w);
	pass(250 * MSEC);
	for (size_t i = 0; i < KEYS; i++)
		assert_in_range(acked(i), 10, 100);
	assert_in_range(f.switches, 10, all_acked() / 3);
}

/* The key that fetches stay with says nothing: the others are asked soon. */
SHARDS_TEST(fetches_wait_for_one_key_no_longer_than_a_moment)
{
	size_t i = 0;

	push_to_each(20);
	world_start(&f.w);
	pass(MSEC);
	while (mem_count(f.store[i], MEM_LEASED) == 0)
		i++;
	mem_set_up(f.store[i], false);
	pass(5 * MSEC);
	assert_int_equal(f.w.fake.started, 4);
	pass(3 * MSEC);
	assert_int_equal(f.w.fake.started, 8);
	pass(SEC);
	assert_int_equal(all_acked(), 20 * (KEYS - 1));
	mem_set_up(f.store[i], true);
	pass(SEC);
	assert_int_equal(all_acked(), 20 * KEYS);
}

SHARDS_TEST(a_key_that_does_not_answer_holds_up_no_other_one)
{
	const struct mem_entry *e;

	mem_set_hangs(f.store[1], true);
	push_to(1, 4);
	world_start(&f.w);
	pass(MSEC);
	push_to(0, 4);
	push_to(2, 4);
	pass(90 * MSEC);
	assert_int_equal(f.w.fake.started, 0);
	pass(20 * MSEC);
	assert_int_equal(all_acked(), 8);
	push_to(3, 100);
	pass(SEC);
	assert_int_equal(all_acked(), 108);
	assert_false(consumer_is_idle(f.w.consumer));

	/* It answers while all slots are taken: it comes first when one is free. */
	f.takes = 100 * MSEC;
	for (size_t i = 0; i < KEYS; i++)
		push_to(i, i == 1 ? 0 : 20);
	pass(10 * MSEC);
	mem_set_hangs(f.store[1], false);
	pass(80 * MSEC);
	assert_int_equal(mem_count(f.store[1], MEM_WAITING), 4);
	pass(20 * MSEC);
	assert_in_range(mem_count(f.store[1], MEM_WAITING), 0, 3);
	pass(10 * SEC);
	assert_int_equal(all_acked(), 188 + 4);
	TAILQ_FOREACH(e, mem_entries(f.store[1]), entry)
		assert_int_equal(e->deliveries, 1);
}

SHARDS_TEST(an_answer_in_time_is_one_of_its_fetch)
{
	mem_set_hangs(f.store[1], true);
	push_to(1, 4);
	world_start(&f.w);
	pass(90 * MSEC);
	mem_set_hangs(f.store[1], false);
	pass(6 * MSEC);
	assert_int_equal(acked(1), 4);
}

/* All keys are on one server: no other could be asked meanwhile. */
SHARDS_TEST(a_fetch_from_the_only_server_is_waited_for)
{
	f.w.queue_env.conn = (struct conn *)(void *)&f;
	mem_set_hangs(f.store[1], true);
	push_to(1, 4);
	world_start(&f.w);
	pass(MSEC);
	push_to(0, 4);
	pass(SEC);
	assert_int_equal(f.w.fake.started, 0);
	mem_set_hangs(f.store[1], false);
	pass(SEC);
	assert_int_equal(all_acked(), 8);
}

SHARDS_TEST(the_queue_is_paused_when_all_its_keys_are)
{
	world_start(&f.w);
	for (size_t i = 0; i < KEYS; i++) {
		assert_int_equal(consumer_block(f.w.consumer), BLOCK_NONE);
		mem_set_paused(f.store[i], true);
		pass(MSEC);
	}
	assert_int_equal(consumer_block(f.w.consumer), BLOCK_PAUSED);
	mem_set_paused(f.store[2], false);
	push_to_each(1);
	pass(SEC);
	assert_int_equal(consumer_block(f.w.consumer), BLOCK_NONE);
	assert_int_equal(all_acked(), 1);
	consumer_tick(f.w.consumer);
	assert_int_equal(f.warnings, 0);
	for (int i = 0; i < 3; i++)
		consumer_tick(f.w.consumer);
	assert_int_equal(f.warnings, 1);
	assert_non_null(strstr(f.warning, "4 of its 5 keys are paused"));
	for (size_t i = 0; i < KEYS; i++)
		mem_set_paused(f.store[i], false);
	pass(SEC);
	assert_int_equal(all_acked(), KEYS);
}

SHARDS_TEST(one_broken_key_does_not_stop_the_others)
{
	mem_set_error(f.store[1], "WRONGTYPE");
	push_to_each(5);
	world_start(&f.w);
	pass(SEC);
	assert_int_equal(all_acked(), 5 * (KEYS - 1));
	assert_int_equal(f.warnings, 1);
	assert_non_null(strstr(f.warning, config_key_at(f.w.cfg, 1)));
	assert_non_null(strstr(f.warning, "WRONGTYPE"));
	assert_int_equal(consumer_block(f.w.consumer), BLOCK_NONE);
	mem_set_error(f.store[1], NULL);
	pass(SEC);
	assert_int_equal(all_acked(), 5 * KEYS);
}

SHARDS_TEST(the_queue_is_suspended_when_all_keys_are_broken)
{
	for (size_t i = 0; i < KEYS; i++)
		mem_set_error(f.store[i], "NOPERM");
	push_to_each(1);
	world_start(&f.w);
	pass(SEC / 2);
	assert_int_equal(consumer_block(f.w.consumer), BLOCK_SUSPENDED);
	assert_string_equal(consumer_suspension(f.w.consumer)->cause, "NOPERM");
	mem_set_error(f.store[0], NULL);
	pass(MINUTE);
	assert_int_equal(consumer_block(f.w.consumer), BLOCK_NONE);
	assert_int_equal(acked(0), 1);
}

/* Results that Redis refuses keep their slots, whichever keys they belong to. */
SHARDS_TEST(refused_results_of_several_keys_are_one_state)
{
	push_to_each(10);
	world_start(&f.w);
	mem_set_refuses(f.store[0], true);
	mem_set_refuses(f.store[1], true);
	pass(SEC);
	assert_int_equal(consumer_block(f.w.consumer), BLOCK_REFUSED);
	assert_in_range(f.w.fake.started - all_acked(), 4, 8);
	mem_set_refuses(f.store[0], false);
	assert_int_equal(consumer_block(f.w.consumer), BLOCK_REFUSED);
	mem_set_refuses(f.store[1], false);
	assert_int_equal(consumer_block(f.w.consumer), BLOCK_NONE);
	pass(SEC);
	assert_int_equal(all_acked(), 10 * KEYS);
}

SHARDS_TEST(a_drain_ends_when_every_key_has_its_results)
{
	size_t left = 0;

	push_to_each(1);
	f.takes = SEC;
	world_start(&f.w);
	pass(SEC / 2);
	for (size_t i = 0; i < KEYS; i++)
		mem_set_up(f.store[i], false);
	consumer_drain(f.w.consumer);
	pass(SEC);
	for (size_t i = 0; i < KEYS; i++)
		left += mem_count(f.store[i], MEM_LEASED);
	assert_int_equal(left, 4);
	for (size_t i = 0; i < KEYS; i++) {
		assert_int_equal(f.w.closed, left == 0);
		left -= mem_count(f.store[i], MEM_LEASED);
		mem_set_up(f.store[i], true);
		pass(SEC);
	}
	assert_true(f.w.closed);
	assert_int_equal(all_acked(), 4);
}
