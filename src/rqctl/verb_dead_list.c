/* rqctl dead list: lists dead letters. */
#include "rqctl/messages.h"

static const struct action action = { .part = PART_DEAD };

const struct verb verb_dead_list = {
	.name = "dead list",
	.args = "[QUEUE]",
	.help = "list dead letters, newest first",
	.more = "Without QUEUE, those of all queues.",
	.options = OPTS_LETTERS | OPTS_LIST | OPT(SUMMARY),
	.max_args = 1,
	.flags = VERB_JSON | VERB_KEEPING,
	.run = messages_list,
	.action = &action,
	.rows = 50,
};
