/*
 * rqctl help: prints the tables of verbs.c, and completion scripts for bash and zsh.
 *
 * make installs the scripts, which are in completion/.  They ask `rqctl help --completion words
 * -- WORD...` what may stand for the last of these words.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rqctl/ctl.h"

#define WIDTH	80

static void
print_options(uint64_t set)
{
	const struct opt_def *o;
	char left[64];

	for (size_t i = 0; i < OPT_MAX; i++) {
		if ((set >> i & 1) == 0)
			continue;
		o = &opt_table[i];
		snprintf(left, sizeof(left), "%c%c%s--%s%s%s", o->letter != 0 ? '-' : ' ',
		    o->letter != 0 ? o->letter : ' ', o->letter != 0 ? ", " : "  ", o->name,
		    o->arg != NULL ? " " : "", o->arg != NULL ? o->arg : "");
		printf("  %-24s %s\n", left, o->help);
	}
}

/* Prints a paragraph in lines of at most 80 columns. */
static void
print_wrapped(const char *text)
{
	size_t column = 0, n;

	for (; *text != '\0'; text += n + (text[n] != '\0')) {
		n = strcspn(text, " \n");
		if (column > 0 && column + 1 + n > WIDTH) {
			putchar('\n');
			column = 0;
		}
		printf("%s%.*s", column > 0 ? " " : "", (int)n, text);
		column += n + (column > 0);
	}
	putchar('\n');
}

void
help_print(const struct verb *v)
{
	char left[64];

	if (v != NULL) {
		printf("usage: rqctl %s%s%s\n\n%s\n", v->name,
		    v->args[0] != '\0' ? " " : "", v->args, v->help);
		if (v->more != NULL)
			print_wrapped(v->more);
		puts("\nOptions:");
		print_options(verb_options(v));
		return;
	}
	puts("usage: rqctl [OPTIONS] VERB [ARGUMENT...]\n\nVerbs:");
	for (v = verb_table; v->name != NULL; v++) {
		snprintf(left, sizeof(left), "%s %s", v->name, v->args);
		printf("  %-28s %s\n", left, v->help);
	}
	puts("\nOptions of every verb, anywhere before \"--\":");
	print_options(verb_options(NULL));
	puts("\nrqctl help VERB describes one verb, rqctl(1) all of them.");
}

void
help_print_group(const char *group)
{
	size_t n = strlen(group);

	printf("usage:\n\n");
	for (const struct verb *v = verb_table; v->name != NULL; v++)
		if (strncmp(v->name, group, n) == 0 && v->name[n] == ' ')
			printf("rqctl %s %s\n    %s\n", v->name, v->args, v->help);
}

/* -- completion ------------------------------------------------------------------- */

/* Prints the words that follow "" or a group in names of verbs, each once, with its help. */
static void
offer_verbs(const char *group)
{
	size_t len = strlen(group), n;
	const char *word, *last = "";

	for (const struct verb *v = verb_table; v->name != NULL; v++) {
		if (strncmp(v->name, group, len) != 0 || (len > 0 && v->name[len] != ' '))
			continue;
		word = v->name + len + (len > 0);
		n = strcspn(word, " ");
		if (n != strcspn(last, " ") || strncmp(word, last, n) != 0)
			printf("%.*s\t%s\n", (int)n, word, word[n] == '\0' ? v->help : "");
		last = word;
	}
}

static void
offer_options(uint64_t set)
{
	const struct opt_def *o;

	for (size_t i = 0; i < OPT_MAX; i++) {
		o = &opt_table[i];
		if (set >> i & 1)
			printf("--%s%s\t%s\n", o->name,
			    o->arg != NULL && !opt_is_optional(o) ? "=" : "", o->help);
	}
}

/* Prints what may stand for the last of n words; nothing: the name of a file. */
static void
offer(const char *const *words, size_t n)
{
	struct ctl typed = { .hold = true };	/* the command line so far */
	struct args *a = &typed.args;
	const char *last = n > 0 ? words[n - 1] : "";
	char **argv = xcalloc(n + 2, sizeof(*argv)), *cause = NULL;
	const struct verb *v;
	bool value;
	int ignored;

	argv[0] = (char *)(uintptr_t)"rqctl";
	for (size_t i = 1; i < n; i++)
		argv[i] = (char *)(uintptr_t)words[i - 1];
	(void)!args_parse(a, n > 0 ? (int)n : 1, argv, &cause);	/* it is not complete */
	free(cause);
	v = a->verb;
	value = a->open || (last[0] == '-' && strchr(last, '=') != NULL);
	if (!value && last[0] == '-')
		offer_options(verb_options(v));
	else if (!value && (v != NULL ? a->nwords == 0 : a->nwords <= 1))
		offer_verbs(v != NULL ? v->name : a->nwords > 0 ? a->words[0] : "");
	if (!value && last[0] != '-' && v != NULL && ((v->flags & VERB_QUEUES) != 0 ||
	    ((v->flags & VERB_TARGET) != 0 && a->nwords == 0))) {
		a->verb = verb_find("queues", NULL, &ignored);
		a->value[OPT_NAMES] = "";
		a->nwords = 0;
		if (ctl_configure(&typed) == 0)
			queues_run(&typed);
	}
	ctl_done(&typed);
	free(argv);
}

void
help_run(struct ctl *c)
{
	const char *shell = c->args.value[OPT_COMPLETION];
	const char *const *word = c->args.words;
	const struct verb *v;
	char *cause = NULL;
	int words;

	if (shell != NULL && strcmp(shell, "bash") == 0)
		fputs(completion_bash, stdout);
	else if (shell != NULL && strcmp(shell, "zsh") == 0)
		fputs(completion_zsh, stdout);
	else if (shell != NULL && strcmp(shell, "words") == 0)
		offer(word, (size_t)c->args.nwords);
	else if (shell != NULL)
		ctl_error(c, EX_USAGE,
		    "--completion: \"%s\" is not a shell that rqctl knows: write bash or zsh",
		    shell);
	if (shell != NULL)
		return;
	if (word[0] == NULL) {
		help_print(NULL);
		return;
	}
	if (word[1] == NULL && verb_is_group(word[0])) {
		help_print_group(word[0]);
		return;
	}
	v = verb_find(word[0], word[1], &words);
	if (v == NULL) {
		(void)verb_unknown(word[0], &cause);
		ctl_error(c, EX_USAGE, "%s", cause);
		free(cause);
	} else if (words < c->args.nwords) {
		ctl_error(c, EX_USAGE, "\"%s\" is too much: rqctl help %s describes "
		    "the verb", word[words], v->name);
	} else {
		help_print(v);
	}
}
