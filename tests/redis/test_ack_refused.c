/*
 * Kind "ack": messages while Redis refuses commands, finds keys of the wrong type, or
 * is a replica.
 */
#include "box.h"

/*
 * Redis refuses to settle: in this time the queue must settle nothing, and warn only
 * once.
 */
static void
is_refused(usec_t time)
{
	WAIT(&box, box.warnings > 0);
	box_turn(&box, time);
	assert_int_equal(total_settled(&box), 0);
	assert_int_equal(box.warnings, 1);
}

/* The queue renews the lease of a message whose result Redis refuses. */
FIXTURE_TEST(test_renewed_while_refused)
{
	double before;

	box.cfg->lease = 900 * MSEC;
	push("{\"id\":1}");
	box_take(&box, 1);
	box_set_slots(&box, 0);
	server_do(&server, "ACL SETUSER default -zrem");
	box_settle(&box, 0, VERDICT_ACK, false, 0);
	WAIT(&box, box.warnings > 0);
	before = atof(server_do(&server, "ZSCORE ordersBACKUP 1"));
	WAIT(&box, atof(server_do(&server, "ZSCORE ordersBACKUP 1")) > before + 1);
	assert_int_equal(total_settled(&box), 0);
	server_do(&server, "ACL SETUSER default +zrem");
	WAIT(&box, box.settled[SETTLED_OK] == 1);
	assert_int_equal(keys(), 0);
}

FIXTURE_TEST(test_script_flush)
{
	int i;

	box_start(&box, 3);
	for (i = 0; i < 30; i++) {
		server_do(&server, "SCRIPT FLUSH");
		push("x");
		WAIT(&box, box.n == 1);
		server_do(&server, "SCRIPT FLUSH");
		finish(&box, 0, i % 2 ? VERDICT_ACK : VERDICT_DEAD, false, 0, SETTLED_OK);
	}
	assert_int_equal(box.ups, 1);
	assert_int_equal(server_int(&server, "XLEN ordersDEAD"), 15);
}

FIXTURE_TEST(test_wrong_type)
{
	unsigned readies;

	box_start(&box, 1);
	server_do(&server, "SET orders x");
	WAIT(&box, box.fetched[FETCH_ERROR] > 0);
	assert_memory_equal(box.cause, "WRONGTYPE", 9);
	readies = box.readies;
	box_turn(&box, 300 * MSEC);
	assert_in_range(box.readies - readies, 0, 2);
	server_do(&server, "DEL orders");
	push("x");
	WAIT(&box, box.n == 1);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
}

/*
 * Only the arm script and the tick read this key, and it has the wrong type: the queue
 * warns, still delivers, and does not repeat its calls without a pause.
 */
FIXTURE_TEST(test_wrong_type_delayed)
{
	long long calls;

	server_do(&server, "SET ordersDELAYED x");
	box_start(&box, 1);
	WAIT(&box, box.warnings > 0);
	server_do(&server, "CONFIG RESETSTAT");
	box_turn(&box, 500 * MSEC);
	calls = atoll(strstr(server_do(&server, "INFO stats"), "total_commands_processed:") + 25);
	assert_in_range(calls, 0, 30);
	assert_in_range(box.warnings, 1, 2);
	push("x");
	WAIT(&box, box.n == 1);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	server_do(&server, "DEL ordersDELAYED");
}

FIXTURE_TEST(test_wrong_type_backup)
{
	push("{\"id\":1}");
	box_take(&box, 1);
	server_do(&server, "RENAME ordersBACKUP saved");
	server_do(&server, "SET ordersBACKUP x");
	box_settle(&box, 0, VERDICT_ACK, false, 0);
	is_refused(100 * MSEC);
	server_do(&server, "RENAME saved ordersBACKUP");
	WAIT(&box, box.settled[SETTLED_OK] == 1);
	assert_int_equal(keys(), 0);
}

FIXTURE_TEST(test_deferred)
{
	server_do(&server, "SET ordersDEAD x");
	push("{\"id\":1}");
	push("{\"id\":2}");
	box_take(&box, 2);
	finish(&box, 0, VERDICT_DEAD, true, 0, SETTLED_DEFERRED);
	finish(&box, 0, VERDICT_DEAD, true, 0, SETTLED_DEFERRED);
	assert_int_equal(box.warnings, 1);
	assert_non_null(strstr(box.warning, "WRONGTYPE"));
	assert_int_equal(server_int(&server, "ZCARD ordersRETRY"), 2);
}

