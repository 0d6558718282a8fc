/*
 * rqctl without Redis: the command line, times and rates, escaping, tables, and values
 * of keys.
 */
#define UNIT_OWN_MAIN
#include "unit.h"

#include "rqctl/verbs.h"
#include "rqctl/waiting.h"
#include "rqctl/out.h"
#include "queue/pausetext.h"
#include "rqctl/letters.h"
#include "rqctl/listing.h"
#include "base/units.h"

/* Parses a command line whose words are separated by single blanks; '' is an empty word. */
static int
parse(struct args *a, const char *line, char **cause)
{
	static char copy[512];
	static char *argv[32];
	char *p = copy + 1;
	int argc = 1;

	copy[0] = '\0';
	argv[0] = copy;
	strcpy(p, line);
	for (; *p != '\0'; argc++) {
		argv[argc] = p;
		p += strcspn(p, " ");
		if (*p != '\0')
			*p++ = '\0';
		if (strcmp(argv[argc], "''") == 0)
			*argv[argc] = '\0';
	}
	argv[argc] = NULL;
	return args_parse(a, argc, argv, cause);
}

static void
accepts(struct args *a, const char *line, const char *verb, int nwords)
{
	char *cause = NULL;

	if (parse(a, line, &cause) == -1)
		fail_msg("%s: %s", line, cause);
	assert_string_equal(a->verb->name, verb);
	assert_int_equal(a->nwords, nwords);
	assert_null(a->words[nwords]);
}

static void
refuses(const char *line, const char *part)
{
	struct args a;
	char *cause = NULL;

	assert_int_equal(parse(&a, line, &cause), -1);
	assert_non_null(cause);
	if (strstr(cause, part) == NULL)
		fail_msg("%s: \"%s\" does not say \"%s\"", line, cause, part);
	free(cause);
	args_done(&a);
}

TEST(options_of_every_verb_stand_anywhere)
{
	struct args a;

	accepts(&a, "-c /f dead retry --all --rate 5/s q -n", "dead retry", 1);
	assert_string_equal(a.value[OPT_CONFIG], "/f");
	assert_string_equal(a.value[OPT_RATE], "5/s");
	assert_non_null(a.value[OPT_ALL]);
	assert_non_null(a.value[OPT_DRY_RUN]);
	assert_null(a.value[OPT_YES]);
	assert_string_equal(a.words[0], "q");
	args_done(&a);
	accepts(&a, "--json dead list q -c /f", "dead list", 1);
	args_done(&a);
	accepts(&a, "push --delay=5m q --config=/x -- --not-an-option", "push", 2);
	assert_string_equal(a.value[OPT_DELAY], "5m");
	assert_string_equal(a.words[1], "--not-an-option");
	args_done(&a);
	accepts(&a, "push q -", "push", 2);
	args_done(&a);
	accepts(&a, "push q ''", "push", 2);
	args_done(&a);
	accepts(&a, "dead drop -nyc/f q", "dead drop", 1);
	assert_string_equal(a.value[OPT_CONFIG], "/f");
	assert_non_null(a.value[OPT_DRY_RUN]);
	assert_non_null(a.value[OPT_YES]);
	args_done(&a);
}

