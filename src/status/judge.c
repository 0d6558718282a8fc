/*
 * Judges queues and Redis; see judge.h.
 *
 * Each rule looks at the facts and adds what it finds.  The rules stand in the order of their
 * importance, and of findings of one level the earlier comes first.
 */
#include "status/judge.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "base/util.h"
#include "policy/waited.h"
#include "queue/pausetext.h"
#include "redis/reply.h"
#include "status/advice.h"

#define BEAT_OLD	60.0	/* seconds; no living daemon's heartbeat is older */
#define CLOCK_MAX	60.0	/* seconds that a clock may be wrong */
#define FINDINGS_MAX	24

static const struct { const char *name, *mood; } levels[] = {
	[LEVEL_ERROR] = { "error", "bad" }, [LEVEL_WARNING] = { "warning", "warn" },
	[LEVEL_UNKNOWN] = { "unknown", "warn" }, [LEVEL_NOTE] = { "note", "idle" },
	[LEVEL_OK] = { "ok", "ok" },
};

struct judging {
	const struct facts *f;
	const struct judge_context *c;
	struct judge_finding	 list[FINDINGS_MAX];
	size_t		 n;
};

const char *
level_name(enum level level)
{
	return levels[level].name;
}

const char *
level_mood(enum level level)
{
	return levels[level].mood;
}

/* -- facts ------------------------------------------------------------------------ */

bool
facts_are_empty(const struct depth *d)
{
	return d->waiting == 0 && d->held <= 0 && d->retry <= 0 && d->in_flight <= 0;
}

int64_t
facts_running(const struct facts *f)
{
	if (kind_has(f->kind, TRAIT_LEASES))
		return f->depth->in_flight;
	return f->service->running;
}

double
facts_latency_with(enum kind kind, const struct depth *d, double list, double tried)
{
	bool leases = kind_has(kind, TRAIT_LEASES);

	if (!kind_waits(kind) || d->waiting < 0)
		return -1;
	if (d->waiting == 0)
		list = 0;
	if (kind_source(kind) != SOURCE_LIST)
		list = d->overdue;
	else if (leases)
		list = waited_longer(list, d->overdue);
	/* A probe gives its message back, due now: of its wait only the daemon knows. */
	if (list >= 0 && tried > list && !facts_are_empty(d))
		return tried;
	return list;
}

double
facts_latency(const struct facts *f)
{
	const struct service *s = f->service;
	double list = s->latency, since = f->depth->now - s->latency_at;

	/* If no message was taken since the heartbeat, the time since then is added. */
	if (since > BEAT_OLD)
		since = BEAT_OLD;
	if (list > 0 && s->latency_taken == f->depth->taken && since > 0)
		list += since;
	return facts_latency_with(f->kind, f->depth, list, s->waits);
}

static bool
is_busy(const struct facts *f)
{
	int64_t most = f->service->concurrency;

	return f->depth->waiting > 0 && most > 0 && facts_running(f) >= most;
}

bool
facts_are_late(const struct facts *f)
{
	return is_busy(f) && facts_latency(f) >= FACTS_LATE;
}

/*
 * Whether all handlers are busy because runs take far longer than usual: perhaps they hang.  More
 * handlers would hang, too.
 */
static bool
is_slow(const struct facts *f)
{
	const struct service *s = f->service;

	return kind_has(f->kind, TRAIT_LEASES) && is_busy(f) && s->slow > 0 &&
	    (2 * s->slow >= s->concurrency || facts_are_late(f));
}

/* -- findings ---------------------------------------------------------------------- */

/* Takes the word, and the sentence: NULL, if the word says it all. */
static struct judge_finding *
found(struct judging *j, enum level level, enum rank rank, char *word, char *sentence)
{
	struct judge_finding *f = &j->list[j->n++];

	if (sentence == NULL && level <= LEVEL_UNKNOWN)
		sentence = xstrdup(word);
	*f = (struct judge_finding){ .level = level, .rank = rank, .word = word,
	    .sentence = sentence };
	return f;
}

