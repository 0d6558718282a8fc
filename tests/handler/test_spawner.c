/*
 * The spawner, and a main process that an attacker has taken over.  Whatever the orders,
 * it starts only the configured command of a configured queue, as that queue's user.
 * It sends no signal to other processes.  It opens only files that the configuration
 * names, and none that another user than root could replace.
 */
#include <config.h>

#include "../unit/unit.h"

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/trust.h"
#include "config/launch_config.h"
#include "handler/cgroup.h"
#include "handler/privilege.h"
#include "handler/rows.h"
#include "handler/spawner_wire.h"

#define PATIENCE	20000		/* milliseconds */

static struct {
	int			 orders;
	int			 files;
	struct spawner_reply	 replies[SPAWNER_REPLIES];	/* of the last datagram */
	size_t			 nreplies;	/* not taken yet: the last ones of have */
	size_t			 have;
	pid_t			 pid;		/* 0: it has ended */
	int			 config;	/* what came beside the answer to the load */
	char			 dir[64];
	uint32_t		 members;	/* of the next orders */
} t;

/* -- a spawner with four queues ----------------------------------------------------------- */

static char **
words(const char *a, const char *b, const char *c)
{
	char **list = xcalloc(4, sizeof(*list));

	list[0] = xstrdup(a);
	list[1] = b != NULL ? xstrdup(b) : NULL;
	list[2] = c != NULL ? xstrdup(c) : NULL;
	return list;
}

/* Prints its user, words and capabilities; the id "wait" makes it sleep. */
static struct queue_config *
queue(const char *user, int concurrency)
{
	struct queue_config *q = xcalloc(1, sizeof(*q));

	*q = (struct queue_config){
		.name = xstrdup("q"), .file = xstrdup("/none.conf"), .line = 1, .key = xstrdup("q"),
		.rate = xstrdup(""), .user = xstrdup(user), .group = xstrdup(""),
		.concurrency = concurrency,
		.directory = xstrdup("/"), .env_file = xstrdup(""), .umask = -1,
		.limit_nofile = 1024, .limit_as = CONFIG_LIMIT_INHERIT,
		.limit_cpu = CONFIG_LIMIT_INHERIT, .limit_fsize = CONFIG_LIMIT_INHERIT,
		.limit_nproc = CONFIG_LIMIT_INHERIT, .limit_core = CONFIG_LIMIT_INHERIT,
		.env = xcalloc(1, sizeof(char *)), .max_attempts = 25,
		.command = words("/bin/sh", "-c", "id -u; echo \"$RQD_QUEUE $RQD_ID $PATH\"; "
		    "grep -h '^Cap[IPEA]' /proc/self/status | cut -f 2 | sort -u; "
		    "[ \"$RQD_ID\" != wait ] || exec sleep 100"),
	};
	return q;
}

/*
 * A queue, one that others consume, one without user, and one whose env_file is missing; the
 * configuration is only the user of the last.
 */
static bool
load(int file, int rows, const struct rows *known, unsigned generation, void *arg UNUSED)
{
	struct config *c = config_new();
	char user[16] = "daemon";

	if (generation == 0)
		assert_int_equal(pwrite(file, user, sizeof(user), 0), sizeof(user));
	else
		assert_int_equal(pread(file, user, sizeof(user), 0), sizeof(user));

	c->file = xstrdup("/none.conf");
	c->redis.password_file = xasprintf("%s/password", t.dir);
	c->redis.tls_ca = xstrdup("");
	c->redis.tls_cert = xstrdup("");
	c->redis.tls_key = xstrdup("");
	c->redis.sentinel_password_file = xstrdup("");
	c->log.target = xasprintf("%s/log", t.dir);
	c->http.listen = xasprintf("unix:%s/http", t.dir);
	c->queues = xreallocarray(c->queues, 5, sizeof(*c->queues));
	c->queues[c->nqueues++] = queue("daemon", 1);
	c->queues[c->nqueues++] = queue("daemon", 0);
	c->queues[c->nqueues++] = queue("", 1);
	c->queues[c->nqueues] = queue(user, 1);
	free(c->queues[c->nqueues]->env_file);
	c->queues[c->nqueues++]->env_file = xasprintf("%s/env", t.dir);
	c->queues[c->nqueues] = NULL;
	load_rows(c, rows, known, generation);
	return true;
}

static void
write_file(const char *name, const char *what)
{
	char *path = xasprintf("%s/%s", t.dir, name);
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(what, f);
	(void)fclose(f);
	free(path);
}

static void	order(int op, uint32_t slot, uint32_t value, const char *bytes, size_t n,
		    const int *fds, size_t nfds);
static bool	answer(int fd, struct spawner_reply *, int *got);

