/* The JSON of /status and /queue; see status_json.h. */
#include "status/status_json.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <config.h>

#include "base/log.h"
#include "base/util.h"
#include "policy/outcome.h"
#include "policy/tick.h"
#include "redis/words.h"
#include "status/advice.h"
#include "status/json_bytes.h"
#include "status/queue_state.h"

#define UNSEEN_AFTER	(30 * SEC)	/* of a daemon without a heartbeat */

/* This daemon, without the help of Redis. */
static json_t *
daemon_json(const struct view *v)
{
	const struct conn_server *server = nodes_server(v->nodes);
	json_t *o;

	o = json_set(json_object(), "instance:s name:s version:s state:s config:s reload_failed:t "
	    "pid:i started:f handlers:i max_handlers:i", v->instance, v->config->name,
	    PACKAGE_VERSION, v->state, v->config->hash, v->reload_error[0] != '\0',
	    (int64_t)getpid(), (double)(v->started / MSEC) / 1e3,
	    (int64_t)dispatcher_taken(v->dispatcher),
	    (int64_t)v->config->max_handlers);
	if (log_failure() != NULL)
		json_set(o, "log_error:s", log_failure());
	if (v->reload_error[0] != '\0')
		json_set(o, "reload_error:s", v->reload_error);
	return json_set(o, "redis:j", json_set(json_object(), "up:t server:s version:s error:s",
	    nodes_are_ready(v->nodes), server->address, server->version, v->redis_error));
}

/* Seconds since the daemon's heartbeat. */
static double
beat_age(const struct daemon *d, double now)
{
	if (now > d->seen)
		return now - d->seen;
	return 0;
}

/* Adds a queue's state in one daemon, and how bad that is. */
static void
member_state(json_t *states, json_t *moods, const char *name, enum queue_state state)
{
	json_object_set_new(states, name, json_string(fleet_state_name(state)));
	json_object_set_new(moods, name, json_string(level_mood(judge_state(state))));
}

/*
 * The parts of a heartbeat for a list of daemons, and its queues with another state
 * than running.
 */
static json_t *
member_json(const struct daemon *d, double now)
{
	static const char *const copied[] = {
		"name", "version", "pid", "started", "config", "max_handlers", "log_error",
		"reload_error"
	};
	json_t *o = json_object(), *unusual = json_object(), *moods = json_object(), *q;
	const char *name;
	int64_t running = 0, n = 0;

	json_set(o, "instance:s", d->instance);
	for (size_t i = 0; i < ARRAY_LEN(copied); i++)
		json_object_set(o, copied[i], json_object_get(d->beat, copied[i]));
	json_object_foreach(json_object_get(d->beat, "queues"), name, q) {
		n++;
		running += fleet_count(q, "running");
		if (fleet_state(q) != QUEUE_RUNNING)
			member_state(unusual, moods, name, fleet_state(q));
	}
	return json_set(o, "queues:i running:i seen:f states:j moods:j", n, running,
	    beat_age(d, now), unusual, moods);
}

static int
by_name(const void *va, const void *vb)
{
	const struct survey_queue *const *a = va, *const *b = vb;

	return strcmp((*a)->name, (*b)->name);
}

/* Without a queue, and without the way to write commands. */
static struct judge_context
judge_context_of(const struct view *v)
{
	return (struct judge_context){ .rqctl = "rqctl", .queue = "", .config = v->config,
	    .details = v->details };
}

