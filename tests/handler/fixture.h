/*
 * Fixture for tests of handlers: a loop, a spawner, a configuration of one queue, and messages
 * with their results.  If a test changes the queue while no message runs, the next start gets
 * another spawner, which has the change.  A test fails if it leaves a child, a descriptor, or
 * (with sanitizers) memory.
 */
#pragma once

#include <config.h>

#include "../unit/unit.h"

#include <sys/wait.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>

#include "base/buf.h"
#include "handler/handler.h"
#include "handler/rows.h"
#include "handler/spawner.h"
#include "loop/child.h"
#include "loop/loop.h"

#define PATIENCE	(60 * SEC)	/* only a test that fails waits so long */

/* Lengthens a time for sanitizers, and by the factor RQD_SLOW for slower tools. */
static inline usec_t
slow(usec_t span)
{
	const char *factor = getenv("RQD_SLOW");

#ifdef RQD_SANITIZERS
	span *= 3;
#endif
	return factor != NULL ? span * atoi(factor) : span;
}

/* The result of one message; its address is the message's queue_data. */
struct got {
	struct message	*msg;
	struct run	*run;
	int		 done;		/* calls of done() */
	struct result	 result;	/* owned */
	usec_t		 took;		/* from start to done() */
	usec_t		 started;
};

static struct {
	struct loop		*loop;
	struct config		*config;
	struct queue_config	*q;	/* config's only queue */
	struct handler_env	 env;
	struct handler		*handler;
	int			 done;	/* calls of done() in all */
	int			 closed;
	struct buf		 out[3];	/* lines of 1 and 2, "\n" after each */
	unsigned		 lines;
	unsigned		 cut_lines;
	size_t			 longest;
	unsigned		 cuts;	/* calls of output_cut() */
	pid_t			 out_pid;	/* of the last line */
	char			 out_id[MESSAGE_ID_MAX + 1];
	unsigned		 out_attempt;
	int			 fds;	/* open before the test */
	struct queue_config	 known;	/* as the spawner has it */
	unsigned	 changes;	/* of the queue's strings that it does not have */
	int		 running;	/* messages that are not done */
	const char	*channel;	/* of the next messages; NULL: they have none */
} t;

static inline int
count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(dir) != NULL)
		n++;
	(void)closedir(dir);
	return n;
}

static void
got_done(struct message *msg, struct result *result, void *arg UNUSED)
{
	struct got *g = msg->queue_data;

	assert_ptr_equal(g->msg, msg);
	g->done++;
	g->result = *result;
	g->took = clock_mono() - g->started;
	g->run = NULL;
	t.done++;
	t.running--;
}

static void
got_output(const struct log_ctx *ctx, int fd, const char *p, size_t n, bool cut,
    void *arg UNUSED)
{
	assert_true(fd == 1 || fd == 2);
	assert_string_equal(ctx->queue, "q");
	buf_add(&t.out[fd], p, n);
	buf_addc(&t.out[fd], '\n');
	t.lines++;
	t.cut_lines += cut;
	if (n > t.longest)
		t.longest = n;
	t.out_pid = ctx->pid;
	t.out_attempt = ctx->attempt;
	(void)snprintf(t.out_id, sizeof(t.out_id), "%s", ctx->id);
}

static void
got_cut(const struct log_ctx *ctx, void *arg UNUSED)
{
	assert_string_equal(ctx->queue, "q");
	t.cuts++;
}

static const struct handler_events events = {
	.done = got_done, .output = got_output, .output_cut = got_cut
};

/* -- the configuration ----------------------------------------------------------------- */

static inline void
set_command(const char *const *argv)
{
	size_t i, n = 0;

	for (i = 0; t.q->command != NULL && t.q->command[i] != NULL; i++)
		free(t.q->command[i]);
	free(t.q->command);
	while (argv[n] != NULL)
		n++;
	t.q->command = xcalloc(n + 1, sizeof(char *));
	for (i = 0; i < n; i++)
		t.q->command[i] = xstrdup(argv[i]);
	t.changes++;
}

#define COMMAND(...)	set_command((const char *const[]){ __VA_ARGS__, NULL })
#define SH(script)	COMMAND("/bin/sh", "-c", script)

