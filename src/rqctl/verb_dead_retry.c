/* rqctl dead retry: puts dead letters back into their queue. */
#include "rqctl/messages.h"

/* Puts letters back into their queue. */
static int
retry_letters(struct walk *w, const struct words *members, int i, int n, int64_t *gone)
{
	enum { RETRY_DONE, RETRY_MOVED };	/* returned by dead_retry.lua */
	const char *dead = w->ctl->target.keys.name[KEY_DEAD];
	char *const *k = w->ctl->target.keys.name;
	bool ids = w->ctl->target.source == SOURCE_IDS;
	struct redisReply *reply;
	const char *script = "dead_retry";
	struct words words;
	int nkeys = 5, did = -1;

	if (ids) {
		script = "unique_dead_retry";
		nkeys = 6;
		words = ask_format("%s %s %s %s %s %s " MESSAGES_BYTES, k[KEY_QUEUE], dead,
		    k[KEY_BACKUP], k[KEY_CONTEXT], k[KEY_RETRY], k[KEY_DELIVERY]);
	} else {
		words = ask_format("%s %s %s %s %s " MESSAGES_BYTES, k[KEY_BACKUP],
		    k[KEY_CONTEXT], k[KEY_RETRY], k[KEY_DELIVERY], dead);
	}
	messages_add(&words, members, i, n);
	reply = ask_script_words(w->ctl, script, nkeys, &words);
	if (reply != NULL) {
		did = (int)reply_int_at(reply, RETRY_DONE);
		*gone = reply_int_at(reply, RETRY_MOVED);
	}
	reply_free(reply);
	return did;
}

static const struct action action = {
	.part = PART_DEAD, .step = retry_letters, .ask = "retry",
	.what = "dead letter", .word = "retried"
};

const struct verb verb_dead_retry = {
	.name = "dead retry",
	.args = "QUEUE [ID...]",
	.help = "put dead letters back into the queue",
	.more = "They are due at once and begin with attempt 1. Select them by "
	    "ID, by filters, or with --all, which asks first. If you "
	    "interrupt it, the rest stay dead letters.",
	.options = OPTS_LETTERS | OPT(ALL) | OPT(RATE),
	.min_args = 1,
	.max_args = -1,
	.flags = VERB_JSON | VERB_KEEPING | VERB_SELECTS |
	    VERB_ASKS_ALL,
	.run = messages_change,
	.action = &action,
};
