/*
 * Schedules: their reactions to Redis' answers, and what a reload keeps.
 */
#include "box.h"

#include "engine/schedule.h"
#include "policy/tick.h"
#include "redis/script.h"

/*
 * In place of schedule.lua: until a key "truth" exists it replies what the real script
 * never does.
 */
static const char text[] = "if redis.call('EXISTS', 'truth') == 0 then return {'what', '1'} end\n"
    "redis.call('SET', 'grace', ARGV[4])\n"
    "return {'done', redis.call('TIME')[1], 1}";

const struct script script_table[] = {
	{ "schedule", text, sizeof(text) - 1, "" },
	{ NULL, NULL, 0, "" }
};

/* A reply that the script does not give settles nothing: the tick is asked for again. */
TEST_WITH(test_nonsense, fixture_setup, fixture_teardown)
{
	struct config *config = box.config;
	struct schedules *all;

	config->schedules = xreallocarray(config->schedules, 2, sizeof(*config->schedules));
	config->schedules[0] = xcalloc(1, sizeof(**config->schedules));
	config->schedules[1] = NULL;
	config->nschedules = 1;
	*config->schedules[0] = (struct schedule_config){
		.name = xstrdup("hourly"), .queue = xstrdup("orders"), .message = xstrdup("now"),
		.every = HOUR, .cron = xstrdup(""),
	};
	conn_start(box.conn);
	WAIT(&box, box.ups == 1);
	all = schedules_new(&box.env, config);
	schedules_conn_up(all);
	WAIT(&box, schedules_get(all, 0).next != TICK_NEVER);
	box_turn(&box, 100 * MSEC);
	assert_int_equal(schedules_get(all, 0).last, TICK_NEVER);
	server_do(&server, "SET truth 1");
	WAIT(&box, schedules_get(all, 0).last != TICK_NEVER);
	assert_int_equal(atoi(server_do(&server, "GET grace")), TICK_GRACE_FRESH);

	/* A reload while Redis is away: the daemon was there when the next tick fell due. */
	schedules_reconfigure(all, config);
	assert_int_equal(schedules_get(all, 0).last, TICK_NEVER);
	WAIT(&box, schedules_get(all, 0).last != TICK_NEVER);
	assert_int_equal(atoi(server_do(&server, "GET grace")), TICK_GRACE_MAX);
	schedules_free(all);
}