static inline void
set(char **option, const char *value)
{
	free(*option);
	*option = xstrdup(value);
	t.changes++;
}

static inline struct queue_config *
new_queue(void)
{
	struct queue_config *q = xcalloc(1, sizeof(*q));

	*q = (struct queue_config){
		.name = xstrdup("q"), .file = xstrdup(""), .key = xstrdup("q"),
		.rate = xstrdup(""), .user = xstrdup(""), .group = xstrdup(""),
		.directory = xstrdup("/"), .env_file = xstrdup(""),
		.mode = MODE_EXEC, .concurrency = 1, .time_limit = 30 * MINUTE,
		.kill_grace = 5 * SEC, .max_attempts = 25, .umask = -1,
		.limit_nofile = 1024, .limit_as = CONFIG_LIMIT_INHERIT,
		.limit_cpu = CONFIG_LIMIT_INHERIT,
		.limit_fsize = CONFIG_LIMIT_INHERIT,
		.limit_nproc = CONFIG_LIMIT_INHERIT,
		.limit_core = CONFIG_LIMIT_INHERIT,
		.output = xstrdup("log"), .output_limit = 1024 * 1024,
		.pushes = xcalloc(1, sizeof(char *)), .push_max = 1000,
		.leftovers = LEFTOVERS_KILL, .verdicts = true, .env = xcalloc(1, sizeof(char *)),
	};
	return q;
}

static inline int
set_up(void **state UNUSED)
{
	memset(&t, 0, sizeof(t));
	t.fds = count_fds();
	t.loop = loop_new();
	child_init(t.loop);
	t.config = config_new();
	t.config->http.listen = xstrdup("");
	t.config->queues = xreallocarray(t.config->queues, 2, sizeof(*t.config->queues));
	t.config->queues[0] = t.q = new_queue();
	t.config->queues[1] = NULL;
	t.config->nqueues = 1;
	/* As of `rqd -q`: its queue needs no user. */
	t.config->file = xstrdup("");
	t.config->redis.servers = xcalloc(2, sizeof(char *));
	t.config->redis.servers[0] = xstrdup("127.0.0.1:6379");
	t.env.loop = t.loop;
	COMMAND("/bin/true");
	return 0;
}

/* -- a spawner: it has the configuration of the time when it was forked ------------------- */

static inline bool
launch_load(int file UNUSED, int rows, const struct rows *known, unsigned generation,
    void *arg UNUSED)
{
	load_rows(t.config, rows, known, generation);
	return true;
}

static inline void
launch_died(void *arg UNUSED)
{
	fail_msg("the spawner died");
}

static inline void
close_handler(void);

/* Forks a spawner, unless there is one that has all that the test has changed. */
static inline void
launch(void)
{
	struct spawner_loaded loaded;

	if (t.running > 0 || (t.env.spawner != NULL && t.changes == 0 &&
	    memcmp(&t.known, t.q, sizeof(t.known)) == 0))
		return;
	close_handler();
	t.env.spawner = spawner_fork(launch_load, NULL);
	assert_int_equal(spawner_load_now(t.env.spawner, &loaded), 0);
	assert_int_equal(loaded.generation, 1);
	assert_int_equal(loaded.error, 0);
	(void)close(loaded.config);
	t.config->generation = loaded.generation;
	spawner_attach(t.env.spawner, t.loop, launch_died, NULL);
	t.known = *t.q;
	t.changes = 0;
}

/* -- messages ------------------------------------------------------------------------- */

static inline struct got *
start_bytes(const char *payload, size_t len)
{
	struct got *g = xcalloc(1, sizeof(*g));
	struct message *msg = message_new(t.config, t.q);

	launch();
	t.running++;
	if (t.handler == NULL)
		t.handler = handler_open(&t.env, t.config, t.q, &events, &t);
	msg->tag = xstrdup("tag");
	msg->id = xstrdup("id-7");
	msg->channel = t.channel != NULL ? xstrdup(t.channel) : NULL;
	msg->token = xstrdup("1.1");
	msg->payload = payload != NULL ? xmemdup(payload, len + 1) : NULL;
	msg->len = len;
	msg->attempts = 2;
	msg->queue_data = g;
	if (config_members(t.q) > 0)
		message_read(msg, t.q);
	g->msg = msg;
	g->started = clock_mono();
	g->run = handler_start(t.handler, msg);
	assert_non_null(g->run);
	assert_int_equal(g->done, 0);
	return g;
}

