/*
 * One process of a persistent handler.
 *
 *	WORKING --retire--> RETIRING
 *	   |                   | no message is left
 *	   |  it closed stdin  v
 *	   |----or stdout---> CLOSING
 *	   | stop              | kill_grace has passed, or stop
 *	   v                   v
 *	STOPPING <-------------'     SIGTERM; SIGKILL after kill_grace
 *	   | exit
 *	   v
 *	  TAIL --stderr has ended, or TAIL_TIME has passed--> GONE
 *
 * A stop leads from RETIRING to STOPPING, too.  An exit leads to TAIL from each
 * state above it.
 *
 * A message that is answered before it was written whole stays until it is.
 *
 * When rqd or the process breaks off its messages, they are settled at the exit, so
 * that none runs twice at the same time.  After SIGTERM only the answer "ok" counts:
 * it says that work was done, while a trap may answer "retry" or "dead" to give up.
 * "ok" counts neither for the message whose limit was exceeded, nor after an answer
 * that breaks the protocol.
 */
#include "handler/worker.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "policy/statement.h"

#define TAIL_TIME	SEC
#define READ_SIZE	((size_t)64 * 1024)
#define DRAIN_READS	32
#define REDIS_WAIT	(20 * MSEC)	/* between two looks */

static const char *const state_names[] = {
	[WORKER_WORKING] = "working", [WORKER_RETIRING] = "retiring",
	[WORKER_CLOSING] = "closing", [WORKER_STOPPING] = "stopping",
	[WORKER_TAIL] = "tail", [WORKER_GONE] = "gone"
};

/* The only place that changes the state. */
static void
worker_set_state(struct worker *w, enum worker_state state)
{
	struct log_ctx ctx = { .queue = w->cfg->name, .pid = w->process.pid };

	log_event(LOG_LV_DEBUG, "handler_state", &ctx, LF_STR("from", state_names[w->state]),
	    LF_STR("to", state_names[state]), LF_STR("reason", w->why));
	w->state = state;
	w->changed(w);
}

bool
worker_is_live(const struct worker *w)
{
	return w->state < WORKER_TAIL;
}

bool
worker_has_room(const struct worker *w)
{
	return w->state == WORKER_WORKING &&
	    w->outstanding < (unsigned)w->cfg->pipeline;
}

/* -- its messages ---------------------------------------------------------------- */

/* Lets records of stderr name the message, if there is only one. */
static void
name_output(struct worker *w)
{
	const struct feed *f = TAILQ_FIRST(&w->feeds);
	bool one = w->outstanding == 1;

	w->output.ctx.id = one ? f->msg->id : NULL;
	w->output.ctx.attempt = one ? f->msg->attempts + 1 : 0;
}

static void
feed_over(struct worker *w, struct feed *f)
{
	TAILQ_REMOVE(&w->feeds, f, entry);
	w->outstanding--;
	f->worker = NULL;
	f->result.pid = f->base.pid;
	if (f->base.pid != 0)
		f->result.duration = clock_mono() - f->started;
	if (f->base.pid != 0 && f->result.duration == 0)
		f->result.duration = 1;
	name_output(w);
	w->finished(w, f);
}

static struct feed *
oldest(const struct worker *w)
{
	struct feed *f;

	TAILQ_FOREACH(f, &w->feeds, entry) {
		if (!f->answered)
			return f;
	}
	return NULL;
}

/*
 * Finds an outstanding message; NULL: there is none of this number, or no byte of it
 * was written.
 */
static struct feed *
find(const struct worker *w, uint64_t number)
{
	struct feed *f;

	TAILQ_FOREACH(f, &w->feeds, entry) {
		if (f == w->feeder.next && w->feeder.sent == 0)
			return NULL;
		if (f->number == number)
			return f->answered ? NULL : f;
		if (f == w->feeder.next)
			return NULL;
	}
	return NULL;
}

/* -- its end ----------------------------------------------------------------------- */

