/*
 * Parsing of answers, strict where a mistake would hide that daemon and handler
 * have lost step: the number is plain decimal, the verb is whole, and nothing
 * follows "ok".  Words stand apart by spaces or tabs.  A first word after "retry"
 * that is not a number begins the reason.
 */
#include "handler/answer.h"

#include <stdbool.h>
#include <string.h>

struct answer_words { const char *p, *end; };

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static void
skip_blanks(struct answer_words *w)
{
	while (w->p < w->end && is_blank(*w->p))
		w->p++;
}

/* The next word, which may be empty at the end. */
static size_t
next_word(struct answer_words *w, const char **word)
{
	skip_blanks(w);
	*word = w->p;
	while (w->p < w->end && !is_blank(*w->p))
		w->p++;
	return (size_t)(w->p - *word);
}

static bool
is_word(const char *p, size_t n, const char *word)
{
	return n == strlen(word) && memcmp(p, word, n) == 0;
}

/* 1 to 19 digits without a leading zero. */
static int
parse_number(const char *p, size_t n, uint64_t *ret)
{
	uint64_t v = 0;
	size_t i;

	if (n == 0 || n > 19 || p[0] == '0')
		return -1;
	for (i = 0; i < n; i++) {
		if (p[i] < '0' || p[i] > '9')
			return -1;
		v = v * 10 + (uint64_t)(p[i] - '0');
	}
	*ret = v;
	return 0;
}

/* "30", "0.5"; microseconds, at most ANSWER_DELAY_MAX. */
static int
parse_seconds(const char *p, size_t n, usec_t *ret)
{
	usec_t v = 0, unit = SEC / 10;
	size_t i;

	for (i = 0; i < n && p[i] >= '0' && p[i] <= '9'; i++) {
		v = v * 10 + (p[i] - '0') * SEC;
		if (v > ANSWER_DELAY_MAX)
			v = ANSWER_DELAY_MAX;
	}
	if (i == 0)
		return -1;
	if (i < n && p[i] == '.' && i + 1 < n) {
		for (i++; i < n && p[i] >= '0' && p[i] <= '9'; i++, unit /= 10)
			v += (p[i] - '0') * unit;
	}
	if (i < n)
		return -1;
	*ret = v < ANSWER_DELAY_MAX ? v : ANSWER_DELAY_MAX;
	return 0;
}

static void
take_seconds(struct answer_words *w, usec_t *delay)
{
	struct answer_words after = *w;
	const char *p;
	size_t n = next_word(&after, &p);

	if (parse_seconds(p, n, delay) == 0)
		*w = after;
}

static void
take_reason(struct answer_words *w, struct answer *a)
{
	skip_blanks(w);
	while (w->end > w->p && is_blank(w->end[-1]))
		w->end--;
	if (w->p == w->end)
		return;
	a->reason = w->p;
	a->reason_len = (size_t)(w->end - w->p);
	w->p = w->end;
}

int
answer_parse(const char *line, size_t len, struct answer *ret)
{
	struct answer_words w = { line, line + len };
	struct answer a = { .delay = -1 };
	const char *p = line;
	size_t n;

	while (w.p < w.end && !is_blank(*w.p))
		w.p++;
	if (parse_number(p, (size_t)(w.p - p), &a.number) == -1 ||
	    memchr(line, '\0', len) != NULL)
		return -1;
	n = next_word(&w, &p);
	if (is_word(p, n, "ok")) {
		a.end = END_ANSWER_OK;
		skip_blanks(&w);
	} else if (is_word(p, n, "retry")) {
		a.end = END_ANSWER_RETRY;
		take_seconds(&w, &a.delay);
		take_reason(&w, &a);
	} else if (is_word(p, n, "dead")) {
		a.end = END_ANSWER_DEAD;
		take_reason(&w, &a);
	} else {
		return -1;
	}
	if (w.p < w.end)
		return -1;
	*ret = a;
	return 0;
}
