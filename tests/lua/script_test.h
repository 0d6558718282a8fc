/*
 * Shared by the tests of scripts: one rig, and tests that begin with an empty Redis.
 *
 *	#define RIG_KEY "{orders}"		// without it: "orders"
 *	#include "script_test.h"
 *	SCRIPT_TEST(test_pop_fifo) { push("m"); ... }
 */
#pragma once

#include "rig.h"

static struct rig rig;

static inline int
empty_redis(void **state UNUSED)
{
	server_do(&rig.server, "FLUSHALL");
	return 0;
}

#define SCRIPT_TEST(name)	TEST_WITH(name, empty_redis, NULL)

static inline void
push(const char *payload)
{
	rig_do(&rig, "%s %s %b", rig.left ? "RPUSH" : "LPUSH", rig_key(&rig, KEY_QUEUE), payload,
	    strlen(payload));
}

static inline int
pop(int n, const char *call, struct popped *p)
{
	return rig_pop(&rig, n, 1048576, MAX, call, 0, p, NULL);
}

static inline struct popped
pop_one(const char *call)
{
	struct popped p;

	assert_int_equal(pop(1, call, &p), 1);
	return p;
}

#ifndef RIG_KEY
#define RIG_KEY	"orders"
#endif

/* Runs the tests on the queue of this key. */
int
main(void)
{
	int rc;

	rig_open(&rig, RIG_KEY);
	rc = unit_run(NULL, NULL);
	rig_close(&rig);
	return rc;
}
