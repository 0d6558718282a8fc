/*
 * The lexer.
 *
 * The lexer checks escapes and variables in strings but leaves the strings as they
 * are written: libconfuse decodes them.  Text that libconfuse would misread is an
 * error here: "\d" (it drops the backslash), "\0", "${UNSET}".
 *
 * A missing quote swaps inside and outside of all later strings, and shows only at
 * the end of the file, where the last string is not closed.  The lexer then blames
 * the first string that spans several lines and ends right before more text, as in
 *	user = "bob
 *	group = "staff"
 * and withdraws all findings after it.
 */
#include "config/lexer.h"

#include <confuse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct scan {
	const char	*p, *end;
	struct place	 at;		/* of p */
	struct tokens	*tokens;
	struct findings	*findings;
	/* token: a string that may lack its quote; SIZE_MAX: none */
	size_t		 suspect;
	size_t		 found_before;	/* findings older than the suspect */
};

static bool
is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	    (c != '\0' && strchr("_-.:/@%", c) != NULL);
}

static bool
is_name(char c)
{
	return is_word(c) && strchr("-.:/@%", c) == NULL;
}

static bool
looking_at(const struct scan *s, const char *text)
{
	size_t n = strlen(text);

	return (size_t)(s->end - s->p) >= n && memcmp(s->p, text, n) == 0;
}

/* Appends the token that begins at start and ends here. */
static struct token *
add(struct scan *s, enum token_type type, const char *start, int line)
{
	struct tokens *t = s->tokens;

	if ((t->n & (t->n - 1)) == 0)	/* not APPEND(): a file may have a million */
		t->list = xreallocarray(t->list, t->n > 0 ? t->n * 2 : 1, sizeof(*t->list));
	t->list[t->n] = (struct token){
		.type = type, .line = line, .text = xstrndup(start, (size_t)(s->p - start)),
	};
	return &t->list[t->n++];
}

/* Whether the string that ends at p reads as if its quote began another one. */
static bool
is_suspect(const struct scan *s, const struct place *start)
{
	return s->suspect == SIZE_MAX && s->at.line != start->line && s->p < s->end &&
	    strchr(" \t\r\n,})/#", *s->p) == NULL;
}

/* Ends the scan here. */
static void
cut(struct scan *s)
{
	s->p = s->end;
	s->tokens->cut = true;
}

/* -- comments ------------------------------------------------------------------ */

static void
skip_line(struct scan *s)
{
	while (s->p < s->end && *s->p != '\n')
		s->p++;
}

static void
skip_block(struct scan *s)
{
	struct place start = s->at;

	for (s->p += 2; s->p < s->end; s->p++) {
		if (looking_at(s, "*/")) {
			s->p += 2;
			return;
		}
		s->at.line += *s->p == '\n';
	}
	finding_error(s->findings, &start, "this comment is not closed: \"*/\" is missing");
	cut(s);
}

/* -- strings ------------------------------------------------------------------- */

/*
 * "${NAME}" or "${NAME:-default}" at p: moves behind it.  false, reported,
 * where it is no such thing, or may not be used.
 */
static bool
scan_variable(struct scan *s)
{
	static const char hint[] = "in a command put it into single quotes, "
	    "or write \\${ in double ones";
	const char *name = s->p + 2, *p = name, *end;
	char text[256];

	while (p < s->end && is_name(*p))
		p++;
	for (end = p; end < s->end && *end != '}' && *end != '"' && *end != '\n';)
		end++;
	snprintf(text, sizeof(text), "%.*s", (int)(p - name), name);
	if (end == s->end || *end != '}') {
		s->p += 2;
		return finding_error(s->findings, &s->at, "\"${\" is not closed: %s", hint);
	}
	s->p = end + 1;
	if (p == name || (*name >= '0' && *name <= '9') || p - name > 250 ||
	    (p < end && (p[0] != ':' || p[1] != '-')))
		return finding_error(s->findings, &s->at, "\"${%.*s}\" is not ${NAME} or "
		    "${NAME:-default}: %s", (int)(end - name > 60 ? 60 : end - name), name, hint);
	if (strncmp(text, "RQD_", 4) == 0)
		return finding_error(s->findings, &s->at, "${%.60s} would be replaced now, not "
		    "when the handler runs: %s", text, hint);
	if (p == end && getenv(text) == NULL)
		return finding_error(s->findings, &s->at,
		    "${%.60s} is not set in the environment: set it, "
		    "write ${%.60s:-default}, or, if it is meant for a shell, use single quotes",
		    text, text);
	return true;
}