/* The queues that some daemon is configured for. */
static json_t *
queues_json(const struct view *v, const struct survey_result *r, const struct history *h)
{
	const struct survey_queue **sorted = xcalloc(r->n + 1, sizeof(*sorted)), *q;
	struct judge_context context = judge_context_of(v);
	struct history_rates rates;
	json_t *list = json_array(), *o;
	struct service service;
	struct facts facts;
	size_t i;

	for (i = 0; i < r->n; i++)
		sorted[i] = &r->queues[i];
	qsort(sorted, r->n, sizeof(*sorted), by_name);
	for (i = 0; i < r->n; i++) {
		q = sorted[i];
		rates = history_rates(h, q->keys.name[KEY_QUEUE]);
		facts = survey_facts(q, r, view_refuses(v), &service);
		context.queue = q->name;
		o = state_json(&facts, &context);
		json_set(o, "own:t late:t trouble:i acked_rate:p "
		    "failed_rate:p", q->own, facts_are_late(&facts),
		    (int64_t)judge_first(&facts, &context, rates.failed, NULL).rank,
		    rates.acked, rates.failed);
		json_array_append_new(list, o);
	}
	free(sorted);
	return list;
}

/* -- schedules -------------------------------------------------------------------- */

static json_t *
tick_json(int64_t tick)
{
	if (tick == TICK_NEVER)
		return NULL;
	return json_integer(tick);
}

static json_t *
schedule_json(const struct view *v, const struct schedule_state *s)
{
	const struct schedule_config *cfg = s->cfg;
	const struct queue_config *q = config_queue(v->config, cfg->queue);
	const char *key = cfg->queue, *cron = NULL, *timezone = NULL;
	json_t *every = NULL, *missed = NULL;

	if (q != NULL)
		key = q->key;
	if (cfg->every != 0) {
		every = json_integer(cfg->every / SEC);
	} else {
		cron = cfg->cron;
		timezone = cfg->timezone;
	}
	if (s->missed == 1)
		missed = tick_json(s->missed_at);
	return json_set(json_object(), "name:s queue:s key:s every:j cron:s "
	    "timezone:s last:j next:j missed:j", cfg->name, cfg->queue, key,
	    every, cron, timezone, tick_json(s->last), tick_json(s->next),
	    missed);
}

/* Of this daemon's configuration, as `rqctl schedules --json` has them. */
static json_t *
schedules_json(const struct view *v)
{
	json_t *list = json_array();
	struct schedule_state s;

	for (size_t i = 0; i < schedules_count(v->schedules); i++) {
		s = schedules_get(v->schedules, i);
		json_array_append_new(list, schedule_json(v, &s));
	}
	return list;
}

/* -- problems of the fleet -------------------------------------------------------- */

/* Takes the text. */
static void
add_problem(json_t *list, const char *level, char *text)
{
	json_array_append_new(list, json_set(json_object(), "level:s text:s", level, text));
	free(text);
}

static void
add_finding(const struct judge_finding *f, void *list)
{
	if (f->sentence != NULL)
		add_problem(list, level_name(f->level), xstrdup(f->sentence));
}

/* Adds the problems that a daemon told of itself; own: this one's reload is known better. */
static void
add_told(json_t *list, const struct daemon *d, bool own)
{
	const char *log = fleet_text(d->beat, "log_error");
	const char *reload = fleet_text(d->beat, "reload_error");

	if (log[0] != '\0')
		add_problem(list, "warning", xasprintf(ADVICE_LOG, d->instance, log));
	if (reload[0] != '\0' && !own)
		add_problem(list, "warning", xasprintf(ADVICE_RELOAD, d->instance, reload));
}

/* Problems of Redis or of daemons, in the words of `rqctl check`. */
static json_t *
problems_json(const struct view *v, const struct survey_result *r)
{
	const struct server_facts server = {
		.used = r->memory, .max = r->memory_max, .role = "", .version = "",
		.policy = nodes_server(v->nodes)->maxmemory_policy,
		.refuses = or_empty(view_refuses(v)),
	};
	json_t *list = json_array();
	const struct daemon *d;

	judge_server(&server, add_finding, list);
	if (v->beat_refused != NULL && view_refuses(v) == NULL)
		add_problem(list, "error", xasprintf("Redis refuses this daemon's heartbeat: %s",
		    v->beat_refused));
	/* For example because Redis is full. */
	if (!r->seen && strcmp(v->state, "running") == 0 &&
	    clock_wall() - v->started > UNSEEN_AFTER)
		add_problem(list, "error", xstrdup("this daemon runs, but its heartbeat is not in "
		    "Redis: rqctl and other daemons do not see it"));
	if (v->reload_error[0] != '\0')
		add_problem(list, "warning", xasprintf(ADVICE_RELOAD, v->instance,
		    v->reload_error));
	for (size_t k = 0; k < r->fleet.n; k++) {
		d = &r->fleet.daemons[k];
		add_told(list, d, strcmp(d->instance, v->instance) == 0);
		judge_clock(d->instance, fleet_number(d->beat, "clock", 0), add_finding, list);
	}
	return list;
}

