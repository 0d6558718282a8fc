/*
 * /metrics: a strict parser of the format reads the text back, and the values are
 * compared with the input.  Also the detection of stalls.
 */
#include "unit.h"

#include <ctype.h>
#include <jansson.h>
#include <math.h>

#include "status/metrics.h"
#include "policy/stall.h"

/* -- a strict parser ------------------------------------------------------------ */

struct parsed {
	json_t	*types;		/* family -> type */
	json_t	*samples;	/* series as text -> value */
	const char *line;	/* the line being parsed, for a debugger */
	char	 family[128];	/* of the last # TYPE */
};

static size_t
name_length(const char *s)
{
	size_t n = 0;

	if (isalpha((unsigned char)*s) || *s == '_' || *s == ':')
		while (isalnum((unsigned char)s[n]) || s[n] == '_' || s[n] == ':')
			n++;
	return n;
}

/* Each family has "# HELP name text" and then "# TYPE name type", both once. */
static void
parse_comment(struct parsed *p, const char *s)
{
	char type[32];

	if (sscanf(s, "# HELP %127s", p->family) == 1) {
		assert_null(json_object_get(p->types, p->family));
		assert_true(strlen(s) > strlen("# HELP ") + strlen(p->family) + 5);
		return;
	}
	assert_int_equal(strncmp(s, "# TYPE ", 7), 0);
	assert_int_equal(strncmp(s + 7, p->family, strlen(p->family)), 0);
	assert_int_equal(sscanf(s + 7 + strlen(p->family), " %31s", type), 1);
	assert_true(strcmp(type, "counter") == 0 || strcmp(type, "gauge") == 0 ||
	    strcmp(type, "histogram") == 0);
	assert_null(json_object_get(p->types, p->family));
	json_object_set_new(p->types, p->family, json_string(type));
}

/* A sample's name must be its family's; a histogram's has a suffix. */
static void
check_name(const struct parsed *p, const char *s, size_t n)
{
	const char *type = json_string_value(json_object_get(p->types, p->family));
	size_t len = strlen(p->family);
	bool total = n > 6 && strncmp(s + n - 6, "_total", 6) == 0;

	assert_true(n >= len);
	assert_int_equal(strncmp(s, p->family, len), 0);
	assert_non_null(type);
	assert_int_equal(total, strcmp(type, "counter") == 0);
	if (n == len)
		assert_string_not_equal(type, "histogram");
	else
		assert_true(strncmp(s + len, "_bucket", n - len) == 0 ||
		    strncmp(s + len, "_sum", n - len) == 0 ||
		    strncmp(s + len, "_count", n - len) == 0);
}

/* Parses {a="b",c="d"}; returns what follows. */
static const char *
parse_labels(const char *s)
{
	size_t n;

	do {
		s++;
		n = name_length(s);
		assert_true(n > 0);
		s += n;
		assert_int_equal(strncmp(s, "=\"", 2), 0);
		for (s += 2; *s != '"'; s++) {
			assert_int_not_equal(*s, '\n');
			assert_int_not_equal(*s, '\0');
			if (*s == '\\')
				assert_non_null(strchr("\\\"n", *++s));
		}
		s++;
	} while (*s == ',');
	assert_int_equal(*s, '}');
	return s + 1;
}

static void
parse_sample(struct parsed *p, char *s)
{
	size_t n = name_length(s);
	const char *rest;
	char *end;
	double v;

	assert_true(n > 0);
	check_name(p, s, n);
	rest = s[n] == '{' ? parse_labels(s + n) : s + n;
	assert_int_equal(*rest, ' ');
	v = strtod(rest + 1, &end);
	assert_ptr_not_equal(end, rest + 1);
	assert_int_equal(*end, '\0');
	s[rest - s] = '\0';
	assert_null(json_object_get(p->samples, s));
	assert_int_equal(json_object_set_new(p->samples, s, json_real(v)), 0);
}