/*
 * Results that Redis refuses keep their slots: the queue pops only for slots that are
 * free.
 */
FIXTURE_TEST(test_refused_keep_slots)
{
	unsigned i;

	for (i = 0; i < 20; i++)
		server_int(&server, "LPUSH orders {\"id\":%u}", i);
	box.cfg->concurrency = 4;
	box_take(&box, 4);
	server_do(&server, "ACL SETUSER default -hdel");
	/* The queue may send one pop together with the first result. */
	box_settle(&box, 0, VERDICT_ACK, false, 0);
	WAIT(&box, box.warnings == 1);
	while (box.n > 0) {
		box_settle(&box, 0, VERDICT_ACK, false, 0);
		box_turn(&box, 100 * MSEC);
	}
	box_turn(&box, 500 * MSEC);
	assert_in_range(box.delivered, 4, 5);
	assert_int_equal(box.warnings, 1);
	assert_non_null(strstr(box.warning, "settle: "));
	server_do(&server, "ACL SETUSER default +hdel");
	WAIT(&box, box.settled[SETTLED_OK] == box.delivered - 4 && box.n == 4);
	WAIT(&box, box.warnings == 2);
	assert_non_null(strstr(box.warning, "accepts"));
}

/* The same, where Redis refuses the whole call. */
FIXTURE_TEST(test_refused_calls_keep_slots)
{
	unsigned i;

	for (i = 0; i < 20; i++)
		server_int(&server, "LPUSH orders {\"id\":%u}", i);
	box.cfg->concurrency = 4;
	box_take(&box, 4);
	server_do(&server, "ACL SETUSER default -zcard");
	while (box.n > 0)
		box_settle(&box, 0, VERDICT_ACK, false, 0);
	box_turn(&box, 500 * MSEC);
	server_do(&server, "ACL SETUSER default +zcard");
	box_turn(&box, 10 * MSEC);
	assert_in_range(box.delivered, 4, 8);
	WAIT(&box, box.settled[SETTLED_OK] >= 4 && box.n == 4);
}

static int64_t
script_calls(void)
{
	const char *at = strstr(server_do(&server, "INFO commandstats"), "cmdstat_evalsha:calls=");

	return at != NULL ? atoll(at + strlen("cmdstat_evalsha:calls=")) : 0;
}

/*
 * A result that Redis refuses delays neither other results nor new messages.  It is sent
 * again after a pause.
 */
FIXTURE_TEST(test_refused_one)
{
	int64_t before;
	unsigned i;

	for (i = 0; i < 20; i++)
		server_int(&server, "LPUSH orders {\"id\":%u}", i);
	box.cfg->concurrency = 4;
	box_take(&box, 4);
	/* A retry needs HSTRLEN; an ack, and the pop of a new message, do not. */
	server_do(&server, "ACL SETUSER default -hstrlen");
	box_settle(&box, 0, VERDICT_RETRY, true, 0);
	for (i = 0; i < 12; i++) {
		WAIT(&box, box.n >= 1);
		box_settle(&box, 0, VERDICT_ACK, false, 0);
		WAIT(&box, box.settled[SETTLED_OK] == i + 1);
	}
	assert_int_equal(box.warnings, 1);
	before = script_calls();
	box_turn(&box, 500 * MSEC);
	assert_in_range(script_calls() - before, 0, 20);
	server_do(&server, "ACL SETUSER default +hstrlen");
	WAIT(&box, box.settled[SETTLED_OK] == 13);
	WAIT(&box, box.warnings == 2);
}

/*
 * A pop fails after it has taken a message: the queue asks Redis for it, and delivers it.
 */
FIXTURE_TEST(test_pop_fails_in_the_middle)
{
	box_start(&box, 1);
	server_do(&server, "ACL SETUSER default -ltrim");
	push("{\"id\":1}");
	WAIT(&box, box.fetched[FETCH_ERROR] > 0);
	box_turn(&box, 50 * MSEC);
	server_do(&server, "ACL SETUSER default +ltrim");
	WAIT(&box, box.n == 1);
	assert_int_equal(box.msgs[0]->crashes, 0);
	while (box.n > 0) {
		finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
		box_turn(&box, 100 * MSEC);
		assert_true(box.n == 0 || box.msgs[0]->crashes == 0);
	}
	assert_false(left_over());
}