/* -- progress --------------------------------------------------------------------- */

#define PROGRESS_SHOWN	50	/* the messages that have run longest */

/* Messages in flight whose handlers reported progress. */
struct progress_list {
	const struct view *view;
	const char	*queue;		/* of the messages that are being added */
	int64_t		 pid;		/* of the one that was added last */
	json_t		**v;		/* n objects */
	size_t		 n;
};

/*
 * Adds one; takes o, which has the id and the attempt.  A batch reports for all of its
 * messages, and is shown by the first of them.
 */
static void
progress_add(struct progress_list *l, json_t *o, const char *daemon, int64_t pid,
    const char *progress, double age)
{
	if (l->n > 0 && pid == l->pid &&
	    strcmp(progress, fleet_text(l->v[l->n - 1], "progress")) == 0) {
		json_decref(o);
		return;
	}
	json_set(o, "queue:s daemon:s progress:s age:f", l->queue, daemon, progress, age);
	l->pid = pid;
	*APPEND(l->v, l->n) = o;
}

static void
progress_own(const struct message *msg, pid_t pid, const char *progress, usec_t age, void *arg)
{
	struct progress_list *l = arg;

	if (progress != NULL)
		progress_add(l, json_set(json_object(), "id:s attempt:i", msg->id,
		    (int64_t)msg->attempts + 1), l->view->instance, pid, progress,
		    clock_seconds(age));
}

/* Adds those of another daemon, from its last heartbeat. */
static void
progress_of(struct progress_list *l, const struct daemon *d, double now)
{
	static const char *const copied[] = { "id", "id_base64", "attempt" };
	double old = beat_age(d, now);
	json_t *q, *e, *o;
	size_t i, k;

	json_object_foreach(json_object_get(d->beat, "queues"), l->queue, q) {
		json_array_foreach(json_object_get(q, "in_hand"), i, e) {
			if (fleet_text(e, "progress")[0] == '\0')
				continue;
			o = json_object();
			for (k = 0; k < ARRAY_LEN(copied); k++)
				json_object_set(o, copied[k], json_object_get(e, copied[k]));
			progress_add(l, o, d->instance, fleet_count(e, "pid"),
			    fleet_text(e, "progress"), fleet_number(e, "age", 0) + old);
		}
	}
}

static int
by_age(const void *a, const void *b)
{
	double x = fleet_number(*(json_t *const *)a, "age", 0);
	double y = fleet_number(*(json_t *const *)b, "age", 0);

	return (x < y) - (x > y);
}

static json_t *
progress_json(const struct view *v, const struct survey_result *r)
{
	struct progress_list l = { .view = v };
	double now = conn_redis_time(nodes_conn(v->nodes, KEYS_DAEMONS));
	json_t *shown = json_array();

	for (size_t i = 0; i < v->nconsumers; i++) {
		l.queue = consumer_config(v->consumers[i])->name;
		consumer_each(v->consumers[i], progress_own, &l);
	}
	for (size_t i = 0; i < r->fleet.n; i++) {
		l.pid = 0;
		if (strcmp(r->fleet.daemons[i].instance, v->instance) != 0)
			progress_of(&l, &r->fleet.daemons[i], now);
	}
	if (l.n > 1)
		qsort(l.v, l.n, sizeof(l.v[0]), by_age);
	for (size_t i = 0; i < l.n; i++) {
		if (i < PROGRESS_SHOWN)
			json_array_append(shown, l.v[i]);
		json_decref(l.v[i]);
	}
	free(l.v);
	return shown;
}

