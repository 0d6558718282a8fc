/* The loader: large payloads that arrive or fail, and messages that are put aside. */
#include "unit.h"

#include "ledger_fixture.h"
#include "queue/loader.h"

#define BACKOFF		(10 * SEC)

static struct loader	*l;
static unsigned		 asks;

static void
renew(void *arg UNUSED)
{
}

static void
ask(void *arg UNUSED)
{
	asks++;
}

static int
setup(void **state UNUSED)
{
	ledger_setup(renew);
	asks = 0;
	l = loader_new(loop, ledger, ask, NULL);
	return 0;
}

static int
teardown(void **state UNUSED)
{
	loader_free(l);
	ledger_free(ledger);
	ledger_teardown();
	return 0;
}

#define FIXTURE_TEST(name)	TEST_WITH(name, setup, teardown)

static struct delivery *
add_large(const char *token)
{
	struct delivery *d = add(token);

	free(d->msg->payload);
	d->msg->payload = NULL;
	d->msg->len = 100 * 1024;
	loader_add(l, d);
	assert_int_equal(d->state, DELIVERY_LOADING);
	return d;
}

static bool
load(struct delivery *d)
{
	return loader_loaded(l, d, xstrdup("payload"), 7, free_payload);
}

/* The payload did not come; returns whether the message was put aside. */
static bool
fails(struct delivery *d)
{
	struct aside aside = loader_failed(l, d, true, "it broke", BACKOFF);
	bool told = aside.text != NULL;

	if (told)
		assert_non_null(strstr(aside.text, "it broke"));
	free(aside.text);
	return told;
}

FIXTURE_TEST(test_loaded)
{
	struct delivery *d = add_large("c.1");

	assert_null(loader_next(l));		/* loader_add() said to ask for it already */
	assert_true(load(d));
	assert_int_equal(d->state, DELIVERY_FOUND);
	assert_string_equal(d->msg->payload, "payload");
	assert_int_equal(d->msg->len, 7);
	assert_null(loader_next(l));
}

/* Payloads that did not come are asked for again after a backoff, each once. */
FIXTURE_TEST(test_again)
{
	struct delivery *d = add_large("c.1"), *e = add_large("c.2"), *f = add_large("c.3");

	assert_false(fails(d));
	assert_false(fails(f));
	loop_run_for(loop, 50 * MSEC - 1);
	assert_int_equal(asks, 0);
	loop_run_for(loop, 150 * MSEC);
	assert_int_equal(asks, 1);
	assert_ptr_equal(loader_next(l), d);
	assert_ptr_equal(loader_next(l), f);
	assert_null(loader_next(l));
	assert_true(load(e));
	assert_true(load(d));
	assert_true(load(f));
	loop_run_for(loop, HOUR);
	assert_int_equal(asks, 1);
}

/* A request that was not sent is not an attempt; its backoff has a bound. */
FIXTURE_TEST(test_not_sent)
{
	struct delivery *d = add_large("c.1");
	unsigned i;

	for (i = 1; i <= 20; i++) {
		assert_null(loader_failed(l, d, false, "", BACKOFF).text);
		loop_run_for(loop, BACKOFF);
		assert_int_equal(asks, i);
		assert_ptr_equal(loader_next(l), d);
	}
	assert_null(loader_failed(l, d, false, "", BACKOFF).text);
	loop_run_for(loop, BACKOFF / 2 - 1);
	assert_int_equal(asks, 20);
	assert_true(load(d));
	assert_int_equal(d->state, DELIVERY_FOUND);
}

static void
put_aside(usec_t delay, bool news)
{
	struct delivery *d = add_large("c.1");
	struct aside aside;

	assert_false(fails(d));
	assert_false(fails(d));
	aside = loader_failed(l, d, true, "why", BACKOFF);
	assert_non_null(aside.text);
	assert_int_equal(aside.news, news);
	free(aside.text);
	assert_int_equal(d->state, DELIVERY_KEPT);
	assert_int_equal(d->verdict.op, VERDICT_RETRY);
	assert_int_equal(d->verdict.reason, REASON_TOO_LARGE);
	assert_false(d->verdict.failed);
	assert_int_equal(d->verdict.delay, delay);
	assert_false(d->from_engine);
	ledger_move(ledger, d, DELIVERY_DONE);
}

/*
 * A message is put aside after three attempts.  The delay grows each time until a payload
 * has come; the log gets it again (news) after ten minutes.
 */
FIXTURE_TEST(test_aside)
{
	put_aside(SEC, false);
	put_aside(2 * SEC, false);
	put_aside(4 * SEC, false);
	put_aside(8 * SEC, false);
	put_aside(16 * SEC, false);
	put_aside(32 * SEC, false);
	put_aside(MINUTE, false);
	put_aside(MINUTE, false);
	assert_false(load(add_large("c.2")));
	put_aside(SEC, false);
	loop_run_for(loop, 10 * MINUTE);
	put_aside(2 * SEC, false);
	loop_run_for(loop, 10 * MINUTE + 1);
	put_aside(4 * SEC, true);
}