static int
set_up(void **state UNUSED)
{
	int orders[2], files[2];
	pid_t self = getpid();
	struct spawner_reply r;

	cgroup_open(true);
	strcpy(t.dir, "/tmp/rqd-test.XXXXXX");
	assert_non_null(mkdtemp(t.dir));
	write_file("password", "secret\n");
	write_file("other", "other\n");
	t.nreplies = 0;
	t.members = 0;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, orders), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, files), 0);
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	t.pid = fork();
	if (t.pid == 0) {
		(void)close(orders[0]);
		(void)close(files[0]);
		spawner_serve(self, orders[1], files[1], load, NULL);
	}
	(void)close(orders[1]);
	(void)close(files[1]);
	t.orders = orders[0];
	t.files = files[0];
	order(SPAWNER_LOAD, 0, 0, NULL, 0, NULL, 0);
	assert_true(answer(t.orders, &r, &t.config));
	assert_int_equal(r.answer, SPAWNER_LOADED);
	assert_int_equal(r.generation, 1);
	return 0;
}

/* When the orders' socket closes, the spawner must end with status 0. */
static int
tear_down(void **state UNUSED)
{
	char *command = xasprintf("rm -r %s", t.dir);
	int status, r;

	(void)close(t.orders);
	(void)close(t.files);
	(void)close(t.config);
	r = t.pid == 0 || (waitpid(t.pid, &status, 0) == t.pid && status == 0) ? 0 : -1;
	while (waitpid(-1, NULL, 0) > 0)
		continue;
	r |= system(command);
	free(command);
	return r;
}

#define FIXTURE_TEST(name)	ROOT_TEST_WITH(name, set_up, tear_down)

/* -- orders and answers ---------------------------------------------------- */

static void
order_of(int generation, unsigned queue, int op, uint32_t slot, uint32_t value,
    const char *bytes, size_t n, const int *fds, size_t nfds)
{
	struct spawner_order head = { .op = (uint32_t)op, .slot = slot,
	    .generation = (uint32_t)generation, .queue = queue, .value = value,
	    .attempt = 1, .max_attempts = 25, .members = t.members, .size = (uint32_t)n };
	char all[sizeof(head) + 4096];

	assert_true(n <= 4096);
	memcpy(all, &head, sizeof(head));
	if (n > 0)
		memcpy(all + sizeof(head), bytes, n);
	assert_int_equal(spawner_send(op == SPAWNER_OPEN ? t.files : t.orders, all,
	    sizeof(head) + n, fds, nfds, 0), 0);
}

static void
order(int op, uint32_t slot, uint32_t value, const char *bytes, size_t n, const int *fds,
    size_t nfds)
{
	order_of(1, 0, op, slot, value, bytes, n, fds, nfds);
}

/* Takes an answer; false: the spawner has ended.  *got: its descriptor, or -1. */
static bool
answer(int fd, struct spawner_reply *r, int *got)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int fds[SPAWNER_FDS];
	size_t nfds = 0, i;
	ssize_t n;

	if (fd == t.files || t.nreplies == 0) {
		assert_int_equal(poll(&p, 1, PATIENCE), 1);
		n = spawner_receive(fd, t.replies, sizeof(t.replies), fds, &nfds, NULL, 0);
		if (n <= 0)
			return false;
		assert_int_equal((size_t)n % sizeof(*r), 0);
		t.nreplies = t.have = (size_t)n / sizeof(*r);
	}
	*r = t.replies[t.have - t.nreplies--];
	if (got != NULL)
		*got = nfds > 0 ? fds[0] : -1;
	for (i = got != NULL ? 1 : 0; i < nfds; i++)
		(void)close(fds[i]);
	return true;
}

/* Waits for the end of the handler in this slot. */
static void
expect_exited(uint32_t slot, struct spawner_reply *r)
{
	assert_true(answer(t.orders, r, NULL));
	assert_int_equal(r->answer, SPAWNER_EXITED);
	assert_int_equal(r->slot, slot);
}

/* Starts the queue with these words; returns the reading end of its stdout. */
static int
start(const char *bytes, size_t n, uint32_t slot, struct spawner_reply *r)
{
	int out[2];

	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	order(SPAWNER_START, slot, 2, bytes, n, &out[1], 1);
	(void)close(out[1]);
	assert_true(answer(t.orders, r, NULL));
	return out[0];
}