void
status_text(const struct view *v, const struct survey_result *r, const struct history *h,
    struct buf *out)
{
	double now = conn_redis_time(nodes_conn(v->nodes, KEYS_DAEMONS));
	json_t *fleet = NULL, *queues = NULL, *progress = NULL;
	json_t *problems = NULL, *root;
	int64_t daemons = -1, ignored = 0;
	wall_t taken = clock_wall();
	char when[CLOCK_TEXT_MAX];

	if (r != NULL) {
		taken = r->taken;
		daemons = (int64_t)r->fleet.n;
		ignored = (int64_t)r->fleet.ignored;
		fleet = json_array();
		for (size_t i = 0; i < r->fleet.n; i++)
			json_array_append_new(fleet,
			    member_json(&r->fleet.daemons[i], now));
		queues = queues_json(v, r, h);
		if (v->details)
			progress = progress_json(v, r);
		problems = problems_json(v, r);
	}
	root = json_set(json_object(), "time:s details:t daemon:j daemons:n "
	    "ignored:i fleet:j queues:j progress:j schedules:j problems:j",
	    clock_text(taken, when), v->details, daemon_json(v), daemons,
	    ignored, fleet, queues, progress, schedules_json(v), problems);
	json_add_text(root, out);
	json_decref(root);
}

/* -- /queue ----------------------------------------------------------------------- */

#define TEXT_MAX	2000	/* bytes of each text of a letter */

enum { LIST_TOTAL, LIST_LAST, LIST_LOOKED, LIST_NEXT, LIST_LETTERS };
enum { LETTER_NAME, LETTER_SIZE, LETTER_FIELDS };

/* A new object of the newest letter; NULL: there is none. */
static json_t *
newest_json(const struct redisReply *row)
{
	static const char *const names[] = {
		"id", "reason", "status", "host", "attempts", "answer", "error"
	};
	const char *name = reply_str_at(row, LETTER_NAME), *text;
	json_t *o;
	size_t len;

	if (name == NULL)
		return NULL;
	/* The name of a letter begins with the milliseconds of its death. */
	o = json_set(json_object(), "died:f", strtod(name, NULL) / 1e3);
	for (size_t i = LETTER_FIELDS; i + 1 < reply_len(row); i += 2) {
		name = reply_str_at(row, i);
		text = reply_str(reply_at(row, i + 1), &len);
		if (name == NULL || text == NULL)
			continue;
		if (len > TEXT_MAX)	/* cut it where a character begins */
			for (len = TEXT_MAX; len > 0 && (text[len] & 0xc0) == 0x80; len--)
				continue;
		for (size_t k = 0; k < ARRAY_LEN(names); k++)
			if (strcmp(name, names[k]) == 0)
				json_set_bytes(o, names[k], text, len);
	}
	return o;
}

/*
 * The reason of a letter.  Whoever writes to Redis may have written another
 * one, which clients without details may not see.
 */
static const char *
letter_reason(const struct redisReply *row)
{
	const char *name, *text;

	for (size_t i = LETTER_FIELDS; i + 1 < reply_len(row); i += 2) {
		name = reply_str_at(row, i);
		text = reply_str_at(row, i + 1);
		if (name == NULL || text == NULL || strcmp(name, "reason") != 0)
			continue;
		for (enum reason r = REASON_EXIT; r < REASON_MAX; r++)
			if (strcmp(text, reason_name(r)) == 0)
				return reason_name(r);
	}
	return "other";
}

