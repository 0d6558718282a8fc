/*
 * The log: sinks that are blocked, full, moved or gone.  Tests of stderr replace
 * descriptor 2 and put it back.
 */
#define UNIT_OWN_MAIN
#include "unit.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>

#include "base/buf.h"
#include "base/log.h"

static char dir[] = "/tmp/rqd-test-log-XXXXXX";

static int
start_clean(void **state UNUSED)
{
	log_close();
	log_set_level(LOG_LV_INFO);
	log_set_format(LOG_LOGFMT);
	clock_fake(SEC, 1795232172345678);
	return 0;
}

#define FIXTURE_TEST(name)	TEST_WITH(name, start_clean, NULL)

static char *
in_dir(const char *name)
{
	return xasprintf("%s/%s", dir, name);
}

/* The whole file at path; the caller frees. */
static char *
slurp(const char *path, size_t *len)
{
	struct buf b = BUF_INIT;
	char piece[4096];
	ssize_t n;
	int fd = open(path, O_RDONLY);

	assert_true(fd != -1);
	while ((n = read(fd, piece, sizeof(piece))) > 0)
		buf_add(&b, piece, (size_t)n);
	close(fd);
	if (len != NULL)
		*len = b.len;
	return buf_steal(&b);
}

/* -- levels and the test sink ------------------------------------------------- */

static void
keep_last(void *arg, enum log_level level, const char *s, size_t n)
{
	struct buf *b = arg;

	buf_clear(b);
	buf_printf(b, "%d:", (int)level);
	buf_add(b, s, n);
}

static int evaluated;

static int
evaluate(void)
{
	return ++evaluated;
}

FIXTURE_TEST(test_levels)
{
	struct buf b = BUF_INIT;

	log_set_sink(keep_last, &b);
	log_event(LOG_LV_DEBUG, "delivered", NULL, LF_INT("n", evaluate()));
	assert_int_equal(b.len, 0);
	assert_int_equal(evaluated, 0);
	log_set_level(LOG_LV_DEBUG);
	errno = ENOENT;
	log_event(LOG_LV_DEBUG, "delivered", NULL, LF_INT("n", evaluate()));
	assert_int_equal(errno, ENOENT);
	assert_string_equal(buf_str(&b), "3:ts=2026-11-21T03:36:12.345Z "
	    "level=debug event=delivered n=1");
	log_set_level(LOG_LV_ERROR);
	log_event(LOG_LV_WARN, "warning", NULL);
	assert_non_null(strstr(buf_str(&b), "delivered"));
	log_set_sink(NULL, NULL);
	buf_done(&b);

	assert_string_equal(log_level_name(LOG_LV_WARN), "warn");
}

/* -- files -------------------------------------------------------------------- */

FIXTURE_TEST(test_file)
{
	char *path = in_dir("log"), *moved = in_dir("log.1"), *s, *cause = NULL;
	struct stat st;

	umask(0);
	assert_int_equal(log_open(path, &cause), 0);
	umask(022);
	log_event(LOG_LV_INFO, "one", NULL);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_int_equal(rename(path, moved), 0);
	log_event(LOG_LV_INFO, "two", NULL);
	assert_int_equal(log_reopen(&cause), 0);
	log_event(LOG_LV_INFO, "three", NULL);
	assert_int_equal(log_waiting_fd(), -1);

	/* a target that cannot be opened leaves the old one in use */
	assert_int_equal(log_open("/nonexistent/log", &cause), -1);
	assert_string_equal(cause,
	    "/nonexistent/log: No such file or directory");
	free(cause);
	assert_int_equal(log_open("log", &cause), -1);
	free(cause);
	assert_int_equal(log_open(dir, &cause), -1);
	free(cause);
	log_event(LOG_LV_INFO, "four", NULL);
	log_close();

	s = slurp(moved, NULL);
	assert_string_equal(s, "ts=2026-11-21T03:36:12.345Z level=info event=one\n"
	    "ts=2026-11-21T03:36:12.345Z level=info event=two\n");
	free(s);
	s = slurp(path, NULL);
	assert_string_equal(s,
	    "ts=2026-11-21T03:36:12.345Z level=info event=three\n"
	    "ts=2026-11-21T03:36:12.345Z level=info event=four\n");
	free(s);
	unlink(path);
	unlink(moved);
	free(path);
	free(moved);
}

