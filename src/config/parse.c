/*
 * One configuration file as settings: a pass over its text, then libconfuse.
 *
 * libconfuse counts lines wrongly behind comments, drops odd characters, accepts sections and
 * comments without an end, takes an unset ${NAME} for nothing, and stops at the first unknown
 * option.  So the pass
 *	- overwrites comments with blanks,
 *	- checks characters, strings and braces,
 *	- notes sections, includes and options with their lines, and
 *	- reports names that are not in the table of options, and overwrites them with their values.
 * Where it cannot tell how a statement ends, it cuts the text before that statement.  libconfuse
 * then decodes titles and values, in the same order, and checks the rest of the grammar.
 */
#include <confuse.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "config/draft.h"

#define NAME_CHARS	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
#define WORD_CHARS	NAME_CHARS "-.:/@%"

/* The type of a sign is the sign itself; WORD and STRING are values. */
enum { END = '\0', WORD = 'w', STRING = 's', BAD = '?' };
#define is_value(t)	((t).type == WORD || (t).type == STRING)

struct token {
	int		 type;
	int		 line;		/* where it begins */
	char		*text;
	int		 len;
};

struct parse {
	const char	*file;
	struct findings	*findings;
	struct parsed	*parsed;
	char		*p;		/* the pass: the next character; NUL at the end */
	int		 line;		/* of p */
	bool		 wrong;		/* a value of this statement has been reported */
	size_t		 in;		/* the section that is open; 0: none */
	struct token	 open;		/* its name and title */
	/* The settings that have values, and how many libconfuse has reached; also of items. */
	struct setting	**settings;
	size_t		 nsettings, ntaken, nended;
};

/* error() reports, and is false; error_text() frees its text; wrong() is for one value. */
#define error_text(p, line_, text) \
	finding_add((p)->findings, &(struct place){ (p)->file, (line_) }, false, (text))
#define error(p, line_, ...)	error_text((p), (line_), xasprintf(__VA_ARGS__))
#define wrong(p, line_, ...)	((p)->wrong = !error((p), (line_), __VA_ARGS__))

/* -- tokens ------------------------------------------------------------------------- */

static void
advance(struct parse *p, const char *to)
{
	while (p->p < to)
		p->line += *p->p++ == '\n';
}

static void
blank(char *from, const char *to)
{
	for (; from < to; from++)
		if (*from != '\n')
			*from = ' ';
}

/* Skips blanks and comments, and overwrites the comments. */
static bool
skip(struct parse *p)
{
	char *end;

	for (;;) {
		advance(p, p->p + strspn(p->p, " \t\r\n"));
		if (*p->p == '#' || strncmp(p->p, "//", 2) == 0)
			end = p->p + strcspn(p->p, "\n");
		else if (strncmp(p->p, "/*", 2) != 0)
			return true;
		else if ((end = strstr(p->p + 2, "*/")) != NULL)
			end += 2;
		else
			return error(p, p->line, "this comment is not closed: \"*/\" is missing");
		blank(p->p, end);
	}
}

/* Moves behind "${NAME}" or "${NAME:-default}". */
static void
scan_variable(struct parse *p)
{
	static const char hint[] =
	    "in a command put it into single quotes, or write \\${ in double ones";
	char *name = p->p + 2, *end = name + strcspn(name, "}\"\n");
	char *rest = name + strspn(name, NAME_CHARS), after = *rest;
	bool set;

	*rest = '\0';		/* for getenv(3) */
	set = getenv(name) != NULL;
	*rest = after;
	if (*end != '}')
		wrong(p, p->line, "\"${\" is not closed: %s", hint);
	else if (rest == name || isdigit((unsigned char)*name) ||
	    (rest < end && strncmp(rest, ":-", 2) != 0))
		wrong(p, p->line, "\"${%.*s}\" is not ${NAME} or ${NAME:-default}: %s",
		    (int)(end - name), name, hint);
	else if (strncmp(name, "RQD_", 4) == 0)
		wrong(p, p->line, "${%.*s} would be replaced now, not when the handler runs: %s",
		    (int)(rest - name), name, hint);
	else if (rest == end && !set)
		wrong(p, p->line, "${%.*s} is not set in the environment: set it, write "
		    "${%.*s:-default}, or, if it is meant for a shell, use single quotes",
		    (int)(end - name), name, (int)(end - name), name);
	p->p = name;
	if (*end == '}')
		p->p = end + 1;
}

