/*
 * rqctl help: prints the tables of verbs.c, and completion scripts for bash and zsh.
 *
 * For completion, rqctl fills in the templates in completion/ from its tables.  make installs
 * the result.  The scripts get the names of queues from `rqctl queues --names`.
 */
#include <stdio.h>
#include <string.h>

#include "rqctl/ctl.h"

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
	for (size_t i = 0; i < OPT_MAX; i++)
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
	puts("\nOptions of every verb, anywhere before \"--\":");
	print_options(verb_options(NULL));
	puts("\nrqctl help VERB describes one verb, rqctl(1) all of them.");
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

/* -- completion ------------------------------------------------------------------- */

/* How many rows the group has that begins at v; 0: v belongs to no group. */
static size_t
group_rows(const struct verb *v)
{
	size_t n = strcspn(v->name, " "), rows = 0;

	while (v->name[n] == ' ' && v[rows].name != NULL &&
	    strncmp(v[rows].name, v->name, n + 1) == 0)
		rows++;
	return rows;
}

/* Prints the first words of all verbs: verbs and groups, each once. */
static void
print_first_words(void)
{
	const struct verb *v;
	size_t n;

	for (v = verb_table; v->name != NULL; v++) {
		n = strcspn(v->name, " ");
		if (v == verb_table || strncmp(v->name, v[-1].name, n) != 0 ||
		    v[-1].name[n] > ' ')
			printf("%.*s ", (int)n, v->name);
	}
}

/* Whether the option needs a value. */
static bool
needs_value(const struct opt_def *o)
{
	return o->arg != NULL && !opt_is_optional(o);
}

static void
print_options_of(const struct verb *v)
{
	uint64_t set = verb_options(v);

	for (size_t i = 0; i < OPT_MAX; i++)
		if (set >> i & 1)
			printf(" --%s%s", opt_table[i].name, needs_value(&opt_table[i]) ? "=" : "");
}

/* Prints the options whose value may be the next word: "--server|--option|-o". */
static void
print_value_options(void)
{
	const char *sep = "";
	size_t i, k;

	for (i = 0; i < OPT_MAX; i++) {
		for (k = 0; k < i && strcmp(opt_table[k].name, opt_table[i].name) != 0; k++)
			continue;
		if (k < i || !needs_value(&opt_table[i]))
			continue;
		printf("%s--%s", sep, opt_table[i].name);
		sep = "|";
		if (opt_table[i].letter != 0)
			printf("|-%c", opt_table[i].letter);
	}
}

static void
bash_groups(void)
{
	const struct verb *v;
	size_t rows, i, n;

	for (v = verb_table; v->name != NULL; v += rows > 0 ? rows : 1) {
		if ((rows = group_rows(v)) == 0)
			continue;
		n = strcspn(v->name, " ");
		printf("\t%.*s) words='", (int)n, v->name);
		for (i = 0; i < rows; i++)
			printf("%s%s", i > 0 ? " " : "", v[i].name + n + 1);
		puts("' ;;");
	}
}

static void
bash_verbs(void)
{
	const struct verb *v;

	for (v = verb_table; v->name != NULL; v++) {
		printf("\t'%s') options='", v->name);
		print_options_of(v);
		printf("'%s ;;\n", v->flags & (VERB_QUEUES | VERB_TARGET) ? "; queues=1" : "");
	}
}

/* Prints text inside '...[...]' of a specification for zsh, with its characters quoted. */
static void
print_zsh_text(const char *text)
{
	for (; *text != '\0'; text++) {
		if (strchr("[]:\\", *text) != NULL)
			putchar('\\');
		if (*text == '\'')
			fputs("'\\'", stdout);
		putchar(*text);
	}
}

