/*
 * Large payloads: over a slow link, with lost connections, and from a server that does not
 * send them.
 */
#include "box.h"

#include "link.h"

#define LARGE	(2 * 1024 * 1024)

static struct link slow;

static int
setup(void **state)
{
	return fixture_setup(state);
}

static int
teardown(void **state)
{
	int rc = fixture_teardown(state);

	link_stop(&slow);
	return rc;
}

#define QUEUE_TEST(name)	TEST_WITH(name, setup, teardown)

/* Connects the box over a link of 1 MB/s (in the long form: a quarter of that). */
static void
by_link(void)
{
	size_t bytes = (size_t)(20480 / unit_time(1));

	link_start(&slow, server.path, bytes, bytes, 20);
	free(box.config->redis.servers[0]);
	box.config->redis.servers[0] = xstrdup(slow.uri);
}

/*
 * Pushes a payload of len bytes, which begins with the letter; each other byte follows
 * from its place.
 */
static void
push_large(char letter, size_t len)
{
	char *p = xmalloc(len);

	for (size_t i = 0; i < len; i++)
		p[i] = (char)(letter + (char)(i % 251));
	p[0] = letter;
	server_int(&server, "LPUSH orders %b", p, len);
	free(p);
}

static void
assert_large(const struct message *m, char letter, size_t len)
{
	assert_int_equal(m->len, len);
	assert_non_null(m->payload);
	assert_false(m->too_large);
	assert_int_equal(m->payload[0], letter);
	for (size_t i = 1; i < len; i++) {
		if (m->payload[i] != (char)(letter + (char)(i % 251)))
			fail_msg("byte %zu differs", i);
	}
}

/* A large message takes longer than the timeout and a third of the lease: it comes once. */
QUEUE_TEST(test_slow)
{
	usec_t begin;

	by_link();
	box.config->redis.timeout = unit_time(SEC);
	box.cfg->lease = box.cfg->foreign_timeout = unit_time(3 * SEC);
	box_start(&box, 0);
	push_large('a', LARGE);
	push("small");
	begin = clock_mono();
	box_set_slots(&box, 2);
	WAIT(&box, box.n == 2);
	assert_true(clock_mono() - begin > unit_time(1500 * MSEC));
	assert_large(box.msgs[0], 'a', LARGE);
	assert_int_equal(box.msgs[0]->crashes, 0);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	assert_int_equal(box.ups, 1);
	assert_int_equal(box.delivered, 2);
	assert_int_equal(box.warnings, 0);
	assert_int_equal(keys(), 0);
	WAIT(&box, server_int(&server, "EXISTS ordersSTATS") == 1);
}

/* A large message that is under way occupies a slot, and messages come in their order. */
QUEUE_TEST(test_slots)
{
	by_link();
	box_start(&box, 1);
	push_large('a', LARGE / 4);
	push_large('b', LARGE / 4);
	push("small");
	WAIT(&box, server_int(&server, "ZCARD ordersBACKUP") == 1);
	while (box.n == 0) {
		assert_int_equal(server_int(&server, "LLEN orders"), 2);
		loop_turn(box.loop, 5 * MSEC);
	}
	assert_large(box.msgs[0], 'a', LARGE / 4);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	WAIT(&box, box.n == 1);
	assert_large(box.msgs[0], 'b', LARGE / 4);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	WAIT(&box, box.n == 1);
	assert_int_equal(box.msgs[0]->len, 5);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	assert_int_equal(box.delivered, 3);
}

/* All connections end while a large message arrives: it comes again, and nothing is counted. */
QUEUE_TEST(test_lost)
{
	by_link();
	box_start(&box, 0);
	push_large('a', LARGE / 4);
	box_set_slots(&box, 1);
	WAIT(&box, server_int(&server, "ZCARD ordersBACKUP") == 1);
	box_turn(&box, 200 * MSEC);
	server_int(&server, "CLIENT KILL TYPE normal SKIPME yes");
	WAIT(&box, box.ups == 2);
	WAIT(&box, box.n == 1);
	assert_large(box.msgs[0], 'a', LARGE / 4);
	finish(&box, 0, VERDICT_RETRY, true, 0, SETTLED_OK);
	WAIT(&box, box.n == 1);
	assert_large(box.msgs[0], 'a', LARGE / 4);
	assert_int_equal(box.msgs[0]->attempts, 1);
	assert_int_equal(box.msgs[0]->crashes, 0);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	assert_int_equal(box.delivered, 2);
	assert_int_equal(box.warnings, 0);
}

/*
 * A message exceeds client-output-buffer-limit, so that its reply ends the connection: the
 * others are delivered, nothing of them is counted, and this one becomes a dead letter.
 */
QUEUE_TEST(test_limit)
{
	unsigned small, at;

	server_do(&server, "CONFIG SET client-output-buffer-limit %s", "normal 2000000 0 0");
	box.cfg->max_crashes = 3;
	box_start(&box, 0);
	push_large('a', 2 * LARGE);
	for (unsigned i = 0; i < 20; i++)
		push("small");
	push_large('b', 500000);
	box_set_slots(&box, 4);
	for (small = 0; small < 21; small++) {
		WAIT(&box, box.n > 1 || (box.n == 1 && box.msgs[0]->payload != NULL));
		at = box.msgs[0]->payload == NULL ? 1 : 0;
		assert_int_equal(box.msgs[at]->crashes, 0);
		assert_true(box.msgs[at]->len <= 500000);
		finish(&box, at, VERDICT_ACK, false, 0, SETTLED_OK);
	}
	WAIT(&box, box.n == 1);
	assert_null(box.msgs[0]->payload);
	assert_false(box.msgs[0]->too_large);
	assert_int_equal(box.msgs[0]->crashes, 4);
	assert_int_equal(box.msgs[0]->attempts, 0);
	assert_in_range(box.ups, 5, 20);
	finish(&box, 0, VERDICT_DEAD, false, 0, SETTLED_OK);
	assert_int_equal(server_int(&server, "XLEN ordersDEAD"), 1);
	assert_int_equal(box.warnings, 1);
	assert_non_null(strstr(box.warning, "client-output-buffer-limit"));
	assert_int_equal(server_int(&server, "EXISTS orders ordersBACKUP ordersRETRY"), 0);
}

/* One reply carries less than the limit of 2 MB, however many messages are due. */
QUEUE_TEST(test_sum)
{
	server_do(&server, "CONFIG SET client-output-buffer-limit %s", "normal 2000000 0 0");
	box_start(&box, 0);
	for (unsigned i = 0; i < 100; i++)
		push_large('a', 65536);
	box_set_slots(&box, 200);
	WAIT(&box, box.n == 100);
	assert_int_equal(box.ups, 1);
	while (box.n > 0)
		finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
}

/* When the queue is closed, it returns a large message that is under way. */
QUEUE_TEST(test_closed)
{
	by_link();
	box_start(&box, 1);
	push_large('a', LARGE);
	WAIT(&box, server_int(&server, "ZCARD ordersBACKUP") == 1);
	box_turn(&box, 100 * MSEC);
	box_set_slots(&box, 0);
	queue_close(box.queue);
	WAIT(&box, box.closes == 1);
	assert_int_equal(server_int(&server, "ZCARD ordersBACKUP"), 0);
	assert_int_equal(server_int(&server, "ZCARD ordersRETRY"), 1);
	assert_int_equal(box.delivered, 0);
}
