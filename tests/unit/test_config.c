/* Good configurations: values, included files, the command line, users and root. */
#include "config_fixture.h"

#include <sys/wait.h>

#include <pwd.h>
#include <signal.h>
#include <unistd.h>

#include "config/options.h"

#define Q(options)	"queue \"q\" { command = {\"/bin/true\"} " options " }"

/* -- values ------------------------------------------------------------------ */

struct value {
	const char	*text;
	enum section	 section;
	const char	*option;
	const char	*want;		/* as printed; "": the text must be refused */
};

static const struct value cases[] = {
	/* Defaults. */
	{ "", SECTION_GLOBAL, "max_handlers", "16" },
	{ "", SECTION_REDIS, "server", "{\"127.0.0.1:6379\"}" },
	{ Q(""), SECTION_QUEUE, "lease", "1m" },
	{ Q(""), SECTION_QUEUE, "foreign_timeout", "1m" },
	{ Q("lease = 2m"), SECTION_QUEUE, "foreign_timeout", "2m" },
	{ Q("lease = 2m foreign_timeout = 5s"), SECTION_QUEUE, "foreign_timeout", "5s" },
	{ Q("foreign_timeout = 0"), SECTION_QUEUE, "foreign_timeout", "1m" },
	{ Q(""), SECTION_QUEUE, "key", "\"q\"" },
	{ Q("key = 'k'"), SECTION_QUEUE, "key", "\"k\"" },
	{ Q("key = \"\\xc3\\xa9\""), SECTION_QUEUE, "key", "\"\xc3\xa9\"" },
	{ Q(""), SECTION_QUEUE, "dead_status", "{65}" },
	{ Q("dead_status = {}"), SECTION_QUEUE, "dead_status", "{}" },
	{ Q("dead_status = {3, 1,2,}"), SECTION_QUEUE, "dead_status", "{1, 2, 3}" },
	{ Q("dead_status = 7"), SECTION_QUEUE, "dead_status", "{7}" },

	/* Values of each type, at the ends of their ranges. */
	{ Q("concurrency = 10000"), SECTION_QUEUE, "concurrency", "10000" },
	{ Q("concurrency = \"3\""), SECTION_QUEUE, "concurrency", "3" },
	{ Q("nice = -20"), SECTION_QUEUE, "nice", "-20" },
	{ Q("priority = -1000"), SECTION_QUEUE, "priority", "-1000" },
	{ Q("time_limit = 0"), SECTION_QUEUE, "time_limit", "0" },
	{ Q("time_limit = 1.5h"), SECTION_QUEUE, "time_limit", "90m" },
	{ Q("time_limit = 300ms"), SECTION_QUEUE, "time_limit", "300ms" },
	{ Q("message_max = 10"), SECTION_QUEUE, "message_max", "10" },
	{ Q("message_max = 512M"), SECTION_QUEUE, "message_max", "512M" },
	{ Q("message_max = 2048"), SECTION_QUEUE, "message_max", "2K" },
	{ Q("dead_max = 1000000000000"), SECTION_QUEUE, "dead_max", "1000000000000" },
	{ Q("kind = list"), SECTION_QUEUE, "pop", "\"right\"" },
	{ Q("on_dead = 'push:r'") " queue r { concurrency = 0 }", SECTION_QUEUE, "on_dead",
	    "\"push:r\"" },
	{ Q("pop = left"), SECTION_QUEUE, "pop", "\"left\"" },
	{ Q("id = 'a.b-c'"), SECTION_QUEUE, "id", "\"a.b-c\"" },
	{ Q("delayed_key = 'q:delayed'"), SECTION_QUEUE, "delayed_key", "\"q:delayed\"" },
	{ Q("kind = channel"), SECTION_QUEUE, "key", "\"q\"" },
	{ Q("kind = channel key = {}"), SECTION_QUEUE, "key", "\"q\"" },
	{ Q("kind = channel key = {a}"), SECTION_QUEUE, "key", "\"a\"" },
	{ Q("kind = pattern key = {\"a*\", b}"), SECTION_QUEUE, "key", "{\"a*\", \"b\"}" },
	{ Q("kind = channel"), SECTION_QUEUE, "backlog_bytes", "16M" },
	{ Q("kind = expired"), SECTION_QUEUE, "match", "\"*\"" },
	{ Q("kind = expired match = {a, 'b*'}"), SECTION_QUEUE, "match", "{\"a\", \"b*\"}" },
	{ Q("kind = expired"), SECTION_QUEUE, "database", "0" },
	{ Q("kind = expired") " redis { database = 3 }", SECTION_QUEUE, "database", "3" },
	{ Q("kind = expired database = 5") " redis { database = 3 }", SECTION_QUEUE,
	    "database", "5" },
	{ Q("kind = list pop = left"), SECTION_QUEUE, "pop", "\"left\"" },
	{ "defaults { lease = 2m }\n" Q("kind = list"), SECTION_QUEUE, "max_attempts", "1" },
	{ "defaults { group_by = g }\n" Q(""), SECTION_QUEUE, "group_by", "\"g\"" },
	{ "defaults { group_by = g }\n" Q("kind = stream"), SECTION_QUEUE, "group_by", "\"\"" },
	{ Q("umask = 027"), SECTION_QUEUE, "umask", "\"027\"" },
	{ Q("umask = \"0\""), SECTION_QUEUE, "umask", "\"000\"" },
	{ Q("umask = \"\""), SECTION_QUEUE, "umask", "\"\"" },
	{ Q("limit_as = 2G"), SECTION_QUEUE, "limit_as", "2G" },
	{ Q("limit_as = inherit"), SECTION_QUEUE, "limit_as", "\"inherit\"" },
	{ Q("limit_cpu = 90s"), SECTION_QUEUE, "limit_cpu", "90s" },
	{ Q("limit_core = 0"), SECTION_QUEUE, "limit_core", "0" },
	{ Q("memory_max = 512M"), SECTION_QUEUE, "memory_max", "512M" },
	{ Q("memory_max = 0 pids_max = 7"), SECTION_QUEUE, "pids_max", "7" },
	{ Q("output = none"), SECTION_QUEUE, "output", "\"none\"" },
	{ Q("pushes = {\"q\"} output = 'push:q'"), SECTION_QUEUE, "output", "\"push:q\"" },
	{ Q("pushes = {\"q\"} output = 'push:q'"), SECTION_QUEUE, "pushes", "{\"q\"}" },
	{ "queue \"q\" { concurrency = 0 }", SECTION_QUEUE, "command", "{}" },
	{ Q("leftovers = keep"), SECTION_QUEUE, "leftovers", "\"keep\"" },
	{ Q("fleet_concurrency = 0 rate = \"\""), SECTION_QUEUE, "rate", "\"\"" },
	{ "log { payloads = yes }", SECTION_LOG, "payloads", "true" },
	{ "log { payloads = OFF }", SECTION_LOG, "payloads", "false" },
	{ "log { level = debug format = json target = syslog }", SECTION_LOG, "level",
	    "\"debug\"" },
	{ "redis { server = unix:/run/r.sock }", SECTION_REDIS, "server",
	    "{\"unix:/run/r.sock\"}" },
	{ "redis { server = {\"a\", \"[::1]:7\",} }", SECTION_REDIS, "server",
	    "{\"a\", \"[::1]:7\"}" },
	{ "drain_timeout = 0", SECTION_GLOBAL, "drain_timeout", "0" },

	/* Quotes and escapes. */
	{ "name = abc", SECTION_GLOBAL, "name", "\"abc\"" },
	{ "name = 'a\"b'", SECTION_GLOBAL, "name", "\"a\\\"b\"" },
	{ "name = 'a\\'b\\\\c\\d'", SECTION_GLOBAL, "name", "\"a'b\\\\c\\\\d\"" },
	{ "name = \"a\\\"\\\\\\'b\"", SECTION_GLOBAL, "name", "\"a\\\"\\\\'b\"" },
	{ "name = \"\\x41\\102\\x43D\"", SECTION_GLOBAL, "name", "\"ABCD\"" },
	{ "name = \"a\\\nb\"", SECTION_GLOBAL, "name", "\"ab\"" },
	{ "name = \"# no // comment /* here\"", SECTION_GLOBAL, "name",
	    "\"# no // comment /* here\"" },
	{ "name = '${HOME} $X'", SECTION_GLOBAL, "name", "\"\\${HOME} $X\"" },
	{ "name = \"\\${HOME}\"", SECTION_GLOBAL, "name", "\"\\${HOME}\"" },
	{ "name = \"a$b$\"", SECTION_GLOBAL, "name", "\"a$b$\"" },
	{ "name = \"ü\"", SECTION_GLOBAL, "name", "\"ü\"" },
	{ Q("env = {\"A=1\n2\"}"), SECTION_QUEUE, "env", "{\"A=1\\n2\"}" },

	/* Variables of the environment. */
	{ "name = \"${TEST_SET}\"", SECTION_GLOBAL, "name", "\"value\"" },
	{ "name = \"x${TEST_SET}y${TEST_SET}\"", SECTION_GLOBAL, "name", "\"xvalueyvalue\"" },
	{ "name = ${TEST_SET}", SECTION_GLOBAL, "name", "\"value\"" },
	{ "name = \"${TEST_UNSET:-de fault}\"", SECTION_GLOBAL, "name", "\"de fault\"" },
	{ "name = ${TEST_UNSET:-x}", SECTION_GLOBAL, "name", "\"x\"" },
	{ "name = \"${TEST_SET:-x}\"", SECTION_GLOBAL, "name", "\"value\"" },
	{ "max_handlers = ${TEST_UNSET:-7}", SECTION_GLOBAL, "max_handlers", "7" },

	/* defaults { } applies before and after it; a queue's own value wins. */
	{ "defaults { nice = 3 } " Q(""), SECTION_QUEUE, "nice", "3" },
	{ Q("") " defaults { nice = 3 }", SECTION_QUEUE, "nice", "3" },
	{ Q("nice = 4") " defaults { nice = 3 }", SECTION_QUEUE, "nice", "4" },
	{ Q("nice = 0") " defaults { nice = 3 }", SECTION_QUEUE, "nice", "0" },
	{ "queue \"q\" { } defaults { command = {\"/a\", 'b'} }", SECTION_QUEUE, "command",
	    "{\"/a\", \"b\"}" },
	{ "defaults { nice = 3 } defaults { umask = 077 } " Q(""), SECTION_QUEUE, "nice", "3" },
	{ "defaults { pipeline = 9 } " Q(""), SECTION_QUEUE, "mode", "\"exec\"" },
	{ "log { level = warn } log { format = json }", SECTION_LOG, "level", "\"warn\"" },
	{ "log { level = warning }", SECTION_LOG, "level", "\"warn\"" },

	/* Blanks, line ends, comments, and a byte order mark. */
	{ "#\n//\n/**/max_handlers/**/=/* x */3//y", SECTION_GLOBAL, "max_handlers", "3" },
	{ "max_handlers=3drain_timeout=1s", SECTION_GLOBAL, "name", "" },
	{ "max_handlers=3 drain_timeout=1s", SECTION_GLOBAL, "drain_timeout", "1s" },
	{ "drain_timeout = 1s\nredis { }\n", SECTION_GLOBAL, "drain_timeout", "1s" },
	{ "queue q { command = {/bin/true} }", SECTION_QUEUE, "command", "{\"/bin/true\"}" },
	{ "name = queue\nqueue \"q\" { command = {\"/a\"} }", SECTION_GLOBAL, "name", "\"queue\"" },
	{ "\xef\xbb\xbfmax_handlers = 3\r\n", SECTION_GLOBAL, "max_handlers", "3" },
	{ Q("env = {\"A=1\", # one\n \"B=2\" /* two */ , // three\n}"), SECTION_QUEUE, "env",
	    "{\"A=1\", \"B=2\"}" },
};