static char *
read_all(int fd)
{
	static char text[4096];
	size_t len = 0;
	ssize_t n;

	while ((n = read(fd, text + len, sizeof(text) - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = '\0';
	(void)close(fd);
	return text;
}

static void
expect_end(void)
{
	struct spawner_reply r;

	assert_false(answer(t.orders, &r, NULL));
}

/* -- tests ----------------------------------------------------------------- */

FIXTURE_TEST(what_is_configured_is_started)
{
	static const char w[] = "7";
	struct spawner_reply r;
	int fd = start(w, sizeof(w), 5, &r);
	pid_t pid = r.pid;

	assert_int_equal(r.answer, SPAWNER_STARTED);
	assert_int_equal(r.slot, 5);
	assert_string_equal(read_all(fd),
	    "1\nq 7 /usr/local/bin:/usr/bin:/bin\n0000000000000000\n");
	expect_exited(5, &r);
	assert_int_equal(r.status, 0);
	assert_int_equal(r.leftovers, 0);
	assert_int_equal(kill(pid, 0), -1);		/* it was reaped */
}

/*
 * An order for a queue or generation that does not exist starts nothing; nor one for a queue
 * that others consume, or that does not say its user.
 */
FIXTURE_TEST(nothing_else_is_started)
{
	static const unsigned queues[] = { 1, 2, 4, 0xffffffff, 70000, 0 };
	struct spawner_reply r;
	size_t i;

	for (i = 0; i < ARRAY_LEN(queues); i++) {
		order_of(queues[i] == 0 ? 99 : 1, queues[i], SPAWNER_START, 1, 0, NULL, 0, NULL, 0);
		assert_true(answer(t.orders, &r, NULL));
		assert_int_equal(r.answer, SPAWNER_EXITED);
	}
	order(SPAWNER_RETIRE, 0, 0, NULL, 0, NULL, 0);	/* its only generation */
	order(SPAWNER_START, 1, 0, NULL, 0, NULL, 0);
	assert_true(answer(t.orders, &r, NULL));
	assert_int_equal(r.answer, SPAWNER_EXITED);
}

/* Bytes that are neither an id nor an id and a channel end the spawner. */
static void
expect_refused(const char *bytes, size_t n)
{
	order(SPAWNER_START, 1, 0, bytes, n, NULL, 0);
	expect_end();
}

FIXTURE_TEST(no_third_word)
{
	static const char w[] = "7\0news\0LD_PRELOAD=/tmp/x.so";

	expect_refused(w, sizeof(w));
}

/* The row says how many variables a message has; an order cannot name one. */
FIXTURE_TEST(no_member_that_is_not_in_the_row)
{
	static const char w[] = "7\0=x";
	struct spawner_reply r;

	t.members = 1;
	order(SPAWNER_START, 1, 0, w, sizeof(w), NULL, 0);
	expect_exited(1, &r);
	assert_int_equal(r.error, EINVAL);
	assert_int_equal(r.step, STEP_SPAWNER);
}

FIXTURE_TEST(no_member_with_a_name)
{
	static const char w[] = "7\0LD_PRELOAD=/tmp/x.so";

	t.members = 1;
	expect_refused(w, sizeof(w));
}

FIXTURE_TEST(no_word_without_an_end)
{
	expect_refused("7\0news", 6);
}

FIXTURE_TEST(no_empty_id)
{
	expect_refused("\0news", 6);
}

FIXTURE_TEST(no_id_with_control_characters)
{
	static const char w[] = "7\nRQD_ATTEMPT=1";

	expect_refused(w, sizeof(w));
}

/* A slot in use is not used again, or its first handler would outlive the daemon. */
FIXTURE_TEST(a_slot_is_used_once)
{
	static const char w[] = "wait";
	struct spawner_reply r, second;
	int fd = start(w, sizeof(w), 3, &r);

	(void)close(start(w, sizeof(w), 3, &second));
	assert_int_equal(second.answer, SPAWNER_EXITED);
	order(SPAWNER_SIGNAL, 3, SIGKILL, NULL, 0, NULL, 0);
	(void)read_all(fd);
	expect_exited(3, &r);
	assert_int_equal(r.status, SIGKILL);
}

/* Where the spawner has no room for a descriptor, a start fails as it would for want of memory. */
FIXTURE_TEST(a_shortage_of_descriptors_ends_nobody)
{
	static const char w[] = "wait";
	struct rlimit none = { 3, 0 }, old;
	struct spawner_reply r;
	int fd;

	assert_int_equal(prlimit(t.pid, RLIMIT_NOFILE, NULL, &old), 0);
	none.rlim_max = old.rlim_max;
	assert_int_equal(prlimit(t.pid, RLIMIT_NOFILE, &none, NULL), 0);
	for (int i = 0; i < 3; i++) {
		(void)close(start(w, sizeof(w), 3, &r));
		assert_int_equal(r.answer, SPAWNER_EXITED);
		assert_int_equal(r.slot, 3);
		assert_int_equal(r.error, EMFILE);
		assert_int_equal(r.step, STEP_SPAWNER);
	}
	order(SPAWNER_LOAD, 0, 0, NULL, 0, NULL, 0);
	assert_true(answer(t.orders, &r, NULL));
	assert_int_equal(r.answer, SPAWNER_LOADED);
	assert_int_equal(r.generation, 0);
	assert_int_equal(r.error, EMFILE);
	assert_int_equal(prlimit(t.pid, RLIMIT_NOFILE, &old, NULL), 0);
	fd = start(w, sizeof(w), 3, &r);
	assert_int_equal(r.answer, SPAWNER_STARTED);
	order(SPAWNER_SIGNAL, 3, SIGKILL, NULL, 0, NULL, 0);
	expect_exited(3, &r);
	(void)close(fd);
}

/* A TCP socket whose close(2) waits 100 s, as long as nobody reads at its other end. */
static int
make_lingering(int *listener)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	struct linger linger = { 1, 100 };
	socklen_t size = sizeof(sin);
	static char bytes[65536];
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(*listener, (struct sockaddr *)&sin, sizeof(sin)), 0);
	assert_int_equal(listen(*listener, 1), 0);
	assert_int_equal(getsockname(*listener, (struct sockaddr *)&sin, &size), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		continue;
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	return fd;
}

/* The spawner ends at once: neither it nor the kernel closes such a descriptor before. */
static void
expect_no_wait(uint32_t bits, size_t n)
{
	int listener, fd = make_lingering(&listener), fds[SPAWNER_FDS_MAX];

	for (size_t i = 0; i < n; i++)
		fds[i] = fd;
	/* The last to close it must be the spawner. */
	assert_int_equal(kill(t.pid, SIGSTOP), 0);
	order(SPAWNER_START, 1, bits, "wait", 5, fds, n);
	(void)close(fd);
	assert_int_equal(kill(t.pid, SIGCONT), 0);
	expect_end();
	(void)close(listener);
}

FIXTURE_TEST(no_descriptor_that_may_wait)
{
	expect_no_wait(2, 1);
}

FIXTURE_TEST(no_descriptors_that_may_wait)
{
	expect_no_wait(15, 4);
}

FIXTURE_TEST(no_more_descriptors_that_may_wait)
{
	expect_no_wait(15, SPAWNER_FDS_MAX);
}

/* No order signals a process that the spawner has not started. */
FIXTURE_TEST(nobody_else_is_signalled)
{
	pid_t other = fork();
	uint32_t i;

	if (other == 0) {
		(void)pause();
		_exit(0);
	}
	for (i = 0; i < 100; i++)
		order(SPAWNER_SIGNAL, i, SIGKILL, NULL, 0, NULL, 0);
	what_is_configured_is_started(NULL);		/* so the orders above were read */
	assert_int_equal(waitpid(other, NULL, WNOHANG), 0);
	(void)kill(other, SIGKILL);
	assert_int_equal(waitpid(other, NULL, 0), other);
}

/* Sends an order for a file, which must end with this error; returns the descriptor or -1. */
static int
ask(enum lend how, const char *path, int error)
{
	char *file = xasprintf("%c%s", how, path);
	static uint32_t number;
	struct spawner_reply r;
	int fd;

	order(SPAWNER_OPEN, ++number, 0, file, strlen(file), NULL, 0);
	assert_true(answer(t.files, &r, &fd));
	assert_int_equal(r.answer, SPAWNER_OPENED);
	assert_int_equal(r.slot, number);
	assert_int_equal(r.error, error);
	assert_int_equal(fd == -1, error != 0 || how == LEND_REMOVE);
	free(file);
	return fd;
}

static void
try_file(const char *path, int error)
{
	int fd = ask(LEND_READ, path, error);

	if (fd != -1) {
		(void)lseek(fd, 0, SEEK_SET);
		assert_string_equal(read_all(fd), "secret\n");
	}
}

FIXTURE_TEST(only_named_files_are_opened)
{
	char *path = xasprintf("%s/password", t.dir), *other = xasprintf("%s/other", t.dir);
	char *dots = xasprintf("%s/../%s/password", t.dir, t.dir + 5);

	try_file(path, 0);
	try_file("/etc/shadow", EACCES);
	try_file(other, EACCES);
	try_file(dots, EACCES);
	free(path);
	free(other);
	free(dots);
}

/* The spawner opens nothing in a folder that others than root may change. */
FIXTURE_TEST(nothing_is_opened_where_others_write)
{
	char *path = xasprintf("%s/password", t.dir);

	assert_int_equal(chmod(t.dir, 0707), 0);
	try_file(path, EPERM);
	assert_int_equal(chmod(t.dir, 0700), 0);
	assert_int_equal(chown(t.dir, 1, 0), 0);
	try_file(path, EPERM);
	assert_int_equal(chown(t.dir, 0, 0), 0);
	try_file(path, 0);
	free(path);
}

FIXTURE_TEST(the_log_is_appended_to)
{
	char *path = xasprintf("%s/log", t.dir), *other = xasprintf("%s/other", t.dir);
	char text[8] = "";
	struct stat st;
	int fd = ask(LEND_LOG, path, 0), again = ask(LEND_LOG, path, 0);

	assert_int_equal(write(fd, "ab", 2), 2);
	assert_int_equal(write(again, "cd", 2), 2);
	(void)close(fd);
	(void)close(again);
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	assert_int_equal(read(fd, text, sizeof(text)), 4);
	assert_string_equal(text, "abcd");
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
	assert_int_equal(st.st_uid, 0);
	(void)close(fd);
	(void)ask(LEND_LOG, other, EACCES);		/* no generation names it */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink(other, path), 0);
	(void)ask(LEND_LOG, path, ELOOP);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(chown(t.dir, 1, 0), 0);
	(void)ask(LEND_LOG, path, EPERM);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(chown(t.dir, 0, 0), 0);
	free(path);
	free(other);
}

static bool
answers(const char *path)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool does;

	assert_true(strlen(path) < sizeof(sun.sun_path));
	strcpy(sun.sun_path, path);
	does = connect(fd, (struct sockaddr *)&sun, sizeof(sun)) == 0;
	(void)close(fd);
	return does;
}

