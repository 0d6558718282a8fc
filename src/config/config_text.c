/*
 * The parser: tokens to items.
 *
 * After an error the parser continues at the next token that can begin an option, a
 * section or an include, or that ends a section.  A section inside another one means
 * that the outer one was not closed.
 */
#include "config/config_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config_token.h"

#define SHOWN		60	/* bytes of a token in a message */

struct parser {
	const struct token *t;		/* the next one; the last is TOKEN_END */
	bool		 cut;		/* the end is missing, and has been reported */
	const char	*file;
	struct config_text *text;
	struct findings	*findings;
};

static int
shown(const struct token *t)
{
	return (int)(t->len > SHOWN ? SHOWN : t->len);
}

static struct place
place_of(const struct parser *p, const struct token *t)
{
	return (struct place){ p->file, t->line };
}

static bool
is_value(const struct token *t)
{
	return t->type == TOKEN_STRING || t->type == TOKEN_WORD || t->type == TOKEN_VARIABLE;
}


static bool
token_equals(const struct token *t, const char *word)
{
	return t->type == TOKEN_WORD && t->len == strlen(word) &&
	    memcmp(t->text, word, t->len) == 0;
}

/* Whether this is the name of a section. */
static bool
is_known(const struct token *t)
{
	char *name = xstrndup(t->text, t->len);
	enum section section;
	bool known = section_find(name, &section) || strcmp(name, "defaults") == 0;

	free(name);
	return known;
}

/* name { or name "title" {; "x = 20s redis {" does not begin a section 20s. */
static bool
begins_section(const struct token *t)
{
	if (t->type != TOKEN_WORD)
		return false;
	if (token_is(t + 1, '{') || (t[1].type == TOKEN_STRING && token_is(t + 2, '{')))
		return true;
	return t[1].type == TOKEN_WORD && token_is(t + 2, '{') && is_known(t);
}

static bool
begins_option(const struct token *t)
{
	return t->type == TOKEN_WORD && (token_is(t + 1, '=') || t[1].type == TOKEN_APPEND);
}

static bool
begins_include(const struct token *t)
{
	return token_equals(t, "include") && (token_is(t + 1, '(') || is_value(t + 1));
}

static bool
begins_item(const struct token *t)
{
	return begins_section(t) || begins_option(t) || begins_include(t);
}

/* Skips to the next token that begins or ends something. */
static void
resume(struct parser *p)
{
	while (p->t->type != TOKEN_END && !token_is(p->t, '}') && !begins_item(p->t))
		p->t++;
}

/* Moves behind the '}' that closes the present '{', or to the end. */
static void
skip_braces(struct parser *p)
{
	int depth = 0;

	for (; p->t->type != TOKEN_END; p->t++) {
		depth += token_is(p->t, '{');
		depth -= token_is(p->t, '}');
		if (depth == 0) {
			p->t++;
			return;
		}
	}
}

/* -- items ---------------------------------------------------------------------- */

static struct item *
item_add(struct parser *p, enum item_type type, enum section section,
    const struct token *at)
{
	struct config_text *text = p->text;
	struct item *item;

	text->items = xreallocarray(text->items, text->n + 1, sizeof(*text->items));
	item = &text->items[text->n++];
	*item = (struct item){ .type = type, .section = section, .at = place_of(p, at) };
	return item;
}

static void
setting_done(struct setting *s)
{
	size_t i;

	for (i = 0; s->values != NULL && i < s->n; i++)
		free(s->values[i]);
	free(s->values);
	free(s->lines);
}

static void
item_done(struct item *item)
{
	size_t i;

	for (i = 0; i < item->n; i++)
		setting_done(&item->settings[i]);
	free(item->settings);
	free(item->title);
	buf_done(&item->text);
}

/* Appends a token for libconfuse; it quotes words, which libconfuse might misread. */
static void
emit(struct item *item, const struct token *t)
{
	const char *quote = t->type == TOKEN_WORD ? "'" : "";

	buf_puts(&item->text, quote);
	buf_add(&item->text, t->text, t->len);
	buf_puts(&item->text, quote);
}