/* A limit on the file's size acts like a full disk: writes are short. */
FIXTURE_TEST(test_short_write)
{
	static const char record[] = "ts=2026-11-21T03:36:12.345Z level=info event=one\n";
	char *path = in_dir("short"), *s;
	int status, i;
	pid_t pid;

	assert_int_equal(log_open(path, NULL), 0);
	pid = fork();
	if (pid == 0) {
		struct rlimit lim = { 170, 170 };

		signal(SIGXFSZ, SIG_IGN);
		setrlimit(RLIMIT_FSIZE, &lim);
		log_hold(true);
		for (i = 0; i < 20; i++)
			log_event(LOG_LV_INFO, "one", NULL);
		log_hold(false);
		status = log_dropped() == 17 ? 0 : 1;
		log_close();
		free(path);
		_exit(status);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	log_event(LOG_LV_INFO, "one", NULL);
	s = slurp(path, NULL);
	assert_int_equal(strlen(s), 4 * (sizeof(record) - 1));
	for (i = 0; i < 4; i++)
		assert_memory_equal(s + i * ((int)sizeof(record) - 1), record, sizeof(record) - 1);
	free(s);
	log_close();
	unlink(path);
	free(path);
}

FIXTURE_TEST(test_full_disk)
{
	char *path = in_dir("after"), *s, *cause = NULL;
	int i;

	assert_int_equal(log_open("/dev/full", &cause), 0);
	for (i = 0; i < 1000; i++)
		log_event(LOG_LV_INFO, "lost", NULL, LF_INT("i", i));
	assert_int_equal(log_waiting_fd(), -1);
	assert_int_equal(log_open(path, &cause), 0);
	log_event(LOG_LV_INFO, "kept", NULL);
	log_close();
	s = slurp(path, NULL);
	assert_string_equal(s, "ts=2026-11-21T03:36:12.345Z level=warn "
	    "event=warning reason=log_dropped dropped=1000\n"
	    "ts=2026-11-21T03:36:12.345Z level=info event=kept\n");
	free(s);
	unlink(path);
	free(path);
}

static size_t
size_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return (size_t)st.st_size;
}

/* Held records are written together and in order, at the latest with a warning. */
FIXTURE_TEST(test_held)
{
	char *path = in_dir("held"), *s;
	int i;

	assert_int_equal(log_open(path, NULL), 0);
	log_hold(true);
	log_event(LOG_LV_INFO, "one", NULL);
	assert_int_equal(size_of(path), 0);
	log_event(LOG_LV_WARN, "two", NULL);
	log_event(LOG_LV_INFO, "three", NULL);
	s = slurp(path, NULL);
	assert_string_equal(s, "ts=2026-11-21T03:36:12.345Z level=info event=one\n"
	    "ts=2026-11-21T03:36:12.345Z level=warn event=two\n");
	free(s);
	log_release();
	assert_int_equal(size_of(path), 49 + 49 + 51);
	for (i = 0; i < 10000; i++)
		log_event(LOG_LV_INFO, "three", NULL);
	assert_in_range(size_of(path), 9000 * 51, 10002 * 51);
	log_hold(false);
	assert_int_equal(size_of(path), 49 + 49 + 10001 * 51);
	log_event(LOG_LV_INFO, "three", NULL);
	assert_int_equal(size_of(path), 49 + 49 + 10002 * 51);
	log_close();
	unlink(path);
	free(path);
}

/*
 * When the log cannot be written, rqd reports that on stderr once, and once when it can
 * be written again.  A log that fails again within a minute is not reported again.
 */