/* The child that has made the socket may still be on its way to its end. */
static void
close_listener(int fd, const char *path)
{
	(void)close(fd);
	for (int i = 0; i < PATIENCE && answers(path); i++)
		(void)usleep(1000);
}

FIXTURE_TEST(the_socket_is_listened_on)
{
	char *path = xasprintf("%s/http", t.dir);
	struct stat st;
	int fd = ask(LEND_LISTEN, path, 0);

	assert_true(answers(path));
	assert_int_equal(lstat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0660);
	(void)ask(LEND_LISTEN, path, EADDRINUSE);
	assert_true(answers(path));
	close_listener(fd, path);
	fd = ask(LEND_LISTEN, path, 0);			/* replaces a socket that nobody serves */
	assert_true(answers(path));
	close_listener(fd, path);
	(void)ask(LEND_REMOVE, path, 0);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(chmod(t.dir, 0707), 0);
	(void)ask(LEND_LISTEN, path, EPERM);
	assert_int_equal(access(path, F_OK), -1);
	free(path);
}

/* What a file may be opened for is part of its name. */
FIXTURE_TEST(no_file_for_another_purpose)
{
	char *path = xasprintf("%s/password", t.dir), *log = xasprintf("%s/log", t.dir);

	(void)ask(LEND_LOG, path, EACCES);
	(void)ask(LEND_REMOVE, path, EACCES);
	(void)ask(LEND_READ, log, EACCES);
	free(path);
	free(log);
}