/* One name can be different options of different verbs. */
TEST(options_belong_to_verbs)
{
	struct args a;

	accepts(&a, "pause q --reason why", "pause", 1);
	assert_string_equal(a.value[OPT_WHY], "why");
	assert_null(a.value[OPT_REASON]);
	args_done(&a);
	accepts(&a, "dead list q --reason crashed", "dead list", 1);
	assert_string_equal(a.value[OPT_REASON], "crashed");
	assert_null(a.value[OPT_WHY]);
	args_done(&a);
	accepts(&a, "check --dead 5:7 q", "check", 1);
	assert_string_equal(a.value[OPT_WARN_DEAD], "5:7");
	assert_null(a.value[OPT_DEAD]);
	args_done(&a);
	accepts(&a, "purge --dead q", "purge", 1);
	assert_null(a.value[OPT_WARN_DEAD]);
	args_done(&a);
	accepts(&a, "lock --wait 5s --ttl 9s a -- b --wait -c", "lock", 4);
	assert_string_equal(a.value[OPT_LOCK_WAIT], "5s");
	assert_string_equal(a.value[OPT_TTL], "9s");
	assert_string_equal(a.words[3], "-c");
	args_done(&a);
	accepts(&a, "pause --wait q -- lock", "pause", 2);
	assert_string_equal(a.value[OPT_WAIT], "");
	args_done(&a);
	accepts(&a, "--json pause q", "pause", 1);
	assert_non_null(a.value[OPT_JSON]);
	args_done(&a);
	accepts(&a, "pause --wait 5m q", "pause", 1);
	assert_string_equal(a.value[OPT_WAIT], "5m");
	args_done(&a);
	accepts(&a, "pause q --wait=5m", "pause", 1);
	assert_string_equal(a.value[OPT_WAIT], "5m");
	args_done(&a);
	accepts(&a, "pause q --wait", "pause", 1);
	args_done(&a);
	accepts(&a, "ping -o redis.database=1 -o redis.timeout=1s", "ping", 0);
	assert_string_equal(a.set[0], "redis.database=1");
	assert_string_equal(a.set[1], "redis.timeout=1s");
	assert_null(a.set[2]);
	args_done(&a);
}

TEST(mistakes_are_said)
{
	refuses("", "rqctl help");
	refuses("statsu", "did you mean status");
	refuses("zzzzzzzz", "rqctl help lists");
	refuses("dead", "list, show, retry, drop, export");
	refuses("dead frob q", "needs one of");
	refuses("retry q 7", "dead letters: rqctl dead retry");
	refuses("push", "usage: rqctl push QUEUE [MESSAGE]");
	refuses("push q m n", "too many");
	refuses("status --jsn", "did you mean --json");
	refuses("status --lines", "status has no option --lines: rqctl help status lists its "
	    "options");
	refuses("ping --json=yes", "takes no value");
	refuses("push q --delay", "needs a value");
	refuses("push q -c", "needs a value");
	refuses("push q --delay 1s --delay 2s", "twice");
	refuses("ping -Z", "there is no option -Z: rqctl help");
	refuses("--json", "no verb is given");
	refuses("--json lock a -- b", "lock has no option --json");
	refuses("--all dead retry q", "--all belongs behind the verb: rqctl VERB --all");
	refuses("-y purge q", "--yes belongs behind the verb");
	refuses("dead --all retry q", "--all belongs behind the verb");
}

static void
no_verb_has_both(size_t i, size_t k)
{
	EACH_VERB(v)
		assert_false((verb_options(v) >> i & 1) != 0 && (verb_options(v) >> k & 1) != 0);
}

/* Every verb and option has help, and no verb has two options of one name. */
TEST(tables_are_whole)
{
	size_t i, k;
	int words;

	EACH_VERB(v) {
		assert_non_null(v->args);
		assert_non_null(v->help);
		assert_non_null(v->run);
		assert_true(v->max_args < 0 || v->max_args >= v->min_args);
		assert_ptr_equal(verb_find(v->name, NULL, &words),
		    strchr(v->name, ' ') != NULL ? NULL : v);
	}
	for (i = 0; i < OPT_MAX; i++) {
		assert_non_null(opt_table[i].name);
		assert_non_null(opt_table[i].help);
		for (k = 0; k < i; k++) {
			if (strcmp(opt_table[i].name, opt_table[k].name) == 0)
				no_verb_has_both(i, k);
			if (opt_table[i].letter != 0)
				assert_int_not_equal(opt_table[i].letter,
				    opt_table[k].letter);
		}
	}
}

