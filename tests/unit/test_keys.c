/*
 * Names of keys, words of commands, and the table of kinds.
 */
#include "unit.h"

#include "queue/keys.h"
#include "queue/queue.h"

TEST(test_names)
{
	static const char *const want[KEY_MAX] = {
		"{q}", "{q}BACKUP", "{q}CONTEXT", "{q}DELIVERY", "{q}RETRY", "{q}DELAYED",
		"{q}DEAD", "{q}PAUSED", "{q}STATS", "{q}SCHEDULE", "{q}RATE", "{q}HELD",
		"{q}GROUP", "{q}ORDER"
	};
	struct keys k;
	int i;

	keys_init(&k, "{q}");
	for (i = 0; i < KEY_MAX; i++) {
		assert_string_equal(k.name[i], want[i]);
		assert_int_equal(k.len[i], strlen(want[i]));
		assert_string_equal(keys_suffix((enum key)i), want[i] + 3);
	}
	keys_done(&k);
}

TEST(test_kinds)
{
	int kind;

	for (kind = 0; kind < KINDS; kind++)
		assert_int_equal(kind_find(kind_name((enum kind)kind)), kind);
	assert_null(kind_names[KINDS]);
	assert_string_equal(kind_name(KIND_ACK), "ack");
	assert_int_equal(kind_find("no kind"), KIND_DEFAULT);
	assert_true(kind_has(KIND_STREAM, TRAIT_LEASES));
	assert_true(kind_has(KIND_STREAM, TRAIT_CONSUMER_GROUP));
	assert_false(kind_has(KIND_LIST, TRAIT_LEASES));
	assert_true(kind_waits(KIND_LIST));
	assert_false(kind_waits(KIND_CHANNEL) || kind_waits(KIND_PATTERN));
	assert_string_equal(kind_key_prefix(KIND_UNIQUE), "Queue:");
	assert_string_equal(kind_key_prefix(KIND_ACK), "");
	queue_free(NULL);
}
