/* rqctl delayed now: makes delayed messages due. */
#include "rqctl/messages.h"

static void
delayed_now_run(struct ctl *c)
{
	static const struct action action = {
		.part = PART_DELAYED, .step = messages_make_due, .what = "message",
		.word = "made due", .member = "made_due"
	};

	messages_change(c, &action);
}

const struct verb verb_delayed_now = {
	.name = "delayed now",
	.args = "QUEUE [ID...]",
	.help = "make delayed messages due now",
	.more = "Select them by ID, with --match, or with --all.",
	.options = OPT(ALL) | OPT(MATCH) | OPT(DRY_RUN),
	.min_args = 1,
	.max_args = -1,
	.flags = VERB_JSON | VERB_KEEPING | VERB_SELECTS,
	.run = delayed_now_run,
};
