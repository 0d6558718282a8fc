/* rqctl delayed list: lists delayed messages. */
#include "rqctl/messages.h"

static const struct action action = { .part = PART_DELAYED };

const struct verb verb_delayed_list = {
	.name = "delayed list",
	.args = "QUEUE",
	.help = "list messages that a producer delayed",
	.more = "They come from push --delay and --at, or from a producer's "
	    "own ZADD.",
	.options = OPTS_LIST | OPT(MATCH),
	.min_args = 1,
	.max_args = 1,
	.flags = VERB_JSON | VERB_KEEPING,
	.run = messages_list,
	.action = &action,
	.rows = 50,
};
