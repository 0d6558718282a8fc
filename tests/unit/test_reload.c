/* A reload: the steps from one configuration to another, and one that fails. */
#include "config_fixture.h"

#include "config/launch_config.h"
#include "service/reload_plan.h"

#define A	"queue \"a\" { command = {\"/a\"} }\n"
#define A2	"queue \"a\" { command = {\"/a2\"} }\n"
#define AKEY	"queue \"a\" { command = {\"/a\"} key = \"other\" }\n"
#define B	"queue \"b\" { command = {\"/b\"} }\n"
#define BASA	"queue \"b\" { command = {\"/b\"} key = \"a\" }\n"

#define PUSH	"queue \"a\" { command = {\"/a\"} pushes = {\"b\"} }\n"

struct plan {
	const char	*from, *to;
	const char	*steps;		/* "-a +b =c ~d": remove, add, keep, change */
	const char	*restart;	/* "redis name" */
	bool		 log, http;
};

#define GROUP(name) \
	"queue \"s\" { kind = \"stream\" consumer_group = \"" name "\" command = {\"/s\"} }\n"
#define SHARDS(n)	"queue \"a\" { command = {\"/a\"} shards = " n " }\n"
#define HEAR(keys)	"queue c { kind = channel command = {'/c'} key = " keys " }\n"

static const struct plan plans[] = {
	{ "", "", "", "", false, false },
	{ A, A, "=a", "", false, false },
	{ "# x\n\n" A, "\n" A "# y\n", "=a", "", false, false },
	{ "", A, "+a", "", false, false },
	{ A, "", "-a", "", false, false },
	{ A, A2, "~a", "", false, false },
	{ A B, B A, "=b =a", "", false, false },
	{ A, AKEY, "-a +a", "", false, false },
	{ AKEY, A, "-a +a", "", false, false },
	{ A B, "queue \"c\" { command = {\"/c\"} }\n" A2, "-b +c ~a", "", false, false },
	{ HEAR("'x'"), HEAR("{'x'}"), "=c", "", false, false },
	{ HEAR("'x'"), HEAR("{'x', 'y'}"), "-c +c", "", false, false },
	{ HEAR("{'x', 'y'}"), HEAR("{'x', 'z'}"), "-c +c", "", false, false },
	{ GROUP("x"), GROUP("x"), "=s", "", false, false },
	{ GROUP("x"), GROUP("y"), "-s +s", "", false, false },
	{ A "defaults { consumer_group = \"x\" }", A "defaults { consumer_group = \"y\" }",
	    "=a", "",
	    false, false },
	{ A, SHARDS("8"), "-a +a", "", false, false },
	{ SHARDS("4"), SHARDS("8"), "-a +a", "", false, false },
	{ SHARDS("4"), SHARDS("4 shards_drain = 8"), "-a +a", "", false, false },
	{ SHARDS("4"), SHARDS("4 nice = 1"), "~a", "", false, false },
	/* A queue with concurrency = 0 is only declared: this daemon does not run it. */
	{ A, "queue a { concurrency = 0 }\n", "-a", "", false, false },
	{ "queue a { concurrency = 0 }\n", A, "+a", "", false, false },
	/* A queue that pushes changes with its targets' keys, limits and shards. */
	{ PUSH "queue b { concurrency = 0 }\n", PUSH "queue b { concurrency = 0 }\n", "=a", "",
	    false, false },
	{ PUSH "queue b { concurrency = 0 }\n", PUSH "queue b { concurrency = 0 key = x }\n", "~a",
	    "", false, false },
	{ PUSH B, PUSH "queue b { command = {\"/b\"} message_max = 1 }\n", "~a ~b", "", false,
	    false },
	{ PUSH B, PUSH "queue b { command = {\"/b\"} shards = 2 }\n", "-b ~a +b", "", false,
	    false },
	{ PUSH B, PUSH "queue b { command = {\"/b\"} nice = 3 }\n", "=a ~b", "", false, false },
	{ PUSH B, PUSH "queue b { command = {\"/b\"} pop = left }\n", "~a ~b", "", false, false },
	{ A "defaults { on_dead = 'push:b' }\nqueue b { on_dead = '' concurrency = 0 }",
	    A "defaults { on_dead = 'push:b' }\nqueue b { on_dead = '' concurrency = 0 key = x }",
	    "~a", "", false, false },
	{ A, "queue a { command = {\"/a\"} delayed_key = x }\n", "-a +a", "", false, false },
	/* A key moves to another queue: the old one is removed first. */
	{ A, BASA, "-a +b", "", false, false },
	{ A, "defaults { nice = 1 }\n" A, "~a", "", false, false },
	{ A, "defaults { nice = 0 }\n" A, "~a", "", false, false },
	{ A, "defaults { nice = inherit }\n" A, "=a", "", false, false },
	{ A, A "max_handlers = 3 drain_timeout = 1s\n", "=a", "", false, false },
	{ A, A "redis { server = \"b\" database = 3 }\n", "=a", "redis", false, false },
	{ A, A "name = \"x\" redis { timeout = 1s }\n", "=a", "name redis", false, false },
	{ A, A "log { level = \"warn\" }\n", "=a", "", true, false },
	{ "log { level = \"warn\" }\n", "log { level = \"warn\" payloads = true }\n", "", "",
	    true, false },
};

