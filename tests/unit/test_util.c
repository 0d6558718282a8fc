/* Allocation, causes, random names, edit distance, and counters. */
#include "unit.h"

#include <errno.h>
#include <signal.h>

#include "base/stats.h"

TEST(test_allocation)
{
	char *p = xmalloc(0), *q = xcalloc(0, 0), *s;

	assert_non_null(p);
	assert_non_null(q);
	p = xrealloc(p, 0);
	assert_non_null(p);
	p = xreallocarray(p, 3, 5);
	memset(p, 'x', 15);
	free(p);
	free(q);

	s = xmemdup("a\0b", 3);
	assert_memory_equal(s, "a\0b", 3);
	free(s);
	free(xmemdup(NULL, 0));
	s = xstrndup("abcdef", 3);
	assert_string_equal(s, "abc");
	free(s);
	s = xasprintf("%d-%s", 5, "x");
	assert_string_equal(s, "5-x");
	free(s);
}

TEST(test_cause)
{
	char *cause = NULL;

	errno = ENOENT;
	assert_int_equal(util_cause(NULL, "x"), -1);
	assert_int_equal(util_cause(&cause, "%s: %d", "x", 7), -1);
	assert_int_equal(errno, ENOENT);
	assert_string_equal(cause, "x: 7");
	free(cause);
}

TEST(test_random)
{
	char name[24], other[24], none[1];
	double sum = 0, v;
	int i;

	random_name(name, sizeof(name));
	random_name(other, sizeof(other));
	assert_int_equal(strlen(name), sizeof(name) - 1);
	assert_int_equal(strspn(name, "0123456789abcdefghijklmnopqrstuvwxyz"),
	    sizeof(name) - 1);
	assert_string_not_equal(name, other);
	random_name(none, sizeof(none));
	assert_string_equal(none, "");
	random_name(none, 0);
	for (i = 0; i < 10000; i++) {
		v = random_unit();
		assert_true(v >= 0 && v < 1);
		sum += v;
	}
	assert_true(sum > 4700 && sum < 5300);
}

/* The system's own table, in a C library that has one; rqd does without. */
extern const char *sigabbrev_np(int) __attribute__((__weak__));

TEST(test_signals)
{
	char got[UTIL_SIGNAL_MAX], want[UTIL_SIGNAL_MAX];
	const char *name;
	int i;

	assert_string_equal(util_signal(SIGKILL, got), "SIGKILL");
	assert_string_equal(util_signal(SIGTERM, got), "SIGTERM");
	assert_string_equal(util_signal(0, got), "SIG0");
	assert_string_equal(util_signal(-7, got), "SIG-7");
	assert_string_equal(util_signal(SIGRTMIN + 1, got),
	    (snprintf(want, sizeof(want), "SIG%d", SIGRTMIN + 1), want));
	for (i = 0; sigabbrev_np != NULL && i < 1000; i++) {
		name = sigabbrev_np(i);
		if (name != NULL)
			snprintf(want, sizeof(want), "SIG%s", name);
		else
			snprintf(want, sizeof(want), "SIG%d", i);
		assert_string_equal(util_signal(i, got), want);
	}
}

TEST(test_distance)
{
	char lengthy[70];

	assert_int_equal(util_distance("", ""), 0);
	assert_int_equal(util_distance("abc", ""), 3);
	assert_int_equal(util_distance("", "abc"), 3);
	assert_int_equal(util_distance("kitten", "sitting"), 3);
	assert_int_equal(util_distance("order", "orders"), 1);
	assert_int_equal(util_distance("lease", "leese"), 1);
	memset(lengthy, 'x', sizeof(lengthy));
	lengthy[64] = '\0';
	assert_int_equal(util_distance(lengthy, ""), 64);
	lengthy[64] = 'x';
	lengthy[65] = '\0';
	assert_int_equal(util_distance(lengthy, lengthy), 64);
}

TEST(test_stats)
{
	struct histogram h = { .count = 0 };
	size_t i, j;

	for (i = 0; i < STAT_MAX; i++) {
		assert_non_null(stats_name((enum stat)i));
		assert_true(strlen(stats_help((enum stat)i)) > 10);
		for (j = 0; j < i; j++)
			assert_string_not_equal(stats_name((enum stat)i),
			    stats_name((enum stat)j));
	}
	for (i = 1; i < STATS_BUCKETS; i++)
		assert_true(stats_bounds[i] > stats_bounds[i - 1]);

	stats_observe(&h, 0);
	stats_observe(&h, 5 * MSEC);		/* a value on the bound belongs to its bucket */
	stats_observe(&h, 5 * MSEC + 1);
	stats_observe(&h, 2 * HOUR);
	assert_int_equal(h.bucket[0], 2);
	assert_int_equal(h.bucket[1], 1);
	assert_int_equal(h.bucket[STATS_BUCKETS], 1);
	assert_int_equal(h.count, 4);
	assert_true(h.sum > 7200 && h.sum < 7200.1);
}
