/* rqctl dead drop: deletes dead letters. */
#include "rqctl/messages.h"

static int
drop_letters(struct walk *w, const struct words *members, int i, int n, int64_t *gone)
{
	struct words words = ask_format("XDEL %s", w->ctl->target.keys.name[KEY_DEAD]);

	messages_add(&words, members, i, n);
	*gone = ask_number(ask_words(w->ctl, &words));
	if (*gone == -1)
		return -1;
	return n;
}

static const struct action action = {
	.part = PART_DEAD, .step = drop_letters, .ask = "drop",
	.what = "dead letter", .word = "dropped", .removes = true
};

const struct verb verb_dead_drop = {
	.name = "dead drop",
	.args = "QUEUE [ID...]",
	.help = "delete dead letters",
	.more = "Select them by ID, by filters, or with --all.",
	.options = OPTS_LETTERS | OPT(ALL) | OPT(RATE),
	.min_args = 1,
	.max_args = -1,
	.flags = VERB_JSON | VERB_ASKS | VERB_KEEPING | VERB_SELECTS,
	.run = messages_change,
	.action = &action,
};
