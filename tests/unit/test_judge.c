/*
 * The judge: recorded states of queues, and what `rqctl status`, `rqctl check`, the page,
 * metrics and /readyz say of each.  They must agree.
 */
#define UNIT_OWN_MAIN
#include "unit.h"

#include <jansson.h>
#include <math.h>

#include "loop/loop.h"
#include "status/metrics.h"
#include "status/queue_state.h"
#include "status/status_json.h"

#define MISCONF	"MISCONF Redis is configured to save RDB snapshots"
#define NOW	INT64_C(1795248000)

/* -- states ------------------------------------------------------------------------ */

/* The members of a heartbeat of the queue. */
#define RUNNING	"\"state\":\"running\",\"concurrency\":4,\"lease\":30"
#define FULL	"\"state\":\"running\",\"blocked\":\"full\",\"concurrency\":2,\"running\":2," \
		"\"lease\":30,\"latency\":"
#define SUSPENDED "\"state\":\"suspended\",\"blocked\":\"suspended\",\"since\":1795247700,"

struct state {
	const char	*beats[2];	/* of daemons a.1 and b.2; NULL: there is no such one */
	enum level	 level;		/* of the worst finding */
	const char	*word;		/* of the first finding: how it begins */
	const char	*sentence;	/* that check prints: how one of them begins; "": none */
	struct depth	 depth;
	enum kind	 kind;
	bool		 elsewhere;
	bool		 full;
	const char	*refuses;
	const char	*pause;
};

#define WAITS(n)	.depth = { .waiting = (n), .in_flight = 0, .retry = 0 }

