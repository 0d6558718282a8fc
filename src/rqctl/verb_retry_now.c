/* rqctl retry now: makes retries due. */
#include "rqctl/messages.h"

static const struct action action = {
	.part = PART_RETRY, .step = messages_make_due,
	.what = "failed or deferred message", .word = "made due",
	.thing = "message", .member = "made_due"
};

const struct verb verb_retry_now = {
	.name = "retry now",
	.args = "QUEUE [ID...]",
	.help = "make retries due now",
	.more = "They have failed or were deferred. Select them by ID, with "
	    "--match, or with --all.",
	.options = OPT(ALL) | OPT(MATCH) | OPT(DRY_RUN),
	.min_args = 1,
	.max_args = -1,
	.flags = VERB_JSON | VERB_KEEPING | VERB_SELECTS,
	.run = messages_change,
	.action = &action,
};
