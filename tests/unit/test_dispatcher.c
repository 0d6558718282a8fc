/*
 * The dispatcher under a simulated loop: limits, fairness, priority.
 */
#include "unit.h"

#include "base/clock.h"
#include "base/util.h"
#include "engine/dispatcher.h"

struct queue {
	struct dispatcher_member	 member;
	struct dispatcher		*d;
	unsigned			 cap, held, total, grants;
};

static unsigned
room(void *arg)
{
	struct queue *q = arg;

	return q->cap - q->held;
}

static void
grant(unsigned n, void *arg)
{
	struct queue *q = arg;

	assert_true(n >= 1);
	assert_true(q->held + n <= q->cap);
	q->held += n;
	q->total += n;
	q->grants++;
}

static void
queue_init(struct queue *q, struct dispatcher *d, unsigned cap, int priority)
{
	memset(q, 0, sizeof(*q));
	q->d = d;
	q->cap = cap;
	q->member.priority = priority;
	q->member.room = room;
	q->member.grant = grant;
	q->member.arg = q;
}

static void
finish(struct queue *q, unsigned n)
{
	q->held -= n;
	dispatcher_release(q->d, n);
	if (q->cap > q->held)
		dispatcher_enter(q->d, &q->member);
}

static struct loop *
begin(void)
{
	clock_fake(SEC, 0);
	return loop_new_simulated();
}

TEST(one_grant_takes_all_free_slots)
{
	struct loop *loop = begin();
	struct dispatcher *d = dispatcher_new(loop, 16);
	struct queue q;

	queue_init(&q, d, 10, 0);
	dispatcher_enter(d, &q.member);
	loop_run_for(loop, 1);
	assert_int_equal(q.held, 10);
	assert_int_equal(q.grants, 1);
	assert_int_equal(dispatcher_taken(d), 10);
	dispatcher_free(d);
	loop_free(loop);
}

TEST(equals_share)
{
	struct loop *loop = begin();
	struct dispatcher *d = dispatcher_new(loop, 9);
	struct queue q[3];
	size_t i;

	for (i = 0; i < 3; i++) {
		queue_init(&q[i], d, 100, 0);
		dispatcher_enter(d, &q[i].member);
	}
	loop_run_for(loop, 1);
	for (i = 0; i < 3; i++)
		assert_int_equal(q[i].held, 3);
	dispatcher_free(d);
	loop_free(loop);
}

TEST(priority_comes_first)
{
	struct loop *loop = begin();
	struct dispatcher *d = dispatcher_new(loop, 4);
	struct queue low, high;

	queue_init(&low, d, 100, 0);
	queue_init(&high, d, 3, 5);
	dispatcher_enter(d, &low.member);
	dispatcher_enter(d, &high.member);
	loop_run_for(loop, 1);
	assert_int_equal(high.held, 3);
	assert_int_equal(low.held, 1);
	dispatcher_free(d);
	loop_free(loop);
}

/*
 * All queues always want more, and slots are released at random.  The limit holds, and no
 * queue of equal priority gets three times as many slots as another.
 */
TEST(random_load_is_fair)
{
	enum { QUEUES = 20, STEPS = 20000, SLOTS = 7 };
	struct loop *loop = begin();
	struct dispatcher *d = dispatcher_new(loop, SLOTS);
	struct queue q[QUEUES];
	unsigned held, least = UINT32_MAX, most = 0;
	size_t i, step;

	srand((unsigned)unit_random());
	for (i = 0; i < QUEUES; i++) {
		queue_init(&q[i], d, 1 + (unsigned)rand() % 5, 0);
		dispatcher_enter(d, &q[i].member);
	}
	for (step = 0; step < STEPS; step++) {
		loop_run_for(loop, 1);
		for (i = 0, held = 0; i < QUEUES; i++)
			held += q[i].held;
		assert_int_equal(held, SLOTS);
		assert_int_equal(dispatcher_taken(d), SLOTS);
		i = (size_t)rand() % QUEUES;
		if (q[i].held > 0)
			finish(&q[i], 1 + (unsigned)rand() % q[i].held);
	}
	for (i = 0; i < QUEUES; i++) {
		least = q[i].total < least ? q[i].total : least;
		most = q[i].total > most ? q[i].total : most;
	}
	assert_true(least > 0);
	assert_true(most < 3 * least);
	dispatcher_free(d);
	loop_free(loop);
}
