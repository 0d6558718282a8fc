/*
 * The longest time that a message has waited.  It waits in the queue, or it is due
 * again; the time before it was due does not count.
 */
#pragma once

enum latency_how {
	LATENCY_UNKNOWN,	/* nothing is known; seconds is 0 */
	LATENCY_LEAST,		/* at least this long */
	LATENCY_KNOWN		/* this long; 0: no message waits */
};

struct latency {
	enum latency_how how;
	double		 seconds;
};

/* The latency of two sets of messages together. */
struct latency	latency_of_both(struct latency, struct latency);

/*
 * The better of two estimates for the same messages: the one that is known better, else
 * the larger.
 */
struct latency	latency_best(struct latency, struct latency);
