/*
 * The results of a queue's deliveries, from when they are kept until Redis has
 * confirmed each: which go into which call, when, and what an answer means.
 *
 * The settler sends nothing and knows no connection.  At the end of a turn, while
 * connected, the owner calls settler_next() until there is nothing, and sends what
 * it describes.  It tells the settler how each call ended:
 *
 *	no reply		settler_returned()
 *	an error for the call	settler_refused()
 *	settle's answers	settler_answer() for each result
 *	rescue's answer		settler_rescued()
 *	check's answer		settler_checked()
 *
 * Nothing that a handler has achieved is forgotten because a connection was lost:
 * a result is kept until an answer ends it.
 */
#ifndef RQD_QUEUE_SETTLER_H
#define RQD_QUEUE_SETTLER_H

#include "queue/ledger.h"
#include "queue/queue.h"
#include "redis/reply.h"

struct settler;

/* From the functions below, and from timers. */
struct settler_events {
	/* The end of a delivery that the engine has settled.  It is DONE afterwards. */
	void	(*settled)(struct delivery *, enum settled, void *);
	/* Ask by rescue's "check" whether our message has the tag; it stays SENT. */
	void	(*check)(struct delivery *, void *);
	void	(*warn)(const char *, void *);
	void	(*wake)(void *);	/* something changed: look at the end of this turn */
	void	(*batch_due)(void *);	/* results have waited for others: send them now */
};

enum settler_call {
	SETTLER_NOTHING,
	/* one result, by the rescue script, or if it hands over by hand_over_lost */
	SETTLER_RESCUE,
	SETTLER_SETTLE,		/* none of them hands over */
	SETTLER_HAND_OVER	/* each of them does, to the same queues */
};

struct settler	*settler_new(struct loop *, struct ledger *, const struct settler_events *,
		    void *arg);
/* Ends all results with SETTLED_GAVE_UP; frees the settler, not the ledger. */
void		 settler_free(struct settler *);
/* Connected: what was refused may be sent at once. */
void		 settler_up(struct settler *);

/*
 * The queue closes.  A hand-over that Redis has refused, or refuses from now on, is not
 * tried again: its message is returned.
 */
void		 settler_close(struct settler *);

/* A hand-over that is REFUSED was cancelled: it ends as msg->cancel says. */
void		 settler_cancel(struct settler *, struct delivery *);

/* Takes the result that the engine gives: see ledger_keep(). */
void		 settler_keep(struct settler *, struct delivery *, const struct verdict *,
		    struct result *);
/*
 * Ends stale results, about which nothing is written.  If connected, one that a foreign
 * consumer took is sent: the script removes what is left of it.
 */
void		 settler_put_away(struct settler *, bool connected);
/* Whether results wait for others to go in one call; only where may_wait. */
bool		 settler_waits(struct settler *, bool may_wait);

/*
 * The next call: its results, which are SENT, are in the batch.  may_rescue: no pop is on
 * its way or in doubt.  may_end: also nobody fetches; so a call with the last deliveries
 * is "over".
 */
enum settler_call settler_next(struct settler *, bool may_rescue, bool may_end,
		    struct delivery_batch *);
/* A rescue is on its way or may have acted: no pop may be sent. */
bool		 settler_is_rescuing(const struct settler *);

/* may_have_acted: the call was sent. */
void		 settler_returned(struct settler *, const struct delivery_batch *,
		    bool may_have_acted);
void		 settler_refused(struct settler *, const struct delivery_batch *, enum reply_error);
/* The ith.  Returns false if the text is an error: the result is sent again later. */
bool		 settler_answer(struct settler *, const struct delivery_batch *, size_t i,
		    const char *text);
/* Returns false if the text is none of rescue's answers: settler_refuse() must follow. */
bool		 settler_rescued(struct settler *, struct delivery *, const char *text);
void		 settler_checked(struct settler *, struct delivery *, const char *text);
/* The only result of a rescue or a check was refused. */
void		 settler_refuse(struct settler *, struct delivery *, enum reply_error);

#endif