void
setting_init(struct setting *s, const struct option *option, const struct place *at,
    const char *const *values, size_t n)
{
	size_t i;

	*s = (struct setting){ .option = option, .at = *at, .n = n, .list = true };
	s->values = xcalloc(n + 1, sizeof(*s->values));
	s->lines = xcalloc(n + 1, sizeof(*s->lines));
	for (i = 0; i < n; i++) {
		s->values[i] = xstrdup(values[i]);
		s->lines[i] = at->line;
	}
}

/* -- options --------------------------------------------------------------------- */

static void
setting_add_line(struct setting *s, int line)
{
	s->lines = xreallocarray(s->lines, s->n + 1, sizeof(*s->lines));
	s->lines[s->n++] = line;
}

/* Parses the values between braces, up to '}' or the first token that cannot belong. */
static void
parse_list(struct parser *p, struct setting *s, const struct token **last)
{
	struct place start = place_of(p, p->t);
	bool comma = true;

	for (p->t++; !token_is(p->t, '}'); p->t++) {
		struct place at = place_of(p, p->t);

		if (p->t->type == TOKEN_END || (p->t->type == TOKEN_WORD && begins_item(p->t))) {
			if (!p->cut || p->t->type != TOKEN_END)
				finding_error(p->findings, &start,
				    "this list is not closed: \"}\" is missing");
			s->bad = true;
			*last = p->t;
			return;
		}
		if (token_is(p->t, ',') && !comma) {
			comma = true;
		} else if (is_value(p->t)) {
			if (!comma) {
				finding_error(p->findings, &at, "a comma is missing before %.*s",
				    shown(p->t), p->t->text);
				s->bad = true;
			}
			setting_add_line(s, p->t->line);
			s->bad |= p->t->bad;
			comma = false;
		} else {
			finding_error(p->findings, &at, "unexpected \"%.*s\" in a list",
			    shown(p->t), p->t->text);
			s->bad = true;
		}
	}
	*last = ++p->t;
}

/* Parses the value or list after '='; *last is the token after it. */
static void
parse_value(struct parser *p, struct setting *s, const struct token *name,
    const struct token **last)
{
	struct place at = place_of(p, name);

	if (token_is(p->t, '{')) {
		s->list = true;
		parse_list(p, s, last);
		return;
	}
	if (!is_value(p->t) || (p->t->type == TOKEN_WORD && begins_item(p->t))) {
		if (!p->cut || p->t->type != TOKEN_END)
			finding_error(p->findings, &at, "the value of %.*s is missing",
			    shown(name), name->text);
		s->bad = true;
		*last = p->t;
		return;
	}
	setting_add_line(s, p->t->line);
	s->bad |= p->t->bad;
	*last = ++p->t;
}

static struct setting *
find_setting(struct item *item, const struct option *o)
{
	size_t i;

	for (i = 0; i < item->n; i++) {
		if (item->settings[i].option == o)
			return &item->settings[i];
	}
	return NULL;
}

/* Whether the option is known, new here, and a list only where it may be one. */
static bool
check_setting(struct parser *p, struct item *item, struct setting *s,
    const struct token *name)
{
	char *word = xstrndup(name->text, name->len), *cause = NULL;
	char before[PLACE_TEXT_MAX];
	struct setting *first;
	bool ok;

	s->option = option_find(item->section, word);
	first = s->option != NULL ? find_setting(item, s->option) : NULL;
	if (s->option == NULL)
		cause = option_unknown(item->section, word);
	else if (item->type == ITEM_DEFAULTS && (s->option->flags & OPTION_OWN) != 0)
		cause = xasprintf("%s belongs to one queue: it cannot stand in defaults { }", word);
	else if (first != NULL)
		cause = xasprintf("%s is given twice (first at %s)", word,
		    place_text(&first->at, before));
	else if (s->list && !option_is_list(s->option) && !s->bad) {
		finding_error(p->findings, &s->at, "%s takes one value, not a list", word);
		s->bad = true;
	}
	if (cause != NULL)
		finding_error(p->findings, &s->at, "%s", cause);
	ok = cause == NULL;
	free(cause);
	free(word);
	return ok;
}

static void
emit_setting(struct item *item, const struct setting *s, const struct token *from,
    const struct token *to)
{
	buf_printf(&item->text, "%s = ", s->option->name);
	for (; from < to; from++)
		emit(item, from);
	buf_addc(&item->text, '\n');
}