/* Whether the characters behind a backslash are an escape, and not that of a NUL. */
static bool
is_escape(const char *s)
{
	size_t digits = strspn(s, "0123456789");

	if (*s == 'x' && s[1] == '0')
		return isxdigit((unsigned char)s[2]) && s[2] != '0';
	if (*s == 'x')
		return isxdigit((unsigned char)s[1]);
	if (digits > 0)
		return digits <= 3 && strspn(s, "01234567") == digits &&
		    strtoul(s, NULL, 8) - 1 < 0xff;
	return *s != '\0' && strchr("ntrbfaev\"'\\$\n", *s) != NULL;
}

/* Moves behind a string.  False: it has no end. */
static bool
scan_string(struct parse *p)
{
	const char quote = *p->p, *end;

	for (end = p->p + 1; *end != quote && *end != '\0'; end++)
		end += *end == '\\' && end[1] != '\0';
	/* Where a quote is missing, the text up to the next string looks like one. */
	if (*end == '\0' || (memchr(p->p, '\n', (size_t)(end - p->p)) != NULL &&
	    strchr(" \t\r\n,})/#", end[1]) == NULL))
		return error(p, p->line, "this string is not closed: %c is missing", quote);
	for (p->p++; p->p < end && quote == '"';) {
		if (*p->p == '\\' && !is_escape(p->p + 1))
			wrong(p, p->line, "bad escape \"%.2s\" in a string: write \"\\\\\" for a "
			    "backslash, \"\\001\" to \"\\377\" or \"\\x01\" to \"\\xff\" for a "
			    "byte, or use single quotes", p->p);
		if (strncmp(p->p, "${", 2) == 0)
			scan_variable(p);
		else if (*p->p == '\\')
			advance(p, p->p + 2);
		else
			advance(p, p->p + 1);
	}
	advance(p, end + 1);
	return true;
}

static struct token
next(struct parse *p)
{
	struct token t = { .type = BAD };
	bool ok = skip(p);
	size_t n = 0;

	t.text = p->p;
	t.line = p->line;
	/* A word ends before a comment, but "http://" does not. */
	while (p->p[n] != '\0' && strchr(WORD_CHARS, p->p[n]) != NULL &&
	    strncmp(p->p + n, "/*", 2) != 0 &&
	    (strncmp(p->p + n, "//", 2) != 0 || (n > 0 && p->p[n - 1] == ':')))
		n += strncmp(p->p + n, "//", 2) == 0 ? 2 : 1;
	if (!ok) {
		return t;
	} else if (n > 0) {
		t.type = WORD;
		p->p += n;
	} else if (*p->p == '"' || *p->p == '\'') {
		if (scan_string(p))
			t.type = STRING;
	} else if (strncmp(p->p, "${", 2) == 0) {
		t.type = STRING;
		scan_variable(p);
	} else if (strchr("{}()=,", *p->p) != NULL) {
		t.type = *p->p;
		p->p += t.type != END;
	} else {
		for (n = 1; (p->p[n] & 0xc0) == 0x80;)	/* a whole character of UTF-8 */
			n++;
		error(p, p->line, "stray \"%.*s\": put text with such characters into quotes",
		    (int)n, p->p);
	}
	t.len = (int)(p->p - t.text);
	return t;
}

/* -- statements: false where the text must be cut ----------------------------------------- */

/* Appends an item; returns its index. */
static size_t
add_item(struct parse *p, enum section section, int line)
{
	*APPEND(p->parsed->items, p->parsed->n) = (struct item){
		.section = section, .at = { p->file, line }
	};
	return p->parsed->n - 1;
}

