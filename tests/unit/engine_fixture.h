/*
 * A daemon of one queue in simulated time: consumer, dispatcher and policy over a queue
 * in memory and a handler without processes.
 */
#pragma once

#include "base/log.h"
#include "base/util.h"
#include "engine/consumer.h"
#include "engine/dispatcher.h"
#include "../sim/fake.h"
#include "../sim/mem.h"

#define KEY	"q"

struct world {
	struct loop		*loop;
	struct dispatcher	*dispatcher;
	struct mem_store	*store;
	struct config		*config;
	struct queue_config	*cfg;
	struct queue_env	 queue_env;
	struct consumer_env	 env;
	struct consumer		*consumer;
	struct fake		 fake;
	bool			 closed;
};

static inline void
closed(struct consumer *c, void *arg)
{
	struct world *w = arg;

	(void)c;
	w->closed = true;
}

static inline void
no_log(void *arg, enum log_level level, const char *text, size_t len)
{
	(void)arg, (void)level, (void)text, (void)len;
}

static inline struct queue_config *
queue_config(struct config *config)
{
	struct queue_config *q = xcalloc(1, sizeof(*q));

	q->name = xstrdup(KEY);
	q->file = xstrdup("");
	q->key = xstrdup(KEY);
	q->concurrency = 4;
	q->batch = 1;
	q->lease = q->foreign_timeout = MINUTE;
	q->time_limit = 30 * MINUTE;
	q->kill_grace = 5 * SEC;
	q->max_attempts = 5;
	q->max_crashes = 3;
	q->backoff = 5 * SEC;
	q->backoff_max = HOUR;
	q->dead_status[65] = true;
	q->suspend_after = 20;
	q->message_max = 1 << 20;
	config->queues = xreallocarray(config->queues, 2, sizeof(*config->queues));
	config->queues[0] = q;
	config->queues[1] = NULL;
	config->nqueues = 1;
	return q;
}

static inline void
world_begin(struct world *w, struct fake_end (*script)(struct message *, void *))
{
	memset(w, 0, sizeof(*w));
	clock_fake(SEC, 1000000 * SEC);
	log_set_sink(no_log, NULL);
	w->loop = loop_new_simulated();
	w->dispatcher = dispatcher_new(w->loop, 16);
	w->store = mem_store_new(KEY);
	w->config = config_new();
	w->cfg = queue_config(w->config);
	w->fake.script = script;
	w->fake.arg = w;
	w->queue_env = (struct queue_env){ .loop = w->loop, .instance = "sim", .host = "sim" };
	w->fake.env.loop = w->loop;
	w->env = (struct consumer_env){ .loop = w->loop, .dispatcher = w->dispatcher,
	    .queue = &w->queue_env, .handler = &w->fake.env, .closed = closed, .arg = w };
}

static inline void
world_start(struct world *w)
{
	w->consumer = consumer_new(&w->env, w->config, w->cfg, &queue_mem);
}

static inline void
world_end(struct world *w)
{
	consumer_set_quiet(w->consumer, true);
	loop_run_for(w->loop, SEC);
	consumer_free(w->consumer);
	assert_int_equal(dispatcher_taken(w->dispatcher), 0);
	dispatcher_free(w->dispatcher);
	config_unref(w->config);
	loop_free(w->loop);
	mem_store_free(w->store);
	log_set_sink(NULL, NULL);
	clock_real(0);
}

static inline void
push(struct world *w, unsigned n)
{
	char text[16];

	while (n-- > 0) {
		snprintf(text, sizeof(text), "m%u", n);
		mem_push(w->store, text, strlen(text), 0);
	}
}

static inline struct mem_entry *
push_text(struct world *w, const char *text, usec_t delay)
{
	return mem_push(w->store, text, strlen(text), delay);
}

/*
 * Returns a random end of a handler, less than `longest` after its start.  Each of the six
 * ends that are not exit status 0 has the chance 1 / of.
 */
static inline struct fake_end
random_end(int of, usec_t longest)
{
	static const struct fake_end ends[] = {
		{ .status = 1 }, { .status = 65 }, { .end = END_SIGNAL, .signo = 11 },
		{ .end = END_NOT_STARTED, .error = EAGAIN },
		{ .said = SAID_RETRY, .delay = SEC }, { .said = SAID_OK },
	};
	size_t i = (size_t)(rand() % of);
	struct fake_end end = i < ARRAY_LEN(ends) ? ends[i] : (struct fake_end){ .status = 0 };

	end.after = rand() % longest;
	return end;
}
