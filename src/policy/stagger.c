/* How long daemons wait for each other; see stagger.h. */
#include "policy/stagger.h"

/* The estimate; more daemons than have room in the longest span count as none. */
static unsigned
stagger_rivals(const struct stagger *s, unsigned fleet)
{
	unsigned n = fleet, most = STAGGER_MAX / STAGGER_EACH;

	if (s->rivals > 0 && s->rivals < n)
		n = s->rivals;
	return n < most ? n : most;
}

usec_t
stagger_span(const struct stagger *s, unsigned fleet)
{
	return stagger_rivals(s, fleet) * STAGGER_EACH;
}

void
stagger_saw_left(struct stagger *s, unsigned fleet, usec_t waited)
{
	unsigned n = stagger_rivals(s, fleet);

	if (n > 1 && waited >= stagger_span(s, fleet) / 2)
		s->rivals = n / 2;
}

void
stagger_saw_taken(struct stagger *s)
{
	s->rivals = 0;
}
