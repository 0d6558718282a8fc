/*
 * Kind "ack": messages that Redis has lost.
 */
#include "box.h"

#include "queue/leased_private.h"

FIXTURE_TEST(test_rescue)
{
	push_numbers(5);
	box_take(&box, 5);
	server_kill(&server);
	box_turn(&box, 50 * MSEC);
	server_again(&server);
	WAIT(&box, box.ups == 2);
	box_turn(&box, 50 * MSEC);
	assert_int_equal(box.losts, 0);
	box_set_slots(&box, 0);
	box_settle_each_way(&box);
	WAIT(&box, total_settled(&box) == 5);
	assert_int_equal(box.settled[SETTLED_OK], 1);
	assert_int_equal(box.settled[SETTLED_RESCUED], 4);
	assert_int_equal(server_int(&server, "XLEN ordersDEAD"), 1);
	assert_int_equal(server_int(&server, "ZCARD ordersRETRY"), 3);
	assert_memory_equal(server_do(&server, "HGET ordersDELIVERY 4"), "0 0 - ", 6);
	assert_string_equal(server_do(&server, "HGET ordersCONTEXT 1"), "{\"id\":1}");
	assert_memory_equal(server_do(&server, "HGET ordersDELIVERY 1"), "1 0 - ", 6);
	assert_memory_equal(server_do(&server, "HGET ordersDELIVERY 2"), "0 0 - ", 6);
}

/*
 * The rescue script gives a reply that rqd does not know: the queue warns, keeps the
 * message, and tries again.  Nobody else has the message.
 */
FIXTURE_TEST(test_rescue_nonsense)
{
	static const struct script nonsense = { "rescue", "return 'what'", 13, "" };
	const struct script **rescue, *saved;

	push("{\"id\":1}");
	box_take(&box, 1);
	server_do(&server, "FLUSHALL");
	rescue = &((struct leased *)box.queue)->script[LEASED_RESCUE];
	saved = *rescue;
	*rescue = &nonsense;
	box_settle(&box, 0, VERDICT_RETRY, true, HOUR);
	WAIT(&box, box.warnings == 1);
	*rescue = saved;
	assert_int_equal(total_settled(&box), 0);
	WAIT(&box, box.settled[SETTLED_RESCUED] == 1);
	assert_int_equal(server_int(&server, "ZCARD ordersRETRY"), 1);
}

/*
 * Redis loses messages without a reconnect, which only an operator can have caused: the
 * queue puts back a message that is not done.
 */
FIXTURE_TEST(test_flushall)
{
	push("{\"id\":1}");
	push("{\"id\":2}");
	box_take(&box, 2);
	server_do(&server, "FLUSHALL");
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	finish(&box, 0, VERDICT_RETRY, true, 0, SETTLED_RESCUED);
	WAIT(&box, box.n == 1);
	assert_string_equal(box.msgs[0]->id, "2");
	assert_int_equal(box.msgs[0]->attempts, 1);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	assert_int_equal(keys(), 0);
}

/*
 * A reload has given the queue another name and kept its key: the daemon drains the old
 * queue while the new one pops.  Calls of one queue say nothing about messages of the
 * other.
 */
