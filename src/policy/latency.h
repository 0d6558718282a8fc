/*
 * How long the message has waited that has waited longest.  It waits in the queue, or it is
 * due again; time before it was due does not count.
 */
#ifndef RQD_POLICY_LATENCY_H
#define RQD_POLICY_LATENCY_H

enum latency_how {
	LATENCY_UNKNOWN,	/* nothing is known; seconds is 0 */
	LATENCY_LEAST,		/* at least so long */
	LATENCY_KNOWN		/* so long; 0: no message waits */
};

struct latency {
	enum latency_how how;
	double		 seconds;
};

/* Of two sets of messages together. */
struct latency	latency_of_both(struct latency, struct latency);

/* Two opinions of the same messages: the larger one of those that are known best. */
struct latency	latency_best(struct latency, struct latency);

#endif
