/*
 * Watching slots; see slot_watch.h.  slot_set_state() alone changes the state of one:
 *
 *	          sent            confirmed          it leaves the node
 *	WAITING --------> ASKED ------------> HELD ---------------------> LEFT
 *	   ^               | '-------------------- MOVED ------------------^ |
 *	   |               '--- refused: REFUSED                             |
 *	   '-------------------------'---- a new connection, or a probe -----'
 *
 * After a refusal that will not pass, `off`, the others stay WAITING until the next connection.
 * A SUNSUBSCRIBE is sent for a slot that was removed before: its answer finds no slot here.
 */
#include "redis/slot_watch.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"

#define CHAINS		256
#define ASKED_MAX	64	/* SSUBSCRIBEs in flight, of perhaps thousands */

TAILQ_HEAD(slot_list, watched_slot);

struct slot_watch {
	struct conn	*conn;
	const struct slot_watch_events *events;
	void		*arg;
	struct slot_list chains[CHAINS];	/* all, by their numbers */
	struct slot_list waiting;		/* WAITING */
	unsigned	 asked, left;		/* how many are ASKED, and LEFT */
	bool		 off;			/* refused, on this connection */
};

static void
slot_set_state(struct watched_slot *s, enum slot_state state)
{
	struct slot_watch *w = s->watch;

	if (s->state == SLOT_WAITING)
		TAILQ_REMOVE(&w->waiting, s, waiting);
	if (state == SLOT_WAITING)
		TAILQ_INSERT_TAIL(&w->waiting, s, waiting);
	w->asked += (unsigned)(state == SLOT_ASKED) - (unsigned)(s->state == SLOT_ASKED);
	w->left += (unsigned)(state == SLOT_LEFT) - (unsigned)(s->state == SLOT_LEFT);
	s->state = state;
}

/* -- questions and answers ------------------------------------------------------ */

static void
slot_watch_send(struct slot_watch *w)
{
	struct watched_slot *s;

	while (!w->off && conn_is_ready(w->conn) && w->asked < ASKED_MAX &&
	    (s = TAILQ_FIRST(&w->waiting)) != NULL) {
		slot_set_state(s, SLOT_ASKED);
		request_sent(&s->request, conn_subscribe_slot(w->conn, true, s->channel,
		    request_answered, &s->request));
	}
}

/* CLUSTERDOWN and what passes by itself is asked again by a probe. */
static void
slot_refused(struct watched_slot *s, const struct redisReply *r)
{
	struct slot_watch *w = s->watch;
	enum reply_error e = reply_error(r);
	bool moved = strncmp(reply_text(r), "MOVED ", 6) == 0;

	slot_set_state(s, moved ? SLOT_LEFT : SLOT_REFUSED);
	if (moved) {
		w->events->left(w->arg);
	} else if (e == REPLY_DENIED || e == REPLY_OTHER) {
		w->off = true;
		w->events->refused(reply_text(r), e == REPLY_DENIED, w->arg);
	}
}

static void
slot_answered(enum conn_answer answer, const struct redisReply *r, void *arg)
{
	struct watched_slot *s = arg;
	struct slot_watch *w = s->watch;

	if (answer != CONN_REPLY) {
		slot_set_state(s, SLOT_WAITING);
		return;		/* until the next connection */
	}
	if (reply_error(r) == REPLY_OK)
		slot_set_state(s, SLOT_HELD);
	else
		slot_refused(s, r);
	slot_watch_send(w);
}

static struct slot_list *
slot_watch_chain(struct slot_watch *w, unsigned slot)
{
	return &w->chains[slot % CHAINS];
}

/* Redis has ended a subscription. */
static void
slot_watch_ended(unsigned slot, void *arg)
{
	struct slot_watch *w = arg;
	struct watched_slot *s;

	TAILQ_FOREACH(s, slot_watch_chain(w, slot), entry) {
		if (s->slot == slot && s->state == SLOT_HELD)
			break;
	}
	if (s == NULL)
		return;
	slot_set_state(s, SLOT_LEFT);
	w->events->left(w->arg);
}

/* Those in one of two states are asked for. */
static void
slot_watch_again(struct slot_watch *w, bool all)
{
	struct watched_slot *s;

	for (size_t i = 0; i < CHAINS; i++) {
		TAILQ_FOREACH(s, &w->chains[i], entry) {
			if (s->state == SLOT_LEFT || s->state == SLOT_REFUSED ||
			    (all && s->state == SLOT_HELD))
				slot_set_state(s, SLOT_WAITING);
		}
	}
	slot_watch_send(w);
}

void
slot_watch_up(struct slot_watch *w)
{
	if (w == NULL)
		return;
	w->off = false;
	slot_watch_again(w, true);
}

void
slot_watch_probe(struct slot_watch *w)
{
	if (w != NULL && !w->off)
		slot_watch_again(w, false);
}

bool
slot_watch_is_behind(const struct slot_watch *w)
{
	return w != NULL && w->left > 0;
}

/* -- slots ------------------------------------------------------------------------ */

void
slot_watch_add(struct slot_watch *w, struct watched_slot *s)
{
	if (w == NULL || (s->watch == w && s->state != SLOT_LEFT))
		return;
	if (s->watch != w) {
		slot_watch_remove(s, false);
		request_init(&s->request, slot_answered, s);
		s->watch = w;
		TAILQ_INSERT_TAIL(slot_watch_chain(w, s->slot), s, entry);
	}
	slot_set_state(s, SLOT_WAITING);
	slot_watch_send(w);
}

void
slot_watch_remove(struct watched_slot *s, bool unsubscribe)
{
	struct slot_watch *w = s->watch;

	if (w == NULL)
		return;
	request_cancel(&s->request);
	if (unsubscribe && (s->state == SLOT_ASKED || s->state == SLOT_HELD))
		(void)conn_subscribe_slot(w->conn, false, s->channel, NULL, NULL);
	slot_set_state(s, SLOT_OUT);
	TAILQ_REMOVE(slot_watch_chain(w, s->slot), s, entry);
	s->watch = NULL;
}

/* -- life -------------------------------------------------------------------------- */

struct slot_watch *
slot_watch_new(struct conn *conn, const struct slot_watch_events *events, void *arg)
{
	struct slot_watch *w = NEW(struct slot_watch, .conn = conn, .events = events,
	    .arg = arg);

	TAILQ_INIT(&w->waiting);
	for (size_t i = 0; i < CHAINS; i++)
		TAILQ_INIT(&w->chains[i]);
	conn_set_slot_ended(conn, slot_watch_ended, w);
	return w;
}

void
slot_watch_free(struct slot_watch *w)
{
	struct watched_slot *s;

	if (w == NULL)
		return;
	for (size_t i = 0; i < CHAINS; i++) {
		while ((s = TAILQ_FIRST(&w->chains[i])) != NULL)
			slot_watch_remove(s, false);
	}
	conn_set_slot_ended(w->conn, NULL, NULL);
	free(w);
}