static struct judge_finding *
found_error(struct judging *j, char *word, char *sentence)
{
	return found(j, LEVEL_ERROR, RANK_ERROR, word, sentence);
}

static struct judge_finding *
found_warning(struct judging *j, char *word, char *sentence)
{
	return found(j, LEVEL_WARNING, RANK_WARNING, word, sentence);
}

/* " in /etc/rqd.conf:12", where that is known. */
static void
add_place(struct judging *j, struct buf *b)
{
	if (j->c->cfg != NULL && j->c->cfg->file[0] != '\0')
		buf_printf(b, " in %s:%d", j->c->cfg->file, j->c->cfg->line);
}

/* The program of the queue's command; "": not known. */
static const char *
program_of(const struct judging *j)
{
	const struct queue_config *cfg = j->c->cfg;

	if (cfg == NULL || cfg->command == NULL)
		return "";
	return or_empty(cfg->command[0]);
}

/* Adds a line to the finding's commands: rqctl, the verb, the queue, and the rest. */
static void
add_command(struct judging *j, struct judge_finding *f, const char *verb, const char *rest)
{
	struct buf b = BUF_INIT;

	if (f->commands != NULL)
		buf_puts(&b, f->commands);
	advice_command(&b, j->c->rqctl, verb, j->c->queue, rest);
	free(f->commands);
	f->commands = buf_steal(&b);
}

/* Takes the line. */
static void
add_line(struct judge_finding *f, char *line)
{
	char *before = f->commands;

	f->commands = xasprintf("%s%s\n", or_empty(before), line);
	free(before);
	free(line);
}

/* -- rules ------------------------------------------------------------------------- */

static void
rule_problem(struct judging *j)
{
	const char *problem = j->f->depth->problem;
	struct judge_finding *f;

	if (problem == NULL)
		return;
	f = found_error(j, xasprintf("error: %s", problem), xstrdup(problem));
	f->hint = xstrdup("Redis refuses a command. Often a key has the wrong type.");
	add_command(j, f, "check", "");
}

bool
judge_is_held(const struct depth *d)
{
	return strncmp(pausetext_split(d->pause).who, PAUSETEXT_HANDLER,
	    strlen(PAUSETEXT_HANDLER)) == 0;
}

/* Before "paused" and "held". */
static const char *
partly_word(const struct depth *d)
{
	return text_if(d->partly, "partly ");
}

/* "paused by ann@web1 (4m left): deploy", "held 48s by web1: 429 from carrier" */
static char *
pause_text(const struct judging *j)
{
	const struct depth *d = j->f->depth;
	struct pausetext t = pausetext_split(d->pause);
	char left[UNITS_TEXT_MAX];
	struct buf b = BUF_INIT;
	bool held = judge_is_held(d);

	buf_puts(&b, partly_word(d));
	if (!held) {
		buf_puts(&b, "paused");
	} else {
		buf_puts(&b, "held");
		if (d->pause_left >= 0)
			buf_printf(&b, " %s", units_age(d->pause_left, left));
		t.who += strlen(PAUSETEXT_HANDLER);
		t.who_len -= (int)strlen(PAUSETEXT_HANDLER);
	}
	if (t.who_len > 0)
		buf_printf(&b, " by %.*s", t.who_len, t.who);
	if (d->pause_left >= 0 && !held)
		buf_printf(&b, " (%s left)", units_age(d->pause_left, left));
	if (t.why[0] != '\0' && (!held || j->c->details))
		buf_printf(&b, ": %s", t.why);
	return buf_steal(&b);
}

