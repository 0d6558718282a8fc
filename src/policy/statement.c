/*
 * Parses statements.  It is strict, so that mistakes are seen.  The number is plain
 * decimal, the word is whole, and nothing follows "ok".  If a duration may follow, a
 * word that begins with a digit must be one.  Spaces or tabs separate words.
 *
 * The message of a push begins after the one blank that ends the queue's name.  It is
 * taken byte for byte, and must not be empty.  So is the text of save, which may be empty.
 * Of all other lines, and of save, a CR at the end is no part.
 */
#include "policy/statement.h"

#include <string.h>

#include "base/units.h"

struct statement_words { const char *p, *end; };

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static void
skip_blanks(struct statement_words *w)
{
	while (w->p < w->end && is_blank(*w->p))
		w->p++;
}

/* Takes the word at w; it is empty at a blank and at the end. */
static size_t
take_word(struct statement_words *w, const char **word)
{
	*word = w->p;
	while (w->p < w->end && !is_blank(*w->p))
		w->p++;
	return (size_t)(w->p - *word);
}

/* "30", "0.5": cut to whole microseconds, and to STATEMENT_DELAY_MAX. */
static int
parse_seconds(const char *p, size_t n, usec_t *ret)
{
	usec_t v = 0, unit = SEC / 10;
	size_t i;

	for (i = 0; i < n && is_digit(p[i]); i++) {
		v = v * 10 + (p[i] - '0') * SEC;
		if (v > STATEMENT_DELAY_MAX)
			v = STATEMENT_DELAY_MAX;
	}
	if (i == 0)
		return -1;
	if (i < n && p[i] == '.' && i + 1 < n) {
		for (i++; i < n && is_digit(p[i]); i++, unit /= 10)
			v += (p[i] - '0') * unit;
	}
	if (i < n)
		return -1;
	*ret = v < STATEMENT_DELAY_MAX ? v : STATEMENT_DELAY_MAX;
	return 0;
}

/* "300ms", "1.5h": as in the configuration; or seconds without a unit. */
static int
parse_delay(const char *p, size_t n, usec_t *ret)
{
	char text[UNITS_TEXT_MAX];

	if (parse_seconds(p, n, ret) == 0)
		return 0;
	if (n >= sizeof(text) || memchr(p, '\0', n) != NULL)
		return -1;
	memcpy(text, p, n);
	text[n] = '\0';
	if (units_parse_duration(text, ret) == -1)
		return -1;
	if (*ret > STATEMENT_DELAY_MAX)
		*ret = STATEMENT_DELAY_MAX;
	return 0;
}

/* Takes a duration, if there is one; any other first word belongs to the reason. */
static int
take_delay(struct statement_words *w, usec_t *ret)
{
	struct statement_words after = *w;
	const char *p;
	size_t n;

	skip_blanks(&after);
	n = take_word(&after, &p);
	if (n == 0 || (!is_digit(*p) && (n > 1 || *p != '-')))
		return 0;
	*w = after;
	return *p == '-' ? 0 : parse_delay(p, n, ret);
}

/* Takes the word "group", if it is the next one. */
static bool
take_group(struct statement_words *w)
{
	struct statement_words after = *w;
	const char *p;

	skip_blanks(&after);
	if (take_word(&after, &p) != 5 || memcmp(p, "group", 5) != 0)
		return false;
	*w = after;
	return true;
}

static int
find_word(const char *p, size_t n, enum statement_word *ret)
{
	static const char *const names[] = {
		[STATEMENT_OK] = "ok", [STATEMENT_RETRY] = "retry",
		[STATEMENT_DEFER] = "defer", [STATEMENT_DEAD] = "dead",
		[STATEMENT_PROGRESS] = "progress", [STATEMENT_PUSH] = "push",
		[STATEMENT_SAVE] = "save", [STATEMENT_HOLD] = "hold",
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (n == strlen(names[i]) && memcmp(p, names[i], n) == 0) {
			*ret = (enum statement_word)i;
			return 0;
		}
	}
	return -1;
}

/* Takes the words that follow the first one. */
static int
take_rest(struct statement_words *w, struct statement *s)
{
	if (s->word == STATEMENT_PUSH) {
		skip_blanks(w);
		s->queue_len = take_word(w, &s->queue);
		if (s->queue_len == 0 || memchr(s->queue, '\0', s->queue_len) != NULL ||
		    w->end - w->p < 2)
			return -1;
		s->text = w->p + 1;
		s->len = (size_t)(w->end - s->text);
		return 0;
	}
	if (memchr(w->p, '\0', (size_t)(w->end - w->p)) != NULL)
		return -1;
	switch (s->word) {
	case STATEMENT_RETRY:
	case STATEMENT_DEFER:
	case STATEMENT_HOLD:
		s->group = s->word == STATEMENT_HOLD && take_group(w);
		if (take_delay(w, &s->delay) == -1)
			return -1;
		if (s->word == STATEMENT_RETRY)
			break;
		if (s->delay == -1)
			return -1;
		if (s->delay < STATEMENT_DEFER_MIN)
			s->delay = STATEMENT_DEFER_MIN;
		break;
	case STATEMENT_OK:
		skip_blanks(w);
		return w->p == w->end ? 0 : -1;
	case STATEMENT_SAVE:
		s->text = w->p < w->end ? w->p + 1 : w->p;
		s->len = (size_t)(w->end - s->text);
		return 0;
	case STATEMENT_DEAD:
	case STATEMENT_PROGRESS:
	case STATEMENT_PUSH:
		break;
	}

	/* The rest of the line, without blanks around it. */
	skip_blanks(w);
	while (w->end > w->p && is_blank(w->end[-1]))
		w->end--;
	if (w->p < w->end) {
		s->text = w->p;
		s->len = (size_t)(w->end - w->p);
		w->p = w->end;
	}
	return 0;
}

/* Takes 1 to 19 digits without a leading zero, if a number is wanted. */
static int
take_number(struct statement_words *w, enum statement_number number, uint64_t *ret)
{
	uint64_t v = 0;
	const char *p;
	size_t n;

	if (number == STATEMENT_BARE ||
	    (number == STATEMENT_EITHER && (w->p == w->end || !is_digit(*w->p))))
		return 0;
	n = take_word(w, &p);
	if (n == 0 || n > 19 || p[0] == '0')
		return -1;
	for (size_t i = 0; i < n; i++) {
		if (!is_digit(p[i]))
			return -1;
		v = v * 10 + (uint64_t)(p[i] - '0');
	}
	*ret = v;
	skip_blanks(w);
	return 0;
}

int
statement_parse(const char *line, size_t len, enum statement_number number,
    struct statement *ret)
{
	struct statement_words w = { line, line + len };
	struct statement s = { .delay = -1 };
	const char *p;
	size_t n;

	ret->number = 0;
	if (take_number(&w, number, &s.number) == -1)
		return -1;
	ret->number = s.number;
	/* Programs of Windows, and some clients of the network, end lines with "\r\n". */
	if (w.p < w.end && w.end[-1] == '\r')
		w.end--;
	n = take_word(&w, &p);
	if (find_word(p, n, &s.word) == -1)
		return -1;
	if (s.word == STATEMENT_PUSH)
		w.end = line + len;
	if (take_rest(&w, &s) == -1)
		return -1;
	*ret = s;
	return 0;
}
