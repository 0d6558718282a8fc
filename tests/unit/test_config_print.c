/*
 * A printed configuration reads back the same.  etc/rqd.conf shows every option with its
 * true default.  A damaged file gives errors, and never a crash.
 */
#include "config_fixture.h"

#include "base/units.h"

/* -- random configurations -------------------------------------------------------- */

/* Returns a random string of any bytes but NUL; plain: UTF-8 without control characters. */
static char *
random_string(size_t max, bool plain)
{
	static const char odd[] = "\"'\\${}#/*,= \n\t\r\x01\x1b\x7f\xff\xc3\xa9";
	size_t n = unit_below(max + 1), i;
	char *s = xcalloc(n + 1, 1);

	for (i = 0; i < n; i++) {
		s[i] = unit_below(3) == 0 ? odd[unit_below(sizeof(odd) - 1)] :
		    (char)(1 + unit_below(255));
		if (!plain || ((unsigned char)s[i] >= 0x20 && (unsigned char)s[i] < 0x7f))
			continue;
		s[i] = 'x';
		if (i > 0 && s[i - 1] == 'x') {
			s[i - 1] = (char)0xc3;
			s[i] = (char)0xa9;
		}
	}
	return s;
}

static void
add_string(struct buf *b, const char *prefix, bool plain)
{
	char *s = random_string(20, plain), *whole = xasprintf("%s%s", prefix, s);

	option_print_string(whole, b);
	free(whole);
	free(s);
}

static void
add_strings(struct buf *b, const char *first, const char *prefix)
{
	uint64_t n = unit_below(4);

	buf_puts(b, "{");
	if (first != NULL)
		option_print_string(first, b);
	while (n-- > 0) {
		buf_puts(b, b->data[b->len - 1] == '{' ? "" : ", ");
		add_string(b, prefix, false);
	}
	buf_puts(b, "}");
}

static void
add_number(struct buf *b, const struct option *o, int64_t scale)
{
	char text[UNITS_TEXT_MAX];
	int64_t n = o->min + (int64_t)(unit_random() % (uint64_t)(o->max - o->min + 1));

	if (o->type == OPTION_SIZE || o->type == OPTION_LIMIT_SIZE)
		buf_puts(b, units_size((uint64_t)n, text));
	else if (o->type == OPTION_DURATION || o->type == OPTION_LIMIT_TIME)
		buf_puts(b, units_duration(n * scale, text));
	else
		buf_printf(b, "%lld", (long long)n);
}

static void
add_choice(struct buf *b, const struct option *o)
{
	size_t n = 0;

	while (o->choices[n] != NULL)
		n++;
	option_print_string(o->choices[unit_below(n)], b);
}

static void
add_value(struct buf *b, const struct option *o)
{
	switch (o->type) {
	case OPTION_STRING:
		add_string(b, strstr("directory env_file password_file target", o->name) != NULL ?
		    "/" : "a", strstr("directory env_file password_file target", o->name) == NULL);
		break;
	case OPTION_STRINGS:
		add_strings(b, strcmp(o->name, "command") == 0 ? "/c" : NULL,
		    strcmp(o->name, "env") == 0 ? "N=" : "");
		break;
	case OPTION_STATUSES:
		buf_printf(b, "{%d, %d}", 1 + (int)unit_below(100), 128 + (int)unit_below(100));
		break;
	case OPTION_CHOICE:
		add_choice(b, o);
		break;
	case OPTION_BOOL:
		buf_puts(b, unit_below(2) == 0 ? "true" : "false");
		break;
	case OPTION_OCTAL:
		buf_printf(b, "\"%o\"", (unsigned)unit_below(01000));
		break;
	case OPTION_INT: case OPTION_INT64: case OPTION_SIZE: case OPTION_LIMIT:
	case OPTION_LIMIT_SIZE: case OPTION_DURATION: case OPTION_NICE:
		add_number(b, o, 1);
		break;
	case OPTION_LIMIT_TIME:
		add_number(b, o, SEC);
		break;
	}
}

