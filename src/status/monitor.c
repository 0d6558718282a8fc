/*
 * The pages; see monitor.h.
 *
 * Metrics and status need a survey of Redis (survey.h): the request waits for it, at most
 * SURVEY_WITHIN, and the loop goes on.  A client that asks again within REUSE gets the
 * same text, so that one in a tight loop costs little.
 *
 * While the daemon listens, it also takes a survey every 10 seconds for its history
 * (history.h), whether a client asks or not.
 */
#include "status/monitor.h"

#include <math.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include <config.h>

#include "base/log.h"
#include "base/util.h"
#include "loop/timer.h"
#include "status/dead_summary.h"
#include "status/history.h"
#include "status/http.h"
#include "status/metrics.h"
#include "status/page.h"
#include "status/queue_json.h"
#include "status/state.h"
#include "status/status_json.h"
#include "status/survey.h"

#define REUSE		(500 * MSEC)
#define PART_EVERY	(1 * MSEC)	/* of a long history: other events come between */
#define FIRST_SAMPLE	(1 * SEC)	/* when Redis and the first heartbeat are there */
#define JSON		"application/json"
#define TEXT		"text/plain; charset=utf-8"

/* The monitor remembers this of a queue from one survey to the next. */
struct noted {
	char		*key;	/* owned */
	struct stall	 stall;
};

/* A page that make() writes from a survey. */
struct report {
	enum survey_scope scope;
	const char	*type;
	void		(*make)(struct monitor *, const struct survey_result *, struct buf *);
};
enum { REPORT_METRICS, REPORT_STATUS, REPORTS };
static const struct report reports[REPORTS];

struct monitor {
	bool		 stopping;	/* nothing can be looked at any more */
	void		(*look)(struct view *, void *);
	void		*arg;
	struct http	*http;
	struct survey	*survey;
	void		*queues;	/* struct noted; of tsearch(3) */
	usec_t		 noted;		/* the last survey that was noted */
	struct dead_reader	*reader;
	struct history	*history;
	struct buf	 history_text;
	usec_t		 history_made;	/* its last sample then */
	bool		 history_whole;	/* false: a part of it is to be made, or all */
	size_t		 history_next;	/* see history_text() */
	struct timer	 history_more;	/* set while requests wait */
	struct http_request **history_waits;	/* nhistory_waits; owned */
	size_t		 nhistory_waits;
	struct timer	 sample;	/* set while it listens */
	/* A text that may be sent again. */
	struct {
		struct buf	 text;
		usec_t		 at;	/* 0: none */
	} made[REPORTS];
};

/* A request that waits for a survey. */
struct wait {
	struct monitor	*monitor;
	struct http_request	*request;
	const struct report	*report;
};

static struct view
look(const struct monitor *m)
{
	struct view v = { .config = NULL };

	m->look(&v, m->arg);
	return v;
}

static void
say(struct http_request *r, int status, const char *text)
{
	struct buf b = BUF_INIT;

	buf_printf(&b, "%s\n", text);
	http_answer(r, status, TEXT, &b);
}

/* -- health ------------------------------------------------------------------ */

/* An answer at all means that the loop turns. */
static void
serve_health(struct http_request *r, const struct http_route *route UNUSED, void *arg UNUSED)
{
	say(r, 200, "ok");
}

static void
serve_ready(struct http_request *r, const struct http_route *route UNUSED, void *arg)
{
	struct view v = look(arg);
	struct buf b = BUF_INIT;

	if (strcmp(v.state, "draining") == 0 || strcmp(v.state, "stopped") == 0)
		buf_printf(&b, "%s\n", v.state);
	else if (!nodes_are_ready(v.nodes))
		buf_printf(&b, "Redis is down%s%s%s\n",
		    nodes_is_one_ready(v.nodes) ? " in part" : "",
		    v.redis_error[0] != '\0' ? ": " : "", v.redis_error);
	if (b.len > 0)
		http_answer(r, 503, TEXT, &b);
	else
		say(r, 200, "ready");
}

/* -- queues from one survey to the next ------------------------------------------ */

