/* Latencies; see latency.h. */
#include "policy/latency.h"

struct latency
latency_of_both(struct latency a, struct latency b)
{
	struct latency l = a.seconds > b.seconds ? a : b;

	if (a.how == LATENCY_KNOWN && b.how == LATENCY_KNOWN)
		return l;
	l.how = l.seconds > 0 ? LATENCY_LEAST : LATENCY_UNKNOWN;
	return l;
}

struct latency
latency_best(struct latency a, struct latency b)
{
	if (a.how != b.how)
		return a.how > b.how ? a : b;
	return a.seconds > b.seconds ? a : b;
}