static void
close_stdout(struct worker *w)
{
	if (w->out == -1)
		return;
	io_done(&w->out_io);
	fd_close(&w->out);
}

static void
begin_close(struct worker *w)
{
	if (w->state >= WORKER_CLOSING)
		return;
	worker_set_state(w, WORKER_CLOSING);
	feeder_stop(&w->feeder);
	timer_set(&w->timer, w->cfg->kill_grace);
}

static void
close_when_empty(struct worker *w)
{
	if (w->state == WORKER_RETIRING && w->outstanding == 0)
		begin_close(w);
}

void
worker_stop(struct worker *w, const char *why)
{
	if (w->state >= WORKER_STOPPING)
		return;
	if (w->why == NULL)
		w->why = why;
	worker_set_state(w, WORKER_STOPPING);
	feeder_stop(&w->feeder);
	subprocess_stop(&w->process);
	timer_set(&w->timer, w->cfg->kill_grace);
}

void
worker_kill(struct worker *w)
{
	if (worker_is_live(w))
		subprocess_kill(&w->process);
}

void
worker_retire(struct worker *w, const char *why)
{
	if (w->state != WORKER_WORKING)
		return;
	w->why = why;
	worker_set_state(w, WORKER_RETIRING);
	close_when_empty(w);
}

/*
 * The process broke the protocol: its answers no longer belong to messages.  The oldest
 * message has failed.
 */
static void
breach(struct worker *w, const char *what, const char *p, size_t n)
{
	if (w->state >= WORKER_STOPPING || w->protocol != NULL)
		return;
	w->protocol = p == NULL ? xstrdup(what) :
	    xasprintf("%s: %.*s", what, (int)(n < RESULT_QUOTE_MAX ? n : RESULT_QUOTE_MAX), p);
	w->culprit = oldest(w);
	worker_stop(w, "protocol");
}

/* The timer has fired.  Messages do not set it anew, so this computes the limit. */
static void
check_limit(struct worker *w)
{
	struct feed *f = TAILQ_FIRST(&w->feeds);
	usec_t due;

	if (f == NULL || w->cfg->time_limit == 0)
		return;
	due = (f->written > w->answered_at ? f->written : w->answered_at) +
	    w->cfg->time_limit;
	if (due > clock_mono()) {
		timer_set_at(&w->timer, due);
		return;
	}
	w->culprit = f;
	if (!f->answered)
		f->result.stop = STOP_TIME_LIMIT;
	worker_stop(w, "time_limit");
}

static void
time_is_up(void *arg)
{
	struct worker *w = arg;

	switch (w->state) {
	case WORKER_WORKING:
	case WORKER_RETIRING:
		check_limit(w);
		return;
	case WORKER_CLOSING:
		if (w->outstanding > 0)
			breach(w, "closed its pipes and went on", NULL, 0);
		else
			worker_stop(w, "closed");
		return;
	case WORKER_STOPPING:
		worker_kill(w);
		return;
	case WORKER_TAIL:
		output_drain(&w->output);
		if (w->state != WORKER_TAIL)
			return;
		output_close(&w->output);
		timer_stop(&w->timer);
		worker_set_state(w, WORKER_GONE);
		return;
	case WORKER_GONE:
		return;
	}
}

static void
too_old(void *arg)
{
	worker_retire(arg, "max_age");
}

/* -- messages in ---------------------------------------------------------------------- */

/* From the feeder: f is wholly written. */
static void
written(struct feed *f)
{
	struct worker *w = f->worker;

	if (!f->answered)
		return;
	feed_over(w, f);
	close_when_empty(w);
}

/* From the feeder: the process has closed its stdin. */
static void
stdin_broken(struct feeder *e)
{
	begin_close(CONTAINER_OF(e, struct worker, feeder));
}