TEST(test_values)
{
	struct config_report r;
	struct config *c;
	size_t i;

	setenv("TEST_SET", "value", 1);
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		put("t.conf", cases[i].text);
		if (cases[i].want[0] == '\0') {
			assert_null(load_file("t.conf", &r));
			config_report_done(&r);
			continue;
		}
		c = load_good("t.conf");
		if (cases[i].want != NULL)
			assert_printed(c, cases[i].section, cases[i].option, cases[i].want);
		config_unref(c);
	}
}

/* Values reach the right members: printing alone would not show a wrong one. */
TEST(test_struct)
{
	struct config *c = load_text("redis { database = 3 timeout = 2s username = \"u\" }\n"
	    "log { level = \"warn\" format = \"json\" payloads = true target = \"/l\" }\n"
	    "\n"
	    "queue \"a\" { command = {\"/a\", \"b c\", \"\"} limit_cpu = 5s limit_nproc = 7 }\n"
	    "queue \"b\" { command = {\"/b\"} dead_status = {1, 255} umask = \"022\" "
	    "time_limit = 0 }\n");
	const struct queue_config *a = config_queue(c, "a"), *b = config_queue(c, "b");

	assert_int_equal(c->redis.database, 3);
	assert_int_equal(c->redis.timeout, 2 * SEC);
	assert_string_equal(c->redis.username, "u");
	assert_int_equal(c->log.level, LOG_LV_WARN);
	assert_int_equal(c->log.format, LOG_JSON);
	assert_true(c->log.payloads);
	assert_int_equal(c->nqueues, 2);
	assert_null(c->queues[2]);
	assert_true(c->name[0] != '\0');
	assert_int_equal(strlen(c->hash), 16);
	assert_string_equal(strrchr(c->file, '/'), "/t.conf");
	assert_true(c->file[0] == '/');
	assert_ptr_equal(c->queues[0], a);
	assert_string_equal(a->file, "t.conf");
	assert_int_equal(a->line, 4);
	assert_string_equal(a->command[1], "b c");
	assert_string_equal(a->command[2], "");
	assert_null(a->command[3]);
	assert_int_equal(a->limit_cpu, 5);
	assert_int_equal(a->limit_nproc, 7);
	assert_int_equal(a->limit_nofile, 1024);
	assert_true(a->limit_as == CONFIG_LIMIT_INHERIT);
	assert_int_equal(a->umask, -1);
	assert_true(a->dead_status[65]);
	assert_int_equal(a->kind, KIND_ACK);
	assert_int_equal(a->foreign_timeout, 60 * SEC);
	assert_true(b->dead_status[1] && b->dead_status[255] && !b->dead_status[65]);
	assert_int_equal(b->umask, 022);
	assert_int_equal(b->time_limit, 0);
	assert_null(config_queue(c, "c"));
	config_unref(c);
}