FIXTURE_TEST(test_failure_is_reported)
{
	static const char failed[] = "level=error event=warning reason=log_failed target=",
	    resumed[] = "level=warn event=warning reason=log_resumed target=";
	char *path = in_dir("limited"), *err = in_dir("stderr"), *s, *p;
	struct rlimit was, small;
	int i, old = dup(2), fd = open(err, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);

	assert_int_equal(dup2(fd, 2), 2);
	close(fd);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
	assert_int_equal(log_open(path, NULL), 0);
	for (i = 0; i < 20; i++)	/* the limit below must leave room for stderr's file */
		log_event(LOG_LV_INFO, "fits", NULL);
	assert_null(log_failure());
	clock_fake_advance(2 * MINUTE);
	for (i = 0; i < 4; i++) {
		small = (struct rlimit){ size_of(path) + 10, was.rlim_max };
		assert_int_equal(truncate(err, 0), 0);
		assert_int_equal(write(2, "-\n", 2), 2);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
		log_event(LOG_LV_INFO, "lost", NULL);
		log_event(LOG_LV_INFO, "lost", NULL);
		assert_string_equal(log_failure(), strerror(EFBIG));
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
		s = slurp(err, NULL);
		p = strstr(s, failed);
		assert_true((p != NULL) == (i != 1));
		assert_true(p == NULL || strstr(p + 1, failed) == NULL);
		free(s);
		log_flush();	/* writes how many records were lost */
		assert_null(log_failure());
		s = slurp(err, NULL);
		assert_true((strstr(s, resumed) != NULL) == (i != 1));
		free(s);
		clock_fake_advance(i == 0 ? SEC : 2 * MINUTE);
	}
	log_close();
	dup2(old, 2);
	close(old);
	unlink(path);
	unlink(err);
	free(path);
	free(err);
}

/* Held records that are lost on a full disk are counted one by one. */
FIXTURE_TEST(test_held_on_a_full_disk)
{
	char *path = in_dir("after"), *s;
	int i;

	assert_int_equal(log_open("/dev/full", NULL), 0);
	log_hold(true);
	for (i = 0; i < 1000; i++)
		log_event(LOG_LV_INFO, "lost", NULL, LF_INT("i", i));
	assert_int_equal(log_open(path, NULL), 0);
	log_event(LOG_LV_INFO, "kept", NULL);
	log_hold(false);
	log_close();
	s = slurp(path, NULL);
	assert_string_equal(s, "ts=2026-11-21T03:36:12.345Z level=warn "
	    "event=warning reason=log_dropped dropped=1000\n"
	    "ts=2026-11-21T03:36:12.345Z level=info event=kept\n");
	free(s);
	unlink(path);
	free(path);
}

/* -- pipes and sockets on stderr ------------------------------------------------ */

static int
flags_of(int fd)
{
	return fcntl(fd, F_GETFL);
}

/* Replaces fd 2 by fd; returns the old one, for stderr_back(). */
static int
stderr_to(int fd)
{
	int old;

	fflush(stderr);
	old = fcntl(2, F_DUPFD_CLOEXEC, 10);
	assert_true(old != -1);
	assert_int_equal(dup2(fd, 2), 2);
	return old;
}

static void
stderr_back(int old)
{
	dup2(old, 2);
	close(old);
}

static int waiting_calls;

static void
count_waiting(void *arg UNUSED)
{
	waiting_calls++;
}

/* Appends to b what can be read without waiting. */
static void
read_some(int fd, struct buf *b)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char piece[3000];
	ssize_t n;

	while (poll(&p, 1, 0) == 1 && (n = read(fd, piece, sizeof(piece))) > 0)
		buf_add(b, piece, (size_t)n);
}

/*
 * Checks that each record is in the text, whole and in order, or that a report counts it
 * in its place.  *reports is the number of these.
 */
static void
check_records(char *s, long records, long *reports)
{
	long next = 0, n;
	char *nl, *p;

	*reports = 0;
	for (; (nl = strchr(s, '\n')) != NULL; s = nl + 1) {
		*nl = '\0';
		if ((p = strstr(s, "dropped=")) != NULL) {
			next += strtol(p + 8, NULL, 10);
			(*reports)++;
			continue;
		}
		p = strstr(s, " i=");
		assert_non_null(p);
		n = strtol(p + 3, NULL, 10);
		assert_int_equal(n, next);
		assert_non_null(strstr(s, "level=info event=flood"));
		assert_string_equal(s + strlen(s) - 5, "xxxxx");
		next++;
	}
	assert_string_equal(s, "");
	assert_int_equal(next, records);
}

