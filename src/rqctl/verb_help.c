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

/* What help prints: 25 lines of 80 columns.  A test compares it with the table of verbs. */
static const struct {
	const char	*title, *verbs, *help;
} groups[] = {
	{ "Look", "status", "queues, their daemons, and what blocks them" },
	{ "", "check", "problems of Redis, queues and daemons" },
	{ "", "queues|daemons", "what is configured; what runs, and where" },
	{ "", "running", "messages in flight, and their progress" },
	{ "", "peek|show", "the messages that come next; one message" },
	{ "Messages", "push", "put a message into a queue" },
	{ "", "try", "run a handler once, without Redis" },
	{ "", "cancel", "end messages that wait, are delayed, or run" },
	{ "", "purge", "delete the messages in parts of a queue" },
	{ "Later", "retry list|now", "retries: list them, make them due" },
	{ "", "bury", "turn retries into dead letters" },
	{ "", "delayed list|now|cancel", "messages that a producer delayed" },
	{ "Dead", "dead list|show|export", "dead letters, and why they died" },
	{ "", "dead retry|drop", "try them again; delete them" },
	{ "Stop", "pause|resume", "stop a queue for all daemons; go on" },
	{ "", "quiet", "make a daemon take no new messages" },
	{ "", "forget", "delete the keys of a queue that you removed" },
	{ "More", "schedules [run]", "list schedules; push one's message now" },
	{ "", "lock|unlock", "run a command under a lock; break a lock" },
	{ "", "ping|acl", "does Redis answer; make rqd's user in Redis" },
};

static void
print_options(uint64_t set)
{
	const struct opt_def *o;
	char left[64], letter[sizeof("-x, ")];

	for (size_t i = 0; i < OPT_MAX; i++) {
		if ((set >> i & 1) == 0)
			continue;
		o = &opt_table[i];
		strcpy(letter, "    ");
		if (o->letter != 0)
			snprintf(letter, sizeof(letter), "-%c, ", o->letter);
		snprintf(left, sizeof(left), "%s--%s%s%s", letter, o->name,
		    text_if(o->arg != NULL, " "), or_empty(o->arg));
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
		printf("%s%.*s", text_if(column > 0, " "), (int)n, text);
		column += n + (column > 0);
	}
	putchar('\n');
}

void
help_print(const struct verb *v)
{
	if (v != NULL) {
		printf("usage: rqctl %s%s%s\n\n%s\n", v->name,
		    text_if(v->args[0] != '\0', " "), v->args, v->help);
		if (v->more != NULL)
			print_wrapped(v->more);
		puts("\nOptions:");
		print_options(verb_options(v));
		return;
	}
	puts("usage: rqctl [OPTIONS] VERB [ARGUMENT...]\n");
	for (size_t i = 0; i < ARRAY_LEN(groups); i++)
		printf("%-9s %-25s %s\n", groups[i].title, groups[i].verbs, groups[i].help);
	puts("\nOptions: -c FILE, --server ADDRESS, -o NAME=VALUE, --json, -h, -V. "
	    "For one verb\nor group: rqctl help VERB. All of it: rqctl(1).");
}

void
help_print_group(const char *group)
{
	size_t n = strlen(group);

	printf("usage:\n\n");
	EACH_VERB(v)
		if (strncmp(v->name, group, n) == 0 && v->name[n] == ' ')
			printf("rqctl %s %s\n    %s\n", v->name, v->args, v->help);
}

/* -- completion ------------------------------------------------------------------- */

/* The first n bytes of word, with the help of v, if that is its name, or of the verb that is. */
static void
offer_verb(const char *word, size_t n, const struct verb *v)
{
	char *name = xstrndup(word, n);
	const char *help = "";
	int ignored;

	if (word[n] != '\0')
		v = verb_find(name, NULL, &ignored);
	if (v != NULL)
		help = v->help;
	printf("%s\t%s\n", name, help);
	free(name);
}

/* Prints the words that follow "" or a group in names of verbs, each once, with its help. */
static void
offer_verbs(const char *group)
{
	size_t len = strlen(group), n;
	const char *word, *last = "";

	EACH_VERB(v) {
		if (strncmp(v->name, group, len) != 0 || (len > 0 && v->name[len] != ' '))
			continue;
		word = v->name + len + (len > 0);
		n = strcspn(word, " ");
		if (n != strcspn(last, " ") || strncmp(word, last, n) != 0)
			offer_verb(word, n, v);
		last = word;
	}
}

static void
offer_options(uint64_t set)
{
	const struct opt_def *o;
	bool needs;

	for (size_t i = 0; i < OPT_MAX; i++) {
		o = &opt_table[i];
		needs = o->arg != NULL && !opt_is_optional(o);
		if (set >> i & 1)
			printf("--%s%s\t%s\n", o->name, text_if(needs, "="),
			    o->help);
	}
}

/* Prints what may stand for the last of n words; nothing: the name of a file. */
static void
offer(const char *const *words, size_t n)
{
	struct ctl typed = { .hold = true };	/* the command line so far */
	struct args *a = &typed.args;
	const char *last = "";
	char **argv = xcalloc(n + 2, sizeof(*argv)), *cause = NULL;
	const struct verb *v;
	int argc = 1;
	bool value;

	if (n > 0) {
		last = words[n - 1];
		argc = (int)n;
	}

	argv[0] = (char *)(uintptr_t)"rqctl";
	for (size_t i = 1; i < n; i++)
		argv[i] = (char *)(uintptr_t)words[i - 1];
	(void)!args_parse(a, argc, argv, &cause);	/* it is not complete */
	free(cause);
	v = a->verb;
	value = a->open || (last[0] == '-' && strchr(last, '=') != NULL);
	if (!value && last[0] == '-')
		offer_options(verb_options(v));
	else if (!value && v != NULL && a->nwords == 0)
		offer_verbs(v->name);
	else if (!value && v == NULL && a->nwords == 0)
		offer_verbs("");
	else if (!value && v == NULL && a->nwords == 1)
		offer_verbs(a->words[0]);
	if (!value && last[0] != '-' && v != NULL && ((v->flags & VERB_QUEUES) != 0 ||
	    ((v->flags & VERB_TARGET) != 0 && a->nwords == 0))) {
		a->verb = &verb_queues;
		a->value[OPT_NAMES] = "";
		a->nwords = 0;
		if (ctl_configure(&typed) == 0)
			a->verb->run(&typed);
	}
	ctl_done(&typed);
	free(argv);
}

static void
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
	v = verb_find(word[0], word[1], &words);
	if (v == NULL && word[1] == NULL && verb_is_group(word[0])) {
		help_print_group(word[0]);
		return;
	}
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

const struct verb verb_help = {
	.name = "help",
	.args = "[VERB...]",
	.help = "show this list, or how to use a verb",
	.options = OPT(COMPLETION),
	.max_args = -1,
	.flags = VERB_LOCAL,
	.run = help_run,
};
