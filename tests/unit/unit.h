/*
 * What every unit test includes: cmocka with its prerequisites, and random
 * inputs that can be had again: RQD_SEED=12345 ./test_x.
 */
#ifndef RQD_TESTS_UNIT_H
#define RQD_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/util.h"

static uint64_t unit_state;

/* Call first in main(): seeds and prints the seed as a TAP comment. */
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

#endif
