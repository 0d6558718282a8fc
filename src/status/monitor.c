/*
 * The pages; see monitor.h.
 *
 * Metrics and status need a survey of Redis (survey.h): the request waits for it,
 * at most SURVEY_WITHIN, and the loop goes on.  What was made is sent again to who
 * asks within REUSE, so that a client in a tight loop costs little.
 */
#include "status/monitor.h"

#include <stdlib.h>
#include <string.h>

#include <config.h>

#include "base/log.h"
#include "base/util.h"
#include "status/http.h"
#include "status/metrics.h"
#include "status/page.h"
#include "status/stall.h"
#include "status/status_json.h"
#include "status/survey.h"

#define REUSE		(500 * MSEC)
#define TEXT		"text/plain; charset=utf-8"

/* What is known of a queue from one survey to the next. */
struct memory {
	char		*key;	/* owned */
	struct stall	 stall;
};

/* A body that may be sent again. */
struct made {
	struct buf	 text;
	usec_t		 at;	/* 0: none */
};

struct monitor {
	bool		 stopping;	/* nothing can be looked at any more */
	void		(*look)(struct view *, void *);
	void		*arg;
	struct http	*http;
	struct survey	*survey;
	struct memory	*memories;	/* sorted by key */
	size_t		 nmemories;
	usec_t		 noted;	/* the last survey that memories have seen */
	struct made	 metrics;
	struct made	 status;
};

/* A request that waits for a survey. */
struct wait {
	struct monitor	*monitor;
	struct http_request	*request;
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

/* That it is answered says all: the loop turns. */
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
	bool leaves = strcmp(v.state, "draining") == 0 || strcmp(v.state, "stopped") == 0;

	if (leaves)
		buf_printf(&b, "%s\n", v.state);
	else if (!conn_is_ready(v.conn))
		buf_printf(&b, "Redis is down%s%s\n", v.redis_error[0] != '\0' ? ": " : "",
		    v.redis_error);
	if (b.len > 0)
		http_answer(r, 503, TEXT, &b);
	else
		say(r, 200, "ready");
}

/* -- what is remembered of queues -------------------------------------------------- */

static struct memory *
recall(struct monitor *m, const char *key)
{
	size_t low = 0, high = m->nmemories, mid;
	int d;

	while (low < high) {
		mid = (low + high) / 2;
		if ((d = strcmp(m->memories[mid].key, key)) == 0)
			return &m->memories[mid];
		if (d < 0)
			low = mid + 1;
		else
			high = mid;
	}
	m->memories = xreallocarray(m->memories, m->nmemories + 1, sizeof(m->memories[0]));
	memmove(&m->memories[low + 1], &m->memories[low],
	    (m->nmemories++ - low) * sizeof(m->memories[0]));
	m->memories[low] = (struct memory){ .key = xstrdup(key) };
	return &m->memories[low];
}

/* A queue's deliveries: the fleet's as counted in Redis, and ours, which are newer. */
static int64_t
deliveries(const struct depth *d, const struct consumer *c)
{
	return d->total[STAT_DELIVERED] + (int64_t)consumer_stats(c)->n[STAT_DELIVERED];
}

/* Lets the memories see a new survey. */
static void
note(struct monitor *m, const struct view *v, const struct survey_result *r)
{
	const struct survey_queue *q;
	const struct consumer *c;
	size_t i;

	if (r == NULL || r->at == m->noted)
		return;
	m->noted = r->at;
	for (i = 0; i < v->nconsumers; i++) {
		c = v->consumers[i];
		if ((q = survey_find(r, consumer_config(c)->key)) == NULL || q->depth.waiting < 0)
			continue;
		stall_note(&recall(m, consumer_config(c)->key)->stall, r->at,
		    q->depth.waiting + (q->depth.due > 0 ? q->depth.due : 0),
		    deliveries(&q->depth, c));
	}
}

/* -- metrics ----------------------------------------------------------------- */

static void
older(const struct message *msg UNUSED, pid_t pid UNUSED, usec_t age, void *arg)
{
	usec_t *oldest = arg;

	if (age > *oldest)
		*oldest = age;
}