/* -- files --------------------------------------------------------------------- */

static void
expect(const char *file, const char *error)
{
	struct config_report r;

	assert_null(load_file(file, &r));
	if (r.errors.n != 1 || strncmp(r.errors.v[0], error, strlen(error)) != 0)
		print_message("# %zu errors: %s\n", r.errors.n,
		    r.errors.n > 0 ? r.errors.v[0] : "");
	assert_int_equal(r.errors.n, 1);
	assert_memory_equal(r.errors.v[0], error, strlen(error));
	config_report_done(&r);
}

TEST(test_includes)
{
	static const char *const names[] = { "first", "a", "b", "Z", "last" };
	struct config *c;
	size_t i;

	assert_int_equal(mkdir("in.d", 0755), 0);
	assert_int_equal(mkdir("in.d/[x]", 0755), 0);
	put("in.d/10.conf", "queue \"a\" { command = {\"/a\"} }\n");
	put("in.d/2.conf", "queue \"b\" { command = {\"/b\"} }\ninclude(\"[[]x]/*.conf\")\n");
	put("in.d/[x]/z.conf", "include('more.inc')");
	put("in.d/[x]/more.inc", "queue \"Z\" { command = {\"/b\"} }\n");
	put("in.d/.hidden.conf", "bogus = 1");
	put("in.d/3.conf~", "bogus = 1");
	c = load_text("queue \"first\" { command = {\"/a\"} }\ninclude(\"in.d/*.conf\")\n"
	    "include(\"none.d/*.conf\")\nqueue \"last\" { command = {\"/a\"} }\n");
	assert_int_equal(c->nqueues, ARRAY_LEN(names));
	for (i = 0; i < ARRAY_LEN(names); i++)
		assert_string_equal(c->queues[i]->name, names[i]);
	assert_string_equal(c->queues[1]->file, "in.d/10.conf");
	config_unref(c);
}