FIXTURE_TEST(test_renamed)
{
	static const char *const parts[] = { "BACKUP", "CONTEXT", "DELIVERY" };
	struct box new;
	size_t i;

	push("{\"id\":1}");
	push("{\"id\":2}");
	box_take(&box, 2);
	box_set_slots(&box, 0);
	box_init(&new, &server, "a");
	memcpy(new.instance, box.instance, sizeof(new.instance));
	box_start(&new, 2);
	server_do(&server, "FLUSHALL");
	push("{\"id\":3}");
	WAIT(&new, new.n == 1);
	for (i = 0; i < ARRAY_LEN(parts); i++)
		server_int(&server, "COPY orders%s saved%s", parts[i], parts[i]);
	push("{\"id\":4}");
	WAIT(&new, new.n == 2);
	/* Redis goes back to its state before the last pop. */
	for (i = 0; i < ARRAY_LEN(parts); i++)
		server_do(&server, "RENAME saved%s orders%s", parts[i], parts[i]);
	finish(&box, 0, VERDICT_RETRY, true, HOUR, SETTLED_RESCUED);
	finish(&new, 1, VERDICT_RETRY, true, HOUR, SETTLED_RESCUED);
	assert_int_equal(server_int(&server, "ZCARD ordersRETRY"), 2);
	/*
	 * After its last message the old queue deletes the record of its own pops, and no
	 * other.
	 */
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	WAIT(&box, server_int(&server, "HLEN ordersDELIVERY") == 4);
	box_set_slots(&new, 0);
	finish(&new, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	WAIT(&new, server_int(&server, "HLEN ordersDELIVERY") == 2);
	box_done(&new);
}

/*
 * Redis has lost a message, and another message has its tag: the queue rescues its
 * message under another tag.
 */
FIXTURE_TEST(test_usurped)
{
	box.cfg->lease = unit_time(300 * MSEC);
	push("{\"id\":1}");
	box_take(&box, 1);
	server_kill(&server);
	server_again(&server);
	server_do(&server, "ZADD ordersBACKUP 1e10 1");
	server_do(&server, "HSET ordersCONTEXT 1 other");
	server_do(&server, "HSET ordersDELIVERY 1 %s", "0 0 b.1.1 1.5 1");
	WAIT(&box, box.ups == 2);
	box_turn(&box, unit_time(500 * MSEC));
	assert_int_equal(box.losts, 0);
	box_set_slots(&box, 0);
	finish(&box, 0, VERDICT_RETRY, true, HOUR, SETTLED_RESCUED);
	assert_int_equal(server_int(&server, "HLEN ordersCONTEXT"), 2);
	assert_string_equal(server_do(&server, "HGET ordersCONTEXT 1"), "other");
	assert_int_equal(server_int(&server, "ZCARD ordersRETRY"), 1);
}

/* The same without a reconnect: only the payload shows that it is another message. */
FIXTURE_TEST(test_usurped_after_flushall)
{
	box.cfg->lease = unit_time(300 * MSEC);
	push("{\"id\":1}");
	push("{\"id\":2}");
	box_take(&box, 2);
	server_do(&server, "FLUSHALL");
	for (int i = 1; i <= 2; i++) {
		server_do(&server, "ZADD ordersBACKUP 1e10 %d", i);
		server_do(&server, "HSET ordersCONTEXT %d other", i);
		server_do(&server, "HSET ordersDELIVERY %d %s", i, "0 0 b.1.1 1.5 1");
	}
	box_turn(&box, unit_time(500 * MSEC));
	assert_int_equal(box.losts, 0);
	box_set_slots(&box, 0);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	finish(&box, 0, VERDICT_RETRY, true, HOUR, SETTLED_RESCUED);
	assert_int_equal(server_int(&server, "HLEN ordersCONTEXT"), 3);
	assert_int_equal(server_int(&server, "ZCARD ordersRETRY"), 1);
}

/*
 * Redis has lost a message, and another daemon now runs the same message: the queue
 * reports it as lost, and its result as stale.
 */
FIXTURE_TEST(test_usurped_by_itself)
{
	push("{\"id\":1}");
	box_take(&box, 1);
	server_kill(&server);
	server_again(&server);
	server_do(&server, "ZADD ordersBACKUP 1e10 1");
	server_do(&server, "HSET ordersCONTEXT 1 {\"id\":1}");
	server_do(&server, "HSET ordersDELIVERY 1 %s", "0 0 b.1.1 1.5 1");
	WAIT(&box, box.losts == 1);
	assert_ptr_equal(box.lost, box.msgs[0]);
	box_set_slots(&box, 0);
	finish(&box, 0, VERDICT_STALE, false, 0, SETTLED_STALE);
	assert_int_equal(server_int(&server, "HLEN ordersCONTEXT"), 1);
}