static const struct state states[] = {
	/* well */
	{ { RUNNING }, LEVEL_OK, "ok", "", WAITS(0) },
	{ { RUNNING }, LEVEL_OK, "ok", "", WAITS(9) },
	{ { RUNNING, RUNNING }, LEVEL_OK, "ok", "", WAITS(9) },
	{ { RUNNING ",\"blocked\":\"limited\"" }, LEVEL_OK, "limited", "", WAITS(9) },
	{ { RUNNING ",\"blocked\":\"limited\"" }, LEVEL_OK, "ok", "", WAITS(0) },
	{ { FULL "5" }, LEVEL_OK, "ok", "", .depth = { .waiting = 3, .in_flight = 2 } },
	{ { "\"state\":\"of a later version\"" }, LEVEL_OK, "ok", "", WAITS(1) },
	{ { RUNNING }, LEVEL_OK, "ok", "", .depth = { .waiting = -1, .dead = -1 },
	    .kind = KIND_CHANNEL },
	{ { RUNNING }, LEVEL_OK, "ok", "", .depth = { .waiting = 1, .held = 1400 } },
	/* unusual on purpose */
	{ { NULL }, LEVEL_NOTE, "others consume it", "", WAITS(5), .elsewhere = true },
	{ { "\"state\":\"quiet\"" }, LEVEL_NOTE, "quiet", "", WAITS(5) },
	{ { RUNNING, "\"state\":\"draining\"" }, LEVEL_NOTE, "draining", "", WAITS(5) },
	{ { "\"state\":\"paused\",\"blocked\":\"paused\"" }, LEVEL_NOTE, "paused", "", WAITS(5) },
	{ { "\"state\":\"paused\",\"blocked\":\"paused\"" }, LEVEL_NOTE, "held 48s by web1: 429",
	    "", .depth = { .waiting = 2, .paused = true, .pause_left = 48 },
	    .pause = "handler@web1 2026-11-26T10:00:00Z 429 from carrier" },
	/* warnings */
	{ { RUNNING }, LEVEL_WARNING, "7 dead letters", "7 dead letters",
	    .depth = { .waiting = 2, .dead = 7 } },
	{ { RUNNING }, LEVEL_WARNING, "1 dead letter", "1 dead letter", .depth = { .dead = 1 } },
	{ { "\"state\":\"paused\",\"blocked\":\"paused\"" }, LEVEL_WARNING,
	    "paused by ann@web1 (4m left): deploy", "paused: ann@web1 ",
	    .depth = { .waiting = 2, .paused = true, .pause_left = 240 },
	    .pause = "ann@web1 2026-11-26T10:00:00Z deploy" },
	{ { "\"state\":\"paused\",\"blocked\":\"paused\"" }, LEVEL_WARNING, "paused: by hand",
	    "paused: by hand", .depth = { .waiting = 2, .paused = true, .pause_left = -1 },
	    .pause = "by hand" },
	{ { RUNNING }, LEVEL_WARNING, "partly paused by ann@web1", "partly paused: ann@web1",
	    .depth = { .waiting = 2, .partly = true, .pause_left = -1 },
	    .pause = "ann@web1 2026-11-26T10:00:00Z" },
	{ { NULL }, LEVEL_WARNING, "no daemon", "no daemon serves it", WAITS(0) },
	{ { NULL }, LEVEL_WARNING, "others consume it, but not its retries",
	    "3 of its retries", .depth = { .retry = 3, .due = 3 }, .elsewhere = true },
	{ { SUSPENDED "\"reason\":\"failing\"" }, LEVEL_WARNING, "idle, suspended: failing",
	    "suspended, and without messages: failing", WAITS(0) },
	{ { FULL "90" }, LEVEL_WARNING, "late: all handlers", "late: all handlers are busy, and",
	    .depth = { .waiting = 3, .in_flight = 2 } },
	{ { FULL "5,\"usual\":2,\"in_hand\":[{\"id\":\"a\",\"tag\":\"a\",\"age\":700},"
	    "{\"id\":\"b\",\"tag\":\"b\",\"age\":3}]" }, LEVEL_WARNING, "slow runs: 1",
	    "all handlers are busy, and 1 run takes", .depth = { .waiting = 3, .in_flight = 2 } },
	{ { "\"state\":\"no Redis\",\"blocked\":\"redis\"" }, LEVEL_WARNING, "no Redis",
	    "a daemon cannot reach its Redis", WAITS(3) },
	{ { RUNNING ",\"command\":\"/a\"", RUNNING ",\"command\":\"/b\"" }, LEVEL_WARNING,
	    "daemons disagree about the command",
	    "daemons disagree: command is /a on a.1 and /b on b.2", WAITS(0) },
	{ { RUNNING ",\"max_attempts\":3", RUNNING ",\"max_attempts\":5" }, LEVEL_WARNING,
	    "daemons disagree about the max_attempts",
	    "daemons disagree: max_attempts is 3 on a.1 and 5 on b.2", WAITS(0) },
	{ { RUNNING ",\"time_limit\":60", RUNNING ",\"time_limit\":0" }, LEVEL_WARNING,
	    "daemons disagree about the time_limit",
	    "daemons disagree: time_limit is 1m on a.1 and 0 on b.2", WAITS(0) },
	{ { SUSPENDED "\"reason\":\"failing\"" }, LEVEL_WARNING, "paused by ann@web1",
	    "suspended: failing", .depth = { .waiting = 2, .paused = true, .pause_left = -1 },
	    .pause = "ann@web1 2026-11-26T10:00:00Z" },
	/* errors */
	{ { RUNNING }, LEVEL_ERROR, "error: WRONGTYPE Operation", "WRONGTYPE Operation",
	    .depth = { .problem = (char *)(uintptr_t)"WRONGTYPE Operation against a key" } },
	{ { NULL }, LEVEL_ERROR, "no daemon", "no daemon serves it, and messages wait",
	    WAITS(1) },
	{ { NULL }, LEVEL_ERROR, "no daemon", "no daemon serves it, and messages wait",
	    .depth = { .retry = 1, .due = 1 } },
	{ { NULL }, LEVEL_ERROR, "no daemon", "no daemon serves it, and messages wait",
	    .depth = { .held = 1 } },
	{ { NULL }, LEVEL_ERROR, "no daemon is seen: Redis is full",
	    "no daemon is seen: Redis is full", WAITS(1), .full = true },
	{ { NULL }, LEVEL_ERROR, "no daemon is seen: Redis refuses writes",
	    "no daemon is seen: Redis refuses writes", WAITS(1), .refuses = MISCONF },
	{ { NULL }, LEVEL_ERROR, "no daemon is seen: Redis refuses writes",
	    "no daemon is seen: Redis refuses writes", WAITS(0), .refuses = "READONLY You can't" },
	{ { SUSPENDED "\"reason\":\"failing\",\"cause\":\"exit status 1\"" }, LEVEL_ERROR,
	    "suspended: failing for 5m", "suspended: failing: exit status 1", WAITS(2) },
	{ { SUSPENDED "\"reason\":\"cannot_execute\"", RUNNING }, LEVEL_ERROR,
	    "suspended: cannot_execute for 5m", "suspended: cannot_execute", WAITS(2) },
	{ { SUSPENDED "\"reason\":\"failing\",\"failed\":8" }, LEVEL_ERROR,
	    "suspended: failing", "8 messages have only failed; nothing else to try: repair the "
	    "command, or rqctl bury q --all", .depth = { .retry = 8 } },
	{ { "\"state\":\"refused\",\"blocked\":\"refused\",\"reason\":\"OOM\"" }, LEVEL_ERROR,
	    "Redis refuses results: OOM", "Redis refuses the results of its messages: OOM",
	    WAITS(2) },
	{ { "\"state\":\"unsubscribed\",\"blocked\":\"redis\"" }, LEVEL_ERROR, "unsubscribed",
	    "a daemon has lost a subscription", .depth = { .waiting = -1 },
	    .kind = KIND_CHANNEL },
	{ { RUNNING, "\"state\":\"running\",\"lease\":60" }, LEVEL_ERROR,
	    "daemons disagree about the lease", "daemons disagree about the lease: one has 30s",
	    WAITS(2) },
	{ { RUNNING, RUNNING ",\"shards\":2" }, LEVEL_ERROR,
	    "daemons disagree about the shards", "daemons disagree about the shards", WAITS(2) },
	{ { RUNNING, RUNNING ",\"group_by\":\"g\",\"group_concurrency\":1" }, LEVEL_ERROR,
	    "daemons disagree about the groups", "daemons disagree about group_by", WAITS(2) },
	{ { SUSPENDED "\"reason\":\"failing\"" }, LEVEL_ERROR, "suspended: failing",
	    "7 dead letters", .depth = { .waiting = 2, .dead = 7 } },
};