static void
parse_option(struct parser *p, struct item *item)
{
	const struct token *name = p->t++, *from, *to;
	struct setting s = { .at = place_of(p, name) };

	if (p->t->type == TOKEN_APPEND)
		finding_error(p->findings, &s.at, "\"+=\" does not add to anything: write \"=\" "
		    "and the whole list");
	from = ++p->t;
	parse_value(p, &s, name, &to);
	if (!check_setting(p, item, &s, name)) {
		setting_done(&s);
		return;
	}
	if (!s.bad)
		emit_setting(item, &s, from, to);
	item->settings = xreallocarray(item->settings, item->n + 1, sizeof(s));
	item->settings[item->n++] = s;
}

/* -- what is none of it ------------------------------------------------------------ */

static void
unexpected(struct parser *p, enum section section)
{
	struct place at = place_of(p, p->t);
	char *word = xstrndup(p->t->text, p->t->len);
	bool no_sign = p->t->type == TOKEN_WORD && option_find(section, word) != NULL;

	if (no_sign)
		finding_error(p->findings, &at, "\"=\" is missing after %s", word);
	else if (p->t->type == TOKEN_STRING)
		finding_error(p->findings, &at, "unexpected string %.*s", shown(p->t), word);
	else
		finding_error(p->findings, &at, "unexpected \"%.*s\"", shown(p->t), word);
	free(word);
	p->t++;
	if (no_sign && is_value(p->t) && !begins_item(p->t))
		p->t++;
	resume(p);
}

static void
parse_include(struct parser *p, bool top)
{
	struct place at = place_of(p, p->t);
	const struct token *value = p->t + 2;
	struct item *item;

	if (!token_is(p->t + 1, '(') || !is_value(value) || !token_is(value + 1, ')')) {
		finding_error(p->findings, &at, "write include(\"/path/*.conf\")");
		p->t++;
		resume(p);
		return;
	}
	p->t += 4;
	if (!top) {
		finding_error(p->findings, &at, "include stands outside of all sections only");
		return;
	}
	if (value->bad)
		return;
	item = item_add(p, ITEM_INCLUDE, SECTION_GLOBAL, value - 2);
	buf_puts(&item->text, "title = ");
	emit(item, value);
}

/* -- sections ----------------------------------------------------------------------- */

/* "queue", "queue \"orders\"": how a section is called in messages. */
static char *
section_words(const struct token *name)
{
	if (token_is(name + 1, '{'))
		return xstrndup(name->text, name->len);
	return xasprintf("%.*s %.*s", shown(name), name->text, shown(name + 1), name[1].text);
}

static void
unknown_section(struct parser *p)
{
	static const char *const names[] = {
		"defaults", "http", "log", "queue", "redis", "schedule",
	};
	struct place at = place_of(p, p->t);
	char *name = xstrndup(p->t->text, p->t->len);
	const char *near = NULL;
	size_t i;

	for (i = 0; i < ARRAY_LEN(names); i++) {
		if (util_distance(name, names[i]) <= (strlen(names[i]) > 4 ? 2 : 1))
			near = names[i];
	}
	if (near != NULL)
		finding_error(p->findings, &at, "unknown section \"%.*s\"; did you mean %s?",
		    SHOWN, name, near);
	else
		finding_error(p->findings, &at, "unknown section \"%.*s\"", SHOWN, name);
	free(name);
	while (!token_is(p->t, '{'))
		p->t++;
	skip_braces(p);
}

/* A section inside another: true where the outer one was not closed. */
static bool
is_unclosed(struct parser *p, const struct token *name)
{
	struct place at = place_of(p, name), inner = place_of(p, p->t);
	char *words = section_words(name), *other = section_words(p->t);
	bool known = is_known(p->t);

	if (known) {
		finding_error(p->findings, &at, "%s is not closed: \"}\" is missing before %s in "
		    "line %d", words, other, inner.line);
	} else {
		finding_error(p->findings, &inner, "%s: there are no sections inside of sections",
		    other);
		while (!token_is(p->t, '{'))
			p->t++;
		skip_braces(p);
	}
	free(words);
	free(other);
	return known;
}

