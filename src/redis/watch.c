/*
 * Watching keys.  Keys that changed are put on a list, and their owners are called at
 * the end of the turn.  So an owner may add and remove keys from its callback, or free
 * the watch.
 *
 * Tracking belongs to the command connection and names the second one by its
 * CLIENT ID.  So it is set up whenever both are READY and one of them is new.
 */
#include "redis/watch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loop/timer.h"
#include "redis/reply.h"
#include "redis/slots.h"

#define CHANNEL		"__redis__:invalidate"
#define REPLY_MAX	((size_t)16 * 1024 * 1024)	/* names of keys */
#define CHAINS		1024		/* sized for 1000 queues with five keys each */

/* mode() reports tracking as off after this time while conn was READY. */
#define OFF_MAX	SEC

/*
 * A refused CLIENT TRACKING is sent again later: a server that runs a long script
 * refuses most commands.  After a missing permission only a new connection sends it
 * again.
 */
#define AGAIN_SOON	(10 * SEC)	/* BUSY, LOADING */
#define AGAIN_LATE	(10 * MINUTE)	/* anything else */

TAILQ_HEAD(watch_chain, watch_key);

enum watch_mode { WATCH_UNKNOWN, WATCH_ON, WATCH_OFF };

struct watch {
	struct loop	 *loop;
	struct conn	 *conn;		/* the command connection; borrowed */
	struct conn	 *sub;		/* the second one */
	void		(*mode)(bool, const char *, void *);
	void		 *arg;

	bool		  on;
	bool		  misdirected;	/* sub is closed, or to another server: reset it */
	struct request	  tracking;	/* CLIENT TRACKING */
	char		 *why;		/* why it is off */
	char		 *sub_cause;	/* why sub is down; NULL: READY, or not known yet */
	enum watch_mode  reported;	/* by mode() */
	struct timer	  off_timer;	/* set: it is off, and mode() has not reported it */
	usec_t		  again_at;	/* mono: after a refusal, when to try again; 0: none */

	struct watch_chain chains[CHAINS];	/* keys by the hash of their name */
	struct watch_chain due;
	struct defer	  turn;
	bool		  in_turn;
	bool		  freed;	/* in watch_turn(), which then frees it */
};

/* -- keys --------------------------------------------------------------------- */

static struct watch_chain *
watch_chain_of(struct watch *w, const char *key, size_t len)
{
	uint64_t h = 0xcbf29ce484222325;

	for (size_t i = 0; i < len; i++)
		h = (h ^ (unsigned char)key[i]) * 0x100000001b3;
	return &w->chains[(h ^ h >> 32) % CHAINS];
}

void
watch_add(struct watch *w, struct watch_key *k)
{
	k->slot_plus_1 = 0;
	k->is_due = false;
	TAILQ_INSERT_TAIL(watch_chain_of(w, k->key, k->len), k, entry);
}

void
watch_remove(struct watch *w, struct watch_key *k)
{
	TAILQ_REMOVE(watch_chain_of(w, k->key, k->len), k, entry);
	if (k->is_due)
		TAILQ_REMOVE(&w->due, k, due);
	k->is_due = false;
}

/* -- what changed ------------------------------------------------------------- */

static void
watch_destroy(struct watch *w)
{
	free(w->why);
	free(w->sub_cause);
	free(w);
}

static void
watch_turn(void *arg)
{
	struct watch *w = arg;
	struct watch_key *k;

	w->in_turn = true;
	while (!w->freed && (k = TAILQ_TAKE(&w->due, due)) != NULL) {
		k->is_due = false;
		k->changed(k->arg);
	}
	w->in_turn = false;
	if (w->freed)
		watch_destroy(w);
}

static void
watch_set_due(struct watch *w, struct watch_key *k)
{
	if (k->is_due)
		return;
	k->is_due = true;
	TAILQ_INSERT_TAIL(&w->due, k, due);
	loop_defer(w->loop, &w->turn, watch_turn, w);
}

static void
watch_set_all_due(struct watch *w)
{
	struct watch_key *k;

	for (size_t i = 0; i < CHAINS; i++) {
		TAILQ_FOREACH(k, &w->chains[i], entry)
			watch_set_due(w, k);
	}
}

