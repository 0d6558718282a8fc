/*
 * Fuzzes the orders to the spawner; the first byte gives the number of descriptors that
 * come with it.  An accepted order must follow spawner_wire.h exactly: all words lie within
 * the datagram, are variables of a message, and none is one that the spawner itself sets.
 */
#include "fuzz.h"

#include <signal.h>
#include <stdbool.h>
#include <string.h>

#include "base/util.h"
#include "handler/environment.h"
#include "handler/spawner_wire.h"

FUZZ_MAIN("spawner")

static void
check(bool right)
{
	if (!right)
		abort();
}

static void
check_word(const char *word)
{
	static const char *const spawners[] = { "RQD_QUEUE=", "RQD_CONFIG=", "RQD_SERVER=",
	    "RQD_OPTIONS=" };
	const char *equals = strchr(word, '=');
	size_t i;

	check(strncmp(word, "RQD_", 4) == 0 && equals != NULL && equals > word + 4);
	check(strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == (size_t)(equals - word));
	for (i = 0; i < ARRAY_LEN(spawners); i++)
		check(strncmp(word, spawners[i], strlen(spawners[i])) != 0);
}

static void
check_start(const struct spawner_order *o, size_t nfds)
{
	const char *p = o->bytes, *end = p + o->head.size;
	size_t words = 0;

	check(o->head.slot < SPAWNER_SLOTS && o->head.value <= SPAWNER_FD_MASK &&
	    nfds <= SPAWN_FDS);
	for (; p < end; p += strlen(p) + 1, words++) {
		check(memchr(p, '\0', (size_t)(end - p)) != NULL);
		check_word(p);
	}
	check(p == end && words <= ENVIRONMENT_WORDS);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	size_t nfds = n > 0 ? data[0] % 5 : 0;
	struct spawner_order o;
	uint8_t *exact;

	if (n == 0)
		return 0;
	/* An allocation of the exact size: a sanitizer reports a read beyond it. */
	exact = xmalloc(n - 1 + (n == 1));
	memcpy(exact, data + 1, n - 1);
	if (spawner_parse(exact, n - 1, nfds, &o) == 0) {
		check(o.head.op >= SPAWNER_START && o.head.op <= SPAWNER_OPEN);
		check(sizeof(o.head) + o.head.size == n - 1);
		if (o.head.op == SPAWNER_START)
			check_start(&o, nfds);
		else
			check(nfds == 0);
		/* Only SPAWNER_OPEN has a path; the spawner looks it up in its configurations. */
		if (o.head.op != SPAWNER_START && o.head.op != SPAWNER_OPEN)
			check(o.head.size == 0);
		if (o.head.op == SPAWNER_OPEN)
			check(o.head.size > 1 && o.bytes[1] == '/' &&
			    memchr(o.bytes, '\0', o.head.size) == NULL);
		if (o.head.op == SPAWNER_SIGNAL)
			check(o.head.value == SIGTERM || o.head.value == SIGKILL ||
			    o.head.value == SIGCONT);
	}
	free(exact);
	return 0;
}