static void
rule_paused(struct judging *j)
{
	const struct depth *d = j->f->depth;
	struct judge_finding *f;

	if (!d->paused && !d->partly)
		return;
	/* A hold of a handler ends by itself, within an hour. */
	if (judge_is_held(d) && !d->partly) {
		f = found(j, LEVEL_NOTE, RANK_MINOR, pause_text(j), NULL);
		f->hint = xstrdup("A handler has asked for this wait. It ends by itself.");
	} else if (judge_is_held(d)) {
		f = found_warning(j, pause_text(j), NULL);
	} else {
		f = found_warning(j, pause_text(j),
		    xasprintf("%spaused: %s", partly_word(d), d->pause));
	}
	if (d->partly)
		f->hint = xstrdup("Some of its keys are paused. Pause it, or resume it, once "
		    "more.");
	else if (f->hint == NULL)
		f->hint = xstrdup("Its daemons take no message until an operator resumes it.");
	add_command(j, f, "resume", "");
}

static bool
is_paused(const struct depth *d)
{
	return d->paused && !d->partly && !judge_is_held(d);
}

/* Other programs consume it: they may not deliver QRETRY and QDELAYED. */
static void
rule_elsewhere(struct judging *j)
{
	int64_t due = int64_max(j->f->depth->due, 0) + j->f->delayed_due;
	struct buf b = BUF_INIT;
	struct judge_finding *f;

	if (j->f->service->daemons > 0 || !j->f->elsewhere)
		return;
	if (due > 0)
		f = found_warning(j, xstrdup("others consume it, but not its retries"),
		    xasprintf("%lld of its retries and delayed messages are due, and no daemon "
		    "delivers them: it is declared with concurrency = 0", (long long)due));
	else
		f = found(j, LEVEL_NOTE, RANK_IDLE, xstrdup("others consume it"), NULL);
	buf_puts(&b, "This configuration declares it with concurrency = 0");
	add_place(j, &b);
	buf_addc(&b, '.');
	f->hint = buf_steal(&b);
}

/* Redis does not take heartbeats. */
static void
found_unseen(struct judging *j)
{
	struct judge_finding *f;

	if (j->f->full) {
		f = found_error(j,
		    xstrdup("no daemon is seen: Redis is full"), NULL);
		f->hint = xstrdup("Redis is full and refuses heartbeats: "
		    "daemons may run unseen. Make room first.");
	} else {
		f = found_error(j,
		    xstrdup("no daemon is seen: Redis refuses writes"), NULL);
		f->hint = xstrdup("Redis refuses all writes, and so "
		    "heartbeats: daemons may run unseen. Mend Redis first.");
	}
}

static void
rule_unserved(struct judging *j)
{
	const struct depth *d = j->f->depth;
	bool work = d->waiting > 0 || d->due > 0 || d->held > 0;
	struct judge_finding *f;

	if (j->f->service->daemons > 0 || j->f->elsewhere)
		return;
	if (j->f->full || j->f->refuses != NULL) {
		found_unseen(j);
		return;
	}
	if (work)
		f = found_error(j, xstrdup("no daemon"),
		    xstrdup("no daemon serves it, and messages wait"));
	else
		f = found(j, LEVEL_WARNING, RANK_MINOR, xstrdup("no daemon"),
		    xstrdup("no daemon serves it"));
	f->hint = xstrdup("Start a daemon, or compare the names of the queues in its "
	    "configuration.");
	add_line(f, xstrdup("systemctl status rqd"));
}

/* ": signal for 5m" */
static char *
reason_text(const struct judging *j, const char *what)
{
	const struct service *s = j->f->service;
	char age[UNITS_TEXT_MAX];

	if (s->since <= 0)
		return xasprintf("%s: %s", what, s->reason);
	return xasprintf("%s: %s for %s", what, s->reason,
	    units_age((double)j->f->taken / 1e6 - s->since, age));
}

