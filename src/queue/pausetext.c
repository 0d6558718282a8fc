/*
 * The value of QPAUSED; see pausetext.h.  It is one line, which daemons log as it is
 * and rqctl takes apart.
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

struct pausetext
pausetext_split(const char *text)
{
	struct pausetext p = { .who = text, .who_len = (int)strcspn(text, " ") };
	const char *at, *like = "0000-00-00T00:00:00";

	p.when = text[p.who_len] == ' ' ? text + p.who_len + 1 : "";
	p.when_len = (int)strcspn(p.when, " ");
	p.why = p.when[p.when_len] == ' ' ? p.when + p.when_len + 1 : "";
	for (at = p.when; *like != '\0'; at++, like++) {
		if (*like == '0' ? !isdigit((unsigned char)*at) : *at != *like)
			return (struct pausetext){ .who = "", .when = "", .why = text };
	}
	return p;
}