/* Whether a random value suits the option: false if it has a syntax or depends on others. */
static bool
is_free(const struct option *o)
{
	static const char *const fixed[] = {
		"kind", "mode", "rate", "fleet_concurrency", "listen", "server", "tls",
		"tls_ca", "tls_cert", "tls_key", "key", "backoff", "backoff_max", "output",
		"pushes", "group_by", "shards", "shards_drain", "sentinel", "master",
		"sentinel_username", "sentinel_password_file", "cluster", "id", "delayed_key",
		"on_dead",
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(fixed); i++) {
		if (strcmp(o->name, fixed[i]) == 0)
			return false;
	}
	return o->modes == 0 && (o->trait == 0 || kind_has(KIND_ACK, o->trait));
}

static void
add_section(struct buf *b, enum section section)
{
	const struct option *o;

	for (o = option_table; o->name != NULL; o++) {
		bool must = strcmp(o->name, "command") == 0;

		if (o->section != section || !is_free(o) || (!must && unit_below(2) == 0))
			continue;
		buf_printf(b, "%s = ", o->name);
		add_value(b, o);
		buf_addc(b, '\n');
	}
}

static void
add_schedule(struct buf *b, uint64_t i)
{
	static const char *const when[] = {
		"every = 1s", "every = 36h", "cron = '@daily'", "cron = \"*/5 1-3 * feb mon\"",
		"cron = '0 4 29 2 *' timezone = 'Europe/Berlin'"
	};

	buf_printf(b, "schedule \"s%d\" {\nqueue = plain %s\n", (int)i,
	    when[unit_below(ARRAY_LEN(when))]);
	if (unit_below(2) == 0) {
		buf_puts(b, "message = ");
		add_string(b, "", true);
	}
	buf_printf(b, "\ncatch_up = %s\n}\n", unit_below(2) == 0 ? "yes" : "false");
}

static void
random_config(struct buf *b)
{
	enum section s;
	uint64_t i, n = unit_below(4);

	add_section(b, SECTION_GLOBAL);
	for (s = SECTION_REDIS; s < SECTION_HTTP; s++) {
		buf_printf(b, "%s {\n", section_name(s));
		add_section(b, s);
		buf_puts(b, "}\n");
	}
	for (i = 0; i < n; i++) {
		char prefix[8];

		snprintf(prefix, sizeof(prefix), "%c", (char)('a' + i));
		buf_puts(b, "queue ");
		add_string(b, prefix, true);
		buf_puts(b, " {\n");
		add_section(b, SECTION_QUEUE);
		buf_puts(b, "}\n");
	}
	buf_puts(b, "queue plain { command = {/c} }\n");
	n = unit_below(3);
	for (i = 0; i < n; i++)
		add_schedule(b, i);
}

TEST(test_round_trip)
{
	int i;

	for (i = 0; i < unit_rounds(1000); i++) {
		struct buf b = BUF_INIT;
		struct config *c, *d;
		char *first, *second;

		random_config(&b);
		put("t.conf", buf_str(&b));
		c = load_good("t.conf");
		print_to(c, "printed.conf");
		d = load_good("printed.conf");
		print_to(d, "again.conf");
		first = slurp("printed.conf");
		second = slurp("again.conf");
		assert_string_equal(first, second);
		assert_string_equal(c->hash, d->hash);
		assert_int_equal(c->nqueues, d->nqueues);
		assert_int_equal(c->nschedules, d->nschedules);
		free(first);
		free(second);
		config_unref(c);
		config_unref(d);
		buf_done(&b);
	}
}

/* server = 'sentinel://...' equals the options sentinel and master; ports are added. */
TEST(test_sentinels)
{
	struct config *c, *d;
	char *text;

	put("t.conf", "redis { server = 'sentinel://m@a:7,b' }");
	c = load_good("t.conf");
	print_to(c, "printed.conf");
	text = slurp("printed.conf");
	assert_non_null(strstr(text, "sentinel = {\"a:7\", \"b:26379\"}"));
	assert_non_null(strstr(text, "master = \"m\""));
	assert_null(strstr(text, "server ="));
	d = load_good("printed.conf");
	assert_string_equal(c->hash, d->hash);
	assert_string_equal(d->redis.servers[0], "sentinel://m@a:7,b:26379");
	assert_null(d->redis.servers[1]);
	free(text);
	config_unref(c);
	config_unref(d);
}

