/*
 * Options may stand before the verb that takes them, and two verbs may have different
 * options of one name.  So the parser guesses the verb first.  When the words have named the
 * verb, it checks each option against what that verb takes.
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

struct reader {
	struct args	*args;
	char *const	*argv;		/* what is left of it */
	const struct verb *guess;	/* NULL: none */
	size_t		 nset;
	char		**cause;
};

/* Names the option that was probably meant. */
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

/* The next word of argv as the value of an option; "" where it may be left out. */
static int
next_value(struct reader *p, const struct opt_def *def, const char **ret)
{
	usec_t ignored;

	if (opt_is_optional(def) &&
	    (*p->argv == NULL || units_parse_duration(*p->argv, &ignored) == -1)) {
		*ret = "";
		return 0;
	}
	if (*p->argv == NULL)
		return util_cause(p->cause, "--%s needs a value: %s", def->name, def->arg);
	*ret = *p->argv++;
	return 0;
}

/* value NULL: the next word of argv, if the option takes one. */
static int
take_option(struct reader *p, const struct opt_def *def, const char *value)
{
	size_t o = (size_t)(def - opt_table);

	if (def->arg != NULL && value == NULL && next_value(p, def, &value) == -1)
		return -1;
	if (o == OPT_SET)
		p->args->set[p->nset++] = value;
	else if (p->args->value[o] != NULL && def->arg != NULL)
		return util_cause(p->cause, "--%s is given twice", def->name);
	p->args->value[o] = value == NULL ? "" : value;
	return 0;
}

/* --name, --name=value */
static int
take_long(struct reader *p, const char *text)
{
	size_t len = strcspn(text, "=");
	const char *value = text[len] == '=' ? text + len + 1 : NULL;
	const struct opt_def *def = opt_find(p->guess, text, len);

	if (def == NULL)
		return unknown_option(text, len, p->cause);
	if (def->arg == NULL && value != NULL)
		return util_cause(p->cause, "--%s takes no value", def->name);
	return take_option(p, def, value);
}

/* -n, -ny, -cFILE, -c FILE */
static int
take_letters(struct reader *p, const char *text)
{
	const struct opt_def *def;

	for (; *text != '\0'; text++) {
		if ((def = opt_find_letter(*text)) == NULL)
			return util_cause(p->cause, "there is no option -%c", *text);
		if (def->arg != NULL)
			return take_option(p, def, text[1] != '\0' ? text + 1 : NULL);
		if (take_option(p, def, NULL) == -1)
			return -1;
	}
	return 0;
}

/* The first word that names a verb; it tells two options of one name apart. */
static const struct verb *
guess_verb(char *const *argv)
{
	const struct verb *v = NULL;
	int words;

	for (; v == NULL && *argv != NULL && strcmp(*argv, "--") != 0; argv++)
		v = verb_find(argv[0], argv[1], &words);
	return v;
}

/* Takes argv apart; "-" alone is a word. */
static int
take_all(struct reader *p)
{
	struct args *a = p->args;
	const char *text;
	int rc = 0;

	p->guess = guess_verb(p->argv);
	while (rc == 0 && (text = *p->argv) != NULL) {
		p->argv++;
		if (strcmp(text, "--") == 0)
			break;
		if (text[0] != '-' || text[1] == '\0')
			a->words[a->nwords++] = text;
		else
			rc = text[1] == '-' ? take_long(p, text + 2) : take_letters(p, text + 1);
	}
	while (rc == 0 && *p->argv != NULL)
		a->words[a->nwords++] = *p->argv++;
	return rc;
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
	    strcmp(group, "retry") == 0 ? "; for dead letters: rqctl dead retry" : "");
}

static int
find_verb(struct args *a, char **cause)
{
	const char *near;
	int words = 0;

	if (a->nwords == 0)
		return 0;
	a->verb = verb_find(a->words[0], a->words[1], &words);
	if (a->verb == NULL) {
		if (incomplete_group(a->words[0], cause) == -1)
			return -1;
		near = verb_nearest(a->words[0]);
		return util_cause(cause, "there is no verb \"%.40s\"; %s%s%s", a->words[0],
		    near != NULL ? "did you mean " : "rqctl help lists them",
		    near != NULL ? near : "", near != NULL ? "?" : "");
	}
	a->nwords -= words;
	memmove(a->words, a->words + words, ((size_t)a->nwords + 1) * sizeof(a->words[0]));
	return 0;
}

/* Checks the options against the verb; one of the same name may have been guessed. */
static int
check_options(struct args *a, char **cause)
{
	const char *name, *value;
	size_t i, own;

	for (i = 0; i < OPT_MAX; i++) {
		if ((value = a->value[i]) == NULL)
			continue;
		name = opt_table[i].name;
		own = (size_t)(opt_find(a->verb, name, strlen(name)) - opt_table);
		if ((verb_options(a->verb) >> own & 1) == 0)
			return util_cause(cause, "%s and --%s do not go together",
			    a->verb == NULL ? "no verb" : a->verb->name, name);
		a->value[i] = NULL;
		a->value[own] = value;
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
	struct reader p = { .args = a, .argv = argv + (argc > 0), .cause = cause };
	size_t room = (size_t)argc + 1;
	int rc;

	memset(a, 0, sizeof(*a));
	a->set = xcalloc(room, sizeof(a->set[0]));
	a->words = xcalloc(room, sizeof(a->words[0]));
	if ((rc = take_all(&p)) == 0 && (rc = find_verb(a, cause)) == 0)
		rc = check_options(a, cause);
	if (rc == -1 && a->verb == NULL)
		a->verb = p.guess;
	if (rc == -1 || a->value[OPT_HELP] != NULL || a->value[OPT_VERSION] != NULL)
		return rc;
	if (a->verb == NULL)
		return util_cause(cause, "no verb is given: rqctl help lists them");
	return check_words(a, cause);
}

void
args_done(struct args *a)
{
	free(a->set);
	free(a->words);
	memset(a, 0, sizeof(*a));
}