/* Names in include: a folder whose name looks like a pattern, and variables. */
TEST(test_include_names)
{
	struct config *c;
	char text[200];

	assert_int_equal(mkdir("[y]", 0755), 0);
	put("[y]/main.conf", "include(\"sub.conf\")");
	put("[y]/sub.conf", "max_handlers = 3");
	c = load_good("[y]/main.conf");
	assert_int_equal(c->max_handlers, 3);
	config_unref(c);
	snprintf(text, sizeof(text), "include(\"%s/[[]y]/s*.conf\")", fixture_dir);
	c = load_text(text);
	assert_int_equal(c->max_handlers, 3);
	config_unref(c);
	setenv("TEST_DIR", "[[]y]", 1);
	c = load_text("include(\"${TEST_DIR}/sub.conf\")");
	assert_int_equal(c->max_handlers, 3);
	config_unref(c);
}

TEST(test_include_errors)
{
	struct config_report r;
	char name[32], text[64];
	int i;

	put("loop.conf", "\ninclude(\"loop.conf\")");
	expect("loop.conf", "loop.conf:2: include: loop.conf is being read already");
	put("p.conf", "include(\"q.conf\")");
	put("q.conf", "# q\n\ninclude(\"./p.conf\")");
	expect("p.conf", "q.conf:3: include: ./p.conf is being read already");
	for (i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "deep%d.conf", i);
		snprintf(text, sizeof(text), "include(\"deep%d.conf\")", i + 1);
		put(name, text);
	}
	put("deep20.conf", "");
	expect("deep0.conf", "deep15.conf:1: include: more than 16 files deep");
	put("deep15.conf", "");
	config_unref(load_good("deep0.conf"));
	assert_int_equal(mkdir("folder.conf", 0755), 0);
	put("t.conf", "\ninclude(\"f*er.conf\")");
	expect("t.conf", "t.conf:2: folder.conf: is a directory");
	assert_int_equal(mkfifo("fifo.conf", 0600), 0);
	put("t.conf", "\n\ninclude(\"fifo.conf\")");
	expect("t.conf", "t.conf:3: fifo.conf: is not a regular file");

	/* An error names the file and the line where it is, in included files, too. */
	put("bad.conf", "# x\nqueue \"q\" { command = {\"/a\"}\nnice = 99 }\nmax_handlers = 4");
	put("t.conf", "max_handlers = 3\ninclude(\"bad.conf\")\n" Q("") "\nbogus = 1\n");
	assert_null(load_file("t.conf", &r));
	assert_int_equal(r.errors.n, 4);
	assert_string_equal(r.errors.v[0],
	    "t.conf:3: queue \"q\" is defined twice (first at bad.conf:2)");
	assert_string_equal(r.errors.v[1], "t.conf:4: unknown option \"bogus\"");
	assert_memory_equal(r.errors.v[2], "bad.conf:3: value 99 for nice", 29);
	assert_string_equal(r.errors.v[3],
	    "bad.conf:4: max_handlers is given twice (first at t.conf:1)");
	config_report_done(&r);
}