TEST(test_cluster)
{
	struct config *c, *d;
	char *text;

	put("t.conf", "redis { server = 'cluster://a:7,[::1],b' }\n"
	    "queue \"o\" { key = \"{o}\" command = {\"/bin/true\"} pushes = {\"t\"} }\n"
	    "queue \"t\" { key = \"{o}:t\" concurrency = 0 }\n"
	    "queue \"s\" { shards = 4 command = {\"/bin/true\"} }\n"
	    "queue \"c\" { kind = \"channel\" command = {\"/bin/true\"} }");
	c = load_good("t.conf");
	assert_string_equal(c->queues[2]->key, "{s}");
	print_to(c, "printed.conf");
	text = slurp("printed.conf");
	assert_non_null(strstr(text, "cluster = {\"a:7\", \"[::1]:6379\", \"b:6379\"}"));
	assert_null(strstr(text, "server ="));
	d = load_good("printed.conf");
	assert_string_equal(c->hash, d->hash);
	assert_string_equal(d->redis.servers[0], "cluster://a:7,[::1]:6379,b:6379");
	assert_null(d->redis.servers[1]);
	free(text);
	config_unref(c);
	config_unref(d);
}

/* Every byte but NUL, in both kinds of quotes, comes out as it went in. */
TEST(test_bytes)
{
	char all[256], *single = xcalloc(600, 1), *p = single;
	struct buf b = BUF_INIT;
	struct config *c;
	int i;

	for (i = 1; i < 256; i++) {
		all[i - 1] = (char)i;
		if (i == '\'' || i == '\\')
			*p++ = '\\';
		*p++ = (char)i;
	}
	all[255] = '\0';
	buf_puts(&b, "queue \"q\" { command = {\"/c\", ");
	option_print_string(all, &b);
	buf_printf(&b, ", '%s'} }", single);
	put("t.conf", buf_str(&b));
	c = load_good("t.conf");
	assert_string_equal(c->queues[0]->command[1], all);
	assert_string_equal(c->queues[0]->command[2], all);
	print_to(c, "printed.conf");
	config_unref(c);
	c = load_good("printed.conf");
	assert_string_equal(c->queues[0]->command[1], all);
	assert_string_equal(c->queues[0]->command[2], all);
	config_unref(c);
	buf_done(&b);
	free(single);
}

/*
 * The hash changes with every option but those in which the daemons of a fleet may differ:
 * name, log, http and the address of Redis.
 */
TEST(test_hash)
{
	static const struct { const char *text; bool same; } cases[] = {
		{ "# x\nqueue \"q\" { nice = \"inherit\" command = {\"/c\"} lease = 1m }", true },
		{ "name = \"other\" queue \"q\" { command = {\"/c\"} }", true },
		{ "defaults { command = {'/c'} } queue q { }", true },
		{ "queue \"q\" { command = {\"/c\"} nice = 1 }", false },
		{ "queue \"q\" { command = {\"/c\", \"\"} }", false },
		{ "queue \"r\" { command = {\"/c\"} key = \"q\" }", false },
		{ "max_handlers = 17 queue \"q\" { command = {\"/c\"} }", false },
		{ "redis { database = 1 } queue \"q\" { command = {\"/c\"} }", false },
		{ "log { level = \"warn\" } queue \"q\" { command = {\"/c\"} }", true },
		{ "http { listen = \"127.0.0.1:1\" } queue \"q\" { command = {\"/c\"} }", true },
		{ "redis { server = \"h:1\" } queue \"q\" { command = {\"/c\"} }", true },
		{ "schedule s { queue = q every = 1m } queue q { command = {'/c'} }", false },
	};
	struct config *base = load_text("queue \"q\" { command = {\"/c\"} }"), *c;
	size_t i;

	for (i = 0; i < ARRAY_LEN(cases); i++) {
		c = load_text(cases[i].text);
		assert_int_equal(strcmp(c->hash, base->hash) == 0, cases[i].same);
		if (cases[i].same)
			assert_string_equal(c->queues[0]->hash, base->queues[0]->hash);
		config_unref(c);
	}
	config_unref(base);
}

/* -- the table ------------------------------------------------------------------------ */

TEST(test_table)
{
	const struct option *o, *p;
	size_t n = 0;

	for (o = option_table; o->name != NULL; o++) {
		assert_int_equal(option_index(o), n++);
		assert_ptr_equal(option_find(o->section, o->name), o);
		assert_true(strlen(o->help) > 3);
		assert_non_null(o->def);
		assert_int_equal(o->type == OPTION_CHOICE, o->choices != NULL);
		for (p = o + 1; p->name != NULL; p++)
			assert_true(p->section != o->section || p->offset != o->offset);
	}
	assert_true(n > 50 && n <= OPTIONS_MAX);
	assert_null(option_find(SECTION_QUEUE, "server"));
}

