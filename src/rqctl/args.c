/*
 * Parsing in two steps, because options may stand before the verb that takes
 * them: first argv is split into options (whether one takes a value depends on
 * its name, and for --wait on the verb, see verbs.c) and words; then the words
 * name the verb, and each option is checked against what that verb takes.
 *
 * Long options are written in full, "--name=value" or "--name value"; letters
 * may be joined, and the last of them may have its value attached: -nc FILE.
 */
#include "rqctl/args.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "rqctl/verbs.h"

/* An option as it was met, before the verb is known. */
struct met {
	const struct opt_def	*def;	/* of the first option of that name */
	const char		*value;
};

struct split {
	char *const	*argv;		/* what is left of it */
	const struct verb *verb;	/* as far as it can be guessed; NULL: none */
	struct met	*met;
	size_t		 nmet;
	const char	**words;
	int		 nwords;
};

/* Says which option was probably meant. */
static int
unknown_option(const char *text, size_t len, char **cause)
{
	const char *best = NULL;
	char name[64];
	unsigned d, best_d = 3;
	size_t i;

	snprintf(name, sizeof(name), "%.*s", (int)(len < 63 ? len : 63), text);
	for (i = 0; i < OPT_MAX; i++) {
		d = util_distance(name, opt_table[i].name);
		if (d < best_d) {
			best_d = d;
			best = opt_table[i].name;
		}
	}
	if (best == NULL)
		return util_cause(cause, "there is no option --%s", name);
	return util_cause(cause, "there is no option --%s; did you mean --%s?", name, best);
}

/* The value of an option that takes one: the next word of argv; "" where it may be left out. */
static int
next_value(struct split *s, const struct opt_def *def, const char **ret, char **cause)
{
	usec_t ignored;

	if (opt_is_optional(def) &&
	    (*s->argv == NULL || units_parse_duration(*s->argv, &ignored) == -1)) {
		*ret = "";
		return 0;
	}
	if (*s->argv == NULL)
		return util_cause(cause, "--%s needs a value: %s", def->name, def->arg);
	*ret = *s->argv++;
	return 0;
}

static void
add_met(struct split *s, const struct opt_def *def, const char *value)
{
	s->met[s->nmet++] = (struct met){ def, value };
}

/* --name, --name=value */
static int
split_long(struct split *s, const char *text, char **cause)
{
	size_t len = strcspn(text, "=");
	const char *value = text[len] == '=' ? text + len + 1 : NULL;
	const struct opt_def *def = opt_find(s->verb, text, len);

	if (def == NULL)
		return unknown_option(text, len, cause);
	if (def->arg == NULL && value != NULL)
		return util_cause(cause, "--%s takes no value", def->name);
	if (def->arg != NULL && value == NULL &&
	    next_value(s, def, &value, cause) == -1)
		return -1;
	add_met(s, def, value == NULL ? "" : value);
	return 0;
}

/* -n, -ny, -cFILE, -c FILE */
static int
split_letters(struct split *s, const char *text, char **cause)
{
	const struct opt_def *def;
	const char *value = NULL;

	for (; *text != '\0'; text++) {
		if ((def = opt_find_letter(*text)) == NULL)
			return util_cause(cause, "there is no option -%c", *text);
		if (def->arg == NULL) {
			add_met(s, def, "");
			continue;
		}
		if (text[1] != '\0')
			value = text + 1;
		else if (next_value(s, def, &value, cause) == -1)
			return -1;
		add_met(s, def, value);
		break;
	}
	return 0;
}

/* The first word that is a verb's: it says which of two options of one name is meant. */
static const struct verb *
guess_verb(char *const *argv)
{
	const struct verb *v = NULL;
	int words;

	for (; v == NULL && *argv != NULL && strcmp(*argv, "--") != 0; argv++)
		v = verb_find(argv[0], argv[1], &words);
	return v;
}

/* Splits argv; "-" alone is a word. */
static int
split(struct split *s, char **cause)
{
	const char *text;

	s->verb = guess_verb(s->argv);
	while ((text = *s->argv) != NULL) {
		s->argv++;
		if (strcmp(text, "--") == 0)
			break;
		if (text[0] != '-' || text[1] == '\0')
			s->words[s->nwords++] = text;
		else if (text[1] == '-') {
			if (split_long(s, text + 2, cause) == -1)
				return -1;
		} else if (split_letters(s, text + 1, cause) == -1)
			return -1;
	}
	while (*s->argv != NULL)
		s->words[s->nwords++] = *s->argv++;
	return 0;
}

