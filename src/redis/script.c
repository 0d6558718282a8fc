/*
 * The table of scripts: finds a script by name.  For an error reply it finds the commands in
 * the line where the script failed, because old versions of Redis do not name the command
 * that they denied.
 */
#include "redis/script.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct script *
script_find(const char *name)
{
	for (const struct script *s = script_table; s->name != NULL; s++) {
		if (strcmp(s->name, name) == 0)
			return s;
	}
	return NULL;
}

/* -- which command an error is about --------------------------------------------- */

/* The script whose sum stands in the text; NULL: none of the table. */
static const struct script *
script_named(const char *text)
{
	const struct script *s;

	for (s = script_table; s->name != NULL; s++) {
		if (s->sha[0] != '\0' && strstr(text, s->sha) != NULL)
			return s;
	}
	return NULL;
}

/* Line n of a script, from 1 on; NULL: there is none. */
static const char *
script_line(const struct script *s, long n)
{
	const char *line = s->text;

	while (line != NULL && --n > 0) {
		line = strchr(line, '\n');
		if (line != NULL)
			line++;
	}
	return line;
}

/* The length of a command's name at p, behind a quotation mark; 0: it is none. */
static size_t
command_len(const char *p)
{
	size_t n = 0;

	while (isupper((unsigned char)p[n]))
		n++;
	return n >= 3 && p[n] == '\'' ? n : 0;
}

/* Adds a command, unless it is there already. */
static void
commands_add(char *buf, size_t size, const char *command, size_t n)
{
	size_t len = strlen(buf);
	char name[32];

	if (n >= sizeof(name))
		return;
	memcpy(name, command, n);
	name[n] = '\0';
	if (strstr(buf, name) == NULL)
		(void)snprintf(buf + len, size - len, "%s%s", len > 0 ? " or " : "", name);
}

const char *
script_commands(const char *error, char *buf, size_t size)
{
	static const char where[] = "@user_script:";
	const struct script *s = script_named(error);
	const char *at = strstr(error, where), *p, *end;

	buf[0] = '\0';
	if (s == NULL || at == NULL ||
	    (p = script_line(s, strtol(at + strlen(where), NULL, 10))) == NULL)
		return buf;
	end = p + strcspn(p, "\n");
	for (; p < end; p++) {
		if (strncmp(p, "call(\'", 6) == 0 && command_len(p + 6) > 0)
			commands_add(buf, size, p + 6, command_len(p + 6));
	}
	return buf;
}