/* -- what each reader is told -------------------------------------------------------- */

static struct loop	*loop;
static struct nodes	*nodes;
static char		*servers[] = { (char *)(uintptr_t)"unix:/s", NULL };
static char		*none[] = { NULL };
static struct redis_options options = { .servers = servers, .sentinels = none,
	.clusters = none, .timeout = SEC };
static struct config	 config;

struct scene {
	struct survey_result	 survey;
	struct survey_queue	 queue;
	struct view		 view;
	struct service		 service;
	struct facts		 facts;
	struct judge_context	 context;
};

static void
set_up(struct scene *s, const struct state *state, bool details)
{
	static const char *const names[] = { "a.1", "b.2" };
	char *text;

	memset(s, 0, sizeof(*s));
	for (int i = 0; i < 2 && state->beats[i] != NULL; i++) {
		text = xasprintf("{\"version\":\"1\",\"queues\":{\"q\":{\"kind\":\"%s\",%s}}}",
		    kind_name(state->kind), state->beats[i]);
		fleet_add(&s->survey.fleet, names[i], (double)NOW, text, strlen(text));
		free(text);
	}
	s->queue = (struct survey_queue){ .name = xstrdup("q"), .kind = state->kind,
	    .own = !state->elsewhere, .depth = state->depth };
	keys_init(&s->queue.keys, "q");
	s->queue.depth.pause = xstrdup(state->pause != NULL ? state->pause : "");
	if (state->depth.problem != NULL)
		s->queue.depth.problem = xstrdup(state->depth.problem);
	s->queue.depth.now = (double)NOW;
	s->survey.queues = &s->queue;
	s->survey.n = 1;
	s->survey.taken = NOW * SEC;
	s->survey.memory = state->full ? 2 : 1;
	s->survey.memory_max = 1;
	s->view = (struct view){ .config = &config, .details = details, .instance = "a.1",
	    .state = "running", .reload_error = "", .beat_refused = state->refuses,
	    .nodes = nodes, .redis_error = "" };
	s->facts = survey_facts(&s->queue, &s->survey, view_refuses(&s->view), &s->service);
	s->context = (struct judge_context){ .rqctl = "rqctl", .queue = "q", .config = &config,
	    .details = details };
}

static void
tear_down(struct scene *s)
{
	fleet_done(&s->survey.fleet);
	keys_done(&s->queue.keys);
	depth_done(&s->queue.depth);
	free(s->queue.name);
}

