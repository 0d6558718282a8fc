/*
 * One HMGET, and arithmetic.
 */
#include "rqctl/ticks.h"

#include <stdlib.h>

#include "policy/zone.h"
#include "redis/reply.h"
#include "rqctl/ask.h"

/* known: the tick in QSCHEDULE, of the last run or of when a daemon first saw it. */
static void
compute(struct ticks *t, const struct schedule_config *s, int64_t known, double now)
{
	/* What was due a moment ago is not missed yet. */
	int64_t due = tick_last(s, (int64_t)now - TICK_GRACE_MIN);

	t->next = tick_next(s, (int64_t)now);
	t->missed = known != TICK_NEVER && due > known ? due : TICK_NEVER;
}

/* Reads the reply to HMGET QSCHEDULE name \1name; returns the tick. */
static int64_t
take_reply(struct ticks *t, const struct redisReply *reply)
{
	double known = reply_double(reply_at(reply, 0), -1);

	if (reply_error(reply) != REPLY_OK)
		t->error = xstrdup(reply_text(reply));
	if (t->error != NULL || known < 0)
		return TICK_NEVER;
	t->seen = true;
	if (reply_str(reply_at(reply, 1), NULL) == NULL)
		t->last = (int64_t)known;
	return (int64_t)known;
}

int
ticks_ask(struct ctl *c, const struct schedule_config *s, double now, struct ticks *t)
{
	struct redisReply *reply = NULL;
	struct target target;
	char *mark = xasprintf("\1%s", s->name);
	int64_t known;

	*t = (struct ticks){ .last = TICK_NEVER };
	if (ctl_target(c, s->queue, &target) == -1) {
		free(mark);
		return -1;
	}
	if (ask_append(c, "HMGET", target.keys.name[KEY_SCHEDULE], s->name, mark, NULL) == 0)
		reply = ask_next(c);
	free(mark);
	ctl_target_done(&target);
	if (reply == NULL)
		return -1;
	known = take_reply(t, reply);
	client_reply_free(reply);
	if (t->error == NULL && zone_check(s->timezone, &t->error) == -1)
		known = t->last = TICK_NEVER;
	compute(t, s, known, now);
	return 0;
}

void
ticks_done(struct ticks *t)
{
	free(t->error);
}