void
worker_give(struct worker *w, struct feed *f)
{
	f->worker = w;
	f->base.pid = w->process.pid;
	f->number = ++w->messages;
	f->started = f->written = clock_mono();
	TAILQ_INSERT_TAIL(&w->feeds, f, entry);
	w->outstanding++;
	name_output(w);
	feeder_add(&w->feeder, f);
	if (w->cfg->time_limit > 0 && !timer_is_set(&w->timer))
		timer_set(&w->timer, w->cfg->time_limit);
	if (w->cfg->max_messages > 0 && w->messages >= (uint64_t)w->cfg->max_messages)
		worker_retire(w, "max_messages");
}

/* -- answers out ----------------------------------------------------------------------- */

static void
answer(struct worker *w, struct feed *f, const struct statement *s)
{
	struct result *r = &f->result;

	r->end = END_ANSWER;
	r->stop = STOP_NONE;
	if (s->word == STATEMENT_OK && r->said == SAID_NOTHING)
		r->said = SAID_OK;
	else
		result_say(r, s);
	w->pushed -= pushes_memory(r->pushes);
	result_check_pushes(r);
	pushes_owe(r->pushes, &w->debt);
	r->output_cut = w->output.cut;
	if (s->word != STATEMENT_OK)
		r->error_tail = output_take_tail(&w->output, &r->error_len);
	output_renew(&w->output, w->cfg->output_limit, w->outstanding == 1);
	w->answered_at = clock_mono();
	w->answers++;
	f->answered = true;
	if (f != w->feeder.next)
		feed_over(w, f);
	close_when_empty(w);
	if (worker_has_room(w))
		w->changed(w);
}

/* Whether an answer counts that came after SIGTERM; so do the pushes before it. */
static bool
still_counts(const struct worker *w, const struct feed *f, const struct statement *s)
{
	return w->protocol == NULL && f != NULL && f != w->culprit &&
	    (s->word == STATEMENT_OK || s->word == STATEMENT_PUSH) &&
	    f->result.stop != STOP_LOST &&
	    f->result.stop != STOP_CANCEL;
}

static void
line_came(const char *p, size_t n, bool cut, void *arg)
{
	struct worker *w = arg;
	bool rest = w->inside;
	struct statement s;
	struct feed *f;

	w->inside = cut;
	if (w->protocol != NULL || rest)
		return;
	if (statement_parse(p, n, STATEMENT_NUMBERED, &s) == -1 ||
	    (s.word != STATEMENT_PUSH && (cut || n > STATEMENT_LINE_MAX))) {
		breach(w, "not an answer", p, n);
		return;
	}
	f = find(w, s.number);
	if (w->state == WORKER_STOPPING && !still_counts(w, f, &s))
		return;
	if (f == NULL)
		breach(w, "not outstanding", p, n);
	else if (s.word == STATEMENT_PROGRESS)
		run_set_progress(&f->base, s.text, s.len);
	else if (s.word == STATEMENT_PUSH)
		pushes_add_said(&f->result.pushes, f->msg, &s, cut, &w->pushed);
	else
		answer(w, f, &s);
}

/*
 * Reads stderr after each read of stdout: text that the process wrote there before its
 * answer belongs to that message.  Returns false if nothing is left to read.
 */
static bool
read_answers(struct worker *w)
{
	static char bytes[READ_SIZE];
	ssize_t n = TEMP_FAILURE_RETRY(read(w->out, bytes, sizeof(bytes)));

	output_drain(&w->output);
	if (n > 0)
		line_feed(&w->line, bytes, (size_t)n);
	else if (n == 0 || errno != EAGAIN)
		close_stdout(w);
	return n > 0;
}

static void
read_again(void *arg)
{
	struct worker *w = arg;

	if (w->out != -1)
		io_start(&w->out_io);
}

/* While Redis takes no results, stops reading; the time limit does not count that time. */
static void
wait_for_redis(struct worker *w)
{
	io_stop(&w->out_io);
	timer_set(&w->again, REDIS_WAIT);
	w->answered_at = clock_mono();
}