static inline struct got *
start(const char *payload)
{
	return start_bytes(payload, strlen(payload));
}

static inline void
got_free(struct got *g)
{
	assert_int_equal(g->done, 1);
	result_done(&g->result);
	message_free(g->msg);
	free(g);
}

/* Turns the loop until *n is at least want. */
static inline void
await(const int *n, int want)
{
	usec_t end = clock_mono() + PATIENCE;

	while (*n < want && clock_mono() < end)
		loop_turn(t.loop, end - clock_mono());
	assert_true(*n >= want);
}

static inline void
await_lines(unsigned want)
{
	usec_t end = clock_mono() + PATIENCE;

	while (t.lines < want && clock_mono() < end)
		loop_turn(t.loop, end - clock_mono());
	assert_true(t.lines >= want);
}

static inline struct got *
run(const char *payload)
{
	struct got *g = start(payload);

	await(&g->done, 1);
	return g;
}

static inline void
expect_exit(const char *script, int status)
{
	struct got *g;

	SH(script);
	g = run("{}");
	assert_int_equal(g->result.end, END_EXIT);
	assert_int_equal(g->result.status, status);
	assert_int_equal(g->result.stop, STOP_NONE);
	assert_true(g->result.pid > 0);
	assert_true(g->result.duration > 0);
	assert_int_equal(g->result.leftovers, 0);
	assert_false(g->result.output_cut);
	got_free(g);
}

static inline void
expect_not_started(int error, const char *step)
{
	struct got *g = run("x");

	assert_int_equal(g->result.end, END_NOT_STARTED);
	assert_int_equal(g->result.error, error);
	assert_string_equal(g->result.step, step);
	assert_int_equal(g->result.pid, 0);
	assert_int_equal(g->result.duration, 0);
	assert_null(g->result.error_tail);
	got_free(g);
}

static inline void
turn_for(usec_t span)
{
	usec_t end = clock_mono() + span;

	while (clock_mono() < end)
		loop_turn(t.loop, end - clock_mono());
}

static inline char *
output(int fd)
{
	return buf_str(&t.out[fd]);
}

/* Returns the pid that a handler printed; never 0 or 1, since kill(0) would hit the test. */
static inline pid_t
printed_pid(void)
{
	int pid = atoi(output(1));

	assert_true(pid > 1);
	return pid;
}

static inline void
got_closed(void *arg)
{
	++*(int *)arg;
}

static inline void
close_handler(void)
{
	int closed = 0;

	if (t.handler != NULL) {
		handler_close(t.handler, got_closed, &closed);
		assert_int_equal(closed, 0);
		await(&closed, 1);
		handler_free(t.handler);
	}
	t.handler = NULL;
	spawner_stop(t.env.spawner);
	t.env.spawner = NULL;
}

/* Turns the loop until it has reaped all children; false: some are left. */
static inline bool
reap_all(void)
{
	usec_t end = clock_mono() + PATIENCE;
	siginfo_t si;

	while (clock_mono() < end) {
		if (waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT) == -1)
			return errno == ECHILD;
		loop_turn(t.loop, 10 * MSEC);
	}
	return false;
}

static inline int
tear_down(void **state UNUSED)
{
	bool clean;

	close_handler();
	clean = reap_all();
	loop_free(t.loop);
	config_unref(t.config);
	buf_done(&t.out[1]);
	buf_done(&t.out[2]);
	if (!clean || count_fds() != t.fds)
		print_message("# left: %s, %d descriptors, before %d\n",
		    clean ? "no process" : "processes", count_fds(), t.fds);
	return clean && count_fds() == t.fds ? 0 : -1;
}

#define FIXTURE_TEST(name)	TEST_WITH(name, set_up, tear_down)
#define LAUNCHED_TEST(name)	ROOT_TEST_WITH(name, set_up, tear_down)
