/*
 * One process of a handler.
 *
 *	WORKING --retire--> RETIRING
 *	   |                   | no message is left
 *	   |  it closed stdin  v
 *	   |----or stdout---> CLOSING
 *	   | stop, limit       | kill_grace has passed, or stop
 *	   v                   v
 *	STOPPING <-------------'     SIGTERM; SIGKILL after kill_grace
 *	   | exit
 *	   v
 *	  TAIL --output has ended, or TAIL_TIME has passed--> GONE
 *
 * RETIRING and CLOSING are of mode persistent.  A stop leads from RETIRING to STOPPING, too.
 * An exit leads to TAIL from each state above it, a failed start to GONE.
 *
 * Exec.  The daemon writes the whole input to a memfd before the child runs.  The child may
 * read it, seek in it or ignore it.  Neither process waits for the other.  The exit of the
 * command decides about its messages.  Statements come by descriptor 3: the last retry, defer,
 * hold or dead counts, ok withdraws it, and after a wrong line none counts.  In a batch, a line
 * may begin with the number of a message, and "N ok" ends that one at once; a line without a
 * number is about all messages that no line with a number has decided.
 *
 * Most handlers of mode exec are brief and print nothing.  The loop listens to their pipes
 * only after LISTEN_AFTER; until then they are read at the exit.
 *
 * Persistent.  Statements come by stdout, and each names its message.  A message that is
 * answered before it was written whole stays until it is.  When rqd or the process breaks off
 * its messages, they are settled at the exit, so that none runs twice at the same time.  After
 * SIGTERM only saves and the answer "ok" count: it says that work was done, while a trap may
 * answer "retry" or "dead" to give up.  "ok" counts neither for the message whose limit was
 * exceeded, nor after an answer that breaks the protocol.
 */
#include "handler/process.h"

#include <sys/mman.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/backoff.h"
#include "base/fd.h"
#include "base/utf8.h"
#include "policy/statement.h"

#define TAIL_TIME	SEC
#define LISTEN_AFTER	(20 * MSEC)
#define WRITES_MAX	16		/* a turn */
#define PAUSE_MIN	(100 * MSEC)
#define PAUSE_MAX	(10 * SEC)

static bool
persists(const struct process *p)
{
	return p->handler->cfg->mode == MODE_PERSISTENT;
}

/* The only place that changes the state. */
static void
process_set_state(struct process *p, enum process_state state)
{
	static const char *const names[] = {
		[PROCESS_WORKING] = "working", [PROCESS_RETIRING] = "retiring",
		[PROCESS_CLOSING] = "closing", [PROCESS_STOPPING] = "stopping",
		[PROCESS_TAIL] = "tail", [PROCESS_GONE] = "gone"
	};
	struct handler *h = p->handler;
	struct log_ctx ctx = { .queue = h->cfg->name, .pid = p->child.pid };

	if (persists(p))
		log_event(LOG_LV_DEBUG, "handler_state", &ctx, LF_STR("from", names[p->state]),
		    LF_STR("to", names[state]), LF_STR("reason", p->why));
	h->working -= p->state == PROCESS_WORKING;
	h->live -= p->state < PROCESS_TAIL && state >= PROCESS_TAIL;
	p->state = state;
	if (state == PROCESS_GONE) {
		TAILQ_REMOVE(&h->processes, p, entry);
		TAILQ_INSERT_TAIL(&h->gone, p, entry);
	}
	handler_touch(h);
}

/* -- its messages ---------------------------------------------------------------- */

/* Lets records of stderr name the message, if there is only one. */
static void
name_output(struct process *p)
{
	const struct feed *f = TAILQ_FIRST(&p->feeds);
	bool one = p->outstanding == 1;

	p->output.ctx.id = one ? f->msg->id : NULL;
	p->output.ctx.attempt = one ? f->msg->attempts + 1 : 0;
}

void
feed_over(struct feed *f)
{
	struct handler *h = f->base.handler;
	struct process *p = f->process;

	if (p != NULL && f == p->run)
		p->run = NULL;
	if (p != NULL && f->msg != NULL) {
		TAILQ_REMOVE(&p->feeds, f, entry);
		if (--p->outstanding == 0) {
			h->busy--;
			TAILQ_REMOVE(&h->processes, p, entry);
			TAILQ_INSERT_HEAD(&h->processes, p, entry);
		}
		if (persists(p))
			name_output(p);
	}
	f->process = NULL;
	f->over = true;
	TAILQ_INSERT_TAIL(&h->over, f, entry);
	handler_touch(h);
}