/* An included file with an error is loaded 50 times; then a good one still loads. */
TEST(test_include_again)
{
	struct config_report r;
	int i;

	put("worn.conf", "redis {\nserver = \"a\n}\n");
	put("t.conf", "include(\"worn.conf\")\n");
	for (i = 0; i < 50; i++) {
		assert_null(load_file("t.conf", &r));
		assert_int_equal(r.errors.n, 1);
		assert_memory_equal(r.errors.v[0], "worn.conf:2: ", 13);
		config_report_done(&r);
	}
	put("worn.conf", "redis { server = \"a\" }\n");
	config_unref(load_good("t.conf"));
}

TEST(test_not_a_file)
{
	char *big;

	expect("missing.conf", "missing.conf: No such file or directory");
	expect("/tmp", "/tmp: is a directory");
	expect("/dev/null", "/dev/null: is not a regular file");
	put_bytes("t.conf", "name = \"a\"\n\nx\0y", 15);
	expect("t.conf", "t.conf:3: this line has a NUL byte");
	put_bytes("t.conf", "\xff\xfen\0a\0", 6);
	expect("t.conf", "t.conf:1: the file is UTF-16");
	big = xmalloc((16 << 20) + 1);
	memset(big, '\n', (16 << 20) + 1);
	put_bytes("t.conf", big, (16 << 20) + 1);
	expect("t.conf", "t.conf: is larger than 16M");
	put_bytes("t.conf", big, 16 << 20);
	config_unref(load_good("t.conf"));
	free(big);
}

/* As root, a file that another user could have written is refused. */
TEST(test_trust)
{
	put("trust.conf", "");
	put("t.conf", "\ninclude(\"trust.conf\")");
	assert_int_equal(chmod("trust.conf", 0664), 0);
	if (geteuid() == 0)
		expect("t.conf", "t.conf:2: trust.conf: others may write to it");
	else
		config_unref(load_good("t.conf"));
	if (geteuid() == 0) {
		expect("trust.conf", "trust.conf: others may write to it");
		assert_int_equal(chmod("trust.conf", 0644), 0);
		assert_int_equal(chown("trust.conf", 12345, 0), 0);
		expect("trust.conf", "trust.conf: does not belong to root");
	}
	unlink("trust.conf");
}

/* -- the command line -------------------------------------------------------------- */

static struct config *
load(const struct config_source *source, struct config_report *r)
{
	*r = (struct config_report){ .errors = { .n = 0 } };
	return config_load(source, r);
}

