/* rqctl dead show: prints dead letters in full. */
#include "rqctl/messages.h"

static void
dead_show_run(struct ctl *c)
{
	messages_write(c, ctl_given(c, OPT_JSON), true);
}

const struct verb verb_dead_show = {
	.name = "dead show",
	.args = "QUEUE ID...",
	.help = "show dead letters with message and error in full",
	.more = "ID is a message's id or a dead letter's number. With --raw: "
	    "only the messages.",
	.options = OPT(RAW),
	.min_args = 2,
	.max_args = -1,
	.flags = VERB_JSON | VERB_KEEPING | VERB_LINES,
	.run = dead_show_run,
};
