/*
 * The Lua scripts of src/queue/lua, embedded at build time.  EVALSHA names them by
 * their SHA-1 sums; after NOSCRIPT the caller sends the text.
 *
 * The head of each script describes its KEYS, ARGV, reply and effect, and why it is
 * safe to repeat.
 */
#pragma once

#include <stddef.h>

struct script {
	const char	*name;		/* "pop": from the file's name */
	const char	*text;
	size_t		 len;
	const char	*sha;		/* of the text; "": the text is sent each time */
};

/* Terminated by a NULL name; made by build-aux/embed-lua.awk. */
extern const struct script script_table[];

const struct script *script_find(const char *name);	/* NULL: none such */
