/*
 * How long queues stand still; see stall.h.
 */
#include "policy/stall.h"

void
stall_note(struct stall *s, usec_t now, int64_t ready, int64_t delivered)
{
	bool blind = s->seen == 0 || now - s->seen > STALL_GAP;

	s->waits = ready > 0;
	if (blind || !s->waits || ready < s->ready || delivered != s->delivered)
		s->since = now;
	s->seen = now;
	s->ready = ready;
	s->delivered = delivered;
}

usec_t
stall_length(const struct stall *s, usec_t now)
{
	return s->waits ? now - s->since : 0;
}
