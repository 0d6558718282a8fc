/* rqctl peek: the messages that come next. */
#include <stdio.h>

#include "rqctl/messages.h"
#include "rqctl/picture.h"

/* The next messages of a key, as rows or byte for byte.  Returns 0, or -1 after an error. */
static int
peek_page(struct listing *l, struct waiting_place *at, bool raw)
{
	const struct target *t = &l->ctl->target;
	struct redisReply *page = waiting_page(l->ctl, t, at, listing_room(l, WAITING_PAGE),
	    raw || l->array != NULL ? -1 : WAITING_CUT);
	struct waiting m;

	for (size_t i = 0; i < waiting_len(page); i++) {
		waiting_get(page, i, &m);
		if (!raw) {
			messages_list_waiting(l, &m,
			    t->source == SOURCE_IDS ? waiting_now(page) : -1, false, true);
			continue;
		}
		l->rows++;
		fwrite(m.data, 1, m.len, stdout);
	}
	reply_free(page);
	return page != NULL ? 0 : -1;
}

static void
peek_run(struct ctl *c)
{
	bool raw = ctl_given(c, OPT_RAW), held = ctl_given(c, OPT_HELD);
	const char *is = held ? "is held" : "waits";
	struct listing l;
	struct depth d;
	int64_t total = 0;
	int rc;

	if (raw)
		c->args.value[OPT_JSON] = NULL;
	rc = listing_init(&l, c, c->target.source == SOURCE_IDS ?
	    ">PLACE=place|ID=id|DUE=.due|>BYTES=length|MESSAGE=message" :
	    ">PLACE=place|ID=id|>BYTES=length|MESSAGE=message");
	if (raw)
		l.most = 1;
	EACH_KEY(i, &c->target) {
		struct waiting_place at = { .key = held ? KEY_HELD : KEY_QUEUE };

		while (rc == 0 && !at.end && !listing_is_full(&l))
			rc = peek_page(&l, &at, raw);
	}
	if (raw && l.rows == 0 && c->status == 0)
		ctl_error(c, EX_NOTHING, "no message %s in %s", is, c->target.name);
	if (c->status == 0 && listing_is_full(&l) && l.array == NULL && !raw &&
	    picture_depths(c, &c->target, 1, &d) == 0) {
		total = d.problem != NULL ? 0 : held ? d.held : d.waiting;
		depth_done(&d);
	}
	listing_end(&l, total, "messages", "no message %s in %s", is, c->target.name);
}

const struct verb verb_peek = {
	.name = "peek",
	.args = "QUEUE",
	.help = "show the messages that come next",
	.more = "With --raw: only the next message, byte for byte.",
	.options = OPTS_LIST | OPT(RAW) | OPT(HELD),
	.min_args = 1,
	.max_args = 1,
	.flags = VERB_JSON | VERB_LISTS | VERB_ORDER,
	.run = peek_run,
	.rows = 10,
};
