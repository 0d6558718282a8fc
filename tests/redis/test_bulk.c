/*
 * Large payloads: over a slow link, beside small messages, with lost connections, and
 * from a server that refuses to send them.
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

/* While a large message arrives, small ones are delivered; the large one comes once. */
QUEUE_TEST(test_slow)
{
	usec_t begin;

	by_link();
	box.config->redis.timeout = unit_time(SEC);
	box.cfg->lease = box.cfg->foreign_timeout = unit_time(3 * SEC);
	box_start(&box, 0);
	push_large('a', LARGE);
	for (unsigned i = 0; i < 20; i++)
		push("small");
	begin = clock_mono();
	box_set_slots(&box, 2);
	for (unsigned i = 0; i < 20; i++) {
		WAIT(&box, box.n == 1);
		assert_int_equal(box.msgs[0]->len, 5);
		finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	}
	assert_int_equal(server_int(&server, "ZCARD ordersBACKUP"), 1);
	WAIT(&box, box.n == 1);
	assert_true(clock_mono() - begin > unit_time(1500 * MSEC));
	assert_large(box.msgs[0], 'a', LARGE);
	assert_int_equal(box.msgs[0]->crashes, 0);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	assert_int_equal(box.ups, 1);
	assert_int_equal(box.delivered, 21);
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

/*
 * All connections end while a large message arrives: it is delivered all the same.  A
 * large message is also delivered if its pop's reply was lost.
 */
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
	/* now the reply of the pop is lost */
	box_set_slots(&box, 0);
	box_turn(&box, 50 * MSEC);
	push_large('b', LARGE / 4);
	box_deafen(&box);
	box_set_slots(&box, 1);
	WAIT(&box, server_int(&server, "ZCARD ordersBACKUP") == 1);
	box_cut(&box, &server);
	WAIT(&box, box.n == 1);
	assert_large(box.msgs[0], 'b', LARGE / 4);
	assert_int_equal(box.msgs[0]->crashes, 0);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	assert_int_equal(box.delivered, 3);
	assert_int_equal(box.warnings, 0);
}

/* Redis loses a large message: the queue puts its copy back. */
QUEUE_TEST(test_rescue)
{
	by_link();
	box.config->redis.timeout = SEC;
	box_start(&box, 1);
	push_large('a', LARGE);
	WAIT(&box, box.n == 1);
	server_do(&server, "FLUSHALL");
	finish(&box, 0, VERDICT_RETRY, true, 0, SETTLED_RESCUED);
	WAIT(&box, box.n == 1);
	assert_large(box.msgs[0], 'a', LARGE);
	assert_int_equal(box.msgs[0]->attempts, 1);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	assert_int_equal(box.ups, 1);
	assert_int_equal(box.delivered, 2);
}

/* Closes the bulk connection; Redis refuses another one. */
static void
refuse_bulk(void)
{
	const char *line = server_do(&server, "CLIENT LIST"), *at = strstr(line, "name=a-bulk ");
	long long id;

	assert_non_null(at);
	while (at > line && at[-1] != '\n')
		at--;
	assert_int_equal(sscanf(at, "id=%lld", &id), 1);
	server_do(&server, "CONFIG SET maxclients 3");
	assert_int_equal(server_int(&server, "CLIENT KILL ID %lld", id), 1);
}

/*
 * Redis refuses the bulk connection: the queue puts the copy back over its first
 * connection, and goes on.
 */
QUEUE_TEST(test_rescue_refused)
{
	box.config->redis.timeout = SEC;
	box_start(&box, 2);
	push_large('a', LARGE);
	WAIT(&box, box.n == 1);
	server_do(&server, "FLUSHALL");
	refuse_bulk();
	finish(&box, 0, VERDICT_RETRY, true, HOUR, SETTLED_RESCUED);
	assert_int_equal(box.warnings, 1);
	assert_non_null(strstr(box.warning, "max number of clients"));
	push("small");
	WAIT(&box, box.n == 1);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	assert_int_equal(box.ups, 1);
	assert_int_equal(server_int(&server, "ZCARD ordersRETRY"), 1);
	server_do(&server, "CONFIG SET maxclients 100");
	push_large('b', LARGE);
	WAIT(&box, box.n == 1);
	assert_large(box.msgs[0], 'b', LARGE);
}

/*
 * The bulk connection ends while the copy is sent, so that the call may have acted, and
 * Redis refuses another one: the queue puts the message back once.
 */
QUEUE_TEST(test_rescue_lost_and_refused)
{
	by_link();
	box.config->redis.timeout = SEC;
	box_start(&box, 2);
	push_large('a', LARGE / 4);
	WAIT(&box, box.n == 1);
	server_do(&server, "FLUSHALL");
	box_settle(&box, 0, VERDICT_RETRY, true, HOUR);
	box_turn(&box, 200 * MSEC);
	refuse_bulk();
	WAIT(&box, box.settled[SETTLED_RESCUED] == 1);
	assert_int_equal(server_int(&server, "ZCARD ordersRETRY"), 1);
	push("small");
	WAIT(&box, box.n == 1);
	assert_int_equal(box.ups, 1);
}