FIXTURE_TEST(no_relative_path)
{
	order(SPAWNER_OPEN, 0, 0, "retc/shadow", 11, NULL, 0);
	expect_end();
}

/* Answers that nobody reads do not hold the spawner up at its end. */
FIXTURE_TEST(answers_may_be_unread)
{
	struct spawner_order head = { .op = SPAWNER_START, .generation = 99 };
	unsigned n = 0;

	/*
	 * A minute for a spawner that gets no processor.  The kernel holds 277 datagrams each
	 * way, so of 500 orders the spawner has read some, with its answers unread.
	 */
	for (int quiet = 0; quiet < 20 || (n <= 500 && quiet < 6000); ) {
		if (spawner_send(t.orders, &head, sizeof(head), NULL, 0, MSG_DONTWAIT) == 0) {
			n++;
			quiet = 0;
			continue;
		}
		assert_int_equal(errno, EAGAIN);
		(void)usleep(10000);
		quiet++;
	}
	assert_true(n > 500);		/* tear_down() wants the spawner to end */
}

/* Random bytes, and orders with random members: the spawner answers, or ends with status 0. */
FIXTURE_TEST(random_bytes)
{
	struct spawner_order head;
	char bytes[128];
	struct spawner_reply r;
	unsigned i;
	size_t n, k;

	for (i = 0; i < 20; i++) {
		n = random_u64() % sizeof(bytes) + 1;
		for (k = 0; k < n; k++)
			bytes[k] = (char)random_u64();
		if (n >= sizeof(head)) {
			memcpy(&head, bytes, sizeof(head));
			head.op %= 12;
			head.slot %= 70000;
			head.generation %= 3;
			head.queue %= 3;
			head.size = (uint32_t)(n - sizeof(head));
			memcpy(bytes, &head, sizeof(head));
		}
		if (spawner_send(t.orders, bytes, n, NULL, 0, 0) == -1)
			break;
	}
	(void)shutdown(t.orders, SHUT_WR);
	while (answer(t.orders, &r, NULL))
		continue;
}