TEST(test_overrides)
{
	static const char *const good[] = {
		"redis.server=h:1", "max_handlers=3", "log.level=debug",
		"redis.server={\"a\", b:2}",
		"log.target=/x=y", NULL
	};
	static const char *const bad[] = {
		"redis.server=h:x", "max_handlers=no", "log.lvl=1", "queue.nice=3",
		"defaults.nice=3",
		"nice=3", "foo.bar=1", "x", "redis.=1", ".=", NULL
	};
	struct config_source source = { .file = "t.conf", .overrides = good, .client = true };
	struct config_report r;
	struct config *c;
	size_t i;

	put("t.conf", "max_handlers = 99999\nlog { level = 'warn' }\n");
	c = load(&source, &r);
	assert_non_null(c);
	assert_int_equal(c->max_handlers, 3);
	assert_int_equal(c->log.level, LOG_LV_DEBUG);
	assert_string_equal(c->log.target, "/x=y");
	assert_printed(c, SECTION_REDIS, "server", "{\"a\", \"b:2\"}");
	config_unref(c);
	config_report_done(&r);
	source.overrides = bad;
	assert_null(load(&source, &r));
	assert_int_equal(r.errors.n, ARRAY_LEN(bad) - 1);
	for (i = 0; i < r.errors.n; i++)
		assert_memory_equal(r.errors.v[i], "-o: ", 4);
	config_report_done(&r);
}

/* A -j above max_handlers raises that, unless -o max_handlers is given. */
TEST(test_many_at_once)
{
	static const char *const command[] = { "/bin/echo", NULL };
	static const char *const few[] = { "max_handlers=3", NULL };
	struct config_source source = { .queue = "orders", .command = command, .concurrency = 30 };
	struct config_report r;
	struct config *c = load(&source, &r);

	assert_int_equal(c->queues[0]->concurrency, 30);
	assert_int_equal(c->max_handlers, 30);
	config_unref(c);
	source.overrides = few;
	c = load(&source, &r);
	assert_int_equal(c->max_handlers, 3);
	config_unref(c);
}

TEST(test_no_file)
{
	static const char *const command[] = { "/bin/echo", "a b", "", "${X}", NULL };
	static const char *const relative[] = { "echo", NULL };
	struct config_source source = { .queue = "orders", .command = command, .concurrency = 7 };
	struct config_report r;
	struct config *c = load(&source, &r);

	assert_non_null(c);
	assert_int_equal(r.errors.n + r.warnings.n, 0);
	assert_int_equal(c->nqueues, 1);
	assert_string_equal(c->file, "");
	assert_string_equal(c->queues[0]->key, "orders");
	assert_string_equal(c->queues[0]->file, "");
	assert_int_equal(c->queues[0]->concurrency, 7);
	assert_int_equal(c->max_handlers, 16);
	assert_string_equal(c->queues[0]->command[3], "${X}");
	assert_printed(c, SECTION_REDIS, "server", "{\"127.0.0.1:6379\"}");
	config_unref(c);
	config_report_done(&r);

	setenv("RQD_SERVER", "unix:/x", 1);
	c = load(&source, &r);
	assert_printed(c, SECTION_REDIS, "server", "{\"unix:/x\"}");
	config_unref(c);
	setenv("RQD_SERVER", "http://x", 1);
	source.command = relative;
	source.queue = "";
	source.concurrency = 99999;
	assert_null(load(&source, &r));
	assert_int_equal(r.errors.n, 4);
	assert_memory_equal(r.errors.v[0], "RQD_SERVER: ", 12);
	assert_memory_equal(r.errors.v[1], "-q: ", 4);
	config_report_done(&r);
	unsetenv("RQD_SERVER");
}

/* An address on the command line replaces the file's, in whatever form each is given. */
TEST(test_where_redis_is)
{
	static const char *const files[] = {
		"redis { server = \"x\" }", "redis { cluster = {\"x\"} }",
		"redis { sentinel = {\"x\"} master = \"m\" sentinel_username = \"u\" }"
	};
	static const struct { const char *override, *server; } given[] = {
		{ "redis.server=b:1", "b:1" },
		{ "redis.server=cluster://a:1,b", "cluster://a:1,b:6379" },
		{ "redis.cluster={a:1,b}", "cluster://a:1,b:6379" },
		{ "redis.server=sentinel://m@a:1,b", "sentinel://m@a:1,b:26379" },
	};
	const char *overrides[] = { NULL, NULL };
	struct config_source source = { .file = "t.conf", .overrides = overrides };
	struct config_report r;
	struct config *c;

	for (size_t f = 0; f < ARRAY_LEN(files); f++) {
		put("t.conf", files[f]);
		for (size_t i = 0; i < ARRAY_LEN(given); i++) {
			overrides[0] = given[i].override;
			c = load(&source, &r);
			assert_non_null(c);
			assert_string_equal(c->redis.servers[0], given[i].server);
			assert_null(c->redis.servers[1]);
			config_unref(c);
			config_report_done(&r);
		}
	}
}