/*
 * Floods a sink whose other end is r, then drains it piece by piece.  files: how many the log
 * may have open when it opens the sink.
 */
static void
flood(int r, int w, rlim_t files)
{
	struct buf got = BUF_INIT;
	struct rlimit was, few;
	long i, reports;
	char fill[3000];
	int before = flags_of(w), old = stderr_to(w);

	close(w);
	memset(fill, 'x', sizeof(fill));
	waiting_calls = 0;
	log_set_waiting_cb(count_waiting, NULL);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	few = (struct rlimit){ files < was.rlim_cur ? files : was.rlim_cur, was.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(log_open("stderr", NULL), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	for (i = 0; i < 5000; i++) {
		log_event(LOG_LV_INFO, "flood", NULL, LF_INT("i", i),
		    LF_MEM("fill", fill, 10 + unit_below(sizeof(fill) - 10)));
		/* Not at the end: what comes then is more than the sink holds. */
		if (i < 4000 && unit_below(500) == 0)
			read_some(r, &got);
	}
	assert_true(log_waiting_fd() != -1);
	assert_true(waiting_calls > 0);
	for (i = 0; log_waiting_fd() != -1; i++) {
		assert_true(i < 10000);
		read_some(r, &got);
		log_flush();
	}
	read_some(r, &got);	/* the last flush may have filled it */
	log_event(LOG_LV_INFO, "flood", NULL, LF_INT("i", 5000),
	    LF_STR("fill", "xxxxx"));
	read_some(r, &got);
	assert_int_equal(flags_of(2), before);
	stderr_back(old);
	check_records(buf_str(&got), 5001, &reports);
	assert_true(reports > 0);
	log_set_waiting_cb(NULL, NULL);
	log_close();
	buf_done(&got);
	close(r);
}

FIXTURE_TEST(test_blocked_pipe)
{
	int fd[2];

	assert_int_equal(pipe(fd), 0);
	flood(fd[0], fd[1], RLIM_INFINITY);
}

FIXTURE_TEST(test_blocked_socket)
{
	int fd[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	flood(fd[0], fd[1], RLIM_INFINITY);
}

/* The pipe cannot be opened again by /proc: the log polls before it writes. */
FIXTURE_TEST(test_polled_pipe)
{
	int fd[2];

	assert_int_equal(pipe(fd), 0);
	flood(fd[0], fd[1], 3);
}

/* A record larger than the backlog is dropped; a reader that has gone does no harm. */
FIXTURE_TEST(test_hopeless)
{
	struct buf got = BUF_INIT;
	char *big = xcalloc(1, LOG_BACKLOG);
	int fd[2], old;

	signal(SIGPIPE, SIG_IGN);
	memset(big, 'y', LOG_BACKLOG);
	assert_int_equal(pipe(fd), 0);
	old = stderr_to(fd[1]);
	close(fd[1]);
	assert_int_equal(log_open("stderr", NULL), 0);
	log_event(LOG_LV_INFO, "big", NULL, LF_MEM("v", big, LOG_BACKLOG));
	log_event(LOG_LV_INFO, "small", NULL);
	read_some(fd[0], &got);
	assert_string_equal(buf_str(&got), "ts=2026-11-21T03:36:12.345Z level=warn "
	    "event=warning reason=log_dropped dropped=1\n"
	    "ts=2026-11-21T03:36:12.345Z level=info event=small\n");
	close(fd[0]);
	log_event(LOG_LV_INFO, "gone", NULL);
	log_event(LOG_LV_INFO, "gone", NULL);
	assert_int_equal(log_waiting_fd(), -1);
	log_close();
	stderr_back(old);
	free(big);
	buf_done(&got);
}

FIXTURE_TEST(test_journal)
{
	struct buf got = BUF_INIT;
	struct stat st;
	char *env;
	int fd[2], old;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	old = stderr_to(fd[1]);
	close(fd[1]);
	assert_int_equal(fstat(2, &st), 0);
	env = xasprintf("%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	setenv("JOURNAL_STREAM", env, 1);
	log_journal_path = "/nonexistent";	/* only the stream, not the journal's socket */
	assert_int_equal(log_open("stderr", NULL), 0);
	log_event(LOG_LV_ERROR, "a", NULL);
	log_set_format(LOG_JSON);
	log_event(LOG_LV_INFO, "b", NULL);
	setenv("JOURNAL_STREAM", "1:2", 1);
	assert_int_equal(log_open("stderr", NULL), 0);
	log_event(LOG_LV_INFO, "c", NULL);
	log_close();
	stderr_back(old);
	unsetenv("JOURNAL_STREAM");
	read_some(fd[0], &got);
	assert_string_equal(buf_str(&got), "<3>level=error event=a\n"
	    "<6>{\"level\":\"info\",\"event\":\"b\"}\n"
	    "{\"ts\":\"2026-11-21T03:36:12.345Z\",\"level\":\"info\","
	    "\"event\":\"c\"}\n");
	free(env);
	buf_done(&got);
	close(fd[0]);
}

/* -- syslog --------------------------------------------------------------------- */

static int
bind_datagram(const char *path)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	unlink(path);
	assert_true(fd != -1);
	assert_true(strlen(path) < sizeof(sa.sun_path));
	strcpy(sa.sun_path, path);
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	return fd;
}

/* Reads a datagram, which must be this record. */
static void
take_syslog(int fd, const char *event)
{
	char got[256], want[64];
	ssize_t n = recv(fd, got, sizeof(got) - 1, 0);

	assert_true(n > 0);
	got[n] = '\0';
	snprintf(want, sizeof(want), "level=info event=%s", event);
	assert_memory_equal(got, "<30>", 4);
	assert_string_equal(got + n - strlen(want), want);
}

FIXTURE_TEST(test_syslog)
{
	char *path = in_dir("devlog"), *cause = NULL, *long_one = xcalloc(1, 230000), got[256];
	int fd = bind_datagram(path), i, n = 0, dropped = (int)log_dropped();

	log_syslog_path = path;
	assert_int_equal(log_open("syslog", &cause), 0);
	log_event(LOG_LV_INFO, "one", NULL);
	take_syslog(fd, "one");

	/* syslog is slow: records wait, and each is sent as one datagram */
	for (i = 0; i < 500; i++)
		log_event(LOG_LV_INFO, "many", NULL);
	assert_int_not_equal(log_waiting_fd(), -1);
	for (i = 0; i < 10000 && n < 500; i++) {
		while (recv(fd, got, sizeof(got), 0) > 0)
			n++;
		log_flush();
	}
	assert_int_equal(n, 500);

	/* a record too long for the socket is lost, and no other */
	memset(long_one, 'x', 230000);
	log_event(LOG_LV_INFO, "long", NULL, LF_MEM("x", long_one, 230000));
	assert_int_equal((int)log_dropped(), dropped + 1);
	log_event(LOG_LV_INFO, "next", NULL);
	assert_true(recv(fd, got, sizeof(got), 0) > 0);		/* dropped=1 */
	take_syslog(fd, "next");

	/* syslog goes away, and comes back */
	close(fd);
	log_event(LOG_LV_INFO, "gone", NULL);
	assert_int_equal((int)log_dropped(), dropped + 2);
	fd = bind_datagram(path);
	log_event(LOG_LV_INFO, "back", NULL);
	assert_true(recv(fd, got, sizeof(got), 0) > 0);
	take_syslog(fd, "back");
	close(fd);
	log_close();
	unlink(path);
	assert_int_equal(log_open("syslog", &cause), -1);
	assert_non_null(cause);
	free(cause);
	free(path);
	free(long_one);
}

/* -- the journal's own protocol ----------------------------------------------------- */

/*
 * Makes stderr look like the journal's stream; *fd is the journal's datagram socket.
 * journal_off() undoes it.
 */
static int
journal_on(int *fd, char **path)
{
	struct stat st;
	char *env;
	int pair[2], old;

	*path = in_dir("journal");
	*fd = bind_datagram(*path);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	old = stderr_to(pair[1]);
	close(pair[0]);
	close(pair[1]);
	assert_int_equal(fstat(2, &st), 0);
	env = xasprintf("%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	setenv("JOURNAL_STREAM", env, 1);
	free(env);
	log_journal_path = *path;
	assert_int_equal(log_open("stderr", NULL), 0);
	return old;
}

static void
journal_off(int old, int fd, char *path)
{
	log_close();
	stderr_back(old);
	unsetenv("JOURNAL_STREAM");
	log_journal_path = "/nonexistent";
	close(fd);
	unlink(path);
	free(path);
}

FIXTURE_TEST(test_journal_fields)
{
	static const char want[] = "PRIORITY=4\nMESSAGE=level=warn event=retry queue=orders "
	    "id=\"a b\" attempt=2 pid=77 status=1 duration=0.012 line=out error=\"x\\ny\"\n"
	    "RQD_EVENT=retry\nRQD_QUEUE=orders\nRQD_ID=a b\nRQD_ATTEMPT=2\nRQD_PID=77\n"
	    "RQD_STATUS=1\nRQD_DURATION=0.012\nRQD_ERROR\n\3\0\0\0\0\0\0\0x\ny\n";
	struct log_ctx ctx = { "orders", "a b", 2, 77, NULL };
	char *path, got[1024];
	const char *text;
	ssize_t n;
	int fd, old = journal_on(&fd, &path);

	log_event(LOG_LV_WARN, "retry", &ctx, LF_INT("status", 1), LF_USEC("duration", 12000),
	    LF_MEM("line", "out", 3), LF_STR("none", NULL), LF_STR("error", "x\ny"));
	n = recv(fd, got, sizeof(got), 0);
	assert_true(n > 0);
	assert_memory_equal(got, "SYSLOG_IDENTIFIER=", 18);
	text = memchr(got, '\n', (size_t)n);
	assert_non_null(text);
	assert_int_equal(got + n - (text + 1), (ssize_t)sizeof(want) - 1);
	assert_memory_equal(text + 1, want, sizeof(want) - 1);
	assert_int_equal(log_reopen(NULL), 0);
	log_set_format(LOG_JSON);
	log_event(LOG_LV_INFO, "b", NULL);
	n = recv(fd, got, sizeof(got) - 1, 0);
	got[n] = '\0';
	assert_non_null(strstr(got,
	    "\nMESSAGE={\"level\":\"info\",\"event\":\"b\"}\nRQD_EVENT=b\n"));
	journal_off(old, fd, path);
}

/* The journal does not read: rqd does not block, keeps records, and counts the lost ones. */
FIXTURE_TEST(test_journal_slow)
{
	char *path, got[1024], line[900];
	int fd, old = journal_on(&fd, &path), i, n = 0, told = 0;
	int dropped_before = (int)log_dropped();

	memset(line, 'x', sizeof(line));
	for (i = 0; i < 10000; i++)
		log_event(LOG_LV_INFO, "many", NULL, LF_MEM("line", line, sizeof(line)));
	assert_int_not_equal(log_waiting_fd(), -1);
	assert_true((int)log_dropped() > dropped_before);
	for (i = 0; i < 100000; i++) {
		ssize_t r = recv(fd, got, sizeof(got) - 1, 0);

		if (r == -1) {
			log_flush();
			if (log_waiting_fd() == -1 && told > 0)
				break;
			continue;
		}
		got[r] = '\0';
		told += strstr(got, "RQD_REASON=log_dropped\n") != NULL;
		n += strstr(got, "RQD_EVENT=many\n") != NULL;
	}
	assert_int_equal(told, 1);
	assert_true(n > 4000 && n < 10000);
	assert_int_equal(n + (int)log_dropped() - dropped_before, 10000);
	journal_off(old, fd, path);
}

/* Takes a message that brings a file, and returns what the journal would read of it. */
static char *
take_file(int sock, size_t *len)
{
	enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL };
	union { struct cmsghdr head; char room[CMSG_SPACE(sizeof(int))]; } u;
	char text[64], *record;
	struct iovec v = { text, sizeof(text) };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = &u,
	    .msg_controllen = sizeof(u) };
	struct stat st;
	int fd;

	assert_int_equal(recvmsg(sock, &m, MSG_CMSG_CLOEXEC), 0);
	assert_non_null(CMSG_FIRSTHDR(&m));
	assert_int_equal(u.head.cmsg_type, SCM_RIGHTS);
	memcpy(&fd, CMSG_DATA(&u.head), sizeof(fd));
	assert_int_equal(fcntl(fd, F_GET_SEALS) & SEALS, SEALS);
	assert_int_equal(fstat(fd, &st), 0);
	*len = (size_t)st.st_size;
	record = xcalloc(1, *len + 1);
	assert_int_equal(pread(fd, record, *len, 0), (ssize_t)*len);
	close(fd);
	return record;
}

/* A record too long for a datagram comes as a sealed file; none is lost. */
FIXTURE_TEST(test_journal_long)
{
	enum { LONG = 1000000 };
	char *path, *big = xmalloc(LONG), got[4096], *s, *p;
	int fd, old = journal_on(&fd, &path);
	uint64_t dropped = log_dropped();
	size_t len;

	memset(big, 'z', LONG);
	log_event(LOG_LV_INFO, "big", NULL, LF_INT("n", 7), LF_MEM("line", big, LONG));
	s = take_file(fd, &len);
	assert_memory_equal(s, "SYSLOG_IDENTIFIER=", 18);
	p = strstr(s, "\nPRIORITY=6\nMESSAGE=level=info event=big n=7 line=z");
	assert_non_null(p);
	assert_string_equal(strrchr(p, 'z'), "z\nRQD_EVENT=big\nRQD_N=7\n");
	assert_true(len > LONG);
	free(s);
	log_event(LOG_LV_INFO, "next", NULL);
	assert_true(recv(fd, got, sizeof(got), 0) > 0);
	assert_int_equal(log_dropped(), dropped);
	journal_off(old, fd, path);
	free(big);
}

/* Long records wait like others while the journal does not read. */
FIXTURE_TEST(test_journal_long_slow)
{
	enum { LONG = 300000, RECORDS = 12 };
	char *path, *big = xmalloc(LONG), got[4096], *s;
	int fd, old = journal_on(&fd, &path), i, n = 0, large = 0;
	uint64_t dropped = log_dropped();
	struct msghdr m = { .msg_control = NULL };
	size_t len;

	memset(big, 'z', LONG);
	for (i = 0; i < 500; i++)
		log_event(LOG_LV_INFO, "small", NULL);
	for (i = 0; i < RECORDS; i++)
		log_event(LOG_LV_INFO, "big", NULL, LF_MEM("line", big, LONG));
	assert_int_not_equal(log_waiting_fd(), -1);
	for (i = 0; i < 100000 && n + large < 500 + RECORDS; i++) {
		ssize_t r = recvmsg(fd, &m, MSG_PEEK | MSG_TRUNC);

		log_flush();
		if (r == -1)
			continue;
		if (r == 0) {
			s = take_file(fd, &len);
			assert_true(len > LONG);
			free(s);
			large++;
		} else {
			assert_true(recv(fd, got, sizeof(got), 0) > 0);
			n++;
		}
	}
	assert_int_equal(n, 500);
	assert_int_equal(large, RECORDS);
	assert_int_equal(log_dropped(), dropped);
	journal_off(old, fd, path);
	free(big);
}

static int
make_dir(void **state UNUSED)
{
	return mkdtemp(dir) == NULL ? -1 : 0;
}

static int
remove_dir(void **state UNUSED)
{
	return rmdir(dir);
}

int
main(void)
{
	return unit_run(make_dir, remove_dir);
}