static struct feed *
oldest(const struct process *p)
{
	struct feed *f;

	TAILQ_FOREACH(f, &p->feeds, entry) {
		if (!f->answered)
			return f;
	}
	return NULL;
}

/*
 * Finds an outstanding message of a persistent process; NULL: there is none of this number,
 * or no byte of it was written.
 */
static struct feed *
find(const struct process *p, uint64_t number)
{
	struct feed *f;

	TAILQ_FOREACH(f, &p->feeds, entry) {
		if (f == p->next && p->sent == 0)
			return NULL;
		if (f->number == number)
			return f->answered ? NULL : f;
		if (f == p->next)
			return NULL;
	}
	return NULL;
}

/* -- its end ----------------------------------------------------------------------- */

static void
close_input(struct process *p)
{
	p->in_stopped = true;
	loop_defer_cancel(p->handler->env->loop, &p->in_flush);
	if (p->in == -1)
		return;
	io_done(&p->in_io);
	fd_close(&p->in);
}

/*
 * Ends the stream.  Inside of a message it leaves the pipe open and silent instead: the
 * process would take the part for a whole message.
 */
static void
stop_input(struct process *p)
{
	p->in_stopped = true;
	if (p->sent == 0)
		close_input(p);
	else if (p->in != -1)
		io_stop(&p->in_io);
}

static void
begin_close(struct process *p)
{
	if (p->state >= PROCESS_CLOSING)
		return;
	process_set_state(p, PROCESS_CLOSING);
	stop_input(p);
	timer_set(&p->timer, p->handler->cfg->kill_grace);
}

static void
close_when_empty(struct process *p)
{
	if (p->state == PROCESS_RETIRING && p->outstanding == 0)
		begin_close(p);
}

/* Leftovers are killed, too, because the messages may run again elsewhere. */
void
process_stop(struct process *p, const char *why)
{
	if (p->state >= PROCESS_STOPPING)
		return;
	if (p->why == NULL)
		p->why = why;
	process_set_state(p, PROCESS_STOPPING);
	stop_input(p);
	subprocess_stop(&p->child);
	/* What it prints now must not wait for a full pipe until it is killed. */
	p->listens = true;
	if (p->child.pid != 0)
		output_listen(&p->output);
	timer_set(&p->timer, p->handler->cfg->kill_grace);
}

void
process_retire(struct process *p, const char *why)
{
	if (p->state != PROCESS_WORKING)
		return;
	p->why = why;
	process_set_state(p, PROCESS_RETIRING);
	close_when_empty(p);
}

/*
 * The process broke the protocol: its answers no longer belong to messages.  The oldest
 * message has failed.
 */
static void
breach(struct process *p, const char *what, const char *line, size_t n)
{
	if (p->state >= PROCESS_STOPPING || p->protocol != NULL)
		return;
	if (line == NULL)
		p->protocol = xstrdup(what);
	else
		p->protocol = xasprintf("%s: %.*s", what,
		    (int)size_min(n, RESULT_QUOTE_MAX), line);
	p->culprit = oldest(p);
	process_stop(p, "protocol");
}

/* The output has ended, or its time: the messages were settled at the exit. */
static void
vanish(struct process *p)
{
	output_close(&p->output);
	timer_stop(&p->timer);
	process_set_state(p, PROCESS_GONE);
}

/* -- time ---------------------------------------------------------------------------- */

/* Exec: sets the timer for the time limit, or before that for listening. */
static void
set_timer(struct process *p)
{
	usec_t limit = p->handler->cfg->time_limit, after = limit > 0 ? limit : USEC_MAX;

	if (!p->listens && after > LISTEN_AFTER && output_is_open(&p->output))
		after = LISTEN_AFTER;
	if (after != USEC_MAX)
		timer_set_at(&p->timer, p->started + after);
}

static void
check_run(struct process *p)
{
	usec_t limit = p->handler->cfg->time_limit;

	if (limit > 0 && clock_mono() - p->started >= limit) {
		p->run->result.stop = STOP_TIME_LIMIT;
		process_stop(p, "time_limit");
		return;
	}
	p->listens = true;
	if (p->child.pid != 0)		/* else started() does it */
		output_listen(&p->output);
	set_timer(p);
}