static struct parsed
parse(struct buf *b)
{
	struct parsed p = { .types = json_object(), .samples = json_object() };
	char *line, *text = buf_str(b);

	assert_int_equal(text[b->len - 1], '\n');
	while ((line = strsep(&text, "\n")) != NULL && text != NULL) {
		p.line = line;
		if (line[0] == '#')
			parse_comment(&p, line);
		else
			parse_sample(&p, line);
	}
	return p;
}

static void
parsed_done(struct parsed *p)
{
	json_decref(p->types);
	json_decref(p->samples);
}

static double
sample(const struct parsed *p, const char *series)
{
	const json_t *v = json_object_get(p->samples, series);

	if (v == NULL)
		fail_msg("no %s", series);
	return json_number_value(v);
}

/* -- what goes in ------------------------------------------------------------------ */

/* Each member has another value, so that a sample cannot show the wrong one. */
static struct metrics
make(const struct metrics_queue *queues, size_t n)
{
	return (struct metrics){
		.version = "1.2", .config_hash = "ab", .state = "draining", .redis_up = 1,
		.redis_writable = 0.5,
		.reload_ok = 0, .reconnects = 3, .outstanding = 4, .handlers = 5,
		.max_handlers = 16, .log_dropped = 6, .queues = queues, .nqueues = n,
		.started = 1795248000.5,
		.process = { .cpu = 1.25, .resident = 7, .virtual = 8, .fds = 9, .max_fds = 10 },
	};
}

static struct parsed
print(const struct metrics *m)
{
	struct buf b = BUF_INIT;
	struct parsed p;

	metrics_text(m, &b);
	p = parse(&b);
	buf_done(&b);
	return p;
}

/* A daemon without queues has these samples, and no others. */
TEST(test_nothing)
{
	static const struct {
		const char	*series;
		double		 value;
	} want[] = {
		{ "rqd_build_info{version=\"1.2\"}", 1 },
		{ "rqd_config_info{hash=\"ab\"}", 1 },
		{ "rqd_config_last_reload_successful", 0 },
		{ "rqd_state{state=\"running\"}", 0 },
		{ "rqd_state{state=\"quiet\"}", 0 },
		{ "rqd_state{state=\"draining\"}", 1 },
		{ "rqd_state{state=\"stopped\"}", 0 },
		{ "rqd_redis_up", 1 },
		{ "rqd_redis_writable", 0.5 },
		{ "rqd_redis_reconnects_total", 3 },
		{ "rqd_redis_outstanding_commands", 4 },
		{ "rqd_handlers_running", 5 },
		{ "rqd_handlers_max", 16 },
		{ "rqd_log_dropped_total", 6 },
		{ "process_cpu_seconds_total", 1.25 },
		{ "process_resident_memory_bytes", 7 },
		{ "process_virtual_memory_bytes", 8 },
		{ "process_open_fds", 9 },
		{ "process_max_fds", 10 },
		{ "process_start_time_seconds", 1795248000.5 },
	};
	struct metrics m = make(NULL, 0);
	struct parsed p = print(&m);
	size_t i;

	for (i = 0; i < ARRAY_LEN(want); i++)
		if (sample(&p, want[i].series) != want[i].value)
			fail_msg("%s is not %g", want[i].series, want[i].value);
	assert_int_equal(json_object_size(p.samples), ARRAY_LEN(want));
	assert_string_equal(json_string_value(json_object_get(p.types, "rqd_queue_acked_total")),
	    "counter");
	parsed_done(&p);
	m.redis_up = 0;
	m.redis_writable = NAN;
	m.reload_ok = 1;
	p = print(&m);
	assert_true(sample(&p, "rqd_redis_up") == 0);
	assert_null(json_object_get(p.samples, "rqd_redis_writable"));
	assert_true(sample(&p, "rqd_config_last_reload_successful") == 1);
	parsed_done(&p);
}

