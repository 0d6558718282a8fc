/* rqctl bury: makes dead letters of retries. */
#include "rqctl/messages.h"

static int
bury(struct walk *w, const struct words *members, int i, int n, int64_t *gone)
{
	return messages_end_retries(w, members, i, n, true, gone);
}

static const struct action action = {
	.part = PART_RETRY, .step = bury, .ask = "bury",
	.what = "failed or deferred message", .word = "buried",
	.thing = "message"
};

const struct verb verb_bury = {
	.name = "bury",
	.args = "QUEUE [ID...]",
	.help = "turn retries into dead letters",
	.more = "Select them by ID, with --match, or with --all, which asks "
	    "first.",
	.options = OPT(ALL) | OPT(MATCH) | OPT(BURY_WHY),
	.min_args = 1,
	.max_args = -1,
	.flags = VERB_JSON | VERB_KEEPING | VERB_ASKS_ALL |
	    VERB_SELECTS | VERB_BURIES,
	.run = messages_change,
	.action = &action,
};
