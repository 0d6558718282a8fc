/*
 * Large payloads.  A pop answers with the length of a payload above LOADER_INLINE
 * instead of the payload.  Such a delivery is LOADING while the bulk connection fetches
 * the payload; its lease is renewed like any other.  Then the delivery is FOUND.
 *
 * If a payload exceeds the server's client-output-buffer-limit, the server ends the
 * connection instead of sending it.  After three attempts the loader puts that message
 * aside: it is due again later, and no attempt is counted.  The other messages go on.
 *
 * The loader sends nothing.  The owner sends the script body for each delivery of
 * loader_add() and loader_next().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "loop/loop.h"
#include "queue/ledger.h"

#define LOADER_INLINE	(64 * 1024)

struct loader;

/* The report of a message that was put aside. */
struct aside {
	char	*text;		/* the caller frees it; NULL: no message was put aside */
	bool	 news;		/* log it, although an earlier one was logged */
};

/* ask() comes from the loop: call loader_next() until NULL.  The ledger is borrowed. */
struct loader	*loader_new(struct loop *, struct ledger *, void (*ask)(void *), void *arg);
void		 loader_free(struct loader *);

/* Makes a FOUND delivery without payload LOADING; the owner must ask for its payload now. */
void		 loader_add(struct loader *, struct delivery *);
/* The next delivery whose payload the owner must ask for again; NULL: none. */
struct delivery	*loader_next(struct loader *);

/*
 * The payload has come: the loader takes it, and makes the delivery FOUND.  Returns
 * false if any message was ever put aside: then the warning is not over.
 */
bool		 loader_loaded(struct loader *, struct delivery *, char *payload, size_t len,
		    void (*free_payload)(char *));
/*
 * No payload has come.  attempt: the server got the question; why: what went wrong.
 * The loader asks again after a backoff of at most `most`, or puts the message aside.
 */
struct aside	 loader_failed(struct loader *, struct delivery *, bool attempt, const char *why,
		    usec_t most);
