/*
 * One line that can be read as it is (daemons log it) and taken apart.
 */
#include "queue/pausetext.h"

#include <ctype.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"

char *
pausetext_who(void)
{
	const char *user = getenv("SUDO_USER");
	struct passwd *pw;

	if (user == NULL || user[0] == '\0')
		user = (pw = getpwuid(getuid())) != NULL ? pw->pw_name : "uid?";
	return xasprintf("%s@%s", user, util_hostname());
}

char *
pausetext_make(const char *who, wall_t now, const char *why)
{
	char when[CLOCK_TEXT_MAX];

	return xasprintf("%s %s%s%s", who, clock_text(now, when), why[0] != '\0' ? " " : "", why);
}

/* Looks like "2026-11-21T03:36:12.345Z" or with an offset. */
static bool
is_time(const char *s)
{
	static const char pattern[] = "0000-00-00T00:00:00";
	const char *p;

	for (p = pattern; *p != '\0'; p++, s++)
		if (*p == '0' ? !isdigit((unsigned char)*s) : *s != *p)
			return false;
	return true;
}

void
pausetext_split(const char *text, struct pausetext *p)
{
	size_t who = strcspn(text, " "), when;
	const char *rest = text[who] == ' ' ? text + who + 1 : "";

	when = strcspn(rest, " ");
	p->who = xstrndup(text, who);
	p->when = xstrndup(rest, when);
	p->why = rest[when] == ' ' ? rest + when + 1 : "";
	if (is_time(p->when))
		return;
	p->who[0] = p->when[0] = '\0';
	p->why = text;
}

void
pausetext_done(struct pausetext *p)
{
	free(p->who);
	free(p->when);
}
