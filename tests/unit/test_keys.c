/*
 * Names of keys, words of commands, and the table of kinds.
 */
#include "unit.h"

#include "queue/script_args.h"
#include "queue/keys.h"
#include "queue/queue.h"

static void
test_names(void **state)
{
	static const char *const want[KEY_MAX] = {
		"{q}", "{q}BACKUP", "{q}CONTEXT", "{q}DELIVERY", "{q}RETRY", "{q}DELAYED",
		"{q}DEAD", "{q}PAUSED", "{q}STATS", "{q}SCHEDULE", "{q}RATE"
	};
	struct keys k;
	int i;

	(void)state;
	keys_init(&k, "{q}");
	for (i = 0; i < KEY_MAX; i++) {
		assert_string_equal(k.name[i], want[i]);
		assert_int_equal(k.len[i], strlen(want[i]));
		assert_string_equal(keys_suffix((enum key)i), want[i] + 3);
	}
	keys_done(&k);
}

static void
test_args(void **state)
{
	struct args a = { 0 };
	char text[24];
	int i;

	(void)state;
	args_mem(&a, "a\0b", 3);
	args_str(&a, "str");
	for (i = 0; i < 1000; i++)
		args_fmt(&a, "%d", i);
	assert_int_equal(a.n, 1002);
	assert_memory_equal(a.v[0], "a\0b", 3);
	assert_int_equal(a.len[0], 3);
	assert_string_equal(a.v[1], "str");
	for (i = 0; i < 1000; i++) {
		snprintf(text, sizeof(text), "%d", i);
		assert_string_equal(a.v[i + 2], text);
		assert_int_equal(a.len[i + 2], strlen(text));
	}
	assert_int_equal(a.bytes, 6 + 10 + 180 + 2700);
	args_done(&a);
	assert_int_equal(a.n, 0);
	args_done(&a);
}

static void
test_kinds(void **state)
{
	(void)state;
	queue_check_ops();
	assert_string_equal(queue_ops(KIND_ACK)->name, "ack");
	assert_string_equal(kind_name(KIND_ACK), "ack");
	queue_free(NULL);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_args),
		cmocka_unit_test(test_kinds),
	};

	return cmocka_run_group_tests_name("keys", tests, NULL, NULL);
}