static struct metrics_queue
queue_metrics(struct monitor *m, const struct consumer *c, const struct survey_result *r)
{
	const struct queue_config *cfg = consumer_config(c);
	const struct survey_queue *q = r != NULL ? survey_find(r, cfg->key) : NULL;
	usec_t oldest = 0;

	consumer_each(c, older, &oldest);
	return (struct metrics_queue){
		.name = cfg->name, .stats = consumer_stats(c), .block = consumer_block(c),
		.running = consumer_in_flight(c), .concurrency = (int)config_most(cfg),
		.oldest = (double)oldest / (double)SEC,
		.depth = q != NULL ? &q->depth : NULL,
		.stalled = (double)stall_length(&recall(m, cfg->key)->stall, clock_mono()) /
		    (double)SEC,
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
	uint64_t connects = conn_generation(v.conn);
	struct metrics_queue *queues = xcalloc(v.nconsumers + 1, sizeof(*queues));
	size_t i, nschedules = schedules_count(v.schedules);
	struct schedule_state *schedules = xcalloc(nschedules + 1, sizeof(*schedules));
	struct metrics all = {
		.version = PACKAGE_VERSION, .config_hash = v.config->hash, .state = v.state,
		.reload_failed = v.reload_failed, .redis_up = conn_is_ready(v.conn),
		.reconnects = connects > 0 ? connects - 1 : 0,
		.outstanding = conn_outstanding(v.conn),
		.handlers = dispatcher_taken(v.dispatcher),
		.max_handlers = v.config->max_handlers, .log_dropped = log_dropped(),
		.started = v.started, .queues = queues,
		.schedules = schedules, .nschedules = nschedules,
	};

	note(m, &v, r);
	own_usage_look(&all.process);
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

/* -- what waits for a survey ---------------------------------------------------- */

/* Sends what was made just now, or makes it. */
static void
send_made(struct wait *w, struct made *made, const char *type, const struct survey_result *r,
    void (*make)(struct monitor *, const struct survey_result *, struct buf *))
{
	struct monitor *m = w->monitor;
	struct buf body = BUF_INIT;
	usec_t now = clock_mono();

	if (m->stopping) {
		say(w->request, 503, "stopped");
		free(w);
		return;
	}
	if (made->at == 0 || now - made->at > REUSE || r == NULL) {
		buf_clear(&made->text);
		make(m, r, &made->text);
		made->at = r != NULL ? now : 0;
	}
	buf_add(&body, made->text.data, made->text.len);
	http_answer(w->request, 200, type, &body);
	free(w);
}

static void
surveyed_metrics(const struct survey_result *r, void *arg)
{
	struct wait *w = arg;

	send_made(w, &w->monitor->metrics, METRICS_TYPE, r, make_metrics);
}

static void
make_status(struct monitor *m, const struct survey_result *r, struct buf *out)
{
	struct view v = look(m);

	note(m, &v, r);
	status_text(&v, r, out);
}

static void
surveyed_status(const struct survey_result *r, void *arg)
{
	struct wait *w = arg;

	send_made(w, &w->monitor->status, "application/json", r, make_status);
}

static struct wait *
wait_new(struct monitor *m, struct http_request *r)
{
	struct wait *w = xcalloc(1, sizeof(*w));

	w->monitor = m;
	w->request = r;
	return w;
}

static void
serve_metrics(struct http_request *r, const struct http_route *route UNUSED, void *arg)
{
	struct monitor *m = arg;

	survey_ask(m->survey, SURVEY_OWN, look(m).config, surveyed_metrics, wait_new(m, r));
}

static void
serve_status(struct http_request *r, const struct http_route *route UNUSED, void *arg)
{
	struct monitor *m = arg;

	survey_ask(m->survey, SURVEY_FLEET, look(m).config, surveyed_status, wait_new(m, r));
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
	{ "/status", serve_status, NULL },
	{ "/metrics", serve_metrics, NULL },
	{ NULL, NULL, NULL },
};

/* -- life -------------------------------------------------------------------- */

struct monitor *
monitor_new(struct loop *loop, struct conn *conn, const char *host,
    void (*look_fn)(struct view *, void *), void *arg)
{
	struct monitor *m = xcalloc(1, sizeof(*m));

	m->look = look_fn;
	m->arg = arg;
	m->survey = survey_new(loop, conn);
	m->http = http_new(loop, routes, host, m);
	return m;
}

void
monitor_listen(struct monitor *m, const char *where)
{
	http_listen(m->http, where);
}

void
monitor_stop(struct monitor *m)
{
	m->stopping = true;
	http_listen(m->http, "");
}

void
monitor_free(struct monitor *m)
{
	size_t i;

	if (m == NULL)
		return;
	survey_free(m->survey);
	http_free(m->http);
	for (i = 0; i < m->nmemories; i++)
		free(m->memories[i].key);
	free(m->memories);
	buf_done(&m->metrics.text);
	buf_done(&m->status.text);
	free(m);
}
