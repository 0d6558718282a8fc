/*
 * Messages that a handler pushes to other queues: order, limits, faults.
 */
#include "unit.h"

#include "policy/pushes.h"
#include "policy/shard_keys.h"

static char *none[] = { NULL }, *listed[] = { (char *)"items", (char *)"mails", NULL };
static struct queue_config from = { .name = (char *)"from", .pushes = listed, .push_max = 3 };
static struct queue_config items = { .name = (char *)"items", .message_max = 10, .pushes = none };
static struct queue_config mails = { .name = (char *)"mails", .message_max = 1 << 30,
    .pushes = none };
static struct queue_config other = { .name = (char *)"other", .message_max = 10, .pushes = none };
static struct queue_config *queues[] = { &from, &items, &mails, &other, NULL };
static struct config config = { .queues = queues, .nqueues = 4 };

static void
add(struct pushes **p, const char *name, const char *message, size_t len)
{
	pushes_add(p, &config, &from, name, strlen(name), message, len);
}

static void
expect_next(const struct pushes *p, size_t target, size_t *at, const char *message)
{
	size_t len;
	const char *found = pushes_next(p, target, at, &len);

	if (message == NULL) {
		assert_null(found);
		return;
	}
	assert_int_equal(len, strlen(message));
	assert_memory_equal(found, message, len);
}

TEST(test_none)
{
	assert_null(pushes_fault(NULL));
	assert_int_equal(pushes_count(NULL), 0);
	assert_int_equal(pushes_bytes(NULL), 0);
	assert_int_equal(pushes_targets(NULL), 0);
	pushes_free(NULL);
}

TEST(test_order)
{
	struct pushes *p = NULL;
	size_t at = 0;

	add(&p, "items", "one", 3);
	add(&p, "mails", "", 0);
	add(&p, "items", "two", 3);
	assert_null(pushes_fault(p));
	assert_int_equal(pushes_count(p), 3);
	assert_int_equal(pushes_bytes(p), 6);
	assert_int_equal(pushes_targets(p), 2);
	assert_ptr_equal(pushes_target(p, 0)->queue, &items);
	assert_int_equal(pushes_target(p, 0)->count, 2);
	assert_ptr_equal(pushes_target(p, 1)->queue, &mails);
	assert_int_equal(pushes_target(p, 1)->count, 1);
	expect_next(p, 0, &at, "one");
	expect_next(p, 0, &at, "two");
	expect_next(p, 0, &at, NULL);
	at = 0;
	expect_next(p, 1, &at, "");
	expect_next(p, 1, &at, NULL);
	pushes_free(p);
}

TEST(a_queue_with_shards_gets_each_message_in_one_of_them)
{
	char *keys[] = { (char *)"many", NULL };
	struct queue_config many = { .name = (char *)"items", .key = keys[0], .keys = keys,
	    .shards = 8, .shards_drain = 1, .message_max = 100, .pushes = none,
	    .id = (char *)"id" };
	struct queue_config *with[] = { &from, &many, NULL };
	struct config c = { .queues = with, .nqueues = 2 };
	struct pushes *p = NULL;
	char text[32];
	const char *key;
	size_t total = 0;

	shard_keys_set(&many);
	for (int i = 0; i < 3; i++)
		pushes_add(&p, &c, &from, "items", 5, "{\"id\":\"123456789\"}", 18);
	assert_int_equal(pushes_targets(p), 1);
	key = pushes_target(p, 0)->key;
	assert_ptr_equal(key, many.shard_keys[shard_keys_part("123456789", 9, 8)]);
	pushes_free(p);
	p = NULL;
	from.push_max = 1000;
	for (int i = 0; i < 400; i++) {
		snprintf(text, sizeof(text), i % 2 == 0 ? "{\"id\":%d}" : "no id %d", i);
		pushes_add(&p, &c, &from, "items", 5, text, strlen(text));
	}
	from.push_max = 3;
	assert_int_equal(pushes_targets(p), 8);
	for (size_t i = 0; i < 8; i++) {
		assert_ptr_equal(pushes_target(p, i)->queue, &many);
		assert_true(config_has_key(&many, pushes_target(p, i)->key));
		total += pushes_target(p, i)->count;
	}
	assert_int_equal(total, 400);
	pushes_free(p);
	util_free_list(many.shard_keys);
}