/* -- the shipped file -------------------------------------------------------------------- */

/* Removes the "#" of options; a "#" before a blank begins prose and stays. */
static char *
uncommented(const char *text)
{
	struct buf b = BUF_INIT;
	bool begins = true;
	const char *p;

	for (p = text; *p != '\0'; p++) {
		if (*p == '#' && begins && p[1] != ' ' && p[1] != '\n')
			continue;
		begins = *p == '\n' || (begins && *p == '\t');
		buf_addc(&b, *p);
	}
	(void)buf_str(&b);
	return buf_steal(&b);
}

static char *
shipped(void)
{
	const char *dir = getenv("SRCDIR");
	char *path = xasprintf("%s/etc/rqd.conf", dir != NULL ? dir : "..");
	char *text = slurp(path);

	free(path);
	return text;
}

TEST(test_shipped)
{
	char *text = shipped(), *full = uncommented(text);
	struct config *c = load_text(text), *d;
	const struct option *o;

	assert_int_equal(c->nqueues, 0);
	d = load_text("");
	assert_string_equal(c->hash, d->hash);
	config_unref(c);
	config_unref(d);

	/* With all options on, only the example's queue and schedule are new. */
	c = load_text(full);
	d = load_text("queue \"orders\" { command = {\"/usr/local/bin/ship-order\"}"
	    " user = \"orders\" }"
	    "schedule \"nightly\" { queue = \"orders\" cron = \"30 4 * * *\" }");
	assert_string_equal(c->hash, d->hash);
	config_unref(c);
	config_unref(d);
	for (o = option_table; o->name != NULL; o++) {
		char *line = xasprintf("%s = ", o->name);

		if (o->modes == 0 && strstr(full, line) == NULL)
			fail_msg("%s is not in etc/rqd.conf", o->name);
		free(line);
	}
	free(full);
	free(text);
}

/* An error after all of the file's comments has the right line. */
TEST(test_shipped_lines)
{
	char *text = shipped(), *more = xasprintf("%sbogus = 1\n", text), want[64];
	struct config_report r;
	int line = 1;
	const char *p;

	for (p = text; *p != '\0'; p++)
		line += *p == '\n';
	snprintf(want, sizeof(want), "t.conf:%d: unknown option \"bogus\"", line);
	put("t.conf", more);
	assert_null(load_file("t.conf", &r));
	assert_int_equal(r.errors.n, 1);
	assert_string_equal(r.errors.v[0], want);
	config_report_done(&r);
	free(more);
	free(text);
}

/* -- damage ------------------------------------------------------------------------------- */

static void
damage(char *text, size_t *len)
{
	static const char bytes[] = "{}()=,\"'\\#/*$+\n\t\0;:x0-";
	size_t at = unit_below(*len), n = unit_below(20), to;

	switch (unit_below(4)) {
	case 0:
		text[at] = bytes[unit_below(sizeof(bytes) - 1)];
		break;
	case 1:
		n = n > *len - at ? *len - at : n;
		memmove(text + at, text + at + n, *len - at - n);
		*len -= n;
		break;
	case 2:
		*len = at;
		break;
	default:
		to = unit_below(*len);
		n = n > *len - at ? *len - at : n;
		n = n > *len - to ? *len - to : n;
		memmove(text + to, text + at, n);
		break;
	}
}

TEST(test_damage)
{
	char *text = shipped(), *full = uncommented(text);
	int i;

	for (i = 0; i < unit_rounds(5000); i++) {
		struct config_report r;
		struct config *c;
		size_t len = strlen(i % 2 == 0 ? text : full);
		char *copy = xmemdup(i % 2 == 0 ? text : full, len);
		uint64_t n = 1 + unit_below(4);

		while (n-- > 0 && len > 0)
			damage(copy, &len);
		put_bytes("t.conf", copy, len);
		c = load_file("t.conf", &r);
		assert_int_equal(c == NULL, r.errors.n > 0);
		config_unref(c);
		config_report_done(&r);
		free(copy);
	}
	free(full);
	free(text);
}