/* "8 messages have only failed; nothing else to try: ...", or NULL. */
static char *
only_failed_text(const struct judging *j)
{
	const struct depth *d = j->f->depth;
	int64_t tried = d->retry + d->in_flight;
	int64_t n = int64_min(j->f->service->failed, tried);
	const char *have = "s have";
	struct buf b = BUF_INIT;

	if (d->waiting > 0 || n <= 0)
		return NULL;
	if (n == 1)
		have = " has";
	buf_printf(&b, "%lld message%s only failed; nothing else to try: repair "
	    "the command, or rqctl bury ", (long long)n, have);
	advice_word(&b, j->c->queue);
	buf_puts(&b, " --all");
	return buf_steal(&b);
}

static char *
suspended_hint(struct judging *j, const char *only)
{
	const char *what = ", the command";
	struct buf b = BUF_INIT;

	if (strcmp(j->f->service->reason, "cannot_execute") == 0) {
		what = ", or command";
		buf_puts(&b, "Its command cannot be started. rqd tries again "
		    "every 5 s.");
	} else {
		buf_puts(&b, "Its command always failed. rqd tries one message "
		    "every 5 s until one succeeds.");
	}
	if (program_of(j)[0] != '\0') {
		buf_printf(&b, " Mend %s", program_of(j));
		if (j->c->cfg->file[0] != '\0')
			buf_puts(&b, what);
		add_place(j, &b);
		buf_addc(&b, '.');
	}
	if (only != NULL)
		buf_printf(&b, " %s.", only);
	return buf_steal(&b);
}

static char *
suspended_text(const struct judging *j, bool empty)
{
	const struct service *s = j->f->service;
	struct buf b = BUF_INIT;

	buf_puts(&b, "suspended");
	if (empty)
		buf_puts(&b, ", and without messages");
	buf_printf(&b, ": %s", s->reason);
	if (s->cause[0] != '\0' && j->c->details)
		buf_printf(&b, ": %s", s->cause);
	return buf_steal(&b);
}

static void
rule_suspended(struct judging *j)
{
	const struct service *s = j->f->service;
	bool empty = facts_are_empty(j->f->depth);
	char *only, *sentence;
	struct judge_finding *f;
	struct buf b = BUF_INIT;

	if (s->state != QUEUE_SUSPENDED)
		return;
	only = only_failed_text(j);
	sentence = suspended_text(j, empty);
	if (empty)
		f = found(j, LEVEL_WARNING, RANK_MINOR, xasprintf("idle, suspended: %s", s->reason),
		    sentence);
	else if (is_paused(j->f->depth))	/* perhaps for the repair */
		f = found_warning(j, reason_text(j, "suspended"), sentence);
	else
		f = found_error(j, reason_text(j, "suspended"), sentence);
	f->hint = suspended_hint(j, only);
	/* A file that is missing, or that the queue's user may not execute. */
	if (strcmp(s->reason, "cannot_execute") == 0 && program_of(j)[0] != '\0') {
		buf_puts(&b, "ls -l ");
		advice_word(&b, program_of(j));
		add_line(f, buf_steal(&b));
	}
	if (only == NULL)
		return;
	f = found(j, f->level, f->rank, xstrdup("only failed messages"), only);
	add_command(j, f, "bury --all", "");
}

enum level
judge_state(enum queue_state state)
{
	static const enum level of[] = {
		[QUEUE_RUNNING] = LEVEL_OK, [QUEUE_QUIET] = LEVEL_NOTE,
		[QUEUE_DRAINING] = LEVEL_NOTE, [QUEUE_PAUSED] = LEVEL_WARNING,
		[QUEUE_NO_REDIS] = LEVEL_WARNING, [QUEUE_UNSUBSCRIBED] = LEVEL_ERROR,
		[QUEUE_REFUSED] = LEVEL_ERROR, [QUEUE_SUSPENDED] = LEVEL_ERROR,
	};

	return of[state];
}