/* NAME = VALUE, or NAME = {VALUE, VALUE}; p is behind the sign. */
static bool
take_option(struct parse *p, const struct token *name, const char *text)
{
	struct item *item = &p->parsed->items[p->in];
	const struct option *o = option_find(item->section, text);
	struct token first = next(p), t = first;
	struct setting *s;
	size_t n = 0;

	if (o == NULL)
		error_text(p, name->line, option_unknown(item->section, text));
	if (first.type == '{') {
		while ((t = next(p)).type == ',' || is_value(t))
			n += t.type != ',';
		if (t.type == '{')
			return error(p, t.line, "unexpected \"{\" in a list");
		if (t.type != '}' && t.type != BAD)
			return error(p, first.line, "this list is not closed: \"}\" is missing");
	} else if (t.type != BAD && !is_value(t)) {
		return error(p, name->line, "the value of %s is missing", text);
	}
	if (t.type == BAD)
		return false;
	if (o != NULL && first.type == '{' && !option_is_list(o))
		wrong(p, name->line, "%s takes one value, not a list", text);
	if (o == NULL || p->wrong)
		blank(name->text, p->p);
	if (o == NULL)
		return true;
	s = setting_new(o, &(struct place){ p->file, name->line });
	*APPEND(item->settings, item->n) = s;
	s->list = first.type == '{';
	s->bad = p->wrong;
	if (!s->bad && (n > 0 || !s->list))
		*APPEND(p->settings, p->nsettings) = s;
	return true;
}

/* NAME { or NAME TITLE {, which is len bytes without the brace; p is behind it. */
static bool
take_section(struct parse *p, const struct token *name, const char *text, int len)
{
	enum section section = section_find(text);
	struct token t;
	int depth = 1;

	if (section < SECTION_MAX && p->in == 0) {
		p->in = add_item(p, section, name->line);
		p->open = *name;
		p->open.len = len;
		return !p->wrong;
	}
	if (section < SECTION_MAX)
		return error(p, p->open.line, "%.*s is not closed: \"}\" is missing before %.*s in "
		    "line %d", p->open.len, p->open.text, len, name->text, name->line);
	if (p->in == 0)
		error_text(p, name->line, section_unknown(text));
	else
		error(p, name->line,
		    "%s: there are no sections inside of sections", text);
	while (depth > 0 && (t = next(p)).type != BAD && t.type != END)
		depth += (t.type == '{') - (t.type == '}');
	blank(name->text, p->p);
	return depth == 0 || t.type == BAD || error(p, name->line, "%s is not closed", text);
}

/* include(NAME); p is behind the parenthesis. */
static bool
take_include(struct parse *p, const struct token *name)
{
	struct token pattern = next(p), end = next(p);

	if (!is_value(pattern) || end.type != ')')
		return error(p, name->line, "write include(\"/path/*.conf\")");
	if (p->in > 0)
		wrong(p, name->line, "include stands outside of all sections only");
	if (p->wrong)
		blank(name->text, p->p);
	else
		(void)add_item(p, SECTION_MAX, name->line);
	return true;
}

/* The whole pass; false: the text has been cut. */
static bool
prepare(struct parse *p)
{
	struct token name, t, brace;
	char text[64];
	bool ok = true;

	while (ok) {
		p->wrong = false;
		name = next(p);
		if (name.type == '}' && p->in > 0) {
			p->in = 0;
			continue;
		}
		if (name.type == END)
			return p->in == 0 || error(p, p->open.line, "%.*s is not closed: \"}\" is "
			    "missing at the end of the file", p->open.len, p->open.text);
		t = brace = name;
		if (name.type == WORD)
			t = brace = next(p);
		if (name.type == WORD && is_value(t))
			brace = next(p);
		snprintf(text, sizeof(text), "%.*s", name.len, name.text);
		if (t.type == BAD || brace.type == BAD) {
			ok = false;
		} else if (name.type == WORD && t.type == '=') {
			ok = take_option(p, &name, text);
		} else if (name.type == WORD && t.type == '{') {
			ok = take_section(p, &name, text, name.len);
		} else if (name.type == WORD && brace.type == '{') {
			ok = take_section(p, &name, text,
			    (int)(t.text + t.len - name.text));
		} else if (t.type == '(' && strcmp(text, "include") == 0) {
			ok = take_include(p, &name);
		} else {
			if (name.type == '}')
				error(p, name.line, "unexpected \"}\": no section is open here");
			else if (option_find(p->parsed->items[p->in].section, text) != NULL)
				error(p, name.line, "\"=\" is missing after %s", text);
			else if (strchr("\"'", *text) != NULL)
				error(p, name.line, "unexpected %s", text);
			else
				error(p, name.line, "unexpected \"%s\"", text);
			blank(name.text, name.text + name.len);
			p->p = name.text;
			p->line = name.line;
		}
	}
	*name.text = '\0';
	return false;
}

/* -- libconfuse ------------------------------------------------------------------------ */

