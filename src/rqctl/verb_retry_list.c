/* rqctl retry list: lists retries. */
#include "rqctl/messages.h"

static const struct action action = { .part = PART_RETRY };

const struct verb verb_retry_list = {
	.name = "retry list",
	.args = "QUEUE",
	.help = "list retries, the next one first",
	.options = OPTS_LIST | OPT(MATCH),
	.min_args = 1,
	.max_args = 1,
	.flags = VERB_JSON | VERB_KEEPING,
	.run = messages_list,
	.action = &action,
	.rows = 50,
};
