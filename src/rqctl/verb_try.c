/*
 * rqctl try: runs the handler of a queue once, by hand.
 *
 * rqctl runs the daemon's handler (handler.h) in a loop without Redis: user, umask, limits,
 * directory, environment, time limit and output limit are those of the queue.  A spawner
 * starts the handler, as in rqd, after the same check of the configuration.  If root runs
 * rqctl, it gives up root before it reads a byte of the handler.  Another user can run
 * only handlers of the same user.  rqctl prints the output line by line, and then what the
 * daemon would have done (outcome.h).
 *
 * SIGINT and SIGTERM end the handler as a shutdown does; a second signal kills it.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/units.h"
#include "config/launch_config.h"
#include "handler/cgroup.h"
#include "handler/start_error.h"
#include "handler/handler.h"
#include "handler/identity.h"
#include "handler/privilege.h"
#include "handler/spawner.h"
#include "loop/child.h"
#include "loop/loop.h"
#include "policy/message.h"
#include "policy/outcome.h"
#include "rqctl/ctl.h"
#include "rqctl/out.h"

struct try {
	struct ctl		*ctl;
	struct loop		*loop;
	struct config		*config;	/* reference held */
	const struct queue_config *cfg;
	struct spawner		*spawner;	/* NULL: none yet */
	struct config_source	 source;	/* the spawner's */
	struct words		 overrides;	/* of source */
	struct handler		*handler;
	struct message		*msg;
	struct run		*run;		/* NULL: not started, or over */
	struct result		 result;	/* of the message */
	struct result		 end;		/* of the run; owns nothing */
	char			*saved;		/* the last text; owned; NULL: none */
	int			 signo;		/* the last signal that rqctl received; 0: none */
};

/* Makes t->msg as a pop would. */
static int
make_message(struct try *t, struct buf *payload)
{
	struct message *m = message_new(t->config, t->cfg);
	const char *given = NULL;
	const char *saved = ctl_value(t->ctl, OPT_SAVED);
	char id[MESSAGE_ID_MAX + 1];
	long attempt = 1;

	t->msg = m;
	if (ctl_given(t->ctl, OPT_ID))
		given = ctl_value(t->ctl, OPT_ID);
	if (ctl_count(t->ctl, OPT_ATTEMPT, INT_MAX, &attempt) == -1)
		return -1;
	if (given != NULL && !message_id_ok(given, strlen(given)))
		return ctl_error(t->ctl, EX_USAGE, "--id: \"%s\": an id has 1 to %d bytes "
		    "and no control characters", given, MESSAGE_ID_MAX);
	if (strlen(saved) > MESSAGE_SAVED_MAX || strchr(saved, '\n') != NULL)
		return ctl_error(t->ctl, EX_USAGE, "--saved: a saved text has at most 4096 bytes "
		    "and no newline");
	if (saved[0] != '\0' && !config_has_batches(t->cfg))
		m->saved = xstrdup(saved);
	m->len = payload->len;
	m->payload = buf_steal(payload);
	m->too_large = m->len > t->cfg->message_max;
	if (given == NULL && message_id_of(t->cfg->kind, t->cfg->id, m->payload, m->len,
	    id) == -1)
		strcpy(id, "~try");
	if (given == NULL)
		given = id;
	m->id = xstrdup(given);
	m->tag = xstrdup(m->id);
	if (kind_has(t->cfg->kind, TRAIT_SUBSCRIBES))
		m->channel = xstrdup(t->cfg->keys[0]);
	m->token = xstrdup("try.1");
	m->attempts = (unsigned)attempt - 1;
	m->delivered = clock_mono();
	if (config_members(t->cfg) > 0)
		message_read(m, t->cfg);
	return 0;
}

static void
closed(void *arg)
{
	loop_stop(((struct try *)arg)->loop);
}

static void
over(struct run *run UNUSED, const struct result *result, void *arg)
{
	struct try *t = arg;

	t->end = *result;
	t->run = NULL;
	handler_close(t->handler, closed, t);
}

/* In a batch a message may be done before the run ends; over() is then called later. */
static void
done(struct message *msg UNUSED, struct result *result, void *arg)
{
	struct try *t = arg;

	t->result = *result;
	if (!config_has_batches(t->cfg))
		over(t->run, result, t);
}

static void
output(const struct log_ctx *ctx UNUSED, int fd, const char *line, size_t len, bool cut,
    void *arg UNUSED)
{
	FILE *out = stdout;

	if (fd == 2)
		out = stderr;

	out_foreign(out, line, len);
	if (!cut)
		putc('\n', out);
	fflush(out);
}

