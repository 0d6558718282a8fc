/* rqctl delayed cancel: deletes delayed messages. */
#include "rqctl/messages.h"

static int
drop_delayed(struct walk *w, const struct words *members, int i, int n, int64_t *gone)
{
	struct words words;

	if (w->at.key == KEY_RETRY)
		return messages_end_retries(w, members, i, n, false, gone);
	words = ask_format("ZREM %s", w->ctl->target.keys.name[w->at.key]);
	messages_add(&words, members, i, n);
	*gone = ask_number(ask_words(w->ctl, &words));
	if (*gone == -1)
		return -1;
	return n;
}

static const struct action action = {
	.part = PART_DELAYED, .step = drop_delayed, .ask = "cancel",
	.what = "delayed message", .word = "cancelled",
	.thing = "message", .removes = true
};

const struct verb verb_delayed_cancel = {
	.name = "delayed cancel",
	.args = "QUEUE [ID...]",
	.help = "delete delayed messages",
	.more = "Select them by ID, with --match, or with --all.",
	.options = OPT(ALL) | OPT(MATCH),
	.min_args = 1,
	.max_args = -1,
	.flags = VERB_JSON | VERB_ASKS | VERB_KEEPING | VERB_SELECTS,
	.run = messages_change,
	.action = &action,
};
