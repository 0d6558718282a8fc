/*
 * rqctl peek: the waiting messages that come next.
 */
#include <limits.h>
#include <stdio.h>

#include "policy/message.h"
#include "rqctl/listing.h"
#include "rqctl/picture.h"
#include "rqctl/waiting.h"

/* When an id of kind "unique" is due. */
static void
add_due(struct table *t, double now, const struct waiting *m)
{
	double due = waiting_due(m);
	char text[WAITING_DUE_MAX];

	if (due <= now && due != m->score && m->score < 1e11)
		table_add(t, "after its run");
	else
		table_add(t, "%s", waiting_due_text(due, now, text));
}

/* now: -1 for kinds whose messages have no time. */
static void
add(struct listing *l, double now, const struct waiting *m, const char *id)
{
	json_t *o = listing_row(l);
	struct table *t = &l->table;

	if (o != NULL) {
		out_set(o, "place:i id:s", l->rows, id[0] != '\0' ? id : NULL);
		if (now >= 0)
			out_set(o, "due:f", waiting_due(m));
		out_set(o, "length:i message:b", m->size, m->data, m->len);
		return;
	}
	table_number(t, l->rows);
	table_add(t, "%s", id[0] != '\0' ? id : "-");
	if (now >= 0)
		add_due(t, now, m);
	table_number(t, m->size);
	table_bytes(t, m->data, m->len < WAITING_SHOWN ? m->len : WAITING_SHOWN);
}

/* How many messages wait; 0 where the list is not cut, or after an error. */
static int64_t
count_waiting(const struct listing *l)
{
	struct depth d;
	int64_t n;

	if (l->ctl->status != 0 || !listing_is_full(l) || l->array != NULL ||
	    picture_depths(l->ctl, &l->ctl->target, 1, &d) == -1)
		return 0;
	n = d.problem == NULL ? d.waiting : 0;
	depth_done(&d);
	return n;
}

/* One page; returns how many messages it had. */
static size_t
add_page(struct listing *l, char *last)
{
	const struct target *t = &l->ctl->target;
	long room = listing_room(l, LONG_MAX), cut = l->array != NULL ? -1 : WAITING_CUT;
	struct redisReply *page = t->source == SOURCE_STREAM ?
	    waiting_entries(l->ctl, t, last, room, cut) :
	    waiting_page(l->ctl, t, KEY_QUEUE, "", l->rows, room, cut);
	size_t n = waiting_len(page), i;
	struct waiting m;

	for (i = 0; i < n; i++) {
		waiting_get(page, i, &m);
		add(l, t->source == SOURCE_IDS ? waiting_now(page) : -1, &m,
		    waiting_id(t->kind, &m, last));
	}
	blocking_reply_free(page);
	return n;
}

static void
list(struct ctl *c)
{
	bool times = c->target.source == SOURCE_IDS;
	char last[MESSAGE_ID_MAX + 1] = "";
	struct listing l;
	int rc;

	rc = listing_init(&l, c,
	    times ? ">PLACE|ID|DUE|>BYTES|MESSAGE" : ">PLACE|ID|>BYTES|MESSAGE");
	while (rc == 0 && !listing_is_full(&l) && add_page(&l, last) > 0)
		continue;
	listing_end(&l, count_waiting(&l), "messages", "no message waits in %s", c->target.name);
}

static void
write_raw(struct ctl *c)
{
	const struct target *t = &c->target;
	struct redisReply *page = t->source == SOURCE_STREAM ? waiting_entries(c, t, "", 1, -1) :
	    waiting_page(c, t, KEY_QUEUE, "", 0, 1, -1);
	struct waiting m;

	if (waiting_len(page) > 0) {
		waiting_get(page, 0, &m);
		fwrite(m.data, 1, m.len, stdout);
	} else if (page != NULL)
		ctl_error(c, EX_NOTHING, "no message waits in %s", t->name);
	blocking_reply_free(page);
}

void
peek_run(struct ctl *c)
{
	if (ctl_given(c, OPT_RAW))
		write_raw(c);
	else
		list(c);
}