TEST(times)
{
	static const struct { const char *text; int64_t usec; } good[] = {
		{ "1970-01-01T00:00:00Z", 0 },
		{ "2026-11-21T08:00:00Z", INT64_C(1795248000000000) },
		{ "2026-11-21t09:00:00.25+01:00", INT64_C(1795248000250000) },
		{ "2026-11-21 02:30:00.1234567-05:30", INT64_C(1795248000123456) },
		{ "2024-02-29T00:00:00Z", INT64_C(1709164800000000) },
		{ "@0", 0 },
		{ "@1795248000", INT64_C(1795248000000000) },
		{ "@1795248000.000001", INT64_C(1795248000000001) },
	};
	static const char *const bad[] = {
		"", "@", "@-1", "@1x", "@1.", "@99999999999999999999", "tomorrow", "2026-11-21",
		"2026-11-21T08:00:00", "2026-11-21T08:00Z", "2026-02-29T00:00:00Z",
		"2026-04-31T00:00:00Z", "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z",
		"2026-11-21T24:00:00Z", "2026-11-21T08:60:00Z", "2026-11-21T08:00:00ZZ",
		"2026-11-21T08:00:00+1:00", "2026-11-21T08:00:00.Z", "26-11-21T08:00:00Z",
	};
	wall_t t = 7;
	size_t i;

	for (i = 0; i < ARRAY_LEN(good); i++) {
		assert_int_equal(units_parse_time(good[i].text, &t, NULL), 0);
		assert_int_equal(t, good[i].usec);
	}
	for (t = 7, i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(units_parse_time(bad[i], &t, NULL), -1);
		assert_int_equal(t, 7);
	}
	assert_int_equal(units_parse_past("2h", 10000 * SEC, &t, NULL), 0);
	assert_int_equal(t, 2800 * SEC);
	assert_int_equal(units_parse_past("7d", 10000 * SEC, &t, NULL), 0);
	assert_int_equal(t, 0);
}

