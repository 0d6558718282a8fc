/*
 * The parser: tokens to items.
 *
 * After an unexpected token the parser goes on at the next one that can begin an option, a
 * section or an include, or at "}".  In a list it goes on at the next element.  It skips an
 * unknown section as a whole.  If a known section begins inside another one, the outer one was
 * not closed.
 */
#include "config/parser.h"

#include <stdlib.h>
#include <string.h>

#include "config/lexer.h"

struct parser {
	const struct token *t;		/* the next one; the last is TOKEN_END */
	bool		 cut;		/* the end is missing, and has been reported */
	const char	*file;
	struct parsed	*parsed;
	struct findings	*findings;
};

static struct place
place_of(const struct parser *p, const struct token *t)
{
	return (struct place){ p->file, t->line };
}

/* Reports an error in the line of the token. */
#define error(p, t, ...) \
	finding_error((p)->findings, (&(struct place){ (p)->file, (t)->line }), __VA_ARGS__)

static bool
is_value(const struct token *t)
{
	return t->type == TOKEN_STRING || t->type == TOKEN_WORD || t->type == TOKEN_VARIABLE;
}

static bool
is_end(const struct token *t)
{
	return t->type == TOKEN_END;
}

/* Finds the section of this name: what an item of it is, and whose options it holds. */
static bool
find_section(const char *name, enum item_type *type, enum section *section)
{
	*type = ITEM_DEFAULTS;
	*section = SECTION_QUEUE;
	if (strcmp(name, "defaults") == 0)
		return true;
	if (!section_find(name, section))
		return false;
	*type = *section == SECTION_QUEUE ? ITEM_QUEUE :
	    *section == SECTION_SCHEDULE ? ITEM_SCHEDULE : ITEM_OPTIONS;
	return true;
}

static bool
is_known(const struct token *t)
{
	enum item_type type;
	enum section section;

	return find_section(t->text, &type, &section);
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
	return t->type == TOKEN_WORD && strcmp(t->text, "include") == 0 &&
	    (token_is(t + 1, '(') || is_value(t + 1));
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
	while (!is_end(p->t) && !token_is(p->t, '}') && !begins_item(p->t))
		p->t++;
}

