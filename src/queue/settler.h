/*
 * The results of a queue's deliveries, until Redis has confirmed each.  The settler
 * decides which results go into which call, and when; and it knows what each answer
 * means.
 *
 * The settler sends nothing and knows no connection.  At the end of a turn, while
 * connected, the owner calls settler_next() until it returns SETTLER_NOTHING, and sends
 * each call that it describes.  The owner tells the settler how each call ended:
 *
 *	no reply		settler_returned()
 *	an error for the call	settler_refused()
 *	settle's answers	settler_answer() for each result
 *	rescue's answer		settler_rescued()
 *	check's answer		settler_checked()
 *
 * A lost connection loses no result: the settler keeps each result until an answer ends
 * it.
 */
#pragma once

#include "queue/ledger.h"
#include "queue/queue.h"
#include "redis/reply.h"

struct settler;

/* Called from the functions below, and from timers. */
struct settler_events {
	/* A delivery that the engine has settled has ended.  It is DONE after the call. */
	void	(*settled)(struct delivery *, enum settled, void *);
	/*
	 * Ask, by rescue's "check", whether our message has the tag.  The delivery
	 * stays SENT.
	 */
	void	(*check)(struct delivery *, void *);
	void	(*warn)(const char *, void *);
	void	(*wake)(void *);	/* something changed: look at the end of this turn */
	void	(*batch_due)(void *);	/* results have waited long enough: send them now */
};

enum settler_call {
	SETTLER_NOTHING,
	/* one result, by rescue, or by hand_over_lost if it hands over */
	SETTLER_RESCUE,
	SETTLER_SETTLE,		/* results that hand nothing over */
	SETTLER_HAND_OVER	/* results that hand over to the same queues */
};

struct settler	*settler_new(struct loop *, struct ledger *, const struct settler_events *,
		    void *arg);
/* Ends all results with SETTLED_GAVE_UP; frees the settler, not the ledger. */
void		 settler_free(struct settler *);
/* Connected: refused results may be sent at once. */
void		 settler_up(struct settler *);

/*
 * The queue closes.  A hand-over that Redis has refused, or refuses from now on, is not
 * tried again: its message is returned.
 */
void		 settler_close(struct settler *);

/* A REFUSED hand-over was cancelled: ends it as msg->cancel says. */
void		 settler_cancel(struct settler *, struct delivery *);

/* Takes the result that the engine gives: see ledger_keep(). */
void		 settler_keep(struct settler *, struct delivery *, const struct verdict *,
		    struct result *);
/*
 * Ends stale results: rqd writes nothing for them.  If connected, a result whose
 * message a foreign consumer took is sent, so that the script removes the rest of the
 * delivery.
 */
void		 settler_put_away(struct settler *, bool connected);
/* Whether results wait for others, to go in one call.  False unless may_wait. */
bool		 settler_waits(struct settler *, bool may_wait);

/*
 * Describes the next call: moves its results to SENT, and adds them to the batch.
 * may_rescue: no pop is on its way or of unknown outcome.  may_end: also no fetch is
 * open, so that a call with the last deliveries is "over".
 */
enum settler_call settler_next(struct settler *, bool may_rescue, bool may_end,
		    struct delivery_batch *);
/* A rescue is on its way or may have acted: no pop may be sent. */
bool		 settler_is_rescuing(const struct settler *);

/* No reply came.  may_have_acted: the call was sent. */
void		 settler_returned(struct settler *, const struct delivery_batch *,
		    bool may_have_acted);
void		 settler_refused(struct settler *, const struct delivery_batch *, enum reply_error);
/*
 * The answer to result i of the batch.  Returns false if the text is an error: the
 * result is sent again later.
 */
bool		 settler_answer(struct settler *, const struct delivery_batch *, size_t i,
		    const char *text);
/* Returns false if rescue never answers such a text: the caller must call settler_refuse(). */
bool		 settler_rescued(struct settler *, struct delivery *, const char *text);
void		 settler_checked(struct settler *, struct delivery *, const char *text);
/* Redis refused the only result of a rescue or a check. */
void		 settler_refuse(struct settler *, struct delivery *, enum reply_error);
