/*
 * A request: one command, or one call of a script, and its answer.
 *
 * A request is a member of its owner, like a timer:
 *
 *	request_init(&o->request, owner_answered, o);
 *	words_key(&w, ...); words_add(&w, ...);
 *	request_script(&o->request, conn, script_find("arm"), &w);
 *	...
 *	request_cancel(&o->request);		// before o is freed
 *
 * It is idle, or in flight.  A request in flight is answered once, from the loop.  It
 * is idle again when its function is called, which may send it again, or free it.
 * After request_cancel() the function is not called, and the owner may be freed at
 * once; but the command may still act.
 *
 * An owner of several commands in flight has a request for each.
 */
#pragma once

#include <stdbool.h>

#include "base/clock.h"
#include "redis/conn.h"
#include "redis/reply.h"
#include "redis/words.h"

struct request {
	struct pending	*pending;	/* NULL: idle */
	conn_answer_fn	*fn;
	void		*arg;
	boot_t		 sent_at;	/* the call of request_script() or of another below */
};

/* fn: see conn.h; it may look at sent_at. */
void		 request_init(struct request *, conn_answer_fn *fn, void *arg);
bool		 request_is_sent(const struct request *);	/* in flight */
void		 request_cancel(struct request *);	/* in any state */

/*
 * These send an idle request.  They copy the words that they need later, and end
 * with words_done().  watch_request() is one more.
 */
void		 request_command(struct request *, struct conn *, struct words *);
void		 request_script(struct request *, struct conn *, const struct script *,
		    struct words *);
/* The command's words as in conn_words(). */
void		 request_words(struct request *, struct conn *, ...)
		    __attribute__((__sentinel__));

/* For watch.c; caching: see conn_script(). */
void		 request_call(struct request *, struct conn *, bool caching,
		    const struct script *, struct words *);