/* The members of a group, for "dead what?". */
static int
incomplete_group(const char *group, char **cause)
{
	const struct verb *v;
	char list[256] = "";
	size_t n = strlen(group), used = 0;

	for (v = verb_table; v->name != NULL; v++) {
		if (strncmp(v->name, group, n) != 0 || v->name[n] != ' ')
			continue;
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s",
		    used > 0 ? ", " : "", v->name + n + 1);
		if (used >= sizeof(list))
			break;
	}
	if (used == 0)
		return 0;
	return util_cause(cause, "%s needs one of: %s%s", group, list,
	    strcmp(group, "retry") == 0 ? "; dead letters: rqctl dead retry" : "");
}

static int
find_verb(struct args *a, const struct split *s, char **cause)
{
	const char *near;
	int words = 0;

	if (s->nwords == 0)
		return 0;
	a->verb = verb_find(s->words[0], s->words[1], &words);
	if (a->verb == NULL) {
		if (incomplete_group(s->words[0], cause) == -1)
			return -1;
		near = verb_nearest(s->words[0]);
		return util_cause(cause, "there is no verb \"%.40s\"; %s%s%s", s->words[0],
		    near != NULL ? "did you mean " : "rqctl help lists them",
		    near != NULL ? near : "", near != NULL ? "?" : "");
	}
	a->nwords = s->nwords - words;
	memmove(a->words, a->words + words, ((size_t)a->nwords + 1) * sizeof(a->words[0]));
	return 0;
}

/* The verb's own option of that name, or OPT_MAX. */
static size_t
option_of(const struct verb *verb, const char *name)
{
	uint64_t takes = verb_options(verb);
	size_t i;

	for (i = 0; i < OPT_MAX; i++)
		if ((takes >> i & 1) != 0 && strcmp(opt_table[i].name, name) == 0)
			break;
	return i;
}

static int
take_options(struct args *a, const struct split *s, char **cause)
{
	const char *name;
	size_t i, o, nset = 0;

	for (i = 0; i < s->nmet; i++) {
		name = s->met[i].def->name;
		if ((o = option_of(a->verb, name)) == OPT_MAX)
			return util_cause(cause, "%s%s--%s does not go together",
			    a->verb == NULL ? "no verb" : a->verb->name,
			    " and ", name);
		if (o == OPT_SET)
			a->set[nset++] = s->met[i].value;
		else if (a->value[o] != NULL && opt_table[o].arg != NULL)
			return util_cause(cause, "--%s is given twice", name);
		a->value[o] = s->met[i].value;
	}
	return 0;
}

static int
check_words(const struct args *a, char **cause)
{
	const struct verb *v = a->verb;

	if (a->nwords >= v->min_args && (v->max_args < 0 || a->nwords <= v->max_args))
		return 0;
	return util_cause(cause, "%s: usage: rqctl %s%s%s",
	    a->nwords < v->min_args ? "an argument is missing" : "too many arguments",
	    v->name, v->args[0] != '\0' ? " " : "", v->args);
}

int
args_parse(struct args *a, int argc, char *const *argv, char **cause)
{
	size_t room = (size_t)argc + 1, letters = 0;
	struct split s = { .argv = argv + (argc > 0) };
	int i, rc;

	for (i = 1; i < argc; i++)
		letters += strlen(argv[i]);
	memset(a, 0, sizeof(*a));
	a->set = xcalloc(room + letters, sizeof(a->set[0]));
	a->words = xcalloc(room, sizeof(a->words[0]));
	s.met = xcalloc(room + letters, sizeof(s.met[0]));
	s.words = a->words;
	if ((rc = split(&s, cause)) == 0 && (rc = find_verb(a, &s, cause)) == 0)
		rc = take_options(a, &s, cause);
	free(s.met);
	if (rc == -1 && a->verb == NULL)
		a->verb = s.verb;
	if (rc == -1 || a->value[OPT_HELP] != NULL || a->value[OPT_VERSION] != NULL)
		return rc;
	if (a->verb == NULL)
		return util_cause(cause, "say what to do: rqctl help lists the verbs");
	return check_words(a, cause);
}

void
args_done(struct args *a)
{
	free(a->set);
	free(a->words);
	memset(a, 0, sizeof(*a));
}
