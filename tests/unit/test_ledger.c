/* The ledger: states compared with a model, batches, and renewals with their answers. */
#include "unit.h"

#include "ledger_fixture.h"

static unsigned renewals;		/* calls of renew() */
static struct delivery_batch sent[8];
static size_t n_sent;

static void
renew(void *arg UNUSED)
{
	renewals++;
}

static int
setup(void **state UNUSED)
{
	ledger_setup(renew);
	renewals = 0;
	return 0;
}

static int
teardown(void **state UNUSED)
{
	ledger_free(ledger);
	while (n_sent > 0)
		batch_done(&sent[--n_sent]);
	ledger_teardown();
	return 0;
}

#define FIXTURE_TEST(name)	TEST_WITH(name, setup, teardown)

static struct delivery *
add_in(enum delivery_state state)
{
	struct delivery *d = add("c.1");

	if (state >= DELIVERY_IN_HAND)
		ledger_move(ledger, d, DELIVERY_IN_HAND);
	if (state != d->state)
		ledger_move(ledger, d, state);
	return d;
}

static void
send_batch(struct delivery_batch *batch, void *arg UNUSED)
{
	sent[n_sent++] = *batch;
}

FIXTURE_TEST(test_add)
{
	struct delivery *d;

	assert_true(ledger_is_empty(ledger));
	d = add("c.1");
	assert_ptr_equal(d->msg->queue_data, d);
	assert_int_equal(d->state, DELIVERY_FOUND);
	assert_int_equal(d->idlen, 3);	/* 9 was given, and the tag has 3 bytes */
	assert_false(ledger_is_empty(ledger));
	assert_true(ledger_has_token(ledger, "c.1"));
	assert_false(ledger_has_token(ledger, "c.2"));
	ledger_move(ledger, d, DELIVERY_DONE);
	assert_true(ledger_is_empty(ledger));
}

/* After random moves, the lists, counts and flags of deliveries agree with a model. */
FIXTURE_TEST(test_moves)
{
	struct delivery *d[50];
	bool refused[50] = { 0 }, from[50] = { 0 };
	unsigned i, s, n, step, kept, departures = 0, count[DELIVERY_LISTS] = { 0 };
	const struct delivery *at;

	for (i = 0; i < ARRAY_LEN(d); i++)
		d[i] = add("c.1");
	count[DELIVERY_FOUND] = ARRAY_LEN(d);
	for (step = 0; step < 5000; step++) {
		i = (unsigned)unit_below(ARRAY_LEN(d));
		s = (unsigned)unit_below(DELIVERY_LISTS);
		departures += d[i]->state == DELIVERY_LOADING || d[i]->state == DELIVERY_FOUND;
		from[i] |= d[i]->state == DELIVERY_IN_HAND && s == DELIVERY_KEPT;
		refused[i] |= s == DELIVERY_REFUSED;
		count[d[i]->state]--;
		count[s]++;
		ledger_move(ledger, d[i], s);
		assert_int_equal(d[i]->state, s);
		assert_int_equal(d[i]->from_engine, from[i]);
		assert_int_equal(d[i]->keeps_slot, refused[i]);
		assert_int_equal(ledger_tally(ledger)->departures, departures);
		for (kept = i = 0; i < ARRAY_LEN(d); i++)
			kept += refused[i];
		assert_int_equal(ledger_tally(ledger)->refused, kept);
		for (s = 0; s < DELIVERY_LISTS; s++) {
			n = 0;
			for (at = ledger_first(ledger, s); at != NULL; at = ledger_next(at))
				n += at->state == s;
			assert_int_equal(n, count[s]);
			assert_int_equal(ledger_tally(ledger)->count[s], count[s]);
		}
	}
	for (i = 0; i < ARRAY_LEN(d); i++)
		ledger_move(ledger, d[i], DELIVERY_DONE);
	assert_int_equal(ledger_tally(ledger)->refused, 0);
	assert_true(ledger_is_empty(ledger));
}

FIXTURE_TEST(test_give_back)
{
	struct delivery *found = add("c.1"), *loading = add_in(DELIVERY_LOADING);

	assert_true(ledger_give_back(ledger, false));
	assert_int_equal(found->state, DELIVERY_KEPT);
	assert_int_equal(found->verdict.op, VERDICT_RETURN);
	assert_false(found->from_engine);
	assert_int_equal(loading->state, DELIVERY_LOADING);
	assert_false(ledger_give_back(ledger, false));
	assert_true(ledger_give_back(ledger, true));
	assert_int_equal(loading->state, DELIVERY_KEPT);
}