/* The spawner ends with the main process, even if another process has its sockets. */
FIXTURE_TEST(it_ends_with_the_main_process)
{
	struct { pid_t spawner, heir; } got;
	int fd[2], i;
	pid_t pid, ended = 0;
	char *command;

	assert_int_equal(pipe(fd), 0);
	pid = fork();
	if (pid == 0) {
		if (set_up(NULL) == -1)
			_exit(1);
		command = xasprintf("rm -r %s", t.dir);
		(void)!system(command);
		got.spawner = t.pid;
		got.heir = fork();
		if (got.heir == 0)
			(void)pause();
		(void)!write(fd[1], &got, sizeof(got));
		_exit(0);
	}
	assert_int_equal(read(fd[0], &got, sizeof(got)), sizeof(got));
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	for (i = 0; i < PATIENCE / 10 && ended == 0; i++) {
		ended = waitpid(got.spawner, NULL, WNOHANG);
		(void)usleep(10000);
	}
	(void)kill(got.heir, SIGKILL);
	assert_int_equal(waitpid(got.heir, NULL, 0), got.heir);
	assert_int_equal(ended, got.spawner);
	(void)close(fd[0]);
	(void)close(fd[1]);
}

/* -- what the main process can do by itself -------------------------------- */

static void *
nothing(void *arg)
{
	return arg;
}

/*
 * In a child: drops privileges as the main process does, then tries what an attacker would.
 * Returns 0 if nothing succeeds, else the number of what did.
 */
static int
try_everything(void)
{
	char *const argv[] = { (char *)"/bin/true", NULL };
	struct addrinfo *addresses;
	char *cause = NULL;
	pthread_t thread;

	if (privilege_drop(&cause) == -1 || privilege_seal(&cause) == -1)
		return 1;
	if (getuid() == 0 || geteuid() == 0 || setuid(0) != -1 || setresuid(0, 0, 0) != -1 ||
	    setgroups(0, NULL) != -1)
		return 2;
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		return 3;
#ifndef RQD_SANITIZERS
	if (prctl(PR_GET_DUMPABLE) != 0)
		return 9;
#endif
	if (kill(t.pid, 0) != -1 || errno != EPERM)
		return 4;
	if (ptrace(PTRACE_ATTACH, t.pid, NULL, NULL) != -1)
		return 5;
#ifdef HAVE_SECCOMP
	if (prctl(PR_GET_SECCOMP) != 2)
		return 6;
	if (execv(argv[0], argv) != -1 || errno != EPERM)
		return 7;
	if (syscall(SYS_execveat, AT_FDCWD, argv[0], argv, argv + 1, 0) != -1 || errno != EPERM)
		return 8;
#ifndef RQD_SANITIZERS
	/* In a user namespace of its own, the process would be root again. */
	if (syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0) != -1 || errno != EPERM)
		return 10;
	if (fork() != -1 || errno != EPERM || vfork() != -1 || errno != EPERM)
		return 13;
#endif
	if (syscall(SYS_clone3, NULL, 0) != -1 || errno != ENOSYS)
		return 11;
	if (pthread_create(&thread, NULL, nothing, NULL) != 0 || pthread_join(thread, NULL) != 0)
		return 14;
	if (socket(AF_VSOCK, SOCK_STREAM, 0) != -1 || errno != EAFNOSUPPORT ||
	    socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER) != -1 || errno != EAFNOSUPPORT)
		return 15;
	if (socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE) == -1 ||
	    getaddrinfo("localhost", "6379", NULL, &addresses) != 0)
		return 16;
	freeaddrinfo(addresses);
#ifdef SYS_modify_ldt
	if (syscall(SYS_modify_ldt, 0, NULL, 0) != -1 || errno != EPERM)
		return 17;
#endif
	/* This is no terminal: without the seccomp filter the error would be ENOTTY. */
	if (ioctl(t.orders, TIOCSTI, "x") != -1 || errno != EPERM)
		return 12;
#else
	(void)argv;
	(void)thread;
	(void)addresses;
	(void)nothing;
#endif
	return 0;
}

FIXTURE_TEST(the_main_process_is_powerless)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(try_everything());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* -- pids that the kernel has given to another process ------------------------------------- */

/* Forks a child with that pid, in a session of its own; -1: this machine cannot do that. */
static pid_t
take_number(pid_t number)
{
	struct clone_args args = { .exit_signal = SIGCHLD, .set_tid = (uintptr_t)&number,
	    .set_tid_size = 1 };
	pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));

	if (pid == 0)
		(void)setsid();
	return pid;
}

/* Returns the pid of a handler that has ended. */
static pid_t
number_of_a_dead_handler(uint32_t slot)
{
	static const char w[] = "7";
	struct spawner_reply r;
	pid_t pid;

	(void)read_all(start(w, sizeof(w), slot, &r));
	assert_int_equal(r.answer, SPAWNER_STARTED);
	pid = r.pid;
	expect_exited(slot, &r);
	return pid;
}

