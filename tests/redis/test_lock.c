/*
 * The lock: its calls to Redis.  tests/lua/scripts.steps tests its script; daemon/71 and
 * fault/35 test the commands that it protects.
 */
#include "harness.h"

#include "rqctl/lock.h"

static struct server	server;
static struct loop	*loop;
static unsigned		held, released;
static enum lock_release how;

static void
lock_held(void *arg UNUSED)
{
	held++;
}

static void
lock_refused(enum lock_refusal r UNUSED, enum reply_error e UNUSED, const char *text,
    void *arg UNUSED)
{
	fail_msg("refused: %s", text);
}

static void
lock_released(enum lock_release r, void *arg UNUSED)
{
	released++;
	how = r;
}

/* Turns the loop until a counter has this value. */
static void
turn_until(const unsigned *counter, unsigned n)
{
	usec_t end = clock_mono() + WAIT_MAX;

	while (*counter < n && clock_mono() < end)
		loop_turn(loop, 20 * MSEC);
	assert_int_equal(*counter, n);
}

/* Makes a lock, and waits until it is held. */
static struct lock *
take(const struct redis_options *redis)
{
	static const struct lock_events events = {
		.held = lock_held, .refused = lock_refused, .released = lock_released
	};
	const struct lock_options options = {
		.name = "door", .who = "here 1", .ttl = MINUTE, .grace = SEC,
	};
	struct lock *l = lock_new(loop, redis, &options, &events, NULL);

	turn_until(&held, held + 1);
	return l;
}

/* How many scripts Redis was asked to run since CONFIG RESETSTAT. */
static int
scripts_run(void)
{
	const char *at = strstr(server_do(&server, "INFO commandstats"), "evalsha:calls=");
	int n = 0;

	if (at != NULL)
		assert_int_equal(sscanf(at, "evalsha:calls=%d", &n), 1);
	return n;
}

/* A second release, as after a second signal, sends nothing. */
TEST(test_released_twice)
{
	char *servers[] = { NULL, NULL };
	char empty[] = "";
	struct redis_options redis = {
		.servers = servers, .timeout = 5 * SEC, .username = empty, .password_file = empty,
	};
	struct lock *l;

	server_start(&server, NULL);
	loop = loop_new();
	servers[0] = server.uri;
	l = take(&redis);
	lock_release(l);
	turn_until(&released, 1);	/* from now on Redis knows the scripts */
	lock_free(l);
	l = take(&redis);
	server_do(&server, "CONFIG RESETSTAT");
	lock_release(l);
	lock_release(l);
	turn_until(&released, 2);
	assert_int_equal(how, LOCK_RELEASED);
	assert_int_equal(scripts_run(), 1);
	assert_int_equal(server_int(&server, "EXISTS Lock:door"), 0);
	lock_free(l);
	loop_free(loop);
	server_stop(&server);
}