FIXTURE_TEST(test_sort)
{
	static const char *const come[] = { "b.2", "a.10", "a.2", "b.1", "a.1", "odd" };
	static const char *const want[] = { "b.1", "b.2", "a.1", "a.2", "a.10", "odd" };
	const struct delivery *d;
	size_t i;

	for (i = 0; i < ARRAY_LEN(come); i++)
		ledger_sort(ledger, add(come[i]));
	d = ledger_first(ledger, DELIVERY_FOUND);
	for (i = 0; i < ARRAY_LEN(want); i++, d = ledger_next(d))
		assert_string_equal(d->msg->token, want[i]);
	assert_null(d);
}

/* A delivery with less than a quarter of its lease left must be renewed before it runs. */
FIXTURE_TEST(test_sure)
{
	struct delivery *d = add("c.1");

	clock_fake_advance(LEASE / 4 * 3 - 1);
	assert_ptr_equal(ledger_found(ledger), d);
	assert_false(ledger_is_unsure(ledger));
	clock_fake_advance(1);
	assert_null(ledger_found(ledger));
	assert_true(ledger_is_unsure(ledger));
	ledger_renewals(ledger, send_batch, NULL);
	assert_false(ledger_is_unsure(ledger));
	assert_int_equal(ledger_renewed(ledger, d, 1, clock_boot()), LEASE_SEEN);
	assert_ptr_equal(ledger_found(ledger), d);
}

FIXTURE_TEST(test_when)
{
	assert_int_equal(ledger_renew_interval(ledger), 10 * SEC);
	ledger_set_lease(ledger, 6 * SEC);
	assert_int_equal(ledger_renew_interval(ledger), 2 * SEC);
	assert_int_equal(ledger_patience(ledger), 2 * SEC);
	loop_run_for(loop, HOUR);
	assert_int_equal(renewals, 0);
	(void)add("c.1");
	loop_run_for(loop, 2 * SEC - 1);
	assert_int_equal(renewals, 0);
	loop_run_for(loop, 1);
	assert_int_equal(renewals, 1);
	assert_true(ledger_begin_renewal(ledger, false));
	loop_run_for(loop, 2 * SEC * 8 / 10 - 1);
	assert_int_equal(renewals, 1);
	loop_run_for(loop, 2 * SEC * 2 / 10 + 1);
	assert_int_equal(renewals, 2);
	ledger_set_lease(ledger, LEASE);
	assert_true(ledger_begin_renewal(ledger, false));
	ledger_renew_soon(ledger);
	loop_run_for(loop, SEC);
	assert_int_equal(renewals, 3);
	ledger_set_lease(ledger, SEC);
	assert_int_equal(ledger_patience(ledger), SEC);
}

/* Renewals go on while a pop has no reply, and end with the last delivery. */
FIXTURE_TEST(test_when_empty)
{
	ledger_expect(ledger);
	assert_true(ledger_begin_renewal(ledger, true));
	loop_run_for(loop, 10 * SEC);
	assert_int_equal(renewals, 1);
	ledger_expect(ledger);
	assert_false(ledger_begin_renewal(ledger, false));
	loop_run_for(loop, HOUR);
	assert_int_equal(renewals, 1);
}

static unsigned hinted;

static void
renew_hinted(void *arg)
{
	(void)arg;
	hinted++;
	assert_true(ledger_begin_renewal(ledger, true));
}

/*
 * The first hint renews at once, and once more 400 ms later.  Many hints are few renewals.
 */
FIXTURE_TEST(test_hints)
{
	unsigned i;

	ledger_free(ledger);
	ledger = ledger_new(loop, LEASE, renew_hinted, NULL);
	hinted = 0;
	ledger_renew_hint(ledger);
	loop_run_for(loop, HOUR);
	assert_int_equal(hinted, 0);
	(void)add("c.1");
	ledger_renew_hint(ledger);
	loop_run_for(loop, 0);
	assert_int_equal(hinted, 1);
	loop_run_for(loop, 399 * MSEC);
	assert_int_equal(hinted, 1);
	loop_run_for(loop, MSEC);
	assert_int_equal(hinted, 2);
	loop_run_for(loop, 7 * SEC);
	assert_int_equal(hinted, 2);
	for (i = 0; i < 10000; i++) {
		ledger_renew_hint(ledger);
		loop_run_for(loop, 100);
	}
	assert_in_range(hinted, 10, 13);
}