/* Persistent: messages do not set the timer anew, so this computes the limit. */
static void
check_limit(struct process *p)
{
	struct feed *f = TAILQ_FIRST(&p->feeds);
	usec_t due;

	if (f == NULL || p->handler->cfg->time_limit == 0)
		return;
	/* A time in which Redis took no results does not count. */
	due = f->written > p->answered_at ? f->written : p->answered_at;
	due = (due > p->output.waited ? due : p->output.waited) + p->handler->cfg->time_limit;
	if (due > clock_mono()) {
		timer_set_at(&p->timer, due);
		return;
	}
	p->culprit = f;
	if (!f->answered)
		f->result.stop = STOP_TIME_LIMIT;
	process_stop(p, "time_limit");
}

static void
time_is_up(void *arg)
{
	struct process *p = arg;

	switch (p->state) {
	case PROCESS_WORKING:
	case PROCESS_RETIRING:
		if (persists(p))
			check_limit(p);
		else
			check_run(p);
		return;
	case PROCESS_CLOSING:
		if (p->outstanding > 0)
			breach(p, "closed its pipes and went on", NULL, 0);
		else
			process_stop(p, "closed");
		return;
	case PROCESS_STOPPING:
		subprocess_kill(&p->child);
		return;
	case PROCESS_TAIL:
		output_drain(&p->output);
		vanish(p);
		return;
	case PROCESS_GONE:
		return;
	}
}

static void
too_old(void *arg)
{
	process_retire(arg, "max_age");
}

/* -- messages in ---------------------------------------------------------------------- */

/*
 * Messages that are given in a turn are written at its end, in as few calls as possible, and
 * no more than one share a turn, even if the process reads as fast as that.  The rest waits
 * until the process has read.
 */
static void
write_input(void *arg)
{
	struct process *p = arg;
	struct feed *f, *next;
	int all = 1;

	for (int i = 0; i < WRITES_MAX && all == 1 && p->next != NULL && !p->in_stopped; i++) {
		f = p->next;
		all = feed_write(p->in, &p->next, &p->sent, false);
		for (; f != p->next; f = next) {
			next = TAILQ_NEXT(f, entry);
			if (f->answered)
				feed_over(f);
		}
		if (all == -1) {	/* it has closed its stdin */
			close_input(p);
			begin_close(p);
		}
		close_when_empty(p);
	}
	if (p->in == -1)
		return;
	if (p->next != NULL && !p->in_stopped)
		io_start(&p->in_io);
	else
		io_stop(&p->in_io);
}

static void
input_ready(int what UNUSED, void *arg)
{
	write_input(arg);
}

void
process_give(struct process *p, struct feed *f)
{
	struct handler *h = p->handler;

	if (p->outstanding++ == 0) {
		h->busy++;
		TAILQ_REMOVE(&h->processes, p, entry);
		TAILQ_INSERT_TAIL(&h->processes, p, entry);
	}
	f->process = p;
	f->base.pid = p->child.pid;
	f->number = ++p->messages;
	f->started = f->written = p->started;
	TAILQ_INSERT_TAIL(&p->feeds, f, entry);
	if (!persists(p))
		return;
	f->started = f->written = clock_mono();
	name_output(p);
	if (p->next == NULL)
		p->next = f;
	loop_defer(h->env->loop, &p->in_flush, write_input, p);
	if (h->cfg->time_limit > 0 && !timer_is_set(&p->timer))
		timer_set(&p->timer, h->cfg->time_limit);
	if (h->cfg->max_messages > 0 && p->messages >= (uint64_t)h->cfg->max_messages)
		process_retire(p, "max_messages");
}

/* -- statements out ---------------------------------------------------------------------- */

/* The run of the message is over, and began. */
static void
set_time(struct feed *f)
{
	f->result.pid = f->base.pid;
	f->result.duration = clock_mono() - f->started;
	if (f->result.duration == 0)
		f->result.duration = 1;
}