void
stall_note(struct stall *s, usec_t now, int64_t ready, int64_t delivered)
{
	bool blind = s->seen == 0 || now - s->seen > STALL_GAP;

	s->waits = ready > 0;
	if (blind || !s->waits || ready < s->ready || delivered != s->delivered)
		s->since = now;
	s->seen = now;
	s->ready = ready;
	s->delivered = delivered;
}

usec_t
stall_length(const struct stall *s, usec_t now)
{
	return s->waits ? now - s->since : 0;
}

static int
compare_key(const void *a, const void *b)
{
	return strcmp(((const struct noted *)a)->key, ((const struct noted *)b)->key);
}

static void
noted_free(void *noted)
{
	free(((struct noted *)noted)->key);
	free(noted);
}

/* The queue's stall; a new one where there is none. */
static struct stall *
stall_of(struct monitor *m, const char *key)
{
	struct noted wanted = { .key = (char *)(uintptr_t)key }, **found;

	found = tfind(&wanted, &m->queues, compare_key);
	if (found == NULL) {
		wanted.key = xstrdup(key);
		found = tsearch(xmemdup(&wanted, sizeof(wanted)), &m->queues, compare_key);
		if (found == NULL)
			fatal_os("out of memory");
	}
	return &(*found)->stall;
}

static struct history_point
point_of(const struct survey_queue *q, const struct survey_result *r)
{
	const struct depth *d = &q->depth;
	struct service service;
	struct facts f = survey_facts(q, r, &service);
	struct latency l = state_latency(&f);

	return (struct history_point){
		.depth = d->waiting >= 0 && d->due > 0 ? d->waiting + d->due : d->waiting,
		.running = state_running(&f),
		.latency = l.how == LATENCY_UNKNOWN ? -1 : l.seconds,
		.acked = d->total[STAT_ACKED], .failed = d->total[STAT_FAILED],
	};
}

/* Adds a survey of the fleet to the history, if a sample is due. */
static void
remember(struct monitor *m, const struct survey_result *r)
{
	struct history_point p;

	if (r->scope != SURVEY_FLEET || !history_begin(m->history, r->at))
		return;
	for (size_t i = 0; i < r->n; i++) {
		p = point_of(&r->queues[i], r);
		history_add(m->history, r->queues[i].keys.name[KEY_QUEUE], &p);
	}
}

/* Compares a new survey with the one before, and adds it to the history. */
static void
note(struct monitor *m, const struct view *v, const struct survey_result *r)
{
	const struct survey_queue *q;
	const struct consumer *c;

	if (r == NULL || r->at == m->noted)
		return;
	m->noted = r->at;
	remember(m, r);
	for (size_t i = 0; i < v->nconsumers; i++) {
		c = v->consumers[i];
		if ((q = survey_find(r, consumer_config(c)->key)) == NULL || q->depth.waiting < 0)
			continue;
		stall_note(stall_of(m, consumer_config(c)->key), r->at,
		    q->depth.waiting + (q->depth.due > 0 ? q->depth.due : 0),
		    /* The fleet's as counted in Redis, and ours, which are newer. */
		    q->depth.total[STAT_DELIVERED] +
		    (int64_t)consumer_stats(c)->n[STAT_DELIVERED]);
	}
}

/* -- metrics ----------------------------------------------------------------- */

static void
older(const struct message *msg, pid_t pid UNUSED, const char *progress UNUSED, usec_t age,
    void *arg)
{
	usec_t *oldest = arg;

	if (msg != NULL && age > *oldest)
		*oldest = age;
}

static struct metrics_queue
queue_metrics(struct monitor *m, const struct consumer *c, const struct survey_result *r)
{
	const struct queue_config *cfg = consumer_config(c);
	const struct survey_queue *q = r != NULL ? survey_find(r, cfg->key) : NULL;
	struct latency l = { LATENCY_UNKNOWN, 0 };
	usec_t oldest = 0;

	if (consumer_arrivals(c) != NULL)
		l = arrivals_latency(consumer_arrivals(c), clock_mono());
	if (q != NULL)
		l = state_latency_with(cfg->kind, &q->depth, l);
	consumer_each(c, older, &oldest);
	return (struct metrics_queue){
		.name = cfg->name, .stats = consumer_stats(c), .block = consumer_block(c),
		.depth = q != NULL ? &q->depth : NULL, .running = consumer_in_flight(c),
		.concurrency = config_most(cfg), .oldest = clock_seconds(oldest),
		.stalled = q == NULL ? NAN :
		    clock_seconds(stall_length(stall_of(m, cfg->key), clock_mono())),
		.latency = q != NULL && l.how == LATENCY_KNOWN ? l.seconds : NAN,
		.latency_least = q != NULL && l.how == LATENCY_LEAST ? l.seconds : NAN,
	};
}

