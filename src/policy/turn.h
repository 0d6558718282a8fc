/*
 * The choice of messages that a fetch takes first.
 *
 * Due retries and new messages share what a queue gives, so that neither starves the
 * other.  A probe of a suspended queue takes one message, each time of another sort.
 * So one sort of message that always fails cannot keep the others from being tried.  A
 * queue that has none of the sort asked for gives what it has.
 */
#ifndef RQD_POLICY_TURN_H
#define RQD_POLICY_TURN_H

enum turn {
	/*
	 * Retries and new messages, half and half.  A queue that was just opened first
	 * gives due retries, as many as its concurrency: they may be what this daemon gave
	 * back when it was last shut down.
	 */
	TURN_SHARE,
	TURN_OLDEST,	/* the oldest message that was never delivered */
	TURN_NEWEST,	/* the newest one; where the kind cannot tell, the oldest */
	TURN_FEWEST,	/* of the due retries one with the fewest attempts */
	TURN_LONGEST	/* the one that has been due for the longest time */
};

#endif