FIXTURE_TEST(a_number_of_another_is_not_swept)
{
	pid_t number = number_of_a_dead_handler(4), other;
	int status;

	other = take_number(number);
	if (other == 0) {
		(void)pause();
		_exit(0);
	}
	if (other == -1)
		skip();
	assert_int_equal(shutdown(t.orders, SHUT_RDWR), 0);
	assert_int_equal(waitpid(t.pid, &status, 0), t.pid);
	assert_int_equal(waitpid(other, NULL, WNOHANG), 0);
	(void)kill(other, SIGKILL);
	assert_int_equal(waitpid(other, NULL, 0), other);
	t.pid = 0;
}

/*
 * Makes a session with this number whose leader has ended, and one process stays, like a
 * daemon.  Returns that process, or -1; *alive is readable (end of file) when it ends.
 */
static pid_t
foreign_group(pid_t number, int *alive)
{
	int fd[2];
	pid_t pid, got = -1;

	assert_int_equal(pipe(fd), 0);
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
	pid = take_number(number);
	if (pid == 0) {
		got = fork();
		if (got == 0) {
			(void)close(fd[0]);
			while (getppid() == number)
				(void)usleep(1000);
			got = getpid();
			(void)!write(fd[1], &got, sizeof(got));
			(void)pause();
		}
		_exit(0);
	}
	(void)close(fd[1]);
	if (pid != -1) {
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		assert_int_equal(read(fd[0], &got, sizeof(got)), sizeof(got));
	}
	*alive = fd[0];
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	return got;
}

FIXTURE_TEST(a_group_of_another_gets_no_signal)
{
	struct pollfd p = { .events = POLLIN };
	pid_t number = number_of_a_dead_handler(4), other = foreign_group(number, &p.fd);

	if (other == -1)
		skip();
	order(SPAWNER_SIGNAL, 4, SIGKILL, NULL, 0, NULL, 0);
	what_is_configured_is_started(NULL);		/* so the order above was read */
	assert_int_equal(poll(&p, 1, 300), 0);
	(void)kill(other, SIGKILL);
	assert_int_equal(poll(&p, 1, PATIENCE), 1);
	(void)close(p.fd);
}

/* The descriptor that it gets beside the answer to a load leads to no file of the spawner's. */
FIXTURE_TEST(the_main_process_cannot_change_the_configuration)
{
	static const char root[16] = "root";
	struct spawner_reply r;
	int out[2];

	assert_int_equal(pwrite(t.config, root, sizeof(root), 0), sizeof(root));
	write_file("env", "A=1\n");
	do {
		assert_int_equal(pipe2(out, O_CLOEXEC), 0);
		order_of(1, 3, SPAWNER_START, 1, 2, NULL, 0, &out[1], 1);
		(void)close(out[1]);
		assert_true(answer(t.orders, &r, NULL));
		if (r.answer == SPAWNER_EXITED) {
			assert_int_equal(r.error, EACCES);
			(void)close(out[0]);
			(void)usleep(10000);
		}
	} while (r.answer == SPAWNER_EXITED);
	assert_int_equal(r.answer, SPAWNER_STARTED);
	assert_true(strncmp(read_all(out[0]), "1\n", 2) == 0);
	expect_exited(1, &r);
}

/* -- a generation without a use --------------------------------------------------------------- */

static int	unread_error;

static void
unread_started(struct subprocess *p UNUSED)
{
}

static void
unread_exited(struct subprocess *p UNUSED, const struct spawner_exit *x)
{
	unread_error = x->error;
}

/* What the main process cannot read, such as that of load(), must not stay in the spawner. */
TEST(an_unread_configuration_is_retired)
{
	static const struct subprocess_events events = { unread_started, unread_exited };
	static const int none[SPAWN_FDS] = { -1, -1, -1, -1 };
	const struct config_source source = { .file = NULL };
	struct spawner *s = spawner_fork(load, NULL);
	struct config *config = config_new();
	struct config_report report = { .errors.n = 0 };
	struct spawner_loaded loaded;
	struct subprocess p;

	assert_int_equal(spawner_load_now(s, &loaded), 0);
	assert_int_equal(loaded.generation, 1);
	assert_null(launch_config_take(&source, s, &loaded, &report));
	assert_int_equal(report.errors.n, 1);
	config_report_done(&report);
	config->generation = 1;
	config->queues = xreallocarray(config->queues, 2, sizeof(*config->queues));
	config->queues[config->nqueues++] = queue("daemon", 1);
	config->queues[1] = NULL;
	assert_int_equal(subprocess_start(&p, s, config, config->queues[0], NULL, 0, none,
	    &events), 0);
	assert_int_equal(spawner_load_now(s, &loaded), 0);	/* its answer comes behind */
	(void)close(loaded.config);
	assert_int_equal(unread_error, EINVAL);
	subprocess_done(&p);
	spawner_stop(s);
	config_unref(config);
}

