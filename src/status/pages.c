/*
 * The pages; see pages.h.
 *
 * Metrics and status need a survey of Redis (survey.h): the request waits for it, at most
 * SURVEY_WITHIN, and the loop goes on.  A client that asks again within REUSE gets the
 * same text, so that one in a tight loop costs little.
 *
 * While the daemon listens, it also takes a survey every 10 seconds for its history
 * (history.h), whether a client asks or not.
 */
#include "status/pages.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "loop/timer.h"
#include "status/dead_summary.h"
#include "status/history.h"
#include "status/http.h"
#include "status/metrics.h"
#include "status/metrics_collect.h"
#include "status/page.h"
#include "status/queue_json.h"
#include "status/queue_state.h"
#include "status/stall.h"
#include "status/status_json.h"
#include "status/survey.h"

#define REUSE		(500 * MSEC)
#define PART_EVERY	(1 * MSEC)	/* of a long history: other events come between */
#define FIRST_SAMPLE	(1 * SEC)	/* when Redis and the first heartbeat are there */
#define JSON		"application/json"
#define TEXT		"text/plain; charset=utf-8"

/* A page that make() writes from a survey. */
struct report {
	enum survey_scope scope;
	const char	*type;
	void		(*make)(struct pages *, const struct survey_result *, struct buf *);
};
enum { REPORT_METRICS, REPORT_STATUS, REPORTS };
static const struct report reports[REPORTS];

struct pages {
	bool		 stopping;	/* the view's objects may be freed */
	void		(*look)(struct view *, void *);
	void		*arg;
	struct http	*http;
	struct survey	*survey;
	struct stalls	 stalls;	/* of the queues */
	usec_t		 noted;		/* time of the last survey that was taken */
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
	struct pages	*pages;
	struct http_request	*request;
	const struct report	*report;
};

static struct view
look(const struct pages *p)
{
	struct view v = { .config = NULL };

	p->look(&v, p->arg);
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

/* Any answer shows that the loop turns. */
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
		say(r, 503, v.state);
	else if (nodes_are_ready(v.nodes))
		say(r, 200, "ready");
	else {
		buf_printf(&b, "Redis is down%s%s%s\n",
		    nodes_is_one_ready(v.nodes) ? " in part" : "",
		    v.redis_error[0] != '\0' ? ": " : "", v.redis_error);
		http_answer(r, 503, TEXT, &b);
	}
}

/* -- from one survey to the next -------------------------------------------------- */

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
remember(struct pages *p, const struct survey_result *r)
{
	struct history_point point;

	if (r->scope != SURVEY_FLEET || !history_begin(p->history, r->at))
		return;
	for (size_t i = 0; i < r->n; i++) {
		point = point_of(&r->queues[i], r);
		history_add(p->history, r->queues[i].keys.name[KEY_QUEUE], &point);
	}
}

/* Compares a new survey with the one before, and adds it to the history. */
static void
note(struct pages *p, const struct view *v, const struct survey_result *r)
{
	const struct survey_queue *q;
	const struct consumer *c;

	if (r == NULL || r->at == p->noted)
		return;
	p->noted = r->at;
	remember(p, r);
	for (size_t i = 0; i < v->nconsumers; i++) {
		c = v->consumers[i];
		if ((q = survey_find(r, consumer_config(c)->key)) == NULL || q->depth.waiting < 0)
			continue;
		stall_note(stalls_get(&p->stalls, consumer_config(c)->key), r->at,
		    q->depth.waiting + (q->depth.due > 0 ? q->depth.due : 0),
		    /* The fleet's as counted in Redis, and ours, which are newer. */
		    q->depth.total[STAT_DELIVERED] +
		    (int64_t)consumer_stats(c)->n[STAT_DELIVERED]);
	}
}

/* -- reports ------------------------------------------------------------------ */

static void
make_metrics(struct pages *p, const struct survey_result *r, struct buf *out)
{
	struct view v = look(p);

	note(p, &v, r);
	metrics_collect(&v, &p->stalls, r, out);
}

