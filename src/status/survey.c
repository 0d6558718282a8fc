/*
 * Surveys; see survey.h.
 *
 *	IDLE -> INDEX -> BEATS -> DEPTHS -> IDLE	SURVEY_FLEET
 *	IDLE -----------------> DEPTHS -> IDLE		SURVEY_OWN
 *
 * set_phase() alone changes the phase.  One survey runs at a time.  A wider request
 * waits for the next survey.  If a single server goes away, the survey ends, and its waiters get
 * NULL.  A survey goes on after its last waiter has given up: its result is kept for
 * the next one.
 */
#include "status/survey.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/util.h"
#include "loop/timer.h"
#include "policy/shard_keys.h"
#include "redis/request.h"

#define GROUP_BEATS	2	/* heartbeats can be long */
#define GROUP_QUEUES	8

enum phase { PHASE_IDLE, PHASE_INDEX, PHASE_BEATS, PHASE_DEPTHS };

struct waiter {
	TAILQ_ENTRY(waiter)	 entry;
	enum survey_scope	 scope;
	usec_t	 until;
	survey_fn	*fn;
	void	*arg;
};
TAILQ_HEAD(waiter_list, waiter);

/* A command of the group that is in flight. */
struct question {
	struct survey	*survey;
	struct request	 request;
	size_t	 i;	/* of the heartbeat or the queue */
	int	 step;	/* DEPTHS */
};

/* An instance of the index rqd:daemons. */
struct indexed {
	char	*instance;	/* owned */
	double	 seen;
};

struct survey {
	struct loop	*loop;
	struct nodes	*nodes;
	struct config	*config;	/* reference; its queues are own; NULL: none */
	struct waiter_list	 waiters;
	struct timer	 patience;	/* the first waiter's end */
	struct defer	 wake;	/* to answer or to begin */
	struct survey_result	 results[SURVEY_SCOPES];	/* at 0: none */

	const char	*instance;	/* of this daemon; NULL: it has no heartbeat */
	void		(*beat)(struct buf *, void *);
	void		*beat_arg;

	enum phase	 phase;
	enum survey_scope	 scope;
	struct survey_result	 found;	/* so far */
	struct indexed	*indexed;	/* BEATS: what the index lists */
	size_t	 nindexed;
	char	 now[32];	/* DEPTHS: Redis' time */
	size_t	 next;	/* the first one not asked yet */
	unsigned	 out;	/* questions without an answer */
	bool	 failed;	/* a reply was lost */
	struct question	 questions[GROUP_QUEUES * DEPTH_STEPS];
};

static void	survey_go_on(struct survey *);
static void	survey_wake(void *);

static void
queue_done(struct survey_queue *q)
{
	for (size_t i = 0; i < q->nshards; i++)
		free(q->shards[i]);
	free(q->shards);
	free(q->name);
	keys_done(&q->keys);
	depth_done(&q->depth);
}

static void
result_done(struct survey_result *r)
{
	for (size_t i = 0; i < r->n; i++)
		queue_done(&r->queues[i]);
	free(r->queues);
	fleet_done(&r->fleet);
	*r = (struct survey_result){ .at = 0 };
}

static int
by_key(const void *a, const void *b)
{
	return strcmp(((const struct survey_queue *)a)->keys.name[KEY_QUEUE],
	    ((const struct survey_queue *)b)->keys.name[KEY_QUEUE]);
}

struct survey_queue *
survey_find(const struct survey_result *r, const char *key)
{
	struct survey_queue wanted = { .keys.name[KEY_QUEUE] = (char *)(uintptr_t)key };

	if (r == NULL || r->n == 0)
		return NULL;
	return bsearch(&wanted, r->queues, r->n, sizeof(wanted), by_key);
}

struct facts
survey_facts(const struct survey_queue *q, const struct survey_result *r, const char *refuses,
    struct service *service)
{
	fleet_service(&r->fleet, q->keys.name[KEY_QUEUE], service);
	return (struct facts){
		.name = q->name, .keys = &q->keys, .kind = q->kind, .depth = &q->depth,
		.elsewhere = !q->own, .service = service,
		.refuses = refuses, .taken = r->taken,
		.full = r->memory_max > 0 && r->memory > r->memory_max,
	};
}

/* -- waiters ------------------------------------------------------------------- */

/* The freshest result with this scope; NULL: none is fresh, or Redis has gone away since. */
static const struct survey_result *
fresh(const struct survey *s, enum survey_scope scope)
{
	const struct survey_result *best = NULL, *r;

	if (!nodes_is_one_ready(s->nodes))
		return NULL;
	for (int i = (int)scope; i < SURVEY_SCOPES; i++) {
		r = &s->results[i];
		if (r->at > 0 && clock_mono() - r->at < SURVEY_FRESH &&
		    (best == NULL || r->at > best->at))
			best = r;
	}
	return best;
}