/* -- cgroups, where this machine has them ------------------------------------------------------ */

/* A child that sleeps in this cgroup. */
static pid_t
sleeper(int dir)
{
	int fd = openat(dir, "cgroup.procs", O_WRONLY | O_CLOEXEC);
	char text[32];
	pid_t pid = fork();

	if (pid == 0) {
		(void)pause();
		_exit(1);
	}
	assert_int_not_equal(fd, -1);
	(void)snprintf(text, sizeof(text), "%d", (int)pid);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	(void)close(fd);
	return pid;
}

/* Takes cgroups until it gets this one, which must come as soon as it is empty. */
static bool
comes_back(const struct cgroup *wanted)
{
	struct cgroup *taken[100];
	usec_t end = clock_mono() + PATIENCE * MSEC;
	size_t n = 0;
	int dir;

	while (n < ARRAY_LEN(taken) && clock_mono() < end) {
		taken[n] = cgroup_take(1, 0, 0, &dir);
		assert_non_null(taken[n]);
		(void)close(dir);
		if (taken[n++] == wanted)
			break;
		(void)usleep(10000);
	}
	for (size_t i = 0; i < n; i++) {
		if (taken[i] != wanted)
			(void)cgroup_leave(taken[i], true, false);
	}
	return n > 0 && taken[n - 1] == wanted;
}

/*
 * Made by hand in the form of memory.stat of Linux 6.1, without the lines that do not
 * count: no kernel has written these figures.
 */
TEST(what_a_run_leaves_charged)
{
	/* It has read large files: their pages can be had back. */
	static const char files[] = "anon 0\nfile 60170240\nkernel 811008\nkernel_stack 0\n"
	    "sock 0\nshmem 0\nfile_mapped 0\nfile_dirty 0\n";
	/* 40,000 empty files in a tmpfs: inodes and names, no page. */
	static const char inodes[] = "anon 0\nfile 0\nkernel 48234496\nsock 0\nshmem 0\n"
	    "slab_reclaimable 24117248\nslab 48103424\n";
	/* 20 MB in /dev/shm, which count as files, too. */
	static const char shmem[] = "anon 0\nfile 31457280\nkernel 204800\nshmem 20971520\n";

	assert_int_equal(cgroup_unreclaimable("60981248\n", files), 811008);
	assert_int_equal(cgroup_unreclaimable("48234496\n", inodes), 48234496);
	assert_int_equal(cgroup_unreclaimable("31662080\n", shmem), 21176320);
	assert_int_equal(cgroup_unreclaimable("4096\n", files), 0);
	assert_int_equal(cgroup_unreclaimable("4096\n", ""), 4096);
	assert_int_equal(cgroup_unreclaimable("", ""), 0);
}

ROOT_TEST(a_cgroup_is_used_again_when_it_is_empty)
{
	struct cgroup *a, *b, *c;
	struct cgroup_end end;
	int dir, other, status;
	pid_t pid;

	cgroup_open(true);
	if (cgroup_lacks(CGROUP_RUNS) != NULL)
		skip();
	a = cgroup_take(1, 0, 0, &dir);
	assert_non_null(a);
	b = cgroup_take(1, 0, 0, &other);
	assert_non_null(b);
	assert_ptr_not_equal(a, b);
	(void)close(other);
	end = cgroup_leave(b, true, true);
	assert_false(end.left != 0 || end.oom);
	assert_ptr_equal(cgroup_take(1, 0, 0, &other), b);
	(void)close(other);
	(void)cgroup_leave(b, true, false);

	/* Another user never gets it: what runs have left is charged to it. */
	c = cgroup_take(2, 0, 0, &other);
	assert_non_null(c);
	assert_ptr_not_equal(c, b);
	(void)close(other);
	(void)cgroup_leave(c, true, false);
	assert_ptr_equal(cgroup_take(1, 0, 0, &other), b);
	(void)close(other);
	(void)cgroup_leave(b, true, false);

	/* What is left may go on: nobody else gets the cgroup meanwhile. */
	pid = sleeper(dir);
	end = cgroup_leave(a, false, false);
	assert_int_equal(end.left, 1);
	assert_ptr_equal(cgroup_take(1, 0, 0, &other), b);
	(void)close(other);
	(void)cgroup_leave(b, true, false);
	assert_int_equal(kill(pid, SIGTERM), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	assert_true(comes_back(a));

	/* Or it is killed. */
	pid = sleeper(dir);
	end = cgroup_leave(a, true, false);
	assert_int_equal(end.left, 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	(void)close(dir);
	cgroup_close();
}