static void
rule_blocked(struct judging *j)
{
	const struct service *s = j->f->service;
	struct judge_finding *f = NULL;
	const char *name = fleet_state_name(s->state);
	const char *file = advice_log_file(j->c->config);

	switch (s->state) {
	case QUEUE_RUNNING:
	case QUEUE_SUSPENDED:
		return;
	case QUEUE_REFUSED:
		f = found_error(j, reason_text(j, "Redis refuses results"),
		    xasprintf("Redis refuses the results of its messages: %s", s->reason));
		break;
	case QUEUE_UNSUBSCRIBED:
		f = found_error(j, xstrdup(name),
		    xstrdup("a daemon has lost a subscription; its log says why"));
		break;
	case QUEUE_NO_REDIS:
		f = found_warning(j, xstrdup(name),
		    xstrdup("a daemon cannot reach its Redis; its log says why"));
		break;
	case QUEUE_PAUSED:
		if (j->f->depth->paused || j->f->depth->partly)
			return;
		FALLTHROUGH;
	case QUEUE_QUIET:
	case QUEUE_DRAINING:
		f = found(j, LEVEL_NOTE, RANK_MINOR, xstrdup(name), NULL);
		break;
	}
	if (file != NULL)
		f->hint = xasprintf("A daemon takes nothing new. Its log %s says why.", file);
	else
		f->hint = xstrdup("A daemon takes nothing new. Its log says why.");
}

/* Takes the sentence. */
static void
add_difference(struct judging *j, enum level level, const char *what, char *sentence)
{
	char *word = xasprintf("daemons disagree about the %s", what);
	enum rank rank = RANK_WARNING;
	struct judge_finding *f;
	struct buf b = BUF_INIT;

	if (level == LEVEL_ERROR)
		rank = RANK_ERROR;
	f = found(j, level, rank, word, sentence);
	buf_printf(&b, "Two daemons have different configurations: %s. Make them the same, here",
	    f->sentence);
	add_place(j, &b);
	buf_puts(&b, ", and reload.");
	f->hint = buf_steal(&b);
	add_command(j, f, "check", "");
}

static void
rule_differences(struct judging *j)
{
	const struct service *s = j->f->service;
	char a[UNITS_TEXT_MAX], b[UNITS_TEXT_MAX], *text, *sentence;

	if (!kind_has(j->f->kind, TRAIT_LEASES))
		return;
	if (s->leases_differ)
		add_difference(j, LEVEL_ERROR, "lease", xasprintf("daemons disagree about the "
		    "lease: one has %s, another %s; rqctl daemons", units_age(s->lease_least, a),
		    units_age(s->lease_most, b)));
	if (s->shards_differ)
		add_difference(j, LEVEL_ERROR, "shards", NULL);
	if (s->groups_differ)
		add_difference(j, LEVEL_ERROR, "groups", xstrdup("daemons disagree about group_by "
		    "or group_concurrency: messages of one group run in any order; rqctl "
		    "daemons"));
	for (enum fleet_setting i = 0; i < SETTING_MAX; i++) {
		if ((text = fleet_disagreement(s, i)) == NULL)
			continue;
		sentence = NULL;
		/* An argument of a command may be secret. */
		if (i != SETTING_COMMAND || j->c->details)
			sentence = xasprintf("daemons disagree: %s", text);
		add_difference(j, LEVEL_WARNING, fleet_setting_name(i), sentence);
		free(text);
	}
}

static void
rule_slow(struct judging *j)
{
	const struct service *s = j->f->service;
	bool tagged = j->c->details && s->oldest_tag[0] != '\0';
	const char *tag = "ID", *take = "s take";
	char oldest[UNITS_TEXT_MAX], usual[UNITS_TEXT_MAX], *slow;
	struct buf words = BUF_INIT;
	struct judge_finding *f;

	if (!is_slow(j->f))
		return;
	if (tagged)
		tag = s->oldest_tag;
	if (s->slow == 1)
		take = " takes";
	slow = xasprintf("%lld run%s far longer than usual: %s, usually %s at most",
	    (long long)s->slow, take, units_age(s->oldest, oldest),
	    units_age(s->usual, usual));
	advice_word(&words, j->c->queue);
	buf_addc(&words, ' ');
	advice_word(&words, tag);
	f = found_warning(j, xasprintf("slow runs: %lld", (long long)s->slow),
	    xasprintf("all handlers are busy, and %s; if it hangs: rqctl cancel --retry %s", slow,
	    buf_str(&words)));
	buf_done(&words);
	f->hint = xasprintf("All handlers are busy, and %s. If they hang, cancel them: their "
	    "messages are tried again.", slow);
	free(slow);
	if (tagged)
		add_command(j, f, "cancel --retry", tag);
	else
		add_command(j, f, "running", "");
}