static void
answer(struct survey *s, struct waiter *w, const struct survey_result *r)
{
	TAILQ_REMOVE(&s->waiters, w, entry);
	w->fn(r, w->arg);
	free(w);
}

/* A waiter's function may ask again; that new waiter goes to the tail and is not answered here. */
static void
answer_all(struct survey *s, bool failed)
{
	struct waiter *w, *next, *last = TAILQ_LAST(&s->waiters, waiter_list);
	const struct survey_result *r;
	bool end = last == NULL;

	for (w = TAILQ_FIRST(&s->waiters); !end && w != NULL; w = next) {
		next = TAILQ_NEXT(w, entry);
		end = w == last;
		if ((r = fresh(s, w->scope)) != NULL)
			answer(s, w, r);
		else if (failed || w->until <= clock_mono())
			answer(s, w, NULL);
	}
	if ((w = TAILQ_FIRST(&s->waiters)) != NULL)
		timer_set_at(&s->patience, w->until);
	else
		timer_stop(&s->patience);
}

static void
out_of_patience(void *arg)
{
	answer_all(arg, false);
}

/* -- asking -------------------------------------------------------------------- */

static struct survey_queue *
add_queue(struct survey_result *r, double now, const char *name, const char *key,
    enum kind kind, const char *group, const char *delayed, bool own)
{
	struct survey_queue *q = APPEND(r->queues, r->n);

	*q = (struct survey_queue){ .name = xstrdup(name), .kind = kind, .own = own };
	keys_init(&q->keys, key);
	keys_set_group(&q->keys, group);
	keys_set_delayed(&q->keys, delayed);
	depth_init(&q->depth);
	q->depth.now = now;
	return q;
}

/* Adds the other keys of the queue that was added last; keys: all, and it is the last. */
static void
add_shards(struct survey_result *r, char *const *keys)
{
	const struct survey_queue q = r->queues[r->n - 1];

	for (; keys != NULL && keys[0] != NULL && keys[1] != NULL; keys++)
		add_queue(r, q.depth.now, "", keys[0], q.kind, "", "", q.own)->shard_of =
		    q.keys.name[KEY_QUEUE];
}

/* Adds the depths of shards to those of their queues, and leaves only these. */
static void
sum_up_shards(struct survey_result *r)
{
	struct survey_queue *q, *shard;
	size_t i, n = 0;

	r->nkeys = r->n;
	for (i = 0; i < r->n; i++) {
		shard = &r->queues[i];
		if (shard->shard_of == NULL || (q = survey_find(r, shard->shard_of)) == NULL)
			continue;
		depth_add(&q->depth, &shard->depth);
		*APPEND(q->shards, q->nshards) = xstrdup(shard->keys.name[KEY_QUEUE]);
	}
	for (i = 0; i < r->n; i++) {
		if (r->queues[i].shard_of != NULL)
			queue_done(&r->queues[i]);
		else
			r->queues[n++] = r->queues[i];
	}
	r->n = n;
}

/* This daemon's queues, and those that only other daemons serve. */
static void
list_queues(struct survey *s, double now)
{
	size_t n, i, own;
	struct served *served = fleet_served(&s->found.fleet, &n);
	json_t *known = json_object();
	const struct queue_config *cfg;
	char **keys;

	for (i = 0; i < s->config->nqueues; i++) {
		cfg = s->config->queues[i];
		json_object_set_new_nocheck(known, cfg->key, json_true());
		add_queue(&s->found, now, cfg->name, cfg->key, cfg->kind, cfg->consumer_group,
		    cfg->delayed_key, config_consumes(cfg));
		add_shards(&s->found, cfg->shard_keys);
	}
	own = s->found.n;
	for (i = 0; i < n && s->found.n < own + SURVEY_QUEUES; i++) {
		if (json_object_get(known, served[i].key) != NULL)
			continue;
		keys = shard_keys_all(served[i].key, fleet_count(served[i].queue, "shards"));
		add_queue(&s->found, now, served[i].name, served[i].key,
		    fleet_kind(served[i].queue), fleet_text(served[i].queue, "consumer_group"),
		    fleet_text(served[i].queue, "delayed_key"), false);
		add_shards(&s->found, keys);
		util_free_list(keys);
	}
	json_decref(known);
	free(served);
	if (s->found.n > 1)
		qsort(s->found.queues, s->found.n, sizeof(s->found.queues[0]), by_key);
}

/* Counts one more question in flight; returns its request, to be sent. */
static struct request *
question_new(struct survey *s, conn_answer_fn *fn, size_t i, int step)
{
	struct question *q = &s->questions[s->out++];

	*q = (struct question){ .survey = s, .i = i, .step = step };
	request_init(&q->request, fn, q);
	return &q->request;
}