TEST(test_queue)
{
	struct depth depth = { .waiting = 5, .in_flight = 2, .retry = 3, .delayed = -1, .dead = 7 };
	struct stats stats = { .n = { 0 } };
	struct metrics_queue q = {
		.name = "orders", .stats = &stats, .block = BLOCK_PAUSED, .running = 1,
		.concurrency = 4, .oldest = 2.5, .depth = &depth, .stalled = 61.125,
		.cpu = 0.25, .maxrss = 88080384,
	};
	struct metrics m = make(&q, 1);
	struct parsed p;
	char name[80];
	enum stat s;

	for (s = 0; s < STAT_MAX; s++)
		stats.n[s] = 1234567890123 + s;
	p = print(&m);
	assert_true(sample(&p, "rqd_queue_messages{queue=\"orders\",state=\"waiting\"}") == 5);
	assert_true(sample(&p, "rqd_queue_messages{queue=\"orders\",state=\"running\"}") == 2);
	assert_true(sample(&p, "rqd_queue_messages{queue=\"orders\",state=\"retry\"}") == 3);
	assert_true(sample(&p, "rqd_queue_messages{queue=\"orders\",state=\"dead\"}") == 7);
	assert_null(json_object_get(p.samples,
	    "rqd_queue_messages{queue=\"orders\",state=\"delayed\"}"));
	assert_true(sample(&p, "rqd_queue_blocked{queue=\"orders\",reason=\"paused\"}") == 1);
	assert_true(sample(&p, "rqd_queue_blocked{queue=\"orders\",reason=\"full\"}") == 0);
	assert_true(sample(&p, "rqd_queue_blocked{queue=\"orders\",reason=\"redis\"}") == 0);
	assert_true(sample(&p, "rqd_queue_stalled_seconds{queue=\"orders\"}") == 61.125);
	assert_true(sample(&p, "rqd_queue_oldest_seconds{queue=\"orders\"}") == 2.5);
	assert_true(sample(&p, "rqd_queue_running{queue=\"orders\"}") == 1);
	assert_true(sample(&p, "rqd_queue_concurrency{queue=\"orders\"}") == 4);
	assert_true(sample(&p, "rqd_handler_cpu_seconds_total{queue=\"orders\"}") == 0.25);
	assert_true(sample(&p, "rqd_handler_maxrss_bytes{queue=\"orders\"}") == 88080384);
	assert_true(sample(&p, "rqd_queue_acked_total{queue=\"orders\"}") ==
	    1234567890123.0 + STAT_ACKED);
	for (s = 0; s < STAT_MAX; s++) {
		(void)snprintf(name, sizeof(name), "rqd_queue_%s_total{queue=\"orders\"}",
		    stats_name(s));
		assert_true(sample(&p, name) == 1234567890123.0 + s);
	}
	parsed_done(&p);
}

TEST(test_schedules)
{
	struct schedule_config cfg = { .name = (char *)(uintptr_t)"a \"b\"",
	    .queue = (char *)(uintptr_t)"q" };
	struct schedule_config young = { .name = (char *)(uintptr_t)"c",
	    .queue = (char *)(uintptr_t)"q" };
	struct schedule_state schedules[] = {
		{ .cfg = &cfg, .last = 1795248000, .next = 1795248060, .missed = 1, .runs = 3 },
		{ .cfg = &young, .last = TICK_NEVER, .next = TICK_NEVER, .missed = -1 },
	};
	struct metrics m = make(NULL, 0);
	struct parsed p;

	m.schedules = schedules;
	m.nschedules = 2;
	p = print(&m);
	assert_true(sample(&p,
	    "rqd_schedule_last_timestamp_seconds{schedule=\"a \\\"b\\\"\",queue=\"q\"}") ==
	    1795248000);
	assert_true(sample(&p,
	    "rqd_schedule_next_timestamp_seconds{schedule=\"a \\\"b\\\"\",queue=\"q\"}") ==
	    1795248060);
	assert_true(sample(&p, "rqd_schedule_missed{schedule=\"a \\\"b\\\"\",queue=\"q\"}") == 1);
	assert_true(sample(&p,
	    "rqd_schedule_runs_total{schedule=\"a \\\"b\\\"\",queue=\"q\"}") == 3);
	assert_true(sample(&p, "rqd_schedule_runs_total{schedule=\"c\",queue=\"q\"}") == 0);
	assert_null(json_object_get(p.samples, "rqd_schedule_missed{schedule=\"c\",queue=\"q\"}"));
	assert_null(json_object_get(p.samples,
	    "rqd_schedule_last_timestamp_seconds{schedule=\"c\",queue=\"q\"}"));
	parsed_done(&p);
}

