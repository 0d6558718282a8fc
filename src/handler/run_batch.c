/*
 * A batch at a process; see run_batch.h.
 */
#include "handler/run_batch.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "handler/frame.h"

#define CHUNK	((size_t)64 * 1024)	/* frames are gathered up to this size */

struct run_batch {
	struct run	*run;
	usec_t		 started;	/* mono */
	bool		*freed;		/* set while done() is called; else NULL */
	/*
	 * For each message its verdict so far: said, delay, answer and pushes; NULL:
	 * none yet.
	 */
	struct result	*said;
	struct message	**ok;		/* done, and done() will come; NULL: there was none */
	unsigned	*ok_at;		/* their indexes */
	size_t		 pushed;	/* pushes_memory() of said */
	struct pushes_debt *debt;	/* reference; of messages that are done; NULL: none */
	unsigned	 nok;
	struct defer	 tell;
	unsigned	 n;
	struct message	*msgs[];	/* NULL: done */
};

struct run_batch *
run_batch_new(struct run *run, struct message *const *msgs, unsigned n)
{
	struct run_batch *b = xcalloc(1, sizeof(*b) + n * sizeof(struct message *));

	b->run = run;
	b->started = clock_mono();
	b->n = n;
	memcpy(b->msgs, msgs, n * sizeof(struct message *));
	return b;
}

void
run_batch_free(struct run_batch *b)
{
	if (b == NULL)
		return;
	if (b->freed != NULL)
		*b->freed = true;
	loop_defer_cancel(b->run->handler->env->loop, &b->tell);
	for (unsigned i = 0; b->said != NULL && i < b->n; i++)
		result_done(&b->said[i]);
	pushes_debt_unref(b->debt);
	free(b->said);
	free(b->ok);
	free(b->ok_at);
	free(b);
}

unsigned
run_batch_size(const struct run_batch *b)
{
	return b->n;
}

/* -- frames ------------------------------------------------------------------- */

/* A file that is written from its beginning, in large pieces. */
struct out {
	struct buf	buf;
	int		fd;
	off_t		at;
};

static int
out_write(struct out *o, const char *p, size_t len)
{
	if (fd_write_at(o->fd, p, len, o->at) == -1)
		return -1;
	o->at += (off_t)len;
	return 0;
}

static int
out_flush(struct out *o)
{
	int ret = out_write(o, o->buf.data, o->buf.len);

	buf_clear(&o->buf);
	return ret;
}

/* Adds bytes: copies a few, and writes many from where they are. */
static int
out_add(struct out *o, const char *p, size_t len)
{
	if (o->buf.len + len > CHUNK && out_flush(o) == -1)
		return -1;
	if (len > CHUNK)
		return out_write(o, p, len);
	buf_add(&o->buf, p, len);
	return 0;
}

static int
out_frame(struct out *o, enum framing framing, unsigned number, const struct message *msg)
{
	char header[FRAME_HEADER_MAX];

	if (framing != FRAMING_RAW &&
	    out_add(o, header, frame_header(header, number, msg)) == -1)
		return -1;
	if (out_add(o, msg->payload, frame_payload_len(msg)) == -1)
		return -1;
	return out_add(o, "\n", 1);
}

int
run_batch_write(const struct run_batch *b, int fd)
{
	enum framing framing = b->run->handler->cfg->framing;
	struct out o = { .fd = fd };
	int ret = 0;

	for (unsigned i = 0; i < b->n && ret == 0; i++)
		ret = out_frame(&o, framing, i + 1, b->msgs[i]);
	if (ret == 0)
		ret = out_flush(&o);
	buf_done(&o.buf);
	return ret;
}

/* -- results ------------------------------------------------------------------ */

/* Calls done() for one message; false: that has freed the batch. */
static bool
tell_done(struct run_batch *b, struct message *msg, struct result *r)
{
	struct handler *h = b->run->handler;
	bool freed = false;

	r->batch = b->n;
	b->freed = &freed;
	h->events->done(msg, r, h->arg);
	if (freed)
		return false;
	b->freed = NULL;
	return true;
}