static void
describe(const struct reload_plan *plan, char *steps, char *restart)
{
	static const char signs[] = {
		[RELOAD_KEEP] = '=', [RELOAD_CHANGE] = '~', [RELOAD_ADD] = '+',
		[RELOAD_REMOVE] = '-',
	};
	size_t i;

	*steps = *restart = '\0';
	for (i = 0; i < plan->nsteps; i++) {
		const struct reload_step *s = &plan->steps[i];

		assert_int_equal(s->op == RELOAD_ADD, s->from == NULL);
		assert_int_equal(s->op == RELOAD_REMOVE, s->to == NULL);
		steps += sprintf(steps, "%s%c%s", i > 0 ? " " : "", signs[s->op],
		    s->to != NULL ? s->to->name : s->from->name);
	}
	for (i = 0; plan->restart[i] != NULL; i++)
		restart += sprintf(restart, "%s%s", i > 0 ? " " : "", plan->restart[i]);
}

TEST(test_plans)
{
	char steps[200], restart[200];
	struct reload_plan plan;
	size_t i;

	for (i = 0; i < ARRAY_LEN(plans); i++) {
		struct config *from = load_text(plans[i].from), *to = load_text(plans[i].to);

		reload_plan(&plan, from, to);
		describe(&plan, steps, restart);
		assert_string_equal(steps, plans[i].steps);
		assert_string_equal(restart, plans[i].restart);
		assert_int_equal(plan.log, plans[i].log);
		assert_int_equal(plan.http, plans[i].http);
		reload_plan_done(&plan);
		config_unref(from);
		config_unref(to);
	}
}

/* All options that need a restart are changed: the list of names has room for them. */
TEST(test_all_restarts)
{
	struct config *from = load_text(""), *to = load_text("name = \"x\" max_handlers = 1\n"
	    "redis { server = \"b\" database = 1 username = \"u\" password_file = \"/p\" "
	    "timeout = 1s\n"
	    "tls_ca = \"/a\" tls_cert = \"/a\" tls_key = \"/a\" }\n");
	struct reload_plan plan;

	reload_plan(&plan, from, to);
	assert_string_equal(plan.restart[0], "name");
	assert_string_equal(plan.restart[1], "redis");
	assert_null(plan.restart[2]);
	reload_plan_done(&plan);
	config_unref(from);
	config_unref(to);
}

/* The plan for a thousand queues has the right step for each. */
TEST(test_many)
{
	struct buf b = BUF_INIT;
	struct config *from, *to;
	struct reload_plan plan;
	size_t i, n[4] = { 0 };

	for (i = 0; i < 1000; i++)
		buf_printf(&b, "queue \"%zu\" { command = {\"/a\"} }\n", i);
	from = load_text(buf_str(&b));
	buf_clear(&b);
	for (i = 500; i < 1500; i++)
		buf_printf(&b, "queue \"%zu\" { command = {\"/%s\"} }\n", i,
		    i % 2 == 0 ? "a" : "b");
	to = load_text(buf_str(&b));
	reload_plan(&plan, from, to);
	for (i = 0; i < plan.nsteps; i++)
		n[plan.steps[i].op]++;
	assert_int_equal(n[RELOAD_REMOVE], 500);
	assert_int_equal(n[RELOAD_ADD], 500);
	assert_int_equal(n[RELOAD_KEEP], 250);
	assert_int_equal(n[RELOAD_CHANGE], 250);
	reload_plan_done(&plan);
	config_unref(from);
	config_unref(to);
	buf_done(&b);
}

/* The spawner has sent a configuration, but this process is out of descriptors. */
TEST(test_no_descriptor)
{
	const struct spawner_loaded loaded = { .config = -1 };
	struct config_report report = { 0 };

	assert_null(launch_config_take(NULL, NULL, &loaded, &report));
	assert_int_equal(report.errors.n, 1);
	assert_non_null(strstr(report.errors.v[0], ": Too many open files"));
	config_report_done(&report);
}
