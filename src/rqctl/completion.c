/*
 * Completion for bash and zsh: static scripts, generated at build time and
 * installed.  Names of queues come from `rqctl queues --names`, verbs and options
 * from the tables.
 */
#include <stdio.h>
#include <string.h>

#include "rqctl/help.h"
#include "rqctl/verbs.h"

/* First words: verbs and groups, each once. */
static void
print_first_words(void)
{
	const struct verb *v;
	const char *last = "";
	size_t n, m = 0;

	for (v = verb_table; v->name != NULL; v++) {
		n = strcspn(v->name, " ");
		if (n != m || strncmp(v->name, last, n) != 0)
			printf("%.*s ", (int)n, v->name);
		last = v->name;
		m = n;
	}
}

/* The words of a group, in one line, where v begins it; how many rows it has. */
static size_t
group_rows(const struct verb *v)
{
	size_t n = strcspn(v->name, " "), rows = 0;

	if (v->name[n] == '\0')
		return 0;
	while (v[rows].name != NULL && strncmp(v[rows].name, v->name, n + 1) == 0)
		rows++;
	return rows;
}

/* Whether a value must follow. */
static bool
needs_value(const struct opt_def *o)
{
	return o->arg != NULL && !opt_is_optional(o);
}

static void
print_options_of(const struct verb *v)
{
	uint64_t set = verb_options(v);
	size_t i;

	for (i = 0; i < OPT_MAX; i++)
		if (set >> i & 1)
			printf(" --%s%s", opt_table[i].name, needs_value(&opt_table[i]) ? "=" : "");
}

/* Options whose value is the next word. */
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
		printf("'%s ;;\n", v->flags & VERB_QUEUES ? "; queues=1" : "");
	}
}

/*
 * bash takes a colon as the end of a word, although names of queues and addresses have
 * colons.  This puts such words together in words[], and takes from each offer what
 * stands before the last colon, because bash replaces only what follows it.
 */
static void
bash_colons(void)
{
	fputs("# The words up to the cursor, into $all; a colon does not end a word.\n"
	    "_rqctl_words()\n{\n"
	    "\tlocal line=${COMP_LINE:0:COMP_POINT} word gap i\n\n"
	    "\tfor ((i = 0; i <= COMP_CWORD; i++)); do\n"
	    "\t\tword=${COMP_WORDS[i]}\n"
	    "\t\tgap=${line%%\"$word\"*}\n"
	    "\t\t[[ -n $word ]] || gap=$line\n"
	    "\t\tline=${line#\"$gap$word\"}\n"
	    "\t\tif [[ $i -gt 0 && -z $gap && ($word = :* || ${all[-1]} = *:) ]]; then\n"
	    "\t\t\tall[-1]+=$word\n"
	    "\t\telse\n"
	    "\t\t\tall+=(\"$word\")\n"
	    "\t\tfi\n"
	    "\tdone\n"
	    "}\n\n", stdout);
}