static struct parse *running;	/* its callbacks take no argument of ours */

static void PRINTF(2, 0)
complain(cfg_t *cfg, const char *fmt, va_list ap)
{
	char *text = xvasprintf(fmt, ap);

	error(running, (int)cfg->line, "%s", text);
	free(text);
}

static int
on_value(cfg_t *cfg, cfg_opt_t *opt, const char *value, void *result)
{
	struct parse *p = running;

	p->ntaken += opt->nvalues == 1;		/* the first of a list, or the only one */
	if (p->ntaken > p->nsettings ||
	    strcmp(p->settings[p->ntaken - 1]->option->name, opt->name) != 0) {
		cfg_error(cfg, "unexpected value of %s", opt->name);
		return -1;
	}
	setting_add(p->settings[p->ntaken - 1], value, (int)cfg->line);
	*(const char **)result = value;
	return 0;
}

/* At a section's closing brace: drops it, so that the next one with this title is new. */
static int
on_section(cfg_t *cfg UNUSED, cfg_opt_t *opt)
{
	const char *title = cfg_title(cfg_opt_getnsec(opt, 0));
	struct item *item = &running->parsed->items[++running->nended];

	if (title != NULL)
		item->title = xstrdup(title);
	cfg_free_value(opt);
	return 0;
}

static int
on_include(cfg_t *cfg UNUSED, cfg_opt_t *opt UNUSED, int argc UNUSED, const char **argv)
{
	running->parsed->items[++running->nended].title = xstrdup(argv[0]);
	return 0;
}

static size_t
add_options(cfg_opt_t *to, enum section section)
{
	size_t n = 0;

	EACH_OPTION(o) {
		if (!option_belongs(o, section))
			continue;
		to[n] = (cfg_opt_t){ .name = o->name, .type = CFGT_STR,
		    .flags = CFGF_NODEFAULT, .parsecb = on_value };
		if (option_is_list(o))
			to[n].flags |= CFGF_LIST;
		n++;
	}
	to[n] = (cfg_opt_t)CFG_END();
	return n;
}

static int
parse_rest(struct parse *p, const char *text)
{
	cfg_opt_t root[OPTIONS_MAX], options[SECTION_MAX][OPTIONS_MAX];
	size_t n = add_options(root, SECTION_GLOBAL);
	cfg_t *cfg;
	int rc;

	for (enum section s = SECTION_REDIS; s < SECTION_MAX; s++) {
		(void)add_options(options[s], s);
		root[n] = (cfg_opt_t){ .name = section_name(s),
		    .type = CFGT_SEC, .flags = CFGF_MULTI,
		    .subopts = options[s], .validcb = on_section };
		if (section_has_title(s))
			root[n].flags |= CFGF_TITLE;
		n++;
	}
	root[n++] = (cfg_opt_t)CFG_FUNC("include", on_include);
	root[n] = (cfg_opt_t)CFG_END();
	if ((cfg = cfg_init(root, CFGF_NONE)) == NULL)
		fatal_os("cfg_init: out of memory");
	(void)cfg_set_error_function(cfg, complain);
	running = p;
	rc = cfg_parse_buf(cfg, text);
	cfg_free(cfg);
	return rc == CFG_SUCCESS ? 0 : -1;
}

int
parse_text(struct parsed *parsed, char *text, const char *file, struct findings *findings)
{
	bool mark = strncmp(text, "\xef\xbb\xbf", 3) == 0;	/* UTF-8's */
	struct parse p = {
		.file = file, .findings = findings, .parsed = parsed, .line = 1,
		.p = text + 3 * mark,
	};
	size_t nerrors;
	int line = 1;
	bool ok;

	*parsed = (struct parsed){ NULL, 0 };
	(void)add_item(&p, SECTION_GLOBAL, 1);
	ok = prepare(&p);
	nerrors = findings->nerrors;
	/* All that the pass has noted must be there. */
	if (parse_rest(&p, text + 3 * mark) == -1 ||
	    (ok && (p.ntaken < p.nsettings || p.nended + 1 < parsed->n))) {
		if (p.ntaken < p.nsettings)
			line = p.settings[p.ntaken]->at.line;
		if (ok && findings->nerrors == nerrors)
			error(&p, line, "libconfuse reads this in another way");
		ok = false;
	}
	free(p.settings);
	return ok ? 0 : -1;
}