/* A queue whose key was changed is there twice until the old one is drained. */
static bool
is_replaced(const struct view *v, const struct consumer *c)
{
	const struct queue_config *cfg = consumer_config(c);
	const struct queue_config *now = config_queue(v->config, cfg->name);

	return now != NULL && now != cfg;
}

static void
make_metrics(struct monitor *m, const struct survey_result *r, struct buf *out)
{
	struct view v = look(m);
	struct metrics_queue *queues = xcalloc(v.nconsumers + 1, sizeof(*queues));
	size_t i, nschedules = schedules_count(v.schedules);
	struct schedule_state *schedules = xcalloc(nschedules + 1, sizeof(*schedules));
	struct metrics all = {
		.version = PACKAGE_VERSION, .config_hash = v.config->hash, .state = v.state,
		.reload_ok = !v.reload_failed, .redis_up = nodes_are_ready(v.nodes),
		.reconnects = (double)nodes_reconnects(v.nodes),
		.outstanding = nodes_outstanding(v.nodes),
		.handlers = dispatcher_taken(v.dispatcher),
		.max_handlers = v.config->max_handlers, .log_dropped = (double)log_dropped(),
		.started = clock_seconds(v.started), .queues = queues,
		.schedules = schedules, .nschedules = nschedules,
	};

	note(m, &v, r);
	metrics_usage(&all.process);
	for (i = 0; i < v.nconsumers; i++) {
		if (!is_replaced(&v, v.consumers[i]))
			queues[all.nqueues++] = queue_metrics(m, v.consumers[i], r);
	}
	for (i = 0; i < nschedules; i++)
		schedules[i] = schedules_get(v.schedules, i);
	metrics_text(&all, out);
	free(schedules);
	free(queues);
}

static void
make_status(struct monitor *m, const struct survey_result *r, struct buf *out)
{
	struct view v = look(m);

	note(m, &v, r);
	status_text(&v, r, m->history, out);
}

/* -- what waits for a survey ---------------------------------------------------- */

static const struct report reports[REPORTS] = {
	[REPORT_METRICS] = { SURVEY_OWN, METRICS_TYPE, make_metrics },
	[REPORT_STATUS] = { SURVEY_FLEET, JSON, make_status },
};

/* Sends what was made just now, or makes it. */
static void
surveyed(const struct survey_result *r, void *arg)
{
	struct wait *w = arg;
	struct monitor *m = w->monitor;
	struct buf *text = &m->made[w->report - reports].text, body = BUF_INIT;
	usec_t now = clock_mono(), *at = &m->made[w->report - reports].at;

	if (m->stopping) {
		say(w->request, 503, "stopped");
		free(w);
		return;
	}
	if (*at == 0 || now - *at > REUSE || r == NULL) {
		buf_clear(text);
		w->report->make(m, r, text);
		*at = r != NULL ? now : 0;
	}
	buf_add(&body, text->data, text->len);
	http_answer(w->request, 200, w->report->type, &body);
	free(w);
}

static void
serve_report(struct http_request *r, const struct http_route *route, void *arg)
{
	struct monitor *m = arg;
	struct wait *w = xcalloc(1, sizeof(*w));

	*w = (struct wait){ m, r, route->data };
	survey_ask(m->survey, w->report->scope, look(m).config, surveyed, w);
}

/* -- the history ----------------------------------------------------------------- */

static void
sampled(const struct survey_result *r, void *arg)
{
	struct monitor *m = arg;
	struct view v;

	if (r == NULL || m->stopping)
		return;
	v = look(m);
	note(m, &v, r);
	timer_set(&m->sample, history_pace(r->fleet.n, r->nkeys));
}