/* Checks that the first fault stays, and that nothing is left to push. */
static void
expect_fault(struct pushes **p, const char *text)
{
	assert_non_null(pushes_fault(*p));
	if (strstr(pushes_fault(*p), text) == NULL)
		fail_msg("not in \"%s\": %s", pushes_fault(*p), text);
	assert_int_equal(pushes_count(*p), 0);
	assert_int_equal(pushes_bytes(*p), 0);
	assert_int_equal(pushes_targets(*p), 0);
	add(p, "items", "more", 4);
	add(p, "nobody", "more", 4);
	pushes_add(p, &config, &from, "items", 5, NULL, 0);
	assert_int_equal(pushes_count(*p), 0);
	assert_non_null(strstr(pushes_fault(*p), text));
	pushes_free(*p);
	*p = NULL;
}

TEST(test_faults)
{
	char *large = xcalloc(PUSHES_BYTES, 1);
	struct pushes *p = NULL;
	int i;

	add(&p, "items", "one", 3);
	add(&p, "other", "x", 1);
	expect_fault(&p, "\"other\", which \"pushes\" does not list");
	add(&p, "item", "x", 1);
	expect_fault(&p, "\"item\"");
	add(&p, "items", "0123456789", 10);
	add(&p, "items", "0123456789a", 11);
	expect_fault(&p, "a message of 11 bytes for the queue \"items\": its message_max is 10");
	for (i = 0; i < 4; i++)
		add(&p, "items", "x", 1);
	expect_fault(&p, "more messages than push_max, which is 3");
	add(&p, "mails", large, PUSHES_BYTES);
	assert_null(pushes_fault(p));
	add(&p, "mails", "", 0);
	assert_null(pushes_fault(p));
	add(&p, "mails", "x", 1);
	expect_fault(&p, "more than 1048576 bytes in all");
	pushes_add(&p, &config, &from, "items", 5, NULL, 0);
	expect_fault(&p, "longer than its message_max, which is 10");
	pushes_add(&p, &config, &from, "mails", 5, NULL, 0);
	expect_fault(&p, "more than 1048576 bytes in all");
	free(large);
}

static void
say(struct pushes **p, size_t len, size_t *sum)
{
	static char text[PUSHES_BYTES];
	const struct message m = { .config = &config, .cfg = &from };
	const struct statement s = { .word = STATEMENT_PUSH, .queue = "mails", .queue_len = 5,
	    .text = text, .len = len };

	pushes_add_said(p, &m, &s, false, sum);
}

/*
 * The messages of a run share 16 MiB.  One that would exceed that has a fault, and its
 * bytes no longer count.
 */
TEST(test_run)
{
	struct pushes *p[18] = { NULL };
	size_t sum = 0, i, each = 1000000 + PUSHES_EACH;

	for (i = 0; i < 16; i++)
		say(&p[i], 1000000, &sum);
	assert_int_equal(sum, 16 * each);
	say(&p[16], 700000, &sum);
	assert_null(pushes_fault(p[16]));
	say(&p[16], 100000, &sum);
	expect_fault(&p[16], "would hand over more than 16777216 bytes");
	assert_int_equal(sum, 16 * each);
	say(&p[17], 700000, &sum);
	assert_null(pushes_fault(p[17]));
	/* The bytes of a message with a fault of its own do not count either. */
	say(&p[17], 700000, &sum);
	expect_fault(&p[17], "more than 1048576 bytes in all");
	assert_int_equal(sum, 16 * each);
	for (i = 0; i < 16; i++) {
		assert_null(pushes_fault(p[i]));
		pushes_free(p[i]);
	}
}

/* Pushed messages count as debt until they are freed, also after the process is gone. */
TEST(test_debt)
{
	struct pushes *p[17] = { NULL };
	struct pushes_debt *debt = NULL;
	size_t sum, i;

	pushes_owe(NULL, &debt);
	assert_null(debt);
	assert_false(pushes_debt_is_large(debt));
	for (i = 0; i < ARRAY_LEN(p); i++) {
		assert_false(pushes_debt_is_large(debt));
		sum = 0;
		say(&p[i], 1000000, &sum);
		pushes_owe(p[i], &debt);
	}
	assert_true(pushes_debt_is_large(debt));
	pushes_free(p[0]);
	assert_false(pushes_debt_is_large(debt));
	pushes_debt_unref(debt);
	for (i = 1; i < ARRAY_LEN(p); i++)
		pushes_free(p[i]);
}

TEST(test_longest)
{
	assert_int_equal(pushes_longest(&config, "items"), 10);
	assert_int_equal(pushes_longest(&config, "mails"), PUSHES_BYTES);
	assert_int_equal(pushes_longest(&config, "nobody"), 0);
}
