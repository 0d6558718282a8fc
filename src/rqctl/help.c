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

void
help_print(const struct verb *v)
{
	char left[64];

	if (v != NULL) {
		printf("usage: rqctl %s%s%s\n\n%s\n%s%s\nOptions:\n", v->name,
		    v->args[0] != '\0' ? " " : "", v->args, v->help,
		    v->more != NULL ? v->more : "", v->more != NULL ? "\n" : "");
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
	size_t n;

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
	v = word[0] != NULL ? verb_find(word[0], word[1], &words) : NULL;
	if (word[0] == NULL || (v != NULL && words == c->args.nwords)) {
		help_print(v);
		return;
	}
	/* All verbs of a group, for "help dead". */
	n = strlen(word[0]);
	for (v = verb_table, words = 0; v->name != NULL && word[1] == NULL; v++)
		if (strncmp(v->name, word[0], n) == 0 && v->name[n] == ' ')
			printf("%srqctl %s %s\n    %s\n", words++ > 0 ? "" : "usage:\n\n", v->name,
			    v->args, v->help);
	if (words > 0)
		return;
	(void)verb_unknown(word[0], &cause);
	ctl_error(c, EX_USAGE, "%s", cause);
	free(cause);
}
