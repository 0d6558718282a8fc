/*
 * One process per message, or per batch of messages (run_batch.h).
 *
 *	             stop, limit             exit
 *	    RUNNING ------------> STOPPING -------.
 *	       |  \                               v    eof, 1 s
 *	start -'   `--------- exit -----------> TAIL ----------> freed
 *	    `--> FAILED ------- end of turn --------------------> freed
 *
 * The daemon writes the whole input to a memfd before the child runs.  The child may
 * read it, seek in it or ignore it.  Neither process waits for the other.
 *
 * The exit of the command decides, and the run calls done() at once.  After that it
 * must not use the messages.  It keeps the data for late lines of output, and lives in
 * TAIL until the pipes end, for TAIL_TIME at most.
 *
 * Descriptor 3 is another pipe (verdict_pipe.h).  At the exit the daemon reads it to
 * its end.
 *
 * Most handlers are brief and print nothing.  The loop listens to the pipes of a
 * handler only after LISTEN_AFTER; until then they are read at the exit.
 */
#include <sys/mman.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "handler/command.h"
#include "handler/handler.h"
#include "handler/output.h"
#include "handler/run_batch.h"
#include "handler/subprocess.h"
#include "handler/verdict_pipe.h"
#include "loop/timer.h"

#define TAIL_TIME	SEC
#define LISTEN_AFTER	(20 * MSEC)

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL	0x0008U
#endif

enum run_state { RUNNING, STOPPING, TAIL, FAILED };

struct exec {
	struct handler		 base;
	struct command		*command;
	TAILQ_HEAD(, exec_run)	 runs;
	TAILQ_HEAD(, exec_run)	 unread;	/* the loop does not listen yet; oldest first */
	struct timer		 listen;	/* set while unread is not empty, or once more */
};

struct exec_run {
	struct run		 base;
	TAILQ_ENTRY(exec_run)	 entry;		/* of exec.runs */
	TAILQ_ENTRY(exec_run)	 by_age;	/* of exec.unread; valid while is_unread */
	bool			 is_unread;
	enum run_state		 state;
	struct message		*msg;		/* NULL in TAIL, and for a batch */
	struct run_batch	*batch;		/* owned; NULL: no batch */
	char			 id[MESSAGE_ID_MAX + 1];	/* for late output */
	struct subprocess		 process;	/* in RUNNING and STOPPING */
	usec_t			 started;	/* mono */
	enum stop		 stop;
	struct timer		 timer;		/* time limit, then grace, then TAIL_TIME */
	struct output_pair	 output;
	struct verdict_pipe	 verdicts;	/* closed in TAIL and FAILED */
	struct pushes		*pushes;	/* owned; NULL: none so far */
	struct defer		 defer;		/* to be failed, or freed */
	int			 error;		/* valid in FAILED, as is step (static) */
	const char		*step;
};

static struct exec *
exec_of(const struct exec_run *r)
{
	return (struct exec *)(void *)r->base.handler;
}

/* The only place that changes the state. */
static void
run_set_state(struct exec_run *r, enum run_state state)
{
	r->state = state;
}

/* -- listening ------------------------------------------------------------------------- */

static void
leave_unread(struct exec_run *r)
{
	if (r->is_unread)
		TAILQ_REMOVE(&exec_of(r)->unread, r, by_age);
	r->is_unread = false;
}

static void
listen_to_old(void *arg)
{
	struct exec *h = arg;
	usec_t born = clock_mono() - LISTEN_AFTER;
	struct exec_run *r;

	while ((r = TAILQ_FIRST(&h->unread)) != NULL && r->started <= born) {
		leave_unread(r);
		output_listen(&r->output);
		verdict_pipe_listen(&r->verdicts);
	}
	if (r != NULL)
		timer_set_at(&h->listen, r->started + LISTEN_AFTER);
}