void
help_bash(void)
{
	fputs("# bash completion for rqctl; made by: rqctl help --completion bash\n"
	    "# shellcheck shell=bash\n\n", stdout);
	bash_colons();
	fputs("_rqctl()\n{\n"
	    "\tlocal cur word verb='' words='' options='' queues=''\n"
	    "\tlocal -a all=() given=() where=() names=()\n"
	    "\tlocal i skip='' quoted\n\n"
	    "\tCOMPREPLY=()\n"
	    "\t_rqctl_words\n"
	    "\tcur=${all[-1]}\n"
	    "\tfor ((i = 1; i < ${#all[@]} - 1; i++)); do\n"
	    "\t\tword=${all[i]}\n"
	    "\t\tif [[ -n $skip ]]; then\n"
	    "\t\t\t[[ $word = '=' ]] || skip=''\n"
	    "\t\t\tcontinue\n"
	    "\t\tfi\n"
	    "\t\tcase $word in\n\t\t", stdout);
	print_value_options();
	fputs(")\n"
	    "\t\t\tif [[ $word = -c || $word = --config || $word = --server ]]; then\n"
	    "\t\t\t\twhere+=(\"$word\" \"${all[i + 1]}\")\n"
	    "\t\t\tfi\n"
	    "\t\t\tskip=1 ;;\n"
	    "\t\t-*) ;;\n"
	    "\t\t*) given+=(\"$word\") ;;\n"
	    "\t\tesac\n"
	    "\tdone\n"
	    "\tif [[ -n $skip ]]; then\n"
	    "\t\tcompopt -o filenames 2>/dev/null\n"
	    "\t\tmapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
	    "\t\treturn\n"
	    "\tfi\n"
	    "\tverb=${given[0]}\n"
	    "\tcase $verb in\n\t'') words='", stdout);
	print_first_words();
	puts("' ;;");
	bash_groups();
	fputs("\tesac\n"
	    "\tif [[ -n $verb && -n $words ]]; then\n"
	    "\t\tif [[ -n ${given[1]} ]]; then\n"
	    "\t\t\tverb=\"$verb ${given[1]}\"\n"
	    "\t\t\tgiven=(\"${given[@]:1}\")\n"
	    "\t\t\twords=''\n"
	    "\t\tfi\n"
	    "\tfi\n"
	    "\tcase $verb in\n", stdout);
	bash_verbs();
	printf("\t*) options='");
	print_options_of(NULL);
	fputs("' ;;\n"
	    "\tesac\n"
	    "\tif [[ $cur = -* ]]; then\n"
	    "\t\twords=$options\n"
	    "\telif [[ -n $queues && -z $words && ${#given[@]} -eq 1 ]]; then\n"
	    "\t\tmapfile -t names < <(rqctl \"${where[@]}\" queues --names 2>/dev/null)\n"
	    "\t\t# They may come from Redis: nothing in them is for the shell.\n"
	    "\t\tfor word in \"${names[@]}\"; do\n"
	    "\t\t\tprintf -v quoted %q \"$word\"\n"
	    "\t\t\tif [[ $word = \"$cur\"* || $quoted = \"$cur\"* ]]; then\n"
	    "\t\t\t\tCOMPREPLY+=(\"$quoted\")\n"
	    "\t\t\tfi\n"
	    "\t\tdone\n"
	    "\tfi\n"
	    "\tif [[ -n $words ]]; then\n"
	    "\t\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
	    "\telif [[ ${#names[@]} -eq 0 ]]; then\n"
	    "\t\tcompopt -o filenames 2>/dev/null\n"
	    "\t\tmapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
	    "\tfi\n"
	    "\tif [[ $cur = *:* && $COMP_WORDBREAKS = *:* ]]; then\n"
	    "\t\tCOMPREPLY=(\"${COMPREPLY[@]#\"${cur%\"${cur##*:}\"}\"}\")\n"
	    "\tfi\n"
	    "\t[[ ${COMPREPLY[0]} = *= ]] && compopt -o nospace\n"
	    "}\n"
	    "complete -F _rqctl rqctl\n", stdout);
}

/* Text inside '...[...]' of a specification. */
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
	size_t i;

	for (i = 0; i < OPT_MAX; i++) {
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
		    v->flags & VERB_QUEUES ? "'1:queue:_rqctl_queues' " : "");
	}
}

/* Second words, with what they do. */
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

void
help_zsh(void)
{
	fputs("#compdef rqctl\n"
	    "# zsh completion for rqctl; made by: rqctl help --completion zsh\n\n"
	    "_rqctl_queues()\n{\n"
	    "\tlocal -a names expl\n"
	    "\tnames=(${(f)\"$(rqctl queues --names 2>/dev/null)\"})\n"
	    "\t_wanted queues expl queue compadd -a names\n"
	    "}\n\n"
	    "_rqctl()\n{\n"
	    "\tlocal -a names\n"
	    "\tlocal verb=$words[2]\n\n"
	    "\tif ((CURRENT == 2)); then\n"
	    "\t\tnames=(", stdout);
	print_first_words();
	fputs(")\n"
	    "\t\t_describe verb names\n"
	    "\t\treturn\n"
	    "\tfi\n"
	    "\tcase $verb in\n", stdout);
	zsh_groups();
	fputs("\tesac\n"
	    "\tshift words\n"
	    "\t((CURRENT--))\n"
	    "\tcase $verb in\n", stdout);
	zsh_verbs();
	fputs("\tesac\n}\n\n_rqctl \"$@\"\n", stdout);
}