/* Calls done() for the messages that are ok; false: that has freed the batch. */
static bool
tell_ok(struct run_batch *b)
{
	struct result r;

	for (unsigned i = 0; i < b->nok; i++) {
		r = (struct result){ .end = END_ANSWER, .said = SAID_OK, .pid = b->run->pid,
		    .duration = clock_mono() - b->started,
		    .pushes = b->said[b->ok_at[i]].pushes };
		b->said[b->ok_at[i]].pushes = NULL;
		b->pushed -= pushes_memory(r.pushes);
		result_check_pushes(&r);
		pushes_owe(r.pushes, &b->debt);
		if (!tell_done(b, b->ok[i], &r))
			return false;
	}
	b->nok = 0;
	return true;
}

static void
tell_ok_cb(void *arg)
{
	(void)tell_ok(arg);
}

/* A copy of the run's result for one message, with stderr only if it may be shown. */
static struct result
copy_result(const struct result *of)
{
	struct result r = *of;

	r.answer = of->answer != NULL ? xstrdup(of->answer) : NULL;
	r.pushes = NULL;
	r.error_tail = NULL;
	r.error_len = 0;
	if (of->error_len > 0 && !(of->end == END_EXIT && of->status == 0)) {
		r.error_tail = xmemdup(of->error_tail, of->error_len);
		r.error_len = of->error_len;
	}
	return r;
}

/* Replaces the run's verdict by that about message i; not after a signal of rqd. */
static void
add_said(struct run_batch *b, unsigned i, struct result *r)
{
	struct result *s = &b->said[i];

	if (r->end != END_EXIT || r->stop != STOP_NONE)
		return;
	if (s->said != SAID_NOTHING) {
		free(r->answer);
		r->said = s->said;
		r->delay = s->delay;
		r->answer = s->answer;
		s->answer = NULL;
	}
	r->pushes = s->pushes;
	s->pushes = NULL;
	result_check_pushes(r);
}

bool
run_batch_must_wait(const struct run_batch *b)
{
	return pushes_debt_is_large(b->debt);
}

void
run_batch_finish(struct run_batch *b, struct result *result)
{
	struct handler *h = b->run->handler;
	struct run *run = b->run;
	struct message *msg;
	bool here = tell_ok(b);
	struct result r;

	result->batch = here ? b->n : 0;
	for (unsigned i = 0; here && i < b->n; i++) {
		if ((msg = b->msgs[i]) == NULL)
			continue;
		r = copy_result(result);
		if (b->said != NULL)
			add_said(b, i, &r);
		b->msgs[i] = NULL;
		here = tell_done(b, msg, &r);
	}
	if (here)
		h->events->over(run, result, h->arg);
	result_done(result);
}

/* -- lines -------------------------------------------------------------------- */

static void
say_ok(struct run_batch *b, unsigned i)
{
	if (b->ok == NULL) {
		b->ok = xcalloc(b->n, sizeof(*b->ok));
		b->ok_at = xcalloc(b->n, sizeof(*b->ok_at));
	}
	b->ok[b->nok] = b->msgs[i];
	b->ok_at[b->nok++] = i;
	b->msgs[i] = NULL;
	loop_defer(b->run->handler->env->loop, &b->tell, tell_ok_cb, b);
}

/* A line about a message that is done.  It cannot count, and must not be dropped silently. */
static const char *
say_late(struct run_batch *b, const struct statement *s, const char *fault)
{
	if (fault == NULL && s->word == STATEMENT_PROGRESS)
		run_set_progress(b->run, s->text, s->len);
	return fault == NULL && (s->word == STATEMENT_PROGRESS || s->word == STATEMENT_OK) ?
	    NULL : "this message is acknowledged already";
}

const char *
run_batch_say(struct run_batch *b, const struct statement *s, const char *fault,
    bool cut, const char *line, size_t n)
{
	unsigned i = (unsigned)s->number - 1;
	struct result *said;
	struct message *msg;

	if (s->number == 0 || s->number > b->n)
		return "no message has this number";
	if ((msg = b->msgs[i]) == NULL)
		return say_late(b, s, fault);
	if (b->said == NULL)
		b->said = xcalloc(b->n, sizeof(*b->said));
	said = &b->said[i];
	if (fault != NULL)
		result_say_wrong(said, fault, line, n);
	else if (s->word == STATEMENT_PROGRESS)
		run_set_progress(b->run, s->text, s->len);
	else if (s->word == STATEMENT_PUSH)
		pushes_add_said(&said->pushes, msg, s, cut, &b->pushed);
	else if (s->word != STATEMENT_OK)
		result_say(said, s);
	else if (said->said != SAID_WRONG && pushes_fault(said->pushes) == NULL)
		say_ok(b, i);
	return NULL;
}