static void
listen_later(struct exec_run *r)
{
	struct exec *h = exec_of(r);

	r->is_unread = true;
	TAILQ_INSERT_TAIL(&h->unread, r, by_age);
	if (!timer_is_set(&h->listen))
		timer_set_at(&h->listen, r->started + LISTEN_AFTER);
}

/* -- the end of a run -------------------------------------------------------------- */

static void
run_free(void *arg)
{
	struct exec_run *r = arg;
	struct exec *h = exec_of(r);

	TAILQ_REMOVE(&h->runs, r, entry);
	leave_unread(r);
	loop_defer_cancel(h->base.env->loop, &r->defer);
	timer_stop(&r->timer);
	subprocess_done(&r->process);
	output_done(&r->output);
	verdict_pipe_done(&r->verdicts);
	free(r->base.progress);
	pushes_free(r->pushes);
	run_batch_free(r->batch);
	free(r);
	if (TAILQ_EMPTY(&h->runs))
		handler_closed(&h->base);
}

/* Frees the run at the end of this turn. */
static void
finish(struct exec_run *r)
{
	output_close(&r->output);
	timer_stop(&r->timer);
	loop_defer(exec_of(r)->base.env->loop, &r->defer, run_free, r);
}

/* The caller must return at once: done() may have freed the handler, and r with it. */
static void
tell_done(struct exec_run *r, struct result *result)
{
	struct handler *h = r->base.handler;
	struct message *msg = r->msg;

	r->msg = NULL;
	if (r->batch != NULL)
		run_batch_finish(r->batch, result);
	else
		h->events->done(msg, result, h->arg);
}

static void
fail_cb(void *arg)
{
	struct exec_run *r = arg;
	struct result result = { .end = END_NOT_STARTED, .stop = r->stop,
	    .error = r->error, .step = r->step };

	finish(r);
	tell_done(r, &result);
}

/*
 * Takes the verdict of a command that has exited by itself; after a signal of rqd it
 * does not count.  But messages of a batch that it called done are done.
 */
static void
take_verdict(struct exec_run *r, struct result *result)
{
	struct result ignored = { .end = END_EXIT };

	if (result->end == END_EXIT && result->stop == STOP_NONE) {
		verdict_pipe_end(&r->verdicts, result);
	} else if (r->batch != NULL) {
		verdict_pipe_end(&r->verdicts, &ignored);
		result_done(&ignored);
	}
	verdict_pipe_done(&r->verdicts);
}

static void
exited(struct subprocess *p, const struct child_exit *x, int error, const char *step)
{
	struct exec_run *r = CONTAINER_OF(p, struct exec_run, process);
	struct result result = {
		.end = x->signaled ? END_SIGNAL : END_EXIT,
		.status = x->signaled ? 0 : x->code,
		.signo = x->signaled ? x->code : 0,
		.stop = r->stop, .pid = p->pid, .leftovers = x->leftovers,
		.duration = clock_mono() - r->started,
	};

	if (error != 0)
		result = (struct result){ .end = END_NOT_STARTED, .stop = r->stop,
		    .leftovers = x->leftovers, .error = error, .step = step };
	if (r->stop != STOP_NONE)
		child_hurry(exec_of(r)->base.env->loop);
	run_set_state(r, TAIL);
	timer_stop(&r->timer);
	leave_unread(r);
	output_drain(&r->output);
	output_end_collect(&r->output, x->leftovers);
	take_verdict(r, &result);
	result.pushes = r->pushes;
	r->pushes = NULL;
	result_check_pushes(&result);
	result.error_tail = output_take_tail(&r->output, &result.error_len);
	result.output_cut = r->output.cut;
	if (output_is_open(&r->output)) {
		output_listen(&r->output);
		timer_set(&r->timer, TAIL_TIME);
	} else {
		finish(r);
	}
	tell_done(r, &result);
}

/* Both pipes have ended; the child may still run. */
static void
output_ended(struct output_pair *o)
{
	struct exec_run *r = CONTAINER_OF(o, struct exec_run, output);

	if (r->state == TAIL)
		finish(r);
}

