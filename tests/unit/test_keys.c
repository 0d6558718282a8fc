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

/* queue.h: which operations a kind must have. */
TEST(test_operations)
{
	for (int i = 0; i < KINDS; i++) {
		const struct queue_ops *ops = queue_ops((enum kind)i);
		bool leases = kind_has((enum kind)i, TRAIT_LEASES);

		assert_non_null(ops->open);
		assert_non_null(ops->reconfigure);
		assert_non_null(ops->conn_up);
		assert_non_null(ops->conn_down);
		assert_non_null(ops->want);
		assert_non_null(ops->fetch);
		assert_non_null(ops->settle);
		assert_non_null(ops->tick);
		assert_non_null(ops->is_empty);
		assert_non_null(ops->close);
		assert_non_null(ops->free);
		assert_int_equal(ops->save != NULL, leases);
		assert_int_equal(ops->renew != NULL, leases);
		assert_int_equal(ops->due != NULL, leases);
		if (kind_has((enum kind)i, TRAIT_SHARDS))
			assert_non_null(ops->defer_fetch);
	}
}
