/* rqctl peek: the messages that come next. */
#include <stdio.h>

#include "rqctl/messages.h"
#include "rqctl/snapshot.h"

/* The next messages of a key, as rows or byte for byte.  Returns 0, or -1 after an error. */
static int
peek_key(struct listing *l, enum key key, bool raw)
{
	const struct target *t = &l->ctl->target;
	bool ids = t->source == SOURCE_IDS;
	struct visit v = {
		.ctl = l->ctl, .target = t, .at = { .key = key },
		.cut = raw || l->array != NULL ? -1 : WAITING_CUT,
		.most = l->most - l->rows
	};
	struct waiting m;

	while (visit_next(&v, &m)) {
		if (!raw) {
			messages_list_waiting(l, &m, ids ? v.now : -1, false, NULL,
			    true);
			continue;
		}
		l->rows++;
		fwrite(m.data, 1, m.len, stdout);
	}
	return visit_end(&v);
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
	EACH_KEY(i, &c->target)
		if (rc == 0 && !listing_is_full(&l))
			rc = peek_key(&l, held ? KEY_HELD : KEY_QUEUE, raw);
	if (raw && l.rows == 0 && c->status == 0)
		ctl_error(c, EX_NOTHING, "no message %s in %s", is, c->target.name);
	if (c->status == 0 && listing_is_full(&l) && l.array == NULL && !raw &&
	    snapshot_depths(c, &c->target, 1, &d) == 0) {
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
