/*
 * Any bytes as the answers of a persistent handler: line by line through
 * handler/answer.c.  What is taken for an answer must be one by the letter of
 * rqd-handler(7), say nothing that the line does not, and mean the same when it is
 * written anew.
 */
#include "fuzz.h"

#include <inttypes.h>
#include <string.h>

#include "handler/answer.h"
#include "loop/line.h"

FUZZ_MAIN("answer")

static void
check(bool right)
{
	if (!right)
		abort();
}

/* As the manual writes it. */
static size_t
print(const struct answer *a, char *to, size_t size)
{
	static const char *const verbs[] = {
		[END_ANSWER_OK] = "ok", [END_ANSWER_RETRY] = "retry", [END_ANSWER_DEAD] = "dead",
	};
	int n = snprintf(to, size, "%" PRIu64 " %s", a->number, verbs[a->end]);

	if (a->delay >= 0)
		n += snprintf(to + n, size - (size_t)n, " %lld.%06lld",
		    (long long)(a->delay / SEC), (long long)(a->delay % SEC));
	if (a->reason != NULL)
		n += snprintf(to + n, size - (size_t)n, " %.*s", (int)a->reason_len, a->reason);
	return (size_t)n;
}

static bool
same(const struct answer *a, const struct answer *b)
{
	return a->number == b->number && a->end == b->end && a->delay == b->delay &&
	    a->reason_len == b->reason_len && (a->reason == NULL) == (b->reason == NULL) &&
	    (a->reason == NULL || memcmp(a->reason, b->reason, a->reason_len) == 0);
}

/* Without a number of seconds the first word of a reason could be taken for one. */
static void
again(const struct answer *a)
{
	static char text[20000];
	struct answer b;

	check(answer_parse(text, print(a, text, sizeof(text)), &b) == 0);
	check(same(a, &b));
}

static void
line_came(const char *p, size_t n, bool cut, void *arg)
{
	struct answer a = { .number = 4711 };

	(void)arg;
	if (cut)
		return;
	if (answer_parse(p, n, &a) == -1) {
		check(a.number == 4711);
		return;
	}
	check(p[0] >= '1' && p[0] <= '9' && memchr(p, '\0', n) == NULL);
	check(a.end == END_ANSWER_OK || a.end == END_ANSWER_RETRY || a.end == END_ANSWER_DEAD);
	check(a.delay >= -1 && a.delay <= ANSWER_DELAY_MAX);
	check(a.delay == -1 || a.end == END_ANSWER_RETRY);
	check(a.reason == NULL || (a.reason_len > 0 && a.reason >= p &&
	    a.reason + a.reason_len <= p + n && a.end != END_ANSWER_OK));
	again(&a);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct line l;

	line_init(&l, 8192, line_came, NULL);
	line_feed(&l, (const char *)data, size);
	line_end(&l);
	line_done(&l);
	return 0;
}
