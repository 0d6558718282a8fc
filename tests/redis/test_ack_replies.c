/*
 * Kind "ack": replies that say what no script of ours says, and what is left of them.
 */
#include "box.h"

#define TEST(name)	cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

/* Nobody else has it: an answer that the script does not give ends nothing. */
static void
test_rescue_nonsense(void **state)
{
	struct script *rescue = script_find("rescue"), saved = *rescue;

	(void)state;
	push("{\"id\":1}");
	box_start(&box, 1);
	WAIT(&box, box.n == 1);
	server_do(&server, "FLUSHALL");
	*rescue = (struct script){ "rescue", "return 'what'", 13, "" };
	box_settle(&box, 0, VERDICT_RETRY, true, HOUR);
	WAIT(&box, box.warnings == 1);
	*rescue = saved;
	assert_int_equal(total_settled(&box), 0);
	WAIT(&box, box.settled[SETTLED_RESCUED] == 1);
	assert_int_equal(server_int(&server, "ZCARD ordersRETRY"), 1);
}

/* What a pop was refused for once does not hide what is wrong later. */
static void
test_pop_error_over(void **state)
{
	(void)state;
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
	WAIT(&box, strncmp(box.warning, "mine: ", 6) == 0);
	server_do(&server, "ACL SETUSER default +hstrlen");
	WAIT(&box, box.n == 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_rescue_nonsense), TEST(test_pop_error_over),
	};

	unit_seed();
	return cmocka_run_group_tests_name("ack_replies", tests, NULL, NULL);
}