FIXTURE_TEST(test_what)
{
	struct delivery *d;
	unsigned i;

	for (i = 0; i < 251; i++)
		(void)add_in(DELIVERY_IN_HAND);
	(void)add_in(DELIVERY_SENT);
	add_in(DELIVERY_IN_HAND)->lost = true;
	add_in(DELIVERY_KEPT)->rescue = true;
	add_in(DELIVERY_IN_HAND)->usurped = true;
	d = add_in(DELIVERY_REFUSED);
	ledger_renewals(ledger, send_batch, NULL);
	assert_int_equal(n_sent, 3);
	assert_int_equal(sent[0].n, 250);
	assert_int_equal(sent[1].n, 1);
	assert_int_equal(sent[2].n, 1);
	assert_ptr_equal(sent[2].v[0], d);
}

/* A delivery in a batch stays allocated until batch_done(), even after the ledger is freed. */
FIXTURE_TEST(test_batch)
{
	struct delivery *d = add_in(DELIVERY_IN_HAND);

	ledger_renewals(ledger, send_batch, NULL);
	ledger_renewals(ledger, send_batch, NULL);
	ledger_move(ledger, d, DELIVERY_DONE);
	batch_done(&sent[--n_sent]);
	assert_int_equal(d->state, DELIVERY_DONE);
	assert_null(d->msg);
	assert_int_equal(ledger_renewed(ledger, d, 0, clock_boot()), LEASE_SEEN);
	(void)add_in(DELIVERY_IN_HAND);
	ledger_renewals(ledger, send_batch, NULL);	/* teardown frees the ledger first */
}

FIXTURE_TEST(test_answers)
{
	static const struct {
		enum delivery_state	before;
		int64_t			answer;
		enum lease		lease;
		enum delivery_state	after;
		enum verdict_op		op;
	} rows[] = {
		{ DELIVERY_LOADING, 2, LEASE_SEEN, DELIVERY_LOADING, 0 },
		{ DELIVERY_LOADING, 0, LEASE_SEEN, DELIVERY_KEPT, VERDICT_STALE },
		{ DELIVERY_LOADING, -1, LEASE_SEEN, DELIVERY_KEPT, VERDICT_STALE },
		{ DELIVERY_FOUND, 0, LEASE_SEEN, DELIVERY_KEPT, VERDICT_STALE },
		{ DELIVERY_FOUND, -1, LEASE_SEEN, DELIVERY_KEPT, VERDICT_RETURN },
		{ DELIVERY_FOUND, -2, LEASE_SEEN, DELIVERY_KEPT, VERDICT_STALE },
		{ DELIVERY_FOUND, -4, LEASE_UNCLEAR, DELIVERY_FOUND, 0 },
		{ DELIVERY_LOADING, 3, LEASE_SEEN, DELIVERY_LOADING, 0 },
		{ DELIVERY_FOUND, 4, LEASE_SEEN, DELIVERY_FOUND, 0 },
		{ DELIVERY_IN_HAND, 1, LEASE_SEEN, DELIVERY_IN_HAND, 0 },
		{ DELIVERY_IN_HAND, 3, LEASE_CANCELLED, DELIVERY_IN_HAND, 0 },
		{ DELIVERY_IN_HAND, 4, LEASE_CANCELLED, DELIVERY_IN_HAND, 0 },
		{ DELIVERY_KEPT, 3, LEASE_SEEN, DELIVERY_KEPT, VERDICT_ACK },
		{ DELIVERY_IN_HAND, 0, LEASE_LOST, DELIVERY_IN_HAND, 0 },
		{ DELIVERY_IN_HAND, -1, LEASE_SEEN, DELIVERY_IN_HAND, 0 },
		{ DELIVERY_IN_HAND, -2, LEASE_LOST, DELIVERY_IN_HAND, 0 },
		{ DELIVERY_IN_HAND, -3, LEASE_LOST, DELIVERY_IN_HAND, 0 },
		{ DELIVERY_IN_HAND, -4, LEASE_UNCLEAR, DELIVERY_IN_HAND, 0 },
		{ DELIVERY_KEPT, 0, LEASE_SEEN, DELIVERY_KEPT, VERDICT_ACK },
		{ DELIVERY_SENT, -3, LEASE_SEEN, DELIVERY_SENT, VERDICT_ACK },
	};
	struct delivery *d;
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		d = add_in(rows[i].before);
		assert_int_equal(ledger_renewed(ledger, d, rows[i].answer, clock_boot()),
		    rows[i].lease);
		assert_int_equal(d->state, rows[i].after);
		assert_int_equal(d->verdict.op, rows[i].op);
		assert_int_equal(d->taken, rows[i].answer == -2);
		if (d->state != DELIVERY_KEPT && rows[i].answer > 2)
			assert_int_equal(d->msg->cancel,
			    rows[i].answer == 3 ? CANCEL_DROP : CANCEL_DEAD);
		/* Of several renewals without an answer, only the first reports the loss. */
		if (rows[i].lease == LEASE_LOST)
			assert_int_equal(ledger_renewed(ledger, d, 0, 0), LEASE_SEEN);
	}
}