/* -- ending it early ---------------------------------------------------------------- */

/*
 * Sets the reason before the signal is sent.  Leftovers are killed, too, because the
 * message may run again elsewhere.
 */
static void
begin_stop(struct exec_run *r, enum stop reason)
{
	r->stop = reason;
	if (r->state != RUNNING)
		return;
	run_set_state(r, STOPPING);
	subprocess_stop(&r->process);
	timer_set(&r->timer, exec_of(r)->base.cfg->kill_grace);
}

static void
time_is_up(void *arg)
{
	struct exec_run *r = arg;

	switch (r->state) {
	case RUNNING:
		begin_stop(r, STOP_TIME_LIMIT);
		return;
	case STOPPING:
		subprocess_kill(&r->process);
		return;
	case TAIL:
		output_drain(&r->output);
		finish(r);
		return;
	case FAILED:
		return;
	}
}

static void
exec_stop(struct run *run, enum stop reason)
{
	struct exec_run *r = (struct exec_run *)(void *)run;

	if (r->stop == STOP_NONE)
		begin_stop(r, reason);
}

static void
exec_kill(struct run *run)
{
	struct exec_run *r = (struct exec_run *)(void *)run;

	if (r->state == RUNNING || r->state == STOPPING)
		subprocess_kill(&r->process);
}

/* -- starting ------------------------------------------------------------------------ */

/*
 * Makes the file not executable if the kernel knows the flag; kernels from 6.3 may
 * demand that.
 */
static int
new_memfd(void)
{
	static bool old_kernel;
	int fd;

	if (!old_kernel) {
		fd = memfd_create("rqd-message", MFD_CLOEXEC | MFD_NOEXEC_SEAL);
		if (fd != -1 || errno != EINVAL)
			return fd;
		old_kernel = true;
	}
	return memfd_create("rqd-message", MFD_CLOEXEC);
}

static int
write_input(const struct exec_run *r, int fd)
{
	const struct message *msg = r->msg;

	if (r->batch != NULL)
		return run_batch_write(r->batch, fd);
	return msg->payload != NULL ? fd_write_at(fd, msg->payload, msg->len, 0) : 0;
}

/* Opens the child's descriptors; -1 is /dev/null.  After a failure some may be open. */
static int
open_fds(struct exec_run *r, int fd[SPAWN_FDS])
{
	const struct queue_config *cfg = exec_of(r)->base.cfg;

	r->step = "memfd";
	fd[0] = new_memfd();
	if (fd[0] == -1 || write_input(r, fd[0]) == -1)
		return -1;
	r->step = "pipe";
	if (cfg->verdicts && verdict_pipe_open(&r->verdicts, &fd[3]) == -1)
		return -1;
	if (config_drops_output(cfg))
		return 0;
	for (int i = 1; i < 3; i++) {
		if (output_open(&r->output, i, &fd[i]) == -1)
			return -1;
	}
	return 0;
}

/* The start has failed, with errno and r->step: reports it at the end of the turn. */
static void
fail_later(struct exec_run *r)
{
	run_set_state(r, FAILED);
	r->error = errno;
	output_done(&r->output);
	verdict_pipe_done(&r->verdicts);
	loop_defer(exec_of(r)->base.env->loop, &r->defer, fail_cb, r);
}

static void
started(struct subprocess *p)
{
	struct exec_run *r = CONTAINER_OF(p, struct exec_run, process);

	r->base.pid = r->output.ctx.pid = p->pid;
}

static void
failed(struct subprocess *p, int error, const char *step)
{
	struct exec_run *r = CONTAINER_OF(p, struct exec_run, process);

	timer_stop(&r->timer);
	leave_unread(r);
	r->step = step;
	errno = error;
	fail_later(r);
}

static const struct subprocess_events process_events = { started, failed, exited };