static void
save(struct message *msg UNUSED, const char *text, size_t len, void *arg)
{
	struct try *t = arg;

	free(t->saved);
	t->saved = xstrndup(text, len);
}

/* Does nothing: say() reports it at the end. */
static void
output_cut(const struct log_ctx *ctx UNUSED, void *arg UNUSED)
{
}

static void
on_signal(int signo, void *arg)
{
	struct try *t = arg;

	if (t->run == NULL)
		return;
	if (t->signo != 0)
		handler_kill(t->run);
	t->signo = signo;
	handler_stop(t->run, STOP_DRAIN);
}

/* -- its spawner ------------------------------------------------------------------------ */

/* Only root can run a handler as another user. */
static int
check_own_user(struct try *t)
{
	const struct queue_config *q = t->cfg;
	struct identity id = { .uid = (uid_t)-1 };
	const char *step;
	uid_t uid;

	if (identity_find(q->user, q->group, &id, &step) == -1)
		return 0;
	uid = id.uid;
	identity_done(&id);
	if (uid == (uid_t)-1 || uid == geteuid())
		return 0;
	return ctl_error(t->ctl, EX_NOPERM, "queue \"%s\" has user = \"%s\", and only root can run "
	    "its handler: sudo rqctl try %s", q->name, q->user, q->name);
}

/* A limit that the run does not have: a message that needs more would pass here. */
static void
warn_of_limit(bool is_set, const char *option, enum cgroup_part part)
{
	if (is_set && cgroup_lacks(part) != NULL)
		fprintf(stderr, "rqctl: warning: %s has no effect here: %s\n", option,
		    cgroup_lacks(part));
}

/* Takes the configuration and privileges that rqd would have if this user started it. */
static int
become_rqd(struct try *t)
{
	const char *name = t->cfg->name;
	struct config_report report = { 0 };
	char *cause = NULL;

	if (!privilege_held() && check_own_user(t) == -1)
		return -1;
	if (privilege_held())
		umask(022);	/* as of the service; a queue may set its own */
	if (ctl_has_file(t->ctl))
		t->source.file = t->ctl->config->file;
	ctl_add_lines(&t->overrides, t->ctl->config->overrides);
	words_mem(&t->overrides, NULL, 0);
	t->source.overrides = t->overrides.v;
	t->config = launch_config_start(&t->source, &t->spawner, &report, &cause);
	if (cause != NULL)
		ctl_error(t->ctl, EX_OSERR, "%s", cause);
	for (size_t i = 0; t->config == NULL && i < report.errors.n; i++)
		ctl_error(t->ctl, EX_CONFIG, "%s", report.errors.v[i]);
	config_report_done(&report);
	free(cause);
	if (t->config == NULL)
		return -1;
	t->cfg = config_queue(t->config, name);
	if (t->cfg == NULL)
		return ctl_error(t->ctl, EX_CONFIG, "the configuration has changed "
		    "meanwhile: run rqctl try again");
	warn_of_limit(t->cfg->memory_max > 0, "memory_max", CGROUP_MEMORY);
	warn_of_limit(t->cfg->pids_max > 0, "pids_max", CGROUP_PIDS);
	return 0;
}

static void
spawner_died(void *arg)
{
	struct try *t = arg;

	ctl_error(t->ctl, EX_OSERR, "the spawner process has ended");
	exit(EX_OSERR);
}

/* -- running it ---------------------------------------------------------------------------- */

/* Runs it to the end; the result is in t->result. */
static void
run(struct try *t)
{
	static const struct handler_events events = {
		.done = done, .over = over, .output = output, .output_cut = output_cut,
		.saved = save
	};
	struct handler_env env = { .loop = t->loop, .spawner = t->spawner };

	child_init(t->loop);
	spawner_attach(t->spawner, t->loop, spawner_died, t);
	loop_signal(t->loop, SIGINT, on_signal, t);
	loop_signal(t->loop, SIGTERM, on_signal, t);
	t->handler = handler_open(&env, t->config, t->cfg, &events, t);
	if (config_has_batches(t->cfg))
		t->run = handler_start_batch(t->handler, &t->msg, 1);
	else
		t->run = handler_start(t->handler, t->msg);
	loop_run(t->loop);
	handler_free(t->handler);
}

/* The ends of a run without an exit status: as text, and as the exit status of rqctl. */
static const struct end_text {
	const char	*text;
	int		 status;
} ends[] = {
	[END_NOT_RUN] = { "not run", EX_TEMPFAIL },
	[END_ANSWER] = { "answered", EX_TEMPFAIL },
	[END_UNFRAMEABLE] = { "the message cannot be framed", EX_DATAERR },
};