/*
 * Only a refused hand-over is cancelled by a renewal's answer.  One that is kept or sent
 * ends with the answer to its own call.
 */
FIXTURE_TEST(test_renewed_hand_over)
{
	static char *none[] = { NULL }, *listed[] = { (char *)"q", NULL };
	static struct queue_config q = { .name = (char *)"q", .message_max = 100, .pushes = none };
	static struct queue_config *queues[] = { &q, NULL };
	static const enum delivery_state states[] = { DELIVERY_KEPT, DELIVERY_SENT,
	    DELIVERY_REFUSED };
	const struct queue_config from = { .pushes = listed, .push_max = 1 };
	struct config with = { .queues = queues, .nqueues = 1 };
	struct delivery *d;
	size_t i;

	for (i = 0; i < ARRAY_LEN(states); i++) {
		d = add_in(states[i]);
		assert_int_equal(ledger_renewed(ledger, d, 3, clock_boot()), LEASE_SEEN);
		pushes_add(&d->result.pushes, &with, &from, "q", 1, "x", 1);
		assert_int_equal(ledger_renewed(ledger, d, 1, clock_boot()), LEASE_SEEN);
		assert_int_equal(ledger_renewed(ledger, d, -3, clock_boot()), LEASE_SEEN);
		assert_int_equal(d->msg->cancel, CANCEL_NONE);
		assert_int_equal(ledger_renewed(ledger, d, 4, clock_boot()),
		    states[i] == DELIVERY_REFUSED ? LEASE_CANCELLED : LEASE_SEEN);
		assert_int_equal(d->state, states[i]);
	}
	assert_int_equal(d->msg->cancel, CANCEL_DEAD);
}

/* In a queue of batches the bytes of a message count until its result is confirmed. */
FIXTURE_TEST(test_bytes)
{
	struct delivery *d = add("c.1"), *small, *large;
	struct message *m;

	assert_int_equal(ledger_tally(ledger)->bytes, 0);
	ledger_move(ledger, d, DELIVERY_DONE);
	cfg.batch = 2;
	m = message_new(config, &cfg);
	m->token = xstrdup("c.2");
	m->len = 1000;
	small = ledger_add(ledger, m, 0, 0, clock_boot());
	m = message_new(config, &cfg);
	m->token = xstrdup("c.3");
	m->len = 3 * CONFIG_RUN_BYTES;
	large = ledger_add(ledger, m, 0, 0, clock_boot());
	assert_int_equal(ledger_tally(ledger)->bytes, 1000 + CONFIG_RUN_BYTES);
	ledger_move(ledger, small, DELIVERY_LOADING);
	ledger_move(ledger, large, DELIVERY_REFUSED);
	assert_int_equal(ledger_tally(ledger)->bytes, 1000 + CONFIG_RUN_BYTES);
	ledger_move(ledger, large, DELIVERY_DONE);
	assert_int_equal(ledger_tally(ledger)->bytes, 1000);
	m = message_new(config, &cfg);
	m->token = xstrdup("c.4");
	m->len = 3 * CONFIG_RUN_BYTES;
	m->too_large = true;
	(void)ledger_add(ledger, m, 0, 0, clock_boot());
	assert_int_equal(ledger_tally(ledger)->bytes, 1000);
	cfg.batch = 1;
}

/* If the payload is not here to be compared, an unclear answer counts as "held". */
FIXTURE_TEST(test_unclear)
{
	struct delivery *d = add_in(DELIVERY_LOADING);

	free(d->msg->payload);
	d->msg->payload = NULL;
	assert_int_equal(ledger_renewed(ledger, d, -4, 0), LEASE_SEEN);
	assert_int_equal(d->verdict.op, VERDICT_STALE);
	d = add("c.1");
	assert_int_equal(ledger_checked(ledger, d, true), LEASE_SEEN);
	assert_int_equal(d->verdict.op, VERDICT_RETURN);
	d = add_in(DELIVERY_IN_HAND);
	assert_int_equal(ledger_checked(ledger, d, true), LEASE_SEEN);
	assert_true(d->usurped);
	assert_int_equal(ledger_checked(ledger, d, false), LEASE_LOST);
}