/*
 * Counts one reply.  If one node of a cluster is down, the survey still has the figures
 * of the others.
 */
static void
answered(struct survey *s, enum conn_answer how)
{
	s->out--;
	s->failed |= how != CONN_REPLY && !nodes_is_cluster(s->nodes);
	if (s->out == 0)
		survey_go_on(s);
}

static void
got_depth(enum conn_answer how, const struct redisReply *reply, void *arg)
{
	struct question *q = arg;
	struct survey *s = q->survey;

	if (how == CONN_REPLY)
		depth_answer(&s->found.queues[q->i].depth, q->step, reply);
	answered(s, how);
}

static void
got_beat(enum conn_answer how, const struct redisReply *reply, void *arg)
{
	struct question *q = arg;
	struct survey *s = q->survey;
	const char *text = NULL;
	size_t len = 0;

	if (how == CONN_REPLY)
		text = reply_str(reply, &len);
	if (text != NULL)
		fleet_add(&s->found.fleet, s->indexed[q->i].instance, s->indexed[q->i].seen, text,
		    len);
	answered(s, how);
}

static void
got_index(enum conn_answer how, const struct redisReply *reply, void *arg)
{
	struct question *q = arg;
	struct survey *s = q->survey;
	size_t i, n = 0, len;
	const char *name;

	if (how == CONN_REPLY)
		n = reply_len(reply) / 2;
	s->indexed = xcalloc(n + 1, sizeof(s->indexed[0]));
	for (i = 0; i < n; i++) {
		if ((name = reply_str(reply_at(reply, 2 * i), &len)) == NULL)
			continue;
		s->indexed[s->nindexed++] = (struct indexed){ xstrndup(name, len),
			reply_double_at(reply, 2 * i + 1) };
	}
	answered(s, how);
}

/* A figure that the reply does not have stays 0: unknown. */
static void
got_memory(enum conn_answer how, const struct redisReply *reply, void *arg)
{
	struct question *q = arg;
	struct survey *s = q->survey;
	char *used, *most;

	if (how != CONN_REPLY)
		reply = NULL;
	used = reply_info(reply, "used_memory");
	most = reply_info(reply, "maxmemory");
	s->found.memory = strtoull(used, NULL, 10);
	s->found.memory_max = strtoull(most, NULL, 10);
	free(used);
	free(most);
	answered(s, how);
}

/* -- one survey ---------------------------------------------------------------- */

static void
free_index(struct survey *s)
{
	while (s->nindexed > 0)
		free(s->indexed[--s->nindexed].instance);
	free(s->indexed);
	s->indexed = NULL;
}

/* Puts the heartbeat as it would be now in the place of the one in Redis, which is older. */
static void
look_at_oneself(struct survey *s, double now)
{
	struct buf b = BUF_INIT;

	if (s->instance == NULL)
		return;
	s->beat(&b, s->beat_arg);
	if (b.len > 0)
		s->found.seen = fleet_replace(&s->found.fleet, s->instance, now, b.data, b.len);
	buf_done(&b);
}

static void
set_phase(struct survey *s, enum phase phase)
{
	double now = conn_redis_time(nodes_conn(s->nodes, KEYS_DAEMONS));

	s->phase = phase;
	s->next = 0;
	if (phase != PHASE_DEPTHS)
		return;
	if (!(now > 0))
		now = (double)clock_wall() / 1e6;
	snprintf(s->now, sizeof(s->now), "%.6f", now);
	if (s->scope == SURVEY_FLEET)
		look_at_oneself(s, now);
	list_queues(s, now);
}

static void
finish(struct survey *s)
{
	bool failed = s->failed;

	free_index(s);
	set_phase(s, PHASE_IDLE);
	if (failed) {
		result_done(&s->found);
	} else {
		s->found.scope = s->scope;
		sum_up_shards(&s->found);
		s->found.at = clock_mono();
		s->found.taken = clock_wall();
		result_done(&s->results[s->scope]);
		s->results[s->scope] = s->found;
		s->found = (struct survey_result){ .at = 0 };
	}
	answer_all(s, failed);
	loop_defer(s->loop, &s->wake, survey_wake, s);
}