/* What to raise.  If several daemons serve the queue, each may have another share of it. */
static char *
busy_hint(struct judging *j)
{
	struct buf b = BUF_INIT;

	buf_printf(&b, "All handlers are busy: %lld of %lld. Raise concurrency",
	    (long long)facts_running(j->f), (long long)j->f->service->concurrency);
	if (j->c->cfg != NULL)
		buf_printf(&b, ", which is %d", j->c->cfg->concurrency);
	add_place(j, &b);
	if (j->c->cfg != NULL && j->c->config != NULL)
		buf_printf(&b, " (max_handlers is %d)", j->c->config->max_handlers);
	buf_puts(&b, ", and reload, or start another host.");
	return buf_steal(&b);
}

static void
rule_late(struct judging *j)
{
	char age[UNITS_TEXT_MAX];
	struct judge_finding *f;

	if (is_slow(j->f) || !facts_are_late(j->f))
		return;
	f = found_warning(j, xstrdup("late: all handlers are busy"),
	    xasprintf("late: all handlers are busy, and a message has waited %s",
	    units_age(facts_latency(j->f), age)));
	f->hint = busy_hint(j);
}

static void
rule_dead(struct judging *j)
{
	int64_t n = j->f->depth->dead;
	struct judge_finding *f;

	if (n <= 0 || j->c->dead_is_fine)
		return;
	f = found(j, LEVEL_WARNING, RANK_MINOR,
	    xasprintf("%lld dead letter%s", (long long)n, plural(n)), NULL);
	f->hint = xstrdup("Messages have failed for good. They are kept until "
	    "an operator retries or drops them.");
	add_command(j, f, "dead list", "");
}

/* Nothing is unusual. */
static void
rule_ok(struct judging *j)
{
	const struct depth *d = j->f->depth;
	/* Heartbeats are some seconds old, so a limit counts only while messages wait. */
	bool limited = j->f->service->limited && (d->waiting > 0 || d->due > 0);
	const char *word = "ok";
	struct judge_finding *f;

	if (j->n > 0)
		return;
	if (limited)
		word = "limited";
	f = found(j, LEVEL_OK, RANK_OK, xstrdup(word), NULL);
	if (is_busy(j->f))
		f->hint = busy_hint(j);
}

static void (*const rules[])(struct judging *) = {
	rule_problem, rule_paused, rule_elsewhere, rule_unserved, rule_suspended, rule_blocked,
	rule_differences, rule_slow, rule_late, rule_dead, rule_ok,
};

static void
emit_all(struct judging *j, judge_fn *emit, void *arg)
{
	struct judge_finding *f;

	for (enum level level = LEVEL_ERROR; level <= LEVEL_OK; level++)
		for (f = j->list; f < j->list + j->n; f++)
			if (f->level == level)
				emit(f, arg);
	for (f = j->list; f < j->list + j->n; f++) {
		free(f->word);
		free(f->sentence);
		free(f->hint);
		free(f->commands);
	}
}

void
judge(const struct facts *facts, const struct judge_context *c, judge_fn *emit, void *arg)
{
	struct judging j = { .f = facts, .c = c };

	for (size_t i = 0; i < ARRAY_LEN(rules); i++)
		rules[i](&j);
	emit_all(&j, emit, arg);
}

struct first {
	struct verdict_of_queue verdict;
	struct buf	*b;
	bool		 any;
};

