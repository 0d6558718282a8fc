/*
 * One HGET, and arithmetic.
 */
#include "rqctl/ticks.h"

#include <stdlib.h>

#include "policy/zone.h"
#include "redis/reply.h"
#include "rqctl/ask.h"

static void
compute(struct ticks *t, const struct schedule_config *s, double now)
{
	/* What was due a moment ago is not missed yet. */
	int64_t due = tick_last(s, (int64_t)now - TICK_GRACE_MIN);

	t->next = tick_next(s, (int64_t)now);
	t->missed = t->last != TICK_NEVER && due > t->last ? due : TICK_NEVER;
}

int
ticks_ask(struct ctl *c, const struct schedule_config *s, double now, struct ticks *t)
{
	struct redisReply *reply = NULL;
	struct target target;

	*t = (struct ticks){ .last = TICK_NEVER };
	if (ctl_target(c, s->queue, &target) == -1)
		return -1;
	if (ask_append(c, "HGET", target.keys.name[KEY_SCHEDULE], s->name, NULL) == 0)
		reply = ask_next(c);
	ctl_target_done(&target);
	if (reply == NULL)
		return -1;
	if (reply_error(reply) != REPLY_OK)
		t->error = xstrdup(reply_text(reply));
	else if (reply_double(reply, -1) >= 0)
		t->last = (int64_t)reply_double(reply, 0);
	client_reply_free(reply);
	if (t->error == NULL && zone_check(s->timezone, &t->error) == -1)
		t->last = TICK_NEVER;
	compute(t, s, now);
	return 0;
}

void
ticks_done(struct ticks *t)
{
	free(t->error);
}