/* The statement ends the message, which is one of several of its process. */
static void
answer(struct process *p, struct feed *f, const struct statement *s)
{
	struct result *r = &f->result;

	set_time(f);
	r->end = END_ANSWER;
	r->stop = STOP_NONE;
	if (s->word == STATEMENT_OK) {
		free(r->answer);
		r->answer = NULL;
		r->said = SAID_OK;
	} else {
		result_say(r, s);
	}
	p->pushed -= pushes_memory(r->pushes);
	result_check_pushes(r);
	pushes_owe(r->pushes, &p->output.debt);
	p->answers++;
	if (!persists(p)) {
		feed_over(f);
		return;
	}
	r->output_cut = p->output.cut;
	if (s->word != STATEMENT_OK)
		r->error_tail = output_take_tail(&p->output, &r->error_len);
	output_renew(&p->output, p->outstanding == 1);
	p->answered_at = clock_mono();
	f->answered = true;
	if (f != p->next)
		feed_over(f);
	close_when_empty(p);
}

/* Keeps the text; a question mark replaces each character that is not visible. */
static void
set_progress(struct run *r, const char *p, size_t len)
{
	free(r->progress);
	r->progress = len > 0 ? xmalloc(PROGRESS_MAX + 1) : NULL;
	if (r->progress != NULL)
		utf8_copy_visible(r->progress, PROGRESS_MAX, p, len);
}

static void
take_statement(struct process *p, struct feed *f, const struct statement *s, bool cut)
{
	bool of_many = f != p->run;

	if (s->word == STATEMENT_SAVE)
		f->base.handler->events->saved(f->msg, s->text, s->len, f->base.handler->arg);
	else if (s->word == STATEMENT_PROGRESS)
		set_progress(p->run != NULL ? &p->run->base : &f->base, s->text, s->len);
	else if (s->word == STATEMENT_PUSH)
		pushes_add_said(&f->result.pushes, f->msg, s, cut, of_many ? &p->pushed : NULL);
	else if (persists(p) || (of_many && s->word == STATEMENT_OK &&
	    f->result.said != SAID_WRONG && pushes_fault(f->result.pushes) == NULL))
		answer(p, f, s);
	else
		result_say(&f->result, s);
}

/* fault: why the line is no statement; or NULL. */
static void
persistent_line(struct process *p, const struct statement *s, const char *fault, bool cut,
    const char *line, size_t n)
{
	struct feed *f = fault == NULL ? find(p, s->number) : NULL;

	/* After SIGTERM saves, "ok" and the pushes before it count: see the head of this file. */
	if (fault == NULL && p->state == PROCESS_STOPPING && (f == NULL ||
	    (s->word != STATEMENT_SAVE && (f == p->culprit ||
	    (s->word != STATEMENT_OK && s->word != STATEMENT_PUSH) ||
	    f->result.stop == STOP_LOST || f->result.stop == STOP_CANCEL))))
		return;
	if (f == NULL)
		breach(p, fault != NULL ? "not an answer" : "not outstanding", line, n);
	else
		take_statement(p, f, s, cut);
}

/* The same for a handler of mode exec. */
static void
exec_line(struct process *p, const struct statement *s, const char *fault, bool cut,
    const char *line, size_t n)
{
	struct feed *f = p->run;

	if (s->word == STATEMENT_PUSH && p->output.unfinished)
		fault = "a push without newline, which a process may still be writing";
	if (s->number > p->messages) {
		fault = "no message has this number";
	} else if (s->number > 0 && (f = &p->batch[s->number - 1])->over) {
		/* It cannot count, and must not be dropped silently. */
		f = p->run;
		if (fault == NULL && s->word == STATEMENT_OK)
			return;
		if (fault != NULL || s->word != STATEMENT_PROGRESS)
			fault = "this message is acknowledged already";
	}
	if (fault != NULL)
		result_say_wrong(&f->result, fault, line, n);
	else
		take_statement(p, f, s, cut);
}

/* Why the process cannot save this text; NULL: it can. */
static const char *
save_fault(const struct process *p, const struct statement *s)
{
	if (p->batch != NULL)
		return "a batch cannot save";
	if (!kind_has(p->handler->cfg->kind, TRAIT_LEASES))
		return "this kind of queue cannot save";
	if (s->len > MESSAGE_SAVED_MAX)
		return "a text of more than 4 KiB";
	return NULL;
}

