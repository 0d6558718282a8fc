/*
 * Large payloads.  A pop answers with the length of a payload above LOADER_INLINE
 * instead of the payload.  Such a delivery is LOADING: its lease is renewed as any
 * other, while the bulk connection fetches the payload.  Then it is FOUND.
 *
 * A server whose client-output-buffer-limit is below a payload ends the connection
 * instead of sending it.  After three attempts the loader puts that message aside:
 * it is due again later, nothing is counted against it, and the others go on.
 *
 * The loader sends nothing: the owner sends the script body, for loader_add()'s
 * delivery and for each of loader_next().
 */
#ifndef RQD_QUEUE_LOADER_H
#define RQD_QUEUE_LOADER_H

#include <stdbool.h>
#include <stddef.h>

#include "loop/loop.h"
#include "queue/ledger.h"

#define LOADER_INLINE	(64 * 1024)

struct loader;

/* A message was put aside: what to report. */
struct aside {
	char	*text;		/* the caller frees it; NULL: none was */
	bool	 news;		/* log it, although an earlier one was logged */
};

/* ask() comes from the loop: call loader_next() until NULL.  The ledger is borrowed. */
struct loader	*loader_new(struct loop *, struct ledger *, void (*ask)(void *), void *arg);
void		 loader_free(struct loader *);

/* One that is FOUND, without its payload, becomes LOADING; the owner asks for it now. */
void		 loader_add(struct loader *, struct delivery *);
/* The next whose payload the owner must ask for again; NULL: none. */
struct delivery	*loader_next(struct loader *);

/*
 * The payload has come: the loader takes it, and the delivery is FOUND.  Returns
 * false if a message was put aside before: then not all is well.
 */
bool		 loader_loaded(struct loader *, struct delivery *, char *payload, size_t len,
		    void (*free_payload)(char *));
/*
 * None has come.  attempt: the server had the question; why: what went wrong.  Asked
 * again after a backoff of at most `most`, or put aside.
 */
struct aside	 loader_failed(struct loader *, struct delivery *, bool attempt, const char *why,
		    usec_t most);

#endif