void
queue_letters(json_t *letters, const struct redisReply *reply)
{
	json_t *reasons = json_object_get(letters, "reasons");
	json_t *newest = newest_json(reply_at(reply, LIST_LETTERS));
	const char *reason;

	if (reasons == NULL) {
		reasons = json_object();
		json_set(letters, "looked:i reasons:j", (int64_t)0, reasons);
	}
	json_set(letters, "looked:i", fleet_count(letters, "looked") +
	    reply_int_at(reply, LIST_LOOKED));
	for (size_t i = LIST_LETTERS; i < reply_len(reply); i++) {
		reason = letter_reason(reply_at(reply, i));
		json_object_set_new(reasons, reason,
		    json_integer(fleet_count(reasons, reason) + 1));
	}
	if (fleet_number(newest, "died", 0) >
	    fleet_number(json_object_get(letters, "newest"), "died", 0))
		json_object_set(letters, "newest", newest);
	json_decref(newest);
}

void
queue_letters_words(struct words *w)
{
	/* newest, from, to, count, cut, reason, match: without the messages */
	static const char *const words[] = {
		"1", "+", "-", "250", "0", "", ""
	};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		words_add(w, words[i]);
}

static int
by_instance(const void *a, const void *b)
{
	const struct daemon *const *x = a, *const *y = b;

	return strcmp((*x)->instance, (*y)->instance);
}

/* The daemons that serve the queue, by name; the fleet is sorted by the latest heartbeat. */
static json_t *
servers_json(const struct survey_result *r, const char *key, bool details)
{
	const struct daemon **sorted = xcalloc(r->fleet.n + 1, sizeof(sorted[0])), *d;
	json_t *list = json_array();
	const char *cause;
	const json_t *q;
	double since;
	size_t n = 0;

	for (size_t i = 0; i < r->fleet.n; i++)
		if (fleet_queue(&r->fleet.daemons[i], key) != NULL)
			sorted[n++] = &r->fleet.daemons[i];
	qsort(sorted, n, sizeof(sorted[0]), by_instance);
	for (size_t i = 0; i < n; i++) {
		d = sorted[i];
		q = fleet_queue(d, key);
		since = fleet_number(q, "since", 0);
		if (since <= 0)
			since = NAN;
		cause = fleet_text(q, "cause");
		if (!details || cause[0] == '\0')
			cause = NULL;
		json_array_append_new(list, json_set(json_object(), "instance:s name:s version:s "
		    "config:s running:i concurrency:i lease:f state:s reason:s since:f cause:s",
		    d->instance, fleet_text(d->beat, "name"), fleet_text(d->beat, "version"),
		    fleet_text(d->beat, "config"), fleet_count(q, "running"),
		    fleet_count(q, "concurrency"), fleet_number(q, "lease", NAN),
		    fleet_text(q, "state"), fleet_text(q, "reason"), since,
		    cause));
	}
	free(sorted);
	return list;
}

/* What an open row shows of each finding: all but its first word. */
struct told {
	json_t	*list;
	char	*hint;		/* of the first that has one; owned */
};

static void
tell(const struct judge_finding *f, void *arg)
{
	struct told *told = arg;

	if (told->hint == NULL && f->hint != NULL)
		told->hint = xstrdup(f->hint);
	if (f->level <= LEVEL_UNKNOWN)
		json_array_append_new(told->list, json_set(json_object(), "level:s text:s "
		    "hint:s", level_name(f->level), f->sentence, f->hint));
}

/*
 * Appends rqctl as one types it on this host, where it reads the default file by itself.  For a
 * queue that the file does not have it must run without a file.
 */
static void
add_rqctl(const struct view *v, const struct queue_config *cfg, struct buf *b)
{
	const char *file = v->config->file;
	const char *address = nodes_server(v->nodes)->address;

	if (nodes_is_cluster(v->nodes))
		address = v->config->redis.servers[0];
	buf_puts(b, "rqctl");
	if (cfg == NULL || file[0] == '\0') {
		buf_puts(b, " --server ");
		advice_word(b, address);
	} else if (strcmp(file, SYSCONFDIR "/rqd.conf") != 0) {
		buf_puts(b, " -c ");
		advice_word(b, file);
	}
}

static void
add_commands(const struct judge_finding *f, void *arg)
{
	if (f->commands != NULL)
		buf_puts(arg, f->commands);
}