/* Moves behind the next '{' and the '}' that closes it, or to the end. */
static void
skip_section(struct parser *p)
{
	int depth = 0;

	while (!token_is(p->t, '{'))
		p->t++;
	for (; !is_end(p->t); p->t++) {
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
	struct item *item = APPEND(p->parsed->items, p->parsed->n);

	*item = (struct item){ .type = type, .section = section, .at = place_of(p, at) };
	return item;
}

struct setting *
setting_new(const struct option *option, const struct place *at)
{
	struct setting *s = NEW(struct setting, .option = option, .at = *at);

	s->values = xcalloc(1, sizeof(*s->values));
	return s;
}

void
setting_add(struct setting *s, const char *value, int line)
{
	s->values = xreallocarray(s->values, s->n + 2, sizeof(*s->values));
	s->lines = xreallocarray(s->lines, s->n + 1, sizeof(*s->lines));
	s->lines[s->n] = line;
	s->values[s->n++] = xstrdup(value);
	s->values[s->n] = NULL;
}

void
setting_free(struct setting *s)
{
	if (s == NULL)
		return;
	while (s->n > 0)
		free(s->values[--s->n]);
	free(s->values);
	free(s->lines);
	free(s);
}

static void
item_done(struct item *item)
{
	for (size_t i = 0; i < item->n; i++)
		setting_free(item->settings[i]);
	free(item->settings);
	free(item->title);
}

/* The token's value, which the caller frees; NULL: wrong, and reported. */
static char *
decode(const struct parser *p, const struct token *t)
{
	char *cause = NULL, *value = t->bad ? NULL : token_decode(t, &cause);

	if (cause != NULL)
		error(p, t, "%s", cause);
	free(cause);
	return value;
}

/* -- options --------------------------------------------------------------------- */

/* Takes the value that is next. */
static void
take_value(struct parser *p, struct setting *s)
{
	char *value = decode(p, p->t);

	setting_add(s, value != NULL ? value : "", p->t->line);
	s->bad |= value == NULL;
	free(value);
	p->t++;
}

/* Takes what may stand between the values of a list, or reports it. */
static void
parse_element(struct parser *p, struct setting *s, bool *comma)
{
	if (token_is(p->t, ',') && !*comma) {
		*comma = true;
		p->t++;
		return;
	}
	if (!is_value(p->t)) {
		error(p, p->t, "unexpected \"%.60s\" in a list", p->t->text);
		s->bad = true;
		p->t++;
		return;
	}
	if (!*comma) {
		error(p, p->t, "a comma is missing before %.60s", p->t->text);
		s->bad = true;
	}
	*comma = false;
	take_value(p, s);
}

/* Parses the values between braces, up to '}' or the first token that cannot belong. */
static void
parse_list(struct parser *p, struct setting *s)
{
	const struct token *start = p->t++;
	bool comma = true;

	while (!token_is(p->t, '}')) {
		if (is_end(p->t) || (p->t->type == TOKEN_WORD && begins_item(p->t))) {
			if (!p->cut || !is_end(p->t))
				error(p, start, "this list is not closed: \"}\" is missing");
			s->bad = true;
			return;
		}
		parse_element(p, s, &comma);
	}
	p->t++;
}

/* Parses the value or list after '='. */
static void
parse_value(struct parser *p, struct setting *s, const struct token *name)
{
	s->list = token_is(p->t, '{');
	if (s->list) {
		parse_list(p, s);
	} else if (is_value(p->t) && !(p->t->type == TOKEN_WORD && begins_item(p->t))) {
		take_value(p, s);
	} else {
		if (!p->cut || !is_end(p->t))
			error(p, name, "the value of %.60s is missing", name->text);
		s->bad = true;
	}
}

/* Whether the option may stand here; reports if not. */
static bool
check_option(struct parser *p, const struct item *item, const struct option *o,
    const struct token *name)
{
	char *cause;

	if (o == NULL) {
		cause = option_unknown(item->section, name->text);
		error(p, name, "%s", cause);
		free(cause);
	} else if (item->type == ITEM_DEFAULTS && (o->flags & OPTION_OWN) != 0) {
		error(p, name, "%s belongs to one queue: it cannot stand in defaults { }",
		    name->text);
	} else {
		return true;
	}
	return false;
}

static void
parse_option(struct parser *p, struct item *item)
{
	const struct token *name = p->t++;
	struct place at = place_of(p, name);
	struct setting *s = setting_new(option_find(item->section, name->text), &at);

	if (p->t->type == TOKEN_APPEND)
		error(p, name, "\"+=\" does not add to anything: write \"=\" and the whole list");
	p->t++;
	parse_value(p, s, name);
	if (!check_option(p, item, s->option, name)) {
		setting_free(s);
		return;
	}
	if (s->list && !option_is_list(s->option) && !s->bad) {
		error(p, name, "%s takes one value, not a list", name->text);
		s->bad = true;
	}
	*APPEND(item->settings, item->n) = s;
}

/* -- neither option nor section ------------------------------------------------------------ */

static void
unexpected(struct parser *p, enum section section)
{
	const struct token *t = p->t++;
	bool no_sign = t->type == TOKEN_WORD && option_find(section, t->text) != NULL;

	if (no_sign)
		error(p, t, "\"=\" is missing after %s", t->text);
	else if (t->type == TOKEN_STRING)
		error(p, t, "unexpected string %.60s", t->text);
	else
		error(p, t, "unexpected \"%.60s\"", t->text);
	if (no_sign && is_value(p->t) && !begins_item(p->t))
		p->t++;
	resume(p);
}

static void
parse_include(struct parser *p, bool top)
{
	const struct token *name = p->t, *pattern = name + 2;

	if (!token_is(name + 1, '(') || !is_value(pattern) || !token_is(pattern + 1, ')')) {
		error(p, name, "write include(\"/path/*.conf\")");
		p->t++;
		resume(p);
		return;
	}
	p->t += 4;
	if (!top)
		error(p, name, "include stands outside of all sections only");
	else
		item_add(p, ITEM_INCLUDE, SECTION_GLOBAL, name)->title = decode(p, pattern);
}

/* -- sections ----------------------------------------------------------------------- */

/* "queue", "queue \"orders\"": how a section is called in messages. */
static char *
section_words(const struct token *name)
{
	if (token_is(name + 1, '{'))
		return xstrdup(name->text);
	return xasprintf("%.60s %.60s", name->text, name[1].text);
}

static void
unknown_section(struct parser *p)
{
	const char *name = p->t->text;
	struct nearest near = { name, strlen(name) > 4 ? 3 : 2, NULL };

	util_nearest(&near, "defaults");
	for (enum section s = SECTION_REDIS; s < SECTION_MAX; s++)
		util_nearest(&near, section_name(s));
	if (near.best != NULL)
		error(p, p->t, "unknown section \"%.60s\"; did you mean %s?", name, near.best);
	else
		error(p, p->t, "unknown section \"%.60s\"", name);
	skip_section(p);
}

/*
 * Whether a section inside another shows that the outer one was not closed; reports
 * both cases.
 */
static bool
is_unclosed(struct parser *p, const struct token *name)
{
	char *words = section_words(name), *inner = section_words(p->t);
	bool known = is_known(p->t);

	if (known) {
		error(p, name, "%s is not closed: \"}\" is missing before %s in line %d", words,
		    inner, p->t->line);
	} else {
		error(p, p->t, "%s: there are no sections inside of sections", inner);
		skip_section(p);
	}
	free(words);
	free(inner);
	return known;
}

static void
not_closed(struct parser *p, const struct token *name)
{
	char *words = section_words(name);

	if (!p->cut)
		error(p, name, "%s is not closed: \"}\" is missing at the end of the file", words);
	free(words);
}

/* Parses a section's body; ends behind its '}'. */
static void
parse_body(struct parser *p, const struct token *name, struct item *item)
{
	item->open = true;
	while (!token_is(p->t, '}')) {
		if (is_end(p->t)) {
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
	item->open = false;
	p->t++;
}

static void
parse_title(struct parser *p, struct item *item, const struct token *name)
{
	bool titled = !token_is(name + 1, '{'), wanted = section_has_title(item->section) &&
	    item->type != ITEM_DEFAULTS;

	if (wanted && !titled)
		error(p, name, "the %s has no name: write %s \"NAME\" { }", name->text, name->text);
	else if (!wanted && titled)
		error(p, name, "%s has no name: write %s { }", name->text, name->text);
	else if (titled)
		item->title = decode(p, name + 1);
}

static void
parse_section(struct parser *p)
{
	const struct token *name = p->t;
	enum item_type type;
	enum section section;
	struct item *item;

	if (!find_section(name->text, &type, &section)) {
		unknown_section(p);
		return;
	}
	item = item_add(p, type, section, name);
	parse_title(p, item, name);
	p->t += token_is(name + 1, '{') ? 2 : 3;
	parse_body(p, name, item);
}

static void
parse_file(struct parser *p)
{
	(void)item_add(p, ITEM_OPTIONS, SECTION_GLOBAL, p->t);
	while (!is_end(p->t)) {
		if (begins_option(p->t))
			parse_option(p, &p->parsed->items[0]);
		else if (begins_include(p->t))
			parse_include(p, true);
		else if (begins_section(p->t))
			parse_section(p);
		else if (token_is(p->t, '}'))
			error(p, p->t++, "unexpected \"}\": no section is open here");
		else
			unexpected(p, SECTION_GLOBAL);
	}
}

void
parser_read(struct parsed *parsed, const char *text, size_t len, const char *file,
    struct findings *findings)
{
	struct parser p = { .file = file, .parsed = parsed, .findings = findings };
	size_t mark = len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;	/* UTF-8's */
	struct tokens tokens;

	*parsed = (struct parsed){ NULL, 0 };
	lexer_scan(&tokens, text + mark, len - mark, file, findings);
	p.t = tokens.list;
	p.cut = tokens.cut;
	parse_file(&p);
	lexer_done(&tokens);
}

void
parser_done(struct parsed *parsed)
{
	for (size_t i = 0; i < parsed->n; i++)
		item_done(&parsed->items[i]);
	free(parsed->items);
}
