/*
 * The history of queues under a simulated clock: rates, gaps, and queues that are gone.
 * Tests read the JSON text back.
 */
#include "unit.h"

#include <jansson.h>
#include <math.h>

#include "status/history.h"

static usec_t	now = 1000 * SEC;

static json_t *
read_back(const struct history *h)
{
	struct buf b = BUF_INIT;
	json_t *o;

	history_text(h, &b);
	o = json_loadb(b.data, b.len, 0, NULL);
	assert_non_null(o);
	assert_int_equal(b.data[b.len - 1], '\n');
	buf_done(&b);
	return o;
}

/* Returns the object of a queue; NULL: the history has none. */
static const json_t *
queue_of(const json_t *o, const char *key)
{
	const json_t *q;
	size_t i;

	json_array_foreach(json_object_get(o, "queues"), i, q)
		if (strcmp(json_string_value(json_object_get(q, "key")), key) == 0)
			return q;
	return NULL;
}

/* Returns one figure of sample i; -1: it is null. */
static double
figure(const json_t *o, const char *key, const char *name, size_t i)
{
	const json_t *list = json_object_get(queue_of(o, key), name);

	assert_int_equal(json_array_size(list), json_array_size(json_object_get(o, "times")));
	return json_is_null(json_array_get(list, i)) ? -1 :
	    json_number_value(json_array_get(list, i));
}

/* Advances the time, and adds a sample of one queue. */
static void
sample(struct history *h, usec_t after, const char *key, struct history_point p)
{
	now += after;
	assert_true(history_begin(h, now));
	history_add(h, key, &p);
}

TEST(test_empty)
{
	struct history *h = history_new();
	json_t *o = read_back(h);

	assert_int_equal(json_array_size(json_object_get(o, "times")), 0);
	assert_int_equal(json_array_size(json_object_get(o, "queues")), 0);
	assert_int_equal(json_integer_value(json_object_get(o, "step")), 10);
	assert_int_equal(json_integer_value(json_object_get(o, "window")), 900);
	assert_true(history_last(h) == 0);
	assert_true(history_rates(h, "q").acked < 0);
	json_decref(o);
	history_free(h);
	history_free(NULL);
}

TEST(test_figures)
{
	struct history *h = history_new();
	json_t *o;

	sample(h, 0, "a", (struct history_point){ 12, 1.25, 100, 7 });
	history_add(h, "b \"\\\n", &(struct history_point){ -1, -1, -1, -1 });
	now += 5 * SEC;
	assert_false(history_begin(h, now));	/* too soon */
	sample(h, 5 * SEC, "a", (struct history_point){ 2000000, 3600, 130, 7 });
	assert_true(history_last(h) == now);
	o = read_back(h);
	assert_int_equal(json_array_size(json_object_get(o, "times")), 2);
	assert_true(figure(o, "a", "depth", 0) == 12 && figure(o, "a", "depth", 1) == 2000000);
	assert_true(figure(o, "a", "acked_rate", 0) == -1);
	assert_true(figure(o, "a", "acked_rate", 1) == 3);
	assert_true(figure(o, "a", "failed_rate", 1) == 0);
	assert_true(figure(o, "a", "latency", 0) == 1.3 && figure(o, "a", "latency", 1) == 3600);
	assert_true(figure(o, "b \"\\\n", "latency", 0) == -1);
	/* An unknown figure, and a queue that the second survey did not find. */
	assert_true(figure(o, "b \"\\\n", "depth", 0) == -1);
	assert_true(figure(o, "b \"\\\n", "depth", 1) == -1);
	json_decref(o);
	history_free(h);
}

TEST(test_times)
{
	struct history *h = history_new();
	const json_t *times;
	json_t *o;

	now = clock_mono();
	sample(h, 0, "a", (struct history_point){ .depth = 0 });
	sample(h, 10 * SEC, "a", (struct history_point){ .depth = 0 });
	o = read_back(h);
	times = json_object_get(o, "times");
	assert_true(fabs(json_number_value(json_array_get(times, 0)) -
	    clock_seconds(clock_wall())) < 5);
	assert_true(fabs(json_number_value(json_array_get(times, 1)) -
	    json_number_value(json_array_get(times, 0)) - 10) < 0.11);
	json_decref(o);
	history_free(h);
}

/*
 * Daemons add to the totals every ten seconds.  A rate spans two of these additions, so
 * it does not jump.
 */