/*
 * The slot of a key, computed once: when a master fails, watch_move() looks at each key
 * for each of its slots.
 */
static unsigned
watch_slot(struct watch_key *k)
{
	if (k->slot_plus_1 == 0)
		k->slot_plus_1 = slot_of(k->key, k->len) + 1;
	return k->slot_plus_1 - 1;
}

void
watch_move(struct watch *from, struct watch *to, unsigned slot)
{
	struct watch_key *k, *next;

	for (size_t i = 0; i < CHAINS; i++) {
		TAILQ_FOREACH_SAFE(k, &from->chains[i], entry, next) {
			if (watch_slot(k) != slot)
				continue;
			watch_remove(from, k);
			watch_add(to, k);
			k->slot_plus_1 = slot + 1;
			watch_set_due(to, k);
		}
	}
}

/* Marks all watches of the key: several owners may watch one. */
void
watch_note_change(struct watch *w, const char *key, size_t len)
{
	struct watch_key *k;

	TAILQ_FOREACH(k, watch_chain_of(w, key, len), entry) {
		if (k->len == len && memcmp(k->key, key, len) == 0)
			watch_set_due(w, k);
	}
}

/* An invalidation: an array of keys, or nil for all of them. */
static void
watch_message(const char *channel UNUSED, size_t len UNUSED, const struct redisReply *r,
    void *arg)
{
	struct watch *w = arg;
	const char *key;
	size_t key_len;

	if (!reply_is_array(r)) {
		watch_set_all_due(w);
		return;
	}
	for (size_t i = 0; i < reply_len(r); i++) {
		if ((key = reply_str(reply_at(r, i), &key_len)) != NULL)
			watch_note_change(w, key, key_len);
	}
}

/* -- tracking ----------------------------------------------------------------- */

/* mode() may free the watch: callers return at once. */
static void
watch_report(struct watch *w, bool on)
{
	enum watch_mode mode = on ? WATCH_ON : WATCH_OFF;

	if (w->reported == mode || w->mode == NULL)
		return;
	w->reported = mode;
	w->mode(on, on ? NULL : w->why, w->arg);
}

/* Tracking does not work now.  Keys that were armed count as changed. */
static void
watch_off(struct watch *w, const char *why)
{
	request_cancel(&w->tracking);
	xreplace(&w->why, why);
	if (w->on) {
		w->on = false;
		watch_set_all_due(w);
	}
	if (conn_is_ready(w->conn) && !timer_is_set(&w->off_timer))
		timer_set(&w->off_timer, OFF_MAX);
}

static void
watch_refused(struct watch *w, const char *why, enum reply_error e)
{
	watch_off(w, why);
	timer_stop(&w->off_timer);
	w->again_at = 0;
	if (e == REPLY_TRANSIENT)
		w->again_at = clock_mono() + AGAIN_SOON;
	else if (e != REPLY_DENIED)
		w->again_at = clock_mono() + AGAIN_LATE;
	watch_report(w, false);
}

/* The answer to CLIENT TRACKING. */
static void
watch_tracked(enum conn_answer answer, const struct redisReply *r, void *arg)
{
	struct watch *w = arg;

	if (answer != CONN_REPLY)
		return;
	if (strncmp(reply_text(r), "ERR The client ID", 17) == 0) {
		/* The server has closed sub, but this process has not seen that yet. */
		w->misdirected = true;
		watch_off(w, reply_text(r));
		return;
	}
	if (reply_error(r) != REPLY_OK) {
		watch_refused(w, reply_text(r), reply_error(r));
		return;
	}
	w->on = true;
	timer_stop(&w->off_timer);
	watch_set_all_due(w);
	watch_report(w, true);
}

/*
 * Compares their run ids, or without these their addresses.  A CLIENT ID of one server
 * has no meaning on another.
 */
static bool
is_one_server(const struct conn_server *a, const struct conn_server *b)
{
	if (a->run_id[0] != '\0' && b->run_id[0] != '\0')
		return strcmp(a->run_id, b->run_id) == 0;
	return strcmp(a->address, b->address) == 0;
}