/* "said retry (carrier is down)", "answered ok", "broke the protocol (not an answer: 1 okay)" */
static void
add_said(const struct result *r, struct buf *b)
{
	const char *word = said_name(r->said);

	if (word != NULL && r->end == END_ANSWER && r->batch == 0)
		buf_printf(b, "answered %s", word);
	else if (word != NULL)
		buf_printf(b, "said %s", word);
	else if (r->said == SAID_WRONG)
		buf_puts(b, "broke the protocol");
	else
		buf_puts(b, "may not push");
	if (r->answer == NULL)
		return;
	buf_puts(b, " (");
	out_escape(b, r->answer, strlen(r->answer));
	buf_puts(b, ")");
}

/* "status 75 after 2ms", "signal SIGTERM after 2ms", "answered ok after 2ms" ... */
static void
add_end(const struct result *r, struct buf *b)
{
	char took[UNITS_TEXT_MAX], signal[UTIL_SIGNAL_MAX];

	if (r->end == END_EXIT)
		buf_printf(b, "status %d", r->status);
	else if (r->end == END_SIGNAL)
		buf_printf(b, "signal %s", util_signal(r->signo, signal));
	else if (r->end == END_ANSWER)
		add_said(r, b);
	else
		buf_puts(b, ends[r->end].text);
	if (r->end != END_NOT_RUN && r->end != END_UNFRAMEABLE)
		buf_printf(b, " after %s", units_about(r->duration, took));
}

/* How the run ended and what it said; for a batch, what it said of the message comes first. */
static void
ending(const struct try *t, struct buf *b)
{
	const struct result *r = &t->result;
	char *why;

	if (r->end == END_NOT_STARTED) {
		why = start_error_text(t->cfg, r->step, r->error);
		buf_printf(b, "cannot be started: %s", why);
		if (r->error_len > 0)
			buf_printf(b, " (%.*s)", (int)r->error_len, r->error_tail);
		free(why);
		return;
	}
	add_end(r, b);
	if (r->end == END_ANSWER && r->batch > 0) {
		buf_puts(b, ", ");
		add_end(&t->end, b);
	} else if (r->said != SAID_NOTHING && r->end != END_ANSWER) {
		buf_puts(b, ", ");
		add_said(r, b);
	}
}

/*
 * Prints the messages that would be pushed, each as the handler's statement: "push
 * QUEUE MESSAGE".
 */
static void
show_pushes(const struct pushes *p)
{
	size_t i, at, len;
	const char *message;
	struct buf b = BUF_INIT;

	for (i = 0; i < pushes_targets(p); i++) {
		at = 0;
		while ((message = pushes_next(p, i, &at, &len)) != NULL) {
			buf_clear(&b);
			buf_printf(&b, "push %s ", pushes_target(p, i)->queue->name);
			buf_add(&b, message, len);
			output(NULL, 1, b.data, b.len, false, NULL);
		}
	}
	buf_done(&b);
}

/* "would be retried in 2.5s to 5s", "would be acked, with 2 messages for items" */
static void
verdict(const struct try *t, struct buf *b)
{
	static const char *const also[] = {
		[VERDICT_DEFER] = "",
		[VERDICT_HOLD] = ", and the queue held,",
		[VERDICT_HOLD_GROUP] = ", and its group held,",
	};
	struct verdict low = outcome_decide(t->msg, &t->result, false, 0);
	struct verdict high = outcome_decide(t->msg, &t->result, false, 1);
	char from[UNITS_TEXT_MAX], to[UNITS_TEXT_MAX];
	const struct pushes_target *target;

	switch (low.op) {
	case VERDICT_ACK:
		buf_puts(b, "would be acked");
		for (size_t i = 0; i < pushes_targets(t->result.pushes); i++) {
			target = pushes_target(t->result.pushes, i);
			buf_printf(b, ",%s %zu message%s for %s",
			    text_if(i == 0, " with"), target->count,
			    plural(target->count), target->queue->name);
		}
		break;
	case VERDICT_RETRY:
		units_about(low.delay, from);
		units_about(high.delay, to);
		if (low.delay == high.delay)
			buf_printf(b, "would be retried in %s", from);
		else
			buf_printf(b, "would be retried in %s to %s", from, to);
		break;
	case VERDICT_DEFER:
	case VERDICT_HOLD:
	case VERDICT_HOLD_GROUP:
		buf_printf(b, "would be deferred%s for %s", also[low.op],
		    units_about(low.delay, from));
		break;
	case VERDICT_DEAD:
		if (kind_has(t->cfg->kind, TRAIT_LEASES))
			buf_puts(b, "would be a dead letter: ");
		else
			buf_puts(b, "would be a failure, not tried again: ");
		buf_puts(b, reason_name(low.reason));
		break;
	case VERDICT_DROP:
	case VERDICT_RETURN:
	case VERDICT_STALE:
		buf_puts(b, "would be returned without an attempt");
		break;
	}
	if (low.suspend != REASON_NONE)
		buf_printf(b, "; the queue would be suspended: %s", reason_name(low.suspend));
}

