/*
 * Each schedule has a timer.  When it fires, the daemon asks for the tick after `done`,
 * the last one that Redis has settled; after a longer break only for the latest.  Then
 * the timer waits for the next tick, and a random moment longer, so that a fleet does
 * not ask all at once.  It fires at least once a minute, because clocks may jump.
 *
 * After an error the daemon backs off, up to a minute; after a reconnect it asks at
 * once.  Asking twice does no harm.
 */
#include "engine/schedule.h"

#include <stdlib.h>
#include <string.h>

#include "base/backoff.h"
#include "engine/event_log.h"
#include "loop/timer.h"
#include "policy/shard_keys.h"
#include "policy/tick.h"
#include "queue/keys.h"
#include "queue/slot_route.h"
#include "redis/request.h"
#include "redis/script.h"

#define SPREAD_MAX	(100 * MSEC)
#define LOOK_EVERY	MINUTE		/* clocks drift, and Redis' clock may be set */

struct schedule {
	struct schedules	*all;
	struct config		*config;	/* reference */
	const struct schedule_config *cfg;
	const struct queue_config *queue;
	struct keys		 keys;
	struct timer		 timer;
	struct request		 request;
	int64_t			 asked;		/* its tick */
	int64_t			 done;		/* the last settled tick; TICK_NEVER: none */
	bool			 fresh;		/* none was; a reload keeps this */
	struct schedule_state	 status;		/* for metrics and the page */
	unsigned		 failures;
	char			*cause;		/* of the last failure, as logged; NULL: none */
};

/* Returned by schedule.lua. */
enum { ANSWER_WHAT, ANSWER_NOW, ANSWER_RAN, ANSWER_FIELDS };
static const char answer_form[] = {
	[ANSWER_WHAT] = FIELD_STR, [ANSWER_NOW] = FIELD_NUMBER, [ANSWER_RAN] = FIELD_INT,
	[ANSWER_FIELDS] = 0
};

struct schedules {
	const struct queue_env	*env;
	struct schedule		**at;
	size_t			 n;
	bool			 stopped;
};

/* The connection to the server of the schedule's queue. */
static struct conn *
schedule_conn(const struct schedule *s)
{
	return route_conn(s->all->env, s->keys.name[KEY_QUEUE]);
}

static double
redis_time(const struct schedule *s)
{
	double now = conn_redis_time(schedule_conn(s));

	/* Before the first answer: this machine's clock. */
	return now > 0 ? now : (double)clock_wall() / (double)SEC;
}

/* -- when ------------------------------------------------------------------------ */

/* The tick to ask for; TICK_NEVER: none. */
static int64_t
due_tick(const struct schedule *s, double now)
{
	int64_t latest = tick_last(s->cfg, (int64_t)now), next;

	/* A settled tick in the future was left by a wrong clock. */
	if (latest == TICK_NEVER || s->done == TICK_NEVER ||
	    (double)s->done > now + (double)tick_period(s->cfg, latest))
		return latest;
	if (latest <= s->done)
		return TICK_NEVER;
	next = tick_next(s->cfg, s->done);
	return now - (double)next <= TICK_GRACE_MIN ? next : latest;
}

/* Sets the timer for the next tick; it fires at once if that has passed. */
static void
schedule_arm(struct schedule *s)
{
	double now = redis_time(s), in;
	int64_t tick = tick_next(s->cfg, (int64_t)now), due = due_tick(s, now);
	usec_t most;

	in = ((double)tick - now) * (double)SEC;
	s->status.next = due != TICK_NEVER ? due : tick;
	if (due != TICK_NEVER) {
		timer_set(&s->timer, 0);
	} else if (tick == TICK_NEVER || in > (double)LOOK_EVERY) {
		timer_set(&s->timer, LOOK_EVERY);
	} else {
		most = tick_period(s->cfg, tick) * SEC / 20;
		if (most > SPREAD_MAX)
			most = SPREAD_MAX;
		timer_set(&s->timer, (usec_t)in + (usec_t)(random_unit() * (double)most));
	}
}

/* -- asking ---------------------------------------------------------------------- */

static void
schedule_settle(struct schedule *s, const char *what, double now, bool ran)
{
	usec_t late = (usec_t)((now - (double)s->asked) * (double)SEC);
	char text[TICK_TEXT_MAX];

	s->failures = 0;
	xreplace(&s->cause, NULL);
	conn_saw_time(schedule_conn(s), now);
	if (strcmp(what, "early") != 0) {
		s->done = s->asked;
		s->fresh = false;
		s->status.missed = strcmp(what, "missed") == 0;
		s->status.missed_at = s->asked;
		if (strcmp(what, "done") == 0 && ran)
			s->status.last = s->asked;
	}
	if (strcmp(what, "pushed") == 0) {
		s->status.last = s->asked;
		s->status.runs++;
		queue_event(s->queue, LOG_LV_INFO, "scheduled", LF_STR("schedule", s->cfg->name),
		    LF_STR("tick", tick_text(s->asked, text)),
		    LF_USEC("late", late > 0 ? late : 0));
	} else if (strcmp(what, "missed") == 0)
		queue_event(s->queue, LOG_LV_WARN, "warning", LF_STR("schedule", s->cfg->name),
		    LF_STR("tick", tick_text(s->asked, text)),
		    LF_STR("warning", "missed: no daemon ran the schedule in time"));
	schedule_arm(s);
}

