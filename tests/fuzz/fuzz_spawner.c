/*
 * Fuzzes the orders to the spawner; the first byte gives the number of descriptors that
 * come with it.  An accepted order must follow spawner_wire.h exactly: its id and channel lie
 * within the datagram, and its words are variables of a message.
 */
#include "fuzz.h"

#include <signal.h>
#include <stdbool.h>
#include <string.h>

#include "base/util.h"
#include "policy/message.h"
#include "handler/spawner_wire.h"

FUZZ_MAIN("spawner")

static void
check(bool right)
{
	if (!right)
		abort();
}

static void
check_start(const struct spawner_order *o, size_t nfds)
{
	static const char *const names[] = { "RQD_CHANNEL=", "RQD_SAVED=", "RQD_ID=",
	    "RQD_ATTEMPT=", "RQD_BATCH=", "RQD_DEADLINE=", "RQD_MAX_ATTEMPTS=" };
	struct buf b = BUF_INIT, members = BUF_INIT;
	size_t i = 0, n = 0, len;

	check(o->slot < SPAWNER_SLOTS && o->value < 1U << SPAWN_FDS && nfds <= SPAWN_FDS);
	check(o->members <= CONFIG_MEMBERS_MAX);
	for (uint32_t k = 0; k < o->members; k++)
		buf_printf(&members, k % 2 == 0 ? "M%u%c" : "M%u=default%c", k, '\0');
	spawner_words(o, buf_str(&members), &b);
	check(b.len > 0 && b.data[b.len - 1] == '\0');
	for (const char *p = b.data; p < b.data + b.len; p += strlen(p) + 1, i++) {
		if (p[0] == 'M') {
			check(n++ < o->members && p[strcspn(p, "=")] == '=');
			i--;
			continue;
		}
		check(n == 0);				/* the members come last */
		while (i < ARRAY_LEN(names) && strncmp(p, names[i], strlen(names[i])) != 0)
			i++;
		check(i < ARRAY_LEN(names));		/* each once, in this order */
		len = strlen(names[i]);
		if (i == 2)
			check(message_id_ok(p + len, strlen(p + len)));
		else if (i > 2)
			check(p[len] != '\0' && p[len + strspn(p + len, "0123456789")] == '\0');
	}
	check(n >= o->members / 2);
	buf_done(&members);
	buf_done(&b);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	size_t nfds = n > 0 ? data[0] % 5 : 0;
	const struct spawner_order *o;
	uint8_t *exact;

	if (n == 0)
		return 0;
	/* An allocation of the exact size: a sanitizer reports a read beyond it. */
	exact = xmalloc(n - 1 + (n == 1));
	memcpy(exact, data + 1, n - 1);
	o = (const void *)exact;
	if (spawner_is_order(o, n - 1, nfds)) {
		check(o->op >= SPAWNER_START && o->op <= SPAWNER_OPEN);
		check(sizeof(*o) + o->size == n - 1);
		if (o->op == SPAWNER_START)
			check_start(o, nfds);
		else
			check(nfds == 0);
		/* Only SPAWNER_OPEN has a path; the spawner looks it up in its configurations. */
		if (o->op != SPAWNER_START && o->op != SPAWNER_OPEN)
			check(o->size == 0);
		if (o->op == SPAWNER_OPEN)
			check(o->size > 1 && o->bytes[1] == '/' &&
			    memchr(o->bytes, '\0', o->size) == NULL);
		if (o->op == SPAWNER_SIGNAL)
			check(o->value == SIGTERM || o->value == SIGKILL ||
			    o->value == SIGCONT);
	}
	free(exact);
	return 0;
}