/* On a cluster, -q needs a hash tag, because the name is also the key. */
TEST(test_queue_without_tag)
{
	static const char *const command[] = { "/bin/echo", NULL };
	struct config_source source = { .queue = "orders", .command = command };
	struct config_report r;

	setenv("RQD_SERVER", "cluster://a", 1);
	assert_null(load(&source, &r));
	assert_int_equal(r.errors.n, 1);
	assert_non_null(strstr(r.errors.v[0], "-q: the key \"orders\" of queue \"orders\" has no "
	    "hash tag, and on a cluster all keys of a queue must be in one slot: "
	    "write -q '{orders}'"));
	config_report_done(&r);
	source.queue = "{orders}";
	config_unref(load(&source, &r));
	assert_int_equal(r.errors.n, 0);
	unsetenv("RQD_SERVER");
}

/* -- this machine ------------------------------------------------------------------- */

static struct config *
load_here(const char *text, bool strict, struct config_report *r)
{
	struct config_source source = { .file = "t.conf", .strict = strict };

	put("t.conf", text);
	return load(&source, r);
}

TEST(test_shards)
{
	struct config *c;
	const struct queue_config *q;

	c = load_text(Q("shards = 4"));
	q = c->queues[0];
	assert_true(config_is_sharded(q));
	assert_string_equal(q->key, "q");
	assert_int_equal(config_key_count(q), 5);
	assert_string_equal(config_key_at(q, 4), "q");
	assert_true(config_has_key(q, "{q.0}") && config_has_key(q, "q"));
	assert_false(config_has_key(q, "{q}"));
	config_unref(c);
	/* Back to one key: the shards are drained, and producers push to the plain key. */
	c = load_text(Q("shards_drain = 4"));
	q = c->queues[0];
	assert_int_equal(config_key_count(q), 5);
	assert_int_equal(q->shards, 1);
	assert_string_equal(config_key_at(q, 4), "q");
	config_unref(c);
	c = load_text("redis { cluster = \"a\" }\n" Q("shards = 4"));
	q = c->queues[0];
	assert_string_equal(q->key, "{q}");
	assert_string_equal(config_key_at(q, 4), "{q}");
	assert_true(config_has_key(q, "{q.0}"));
	config_unref(c);
	c = load_text(Q(""));
	assert_false(config_is_sharded(c->queues[0]));
	assert_int_equal(config_key_count(c->queues[0]), 1);
	assert_string_equal(config_key_at(c->queues[0], 0), "q");
	config_unref(c);
}

TEST(test_machine)
{
	static const char *const wanted[] = {
		"t.conf:2: command /no/such/thing: No such file or directory",
		"t.conf:3: command /etc/passwd: is not executable",
		"t.conf:3: directory /none: No such file",
		"t.conf:4: command /tmp: is a directory",
		"t.conf:4: env_file /tmp: is not a regular file",
		"t.conf:4: lease 5s is not longer than redis.timeout 10s",
		"t.conf:5: password_file /none: No such file",
	};
	struct config_report r;
	char text[1000];
	struct config *c;
	size_t i, j;

	snprintf(text, sizeof(text), "defaults { user = \"%u\" }\n"
	    "queue \"a\" { command = {\"/no/such/thing\"} }\n"
	    "queue \"b\" { command = {\"/etc/passwd\"} directory = \"/none\" }\n"
	    "queue \"c\" { command = {\"/tmp\"} env_file = \"/tmp\" lease = 5s }\n"
	    "redis { password_file = \"/none\" }\n"
	    "queue \"d\" { command = {\"/bin/sh\"} }\n", (unsigned)geteuid());
	c = load_here(text, false, &r);
	assert_non_null(c);
	assert_int_equal(r.errors.n, 0);
	assert_int_equal(r.warnings.n, ARRAY_LEN(wanted));
	for (i = 0; i < ARRAY_LEN(wanted); i++) {
		for (j = 0; j < r.warnings.n &&
		    strncmp(r.warnings.v[j], wanted[i], strlen(wanted[i])) != 0; j++)
			continue;
		assert_true(j < r.warnings.n);
	}
	config_unref(c);
	config_report_done(&r);
	assert_null(load_here(text, true, &r));
	assert_int_equal(r.errors.n, ARRAY_LEN(wanted));
	assert_int_equal(r.warnings.n, 0);
	config_report_done(&r);
}