/* Returns -1 with errno and r->step. */
static int
start_process(struct exec_run *r)
{
	struct exec *h = exec_of(r);
	int fd[SPAWN_FDS] = { -1, -1, -1, -1 }, ret = -1;

	if (open_fds(r, fd) == 0)
		ret = subprocess_start(&r->process, h->base.env, h->command, r->msg,
		    r->batch != NULL ? run_batch_size(r->batch) : 0, fd,
		    h->base.cfg->leftovers == LEFTOVERS_KILL, &process_events, &r->step);
	fd_close_all(fd, SPAWN_FDS);
	return ret;
}

/* The process runs, or soon will. */
static void
begin(struct exec_run *r)
{
	struct exec *h = exec_of(r);

	started(&r->process);
	if (output_is_open(&r->output) || h->base.cfg->verdicts)
		listen_later(r);
	if (h->base.cfg->time_limit > 0)
		timer_set(&r->timer, h->base.cfg->time_limit);
}

static struct exec_run *
run_new(struct handler *handler)
{
	struct exec *h = (struct exec *)(void *)handler;
	struct exec_run *r = NEW(struct exec_run, .base.handler = handler,
	    .started = clock_mono());

	timer_init(&r->timer, h->base.env->loop, time_is_up, r);
	output_init(&r->output, h->base.env->loop, handler, h->base.cfg->output_limit,
	    output_ended);
	r->output.ctx = (struct log_ctx){ .queue = h->base.cfg->name };
	TAILQ_INSERT_TAIL(&h->runs, r, entry);
	return r;
}

static struct run *
run_start(struct exec_run *r)
{
	verdict_pipe_init(&r->verdicts, &r->base, r->msg, &r->pushes, r->batch);
	if (start_process(r) == 0)
		begin(r);
	else
		fail_later(r);
	return &r->base;
}

static struct run *
exec_start(struct handler *handler, struct message *msg)
{
	struct exec_run *r = run_new(handler);

	r->msg = msg;
	(void)snprintf(r->id, sizeof(r->id), "%s", msg->id);
	r->output.ctx.id = r->id;
	r->output.ctx.attempt = msg->attempts + 1;
	if (config_output_queue(handler->cfg) != NULL)
		output_collect(&r->output, msg, &r->pushes);
	return run_start(r);
}

/* Output of a batch belongs to no single message: its records have no id. */
static struct run *
exec_start_batch(struct handler *handler, struct message *const *msgs, unsigned n)
{
	struct exec_run *r = run_new(handler);

	r->batch = run_batch_new(&r->base, msgs, n);
	return run_start(r);
}

/* -- the handler ----------------------------------------------------------------------- */

static void
exec_open(struct handler *handler)
{
	struct exec *h = (struct exec *)(void *)handler;

	/*
	 * If a payload exceeds an RLIMIT_FSIZE of the daemon, the write must fail, not
	 * raise a signal.
	 */
	(void)signal(SIGXFSZ, SIG_IGN);
	h->command = command_new(handler->env, handler->config, handler->cfg);
	TAILQ_INIT(&h->runs);
	TAILQ_INIT(&h->unread);
	timer_init(&h->listen, handler->env->loop, listen_to_old, h);
}

static void
exec_close(struct handler *handler)
{
	if (TAILQ_EMPTY(&((struct exec *)(void *)handler)->runs))
		handler_closed(handler);
}

static void
exec_free(struct handler *handler)
{
	struct exec *h = (struct exec *)(void *)handler;
	struct exec_run *r, *next;

	TAILQ_FOREACH_SAFE(r, &h->runs, entry, next) {
		exec_kill(&r->base);
		run_free(r);
	}
	timer_stop(&h->listen);
	command_free(h->command);
}

const struct handler_ops handler_exec = {
	.size = sizeof(struct exec),
	.open = exec_open,
	.start = exec_start,
	.start_batch = exec_start_batch,
	.stop = exec_stop,
	.kill = exec_kill,
	.close = exec_close,
	.free = exec_free,
};