/* Figures that only Redis knows are left out while it does not answer; others are not. */
TEST(test_unknown)
{
	struct stats stats = { .n = { 0 } };
	struct metrics_queue q = { .name = "q", .stats = &stats, .stalled = NAN };
	struct metrics m = make(&q, 1);
	struct parsed p = print(&m);

	assert_null(json_object_get(p.samples,
	    "rqd_queue_messages{queue=\"q\",state=\"waiting\"}"));
	assert_null(json_object_get(p.samples, "rqd_queue_stalled_seconds{queue=\"q\"}"));
	assert_true(sample(&p, "rqd_queue_running{queue=\"q\"}") == 0);
	assert_true(sample(&p, "rqd_queue_acked_total{queue=\"q\"}") == 0);
	assert_true(sample(&p, "rqd_handler_duration_seconds_count{queue=\"q\"}") == 0);
	assert_true(sample(&p,
	    "rqd_handler_duration_seconds_bucket{queue=\"q\",le=\"0.005\"}") == 0);
	parsed_done(&p);
}

/* The largest run counts for at least 5 minutes, and never for more than 10. */
TEST(test_maxrss)
{
	struct stats stats = { .n = { 0 } };

	clock_fake(HOUR, 0);
	assert_int_equal(stats_maxrss(&stats), 0);
	stats_use(&stats, 250 * MSEC, 7000);
	clock_fake_advance(4 * MINUTE);
	stats_use(&stats, SEC, 5000);
	assert_int_equal(stats.cpu, 1250 * MSEC);
	assert_int_equal(stats_maxrss(&stats), 7000);
	clock_fake_advance(90 * SEC);
	assert_int_equal(stats_maxrss(&stats), 7000);
	stats_use(&stats, 0, 6000);
	assert_int_equal(stats_maxrss(&stats), 7000);
	clock_fake_advance(5 * MINUTE + SEC);
	assert_int_equal(stats_maxrss(&stats), 6000);
	stats_use(&stats, 0, 1000);
	assert_int_equal(stats_maxrss(&stats), 6000);
	clock_fake_advance(5 * MINUTE - SEC);
	assert_int_equal(stats_maxrss(&stats), 6000);
	clock_fake_advance(SEC);
	assert_int_equal(stats_maxrss(&stats), 1000);
	clock_fake_advance(5 * MINUTE);
	assert_int_equal(stats_maxrss(&stats), 0);
	clock_real(0);
}

TEST(test_histogram)
{
	static const usec_t runs[] = { 5 * MSEC, 6 * MSEC, 40 * SEC, 2 * HOUR };
	struct stats stats = { .n = { 0 } };
	struct metrics_queue q = { .name = "q", .stats = &stats };
	struct metrics m = make(&q, 1);
	struct parsed p;
	size_t i;

	for (i = 0; i < ARRAY_LEN(runs); i++)
		stats_observe(&stats.duration, runs[i]);
	p = print(&m);
	assert_true(sample(&p,
	    "rqd_handler_duration_seconds_bucket{queue=\"q\",le=\"0.005\"}") == 1);
	assert_true(sample(&p,
	    "rqd_handler_duration_seconds_bucket{queue=\"q\",le=\"0.01\"}") == 2);
	assert_true(sample(&p, "rqd_handler_duration_seconds_bucket{queue=\"q\",le=\"30\"}") == 2);
	assert_true(sample(&p, "rqd_handler_duration_seconds_bucket{queue=\"q\",le=\"60\"}") == 3);
	assert_true(sample(&p,
	    "rqd_handler_duration_seconds_bucket{queue=\"q\",le=\"+Inf\"}") == 4);
	assert_true(sample(&p, "rqd_handler_duration_seconds_count{queue=\"q\"}") == 4);
	assert_true(sample(&p, "rqd_handler_duration_seconds_sum{queue=\"q\"}") == 7240.011);
	parsed_done(&p);
}

