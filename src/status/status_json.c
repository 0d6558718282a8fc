/* The JSON of /status; see status_json.h. */
#include "status/status_json.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <config.h>

#include "base/log.h"
#include "base/util.h"
#include "policy/tick.h"
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
	json_t *o = json_object(), *unusual = json_object(), *q;
	const char *name, *state;
	int64_t running = 0, n = 0;

	json_set(o, "instance:s", d->instance);
	for (size_t i = 0; i < ARRAY_LEN(copied); i++)
		json_object_set(o, copied[i], json_object_get(d->beat, copied[i]));
	json_object_foreach(json_object_get(d->beat, "queues"), name, q) {
		n++;
		running += fleet_count(q, "running");
		state = fleet_text(q, "state");
		if (state[0] != '\0' && strcmp(state, "running") != 0)
			json_object_set(unusual, name, json_object_get(q, "state"));
	}
	return json_set(o, "queues:i running:i seen:f states:j", n, running,
	    now > d->seen ? now - d->seen : 0.0, unusual);
}

static json_t *
fleet_json(const struct view *v, const struct survey_result *r)
{
	json_t *list = json_array();
	double now = conn_redis_time(nodes_conn(v->nodes, KEYS_DAEMONS));

	for (size_t i = 0; i < r->fleet.n; i++)
		json_array_append_new(list, member_json(&r->fleet.daemons[i], now));
	return list;
}

static int
by_name(const void *va, const void *vb)
{
	const struct survey_queue *const *a = va, *const *b = vb;

	return strcmp((*a)->name, (*b)->name);
}

static json_t *
queue_json(const struct survey_queue *q, const struct survey_result *r, const struct history *h)
{
	struct history_rates rates = history_rates(h, q->keys.name[KEY_QUEUE]);
	struct service service;
	struct facts facts = survey_facts(q, r, &service);
	struct buf ignored = BUF_INIT;
	enum mood mood = state_text(&facts, &ignored);

	buf_done(&ignored);
	return json_set(state_json(&facts), "own:t late:t trouble:i acked_rate:f failed_rate:f",
	    q->own, state_is_late(&facts),
	    (int64_t)state_trouble(&facts, mood, rates.failed),
	    rates.acked >= 0 ? rates.acked : NAN, rates.failed >= 0 ? rates.failed : NAN);
}

/*
 * The queues that some daemon is configured for; with unnamed, those that hold messages
 * and that no daemon is configured for.
 */
static json_t *
queues_json(const struct survey_result *r, const struct history *h, bool unnamed)
{
	const struct survey_queue **sorted = xcalloc(r->n + 1, sizeof(*sorted));
	json_t *list = json_array();
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++)
		if (r->queues[i].unnamed == unnamed &&
		    (!unnamed || depth_messages(&r->queues[i].depth) > 0))
			sorted[n++] = &r->queues[i];
	qsort(sorted, n, sizeof(*sorted), by_name);
	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, queue_json(sorted[i], r, h));
	free(sorted);
	return list;
}

/* -- schedules -------------------------------------------------------------------- */

static json_t *
tick_json(int64_t tick)
{
	return tick != TICK_NEVER ? json_integer(tick) : NULL;
}

/* As `rqctl schedules --json` has it. */
static json_t *
schedule_json(const struct config *config, const struct schedule_state *s)
{
	const struct schedule_config *cfg = s->cfg;
	const struct queue_config *q = config_queue(config, cfg->queue);
	bool cron = cfg->every == 0;

	return json_set(json_object(), "name:s queue:s key:s every:j cron:s timezone:s last:j "
	    "next:j missed:j", cfg->name, cfg->queue, q != NULL ? q->key : cfg->queue,
	    cron ? NULL : json_integer(cfg->every / SEC), cron ? cfg->cron : NULL,
	    cron ? cfg->timezone : NULL, tick_json(s->last), tick_json(s->next),
	    s->missed == 1 ? tick_json(s->missed_at) : NULL);
}

/* Of this daemon's configuration. */
static json_t *
schedules_json(const struct view *v)
{
	json_t *list = json_array();
	struct schedule_state s;

	for (size_t i = 0; i < schedules_count(v->schedules); i++) {
		s = schedules_get(v->schedules, i);
		json_array_append_new(list, schedule_json(v->config, &s));
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

/* Whether Redis has no heartbeat of this daemon, for example because it is full. */
static bool
is_unseen(const struct view *v, const struct survey_result *r)
{
	for (size_t i = 0; i < r->fleet.n; i++)
		if (strcmp(r->fleet.daemons[i].instance, v->instance) == 0)
			return false;
	return strcmp(v->state, "running") == 0 && clock_wall() - v->started > UNSEEN_AFTER;
}

/* own: this daemon's instance, whose failed reload is known without its heartbeat. */
static void
add_daemon_problems(json_t *list, const struct daemon *d, const char *own)
{
	const char *log = fleet_text(d->beat, "log_error");
	const char *reload = fleet_text(d->beat, "reload_error");

	if (log[0] != '\0')
		add_problem(list, "warning", xasprintf(ADVICE_LOG, d->instance, log));
	if (reload[0] != '\0' && strcmp(d->instance, own) != 0)
		add_problem(list, "warning", xasprintf(ADVICE_RELOAD, d->instance, reload));
}

/* Problems of Redis or of daemons, in the words of `rqctl check`. */
static json_t *
problems_json(const struct view *v, const struct survey_result *r)
{
	const char *policy = nodes_server(v->nodes)->maxmemory_policy;
	char *full = advice_memory(r->memory, r->memory_max);
	json_t *list = json_array();

	if (full != NULL)
		add_problem(list, "error", full);
	if (policy[0] != '\0' && strcmp(policy, "noeviction") != 0)
		add_problem(list, "error", xasprintf("maxmemory-policy is %s: Redis may evict "
		    "messages; it must be noeviction", policy));
	if (v->beat_refused != NULL)
		add_problem(list, "error", xasprintf("Redis refuses this daemon's heartbeat: %s",
		    v->beat_refused));
	if (is_unseen(v, r))
		add_problem(list, "error", xstrdup("this daemon runs, but its heartbeat is not in "
		    "Redis: its queues are shown as if it did not serve them"));
	if (v->reload_error[0] != '\0')
		add_problem(list, "warning", xasprintf(ADVICE_RELOAD, v->instance,
		    v->reload_error));
	for (size_t i = 0; i < r->fleet.n; i++)
		add_daemon_problems(list, &r->fleet.daemons[i], v->instance);
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
	double old = now > d->seen ? now - d->seen : 0;
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
	char when[CLOCK_TEXT_MAX];
	json_t *root;

	root = json_set(json_object(), "time:s daemon:j daemons:n ignored:i fleet:j queues:j "
	    "unnamed:j progress:j schedules:j problems:j",
	    clock_text(r != NULL ? r->taken : clock_wall(), when), daemon_json(v),
	    r != NULL ? (int64_t)r->fleet.n : -1, r != NULL ? (int64_t)r->fleet.ignored : 0,
	    r != NULL ? fleet_json(v, r) : NULL,
	    r != NULL ? queues_json(r, h, false) : NULL,
	    r != NULL ? queues_json(r, h, true) : NULL,
	    r != NULL ? progress_json(v, r) : NULL, schedules_json(v),
	    r != NULL ? problems_json(v, r) : NULL);
	json_add_text(root, out);
	json_decref(root);
}
