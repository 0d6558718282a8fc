/*
 * Pages come from peek.lua, bounded by count and bytes.  The next one begins at the
 * score of the last member, behind those that have been seen of this score: daemons
 * take members from the front meanwhile, and a mere offset would pass over others.
 */
#include "rqctl/later.h"

#include <stdio.h>
#include <string.h>

#include "policy/message.h"
#include "redis/reply.h"

#define PAGE	500

int
later_init(struct ctl *c, struct later *l, const struct target *t, enum key key, bool must)
{
	*l = (struct later){
		.ctl = c, .target = t,
		.key = key == KEY_DELAYED && kind_source(t->kind) == SOURCE_IDS ? KEY_QUEUE : key,
		.ids = c->args.words + 1, .nids = c->args.nwords - 1,
		.match = ctl_given(c, OPT_MATCH) ? ctl_value(c, OPT_MATCH) : ""
	};
	if (ctl_given(c, OPT_ALL) && !ctl_is_list(c) && (l->nids > 0 || l->match[0] != '\0'))
		return ctl_error(c, EX_USAGE, "--all does not go together with ids or filters");
	if (must && l->nids == 0 && l->match[0] == '\0' && !ctl_given(c, OPT_ALL))
		return ctl_error(c, EX_USAGE, "select messages: by id, --match, or --all");
	return 0;
}

size_t
later_id(enum kind kind, const struct peeked *m, char *buf)
{
	size_t n = m->taglen;

	if (n == 0)
		return strlen(peek_id(kind, m, buf));
	if (m->delivery.ours && m->delivery.idlen < n)
		n = m->delivery.idlen;
	if (n > MESSAGE_ID_MAX)
		n = MESSAGE_ID_MAX;
	memcpy(buf, m->tag, n);
	buf[n] = '\0';
	return n;
}

static bool
has_id(const struct later *l, const struct peeked *m)
{
	char id[MESSAGE_ID_MAX + 1];
	int i;

	later_id(l->target->kind, m, id);
	for (i = 0; i < l->nids; i++)
		if ((id[0] != '\0' && strcmp(l->ids[i], id) == 0) ||
		    (m->taglen == strlen(l->ids[i]) && m->taglen > 0 &&
		    memcmp(m->tag, l->ids[i], m->taglen) == 0))
			return true;
	return l->nids == 0;
}

static bool
chosen(const struct later *l, const struct peeked *m)
{
	size_t n = strlen(l->match);

	if (l->undelivered && (m->delivery.attempts > 0 || m->delivery.crashes > 0 ||
	    m->delivery.owned || m->score <= l->now))
		return false;
	if (l->key == KEY_QUEUE && peek_due(m) <= l->now)
		return false;
	if (n > 0 && memmem(m->data, m->len, l->match, n) == NULL)
		return false;
	return has_id(l, m);
}

/* Where a walk has come to. */
struct place {
	char	 score[32];	/* of the last member; "": none yet */
	int64_t	 passed;	/* members of this score that were seen, and are still there */
	int64_t	 chosen;	/* of these, in this page */
};

static void
place_pass(struct place *p, double score)
{
	char text[sizeof(p->score)];

	snprintf(text, sizeof(text), "%.17g", score);
	if (strcmp(text, p->score) != 0)
		*p = (struct place){ .passed = 0 };
	strcpy(p->score, text);
	p->passed++;
}

/* So many of those that were chosen are here no longer; seeing one twice does no harm. */
static void
place_lose(struct place *p, int64_t gone)
{
	p->passed -= gone < p->chosen ? gone : p->chosen;
	p->chosen = 0;
}

/* One page; *stop: fn wants no more. */
static int
do_page(struct later *l, const struct redisReply *page, const struct later_walk *walk,
    struct place *place, bool *stop)
{
	struct words members = { 0 };
	int64_t gone = 0;
	struct peeked m;
	size_t i;

	l->now = reply_double(reply_at(page, 0), 0);
	for (i = 0; i < peek_len(page) && !*stop; i++) {
		peek_get(page, i, &m);
		place_pass(place, m.score);
		if (!chosen(l, &m))
			continue;
		l->matched++;
		place->chosen++;
		if (l->key == KEY_RETRY)
			words_mem(&members, m.tag, m.taglen);
		else
			words_mem(&members, m.data, m.len);
		*stop = (walk->fn != NULL && !walk->fn(l, &m, walk->arg)) ||
		    l->matched == l->most;
	}
	if (walk->step != NULL && members.n > 0)
		gone = walk->step(l, &members, walk->arg);
	words_done(&members);
	if (gone != -1)
		place_lose(place, gone);
	return gone == -1 ? -1 : 0;
}

int
later_each(struct later *l, const struct later_walk *walk)
{
	struct place place = { .passed = 0 };
	struct redisReply *page;
	bool stop = false;
	size_t n = 1;
	long cut = walk->cut;
	int rc;

	/* A member of QDELAYED is the message, an id too; and --match needs all of it. */
	if ((walk->step != NULL && l->key != KEY_RETRY) || l->match[0] != '\0')
		cut = -1;
	while (n > 0 && !stop && !ctl_interrupted()) {
		page = peek_page(l->ctl, l->target, l->key, place.score, place.passed, PAGE,
		    cut);
		if (page == NULL)
			return -1;
		n = peek_len(page);
		rc = do_page(l, page, walk, &place, &stop);
		client_reply_free(page);
		if (rc == -1)
			return -1;
	}
	if (!ctl_interrupted())
		return 0;
	if (l->ctl->status == 0)
		l->ctl->status = EX_INTERRUPTED;
	return -1;
}
