/* rqctl delayed now: makes delayed messages due. */
#include "rqctl/messages.h"

static const struct action action = {
	.part = PART_DELAYED, .step = messages_make_due, .what = "message",
	.word = "made due", .member = "made_due"
};

const struct verb verb_delayed_now = {
	.name = "delayed now",
	.args = "QUEUE [ID...]",
	.help = "make delayed messages due now",
	.more = "Select them by ID, with --match, or with --all.",
	.options = OPT(ALL) | OPT(MATCH) | OPT(DRY_RUN),
	.min_args = 1,
	.max_args = -1,
	.flags = VERB_JSON | VERB_KEEPING | VERB_SELECTS,
	.run = messages_change,
	.action = &action,
};
