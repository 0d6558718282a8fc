/*
 * The log of the connection; see redis_log.h.
 *
 * Every change is a record while there are few: RECORDS_MAX at once, and one more each
 * RECORD_EVERY.  Further changes are only counted, until nothing has changed for
 * SETTLED.  Then redis_up or redis_down has the state and the number of changes.
 * Meanwhile redis_warning reports them each SUMMARY_EVERY.
 */
#include "service/redis_log.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "redis/reply.h"

#define RECORDS_MAX	30
#define RECORD_EVERY	(15 * SEC)
#define SETTLED		(15 * SEC)
#define SUMMARY_EVERY	(10 * MINUTE)

static bool
redis_log_may(struct redis_log *l)
{
	usec_t now = clock_mono();

	l->tokens += (double)(now - l->filled_at) / (double)RECORD_EVERY;
	if (l->tokens > RECORDS_MAX)
		l->tokens = RECORDS_MAX;
	l->filled_at = now;
	if (l->tokens < 1)
		return false;
	l->tokens -= 1;
	return true;
}

/* The state as it is; the timer `settled`: nothing has changed, and some changes are not logged. */
static void
redis_log_write(void *arg)
{
	struct redis_log *l = arg;
	const struct conn_server *s = l->server;
	char changes[16];

	snprintf(changes, sizeof(changes), "%u", l->unlogged);
	if (l->up)
		log_event(LOG_LV_INFO, "redis_up", NULL, LF_STR("server", s->address),
		    LF_STR("version", s->version[0] != '\0' ? s->version : NULL),
		    LF_STR("appendonly", s->no_aof ? "no" : NULL),
		    LF_STR("changed", s->changed && !s->first ? "yes" : NULL),
		    LF_STR("changes", l->unlogged > 0 ? changes : NULL));
	else
		log_event(LOG_LV_ERROR, "redis_down", NULL, LF_STR("error", l->cause),
		    LF_STR("hint", reply_hint(l->cause)),
		    LF_STR("changes", l->unlogged > 0 ? changes : NULL));
	l->unlogged = 0;
	timer_stop(&l->settled);
	timer_stop(&l->summary);
}

static void
redis_log_summary(void *arg)
{
	struct redis_log *l = arg;

	log_event(LOG_LV_WARN, "redis_warning", NULL,
	    LF_STR("warning", "the connection to Redis ends again and again"),
	    LF_STR("state", l->up ? "up" : "down"), LF_INT("changes", l->unlogged),
	    LF_STR("error", l->cause));
	l->unlogged = 0;
	timer_set(&l->summary, SUMMARY_EVERY);
}

static void
redis_log_change(struct redis_log *l)
{
	/*
	 * After an unlogged change wait until the state settles: a single record of it
	 * would confuse.
	 */
	if (!timer_is_set(&l->settled) && redis_log_may(l)) {
		redis_log_write(l);
		return;
	}
	l->unlogged++;
	timer_set(&l->settled, SETTLED);
	if (!timer_is_set(&l->summary))
		timer_set(&l->summary, SUMMARY_EVERY);
}

void
redis_log_up(struct redis_log *l, const struct conn_server *server)
{
	l->up = true;
	l->server = server;
	redis_log_change(l);
}

void
redis_log_down(struct redis_log *l, const char *cause)
{
	l->up = false;
	xreplace(&l->cause, cause);
	redis_log_change(l);
}

void
redis_log_init(struct redis_log *l, struct loop *loop)
{
	*l = (struct redis_log){ .tokens = RECORDS_MAX, .filled_at = clock_mono() };
	timer_init(&l->settled, loop, redis_log_write, l);
	timer_init(&l->summary, loop, redis_log_summary, l);
}

void
redis_log_done(struct redis_log *l)
{
	timer_stop(&l->settled);
	timer_stop(&l->summary);
	xreplace(&l->cause, NULL);
}

void
redis_log_server(const struct conn_server *server)
{
	const char *policy = server->maxmemory_policy;

	if (policy[0] != '\0' && strcmp(policy, "noeviction") != 0)
		log_event(LOG_LV_WARN, "redis_warning", NULL,
		    LF_STR("maxmemory_policy", policy),
		    LF_STR("warning", "keys may be evicted: messages can be lost; "
		    "set maxmemory-policy noeviction"));
}

void
redis_log_watch(bool on, const char *why, void *arg UNUSED)
{
	if (!on)
		log_event(LOG_LV_WARN, "redis_warning", NULL, LF_STR("error", why),
		    LF_STR("warning", "client tracking does not work: rqd polls instead"));
}

void
redis_log_sentinel(const char *why)
{
	log_event(LOG_LV_WARN, "redis_warning", NULL, LF_STR("error", why),
	    LF_STR("warning", "rqd notices a failover late: sentinel_username may not subscribe to "
	    "+switch-master"));
}