static void
not_closed(struct parser *p, const struct token *name)
{
	struct place at = place_of(p, name);
	char *words = section_words(name);

	if (!p->cut)
		finding_error(p->findings, &at, "%s is not closed: \"}\" is missing at the end of "
		    "the file", words);
	free(words);
}

/* Parses a section's body; ends behind its '}'. */
static void
parse_body(struct parser *p, const struct token *name, size_t index)
{
	for (;;) {
		struct item *item = &p->text->items[index];

		if (token_is(p->t, '}')) {
			item->open = false;
			p->t++;
			return;
		}
		item->open = true;
		if (p->t->type == TOKEN_END) {
			not_closed(p, name);
			return;
		}
		if (begins_option(p->t))
			parse_option(p, item);
		else if (begins_include(p->t))
			parse_include(p, false);
		else if (!begins_section(p->t))
			unexpected(p, item->section);
		else if (is_unclosed(p, name))
			return;
	}
}

static void
parse_title(struct parser *p, struct item *item, const struct token *name)
{
	bool titled = !token_is(name + 1, '{');
	struct place at = place_of(p, name);

	bool wanted = item->type == ITEM_QUEUE || item->type == ITEM_SCHEDULE;

	if (wanted && !titled)
		finding_error(p->findings, &at, "the %.*s has no name: write %.*s \"NAME\" { }",
		    shown(name), name->text, shown(name), name->text);
	else if (!wanted && titled)
		finding_error(p->findings, &at, "%.*s has no name: write %.*s { }", shown(name),
		    name->text, shown(name), name->text);
	else if (titled && !name[1].bad) {
		buf_puts(&item->text, "title = ");
		emit(item, name + 1);
		buf_addc(&item->text, '\n');
	}
}

static void
parse_section(struct parser *p)
{
	const struct token *name = p->t;
	enum item_type type = ITEM_OPTIONS;
	enum section section = SECTION_QUEUE;
	struct item *item;

	if (!is_known(name)) {
		unknown_section(p);
		return;
	}
	if (token_equals(name, "defaults")) {
		type = ITEM_DEFAULTS;
	} else {
		char *word = xstrndup(name->text, name->len);

		(void)section_find(word, &section);
		free(word);
		if (section_has_title(section))
			type = section == SECTION_QUEUE ? ITEM_QUEUE : ITEM_SCHEDULE;
	}
	item = item_add(p, type, section, name);
	parse_title(p, item, name);
	p->t += token_is(name + 1, '{') ? 2 : 3;
	parse_body(p, name, p->text->n - 1);
}

static void
parse_file(struct parser *p)
{
	struct place at;

	(void)item_add(p, ITEM_OPTIONS, SECTION_GLOBAL, p->t);
	while (p->t->type != TOKEN_END) {
		at = place_of(p, p->t);
		if (begins_option(p->t))
			parse_option(p, &p->text->items[0]);
		else if (begins_include(p->t))
			parse_include(p, true);
		else if (begins_section(p->t))
			parse_section(p);
		else if (token_is(p->t, '}')) {
			finding_error(p->findings, &at, "unexpected \"}\": no section is open here");
			p->t++;
		} else
			unexpected(p, SECTION_GLOBAL);
	}
}

struct config_text *
config_text_parse(const char *bytes, size_t len, const char *file,
    struct findings *findings)
{
	struct config_text *text = xcalloc(1, sizeof(*text));
	struct parser p = { .file = file, .text = text, .findings = findings };
	struct tokens tokens;
	size_t i;

	text->file = xstrdup(file);
	if (len >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0) {
		bytes += 3;
		len -= 3;
	}
	tokens_scan(&tokens, bytes, len, file, findings);
	p.t = tokens.list;
	p.cut = tokens.cut;
	parse_file(&p);
	tokens_done(&tokens);
	for (i = 0; i < text->n; i++)
		config_value_fill(&text->items[i], findings);
	return text;
}

void
config_text_free(struct config_text *text)
{
	size_t i;

	if (text == NULL)
		return;
	for (i = 0; i < text->n; i++)
		item_done(&text->items[i]);
	free(text->items);
	free(text->file);
	free(text);
}
