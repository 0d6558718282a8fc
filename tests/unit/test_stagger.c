/* How long the daemons of a fleet wait for each other: a fleet in simulated time. */
#include "unit.h"

#include <stdlib.h>

#include "policy/stagger.h"

#define DAEMONS	100
#define REPORT	(2 * MSEC)	/* until the others know that a message was taken */

static struct stagger daemons[DAEMONS];
static unsigned	 wins[DAEMONS];

static usec_t
draw(unsigned i, unsigned fleet)
{
	return (usec_t)unit_below((uint64_t)stagger_span(&daemons[i], fleet));
}

/*
 * A message falls due; the first `free` daemons of the fleet look.  Returns how late it is
 * taken; *vain: how many daemons look for nothing.
 */
static usec_t
fall_due(unsigned fleet, unsigned free, unsigned *vain)
{
	usec_t at[DAEMONS] = { 0 };
	unsigned first = 0;

	for (unsigned i = 0; i < free; i++) {
		at[i] = draw(i, fleet);
		first = at[i] < at[first] ? i : first;
	}
	stagger_saw_left(&daemons[first], fleet, at[first]);
	wins[first]++;
	*vain = 0;
	for (unsigned i = 0; i < free; i++) {
		if (i == first)
			continue;
		*vain += at[i] < at[first] + REPORT;
		stagger_saw_taken(&daemons[i]);
	}
	return at[first];
}

static int
compare(const void *a, const void *b)
{
	const usec_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The median of many messages. */
static usec_t
median(unsigned fleet, unsigned free, double *vain)
{
	usec_t late[4001];
	unsigned n, all = 0;

	memset(daemons, 0, sizeof(daemons));
	memset(wins, 0, sizeof(wins));
	for (size_t i = 0; i < ARRAY_LEN(late); i++) {
		late[i] = fall_due(fleet, free, &n);
		all += n;
	}
	*vain = (double)all / ARRAY_LEN(late);
	qsort(late, ARRAY_LEN(late), sizeof(late[0]), compare);
	return late[ARRAY_LEN(late) / 2];
}

/* Three of four have no free handler, or 99 of a hundred. */
TEST(daemons_without_room_delay_nothing)
{
	static const unsigned fleets[] = { 4, 10, 40, 100 };
	double vain;

	for (size_t i = 0; i < ARRAY_LEN(fleets); i++)
		assert_in_range(median(fleets[i], 1, &vain), 0, 50 * MSEC);
}

TEST(idle_daemons_take_turns_and_few_look_for_nothing)
{
	double vain;

	for (unsigned fleet = 4; fleet <= DAEMONS; fleet += 12) {
		assert_in_range(median(fleet, fleet, &vain), 0, 50 * MSEC);
		print_message("# %u daemons: %.2f look in vain\n", fleet, vain);
		assert_true(vain < 1);
		for (unsigned i = 0; i < fleet; i++)
			assert_in_range(wins[i], 1, 3200);
	}
}

/* Each was alone for a long time, and now all are free: once they come together. */
TEST(many_become_free)
{
	unsigned vain, all = 0;

	for (unsigned i = 0; i < DAEMONS; i++)
		daemons[i].rivals = 1;
	(void)fall_due(DAEMONS, DAEMONS, &vain);
	for (int i = 0; i < 20; i++) {
		(void)fall_due(DAEMONS, DAEMONS, &vain);
		all += vain;
	}
	print_message("# of the next 20 messages: %u in vain\n", all);
	assert_true(all < 40);
}