static size_t
run_of(const struct scan *s, const char *p, const char *set, size_t max)
{
	size_t n = 0;

	while (n < max && p + n < s->end && strchr(set, p[n]) != NULL)
		n++;
	return n;
}

/* "\123": libconfuse would refuse other octal escapes without naming a line. */
static bool
scan_octal(struct scan *s)
{
	const char *digits = s->p + 1;
	size_t n = run_of(s, digits, "0123456789", 20);
	unsigned value = 0;

	for (size_t i = 0; i < n && i < 3; i++)
		value = value * 8 + (unsigned)(digits[i] - '0');
	s->p += 1 + n;
	if (n <= 3 && value > 0 && value <= 0xff && run_of(s, digits, "01234567", n) == n)
		return true;
	return finding_error(s->findings, &s->at, "bad escape \"\\%.*s\" in a string: write one "
	    "to three octal digits, \\001 to \\377, or \\xHH", (int)n, digits);
}

/* A backslash in double quotes; moves behind the escape sequence. */
static bool
scan_escape(struct scan *s)
{
	const char *p = s->p + 1;
	size_t n;

	if (p == s->end) {
		s->p = p;
		return true;
	}
	if (*p >= '0' && *p <= '9')
		return scan_octal(s);
	if (*p == 'x') {
		n = run_of(s, p + 1, "0123456789abcdefABCDEF", 2);
		s->p = p + 1 + n;
		if (n > 0 && strtoul(p + 1, NULL, 16) != 0)
			return true;
		return finding_error(s->findings, &s->at,
		    "bad escape \"\\x%.*s\" in a string: write \\x01 to \\xff", (int)n, p + 1);
	}
	s->p = p + 1;
	if (*p == '\n')
		s->at.line++;
	if (strchr("ntrbfaev\"'\\$\n", *p) != NULL)
		return true;
	return finding_error(s->findings, &s->at,
	    "bad escape \"\\%c\" in a string: write \"\\\\%c\" for a "
	    "backslash, or use single quotes", *p, *p);
}

/* Goes to the closing quote; false if there is none. */
static bool
scan_quoted(struct scan *s, char quote, bool *ok)
{
	for (s->p++; s->p < s->end && *s->p != quote;) {
		if (*s->p == '\n')
			s->at.line++;
		if (quote == '\'' && *s->p == '\\' && s->p + 1 < s->end) {
			s->at.line += s->p[1] == '\n';
			s->p += 2;
		} else if (quote == '"' && *s->p == '\\') {
			*ok = scan_escape(s) && *ok;
		} else if (quote == '"' && looking_at(s, "${")) {
			*ok = scan_variable(s) && *ok;
		} else {
			s->p++;
		}
	}
	if (s->p >= s->end)
		return false;
	s->p++;
	return true;
}

/* Blames the suspect, if there is one, else the string that was scanned last. */
static void
not_closed(struct scan *s, size_t index, size_t found)
{
	struct tokens *t = s->tokens;
	struct place at = s->at;

	if (s->suspect != SIZE_MAX) {
		index = s->suspect;
		found = s->found_before;
	}
	findings_forget(s->findings, found);
	at.line = t->list[index].line;
	finding_error(s->findings, &at, "this string is not closed: %.1s is missing",
	    t->list[index].text);
	while (t->n > index)
		free(t->list[--t->n].text);
	cut(s);
}

static void
scan_string(struct scan *s)
{
	const char *start = s->p;
	size_t index = s->tokens->n, found = s->findings->nfound;
	struct place at = s->at;
	bool ok = true, closed = scan_quoted(s, *start, &ok);

	add(s, TOKEN_STRING, start, at.line)->bad = !ok;
	if (!closed) {
		not_closed(s, index, found);
	} else if (is_suspect(s, &at)) {
		s->suspect = index;
		s->found_before = found;
	}
}

/* -- the rest ------------------------------------------------------------------- */

/* Ends before "//" and "/ *", which begin a comment; "http://" says so. */
static void
scan_word(struct scan *s)
{
	const char *start = s->p;
	struct token *t;

	while (s->p < s->end && is_word(*s->p) && !looking_at(s, "/*")) {
		if (looking_at(s, "//") && s->p > start && s->p[-1] != ':')
			break;
		s->p += looking_at(s, "//") ? 2 : 1;
	}
	t = add(s, TOKEN_WORD, start, s->at.line);
	if (strstr(t->text, "//") != NULL) {
		finding_error(s->findings, &s->at, "put \"%.60s\" into quotes", t->text);
		t->bad = true;
	}
}

