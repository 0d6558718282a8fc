/* The environment of handlers, exactly as documented; env_file; users and groups. */
#include "fixture.h"

#include <pwd.h>
#include <sys/stat.h>

#include "handler/environment.h"
#include "handler/identity.h"
#include "handler/spawner_wire.h"

static char	file[] = "/tmp/rqd-test-XXXXXX";

static void
set_env(const char *const *list)
{
	size_t i;

	for (i = 0; t.q->env[i] != NULL; i++)
		free(t.q->env[i]);
	free(t.q->env);
	for (i = 0; list[i] != NULL; i++)
		continue;
	t.q->env = xcalloc(i + 1, sizeof(char *));
	for (i = 0; list[i] != NULL; i++)
		t.q->env[i] = xstrdup(list[i]);
	t.changes++;
}

/* The environment of this program, which OWN_ENV replaces until the test is over. */
static char	**own_env;

#define OWN_ENV(...) do {						\
	static const char *const own[] = { __VA_ARGS__, NULL };	\
	environ = (char **)(uintptr_t)own;				\
} while (0)
#define ENV(...)	set_env((const char *const[]){ __VA_ARGS__, NULL })

static void
write_file(const char *text)
{
	int fd = open(file, O_WRONLY | O_TRUNC | O_CLOEXEC);

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	(void)close(fd);
}

static int
set_up_file(void **state)
{
	int fd;

	own_env = environ;
	strcpy(file, "/tmp/rqd-test-XXXXXX");
	fd = mkstemp(file);
	(void)close(fd);
	return set_up(state);
}

static int
tear_down_file(void **state)
{
	environ = own_env;
	(void)unlink(file);
	return tear_down(state);
}

#define FILE_TEST(name)	TEST_WITH(name, set_up_file, tear_down_file)

/* -- the whole -------------------------------------------------------------------------- */

static int
by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Returns the lines of env(1), sorted; static. */
static char *
sorted(char *text)
{
	static struct buf b;
	char *line[64], *save, *p;
	size_t n = 0, i;

	for (p = strtok_r(text, "\n", &save); p != NULL; p = strtok_r(NULL, "\n", &save))
		line[n++] = p;
	qsort(line, n, sizeof(*line), by_name);
	buf_done(&b);
	for (i = 0; i < n; i++)
		buf_printf(&b, "%s\n", line[i]);
	return buf_str(&b);
}

/* Replaces the value of RQD_DEADLINE, which must be right, to a second and the run's time. */
static void
hide_deadline(char *text, const struct got *g)
{
	char *p = strstr(text, "RQD_DEADLINE="), *end;
	wall_t latest = clock_wall() + t.q->time_limit, at;

	assert_non_null(p);
	p += strlen("RQD_DEADLINE=");
	at = strtoll(p, &end, 10) * SEC;
	assert_int_equal(*end, '\n');
	assert_in_range(at, latest - g->took - SEC, latest);
	*p = 'X';
	memmove(p + 1, end, strlen(end) + 1);
}

FILE_TEST(nothing_but_what_is_documented)
{
	const struct passwd *pw = getpwuid(geteuid());
	struct got *g;
	char *want;

	OWN_ENV("PATH=/wrong", "SECRET=wrong", "LANGUAGE=wrong", "RQD_ID=wrong",
	    "LANG=C.UTF-8", "LC_TIME=C", "TZ=Europe/Zurich");
	set(&t.config->file, "/etc/rqd.conf");
	set(&t.q->user, pw->pw_name);
	COMMAND("/usr/bin/env");
	g = run("");
	want = xasprintf("HOME=%s\nLANG=C.UTF-8\nLC_TIME=C\nLOGNAME=%s\nPATH=%s\n"
	    "RQD_ATTEMPT=3\nRQD_CONFIG=/etc/rqd.conf\nRQD_DEADLINE=X\nRQD_ID=id-7\n"
	    "RQD_MAX_ATTEMPTS=25\nRQD_QUEUE=q\nRQD_VERDICT_FD=3\nSHELL=/bin/sh\n"
	    "TZ=Europe/Zurich\nUSER=%s\n",
	    pw->pw_dir, pw->pw_name, geteuid() == 0 ?
	    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" :
	    "/usr/local/bin:/usr/bin:/bin", pw->pw_name);
	hide_deadline(output(1), g);
	assert_string_equal(sorted(output(1)), want);
	free(want);
	got_free(g);
}