/* What rqctl check prints, and the level of the worst. */
struct checked {
	json_t		*sentences;
	enum level	 worst;
};

static void
check_one(const struct judge_finding *f, void *arg)
{
	struct checked *c = arg;

	assert_true(f->word[0] != '\0');
	assert_int_equal(f->sentence != NULL, f->level <= LEVEL_UNKNOWN);
	if (f->level > LEVEL_UNKNOWN)
		return;
	json_array_append_new(c->sentences, json_string(f->sentence));
	if (f->level < c->worst)
		c->worst = f->level;
}

static struct checked
check(const struct scene *s)
{
	struct checked c = { json_array(), LEVEL_OK };

	judge(&s->facts, &s->context, check_one, &c);
	return c;
}

static json_t *
page(const struct scene *s)
{
	struct buf b = BUF_INIT;
	json_t *o;

	queue_text(&s->view, &s->survey, &s->queue, NULL, &b);
	o = json_loadb(b.data, b.len, 0, NULL);
	assert_non_null(o);
	buf_done(&b);
	return o;
}

static const char *
text_of(const json_t *o, const char *member)
{
	const char *text = json_string_value(json_object_get(o, member));

	return text != NULL ? text : "";
}

/* The block that this daemon's heartbeat names, as metrics show it: "", or one reason. */
static const char *
blocked(const struct scene *s)
{
	const char *name = s->survey.fleet.n == 0 ? "" :
	    fleet_text(fleet_queue(&s->survey.fleet.daemons[0], "q"), "blocked");
	static char found[32];
	struct stats stats = { .n = { 0 } };
	struct metrics_queue q = { .name = "q", .stats = &stats, .stalled = NAN,
	    .latency = NAN };
	struct metrics m = { .version = "1", .config_hash = "x", .state = "running",
	    .queues = &q, .nqueues = 1 };
	struct buf b = BUF_INIT;
	char *rest, *line;

	for (enum consumer_block k = BLOCK_NONE; k <= BLOCK_REDIS; k++)
		if (strcmp(name, consumer_block_name(k)) == 0)
			q.block = k;
	found[0] = '\0';
	metrics_text(&m, &b);
	rest = buf_str(&b);
	while ((line = strsep(&rest, "\n")) != NULL)
		if (sscanf(line, "rqd_queue_blocked{queue=\"q\",reason=\"%31[a-z]\"} 1",
		    found) == 1 && line[strlen(line) - 1] == '1')
			break;
		else
			found[0] = '\0';
	buf_done(&b);
	return found;
}

/* -- they agree ------------------------------------------------------------------------ */

static bool
begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

static void
agree(const struct state *state)
{
	struct scene s;
	struct checked c;
	struct buf b = BUF_INIT;
	const char *word, *mood, *reason;
	json_t *status, *shown, *e;
	bool found = state->sentence[0] == '\0';
	size_t i;

	set_up(&s, state, true);
	status = state_json(&s.facts, &s.context);
	shown = page(&s);
	c = check(&s);
	word = text_of(status, "state");
	mood = text_of(status, "mood");
	if (!begins(word, state->word))
		fail_msg("\"%s\", not \"%s\"", word, state->word);
	if (strcmp(mood, level_mood(state->level)) != 0)
		fail_msg("%s is %s", word, mood);

	/* check */
	if (c.worst != state->level && (c.worst != LEVEL_OK || state->level < LEVEL_NOTE))
		fail_msg("%s: check says %s", word, level_name(c.worst));
	json_array_foreach(c.sentences, i, e)
		found |= begins(json_string_value(e), state->sentence);
	if (!found || (state->sentence[0] == '\0' && json_array_size(c.sentences) > 0))
		fail_msg("%s: check does not say \"%s\"", word, state->sentence);

	/* the page */
	assert_string_equal(text_of(shown, "state"), word);
	assert_string_equal(text_of(shown, "mood"), mood);
	json_array_foreach(json_object_get(shown, "findings"), i, e)
		assert_string_equal(text_of(e, "text"),
		    json_string_value(json_array_get(c.sentences, i)));
	assert_int_equal(i, json_array_size(c.sentences));
	if (state->level < LEVEL_NOTE && text_of(shown, "hint")[0] == '\0')
		fail_msg("%s: no hint", word);

	/* metrics */
	reason = blocked(&s);
	if (strstr(word, "suspended") != NULL && !state->depth.paused)
		assert_string_equal(reason, "suspended");
	if (strcmp(reason, "suspended") == 0)
		assert_true(s.service.state == QUEUE_SUSPENDED);
	if (strcmp(reason, "refused") == 0)
		assert_true(begins(word, "Redis refuses results"));
	if (strcmp(reason, "redis") == 0)
		assert_true(state->level <= LEVEL_WARNING);

	/* /readyz */
	assert_int_equal(judge_ready(&(struct ready_facts){ .state = "running", .up = true,
	    .down = "", .refuses = view_refuses(&s.view) }, &b), state->refuses == NULL);
	assert_true(state->refuses == NULL || strstr(buf_str(&b), state->refuses) != NULL);
	buf_done(&b);
	json_decref(c.sentences);
	json_decref(status);
	json_decref(shown);
	tear_down(&s);
}