TEST(test_rates)
{
	struct history *h = history_new();
	int64_t total[] = { 0, 0, 200, 200, 400, 400, 600 };
	struct history_rates r;

	for (size_t i = 0; i < ARRAY_LEN(total); i++) {
		sample(h, 10 * SEC, "q", (struct history_point){ 0, 0, total[i], 2 });
		r = history_rates(h, "q");
		if (i >= 2)
			assert_true(fabs(r.acked - 10) < 0.01 && r.failed == 0);
	}
	/* Somebody deletes the totals: the rate is unknown until they have grown again. */
	sample(h, 10 * SEC, "q", (struct history_point){ 0, 0, 5, 0 });
	assert_true(history_rates(h, "q").acked < 0);
	sample(h, 10 * SEC, "q", (struct history_point){ 0, 0, 6, 0 });
	sample(h, 10 * SEC, "q", (struct history_point){ 0, 0, 7, 0 });
	assert_true(fabs(history_rates(h, "q").acked - 0.1) < 0.01);
	/* Redis was away for a minute, or the fleet is large: the rate spans that time. */
	sample(h, 60 * SEC, "q", (struct history_point){ 0, 0, 67, 30 });
	assert_true(fabs(history_rates(h, "q").acked - 1) < 0.01);
	assert_true(fabs(history_rates(h, "q").failed - 0.5) < 0.01);
	assert_true(history_rates(h, "other").acked < 0);
	history_free(h);
}

TEST(test_window)
{
	struct history *h = history_new();
	json_t *o;

	sample(h, 10 * SEC, "gone", (struct history_point){ .depth = 1 });
	for (int64_t i = 0; i < 200; i++)
		sample(h, 10 * SEC, "q", (struct history_point){ .depth = i });
	o = read_back(h);
	assert_int_equal(json_array_size(json_object_get(o, "times")), HISTORY_SAMPLES);
	assert_int_equal(HISTORY_SAMPLES, 91);
	for (size_t i = 0; i < HISTORY_SAMPLES; i++)
		assert_true(figure(o, "q", "depth", i) ==
		    (double)(200 - HISTORY_SAMPLES + i));
	assert_null(queue_of(o, "gone"));
	json_decref(o);
	history_free(h);
}

/* In a very large fleet samples are further apart than the window. */
TEST(test_rare_samples)
{
	struct history *h = history_new();
	json_t *o;

	sample(h, 20 * MINUTE, "gone", (struct history_point){ .depth = 1 });
	sample(h, 20 * MINUTE, "q", (struct history_point){ .acked = 0, .failed = 7 });
	sample(h, 20 * MINUTE, "q", (struct history_point){ .acked = 2400, .failed = 7 });
	assert_true(fabs(history_rates(h, "q").acked - 2) < 0.01);
	assert_true(history_rates(h, "q").failed == 0);
	o = read_back(h);
	assert_null(queue_of(o, "gone"));
	json_decref(o);
	history_free(h);
}

/* Queues may be added in any order; those beyond the limit are left out. */
TEST(test_many)
{
	struct history *h = history_new();
	struct history_point p = { .depth = 1 };
	char key[16];
	json_t *o;

	assert_true(history_begin(h, now += 10 * SEC));
	for (unsigned i = 0; i < HISTORY_QUEUES + 100; i++) {
		snprintf(key, sizeof(key), "q%u", i * 7919 % (HISTORY_QUEUES + 100));
		p.depth = atoi(key + 1);
		history_add(h, key, &p);
	}
	o = read_back(h);
	assert_int_equal(json_array_size(json_object_get(o, "queues")), HISTORY_QUEUES);
	for (unsigned i = 0; i < HISTORY_QUEUES; i++) {
		snprintf(key, sizeof(key), "q%u", i * 7919 % (HISTORY_QUEUES + 100));
		assert_true(figure(o, key, "depth", 0) == atoi(key + 1));
	}
	json_decref(o);
	history_free(h);
}

TEST(test_pace)
{
	assert_true(history_pace(0, 0) == HISTORY_STEP);
	assert_true(history_pace(1, 500) == HISTORY_STEP);
	assert_true(history_pace(10, 50) == HISTORY_STEP);
	/* If each of 100 daemons surveys 20 queues, Redis gets 34,000 commands. */
	assert_true(history_pace(100, 20) == 34 * SEC);
	assert_true(history_pace(1000, 1000) > HOUR);
}
