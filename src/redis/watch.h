/*
 * Wake-up without polling: CLIENT TRACKING in OPTIN mode on the command
 * connection, redirected to a second one that is subscribed to
 * __redis__:invalidate.
 *
 * To arm a key, watch_request() reads it right after CLIENT CACHING YES.  Redis then
 * reports the key's next change, once.  The watch sets tracking up whenever one of the
 * connections is new.  Every key counts as changed then, and when the second connection
 * is lost.  If Redis refuses tracking (watch_is_on() is false), callers poll; the watch
 * tries again later, and with each new connection.
 */
#pragma once

#include <stdbool.h>

#include "base/list.h"
#include "redis/conn.h"
#include "redis/request.h"

struct watch;

/* A key of interest, embedded in its owner. */
struct watch_key {
	TAILQ_ENTRY(watch_key)	 entry;
	const char		*key;		/* borrowed; no NUL inside */
	size_t			 len;
	void			(*changed)(void *);	/* from the loop; arm the key again */
	void			*arg;
	/* private: */
	TAILQ_ENTRY(watch_key)	 due;
	bool			 is_due;	/* changed() will be called */
	unsigned		 slot_plus_1;	/* for watch_move(); 0: not computed yet */
};

/*
 * conn is the command connection; the second one belongs to the watch.  mode() is
 * called once per change: when tracking is on, and when Redis refuses it, or it was off
 * for a second while conn is READY (with the reason).  It may be NULL.
 */
struct watch	*watch_new(struct loop *, struct conn *, const struct redis_options *,
		    const char *name, void (*mode)(bool on, const char *why, void *), void *arg);
void		 watch_free(struct watch *);		/* before conn */
void		 watch_conn_up(struct watch *);		/* the owner of conn calls these */
void		 watch_conn_down(struct watch *);

void		 watch_add(struct watch *, struct watch_key *);
void		 watch_remove(struct watch *, struct watch_key *);
/* Moves all keys of a slot to another watch, where they count as changed. */
void		 watch_move(struct watch *from, struct watch *to, unsigned slot);
bool		 watch_is_on(const struct watch *);
/* This process has changed a key: calls its owners as if Redis had reported it. */
void		 watch_note_change(struct watch *, const char *key, size_t len);

/* As request_script(); also arms the script's KEYS if tracking is on. */
void		 watch_request(struct watch *, struct request *, const struct script *,
		    struct words *);

/* Every 10 s: conn_probe() of the second connection, and other tries after refusals. */
void		 watch_probe(struct watch *);