TEST(test_states)
{
	for (size_t i = 0; i < ARRAY_LEN(states); i++)
		agree(&states[i]);
}

/* Facts at random: the first word is that of the worst, and nothing is without a word. */
TEST(test_random)
{
	struct state one;
	struct scene s;
	struct checked c;
	struct buf b = BUF_INIT;
	struct verdict_of_queue first;

	for (int round = 0; round < 4000; round++) {
		one = states[unit_below(ARRAY_LEN(states))];
		for (int i = 0; i < 2; i++)
			one.beats[i] = states[unit_below(ARRAY_LEN(states))].beats[i];
		one.depth.waiting = (int64_t)unit_below(4) - 1;
		one.depth.retry = (int64_t)unit_below(4) - 1;
		one.depth.due = (int64_t)unit_below(4) - 1;
		one.depth.in_flight = (int64_t)unit_below(4) - 1;
		one.depth.held = (int64_t)unit_below(4) - 1;
		one.depth.dead = (int64_t)unit_below(4) - 1;
		set_up(&s, &one, unit_below(2) == 0);
		buf_clear(&b);
		first = judge_first(&s.facts, &s.context, 0, &b);
		c = check(&s);
		assert_true(b.len > 0);
		if (c.worst != first.level)
			assert_true(c.worst == LEVEL_OK && first.level == LEVEL_NOTE);
		assert_int_equal(first.level == LEVEL_ERROR, first.rank == RANK_ERROR);
		json_decref(c.sentences);
		tear_down(&s);
	}
	buf_done(&b);
}

/* Without details no id, no argument of a command, and no text that a handler wrote. */
TEST(test_details)
{
	static const struct state marked[] = {
		{ { SUSPENDED "\"reason\":\"failing\",\"cause\":\"MARK\"" }, LEVEL_ERROR, "", "",
		    WAITS(2) },
		{ { "\"state\":\"paused\"" }, LEVEL_NOTE, "", "",
		    .depth = { .waiting = 2, .paused = true },
		    .pause = "handler@w 2026-11-26T10:00:00Z MARK" },
		{ { "\"state\":\"paused\"" }, LEVEL_WARNING, "", "",
		    .depth = { .waiting = 2, .partly = true },
		    .pause = "handler@w 2026-11-26T10:00:00Z MARK" },
		{ { FULL "5,\"usual\":2,\"in_hand\":[{\"id\":\"MARK\",\"tag\":\"MARK\","
		    "\"age\":700,\"progress\":\"MARK\"},{\"id\":\"b\",\"tag\":\"b\",\"age\":3}]" },
		    LEVEL_WARNING, "", "", .depth = { .waiting = 3, .in_flight = 2 } },
		{ { RUNNING ",\"command\":\"/a MARK\"", RUNNING ",\"command\":\"/b\"" },
		    LEVEL_WARNING, "", "", WAITS(0) },
	};
	struct scene s;
	json_t *o;
	char *text;

	for (size_t i = 0; i < ARRAY_LEN(marked); i++)
		for (int details = 0; details < 2; details++) {
			set_up(&s, &marked[i], details);
			o = page(&s);
			text = json_dumps(o, 0);
			assert_int_equal(strstr(text, "MARK") != NULL, details);
			free(text);
			json_decref(o);
			tear_down(&s);
		}
}

