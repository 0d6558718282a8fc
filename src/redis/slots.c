/*
 * Slots; see slots.h.
 *
 * CLUSTER SLOTS answers an array of ranges:
 *
 *	FIRST LAST (HOST PORT ...)  (HOST PORT ...) ...
 *
 * The master comes first, then its replicas.  A host that is nil or "" is the host of
 * the server that answers.  A host "?"  is not known yet: its slots have no node.
 */
#include "redis/slots.h"

#include <stdlib.h>
#include <string.h>

#include "redis/addr.h"
#include "redis/reply.h"

#define POLYNOMIAL	0x1021	/* CRC-16/XMODEM, from 0 */

/* The hash tag within the key; NULL: there is none. */
static const char *
slot_tag(const char *key, size_t len, size_t *tag_len)
{
	const char *open = memchr(key, '{', len), *close;

	if (open == NULL)
		return NULL;
	open++;
	close = memchr(open, '}', len - (size_t)(open - key));
	if (close == NULL || close == open)
		return NULL;
	*tag_len = (size_t)(close - open);
	return open;
}

bool
slot_has_tag(const char *key, size_t len)
{
	return slot_tag(key, len, &len) != NULL;
}

unsigned
slot_of(const char *key, size_t len)
{
	size_t tag_len;
	const char *tag = slot_tag(key, len, &tag_len);

	return tag != NULL ? slot_of_text(tag, tag_len) : slot_of_text(key, len);
}

unsigned
slot_of_text(const char *text, size_t len)
{
	unsigned crc = 0;

	for (size_t i = 0; i < len; i++) {
		crc ^= (unsigned)(unsigned char)text[i] << 8;
		for (int bit = 0; bit < 8; bit++)
			crc = crc << 1 ^ ((crc & 0x8000) != 0 ? POLYNOMIAL : 0);
	}
	return crc % SLOTS;
}

/* -- addresses ------------------------------------------------------------------ */

/* A new "host:port", or NULL: that is no address. */
static char *
slots_address(const char *host, size_t len, int64_t port, const char *from)
{
	struct addr here = { .port = 0 }, there = { .port = 0 };
	char *text = NULL;

	if (port < 1 || port > 65535 || len > 253 || memchr(host, '\0', len) != NULL)
		return NULL;
	if (len == 0) {
		if (addr_parse(from, &here, NULL) == -1)
			return NULL;
		host = here.host != NULL ? here.host : "";
		len = strlen(host);
	}
	text = xasprintf(memchr(host, ':', len) != NULL ? "[%.*s]:%d" : "%.*s:%d", (int)len,
	    host, (int)port);
	if (addr_parse(text, &there, NULL) == -1) {
		free(text);
		text = NULL;
	}
	addr_done(&here);
	addr_done(&there);
	return text;
}

char *
slots_redirection(const char *error, const char *from, unsigned *slot)
{
	const char *host, *port;
	char *end;
	unsigned long n;

	if (strncmp(error, "MOVED ", 6) != 0 && strncmp(error, "ASK ", 4) != 0)
		return NULL;
	error = strchr(error, ' ') + 1;
	n = strtoul(error, &end, 10);
	if (*error < '0' || *error > '9' || n >= SLOTS || *end != ' ')
		return NULL;
	host = end + 1;
	if ((port = strrchr(host, ':')) == NULL)
		return NULL;
	*slot = (unsigned)n;
	return slots_address(host, (size_t)(port - host), strtol(port + 1, NULL, 10), from);
}

/* -- the table ------------------------------------------------------------------ */

/* The number of a node, which is taken; 0: the table is full. */
static uint16_t
slots_number(struct slots *s, char *node)
{
	for (size_t i = 0; i < s->n; i++) {
		if (strcmp(s->nodes[i], node) != 0)
			continue;
		free(node);
		return (uint16_t)(i + 1);
	}
	if (s->n == SLOTS_NODES_MAX) {
		free(node);
		return 0;
	}
	*APPEND(s->nodes, s->n) = node;
	return (uint16_t)s->n;
}

/* One range of the reply; -1: it is none. */
static int
slots_take(struct slots *s, const struct redisReply *range, const char *from)
{
	const struct redisReply *master = reply_at(range, 2);
	int64_t first = reply_int(reply_at(range, 0), -1), last = reply_int(reply_at(range, 1), -1);
	size_t len;
	const char *host = reply_str(reply_at(master, 0), &len);
	uint16_t number;
	char *node;

	if (first < 0 || last < first || last >= SLOTS || reply_len(master) < 2 ||
	    (host == NULL && !reply_is_nil(reply_at(master, 0))))
		return -1;
	if (host != NULL && strcmp(host, "?") == 0)
		return 0;
	node = slots_address(host != NULL ? host : "", len, reply_int_at(master, 1), from);
	number = node != NULL ? slots_number(s, node) : 0;
	for (; number != 0 && first <= last; first++) {
		if (s->owner[first] != 0)
			return -1;
		s->owner[first] = number;
	}
	return number != 0 ? 0 : -1;
}

const char *
slots_node(const struct slots *s, unsigned slot)
{
	return s->owner[slot] == 0 ? NULL : s->nodes[s->owner[slot] - 1];
}

static bool
slots_are_equal(const struct slots *a, const struct slots *b)
{
	const char *one, *other;

	for (unsigned i = 0; i < SLOTS; i++) {
		one = slots_node(a, i);
		other = slots_node(b, i);
		if (one == NULL || other == NULL ? one != other : strcmp(one, other) != 0)
			return false;
	}
	return true;
}

int
slots_fill(struct slots *s, const struct redisReply *reply, const char *from, bool *changed,
    char **cause)
{
	struct slots *new = xcalloc(1, sizeof(*new));
	int rc = reply_is_array(reply) ? 0 : -1;
	char text[REPLY_CAUSE];

	for (size_t i = 0; rc == 0 && i < reply_len(reply); i++)
		rc = slots_take(new, reply_at(reply, i), from);
	if (rc == -1)
		(void)util_cause(cause, "CLUSTER SLOTS: %s",
		    reply_cause(reply, text, sizeof(text)));
	else if (new->n == 0)
		rc = util_cause(cause, "CLUSTER SLOTS: no slot is assigned");
	if (rc == 0) {
		*changed = !slots_are_equal(s, new);
		slots_done(s);
		*s = *new;
	} else {
		slots_done(new);
	}
	free(new);
	return rc;
}

/* If the table is full, the slot has no node until the next CLUSTER SLOTS. */
void
slots_set(struct slots *s, unsigned slot, const char *node)
{
	s->owner[slot] = slots_number(s, xstrdup(node));
}

void
slots_done(struct slots *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->nodes[i]);
	free(s->nodes);
	*s = (struct slots){ .n = 0 };
}