/* From the output.  The rest of a line that was too long is skipped. */
static void
line_came(const char *line, size_t n, bool cut, void *arg)
{
	struct process *p = CONTAINER_OF((struct output *)arg, struct process, output);
	struct statement s = { .number = 0 };
	enum statement_number number = STATEMENT_BARE;
	bool rest = p->inside;
	const char *fault = NULL;
	int parsed;

	p->inside = cut;
	if (rest || p->protocol != NULL)
		return;
	if (persists(p))
		number = STATEMENT_NUMBERED;
	else if (p->batch != NULL)
		number = STATEMENT_EITHER;
	parsed = statement_parse(line, n, number, &s);
	if (p->output.unfinished && (parsed == -1 || s.word == STATEMENT_SAVE))
		return;
	if (parsed == 0 && s.word == STATEMENT_PUSH)
		fault = p->batch != NULL && s.number == 0 ?
		    "a push without the number of a message" : NULL;
	else if (cut || n > STATEMENT_LINE_MAX)
		fault = "a line of more than 8 KiB";
	else if (parsed == -1)
		fault = "not a statement";
	else if (s.word == STATEMENT_SAVE)
		fault = save_fault(p, &s);
	else if (s.group && p->handler->cfg->group_by[0] == '\0')
		fault = "this queue has no group_by";
	if (persists(p))
		persistent_line(p, &s, fault, cut, line, n);
	else
		exec_line(p, &s, fault, cut, line, n);
}

/* From the output. */
static void
output_ended(struct output *o)
{
	struct process *p = CONTAINER_OF(o, struct process, output);

	if (p->state == PROCESS_TAIL && !output_is_open(o))
		vanish(p);
	else if (persists(p) && !output_has(o, 1))
		begin_close(p);
}

/* -- the exit -------------------------------------------------------------------------------- */

static void
set_end(struct feed *f, const struct spawner_exit *x)
{
	struct result *r = &f->result;

	if (x->error != 0) {
		f->base.pid = 0;
		r->end = END_NOT_STARTED;
		r->error = x->error;
		r->step = x->step;
		return;
	}
	set_time(f);
	r->end = x->signaled ? END_SIGNAL : END_EXIT;
	r->status = x->signaled ? 0 : x->code;
	r->signo = x->signaled ? x->code : 0;
	r->oom = x->oom;
}

/*
 * The result of a message of a batch: that of the run, but for what the handler has said of
 * the message.  stderr only if it may be shown.
 */
static void
copy_result(struct result *r, const struct result *run)
{
	struct result said = *r;

	*r = *run;
	if (r->batch > 1)
		r->usage = (struct usage){ 0 };
	r->pushes = said.pushes;
	if (run->end == END_EXIT && run->stop == STOP_NONE && said.said != SAID_NOTHING) {
		r->said = said.said;
		r->delay = said.delay;
		r->answer = said.answer;
	} else {
		free(said.answer);
		r->answer = run->answer != NULL ? xstrdup(run->answer) : NULL;
	}
	result_check_pushes(r);
	r->error_tail = NULL;
	r->error_len = 0;
	if (run->error_len > 0 && !(run->end == END_EXIT && run->status == 0)) {
		r->error_tail = xmemdup(run->error_tail, run->error_len);
		r->error_len = run->error_len;
	}
}

/* Exec: the exit ends all messages.  What the handler said counts if it ended by itself. */
static void
settle_run(struct process *p, const struct spawner_exit *x)
{
	struct feed *run = p->run, *f, *next;
	struct result *r = &run->result;

	set_end(run, x);
	r->leftovers = x->leftovers;
	if (x->error == 0)
		r->usage = x->usage;
	if (r->end != END_EXIT || r->stop != STOP_NONE) {
		free(r->answer);
		r->answer = NULL;
		r->said = SAID_NOTHING;
		r->delay = 0;
	}
	result_check_pushes(r);
	r->error_tail = output_take_tail(&p->output, &r->error_len);
	r->output_cut = p->output.cut;
	TAILQ_FOREACH_SAFE(f, &p->feeds, entry, next) {
		if (f != run)
			copy_result(&f->result, r);
		feed_over(f);
	}
	if (p->run != NULL)
		feed_over(run);
}

static void
broken_off(struct process *p, struct feed *f, const struct spawner_exit *x)
{
	struct result *r = &f->result;

	set_end(f, x);
	if (f != p->culprit) {
		if (r->stop == STOP_NONE)
			r->stop = STOP_PEER;
		return;
	}
	r->leftovers = x->leftovers;
	r->output_cut = p->output.cut;
	r->error_tail = output_take_tail(&p->output, &r->error_len);
	if (p->protocol != NULL && r->stop == STOP_NONE) {
		r->end = END_ANSWER;
		r->said = SAID_WRONG;
		xreplace(&r->answer, p->protocol);
	}
}