static void
schedule_answered(enum conn_answer answer, const struct redisReply *r, void *arg)
{
	static const char *const known[] = { "pushed", "done", "new", "missed", "early" };
	struct schedule *s = arg;
	const char *what;
	char cause[REPLY_CAUSE];

	if (s->all->stopped)
		return;
	if (answer != CONN_REPLY) {
		/* In a cluster this connection may still be up. */
		timer_set(&s->timer, SEC);
		return;
	}
	what = reply_has(r, answer_form) ? reply_str_at(r, ANSWER_WHAT) : "";
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		if (strcmp(what, known[i]) == 0) {
			schedule_settle(s, what, reply_double_at(r, ANSWER_NOW),
			    reply_int_at(r, ANSWER_RAN) > 0);
			return;
		}
	}

	/* An error, or another word.  It is logged if it has changed, not at every try. */
	(void)reply_cause(r, cause, sizeof(cause));
	if (s->cause == NULL || strcmp(s->cause, cause) != 0) {
		queue_event(s->queue, LOG_LV_ERROR, "warning", LF_STR("schedule", s->cfg->name),
		    LF_STR("error", cause), LF_STR("warning", "the schedule cannot push"));
		xreplace(&s->cause, cause);
	}
	timer_set(&s->timer, backoff_delay(SEC, MINUTE, ++s->failures, random_unit()));
}

static void
schedule_ask(struct schedule *s, int64_t tick)
{
	char *message = tick_message(s->cfg, tick, kind_source(s->queue->kind) == SOURCE_IDS);
	struct words w = { .n = 0 };

	s->asked = s->status.next = tick;
	words_key(&w, s->keys.name[KEY_QUEUE], s->keys.len[KEY_QUEUE]);
	words_key(&w, s->keys.name[KEY_SCHEDULE], s->keys.len[KEY_SCHEDULE]);
	words_add(&w, s->cfg->name);
	words_fmt(&w, "%lld", (long long)tick);
	words_fmt(&w, "%lld", (long long)tick_period(s->cfg, tick));
	words_fmt(&w, "%lld", (long long)tick_grace(s->cfg, tick, s->fresh));
	words_add(&w, config_push_command(s->queue));
	words_add(&w, message);
	request_script(&s->request, schedule_conn(s), script_find("schedule"), &w);
	free(message);
}

/* The timer: asks for the due tick. */
static void
schedule_look(void *arg)
{
	struct schedule *s = arg;
	double now = redis_time(s);
	int64_t tick = due_tick(s, now);

	if (request_is_sent(&s->request) || s->all->stopped || !conn_is_ready(schedule_conn(s)))
		return;
	if (tick == TICK_NEVER)
		schedule_arm(s);
	else
		schedule_ask(s, tick);
}

/* -- all of them ------------------------------------------------------------------- */

static void
schedule_start(struct schedule *s)
{
	timer_set(&s->timer, (usec_t)(random_unit() * (double)SPREAD_MAX));
}

static void
remove_all(struct schedules *all)
{
	for (size_t i = 0; i < all->n; i++) {
		struct schedule *s = all->at[i];

		request_cancel(&s->request);
		timer_stop(&s->timer);
		keys_done(&s->keys);
		config_unref(s->config);
		free(s->cause);
		free(s);
	}
	free(all->at);
	all->at = NULL;
	all->n = 0;
}

/*
 * Redis knows which ticks have run, so this carries over only the counts of this daemon, and
 * that it was there: Redis may be away, and the next tick fall due meanwhile.
 */
void
schedules_reconfigure(struct schedules *all, struct config *config)
{
	struct schedule **new = xcalloc(config->nschedules + 1, sizeof(struct schedule *));

	for (size_t i = 0; i < config->nschedules; i++) {
		const struct schedule_config *cfg = config->schedules[i];
		struct schedule *s = NEW(struct schedule, .all = all, .config = config_ref(config),
		    .cfg = cfg, .queue = config_queue(config, cfg->queue), .done = TICK_NEVER,
		    .fresh = true, .status = { .cfg = cfg, .last = TICK_NEVER,
		    .next = TICK_NEVER, .missed = -1 });

		keys_init(&s->keys, shard_keys_schedule(s->queue));
		timer_init(&s->timer, all->env->loop, schedule_look, s);
		request_init(&s->request, schedule_answered, s);
		for (size_t k = 0; k < all->n; k++) {
			const struct schedule *old = all->at[k];

			if (strcmp(old->cfg->name, cfg->name) != 0)
				continue;
			s->status.runs = old->status.runs;
			s->fresh = old->fresh || old->cfg->every != cfg->every ||
			    strcmp(old->cfg->cron, cfg->cron) != 0;
		}
		schedule_start(s);
		new[i] = s;
	}
	remove_all(all);
	all->at = new;
	all->n = config->nschedules;
}

size_t
schedules_count(const struct schedules *all)
{
	return all->n;
}

struct schedule_state
schedules_get(const struct schedules *all, size_t i)
{
	return all->at[i]->status;
}

struct schedules *
schedules_new(const struct queue_env *env, struct config *config)
{
	struct schedules *all = NEW(struct schedules, .env = env);

	schedules_reconfigure(all, config);
	return all;
}

void
schedules_free(struct schedules *all)
{
	if (all == NULL)
		return;
	remove_all(all);
	free(all);
}

void
schedules_stop(struct schedules *all)
{
	all->stopped = true;
	for (size_t i = 0; i < all->n; i++)
		timer_stop(&all->at[i]->timer);
}

void
schedules_conn_up(struct schedules *all)
{
	for (size_t i = 0; i < all->n && !all->stopped; i++)
		schedule_start(all->at[i]);
}

void
schedules_conn_down(struct schedules *all)
{
	for (size_t i = 0; i < all->n; i++)
		timer_stop(&all->at[i]->timer);
}