/* Asks for tracking, if both connections are READY. */
static void
watch_set_up(struct watch *w)
{
	char id[24];

	w->misdirected = false;
	w->again_at = 0;
	watch_off(w, w->sub_cause != NULL ? w->sub_cause :
	    "the second connection is down");
	if (!conn_is_ready(w->conn) || !conn_is_ready(w->sub))
		return;
	if (!is_one_server(conn_server(w->conn), conn_server(w->sub))) {
		w->misdirected = true;
		watch_off(w, "the second connection reached another server");
		return;
	}
	if (conn_id(w->sub) == 0) {
		watch_refused(w, "the server does not answer CLIENT ID", REPLY_DENIED);
		return;
	}
	snprintf(id, sizeof(id), "%" PRId64, conn_id(w->sub));
	request_words(&w->tracking, w->conn, "CLIENT", "TRACKING", "ON", "REDIRECT", id,
	    "OPTIN", NULL);
}

/* The timer: tracking was off for OFF_MAX. */
static void
watch_off_for_long(void *arg)
{
	struct watch *w = arg;

	if (w->misdirected)
		conn_reset(w->sub, w->why);
	watch_report(w, false);
}

static void
watch_sub_up(const struct conn_server *server UNUSED, void *arg)
{
	struct watch *w = arg;

	xreplace(&w->sub_cause, NULL);
	watch_set_up(w);
}

static void
watch_sub_down(const char *cause, void *arg)
{
	struct watch *w = arg;

	xreplace(&w->sub_cause, cause);
	watch_off(w, cause);
}

void
watch_conn_up(struct watch *w)
{
	conn_start(w->sub);
	watch_set_up(w);
}

void
watch_conn_down(struct watch *w)
{
	watch_off(w, "Redis is down");
	timer_stop(&w->off_timer);
}

/* -- scripts ------------------------------------------------------------------ */

/*
 * Redis refused CLIENT CACHING.  If tracking has ended meanwhile, the refusal is late,
 * and does not count.
 */
static void
watch_cannot_arm(const struct redisReply *r, void *arg)
{
	struct watch *w = arg;

	if (w->on)
		watch_refused(w, reply_text(r), reply_error(r));
}

void
watch_request(struct watch *w, struct request *r, const struct script *script,
    struct words *words)
{
	request_call(r, w->conn, w->on, script, words);
}

/* -- life --------------------------------------------------------------------- */

struct watch *
watch_new(struct loop *loop, struct conn *conn, const struct redis_options *opt,
    const char *name, void (*mode)(bool, const char *, void *), void *arg)
{
	static const struct conn_events events = { .up = watch_sub_up, .down = watch_sub_down };
	struct watch *w = NEW(struct watch, .loop = loop, .conn = conn, .mode = mode,
	    .arg = arg, .why = xstrdup("Redis is down"));
	char *sub_name = xasprintf("%s-watch", name);

	TAILQ_INIT(&w->due);
	request_init(&w->tracking, watch_tracked, w);
	conn_set_caching(conn, watch_cannot_arm, w);
	for (size_t i = 0; i < CHAINS; i++)
		TAILQ_INIT(&w->chains[i]);
	timer_init(&w->off_timer, loop, watch_off_for_long, w);
	w->sub = conn_new(loop, opt, sub_name, CONN_SUBSCRIBER, &events, w);
	conn_set_limits(w->sub, &(struct conn_limits){ .reply_max = REPLY_MAX });
	conn_subscribe(w->sub, false, CHANNEL, watch_message, w);
	free(sub_name);
	return w;
}

void
watch_free(struct watch *w)
{
	if (w == NULL)
		return;
	conn_free(w->sub);
	conn_set_caching(w->conn, NULL, NULL);
	request_cancel(&w->tracking);
	timer_stop(&w->off_timer);
	loop_defer_cancel(w->loop, &w->turn);
	w->freed = true;
	if (!w->in_turn)
		watch_destroy(w);
}

bool
watch_is_on(const struct watch *w)
{
	return w->on;
}

void
watch_probe(struct watch *w)
{
	conn_probe(w->sub);
	if (w->again_at != 0 && clock_mono() >= w->again_at)
		watch_set_up(w);
}
