/*
 * Included by every unit test: cmocka with its prerequisites, main(), and random inputs
 * that can be repeated: RQD_SEED=12345 ./test_x.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/util.h"

static uint64_t unit_state;

/* Seeds, and prints the seed as a TAP comment. */
static inline void
unit_seed(void)
{
	const char *env = getenv("RQD_SEED");

	unit_state = env != NULL ? strtoull(env, NULL, 10) : random_u64() >> 16;
	printf("# RQD_SEED=%llu\n", (unsigned long long)unit_state);
	fflush(stdout);
}

/* splitmix64 */
static inline uint64_t
unit_random(void)
{
	uint64_t z = unit_state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/* Below n, which is not 0. */
static inline uint64_t
unit_below(uint64_t n)
{
	return unit_random() % n;
}

/* A number of a random magnitude: small ones are as likely as large ones. */
static inline uint64_t
unit_number(void)
{
	return unit_random() >> unit_below(64);
}

/* Returns how many rounds to run: all n in the long form of ./check, else a quarter. */
static inline int
unit_rounds(int n)
{
	return getenv("RQD_TEST_LONG") != NULL ? n : n / 4;
}

/*
 * Use this for a time that a slow or stopped machine may exceed, such as a lease: it is
 * four times as long in the long form of ./check, and on a slow machine.
 */
static inline usec_t
unit_time(usec_t time)
{
	return getenv("RQD_TEST_LONG") != NULL || getenv("RQD_TEST_SLOW") != NULL ? 4 * time : time;
}

/* -- the tests of a program ----------------------------------------------------- */

#define UNIT_TESTS_MAX	64

/* Weak: all files of a program share them. */
#define UNIT_SHARED	__attribute__((__weak__))

UNIT_SHARED struct CMUnitTest unit_tests[UNIT_TESTS_MAX];
UNIT_SHARED int		 unit_lines[UNIT_TESTS_MAX];	/* where each is defined */
UNIT_SHARED size_t	 unit_count;
UNIT_SHARED size_t	 unit_left_out;			/* they need root */

/* Adds a test in the order of lines: the compiler may call the constructors in any order. */
static inline void
unit_add(int line, struct CMUnitTest test)
{
	size_t i;

	if (unit_count == UNIT_TESTS_MAX)
		abort();
	for (i = unit_count++; i > 0 && unit_lines[i - 1] > line; i--) {
		unit_lines[i] = unit_lines[i - 1];
		unit_tests[i] = unit_tests[i - 1];
	}
	unit_lines[i] = line;
	unit_tests[i] = test;
}

/*
 * TEST(test_x) { ... } defines a test, and has unit_run() run it.  TEST_WITH() names its
 * setup and its teardown too, NULL: none; they get the same void **state.  A ROOT_TEST runs
 * only as root.
 */
#define TEST_WITH(name, setup, teardown)	TEST_IF(true, name, setup, teardown)
#define TEST(name)				TEST_WITH(name, NULL, NULL)
#define ROOT_TEST_WITH(name, setup, teardown)	\
	TEST_IF(geteuid() == 0, name, setup, teardown)
#define ROOT_TEST(name)				ROOT_TEST_WITH(name, NULL, NULL)

#define TEST_IF(runs, name, setup, teardown)					\
	static void name(void **);						\
	static void __attribute__((__constructor__))				\
	name##_add(void)							\
	{									\
		if (!(runs))							\
			unit_left_out++;					\
		else								\
			unit_add(__LINE__, (struct CMUnitTest){			\
			    #name, name, setup, teardown, NULL });		\
	}									\
	static void								\
	name(void **state UNUSED)

/*
 * Replaces cmocka's own function, which prints "not ok N # SKIP" for a test that calls
 * skip().  TAP counts that as a failure, so this removes the "not".
 */
void UNIT_SHARED
print_message(const char *const format, ...)
{
	static const char skipped[] = "not ok %u # SKIP";
	bool skips = strncmp(format, skipped, strlen(skipped)) == 0;
	va_list ap;

	va_start(ap, format);
	(void)vprintf(skips ? format + sizeof("not ") - 1 : format, ap);
	va_end(ap);
	(void)fflush(stdout);
}

/*
 * Runs the group's setup, all tests of this program, and the group's teardown.  Returns
 * the status for main().  Call it once.
 */
static inline int
unit_run(CMFixtureFunction setup, CMFixtureFunction teardown)
{
	if (unit_count == 0 && unit_left_out > 0) {
		printf("1..0 # SKIP all tests need root\n");
		return 0;
	}
	unit_seed();
	if (unit_left_out > 0)
		printf("# left out: %zu tests that need root\n", unit_left_out);
	return _cmocka_run_group_tests("tests", unit_tests, unit_count, setup, teardown);
}

/* A program with a main() of its own defines UNIT_OWN_MAIN before it includes this file. */
#ifndef UNIT_OWN_MAIN
int UNIT_SHARED
main(void)
{
	return unit_run(NULL, NULL);
}
#endif