/* After a pop has failed and a later one has succeeded, the queue reports a new error. */
FIXTURE_TEST(test_pop_error_over)
{
	box_start(&box, 0);
	push("{\"id\":1}");
	server_do(&server, "CONFIG SET min-replicas-to-write 1");
	box_set_slots(&box, 1);
	WAIT(&box, box.fetched[FETCH_ERROR] > 0);
	assert_memory_equal(box.cause, "NOREPLICAS", 10);
	server_do(&server, "CONFIG SET min-replicas-to-write 0");
	WAIT(&box, box.n == 1);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	box_turn(&box, 50 * MSEC);
	box_deafen(&box);
	push("{\"id\":2}");
	while (server_int(&server, "LLEN orders") > 0)
		loop_turn(box.loop, 10 * MSEC);
	server_do(&server, "ACL SETUSER default -hstrlen");
	box_cut(&box, &server);
	/* From mine.lua or a tick; Redis 8 has a text of its own. */
	WAIT(&box, strcasestr(box.warning, "hstrlen") != NULL);
	server_do(&server, "ACL SETUSER default +hstrlen");
	WAIT(&box, box.n == 1);
}

/*
 * Redis becomes a replica: rqd closes the connection, and keeps the result until it finds
 * a master.
 */
FIXTURE_TEST(test_readonly)
{
	push("{\"id\":1}");
	box_take(&box, 1);
	server_do(&server, "REPLICAOF 127.0.0.1 1");
	box_settle(&box, 0, VERDICT_ACK, false, 0);
	WAIT(&box, !conn_is_ready(box.conn));
	box_turn(&box, 100 * MSEC);
	assert_int_equal(total_settled(&box), 0);
	server_do(&server, "REPLICAOF NO ONE");
	WAIT(&box, box.settled[SETTLED_OK] == 1);
	WAIT(&box, keys() == 0);
}

FIXTURE_TEST(test_maxmemory)
{
	unsigned dead = 0;

	push_numbers(20);
	server_do(&server, "CONFIG SET maxmemory 100000");
	box_start(&box, 3);
	while (total_settled(&box) < 20) {
		if (box.n == 0) {
			loop_turn(box.loop, SEC);
			continue;
		}
		dead += box.n == 2;
		box_settle(&box, 0, box.n == 2 ? VERDICT_DEAD : VERDICT_ACK, false, 0);
	}
	/* A letter may take more memory than its message frees, and waits then. */
	assert_in_range(box.settled[SETTLED_DEFERRED], 0, dead);
	assert_int_equal(box.settled[SETTLED_OK], 20 - box.settled[SETTLED_DEFERRED]);
	server_do(&server, "CONFIG SET maxmemory 0");
}

FIXTURE_TEST(test_noreplicas)
{
	push("{\"id\":1}");
	box_take(&box, 1);
	server_do(&server, "CONFIG SET min-replicas-to-write 1");
	box_settle(&box, 0, VERDICT_RETRY, true, 0);
	is_refused(300 * MSEC);
	server_do(&server, "CONFIG SET min-replicas-to-write 0");
	WAIT(&box, box.settled[SETTLED_OK] == 1 && box.n == 1);
	assert_int_equal(box.msgs[0]->attempts, 1);
}

/*
 * Redis refuses a whole call: no result of it has acted.  So a message that is gone
 * afterwards was settled elsewhere.
 */
FIXTURE_TEST(test_refused_never_acted)
{
	push("{\"id\":1}");
	box_take(&box, 1);
	server_do(&server, "CONFIG SET min-replicas-to-write 1");
	box_settle(&box, 0, VERDICT_ACK, false, 0);
	is_refused(300 * MSEC);
	server_do(&server, "CONFIG SET min-replicas-to-write 0");
	server_do(&server, "ZREM ordersBACKUP 1");
	server_do(&server, "HDEL ordersCONTEXT 1");
	server_do(&server, "HDEL ordersDELIVERY 1");
	WAIT(&box, total_settled(&box) == 1);
	assert_int_equal(box.last_settled, SETTLED_STALE);
}