TEST(rates)
{
	static const char *const bad[] = {
		"", "0", "0/s", "-1/s", "/s", "1/d", "1/s ", "x", "1e99/s", "nan", "inf"
	};
	double r;
	size_t i;

	assert_int_equal(units_parse_rate("100/s", &r, NULL), 0);
	assert_true(r == 100);
	assert_int_equal(units_parse_rate("30/m", &r, NULL), 0);
	assert_true(r == 0.5);
	assert_int_equal(units_parse_rate("2.5", &r, NULL), 0);
	assert_true(r == 2.5);
	for (i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(units_parse_rate(bad[i], &r, NULL), -1);
}

static void
escapes(const char *data, size_t len, const char *want)
{
	struct buf b = BUF_INIT;

	out_escape(&b, data, len);
	assert_string_equal(buf_str(&b), want);
	buf_done(&b);
}

TEST(terminals_are_safe)
{
	escapes("", 0, "");
	escapes("a b\\\"", 5, "a b\\\"");
	escapes("a\nb\tc\r", 6, "a\\nb\\tc\\r");
	escapes("\033[2J\a", 5, "\\x1b[2J\\x07");
	escapes("x\0y", 3, "x\\x00y");
	escapes("\177", 1, "\\x7f");
	escapes("\xd8\x9c", 2, "\\xd8\\x9c");
	escapes("\xf3\xa0\x81\x81", 4, "\\xf3\\xa0\\x81\\x81");
	escapes("\xf0\x9d\x85\xb3", 4, "\\xf0\\x9d\\x85\\xb3");
	escapes("\xc3\xa9", 2, "\xc3\xa9");
	escapes("\xc3", 1, "\\xc3");
	escapes("\xc2\x9b" "31m", 5, "\\xc2\\x9b31m");		/* C1: CSI */
	escapes("\xe2\x80\xae", 3, "\\xe2\\x80\\xae");		/* right-to-left override */
	escapes("\xed\xa0\x80", 3, "\\xed\\xa0\\x80");		/* a surrogate */
	escapes("\xc0\xaf", 2, "\\xc0\\xaf");			/* overlong */
	escapes("\xf4\x90\x80\x80", 4, "\\xf4\\x90\\x80\\x80");
	assert_int_equal(out_columns("\xc3\xa9\xe4\xb8\xad"), 3);
	assert_int_equal(out_fit("\xc3\xa9\xe4\xb8\xad", 2), 2);
}

TEST(numbers)
{
	char b[OUT_NUMBER_MAX];

	assert_string_equal(out_number(0, b), "0");
	assert_string_equal(out_number(999, b), "999");
	assert_string_equal(out_number(1000, b), "1,000");
	assert_string_equal(out_number(1234567, b), "1,234,567");
	assert_string_equal(out_number(-1234, b), "-1,234");
	assert_string_equal(out_number(INT64_MAX, b), "9223372036854.8M");
}

/* Adds a row of the members that fmt names, as json_set() does. */
#define add(t, ...)	add_object((t), json_set(json_object(), __VA_ARGS__))
static void
add_object(struct table *t, json_t *o)
{
	table_row(t, o);
	json_decref(o);
}

TEST(tables)
{
	struct buf b = BUF_INIT;
	struct table t;

	table_init(&t, "NAME=a|>N=n|REST=rest");
	add(&t, "a:s n:i rest:b", "a", (int64_t)12345, "x\ny", (size_t)3);
	add(&t, "a:s n:n rest:s", "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", (int64_t)-1, "");
	table_print(&t, &b, 0);
	assert_string_equal(buf_str(&b),
	    "NAME        N  REST\n"
	    "a      12,345  x\\ny\n"
	    "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9       -\n");
	buf_clear(&b);
	table_print(&t, &b, 17);
	assert_string_equal(buf_str(&b),
	    "NAME  a\n"
	    "N     12,345\n"
	    "REST  x\\ny\n"
	    "\n"
	    "NAME  \xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\n"
	    "N     -\n"
	    "REST  \n");
	table_done(&t);
	buf_clear(&b);

	/* Columns of zeros go first, and only as many as needed. */
	table_init(&t, "NAME=a|>X=x|>Y=y|>Z=z|STATE=rest");
	add(&t, "a:s x:i y:i z:i rest:s", "a", (int64_t)0, (int64_t)7, (int64_t)0, "suspended: x");
	add(&t, "a:s x:i y:n z:i rest:s", "b", (int64_t)0, (int64_t)-1, (int64_t)0, "ok");
	table_print(&t, &b, 26);
	assert_string_equal(buf_str(&b),
	    "NAME  X  Y  STATE\n"
	    "a     0  7  suspended: x\n"
	    "b     0  -  ok\n");
	buf_clear(&b);
	table_print(&t, &b, 22);
	assert_string_equal(buf_str(&b),
	    "NAME  Y  STATE\n"
	    "a     7  suspended: x\n"
	    "b     -  ok\n");
	table_done(&t);
	buf_clear(&b);

	/* A plain number, an age, words, bytes that are no UTF-8, and what there is not. */
	table_init(&t, "PID=#pid|AGE=age|WORDS=words|BYTES=bytes|NONE=none");
	add(&t, "pid:i age:f words:j bytes:b none:s", (int64_t)12345, 90.0,
	    json_pack("[s,{s:s}]", "a", "word_base64", "/w=="), "\xff", (size_t)1, NULL);
	table_print(&t, &b, 0);
	assert_string_equal(buf_str(&b),
	    "PID    AGE    WORDS   BYTES  NONE\n"
	    "12345  1m30s  a /w==  \\xff   -\n");
	table_done(&t);
	buf_done(&b);
}

/*
 * A long id is cut so that the error fits: by no more than needed, and to no less than
 * 8 columns.
 */
TEST(a_column_makes_room)
{
	struct buf b = BUF_INIT;
	struct table t;

	table_init(&t, "N=n|ID=id|ERROR=error");
	t.last_min = 10;
	t.cut = 1;
	add(&t, "n:s id:s error:s", "1", "an-id-of-twenty-byte", "no such host: db1");
	table_print(&t, &b, 28);
	assert_string_equal(buf_str(&b),
	    "N  ID             ERROR\n"
	    "1  an-id-+y-byte  no such h+\n");
	buf_clear(&b);
	table_print(&t, &b, 16);
	assert_string_equal(buf_str(&b),
	    "N  ID        ER+\n"
	    "1  an-+byte  no+\n");
	table_done(&t);
	buf_done(&b);
}

/* A long name is cut in the middle, because its end often differs from other names. */
TEST(a_name_is_cut_in_the_middle)
{
	static const char wide[] = "\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5x";
	struct buf b = BUF_INIT;
	struct table t;

	assert_int_equal(out_skip("abcdef", 2), 4);
	assert_int_equal(out_skip("abcdef", 6), 0);
	assert_int_equal(out_skip("abcdef", 0), 6);
	assert_int_equal(out_skip(wide, 3), 12);
	assert_int_equal(out_skip(wide, 4), 12);	/* half of a character cannot stay */
	assert_int_equal(out_skip(wide, 5), 9);
	table_init(&t, "NAME=name|STATE=state");
	t.last_min = 5;
	add(&t, "name:s state:s", "orders.of.europe", "right");
	add(&t, "name:s state:s", wide, "right");
	table_print(&t, &b, 16);
	assert_string_equal(buf_str(&b),
	    "NAME       STATE\n"
	    "orde+rope  right\n"
	    "\xe6\x97\xa5\xe6\x97\xa5+\xe6\x97\xa5x   right\n");
	table_done(&t);
	buf_done(&b);
}

TEST(json_bytes)
{
	json_t *o = json_object();

	json_set(o, "good:b", "a\0\xc3\xa9", (size_t)4);
	json_set(o, "bad:b", "\xff", (size_t)1);
	json_set(o, "two:s", "\xff\xfe");
	json_set(o, "three:s", "\xff\xfe\xfd");
	assert_int_equal(json_string_length(json_object_get(o, "good")), 4);
	assert_string_equal(json_string_value(json_object_get(o, "bad_base64")), "/w==");
	assert_string_equal(json_string_value(json_object_get(o, "two_base64")), "//4=");
	assert_string_equal(json_string_value(json_object_get(o, "three_base64")), "//79");
	json_decref(o);
	o = out_bytes("id", "\xc3\xa9", 2);
	assert_string_equal(json_string_value(o), "\xc3\xa9");
	json_decref(o);
	o = out_bytes("id", "\xff", 1);
	assert_string_equal(json_string_value(json_object_get(o, "id_base64")), "/w==");
	json_decref(o);
}

TEST(deliveries)
{
	struct delivery_info d;

	delivery_parse("2 1 host.1.2 1795248000.25 9", &d);
	assert_true(d.ours && d.owned);
	assert_int_equal(d.attempts, 2);
	assert_int_equal(d.crashes, 1);
	assert_int_equal(d.idlen, 9);
	delivery_parse("2 1 my-host.x1.1.2 1795248000.25 9", &d);
	assert_string_equal(d.instance, "my-host.x1");
	assert_true(!d.saves && d.saved == NULL);
	delivery_parse("2 1 host.1.2 1795248000.25 09\nstep 1", &d);
	assert_true(d.idlen == 9 && d.saves && strcmp(d.saved, "step 1") == 0);
	delivery_parse("0 0 - 1 3", &d);
	assert_true(d.ours && !d.owned);
	delivery_parse(NULL, &d);
	assert_false(d.ours);
	delivery_parse("3 token", &d);
	assert_false(d.ours);
	assert_int_equal(d.attempts, 0);
}

TEST(pauses)
{
	char *text = pausetext_make("ann@web1", INT64_C(1795248000000000), "a b");
	struct pausetext p;

	p = pausetext_split(text);
	assert_int_equal(p.who_len, 8);
	assert_memory_equal(p.who, "ann@web1", 8);
	assert_int_equal(p.when_len, 24);
	assert_memory_equal(p.when, "2026-11-21T08:00:00.000Z", 24);
	assert_string_equal(p.why, "a b");
	free(text);
	p = pausetext_split("just a text");
	assert_int_equal(p.who_len + p.when_len, 0);
	assert_string_equal(p.why, "just a text");
	p = pausetext_split("");
	assert_string_equal(p.why, "");
}

TEST(letters)
{
	assert_true(select_is_letter("1795235168529-353"));
	assert_false(select_is_letter("1795235168529"));
	assert_false(select_is_letter("-1"));
	assert_false(select_is_letter("1-"));
	assert_false(select_is_letter("1-2x"));
	assert_false(select_is_letter("order-17"));
}

int
main(void)
{
	setenv("LC_ALL", "C.UTF-8", 1);
	out_init();
	return unit_run(NULL, NULL);
}
