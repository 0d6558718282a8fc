/*
 * One line that can be read as it is (daemons log it) and taken apart.
 */
#include "rqctl/pausetext.h"

#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "rqctl/when.h"

char *
pausetext_who(void)
{
	const char *user = getenv("SUDO_USER");
	struct passwd *pw;
	char host[256];

	if (user == NULL || user[0] == '\0')
		user = (pw = getpwuid(getuid())) != NULL ? pw->pw_name : "uid?";
	if (gethostname(host, sizeof(host)) == -1)
		strcpy(host, "?");
	host[sizeof(host) - 1] = '\0';
	return xasprintf("%s@%s", user, host);
}

char *
pausetext_make(const char *who, wall_t now, const char *why)
{
	char when[CLOCK_TEXT_MAX];

	return xasprintf("%s %s%s%s", who, clock_text(now, when), why[0] != '\0' ? " " : "", why);
}

void
pausetext_split(const char *text, struct pausetext *p)
{
	size_t who = strcspn(text, " "), when;
	const char *rest = text[who] == ' ' ? text + who + 1 : "";
	wall_t t;

	when = strcspn(rest, " ");
	p->who = xstrndup(text, who);
	p->when = xstrndup(rest, when);
	p->why = rest[when] == ' ' ? rest + when + 1 : "";
	if (when_parse(p->when, &t, NULL) == 0)
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
