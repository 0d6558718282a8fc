/*
 * Fuzzes the statements of handlers: each line goes through policy/statement.c, with each
 * rule for numbers.  An accepted statement must follow rqd-handler(7) exactly, and its
 * texts must lie in the line.  Printed anew, it must parse to the same.
 */
#include "fuzz.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "loop/line.h"
#include "policy/statement.h"

FUZZ_MAIN("statement")

static void
check(bool right)
{
	if (!right)
		abort();
}

static size_t
put(char *to, size_t at, const char *p, size_t n)
{
	memcpy(to + at, p, n);
	return at + n;
}

/* Writes a statement as the manual describes it; returns its length. */
static size_t
print(const struct statement *s, char *to, size_t size)
{
	static const char *const words[] = {
		[STATEMENT_OK] = "ok", [STATEMENT_RETRY] = "retry", [STATEMENT_DEFER] = "defer",
		[STATEMENT_DEAD] = "dead", [STATEMENT_PROGRESS] = "progress",
		[STATEMENT_PUSH] = "push", [STATEMENT_SAVE] = "save", [STATEMENT_HOLD] = "hold",
	};
	size_t n = 0;

	if (s->number != 0)
		n += (size_t)snprintf(to, size, "%" PRIu64 " ", s->number);
	n += (size_t)snprintf(to + n, size - n, "%s", words[s->word]);
	if (s->group)
		n = put(to, n, " group", 6);
	if (s->delay >= 0)
		n += (size_t)snprintf(to + n, size - n, " %lld.%06lld",
		    (long long)(s->delay / SEC), (long long)(s->delay % SEC));
	if (s->word == STATEMENT_RETRY && s->delay == -1)
		n = put(to, n, " -", 2);
	if (s->queue != NULL) {
		n = put(to, n, " ", 1);
		n = put(to, n, s->queue, s->queue_len);
	}
	if (s->text != NULL) {
		n = put(to, n, " ", 1);
		n = put(to, n, s->text, s->len);
	}
	return n;
}

static bool
same_bytes(const char *a, size_t a_len, const char *b, size_t b_len)
{
	return a_len == b_len && (a == NULL) == (b == NULL) &&
	    (a == NULL || memcmp(a, b, a_len) == 0);
}

static void
again(const struct statement *s)
{
	static char text[20000];
	struct statement b;

	check(statement_parse(text, print(s, text, sizeof(text)), STATEMENT_EITHER, &b) == 0);
	check(s->number == b.number && s->word == b.word && s->delay == b.delay &&
	    s->group == b.group);
	check(same_bytes(s->text, s->len, b.text, b.len));
	check(same_bytes(s->queue, s->queue_len, b.queue, b.queue_len));
}

static bool
lies_in(const char *p, size_t n, const char *line, size_t len)
{
	return p == NULL ? n == 0 : p >= line && p + n <= line + len;
}

static void
one(const char *p, size_t n, enum statement_number number)
{
	struct statement s = { .number = 4711, .word = STATEMENT_PUSH, .len = 4711 };
	bool digit = n > 0 && p[0] >= '1' && p[0] <= '9';

	if (statement_parse(p, n, number, &s) == -1) {
		check(s.len == 4711 && (digit || s.number == 0));
		return;
	}
	check((s.number != 0) == digit);
	check(number != STATEMENT_BARE || s.number == 0);
	check(number != STATEMENT_NUMBERED || s.number != 0);
	check(s.word == STATEMENT_PUSH || memchr(p, '\0', n) == NULL);
	check(s.delay >= -1 && s.delay <= STATEMENT_DELAY_MAX);
	check(s.delay == -1 || s.word == STATEMENT_RETRY || s.word == STATEMENT_DEFER ||
	    s.word == STATEMENT_HOLD);
	check((s.word != STATEMENT_DEFER && s.word != STATEMENT_HOLD) ||
	    s.delay >= STATEMENT_DEFER_MIN);
	check(!s.group || s.word == STATEMENT_HOLD);
	check((s.queue != NULL) == (s.word == STATEMENT_PUSH));
	check(s.word != STATEMENT_OK || s.text == NULL);
	check((s.word != STATEMENT_PUSH && s.word != STATEMENT_SAVE) || s.text != NULL);
	check(s.text == NULL || s.len > 0 || s.word == STATEMENT_SAVE);
	check(s.queue == NULL || s.queue_len > 0);
	check(lies_in(s.text, s.len, p, n) && lies_in(s.queue, s.queue_len, p, n));
	again(&s);
}

static void
line_came(const char *p, size_t n, bool cut, void *arg)
{
	(void)arg;
	if (cut)
		return;
	one(p, n, STATEMENT_BARE);
	one(p, n, STATEMENT_NUMBERED);
	one(p, n, STATEMENT_EITHER);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct line l;

	line_init(&l, STATEMENT_LINE_MAX, line_came, NULL);
	line_feed(&l, (const char *)data, size);
	line_end(&l);
	line_done(&l);
	return 0;
}