static void
scan_bare_variable(struct scan *s)
{
	const char *start = s->p;
	bool ok = scan_variable(s);
	struct token *t = add(s, TOKEN_VARIABLE, start, s->at.line);

	t->bad = !ok;
	if (s->p < s->end && (is_word(*s->p) || looking_at(s, "${"))) {
		finding_error(s->findings, &s->at, "put what goes with %.60s into double quotes",
		    t->text);
		t->bad = true;
		while (s->p < s->end && is_word(*s->p))
			s->p++;
	}
}

/* A character that libconfuse would silently drop. */
static void
scan_stray(struct scan *s)
{
	static const char known[] = " \t\r\n\"'{}()=,#$+;";
	const char *start = s->p;

	if (*start == ';') {
		s->p++;
		finding_error(s->findings, &s->at,
		    "\";\" is not needed: options end by themselves");
		return;
	}
	do
		s->p++;
	while (s->p < s->end && !is_word(*s->p) && strchr(known, *s->p) == NULL);
	finding_error(s->findings, &s->at,
	    "stray \"%.*s\": put text with such characters into quotes",
	    (int)(s->p - start > 20 ? 20 : s->p - start), start);
}

static void
scan_sign(struct scan *s, enum token_type type, size_t len)
{
	const char *start = s->p;

	s->p += len;
	(void)add(s, type, start, s->at.line);
}

static void
scan_one(struct scan *s)
{
	char c = *s->p;

	if (c == '\n')
		s->at.line++;
	if (c == ' ' || c == '\t' || c == '\r' || c == '\n')
		s->p++;
	else if (c == '#' || looking_at(s, "//"))
		skip_line(s);
	else if (looking_at(s, "/*"))
		skip_block(s);
	else if (c == '"' || c == '\'')
		scan_string(s);
	else if (looking_at(s, "${"))
		scan_bare_variable(s);
	else if (is_word(c))
		scan_word(s);
	else if (strchr("{}()=,", c) != NULL)
		scan_sign(s, TOKEN_PUNCT, 1);
	else if (looking_at(s, "+="))
		scan_sign(s, TOKEN_APPEND, 2);
	else
		scan_stray(s);
}

void
lexer_scan(struct tokens *t, const char *text, size_t len, const char *file,
    struct findings *findings)
{
	struct scan s = {
		.p = text, .end = text + len, .at = { file, 1 }, .tokens = t,
		.findings = findings, .suspect = SIZE_MAX,
	};

	*t = (struct tokens){ NULL, 0, false };
	while (s.p < s.end)
		scan_one(&s);
	scan_sign(&s, TOKEN_END, 0);
}

void
lexer_done(struct tokens *t)
{
	while (t->n > 0)
		free(t->list[--t->n].text);
	free(t->list);
	*t = (struct tokens){ NULL, 0, false };
}

bool
token_is(const struct token *t, char punct)
{
	return t->type == TOKEN_PUNCT && *t->text == punct;
}

/* -- values --------------------------------------------------------------------- */

/* libconfuse's last error; its callback takes no argument. */
static char *complaint;

static void PRINTF(2, 0)
complain(cfg_t *cfg UNUSED, const char *fmt, va_list ap)
{
	free(complaint);
	complaint = xvasprintf(fmt, ap);
}

char *
token_decode(const struct token *t, char **cause)
{
	cfg_opt_t opts[] = { CFG_STR("value", NULL, CFGF_NODEFAULT), CFG_END() };
	char *text, *value = NULL;
	const char *decoded;
	cfg_t *cfg;

	if (t->type == TOKEN_WORD)	/* stands for itself; libconfuse might misread it */
		return xstrdup(t->text);
	if ((cfg = cfg_init(opts, CFGF_NONE)) == NULL)
		fatal_os("cfg_init: out of memory");
	(void)cfg_set_error_function(cfg, complain);
	text = xasprintf("value = %s", t->text);
	if (cfg_parse_buf(cfg, text) == CFG_SUCCESS) {
		decoded = cfg_getstr(cfg, "value");
		value = xstrdup(decoded != NULL ? decoded : "");
	} else {
		*cause = complaint != NULL ? complaint : xstrdup("syntax error");
		complaint = NULL;
	}
	xreplace(&complaint, NULL);
	free(text);
	cfg_free(cfg);
	return value;
}
