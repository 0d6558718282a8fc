/*
 * A verdict costs little, however many messages have failed.  It counts comparisons of strings,
 * not time.
 */
#include "unit.h"

#include "engine/suspension.h"
#include "loop/loop.h"

enum { MANY = 12000, MOST = 64 };	/* twice the height of a balanced tree of these */

static unsigned long	compared;

/* In the place of the C library's. */
int
strcmp(const char *a, const char *b)
{
	compared++;
	for (; *a != '\0' && *a == *b; a++)
		b++;
	return (unsigned char)*a - (unsigned char)*b;
}

static void
nothing(void *arg UNUSED)
{
}

/* MANY messages fail, and then again: the most comparisons that one verdict took. */
static unsigned long
worst(int suspend_after)
{
	const struct verdict retry = { .op = VERDICT_RETRY, .reason = REASON_EXIT, .failed = true };
	const struct verdict ack = { .op = VERDICT_ACK };
	const struct result r = { .end = END_EXIT, .status = 1 };
	struct queue_config cfg = { .name = (char []){ "q" }, .suspend_after = suspend_after };
	struct message msg = { .cfg = &cfg };
	struct stats stats = { .usual = 0 };
	struct suspension s = { .cfg = &cfg, .stats = &stats, .changed = nothing,
	    .blocked = nothing };
	struct loop *loop = loop_new();
	unsigned long most = 0;
	unsigned times;
	char tag[32];

	suspension_init(&s, loop);
	for (int i = 0; i < 3 * MANY; i++) {
		snprintf(tag, sizeof(tag), "message-%d", i % MANY * 7919 % MANY);
		msg.tag = tag;
		compared = 0;
		times = suspension_note(&s, &msg, i < 2 * MANY ? &retry : &ack);
		suspension_judge(&s, i < 2 * MANY ? &retry : &ack, &r, times);
		if (compared > most)
			most = compared;
	}
	suspension_done(&s);
	loop_free(loop);
	return most;
}

TEST(a_verdict_costs_little)
{
	assert_in_range(worst(1000000), 1, MOST);
}

/* Without suspend_after nothing is remembered. */
TEST(a_verdict_costs_nothing_without_suspensions)
{
	assert_int_equal(worst(0), 0);
}
