/*
 * rqctl help; see help.h.
 */
#include "rqctl/help.h"

#include <stdio.h>
#include <string.h>

#include "rqctl/ctl.h"
#include "rqctl/groups.h"

static void
print_option(const struct opt_def *o)
{
	char left[64];

	snprintf(left, sizeof(left), "%c%c%s--%s%s%s", o->letter != 0 ? '-' : ' ',
	    o->letter != 0 ? o->letter : ' ', o->letter != 0 ? ", " : "  ", o->name,
	    o->arg != NULL ? " " : "", o->arg != NULL ? o->arg : "");
	printf("  %-24s %s\n", left, o->help);
}

static void
print_options(uint64_t set)
{
	size_t i;

	for (i = 0; i < OPT_MAX; i++)
		if (set >> i & 1)
			print_option(&opt_table[i]);
}

static void
print_all(void)
{
	const struct verb *v;
	char left[64];

	puts("usage: rqctl [OPTIONS] VERB [ARGUMENT...]\n\nVerbs:");
	for (v = verb_table; v->name != NULL; v++) {
		snprintf(left, sizeof(left), "%s %s", v->name, v->args);
		printf("  %-28s %s\n", left, v->help);
	}
	puts("\nOptions of every verb; they stand anywhere before \"--\":");
	print_options(verb_options(NULL));
	puts("\nrqctl help VERB says more about one, rqctl(1) about all.");
}

void
help_print(const struct verb *v)
{
	if (v == NULL) {
		print_all();
		return;
	}
	printf("usage: rqctl %s%s%s\n\n%s\n", v->name, v->args[0] != '\0' ? " " : "", v->args,
	    v->help);
	if (v->more != NULL)
		puts(v->more);
	puts("\nOptions:");
	print_options(verb_options(v));
}

/* All verbs of a group, for "help dead"; false: there is no such group. */
static bool
print_group(const char *group)
{
	size_t n = strlen(group);
	const struct verb *v;
	bool any = false;

	for (v = verb_table; v->name != NULL; v++)
		if (strncmp(v->name, group, n) == 0 && v->name[n] == ' ') {
			printf("%srqctl %s %s\n    %s\n", any ? "" : "usage:\n\n", v->name, v->args,
			    v->help);
			any = true;
		}
	return any;
}

void
help_run(struct ctl *c)
{
	const char *shell = ctl_value(c, OPT_COMPLETION);
	const char *const *word = c->args.words;
	const struct verb *v;
	int words;

	if (shell != NULL && strcmp(shell, "bash") == 0)
		help_bash();
	else if (shell != NULL && strcmp(shell, "zsh") == 0)
		help_zsh();
	else if (shell != NULL)
		ctl_error(c, EX_USAGE, "there is completion for bash and zsh");
	else if (word[0] == NULL)
		help_print(NULL);
	else if ((v = verb_find(word[0], word[1], &words)) != NULL && words == c->args.nwords)
		help_print(v);
	else if (word[1] != NULL || !print_group(word[0]))
		ctl_error(c, EX_USAGE, "there is no verb \"%s%s%s\"", word[0],
		    word[1] != NULL ? " " : "", word[1] != NULL ? word[1] : "");
}