static bool
has_history(const struct monitor *m)
{
	return m->history_whole && m->history_made == history_last(m->history);
}

/* Makes the next part of the text; begins anew where a sample came between two parts. */
static void
make_history(struct monitor *m)
{
	if (m->history_whole || m->history_made != history_last(m->history)) {
		buf_clear(&m->history_text);
		m->history_next = 0;
		m->history_made = history_last(m->history);
	}
	m->history_whole = history_text(m->history, &m->history_next, &m->history_text);
}

/* One turn: a part of the text, and one answer where it is whole.  Megabytes are copied. */
static void
give_history(void *arg)
{
	struct monitor *m = arg;
	struct buf body = BUF_INIT;

	if (!has_history(m))
		make_history(m);
	if (has_history(m)) {
		buf_add(&body, m->history_text.data, m->history_text.len);
		http_answer(m->history_waits[--m->nhistory_waits], 200, JSON, &body);
	}
	if (m->nhistory_waits > 0)
		timer_set(&m->history_more, PART_EVERY);
}

/* Also while Redis is down.  The text of a large fleet is long: it is made once per sample. */
static void
serve_history(struct http_request *r, const struct http_route *route UNUSED, void *arg)
{
	struct monitor *m = arg;

	*APPEND(m->history_waits, m->nhistory_waits) = r;
	if (!timer_is_set(&m->history_more))
		give_history(m);
}

static void
refuse_history(struct monitor *m)
{
	timer_stop(&m->history_more);
	while (m->nhistory_waits > 0)
		say(m->history_waits[--m->nhistory_waits], 503, "stopped");
}

/* sampled() sets the timer again, for later if the fleet is large. */
static void
take_sample(void *arg)
{
	struct monitor *m = arg;
	struct view v = look(m);

	timer_set(&m->sample, HISTORY_STEP);
	if (nodes_is_one_ready(v.nodes))
		survey_ask(m->survey, SURVEY_FLEET, v.config, sampled, m);
}

/* -- one queue ------------------------------------------------------------------ */

/* A request for /queue. */
struct inquiry {
	struct monitor	*monitor;
	struct http_request	*request;
	char		*key;		/* of the queue; owned */
	char		**keys;		/* it and its shards; owned */
	size_t		 n;		/* of them; 0: the letters were not asked for yet */
	size_t		 next;		/* of them */
	json_t		*dead;		/* what was found; NULL: nothing; owned */
};

static void	inquire(struct inquiry *);
static void	ask_letters(struct inquiry *);

static void
inquiry_end(struct inquiry *i, int status, const char *type, struct buf *body)
{
	http_answer(i->request, status, type, body);
	for (size_t k = 0; k < i->n; k++)
		free(i->keys[k]);
	free(i->keys);
	json_decref(i->dead);
	free(i->key);
	free(i);
}

static void
inquiry_refuse(struct inquiry *i, int status, const char *why)
{
	struct buf b = BUF_INIT;

	buf_printf(&b, "%s\n", why);
	inquiry_end(i, status, TEXT, &b);
}

static void
got_letters(const json_t *dead, void *arg)
{
	struct inquiry *i = arg;

	if (i->dead != NULL && dead != NULL)
		dead_summary_add(i->dead, dead);
	else if (i->dead == NULL && dead != NULL)
		i->dead = json_deep_copy(dead);
	if (i->monitor->stopping)
		inquiry_refuse(i, 503, "stopped");
	else if (i->next < i->n)
		ask_letters(i);
	else
		inquire(i);	/* the survey may be another one now */
}

/* Of the next key. */
static void
ask_letters(struct inquiry *i)
{
	struct keys keys;

	keys_init(&keys, i->keys[i->next++]);
	dead_reader_ask(i->monitor->reader, keys.name[KEY_DEAD], got_letters, i);
	keys_done(&keys);
}