/* Appends the lines of `from` that are not among those of b. */
static void
add_new(struct buf *b, struct buf *from)
{
	char *rest = buf_str(from), *line, *there;
	size_t len;

	while ((line = strsep(&rest, "\n")) != NULL) {
		len = strlen(line);
		there = buf_str(b);
		while ((there = strstr(there, line)) != NULL && len > 0 &&
		    (there[len] != '\n' || (there > b->data && there[-1] != '\n')))
			there++;
		if (there == NULL)
			buf_printf(b, "%s\n", line);
	}
	buf_done(from);
}

/*
 * Appends a line for each command: what ends the trouble, or tells more about it, and what lists
 * the messages.  newest: id of the newest dead letter; "": not known.
 */
static void
queue_commands(const struct facts *f, const struct judge_context *c, const char *newest,
    struct buf *b)
{
	const struct depth *d = f->depth;
	struct buf lists = BUF_INIT, first = BUF_INIT;
	const char *q = c->queue, *rqctl = c->rqctl;

	judge(f, c, add_commands, &first);
	add_new(b, &first);
	if (f->service->state != QUEUE_RUNNING)
		advice_log_lines(b, c->config, f->name);
	if (d->in_flight > 0)
		advice_command(&lists, rqctl, "running", q, "");
	if (d->waiting > 0 && kind_waits(f->kind))
		advice_command(&lists, rqctl, "peek", q, "");
	if (d->held > 0)
		advice_command(&lists, rqctl, "peek --held", q, "");
	if (d->retry > 0)
		advice_command(&lists, rqctl, "retry list", q, "");
	if (d->delayed > 0)
		advice_command(&lists, rqctl, "delayed list", q, "");
	if (d->dead > 0) {
		advice_command(&lists, rqctl, "dead list", q, "");
		if (newest[0] != '\0')
			advice_command(&lists, rqctl, "dead show", q, newest);
		advice_command(&lists, rqctl, "dead retry --all", q, "");
	}
	if (!d->paused)
		advice_command(&lists, rqctl, "pause", q, "");
	add_new(b, &lists);
}

void
queue_text(const struct view *v, const struct survey_result *r, const struct survey_queue *q,
    json_t *letters, struct buf *out)
{
	json_t *newest = NULL;
	const char *key = q->keys.name[KEY_QUEUE];
	const struct queue_config *cfg = config_queue(v->config, q->name);
	struct buf rqctl = BUF_INIT, text = BUF_INIT;
	struct service service;
	struct facts f = survey_facts(q, r, view_refuses(v), &service);
	struct judge_context c = judge_context_of(v);
	struct told told = { .list = json_array() };
	json_t *o, *commands = json_array(), *shown = NULL;
	char *rest, *line;

	if (v->details)
		newest = json_object_get(letters, "newest");
	c.queue = key;
	if (cfg != NULL && strcmp(cfg->key, key) == 0) {
		c.cfg = cfg;
		c.queue = q->name;
	}
	add_rqctl(v, c.cfg, &rqctl);
	c.rqctl = buf_str(&rqctl);
	o = state_json(&f, &c);
	judge(&f, &c, tell, &told);
	queue_commands(&f, &c, fleet_text(newest, "id"), &text);
	rest = buf_str(&text);
	while ((line = strsep(&rest, "\n")) != NULL)
		if (line[0] != '\0')
			json_array_append_new(commands, json_string(line));

	if (q->depth.dead > 0)
		shown = json_set(json_object(),
		    "total:i looked:i reasons:j newest:j", q->depth.dead,
		    fleet_count(letters, "looked"),
		    json_incref(json_object_get(letters, "reasons")),
		    json_incref(newest));
	json_set(o, "hint:s findings:j servers:j commands:j letters:j", told.hint, told.list,
	    servers_json(r, key, v->details), commands, shown);
	json_add_text(o, out);
	json_decref(o);
	buf_done(&rqctl);
	buf_done(&text);
	free(told.hint);
}