/* It is not there without a limit, and only rqd can set it. */
FILE_TEST(the_deadline)
{
	struct got *g;

	ENV("RQD_DEADLINE=7");
	COMMAND("/usr/bin/env");
	t.q->time_limit = 90 * SEC + 1;
	g = run("");
	hide_deadline(output(1), g);
	got_free(g);
	buf_clear(&t.out[1]);
	t.q->time_limit = 0;
	got_free(run(""));
	assert_non_null(strstr(output(1), "RQD_ID="));
	assert_null(strstr(output(1), "RQD_DEADLINE"));
}

FILE_TEST(later_ones_win)
{
	struct got *g;

	OWN_ENV("TZ=UTC");
	set(&t.config->overrides, "redis.database=3\nredis.timeout=1s");
	write_file("PATH=/file\nA=file\nB=file\nRQD_ID=file\nRQD_SERVER=file\n");
	set(&t.q->env_file, file);
	ENV("B=env", "C=", "TZ=env", "RQD_ATTEMPT=env", "RQD_QUEUE=env", "B=again");
	SH("echo $PATH $A $B [${C-unset}] $TZ $RQD_ID $RQD_ATTEMPT $RQD_QUEUE $RQD_SERVER"
	    " ${RQD_CONFIG-none}; /usr/bin/env | /bin/grep -c ^RQD_; echo \"$RQD_OPTIONS\"");
	g = run("");
	assert_string_equal(output(1), "/file file again [] env id-7 3 q 127.0.0.1:6379 none\n8\n"
	    "redis.database=3\nredis.timeout=1s\n");
	got_free(g);
}

/* The words of a start with these numbers and bytes, one a line. */
static char *
words_of_saved(uint32_t attempt, uint32_t batch, uint32_t max_attempts, const char *bytes,
    size_t n, bool saved)
{
	static _Alignas(8) char order[sizeof(struct spawner_order) + 1024];
	struct spawner_order *o = (void *)order;
	static struct buf words;

	*o = (struct spawner_order){ .op = SPAWNER_START, .attempt = attempt, .batch = batch,
	    .max_attempts = max_attempts, .saved = saved, .size = (uint32_t)n };
	memcpy(order + sizeof(*o), bytes, n);
	assert_true(spawner_is_order(o, sizeof(*o) + n, 0));
	buf_clear(&words);
	spawner_words(o, NULL, &words);
	for (size_t i = 0; i < words.len; i++) {
		if (words.data[i] == '\0')
			words.data[i] = '\n';
	}
	return buf_str(&words);
}

#define words_of(attempt, batch, max, bytes, n) \
	words_of_saved(attempt, batch, max, bytes, n, false)
#define WORDS_OF(attempt, batch, max, bytes)	words_of(attempt, batch, max, bytes, sizeof(bytes))

TEST(each_message_has_its_own)
{
	char id[MESSAGE_ID_MAX + 1], *want;

	memset(id, 'x', MESSAGE_ID_MAX);
	id[MESSAGE_ID_MAX] = '\0';
	want = xasprintf("RQD_ID=%s\nRQD_ATTEMPT=4294967295\nRQD_MAX_ATTEMPTS=2147483647\n", id);
	assert_string_equal(WORDS_OF(4294967295, 0, 2147483647, id), want);
	free(want);
	assert_string_equal(WORDS_OF(1, 0, 25, "y"),
	    "RQD_ID=y\nRQD_ATTEMPT=1\nRQD_MAX_ATTEMPTS=25\n");
	/* Only a message of a channel has RQD_CHANNEL. */
	assert_string_equal(WORDS_OF(1, 0, 25, "y\0news"),
	    "RQD_CHANNEL=news\nRQD_ID=y\nRQD_ATTEMPT=1\nRQD_MAX_ATTEMPTS=25\n");
	/* One that has saved a text has RQD_SAVED. */
	assert_string_equal(words_of_saved(1, 0, 25, "y\0a b", sizeof("y\0a b"), true),
	    "RQD_SAVED=a b\nRQD_ID=y\nRQD_ATTEMPT=1\nRQD_MAX_ATTEMPTS=25\n");
	/* Without a message, only the variables that are the same for all messages. */
	assert_string_equal(words_of(0, 0, 25, "", 0), "RQD_MAX_ATTEMPTS=25\n");
	assert_string_equal(words_of(0, 7, 25, "", 0), "RQD_BATCH=7\nRQD_MAX_ATTEMPTS=25\n");
}