static void
check_label(const char *name, const char *want)
{
	struct buf b = BUF_INIT;

	metrics_label(name, &b);
	assert_string_equal(buf_str(&b), want);
	buf_done(&b);
}

TEST(test_labels)
{
	check_label("", "");
	check_label("plain", "plain");
	check_label("{tag}:x", "{tag}:x");
	check_label("a\"b\\c\nd", "a\\\"b\\\\c\\nd");
	check_label("caf\xc3\xa9", "caf\xc3\xa9");
	check_label("caf\xe9", "caf\\\\xe9");
}

/* The text is valid for any name of a queue. */
TEST(test_random_names)
{
	struct stats stats = { .n = { 0 } };
	struct depth depth = { .waiting = 1 };
	struct metrics_queue q = { .stats = &stats, .depth = &depth };
	struct metrics m = make(&q, 1);
	struct parsed p;
	char name[40];
	size_t i, k;

	for (i = 0; i < 200; i++) {
		for (k = 0; k < 1 + unit_below(30); k++)
			name[k] = (char)(1 + unit_below(255));
		name[k] = '\0';
		q.name = name;
		p = print(&m);
		parsed_done(&p);
	}
}

/* The example dashboard is valid JSON; each panel has a place and expressions. */
TEST(test_dashboard)
{
	const char *top = getenv("SRCDIR");
	char *path = xasprintf("%s/etc/examples/grafana/rqd.json", top != NULL ? top :
	    access("etc/examples", F_OK) == 0 ? "." : "..");
	json_error_t error;
	json_t *board = json_load_file(path, JSON_REJECT_DUPLICATES, &error), *panel, *target;
	size_t i, k;

	if (board == NULL)
		fail_msg("%s:%d: %s", path, error.line, error.text);
	assert_true(json_array_size(json_object_get(board, "panels")) > 10);
	json_array_foreach(json_object_get(board, "panels"), i, panel) {
		assert_non_null(json_object_get(panel, "gridPos"));
		assert_true(json_array_size(json_object_get(panel, "targets")) > 0);
		json_array_foreach(json_object_get(panel, "targets"), k, target)
			assert_non_null(json_string_value(json_object_get(target, "expr")));
	}
	json_decref(board);
	free(path);
}

/* -- stalls ------------------------------------------------------------------------ */

TEST(test_stall)
{
	struct stall s = { .seen = 0 };
	usec_t t = 1000 * SEC;

	assert_int_equal(stall_length(&s, t), 0);
	stall_note(&s, t, 5, 100);		/* the first note: nothing to compare with */
	assert_int_equal(stall_length(&s, t), 0);
	stall_note(&s, t + 60 * SEC, 6, 100);	/* one more waits, none was taken */
	assert_int_equal(stall_length(&s, t + 60 * SEC), 60 * SEC);
	stall_note(&s, t + 120 * SEC, 9, 101);	/* this daemon took one */
	assert_int_equal(stall_length(&s, t + 120 * SEC), 0);
	stall_note(&s, t + 180 * SEC, 9, 101);
	assert_int_equal(stall_length(&s, t + 190 * SEC), 70 * SEC);
	stall_note(&s, t + 200 * SEC, 8, 101);	/* somebody else took one */
	assert_int_equal(stall_length(&s, t + 200 * SEC), 0);
	stall_note(&s, t + 300 * SEC, 0, 101);	/* nothing waits */
	assert_int_equal(stall_length(&s, t + 900 * SEC), 0);
	stall_note(&s, t + 400 * SEC, 1, 101);
	stall_note(&s, t + 500 * SEC, 1, 101);
	assert_int_equal(stall_length(&s, t + 500 * SEC), 200 * SEC);
	/* No note came for longer than STALL_GAP: the time between does not count. */
	stall_note(&s, t + 500 * SEC + STALL_GAP + 1, 1, 101);
	assert_int_equal(stall_length(&s, t + 500 * SEC + STALL_GAP + 1), 0);
}