static void
make_status(struct pages *p, const struct survey_result *r, struct buf *out)
{
	struct view v = look(p);

	note(p, &v, r);
	status_text(&v, r, p->history, out);
}

/* -- requests that wait for a survey ---------------------------------------------------- */

static const struct report reports[REPORTS] = {
	[REPORT_METRICS] = { SURVEY_OWN, METRICS_TYPE, make_metrics },
	[REPORT_STATUS] = { SURVEY_FLEET, JSON, make_status },
};

/* Sends a text that was made just now, or makes it. */
static void
surveyed(const struct survey_result *r, void *arg)
{
	struct wait *w = arg;
	struct pages *p = w->pages;
	struct buf *text = &p->made[w->report - reports].text, body = BUF_INIT;
	usec_t now = clock_mono(), *at = &p->made[w->report - reports].at;

	if (p->stopping) {
		say(w->request, 503, "stopped");
		free(w);
		return;
	}
	if (*at == 0 || now - *at > REUSE || r == NULL) {
		buf_clear(text);
		w->report->make(p, r, text);
		*at = r != NULL ? now : 0;
	}
	buf_add(&body, text->data, text->len);
	http_answer(w->request, 200, w->report->type, &body);
	free(w);
}

static void
serve_report(struct http_request *r, const struct http_route *route, void *arg)
{
	struct pages *p = arg;
	struct wait *w = NEW(struct wait, p, r, route->data);

	survey_ask(p->survey, w->report->scope, look(p).config, surveyed, w);
}

/* -- the history ----------------------------------------------------------------- */

static void
sampled(const struct survey_result *r, void *arg)
{
	struct pages *p = arg;
	struct view v;

	if (r == NULL || p->stopping)
		return;
	v = look(p);
	note(p, &v, r);
	timer_set(&p->sample, history_pace(r->fleet.n, r->nkeys));
}

static bool
has_history(const struct pages *p)
{
	return p->history_whole && p->history_made == history_last(p->history);
}

/* Makes the next part of the text; begins anew where a sample came between two parts. */
static void
make_history(struct pages *p)
{
	if (p->history_whole || p->history_made != history_last(p->history)) {
		buf_clear(&p->history_text);
		p->history_next = 0;
		p->history_made = history_last(p->history);
	}
	p->history_whole = history_text(p->history, &p->history_next, &p->history_text);
}

/*
 * Makes one part of the text in a turn, or sends one answer if it is whole: an answer
 * copies megabytes.
 */
static void
give_history(void *arg)
{
	struct pages *p = arg;
	struct buf body = BUF_INIT;

	if (!has_history(p))
		make_history(p);
	if (has_history(p)) {
		buf_add(&body, p->history_text.data, p->history_text.len);
		http_answer(p->history_waits[--p->nhistory_waits], 200, JSON, &body);
	}
	if (p->nhistory_waits > 0)
		timer_set(&p->history_more, PART_EVERY);
}

/*
 * Serves /history, also while Redis is down.  The text of a large fleet is long, so it
 * is made once per sample.
 */
static void
serve_history(struct http_request *r, const struct http_route *route UNUSED, void *arg)
{
	struct pages *p = arg;

	*APPEND(p->history_waits, p->nhistory_waits) = r;
	if (!timer_is_set(&p->history_more))
		give_history(p);
}

/* sampled() sets the timer again, for later if the fleet is large. */
static void
take_sample(void *arg)
{
	struct pages *p = arg;
	struct view v = look(p);

	timer_set(&p->sample, HISTORY_STEP);
	if (nodes_is_one_ready(v.nodes))
		survey_ask(p->survey, SURVEY_FLEET, v.config, sampled, p);
}

/* -- one queue ------------------------------------------------------------------ */

/* A request for /queue. */
struct inquiry {
	struct pages	*pages;
	struct http_request	*request;
	char		*key;		/* of the queue; owned */
	char		**keys;		/* it and its shards; owned */
	size_t		 n;		/* of them; 0: the letters were not asked for yet */
	size_t		 next;		/* of them */
	json_t		*dead;		/* the summary so far; NULL: none; owned */
};