/* -- env_message ------------------------------------------------------------------------ */

/* Runs the queue's command for a message; its output. */
static char *
printed(const char *payload)
{
	buf_clear(&t.out[1]);
	got_free(run(payload));
	return output(1);
}

FILE_TEST(members_become_variables)
{
	OWN_ENV("TZ=UTC");
	write_file("FROM_FILE=file\nA=file\n");
	set(&t.q->env_file, file);
	ENV("A=env", "Z=env", "B=");
	t.q->env_message = xcalloc(7, sizeof(char *));
	t.q->env_message[0] = xstrdup("A=a");
	t.q->env_message[1] = xstrdup("B=b");
	t.q->env_message[2] = xstrdup("NONE=none");
	t.q->env_message[3] = xstrdup("FROM_FILE=file");
	t.q->env_message[4] = xstrdup("TZ=tz");
	t.q->env_message[5] = xstrdup("A_=a");
	SH("echo \"[$A][${B-unset}][${NONE-unset}][$FROM_FILE][$TZ][${A_-unset}] $Z $RQD_ID\"; "
	    "/usr/bin/env | /bin/grep -cE '^(A|B|NONE|FROM_FILE|TZ|A_)='");
	/* What the message does not have stays as env says; each is there once. */
	assert_string_equal(printed("{}"), "[env][][unset][file][UTC][unset] env id-7\n4\n");
	assert_string_equal(printed("not JSON"), "[env][][unset][file][UTC][unset] env id-7\n4\n");
	assert_string_equal(printed("{\"a\":\"\",\"b\":1.0,\"none\":\"$(x) 'y'\",\"file\":true,"
	    "\"tz\":\"CET\"}"), "[][1.0][$(x) 'y'][true][CET][] env id-7\n6\n");
	assert_string_equal(printed("{\"a\":\"x=y\",\"b\":null,\"file\":[]}"),
	    "[x=y][][unset][file][UTC][x=y] env id-7\n5\n");
	/* A shell would hide a variable that is there twice. */
	COMMAND("/usr/bin/env");
	assert_non_null(strstr(printed("{\"a\":\"x\"}"), "\nA=x\n"));
	assert_null(strstr(output(1), "A=env"));
	/* Of a channel, too. */
	t.channel = "news";
	SH("echo \"$A $RQD_CHANNEL $RQD_ID\"");
	assert_string_equal(printed("{\"a\":\"RQD_ID=x\"}"), "RQD_ID=x news id-7\n");
}

FILE_TEST(largest_members)
{
	size_t n = (size_t)CONFIG_MEMBERS_MAX;
	struct buf b = BUF_INIT;

	t.q->env_message = xcalloc(n + 1, sizeof(char *));
	buf_printf(&b, "{\"m\":\"%0*d\"}", MESSAGE_MEMBER_MAX, 7);
	for (size_t i = 0; i < n; i++)
		t.q->env_message[i] = xasprintf("M%zu=m", i);
	SH("/usr/bin/env | /bin/grep -c '^M[0-9]*=00.*07$'; echo ${#M0}");
	assert_string_equal(printed(buf_str(&b)), "32\n4096\n");
	buf_done(&b);
}

/* -- env_file -------------------------------------------------------------------------------- */

/* want: the entries, "|" behind each; NULL: it is an error. */
static void
expect_parse(const char *text, const char *want)
{
	struct buf b = BUF_INIT;
	int r = environment_parse(text, strlen(text), &b);

	assert_int_equal(r, 0);
	for (size_t i = 0; i < b.len; i++) {
		if (b.data[i] == '\0')
			b.data[i] = '|';
	}
	assert_string_equal(buf_str(&b), want);
	buf_done(&b);
}