/* -- Redis, and the daemon ---------------------------------------------------------------- */

static void
say(const struct judge_finding *f, void *arg)
{
	buf_printf(arg, "%s: %s\n", level_name(f->level), f->sentence);
}

TEST(test_server)
{
	struct server_facts good = { .policy = "noeviction", .role = "master",
	    .version = "7.0.15", .refuses = "" }, f = good;
	struct buf b = BUF_INIT;

	judge_server(&good, say, &b);
	assert_int_equal(b.len, 0);
	f.refuses = MISCONF;
	judge_server(&f, say, &b);
	assert_true(begins(buf_str(&b), "error: Redis refuses writes: MISCONF "));
	buf_clear(&b);
	f.used = 2;
	f.max = 1;
	judge_server(&f, say, &b);
	assert_true(begins(buf_str(&b), "error: Redis is full"));
	assert_null(strstr(buf_str(&b), "MISCONF"));
	buf_clear(&b);
	f = good;
	f.no_aof = true;
	judge_server(&f, say, &b);
	assert_true(begins(buf_str(&b), "warning: appendonly is no: "));
	buf_clear(&b);
	f = (struct server_facts){ .policy = "allkeys-lru", .role = "slave", .version = "6.0.9",
	    .refuses = "" };
	judge_server(&f, say, &b);
	assert_string_equal(buf_str(&b),
	    "error: maxmemory-policy is allkeys-lru: Redis may evict messages; it must be "
	    "noeviction\nerror: this Redis is a slave: redis.server must name the master\n"
	    "error: Redis 6.0.9 is too old: rqd needs 6.2\n");
	buf_done(&b);
}

/* rqctl and daemons tell of a clock with the same words, and from the same limit on. */
TEST(test_clock)
{
	struct buf b = BUF_INIT;

	assert_false(judge_clock("web1.x", 60, say, &b));
	assert_false(judge_clock("web1.x", -60, say, &b));
	assert_int_equal(b.len, 0);
	assert_true(judge_clock("this host", -300, say, &b));
	assert_true(judge_clock("web1.x", 61, say, &b));
	assert_string_equal(buf_str(&b), "warning: this host: its clock is 5m behind Redis': "
	    "correct the one that is wrong\nwarning: web1.x: its clock is 1m1s ahead of "
	    "Redis': correct the one that is wrong\n");
	buf_done(&b);
}

TEST(test_refusals)
{
	static const struct { const char *error; bool refuses; } errors[] = {
		{ MISCONF, true }, { "NOREPLICAS Not enough good replicas to write.", true },
		{ "READONLY You can't write against a read only replica.", true },
		{ "OOM command not allowed when used memory > 'maxmemory'.", true },
		{ "NOPERM this user has no permissions", false }, { "LOADING", false },
		{ "WRONGTYPE Operation", false }, { "", false }, { NULL, false },
	};

	for (size_t i = 0; i < ARRAY_LEN(errors); i++)
		assert_int_equal(judge_is_refusal(errors[i].error), errors[i].refuses);
}

/* A probe gives its message back, due now: the latency is what the daemon says, not Redis. */
TEST(test_latency)
{
	struct depth d = { .waiting = 1, .retry = 1, .due = 1, .overdue = 0.9 };

	assert_true(facts_latency_with(KIND_ACK, &d, 2, -1) == 2);
	assert_true(facts_latency_with(KIND_ACK, &d, 2, 900) == 900);
	assert_true(facts_latency_with(KIND_STREAM, &d, -1, 900) == 900);
	d.waiting = 0;
	assert_true(facts_latency_with(KIND_ACK, &d, -1, 900) == 900);
	d.retry = d.due = 0;
	assert_true(facts_latency_with(KIND_ACK, &d, 0, 900) < 900);
}

int
main(void)
{
	int rc;

	clock_fake(1000 * SEC, NOW * SEC);
	config.queues = NULL;
	strcpy(config.hash, "x");
	config.log.target = xstrdup("stderr");
	config.file = xstrdup("");
	loop = loop_new();
	nodes = nodes_new(loop, &options, "test", &(const struct nodes_events){ .up = NULL },
	    NULL);
	rc = unit_run(NULL, NULL);
	nodes_free(nodes);
	loop_free(loop);
	free(config.log.target);
	free(config.file);
	return rc;
}