/* Persistent: the exit breaks off the messages that are left. */
static void
settle_feeds(struct process *p, const struct spawner_exit *x, bool stopped)
{
	struct feed *f, *next, *unsent = p->next;
	bool begun = true;

	if (unsent != NULL && p->sent > 0)
		unsent = TAILQ_NEXT(unsent, entry);
	if (p->culprit == NULL && !stopped && x->error == 0)
		p->culprit = oldest(p);
	TAILQ_FOREACH_SAFE(f, &p->feeds, entry, next) {
		begun = begun && f != unsent;
		if (x->error != 0) {
			set_end(f, x);
		} else if (!begun && f != p->culprit) {
			/* No byte of it was written, so it did not cause the end. */
			f->base.pid = 0;
			f->result.end = END_NOT_RUN;
			if (f->result.stop == STOP_NONE)
				f->result.stop = STOP_PEER;
		} else if (!f->answered) {
			broken_off(p, f, x);
		}
		feed_over(f);
	}
}

/* Persistent: computes when the next process may be started. */
static void
note_end(const struct process *p)
{
	struct handler *h = p->handler;

	if (p->answers > 0)
		h->deaths = 0;
	else if (p->why == NULL || p->messages > 0)
		h->deaths++;
	if (h->deaths > 1)
		h->not_before = p->started + backoff_delay(PAUSE_MIN, PAUSE_MAX,
		    h->deaths - 1, random_unit());
	else if (p->why == NULL)
		h->not_before = p->started + PAUSE_MIN;
}

static void
log_exit(const struct process *p, const struct spawner_exit *x)
{
	char signal[UTIL_SIGNAL_MAX];
	struct log_ctx ctx = { .queue = p->handler->cfg->name, .pid = p->child.pid };
	bool bad = p->protocol != NULL || p->culprit != NULL ||
	    (p->why == NULL && (x->signaled || x->code != 0));
	enum log_level level = bad ? LOG_LV_WARN : LOG_LV_INFO;
	const char *cause = p->protocol;

	if (cause == NULL && x->oom)
		cause = "oom";
	log_event(level, "handler_exited", &ctx,
	    x->signaled ? LF_STR("signal", util_signal(x->code, signal)) :
	    LF_INT("status", x->code),
	    LF_USEC("duration", clock_mono() - p->started),
	    LF_INT("messages", (int64_t)p->messages), LF_STR("reason", p->why),
	    LF_STR("cause", cause));
}

static void
exited(struct subprocess *s, const struct spawner_exit *x)
{
	struct process *p = CONTAINER_OF(s, struct process, child);
	bool stopped = p->state == PROCESS_STOPPING;

	output_drain(&p->output);
	output_end(&p->output, x->leftovers > 0 || x->signaled);
	close_input(p);
	timer_stop(&p->age);
	timer_stop(&p->timer);
	process_set_state(p, PROCESS_TAIL);
	if (persists(p)) {
		settle_feeds(p, x, stopped);
		if (s->pid != 0)
			log_exit(p, x);
		note_end(p);
	} else {
		settle_run(p, x);
	}
	if (output_is_open(&p->output) && x->error == 0) {
		output_listen(&p->output);
		timer_set(&p->timer, TAIL_TIME);
	} else {
		vanish(p);
	}
}

/* -- the start ------------------------------------------------------------------------- */

/* Writes the input of a handler of mode exec; the position is at its beginning then. */
static int
write_file(const struct process *p, int fd)
{
	const struct message *msg = p->run->msg;
	struct feed *next = TAILQ_FIRST(&p->feeds);
	size_t sent = 0;

	if (msg != NULL)
		return msg->payload != NULL ? fd_write_at(fd, msg->payload, msg->len, 0) : 0;
	while (next != NULL) {
		if (feed_write(fd, &next, &sent, p->handler->cfg->framing == FRAMING_RAW) == -1)
			return -1;
	}
	return lseek(fd, 0, SEEK_SET) == -1 ? -1 : 0;
}