static void	inquire(struct inquiry *);
static void	ask_letters(struct inquiry *);

static void
inquiry_free(struct inquiry *i)
{
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
	say(i->request, status, why);
	inquiry_free(i);
}

static void
got_letters(const json_t *dead, void *arg)
{
	struct inquiry *i = arg;

	if (i->dead != NULL && dead != NULL)
		dead_summary_add(i->dead, dead);
	else if (i->dead == NULL && dead != NULL)
		i->dead = json_deep_copy(dead);
	if (i->pages->stopping)
		inquiry_refuse(i, 503, "stopped");
	else if (i->next < i->n)
		ask_letters(i);
	else
		inquire(i);	/* this may start with another survey */
}

/* Asks for the letters of the next key. */
static void
ask_letters(struct inquiry *i)
{
	struct keys keys;

	keys_init(&keys, i->keys[i->next++]);
	dead_reader_ask(i->pages->reader, keys.name[KEY_DEAD], got_letters, i);
	keys_done(&keys);
}

/* Answers only for queues of the survey, so that no client can read other keys. */
static void
found_queue(const struct survey_result *r, void *arg)
{
	struct inquiry *i = arg;
	const struct survey_queue *q = r != NULL ? survey_find(r, i->key) : NULL;
	struct buf b = BUF_INIT;
	struct view v;

	if (i->pages->stopping || r == NULL) {
		inquiry_refuse(i, 503, r == NULL ? "Redis does not answer" : "stopped");
	} else if (q == NULL) {
		inquiry_refuse(i, 404, "There is no such queue.");
	} else if (q->depth.dead > 0 && i->n == 0) {
		*APPEND(i->keys, i->n) = xstrdup(i->key);
		for (size_t k = 0; k < q->nshards; k++)
			*APPEND(i->keys, i->n) = xstrdup(q->shards[k]);
		ask_letters(i);
	} else {
		v = look(i->pages);
		queue_text(&v, r, q, i->dead, &b);
		http_answer(i->request, 200, JSON, &b);
		inquiry_free(i);
	}
}

static void
inquire(struct inquiry *i)
{
	struct pages *p = i->pages;

	survey_ask(p->survey, SURVEY_FLEET, look(p).config, found_queue, i);
}

static void
serve_queue(struct http_request *r, const struct http_route *route UNUSED, void *arg)
{
	struct inquiry *i = xcalloc(1, sizeof(*i));

	*i = (struct inquiry){ .pages = arg, .request = r, .key = http_parameter(r, "key") };
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

struct pages *
pages_new(struct loop *loop, struct nodes *nodes, const char *host,
    void (*look_fn)(struct view *, void *), void *arg)
{
	struct pages *p = NEW(struct pages, .look = look_fn, .arg = arg,
	    .survey = survey_new(loop, nodes), .reader = dead_reader_new(loop, nodes),
	    .history = history_new(HISTORY_QUEUES, HISTORY_APART));

	timer_init(&p->sample, loop, take_sample, p);
	timer_init(&p->history_more, loop, give_history, p);
	p->http = http_new(loop, routes, host, p);
	return p;
}

void
pages_listen(struct pages *p, const char *where)
{
	http_listen(p->http, where);
	if (where[0] == '\0')
		timer_stop(&p->sample);
	else if (!timer_is_set(&p->sample))
		timer_set(&p->sample, FIRST_SAMPLE);
}

void
pages_stop(struct pages *p)
{
	p->stopping = true;
	timer_stop(&p->sample);
	timer_stop(&p->history_more);
	while (p->nhistory_waits > 0)
		say(p->history_waits[--p->nhistory_waits], 503, "stopped");
	http_listen(p->http, "");
}

void
pages_free(struct pages *p)
{
	if (p == NULL)
		return;
	dead_reader_free(p->reader);
	survey_free(p->survey);
	http_free(p->http);
	stalls_done(&p->stalls);
	history_free(p->history);
	buf_done(&p->history_text);
	free(p->history_waits);
	for (size_t i = 0; i < REPORTS; i++)
		buf_done(&p->made[i].text);
	free(p);
}
