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
		.cut = WAITING_CUT, .most = l->most - l->rows
	};
	struct waiting m;
	double now = -1;

	if (raw || l->array != NULL)
		v.cut = -1;
	while (visit_next(&v, &m)) {
		if (ids)
			now = v.now;
		if (!raw) {
			messages_list_waiting(l, &m, now, false, NULL, true);
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
	const char *columns = ">PLACE=place|ID=id|>BYTES=length|"
	    "MESSAGE=message";
	const char *is = "waits";
	enum key key = KEY_QUEUE;
	struct listing l;
	struct depth d;
	int64_t total = 0;
	int rc;

	if (held) {
		is = "is held";
		key = KEY_HELD;
	}
	if (c->target.source == SOURCE_IDS)
		columns = ">PLACE=place|ID=id|DUE=.due|>BYTES=length|"
		    "MESSAGE=message";
	if (raw)
		c->args.value[OPT_JSON] = NULL;
	rc = listing_init(&l, c, columns);
	if (raw)
		l.most = 1;
	EACH_KEY(i, &c->target)
		if (rc == 0 && !listing_is_full(&l))
			rc = peek_key(&l, key, raw);
	if (raw && l.rows == 0 && c->status == 0)
		ctl_error(c, EX_NOTHING, "no message %s in %s", is, c->target.name);
	if (c->status == 0 && listing_is_full(&l) && l.array == NULL && !raw &&
	    snapshot_depths(c, &c->target, 1, &d) == 0) {
		if (d.problem == NULL && held)
			total = d.held;
		else if (d.problem == NULL)
			total = d.waiting;
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