static void
say(const struct try *t)
{
	struct buf b = BUF_INIT;

	buf_printf(&b, "%s %s: ", t->cfg->name, t->msg->id);
	ending(t, &b);
	if (t->end.stop == STOP_TIME_LIMIT)
		buf_puts(&b, ", ended at time_limit");
	if (t->end.output_cut)
		buf_puts(&b, ", output passed output_limit");
	if (t->end.leftovers && t->end.stop == STOP_NONE)
		buf_puts(&b, ", left processes running");
	buf_puts(&b, ": ");
	verdict(t, &b);
	if (outcome_decide(t->msg, &t->result, false, 0).op == VERDICT_ACK)
		show_pushes(t->result.pushes);
	else if (t->saved != NULL && t->saved[0] != '\0') {
		buf_puts(&b, "; its next delivery would get RQD_SAVED=");
		out_escape(&b, t->saved, strlen(t->saved));
	}
	ctl_note("%s", buf_str(&b));
	buf_done(&b);
}

/* The exit status of rqctl: as a shell reports how the handler ended. */
static int
exit_status(const struct try *t)
{
	const struct result *r = &t->end;

	if (r->end == END_EXIT && t->cfg->mode == MODE_PERSISTENT)
		return EX_TEMPFAIL;
	if (r->end == END_EXIT)
		return r->status;
	if (r->end == END_SIGNAL)
		return 128 + r->signo;
	if (r->end == END_NOT_STARTED && r->error == ENOENT)
		return 127;
	if (r->end == END_NOT_STARTED)
		return 126;
	if (r->said == SAID_OK)
		return 0;
	if (r->said == SAID_DEAD)
		return EX_DATAERR;
	return ends[r->end].status;
}

/* Reports a message that rqd would not run at all. */
static bool
refused(struct try *t)
{
	const char *fate = "dropped";
	struct verdict v;

	if (!outcome_refuse(t->msg, &v))
		return false;
	if (kind_has(t->cfg->kind, TRAIT_LEASES))
		fate = "a dead letter";
	ctl_error(t->ctl, EX_DATAERR, "%s %s: would be %s without being run: "
	    "%s", t->cfg->name, t->msg->id, fate, reason_name(v.reason));
	return true;
}

static void
try_run(struct ctl *c)
{
	struct try t = { .ctl = c };
	const char *file = c->args.words[1], *input = "standard input";
	struct buf payload = BUF_INIT;

	if (file != NULL)
		input = file;
	t.cfg = c->target.cfg;
	if (t.cfg == NULL)
		ctl_error(c, EX_USAGE,
		    "try needs a configuration file that has the queue: use -c FILE");
	else if (!config_consumes(t.cfg))
		ctl_error(c, EX_USAGE, "queue \"%s\" has concurrency = 0: others consume it, and "
		    "there is no command to try", t.cfg->name);
	else if ((file != NULL && freopen(file, "r", stdin) == NULL) ||
	    buf_read(&payload, fileno(stdin), SIZE_MAX) == -1)
		ctl_error(c, EX_NOINPUT, "%s: %s", input,
		    strerror(errno));
	else if (become_rqd(&t) == 0 && make_message(&t, &payload) == 0 && !refused(&t)) {
		t.loop = loop_new();
		run(&t);
		say(&t);
		c->status = exit_status(&t);
		result_done(&t.result);
	}
	spawner_stop(t.spawner);
	if (t.loop != NULL)
		loop_free(t.loop);
	free(t.saved);
	message_free(t.msg);
	config_unref(t.config);
	words_done(&t.overrides);
	buf_done(&payload);
}

const struct verb verb_try = {
	.name = "try",
	.args = "QUEUE [FILE]",
	.help = "run a handler once, without Redis",
	.more = "The message is FILE, or standard input. Reports on standard "
	    "error what the daemon would have done, and exits with the "
	    "handler's status; with 66 if it cannot read the message, with "
	    "65 if rqd would not run it.",
	.options = OPT(ATTEMPT) | OPT(ID) | OPT(SAVED),
	.min_args = 1,
	.max_args = 2,
	.flags = VERB_ANY,
	.run = try_run,
};