static void
zsh_options(const struct verb *v, const char *indent)
{
	uint64_t set = verb_options(v);
	const struct opt_def *o;

	for (size_t i = 0; i < OPT_MAX; i++) {
		if ((set >> i & 1) == 0)
			continue;
		o = &opt_table[i];
		printf("%s'--%s%s[", indent, o->name, needs_value(o) ? "=" : "");
		print_zsh_text(o->help);
		putchar(']');
		if (needs_value(o))
			printf(":%s:%s", o->arg, strcmp(o->arg, "FILE") == 0 ? "_files" : "");
		puts("' \\");
	}
}

static void
zsh_verbs(void)
{
	const struct verb *v;

	for (v = verb_table; v->name != NULL; v++) {
		printf("\t'%s')\n\t\t_arguments -s \\\n", v->name);
		zsh_options(v, "\t\t    ");
		printf("\t\t    %s'*:argument:_files' ;;\n",
		    v->flags & (VERB_QUEUES | VERB_TARGET) ? "'1:queue:_rqctl_queues' " : "");
	}
}

/* Prints the second words of each group, with their help. */
static void
zsh_groups(void)
{
	const struct verb *v;
	size_t rows, i, n;

	for (v = verb_table; v->name != NULL; v += rows > 0 ? rows : 1) {
		if ((rows = group_rows(v)) == 0)
			continue;
		n = strcspn(v->name, " ");
		printf("\t%.*s)\n\t\tif ((CURRENT == 3)); then\n\t\t\tnames=(", (int)n, v->name);
		for (i = 0; i < rows; i++) {
			printf("%s'%s:", i > 0 ? " " : "", v[i].name + n + 1);
			print_zsh_text(v[i].help);
			putchar('\'');
		}
		puts(")\n\t\t\t_describe verb names\n\t\t\treturn\n\t\tfi\n"
		    "\t\tverb=\"$verb $words[3]\"\n"
		    "\t\tshift words\n\t\t((CURRENT--)) ;;");
	}
}

/* -- the scripts ------------------------------------------------------------------ */

static void
common_options(void)
{
	print_options_of(NULL);
}

/* print() replaces @NAME@ in a template.  A newline behind @NAME@ is replaced, too. */
struct part {
	const char	*name;
	void		(*print)(void);
};

static const struct part bash_parts[] = {
	{ "@VALUE_OPTIONS@", print_value_options }, { "@FIRST_WORDS@", print_first_words },
	{ "@GROUPS@", bash_groups }, { "@VERBS@", bash_verbs }, { "@OPTIONS@", common_options },
	{ NULL, NULL }
};

static const struct part zsh_parts[] = {
	{ "@FIRST_WORDS@", print_first_words }, { "@GROUPS@", zsh_groups },
	{ "@VERBS@", zsh_verbs }, { NULL, NULL }
};

static void
print_template(const char *text, const struct part *parts)
{
	const struct part *p;

	while (*text != '\0') {
		for (p = parts; p->name != NULL; p++)
			if (strncmp(text, p->name, strlen(p->name)) == 0)
				break;
		if (p->name != NULL) {
			p->print();
			text += strlen(p->name);
			text += *text == '\n';
		} else
			putchar(*text++);
	}
}

void
help_run(struct ctl *c)
{
	const char *shell = c->args.value[OPT_COMPLETION];
	const char *const *word = c->args.words;
	const struct verb *v;
	int words;

	if (shell != NULL && strcmp(shell, "bash") == 0)
		print_template(completion_bash, bash_parts);
	else if (shell != NULL && strcmp(shell, "zsh") == 0)
		print_template(completion_zsh, zsh_parts);
	else if (shell != NULL)
		ctl_error(c, EX_USAGE,
		    "--completion: \"%s\" is not a shell that rqctl knows: write bash or zsh",
		    shell);
	else if (word[0] == NULL)
		help_print(NULL);
	else if ((v = verb_find(word[0], word[1], &words)) != NULL && words == c->args.nwords)
		help_print(v);
	else if (word[1] != NULL || !print_group(word[0]))
		ctl_error(c, EX_USAGE, "there is no verb \"%s%s%s\": rqctl help lists them",
		    word[0], word[1] != NULL ? " " : "", word[1] != NULL ? word[1] : "");
}
