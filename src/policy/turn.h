/*
 * The choice of messages that a fetch takes first.
 *
 * Due retries and new messages share what a queue gives, so that neither starves the
 * other.  A probe of a suspended queue takes one message, each time of another sort.
 * So one sort of message that always fails cannot keep the others from being tried.  If
 * the queue has none of that sort, the fetch takes another.
 */
#pragma once

enum turn {
	/*
	 * Retries and new messages, half and half.  A queue that was just opened
	 * prefers due retries, as many as its concurrency: this daemon may have
	 * returned them when it was last shut down.
	 */
	TURN_SHARE,
	TURN_OLDEST,	/* the oldest message that was never delivered */
	TURN_NEWEST,	/* the newest one; if the kind cannot tell, the oldest */
	TURN_FEWEST,	/* a due retry with the fewest attempts */
	TURN_LONGEST	/* the retry that has been due for the longest time */
};
