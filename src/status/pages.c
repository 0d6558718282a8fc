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

#include "base/list.h"
#include "base/util.h"
#include "loop/timer.h"
#include "status/history.h"
#include "status/http.h"
#include "status/metrics.h"
#include "status/page.h"
#include "status/judge.h"
#include "status/status_json.h"
#include "status/survey.h"

#define REUSE		(500 * MSEC)
#define FIRST_SAMPLE	(1 * SEC)	/* when Redis and the first heartbeat are there */
#define JSON		"application/json"
#define TEXT		"text/plain; charset=utf-8"

/* Pages that need a survey. */
static const struct report {
	enum survey_scope scope;
	const char	*type;
} reports[] = {
	{ SURVEY_OWN, METRICS_TYPE },
	{ SURVEY_FLEET, JSON },
};
enum { REPORT_METRICS, REPORT_STATUS, REPORTS };

struct pages {
	bool		 stopping;	/* the view's objects may be freed */
	void		(*look)(struct view *, void *);
	void		*arg;
	struct http	*http;
	struct survey	*survey;
	usec_t		 noted;		/* time of the last survey that was taken */
	struct loop	*loop;
	struct nodes	*nodes;
	TAILQ_HEAD(, inquiry) inquiries;	/* which read dead letters */
	usec_t		 letters_at;	/* mono; the next letter may be read */
	struct history	*history;
	struct buf	 history_text;
	usec_t		 history_made;	/* its last sample then */
	struct timer	 sample;	/* set while it listens */
	/* A text that may be sent again. */
	struct made {
		struct buf	 text;
		usec_t		 at;	/* 0: none */
		bool		 details;	/* as in struct view */
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

/* The view for a client. */
static struct view
look_for(const struct pages *p, const struct http_request *r)
{
	struct view v = look(p);

	v.details = v.config->http.details || http_is_unix(r);
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
	struct buf text = BUF_INIT;
	bool ready = judge_ready(&(struct ready_facts){
		.state = v.state, .up = nodes_are_ready(v.nodes),
		.in_part = nodes_is_one_ready(v.nodes), .down = v.redis_error,
		.refuses = view_refuses(&v) }, &text);

	say(r, ready ? 200 : 503, buf_str(&text));
	buf_done(&text);
}

/* -- from one survey to the next -------------------------------------------------- */

static void
sample_queue(struct pages *p, const struct view *v, const struct survey_result *r,
    const struct survey_queue *q)
{
	struct service service;
	struct facts f = survey_facts(q, r, view_refuses(v), &service);

	history_add(p->history, q->keys.name[KEY_QUEUE], &(struct history_point){
	    .depth = depth_backlog(&q->depth), .latency = facts_latency(&f),
	    .acked = q->depth.total[STAT_ACKED], .failed = q->depth.total[STAT_FAILED] });
}

/* Compares a new survey with the one before, and adds it to the history if a sample is due. */
static void
note(struct pages *p, const struct view *v, const struct survey_result *r)
{
	const struct survey_queue *q;
	struct consumer *c;
	bool sample;

	if (r == NULL || r->at == p->noted)
		return;
	p->noted = r->at;
	sample = r->scope == SURVEY_FLEET && history_begin(p->history, r->at);
	for (size_t i = 0; sample && i < r->n; i++)
		sample_queue(p, v, r, &r->queues[i]);
	for (size_t i = 0; i < v->nconsumers; i++) {
		c = v->consumers[i];
		q = survey_find(r, consumer_config(c)->key);
		if (q == NULL || q->depth.waiting < 0)
			continue;
		stall_note(consumer_stall(c), r->at,
		    q->depth.waiting + int64_max(q->depth.due, 0),
		    /* The fleet's as counted in Redis, and ours, which are newer. */
		    q->depth.total[STAT_DELIVERED] +
		    (int64_t)consumer_stats(c)->n[STAT_DELIVERED]);
	}
}

/* -- requests that wait for a survey ---------------------------------------------------- */

/* Sends a text that was made just now for a client that may see as much, or makes it. */
static void
surveyed(const struct survey_result *r, void *arg)
{
	struct wait *w = arg;
	struct pages *p = w->pages;
	struct made *made = &p->made[w->report - reports];
	struct buf body = BUF_INIT;
	usec_t now = clock_mono();
	struct view v;

	if (p->stopping) {
		say(w->request, 503, "stopped");
		free(w);
		return;
	}
	v = look_for(p, w->request);
	if (made->at == 0 || now - made->at > REUSE || r == NULL || made->details != v.details) {
		note(p, &v, r);
		buf_clear(&made->text);
		if (w->report == &reports[REPORT_METRICS])
			metrics_collect(&v, r, &made->text);
		else
			status_text(&v, r, p->history, &made->text);
		made->at = 0;
		if (r != NULL)
			made->at = now;
		made->details = v.details;
	}
	buf_add(&body, made->text.data, made->text.len);
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

/* Serves /history, also while Redis is down.  The text is long, so it is made once per sample. */
static void
serve_history(struct http_request *r, const struct http_route *route UNUSED, void *arg)
{
	struct pages *p = arg;
	struct buf body = BUF_INIT;

	if (p->history_text.len == 0 || p->history_made != history_last(p->history)) {
		buf_clear(&p->history_text);
		history_text(p->history, &p->history_text);
		p->history_made = history_last(p->history);
	}
	buf_add(&body, p->history_text.data, p->history_text.len);
	http_answer(r, 200, JSON, &body);
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

/* Letters may be large: they are read one after the other, in 1/SHARE of Redis' time. */
#define PAUSE		(20 * MSEC)
#define SHARE		10

/* A request for /queue. */
struct inquiry {
	TAILQ_ENTRY(inquiry) entry;	/* while n > 0 */
	struct pages	*pages;
	struct http_request	*request;
	char		*key;		/* of the queue; owned */
	char		**keys;		/* it and its shards; owned */
	size_t		 n;		/* of them; 0: the letters were not asked for yet */
	size_t		 next;		/* of them */
	json_t		*letters;	/* as queue_letters() adds; owned */
	struct timer	 turn;		/* to ask for letters of the next key */
	struct request	 letter;
	usec_t		 asked_at;
};

static void	inquire(struct inquiry *);

static void
inquiry_free(struct inquiry *i)
{
	if (i->n > 0)
		TAILQ_REMOVE(&i->pages->inquiries, i, entry);
	request_cancel(&i->letter);
	timer_stop(&i->turn);
	for (size_t k = 0; k < i->n; k++)
		free(i->keys[k]);
	free(i->keys);
	json_decref(i->letters);
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
got_letters(enum conn_answer how, const struct redisReply *reply, void *arg)
{
	struct inquiry *i = arg;

	i->pages->letters_at = clock_mono() + PAUSE + (SHARE - 1) * (clock_mono() - i->asked_at);
	if (how == CONN_REPLY)
		queue_letters(i->letters, reply);
	if (i->pages->stopping)
		inquiry_refuse(i, 503, "stopped");
	else if (i->next < i->n)
		timer_set_at(&i->turn, i->pages->letters_at);
	else
		inquire(i);	/* this may start with another survey */
}

/* Asks for letters of the next key, unless another inquiry is first. */
static void
ask_letters(void *arg)
{
	struct inquiry *i = arg;
	struct pages *p = i->pages;
	struct words w = { .n = 0 };
	struct keys keys;

	if (clock_mono() < p->letters_at) {
		timer_set_at(&i->turn, p->letters_at);
		return;
	}
	i->asked_at = clock_mono();
	p->letters_at = i->asked_at + SEC;	/* got_letters() comes before */
	keys_init(&keys, i->keys[i->next++]);
	keys_add(&keys, &w, KEY_DEAD);
	queue_letters_words(&w);
	request_script(&i->letter, nodes_conn(p->nodes, keys.name[KEY_DEAD]),
	    script_find("dead_list"), &w);
	keys_done(&keys);
}

/* Answers only for queues of the survey, so that no client can read other keys. */
static void
found_queue(const struct survey_result *r, void *arg)
{
	struct inquiry *i = arg;
	const struct survey_queue *q = survey_find(r, i->key);
	struct buf b = BUF_INIT;
	struct view v;

	if (r == NULL) {
		inquiry_refuse(i, 503, "Redis does not answer");
	} else if (i->pages->stopping) {
		inquiry_refuse(i, 503, "stopped");
	} else if (q == NULL) {
		inquiry_refuse(i, 404, "There is no such queue.");
	} else if (q->depth.dead > 0 && i->n == 0) {
		i->letters = json_object();
		TAILQ_INSERT_TAIL(&i->pages->inquiries, i, entry);
		*APPEND(i->keys, i->n) = xstrdup(i->key);
		for (size_t k = 0; k < q->nshards; k++)
			*APPEND(i->keys, i->n) = xstrdup(q->shards[k]);
		timer_set(&i->turn, 0);
	} else {
		v = look_for(i->pages, i->request);
		queue_text(&v, r, q, i->letters, &b);
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
	timer_init(&i->turn, i->pages->loop, ask_letters, i);
	request_init(&i->letter, got_letters, i);
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
	    .loop = loop, .nodes = nodes, .survey = survey_new(loop, nodes),
	    .history = history_new());

	timer_init(&p->sample, loop, take_sample, p);
	TAILQ_INIT(&p->inquiries);
	p->http = http_new(loop, routes, host, p);
	return p;
}

void
pages_set_beat(struct pages *p, const char *instance, void (*beat)(struct buf *, void *),
    void *arg)
{
	survey_set_beat(p->survey, instance, beat, arg);
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
	survey_set_beat(p->survey, NULL, NULL, NULL);
	timer_stop(&p->sample);
	http_listen(p->http, "");
}

void
pages_free(struct pages *p)
{
	if (p == NULL)
		return;
	while (!TAILQ_EMPTY(&p->inquiries))
		inquiry_refuse(TAILQ_FIRST(&p->inquiries), 503, "stopped");
	survey_free(p->survey);
	http_free(p->http);
	history_free(p->history);
	buf_done(&p->history_text);
	for (size_t i = 0; i < REPORTS; i++)
		buf_done(&p->made[i].text);
	free(p);
}
