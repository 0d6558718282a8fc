/*
 * Wake-up without polling: CLIENT TRACKING in OPTIN mode on the command
 * connection, redirected to a second one that is subscribed to
 * __redis__:invalidate.
 *
 * A key is armed by reading it right after CLIENT CACHING YES; Redis then
 * says once when it changes, and it must be armed again.  watch_script() does
 * both.  Tracking is set up anew whenever either connection comes back, and
 * every key then counts as changed; so it does when the second connection is
 * lost.  Where tracking is refused (watch_is_on() is false) callers poll; it is tried
 * again now and then, and with each new connection.
 */
#ifndef RQD_REDIS_WATCH_H
#define RQD_REDIS_WATCH_H

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
	void			(*changed)(void *);	/* from the loop; key must be armed again */
	void			*arg;
	/* private: */
	TAILQ_ENTRY(watch_key)	 due;
	bool			 is_due;	/* on the list of keys to call */
};

/*
 * conn is the command connection; the second one is the watch's own.  mode()
 * is called when tracking turns out to be on, or refused or lost for a second
 * while conn is READY (why), once per change; not before it is known.
 */
struct watch	*watch_new(struct loop *, struct conn *, const struct redis_options *,
		    const char *name, void (*mode)(bool on, const char *why, void *), void *arg);
void		 watch_start(struct watch *);
void		 watch_free(struct watch *);		/* before conn */
void		 watch_conn_up(struct watch *);		/* the owner of conn calls these */
void		 watch_conn_down(struct watch *);

void		 watch_add(struct watch *, struct watch_key *);
void		 watch_remove(struct watch *, struct watch_key *);
bool		 watch_is_on(const struct watch *);

/* As conn_script(), arming the script's KEYS where tracking is on. */
struct pending	*watch_script(struct watch *, const struct script *, conn_answer_fn *, void *,
		    const struct words *);

/* As request_script(), arming likewise. */
void		 watch_request(struct watch *, struct request *, const struct script *,
		    struct words *);

/* Proves the second connection (see conn_probe()), and tries again what was refused. */
void		 watch_probe(struct watch *);

#endif