/* Only of queues that the survey has: nobody can have other keys read. */
static void
found_queue(const struct survey_result *r, void *arg)
{
	struct inquiry *i = arg;
	const struct survey_queue *q = r != NULL ? survey_find(r, i->key) : NULL;
	struct buf b = BUF_INIT;
	struct view v;

	if (i->monitor->stopping || r == NULL) {
		inquiry_refuse(i, 503, r == NULL ? "Redis does not answer" : "stopped");
	} else if (q == NULL) {
		inquiry_refuse(i, 404, "There is no such queue.");
	} else if (q->depth.dead > 0 && i->n == 0) {
		*APPEND(i->keys, i->n) = xstrdup(i->key);
		for (size_t k = 0; k < q->nshards; k++)
			*APPEND(i->keys, i->n) = xstrdup(q->shards[k]);
		ask_letters(i);
	} else {
		v = look(i->monitor);
		queue_text(&v, r, q, i->dead, &b);
		inquiry_end(i, 200, JSON, &b);
	}
}

static void
inquire(struct inquiry *i)
{
	struct monitor *m = i->monitor;

	survey_ask(m->survey, SURVEY_FLEET, look(m).config, found_queue, i);
}

static void
serve_queue(struct http_request *r, const struct http_route *route UNUSED, void *arg)
{
	struct inquiry *i = xcalloc(1, sizeof(*i));

	*i = (struct inquiry){ .monitor = arg, .request = r, .key = http_parameter(r, "key") };
	if (i->key == NULL)
		inquiry_refuse(i, 400, "Which one? Ask for /queue?key=KEY.");
	else
		inquire(i);
}

/* -- the page ---------------------------------------------------------------- */

struct file {
	const char	*type;
	const char	*text;
};

static void
serve_file(struct http_request *r, const struct http_route *route, void *arg UNUSED)
{
	const struct file *file = route->data;
	struct buf b = BUF_INIT;

	buf_puts(&b, file->text);
	http_answer(r, 200, file->type, &b);
}

static const struct file html = { "text/html; charset=utf-8", page_index_html };
static const struct file css = { "text/css; charset=utf-8", page_page_css };
static const struct file js = { "text/javascript; charset=utf-8", page_page_js };

static const struct http_route routes[] = {
	{ "/", serve_file, &html },
	{ "/page.css", serve_file, &css },
	{ "/page.js", serve_file, &js },
	{ "/healthz", serve_health, NULL },
	{ "/readyz", serve_ready, NULL },
	{ "/status", serve_report, &reports[REPORT_STATUS] },
	{ "/queue", serve_queue, NULL },
	{ "/history", serve_history, NULL },
	{ "/metrics", serve_report, &reports[REPORT_METRICS] },
	{ NULL, NULL, NULL },
};

/* -- life -------------------------------------------------------------------- */

struct monitor *
monitor_new(struct loop *loop, struct nodes *nodes, const char *host,
    void (*look_fn)(struct view *, void *), void *arg)
{
	struct monitor *m = xcalloc(1, sizeof(*m));

	m->look = look_fn;
	m->arg = arg;
	m->survey = survey_new(loop, nodes);
	m->reader = dead_reader_new(loop, nodes);
	m->history = history_new();
	timer_init(&m->sample, loop, take_sample, m);
	timer_init(&m->history_more, loop, give_history, m);
	m->http = http_new(loop, routes, host, m);
	return m;
}

void
monitor_listen(struct monitor *m, const char *where)
{
	http_listen(m->http, where);
	if (where[0] == '\0')
		timer_stop(&m->sample);
	else if (!timer_is_set(&m->sample))
		timer_set(&m->sample, FIRST_SAMPLE);
}

void
monitor_stop(struct monitor *m)
{
	m->stopping = true;
	timer_stop(&m->sample);
	refuse_history(m);
	http_listen(m->http, "");
}

void
monitor_free(struct monitor *m)
{
	if (m == NULL)
		return;
	dead_reader_free(m->reader);
	survey_free(m->survey);
	http_free(m->http);
	tdestroy(m->queues, noted_free);
	history_free(m->history);
	buf_done(&m->history_text);
	free(m->history_waits);
	for (size_t i = 0; i < REPORTS; i++)
		buf_done(&m->made[i].text);
	free(m);
}
