/* rqctl dead list: lists dead letters. */
#include "rqctl/messages.h"

static void
dead_list_run(struct ctl *c)
{
	messages_list(c, PART_DEAD);
}

const struct verb verb_dead_list = {
	.name = "dead list",
	.args = "[QUEUE]",
	.help = "list dead letters, newest first",
	.more = "Without QUEUE, those of all queues.",
	.options = OPTS_LETTERS | OPTS_LIST | OPT(SUMMARY),
	.max_args = 1,
	.flags = VERB_JSON | VERB_KEEPING,
	.run = dead_list_run,
	.rows = 50,
};