/* want: a part of the message, which begins with the line. */
static void
expect_fault(const char *text, size_t n, const char *want)
{
	struct buf b = BUF_INIT;
	char *why;

	assert_int_equal(environment_parse(text, n, &b), -1);
	why = environment_error("/f", errno);
	if (strncmp(why, want, strlen(want)) != 0)
		fail_msg("%s: does not begin with %s", why, want);
	free(why);
	buf_done(&b);
}

FILE_TEST(syntax_of_env_file)
{
	expect_parse("", "");
	expect_parse("\n\n# comment\n; too\n  # indented\n", "");
	expect_parse("A=1\nB=2", "A=1|B=2|");
	expect_parse("  A = 1 2  \r\nB=\n", "A=1 2|B=|");
	expect_parse("_a9=x=y#z", "_a9=x=y#z|");
	expect_parse("A='a b'\nB=\"c \\\"d\\\" \\$e \\n\"\n", "A=a b|B=c \"d\" $e \\n|");
	expect_parse("A=' \\x ' \t\n", "A= \\x |");
	expect_parse("A=a\\ b\\ \nB=1\\\n2\n", "A=a b |B=12|");
	expect_parse("A=\"x\ny\"\nB='x\ny'", "A=x\ny|B=x\ny|");
	expect_parse("A=\"1\"'2'3\n", "A=123|");
	expect_parse("A=\\", "A=|");
	expect_parse("A=$HOME ${B}\n", "A=$HOME ${B}|");
	expect_parse("A=\xc3\xa4\n", "A=\xc3\xa4|");
	expect_parse("\xef\xbb\xbf" "A=1\n", "A=1|");
	expect_parse("export=1\nexport = 2\n", "export=1|export=2|");
}

FILE_TEST(faults_of_env_file_name_their_line)
{
#define FAULT(text, want) expect_fault(text, sizeof(text) - 1, want)
	FAULT("nonsense\n", "/f:1: there is no \"=\"");
	FAULT("A='1\n2\n3'\n# x\n\nnonsense", "/f:6: there is no \"=\"");
	FAULT("A=1\nnonsense \t\r\nB=2\n", "/f:2: there is no \"=\"");
	FAULT("A=1\nexport B=1\n", "/f:2: \"export\" is of shells");
	FAULT("A=1\nexport\n", "/f:2: there is no \"=\"");
	FAULT("1A=1\n", "/f:1: the name of a variable");
	FAULT("\n=1\n", "/f:2: the name of a variable");
	FAULT("A-B=1\n", "/f:1: the name of a variable");
	FAULT("A B=1\n", "/f:1: the name of a variable");
	FAULT("A=\xef\xbb\xbf\n\xef\xbb\xbf" "B=1\n", "/f:2: the name of a variable");
	FAULT("A=1\nB='open\n\n", "/f:2: a quote");
	FAULT("A=\"open\\\"\n", "/f:1: a quote");
	FAULT("A=1\nB=\0\n", "/f:2: there is a NUL byte");
#undef FAULT
}

/* The parser of env_file never reads beyond its text; sanitizers would report it. */
FILE_TEST(env_file_of_random_text)
{
	static const char some[] = "AZ_09= \t\r\n#;'\"\\$x";
	char *p;
	size_t n, i;
	int round;

	for (round = 0; round < 20000; round++) {
		struct buf b = BUF_INIT;

		n = (size_t)unit_below(40);
		p = xmalloc(n);
		for (i = 0; i < n; i++)
			p[i] = some[unit_below(sizeof(some) - 1)];
		(void)!environment_parse(p, n, &b);
		buf_done(&b);
		free(p);
	}
}

static void
expect_env_file_error(int error)
{
	struct got *g = run("");

	assert_int_equal(g->result.end, END_NOT_STARTED);
	assert_int_equal(g->result.error, error);
	assert_string_equal(g->result.step, "env_file");
	got_free(g);
}