static void
stdout_ready(int what UNUSED, void *arg)
{
	struct worker *w = arg;

	if (pushes_debt_is_large(w->debt)) {
		wait_for_redis(w);
		return;
	}
	(void)read_answers(w);
	if (w->out == -1)
		begin_close(w);
}

/* -- the exit -------------------------------------------------------------------------------- */

static void
broken_off(struct worker *w, struct feed *f, const struct child_exit *x)
{
	struct result *r = &f->result;

	r->end = x->signaled ? END_SIGNAL : END_EXIT;
	r->status = x->signaled ? 0 : x->code;
	r->signo = x->signaled ? x->code : 0;
	if (f != w->culprit) {
		if (r->stop == STOP_NONE)
			r->stop = STOP_PEER;
		return;
	}
	r->leftovers = x->leftovers;
	r->output_cut = w->output.cut;
	r->error_tail = output_take_tail(&w->output, &r->error_len);
	if (w->protocol != NULL && r->stop == STOP_NONE) {
		r->end = END_ANSWER;
		r->said = SAID_WRONG;
		xreplace(&r->answer, w->protocol);
	}
}

/* No byte of the message was written, so it did not begin, and did not cause the end. */
static void
not_begun(struct feed *f)
{
	f->base.pid = 0;
	f->result.end = END_NOT_RUN;
	if (f->result.stop == STOP_NONE)
		f->result.stop = STOP_PEER;
}

static void
settle_feeds(struct worker *w, const struct child_exit *x, bool stopped)
{
	struct feed *f, *next, *unsent = w->feeder.next;
	bool begun = true;

	if (unsent != NULL && w->feeder.sent > 0)
		unsent = TAILQ_NEXT(unsent, entry);
	if (w->culprit == NULL && !stopped)
		w->culprit = oldest(w);
	TAILQ_FOREACH_SAFE(f, &w->feeds, entry, next) {
		begun = begun && f != unsent;
		if (!begun && f != w->culprit)
			not_begun(f);
		else if (!f->answered)
			broken_off(w, f, x);
		feed_over(w, f);
	}
}

/* The command could not be executed: gives all messages back with that error. */
static void
give_back_feeds(struct worker *w, int error, const char *step)
{
	struct feed *f, *next;

	TAILQ_FOREACH_SAFE(f, &w->feeds, entry, next) {
		f->base.pid = 0;
		f->result.end = END_NOT_STARTED;
		f->result.error = error;
		f->result.step = step;
		feed_over(w, f);
	}
}

static void
log_exit(const struct worker *w, const struct child_exit *x)
{
	char signal[UTIL_SIGNAL_MAX];
	struct log_ctx ctx = { .queue = w->cfg->name, .pid = w->process.pid };
	bool bad = w->protocol != NULL || w->culprit != NULL ||
	    (w->why == NULL && (x->signaled || x->code != 0));
	enum log_level level = bad ? LOG_LV_WARN : LOG_LV_INFO;

	log_event(level, "handler_exited", &ctx,
	    x->signaled ? LF_STR("signal", util_signal(x->code, signal)) :
	    LF_INT("status", x->code),
	    LF_USEC("duration", clock_mono() - w->started),
	    LF_INT("messages", (int64_t)w->messages), LF_STR("reason", w->why),
	    LF_STR("cause", w->protocol));
}

static void
enter_tail(struct worker *w)
{
	close_stdout(w);
	feeder_close(&w->feeder);
	timer_stop(&w->age);
	worker_set_state(w, WORKER_TAIL);
}

static void
exited(struct subprocess *p, const struct child_exit *x, int error, const char *step)
{
	struct worker *w = CONTAINER_OF(p, struct worker, process);
	bool stopped = w->state == WORKER_STOPPING;

	output_drain(&w->output);
	for (int i = 0; i < DRAIN_READS && w->out != -1 && read_answers(w); i++)
		continue;
	enter_tail(w);
	if (w->outstanding > 0)
		child_hurry(w->env->loop);
	if (error != 0)
		give_back_feeds(w, error, step);
	else
		settle_feeds(w, x, stopped);
	log_exit(w, x);
	timer_set(&w->timer, output_is_open(&w->output) ? TAIL_TIME : 0);
}