static void
test_root(void)
{
	struct config_report r;

	assert_null(load_here("\nqueue \"q\" { command = {\"/bin/sh\"} }\n", false, &r));
	assert_int_equal(r.errors.n, 1);
	assert_memory_equal(r.errors.v[0], "t.conf:2: queue \"q\" does not say its user", 41);
	config_report_done(&r);
	assert_null(load_here(Q("\nuser = \"\""), false, &r));
	assert_memory_equal(r.errors.v[0], "t.conf:2: queue \"q\" does not say its user", 41);
	config_report_done(&r);
	config_unref(load_here("defaults { user = \"root\" }" Q(""), false, &r));
	assert_int_equal(r.errors.n + r.warnings.n, 0);
	config_report_done(&r);
	config_unref(load_here(Q("\nuser = \"no-such-user\""), false, &r));
	assert_int_equal(r.warnings.n, 1);
	assert_string_equal(r.warnings.v[0], "t.conf:2: there is no user \"no-such-user\"");
	config_report_done(&r);
	config_unref(load_here(Q("user = \"root\"\ngroup = \"no-such-group\""), false, &r));
	assert_int_equal(r.warnings.n, 1);
	assert_string_equal(r.warnings.v[0], "t.conf:2: there is no group \"no-such-group\"");
	config_report_done(&r);

	/* The command is executable for root only. */
	put("mine.sh", "#!/bin/sh\n");
	assert_int_equal(chmod("mine.sh", 0700), 0);
	config_unref(load_here("queue \"q\" { command = {\"/proc/self/cwd/mine.sh\"} user = "
	    "\"root\" }",
	    false, &r));
	assert_int_equal(r.warnings.n, 0);
	config_report_done(&r);
	config_unref(load_here("queue \"q\" { command = {\"/proc/self/cwd/mine.sh\"} "
	    "user = \"12345\" group = \"12345\" }", false, &r));
	assert_int_equal(r.warnings.n, 1);
	config_report_done(&r);
}

static void
test_not_root(void)
{
	struct config_report r;
	char text[200];

	config_unref(load_here(Q(""), false, &r));
	assert_int_equal(r.errors.n + r.warnings.n, 0);
	config_report_done(&r);
	snprintf(text, sizeof(text), Q("user = \"%u\" group = \"%u\""), (unsigned)geteuid(),
	    (unsigned)getegid());
	config_unref(load_here(text, false, &r));
	assert_int_equal(r.errors.n, 0);
	config_report_done(&r);
	assert_null(load_here(Q("\nuser = \"root\"\ngroup = \"0\""), false, &r));
	assert_int_equal(r.errors.n, 2);
	assert_memory_equal(r.errors.v[0], "t.conf:2: only root can run handlers as", 39);
	assert_memory_equal(r.errors.v[1], "t.conf:3: only root can run handlers as", 39);
	config_report_done(&r);
}

/* As root, this runs both tests: the second as another user, in a folder open to all. */
TEST(test_identity)
{
	if (geteuid() != 0) {
		test_not_root();
		return;
	}
	test_root();
	assert_int_equal(chmod(".", 0777), 0);
	unlink("t.conf");
	assert_int_equal(setegid(12345), 0);
	assert_int_equal(seteuid(12345), 0);
	test_not_root();
	unlink("t.conf");
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(setegid(0), 0);
}

/* A mistyped name in the source ends the program: it is an index of no array. */
TEST(test_named)
{
	int status;
	pid_t pid;

	assert_ptr_equal(option_named(SECTION_QUEUE, "batch"), option_find(SECTION_QUEUE, "batch"));
	if ((pid = fork()) == 0) {
		(void)option_named(SECTION_QUEUE, "bach");
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static void
check_text(const struct option *o)
{
	const struct config_text *t = config_texts;

	if (option_belongs(o, SECTION_QUEUE))
		t = queue_texts;
	else if (option_belongs(o, SECTION_SCHEDULE))
		t = schedule_texts;
	while (t->name != NULL && t->offset != o->offset)
		t++;
	if (t->name == NULL || t->list != (o->type == OPTION_STRINGS))
		fail_msg("%s leaks at each reload: add it to the tables at the "
		    "head of policy/config.c", o->name);
}

/* The texts of all options are freed, and each of them once. */
TEST(test_texts_are_freed)
{
	static const struct config_text *const tables[] = {
		config_texts, queue_texts, schedule_texts
	};
	const struct config_text *t, *other;

	EACH_OPTION(o) {
		if (o->type == OPTION_STRING || o->type == OPTION_STRINGS)
			check_text(o);
	}
	for (size_t i = 0; i < ARRAY_LEN(tables); i++)
		for (t = tables[i]; t->name != NULL; t++)
			for (other = tables[i]; other != t; other++)
				if (other->offset == t->offset)
					fail_msg("%s is freed twice", t->name);
}
