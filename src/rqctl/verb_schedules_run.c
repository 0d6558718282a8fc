/* rqctl schedules run: pushes the message of a schedule. */
#include <stdlib.h>

#include "policy/tick.h"
#include "rqctl/ctl.h"

/* Pushes the message that a run now would push, without a change of QSCHEDULE. */
static void
schedules_push(struct ctl *c)
{
	const struct schedule_config *s;
	char *message;

	if (schedules_check(c) == -1)
		return;
	s = schedules_find(c, c->args.words[0]);
	if (target_find(c, s->queue, VERB_PUSHES, &c->target) == -1)
		return;
	message = tick_message(s, (int64_t)(clock_wall() / SEC), c->target.source == SOURCE_IDS);
	push_text(c, message);
	free(message);
}

const struct verb verb_schedules_run = {
	.name = "schedules run",
	.args = "SCHEDULE",
	.help = "push the message of a schedule now",
	.more = "The next run of the schedule is unchanged.",
	.min_args = 1,
	.max_args = 1,
	.flags = VERB_JSON,
	.run = schedules_push,
};