static void
stderr_ended(struct output_pair *o)
{
	struct worker *w = CONTAINER_OF(o, struct worker, output);

	if (w->state == WORKER_TAIL)
		timer_set(&w->timer, 0);
}

/* -- the start ------------------------------------------------------------------------- */

static int
open_stdout(struct worker *w, int *child_end)
{
	if (fd_pipe_from(&w->out, child_end) == -1)
		return -1;
	io_init(&w->out_io, w->env->loop, w->out, IO_READ, stdout_ready, w);
	io_start(&w->out_io);
	return 0;
}

static int
open_fds(struct worker *w, int fd[SPAWN_FDS])
{
	if (feeder_open(&w->feeder, &fd[0]) == -1 || open_stdout(w, &fd[1]) == -1)
		return -1;
	if (config_drops_output(w->cfg))
		return 0;
	if (output_open(&w->output, 2, &fd[2]) == -1)
		return -1;
	output_listen(&w->output);
	return 0;
}

static void
init(struct worker *w)
{
	TAILQ_INIT(&w->feeds);
	w->out = -1;
	feeder_init(&w->feeder, w->env->loop, written, stdin_broken);
	line_init(&w->line, pushes_line_max(w->cfg), line_came, w);
	timer_init(&w->timer, w->env->loop, time_is_up, w);
	timer_init(&w->age, w->env->loop, too_old, w);
	timer_init(&w->again, w->env->loop, read_again, w);
	output_init(&w->output, w->env->loop, w->handler, w->cfg->output_limit,
	    stderr_ended);
	w->output.ctx.queue = w->cfg->name;
}

static void
started(struct subprocess *p)
{
	struct worker *w = CONTAINER_OF(p, struct worker, process);
	struct log_ctx ctx = { .queue = w->cfg->name, .pid = p->pid };
	struct feed *f;

	w->output.ctx.pid = p->pid;
	TAILQ_FOREACH(f, &w->feeds, entry)
		f->base.pid = p->pid;
	log_event(LOG_LV_INFO, "handler_started", &ctx);
}

static void
failed(struct subprocess *p, int error, const char *step)
{
	struct worker *w = CONTAINER_OF(p, struct worker, process);

	enter_tail(w);
	give_back_feeds(w, error, step);
	timer_set(&w->timer, 0);
}

static const struct subprocess_events process_events = { started, failed, exited };

/* The process runs, or soon will. */
static void
begin(struct worker *w)
{
	w->started = clock_mono();
	if (w->cfg->max_age > 0)
		timer_set(&w->age, w->cfg->max_age);
	if (w->process.pid != 0)
		started(&w->process);
}

int
worker_start(struct worker *w, struct command *command, const char **step)
{
	int fd[SPAWN_FDS] = { -1, -1, -1, -1 }, ret = -1;

	init(w);
	*step = "pipe";
	if (open_fds(w, fd) == 0)
		ret = subprocess_start(&w->process, w->env, command, NULL, 0, fd,
		    w->cfg->leftovers == LEFTOVERS_KILL, &process_events, step);
	fd_close_all(fd, SPAWN_FDS);
	if (ret == 0)
		begin(w);
	return ret;
}

void
worker_free(struct worker *w)
{
	worker_kill(w);
	feeder_close(&w->feeder);
	close_stdout(w);
	timer_stop(&w->timer);
	timer_stop(&w->age);
	timer_stop(&w->again);
	pushes_debt_unref(w->debt);
	subprocess_done(&w->process);
	output_done(&w->output);
	line_done(&w->line);
	free(w->protocol);
	free(w);
}
