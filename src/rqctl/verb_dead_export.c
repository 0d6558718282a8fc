/* rqctl dead export: writes dead letters as JSON. */
#include "rqctl/messages.h"

/* On a terminal the letters themselves appear: no progress. */
static void
dead_export_run(struct ctl *c)
{
	messages_write(c, true, out_width() > 0);
}

const struct verb verb_dead_export = {
	.name = "dead export",
	.args = "QUEUE [ID...]",
	.help = "write dead letters as JSON, one per line",
	.more = "Without ID and filters, it writes all of them. A message that "
	    "is not UTF-8 is written in base64, as message_base64.",
	.options = OPTS_LETTERS | OPT(ALL) | OPT(RATE),
	.min_args = 1,
	.max_args = -1,
	.flags = VERB_KEEPING,
	.run = dead_export_run,
};