/* Opens the child's descriptors; -1 is /dev/null.  After a failure some may be open. */
static int
open_fds(struct process *p, int fd[SPAWN_FDS], const char **step)
{
	const struct queue_config *cfg = p->handler->cfg;
	enum stream_use use = STREAM_LOG;

	if (persists(p)) {
		*step = "pipe";
		if (fd_pipe_to(&p->in, &fd[0]) == -1)
			return -1;
		io_init(&p->in_io, p->handler->env->loop, p->in, IO_WRITE, input_ready, p);
		use = STREAM_STATEMENTS;
	} else {
		*step = "memfd";
		fd[0] = fd_memory("rqd-message");
		if (fd[0] == -1 || write_file(p, fd[0]) == -1)
			return -1;
		*step = "pipe";
		if (cfg->verdicts && output_open(&p->output, 3, STREAM_STATEMENTS, &fd[3]) == -1)
			return -1;
		if (p->run->msg != NULL && config_pushed_queue(p->run->msg->cfg->output) != NULL)
			use = STREAM_MESSAGES;
	}
	if ((use != STREAM_LOG || !config_drops_output(cfg)) &&
	    output_open(&p->output, 1, use, &fd[1]) == -1)
		return -1;
	return config_drops_output(cfg) ? 0 : output_open(&p->output, 2, STREAM_LOG, &fd[2]);
}

static void
started(struct subprocess *s)
{
	struct process *p = CONTAINER_OF(s, struct process, child);
	struct log_ctx ctx = { .queue = p->handler->cfg->name, .pid = s->pid };
	struct feed *f;

	p->output.ctx.pid = s->pid;
	TAILQ_FOREACH(f, &p->feeds, entry)
		f->base.pid = s->pid;
	if (p->run != NULL)
		p->run->base.pid = s->pid;
	if (persists(p))
		log_event(LOG_LV_INFO, "handler_started", &ctx);
	/* Not before: the records of what it prints, or answers, have its pid. */
	if (persists(p) || p->listens)
		output_listen(&p->output);
}

struct process *
process_new(struct handler *h, struct feed *run, unsigned n)
{
	struct process *p = NEW(struct process, .handler = h, .run = run,
	    .started = clock_mono(), .in = -1, .in_flush.stage = LOOP_FEED);
	struct output *o = &p->output;

	TAILQ_INIT(&p->feeds);
	timer_init(&p->timer, h->env->loop, time_is_up, p);
	timer_init(&p->age, h->env->loop, too_old, p);
	output_init(o, h->env->loop, h->cfg, h->events, h->arg, line_came, output_ended);
	TAILQ_INSERT_HEAD(&h->processes, p, entry);
	h->live++;
	h->working++;
	if (n > 0) {
		p->batch = xreallocarray(NULL, n, sizeof(*p->batch));
		run->process = p;
		run->started = p->started;
	} else if (run != NULL) {
		(void)snprintf(p->id, sizeof(p->id), "%s", run->msg->id);
		o->ctx.id = p->id;
		o->ctx.attempt = run->msg->attempts + 1;
		if (run->msg->trace != NULL)
			o->ctx.trace = p->trace = xstrdup(run->msg->trace);
		o->msg = run->msg;
		o->pushes = &run->result.pushes;
	}
	return p;
}

void
process_start(struct process *p)
{
	static const struct subprocess_events events = { started, exited };
	struct handler *h = p->handler;
	int fd[SPAWN_FDS] = { -1, -1, -1, -1 }, ret = -1;
	const char *step;

	if (open_fds(p, fd, &step) == 0) {
		step = "spawner";
		ret = subprocess_start(&p->child, h->env->spawner, h->config, h->cfg,
		    p->output.msg, p->batch != NULL ? (unsigned)p->messages : 0, fd, &events);
	}
	fd_close_all(fd, SPAWN_FDS);
	if (ret == -1)
		exited(&p->child, &(struct spawner_exit){ .error = errno, .step = step });
	else if (!persists(p))
		set_timer(p);
	else if (h->cfg->max_age > 0)
		timer_set(&p->age, h->cfg->max_age);
}

void
process_free(struct process *p)
{
	struct feed *f;

	subprocess_kill(&p->child);
	subprocess_done(&p->child);
	close_input(p);
	timer_stop(&p->timer);
	timer_stop(&p->age);
	output_done(&p->output);
	while ((f = TAILQ_TAKE(&p->feeds, entry)) != NULL)
		feed_free(f);
	if (p->batch != NULL && p->run != NULL)
		feed_free(p->run);
	free(p->batch);
	free(p->protocol);
	free(p->trace);
	free(p);
}