/*
 * A message exceeds client-output-buffer-limit: the queue makes this one due later, and
 * other messages are delivered.
 */
QUEUE_TEST(test_limit)
{
	long long due;

	server_do(&server, "CONFIG SET client-output-buffer-limit %s", "normal 1000000 0 0");
	box_start(&box, 2);
	push_large('a', LARGE);
	for (unsigned i = 0; i < 10; i++) {
		push("small");
		WAIT(&box, box.n == 1);
		finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	}
	push_large('b', 500000);
	WAIT(&box, box.n == 1);
	assert_large(box.msgs[0], 'b', 500000);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	WAIT(&box, box.warnings == 1);
	assert_non_null(strstr(box.warning, "client-output-buffer-limit"));
	WAIT(&box, server_int(&server, "ZCARD ordersRETRY") == 1);
	due = server_int(&server, "EVAL %s 1 ordersRETRY", "local e = redis.call('ZRANGE', KEYS[1],"
	    " 0, 0, 'WITHSCORES') return math.floor(e[2] - redis.call('TIME')[1])");
	assert_in_range(due, 0, 2);
	assert_int_equal(box.ups, 1);
	assert_int_equal(box.delivered, 11);
	assert_int_equal(box.n, 0);
	/* without the limit it is delivered */
	server_do(&server, "CONFIG SET client-output-buffer-limit %s", "normal 0 0 0");
	WAIT(&box, box.n == 1);
	assert_large(box.msgs[0], 'a', LARGE);
	assert_int_equal(box.msgs[0]->attempts, 0);
	assert_int_equal(box.msgs[0]->crashes, 0);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	assert_int_equal(box.warnings, 1);
}

/*
 * If the message that is made due later is the last one, the engine learns that the queue
 * is empty.
 */
QUEUE_TEST(test_limit_empty)
{
	unsigned ticks;

	server_do(&server, "CONFIG SET client-output-buffer-limit %s", "normal 1000000 0 0");
	box_start(&box, 2);
	push_large('a', LARGE);
	WAIT(&box, box.warnings == 1);
	assert_false(queue_is_empty(box.queue));
	ticks = box.ticks;
	WAIT(&box, queue_is_empty(box.queue));
	assert_true(box.ticks > ticks);
	assert_int_equal(server_int(&server, "ZCARD ordersRETRY"), 1);
}

/* Redis allows no further connection: a large message waits, and the queue warns once. */
QUEUE_TEST(test_refused)
{
	box.config->redis.timeout = SEC;
	box_start(&box, 1);
	server_do(&server, "CONFIG SET maxclients 3");
	push_large('a', LARGE);
	WAIT(&box, box.warnings == 1);
	assert_non_null(strstr(box.warning, "max number of clients"));
	assert_int_equal(box.n, 0);
	assert_int_equal(server_int(&server, "ZCARD ordersBACKUP"), 1);
	server_do(&server, "CONFIG SET maxclients 100");
	WAIT(&box, box.n == 1);
	assert_large(box.msgs[0], 'a', LARGE);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	assert_int_equal(box.ups, 1);
	assert_int_equal(box.warnings, 1);
}

/*
 * While a large message waits for a connection, other messages use slots that become
 * free.
 */
QUEUE_TEST(test_refused_more_slots)
{
	box.config->redis.timeout = SEC;
	box_start(&box, 1);
	server_do(&server, "CONFIG SET maxclients 3");
	push_large('a', LARGE);
	WAIT(&box, server_int(&server, "ZCARD ordersBACKUP") == 1);
	push("small");
	box_turn(&box, 100 * MSEC);
	assert_int_equal(box.n, 0);
	box_set_slots(&box, 2);
	WAIT(&box, box.n == 1);
	assert_int_equal(box.msgs[0]->len, 5);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	server_do(&server, "CONFIG SET maxclients 100");
	WAIT(&box, box.n == 1);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
}

/* One reply carries less than the limit of 1 MB, however many messages are due. */
QUEUE_TEST(test_sum)
{
	server_do(&server, "CONFIG SET client-output-buffer-limit %s", "normal 1000000 0 0");
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

/*
 * A large message gets another token while it is under way: the queue does not deliver
 * it, and its slot is free again.
 */
QUEUE_TEST(test_taken)
{
	by_link();
	box.cfg->lease = box.cfg->foreign_timeout = 3 * SEC;
	box_start(&box, 1);
	push_large('a', LARGE);
	WAIT(&box, server_int(&server, "ZCARD ordersBACKUP") == 1);
	server_do(&server, "EVAL %s 1 ordersDELIVERY", "local t = redis.call('HKEYS', KEYS[1])[1]"
	    " return redis.call('HSET', KEYS[1], t, '0 0 other.1.1 1 1')");
	WAIT(&box, server_int(&server, "LLEN orders") == 0 &&
	    !queue_is_empty(box.queue));
	push("small");
	WAIT(&box, box.n == 1);
	assert_int_equal(box.msgs[0]->len, 5);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	assert_int_equal(box.delivered, 1);
	assert_int_equal(server_int(&server, "HLEN ordersCONTEXT"), 1);
}