FILE_TEST(unreadable_env_file_is_not_started)
{
	char fifo[] = "/tmp/rqd-test-XXXXXX/fifo";
	set(&t.q->env_file, "/no/such/file");
	expect_env_file_error(ENOENT);
	set(&t.q->env_file, "/tmp");
	expect_env_file_error(EINVAL);
	fifo[20] = '\0';
	assert_non_null(mkdtemp(fifo));
	fifo[20] = '/';
	assert_int_equal(mkfifo(fifo, 0600), 0);
	set(&t.q->env_file, fifo);
	expect_env_file_error(EINVAL);
	(void)unlink(fifo);
	fifo[20] = '\0';
	(void)rmdir(fifo);
	assert_int_equal(truncate(file, (off_t)ENVIRONMENT_FILE_MAX + 1), 0);
	set(&t.q->env_file, file);
	expect_env_file_error(EFBIG);
}

/* The spawner looks again, without a reload, for what was missing. */
FILE_TEST(missing_env_file_is_looked_for)
{
	usec_t end = clock_mono() + PATIENCE;
	bool started = false;
	char away[sizeof(file) + 5];
	struct got *g;

	write_file("A=back\n");
	(void)snprintf(away, sizeof(away), "%s.away", file);
	assert_int_equal(rename(file, away), 0);
	set(&t.q->env_file, file);
	SH("echo $A");
	expect_env_file_error(ENOENT);
	assert_int_equal(rename(away, file), 0);
	while (!started && clock_mono() < end) {
		turn_for(100 * MSEC);
		g = run("");
		started = g->result.end == END_EXIT;
		got_free(g);
	}
	assert_string_equal(output(1), "back\n");
}

/* The file is read when the configuration is. */
FILE_TEST(changed_env_file_needs_a_load)
{
	write_file("A=one\n");
	set(&t.q->env_file, file);
	SH("echo $A");
	got_free(run(""));
	write_file("A=two\n");
	got_free(run(""));
	set(&t.q->env_file, file);
	got_free(run(""));
	assert_string_equal(output(1), "one\none\ntwo\n");
}

FILE_TEST(huge_entry_is_not_started)
{
	char *entry = xmalloc(200001);
	struct got *g;

	memset(entry, 'x', 200000);
	memcpy(entry, "A=", 2);
	entry[200000] = '\0';
	ENV(entry);
	g = run("");
	assert_int_equal(g->result.end, END_NOT_STARTED);
	assert_int_equal(g->result.error, E2BIG);
	assert_string_equal(g->result.step, "environment");
	got_free(g);
	free(entry);
}

/* -- identities ------------------------------------------------------------------------------- */

FILE_TEST(identity_of_the_daemon)
{
	struct identity id = { .name = NULL };
	const char *step = NULL;

	assert_int_equal(identity_find("", "", &id, &step), 0);
	assert_int_equal(id.uid, (uid_t)-1);
	assert_int_equal(id.gid, (gid_t)-1);
	assert_int_equal(id.ngroups, 0);
	assert_int_equal(id.runs_as, geteuid());
	assert_string_equal(id.name, getpwuid(geteuid())->pw_name);
	identity_done(&id);
	assert_int_equal(identity_find("", "daemon", &id, &step), 0);
	assert_int_equal(id.uid, (uid_t)-1);
	assert_int_equal(id.gid, 1);
	identity_done(&id);
	identity_done(&id);
}

FILE_TEST(identity_of_others)
{
	struct identity id = { .name = NULL };
	const char *step = NULL;

	assert_int_equal(identity_find("daemon", "", &id, &step), 0);
	assert_int_equal(id.uid, 1);
	assert_int_equal(id.runs_as, 1);
	assert_int_equal(id.gid, 1);
	assert_true(id.ngroups >= 1);
	assert_string_equal(id.name, "daemon");
	identity_done(&id);
	assert_int_equal(identity_find("1", "", &id, &step), 0);
	assert_string_equal(id.name, "daemon");
	identity_done(&id);
	id.uid = 99;
	assert_int_equal(identity_find("nobody-here", "", &id, &step), -1);
	assert_int_equal(errno, ENOENT);
	assert_string_equal(step, "user");
	assert_int_equal(identity_find("daemon", "nobody-here", &id, &step), -1);
	assert_int_equal(errno, ENOENT);
	assert_string_equal(step, "group");
	assert_int_equal(identity_find("4294967295", "daemon", &id, &step), -1);
	assert_int_equal(identity_find("-1", "daemon", &id, &step), -1);
	assert_int_equal(id.uid, 99);		/* untouched */
}