/* Asks the next group; false: this phase has no more to ask. */
static bool
ask_group(struct survey *s)
{
	bool beats = s->phase == PHASE_BEATS;
	size_t most = s->found.n, end = s->next + GROUP_QUEUES;
	const char *argv[DEPTH_WORDS];
	const struct survey_queue *q;
	char *key, last[24];
	int argc;

	if (beats) {
		most = s->nindexed;
		end = s->next + GROUP_BEATS;
	}
	if (beats && fleet_is_full(&s->found.fleet)) {
		s->found.fleet.ignored += most - s->next;
		s->next = most;
	}
	for (; s->next < most && s->next < end; s->next++) {
		if (beats) {
			key = xasprintf("%s%s", KEYS_DAEMON_PREFIX, s->indexed[s->next].instance);
			snprintf(last, sizeof(last), "%zu", BEAT_MAX);
			request_words(question_new(s, got_beat, s->next, 0),
			    nodes_conn(s->nodes, key), "GETRANGE", key, "0", last, NULL);
			free(key);
			continue;
		}
		q = &s->found.queues[s->next];
		for (int step = 0; step < DEPTH_STEPS; step++) {
			struct words w = { .n = 0 };

			argc = depth_command(&q->keys, q->kind, step, s->now, argv);
			for (int k = 0; k < argc; k++)
				words_add(&w, argv[k]);
			if (argc > 0)
				request_command(question_new(s, got_depth, s->next, step),
				    nodes_conn(s->nodes,
				    argv[strcmp(argv[0], "EVAL") == 0 ? 3 : 1]), &w);
		}
	}
	return s->out > 0;
}

/* The last group is answered, or a phase has begun. */
static void
survey_go_on(struct survey *s)
{
	switch (s->failed ? PHASE_IDLE : s->phase) {
	case PHASE_INDEX:
		set_phase(s, PHASE_BEATS);
		FALLTHROUGH;
	case PHASE_BEATS:
		if (ask_group(s))
			return;
		set_phase(s, PHASE_DEPTHS);
		FALLTHROUGH;
	case PHASE_DEPTHS:
		if (ask_group(s))
			return;
		break;
	case PHASE_IDLE:
		break;
	}
	finish(s);
}

static void
begin(struct survey *s, enum survey_scope scope)
{
	struct conn *index = nodes_conn(s->nodes, KEYS_DAEMONS);
	const struct conn_server *server = conn_server(index);
	char last[16];

	s->scope = scope;
	s->failed = false;
	if (scope == SURVEY_OWN) {
		set_phase(s, PHASE_DEPTHS);
		survey_go_on(s);
		return;
	}
	set_phase(s, PHASE_INDEX);
	snprintf(last, sizeof(last), "%d", FLEET_MAX - 1);
	request_words(question_new(s, got_index, 0, 0), index, "ZREVRANGE", KEYS_DAEMONS,
	    "0", last, "WITHSCORES", NULL);
	/* Without a run id from the greeting, INFO is denied: do not ask. */
	if (server != NULL && server->run_id[0] != '\0')
		request_words(question_new(s, got_memory, 0, 0), index, "INFO", "memory", NULL);
}

/* Answers from fresh results, and begins a survey for the waiters that remain. */
static void
survey_wake(void *arg)
{
	struct survey *s = arg;
	enum survey_scope scope = SURVEY_OWN;
	struct waiter *w;

	if (s->phase != PHASE_IDLE)
		return;
	answer_all(s, !nodes_is_one_ready(s->nodes));
	TAILQ_FOREACH(w, &s->waiters, entry) {
		if (w->scope > scope)
			scope = w->scope;
	}
	if (!TAILQ_EMPTY(&s->waiters))
		begin(s, scope);
}

void
survey_ask(struct survey *s, enum survey_scope scope, struct config *config,
    survey_fn *fn, void *arg)
{
	struct waiter *w = NEW(struct waiter, .scope = scope,
	    .until = clock_mono() + SURVEY_WITHIN, .fn = fn, .arg = arg);

	TAILQ_INSERT_TAIL(&s->waiters, w, entry);
	if (!timer_is_set(&s->patience))
		timer_set_at(&s->patience, w->until);
	if (s->config != config) {
		config_unref(s->config);
		s->config = config_ref(config);
	}
	loop_defer(s->loop, &s->wake, survey_wake, s);
}

/* -- life ---------------------------------------------------------------------- */

struct survey *
survey_new(struct loop *loop, struct nodes *nodes)
{
	struct survey *s = NEW(struct survey, .loop = loop, .nodes = nodes);

	TAILQ_INIT(&s->waiters);
	timer_init(&s->patience, loop, out_of_patience, s);
	return s;
}

void
survey_set_beat(struct survey *s, const char *instance, void (*fn)(struct buf *, void *),
    void *arg)
{
	s->instance = instance;
	s->beat = fn;
	s->beat_arg = arg;
}

void
survey_free(struct survey *s)
{
	struct waiter *w;

	if (s == NULL)
		return;
	for (size_t k = 0; k < ARRAY_LEN(s->questions); k++)
		request_cancel(&s->questions[k].request);
	loop_defer_cancel(s->loop, &s->wake);
	timer_stop(&s->patience);
	while ((w = TAILQ_FIRST(&s->waiters)) != NULL)
		answer(s, w, NULL);
	for (int i = 0; i < SURVEY_SCOPES; i++)
		result_done(&s->results[i]);
	result_done(&s->found);
	free_index(s);
	config_unref(s->config);
	free(s);
}