static void
take_first(const struct judge_finding *f, void *arg)
{
	struct first *first = arg;

	if (f->rank > first->verdict.rank)
		first->verdict.rank = f->rank;
	if (first->any)
		return;
	first->any = true;
	first->verdict.level = f->level;
	if (first->b != NULL)
		buf_puts(first->b, f->word);
}

struct verdict_of_queue
judge_first(const struct facts *f, const struct judge_context *c, double failed_rate,
    struct buf *b)
{
	struct first first = { .verdict.rank = RANK_IDLE, .b = b };

	judge(f, c, take_first, &first);
	if (failed_rate > 0 && first.verdict.rank < RANK_MINOR)
		first.verdict.rank = RANK_MINOR;
	return first.verdict;
}

/* -- Redis ------------------------------------------------------------------------- */

bool
judge_is_refusal(const char *error)
{
	return error != NULL && (reply_error_of_text(error) == REPLY_REFUSED ||
	    strncmp(error, "READONLY", strlen("READONLY")) == 0);
}

bool
judge_ready(const struct ready_facts *f, struct buf *b)
{
	if (strcmp(f->state, "draining") == 0 ||
	    strcmp(f->state, "stopped") == 0) {
		buf_puts(b, f->state);
	} else if (!f->up) {
		buf_puts(b, "Redis is down");
		if (f->in_part)
			buf_puts(b, " in part");
		if (f->down[0] != '\0')
			buf_printf(b, ": %s", f->down);
	} else if (f->refuses != NULL) {
		buf_printf(b, "Redis refuses writes: %s", f->refuses);
	} else {
		buf_puts(b, "ready");
		return true;
	}
	return false;
}

void
judge_server(const struct server_facts *s, judge_fn *emit, void *arg)
{
	struct judging j = { .f = NULL };
	char *full = advice_memory(s->used, s->max);
	int major = 0, minor = 0;

	if (full == NULL && s->refuses[0] != '\0')
		found_error(&j, xstrdup("Redis refuses writes"), xasprintf("Redis refuses writes: "
		    "%s: nothing can be pushed or taken, results wait, and daemons may run "
		    "unseen", s->refuses));
	if (s->policy[0] != '\0' && strcmp(s->policy, "noeviction") != 0)
		found_error(&j, xstrdup("Redis may evict messages"),
		    xasprintf("maxmemory-policy is %s: Redis may evict messages; it must be "
		    "noeviction", s->policy));
	if (s->role[0] != '\0' && strcmp(s->role, "master") != 0)
		found_error(&j, xstrdup("no master"), xasprintf("this Redis is a %s: redis.server "
		    "must name the master", s->role));
	if (sscanf(s->version, "%d.%d", &major, &minor) == 2 &&
	    (major < 6 || (major == 6 && minor < 2)))
		found_error(&j, xstrdup("Redis is too old"), xasprintf("Redis %s is too old: rqd "
		    "needs 6.2", s->version));
	if (full != NULL)
		found_error(&j, xstrdup("Redis is full"), full);
	if (s->no_aof)
		found_warning(&j, xstrdup("no append-only file"), xstrdup("appendonly is no: a "
		    "crash of Redis loses the messages since its last snapshot; type redis-cli "
		    "config set appendonly yes and redis-cli config rewrite"));
	emit_all(&j, emit, arg);
}

bool
judge_clock(const char *whose, double ahead, judge_fn *emit, void *arg)
{
	struct judging j = { .f = NULL };
	const char *side = "behind Redis'";
	char off[UNITS_TEXT_MAX];

	if (ahead > 0)
		side = "ahead of Redis'";
	if (fabs(ahead) > CLOCK_MAX)
		found_warning(&j, xstrdup("clocks differ"), xasprintf("%s: its clock is %s %s: "
		    "correct the one that is wrong", whose, units_age(fabs(ahead), off), side));
	emit_all(&j, emit, arg);
	return fabs(ahead) > CLOCK_MAX;
}
