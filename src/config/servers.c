/*
 * Where Redis is: redis.server, or redis.sentinel and redis.master.
 *
 * "sentinel://MASTER@HOST:PORT,HOST:PORT" as the only server is the short form of the two
 * others.  $RQD_SERVER and rqctl's --server have no other way to say it.  What the command
 * line gives replaces what a file gives, whichever form each uses.
 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "config/draft.h"

#define SCHEME		"sentinel://"
#define SENTINEL_PORT	26379

/* Where the setting of an option of section redis stands. */
static struct setting **
given(struct draft *d, const char *option)
{
	return &d->given[option_index(option_find(SECTION_REDIS, option))];
}

static bool
has_value(const struct setting *s)
{
	return s != NULL && s->n > 0 && s->values[0][0] != '\0';
}

static bool
is_override(const struct setting *s)
{
	return s->at.line == 0;
}

/* -- the short form ------------------------------------------------------------------- */

static struct setting *
add(struct draft *d, const char *option, const struct setting *like)
{
	struct setting **slot = given(d, option);

	if (*slot == NULL || (is_override(like) && !is_override(*slot)))
		return *slot = draft_setting_new(d, option_find(SECTION_REDIS, option), &like->at);
	finding_error(&d->findings, &like->at, "server gives the Sentinels, and so does %s: "
	    "remove one", option);
	return NULL;
}

/* Turns the short form into the two options; -1: reported. */
static int
take_short_form(struct draft *d, struct setting *server)
{
	const char *text = server->values[0] + strlen(SCHEME), *at = strrchr(text, '@');
	char *copy, *rest, *name, *host;
	struct setting *sentinel, *master;

	*given(d, "server") = NULL;
	if (at == NULL || at == text || at[1] == '\0') {
		finding_error(&d->findings, &server->at, "\"%s\": write "
		    SCHEME "MASTER@HOST:PORT,HOST:PORT", server->values[0]);
		return -1;
	}
	if ((sentinel = add(d, "sentinel", server)) == NULL ||
	    (master = add(d, "master", server)) == NULL)
		return -1;
	name = xstrndup(text, (size_t)(at - text));
	setting_add(master, name, server->lines[0]);
	rest = copy = xstrdup(at + 1);
	while ((host = strsep(&rest, ",")) != NULL)
		setting_add(sentinel, host, server->lines[0]);
	free(copy);
	free(name);
	return 0;
}

/* -- one of the forms -------------------------------------------------------------------- */

/* Reports the later one of two. */
static void
exclude(struct draft *d, const struct setting *server, const struct setting *sentinel)
{
	bool later = sentinel->at.file == server->at.file && sentinel->at.line > server->at.line;
	char first[PLACE_TEXT_MAX];

	finding_error(&d->findings, later ? &sentinel->at : &server->at,
	    "%s at %s says where Redis is: remove that, or %s", later ? "server" : "sentinel",
	    place_text(later ? &server->at : &sentinel->at, first), later ? "sentinel" : "server");
}

static void
choose(struct draft *d)
{
	struct setting **server = given(d, "server"), **sentinel = given(d, "sentinel");

	if (!has_value(*sentinel) || !has_value(*server))
		return;
	if (is_override(*server) == is_override(*sentinel)) {
		exclude(d, *server, *sentinel);
	} else if (is_override(*server)) {
		*sentinel = NULL;
		*given(d, "master") = NULL;
	} else {
		*server = NULL;
	}
}

static void
check_pairs(struct draft *d)
{
	static const char *const parts[] = {
		"master", "sentinel_username", "sentinel_password_file"
	};
	const struct setting *sentinel = *given(d, "sentinel"), *server = *given(d, "server");

	if (has_value(sentinel) && !has_value(*given(d, "master")))
		finding_error(&d->findings, &sentinel->at, "sentinel without master: write the "
		    "name that the Sentinels know, such as master = \"mymaster\"");
	for (size_t i = 0; i < ARRAY_LEN(parts) && !has_value(sentinel); i++) {
		const struct setting *s = *given(d, parts[i]);

		if (has_value(s) && (server == NULL || !is_override(server)))
			finding_error(&d->findings, &s->at, "%s has no meaning without sentinel",
			    parts[i]);
	}
}

void
servers_choose(struct draft *d)
{
	struct setting *server = *given(d, "server");

	if (server != NULL && server->n == 1 &&
	    strncmp(server->values[0], SCHEME, strlen(SCHEME)) == 0 &&
	    take_short_form(d, server) == -1)
		return;
	choose(d);
	check_pairs(d);
}

/* -- the result ------------------------------------------------------------------------ */

/* [v6], or a name or address, without a port. */
static bool
lacks_port(const char *server)
{
	return server[0] == '[' ? server[strlen(server) - 1] == ']' :
	    strchr(server, ':') == NULL;
}

void
servers_finish(struct redis_options *r)
{
	struct buf b = BUF_INIT;
	char *whole, **s;

	if (r->sentinels[0] == NULL)
		return;
	buf_printf(&b, SCHEME "%s@", r->master);
	for (s = r->sentinels; *s != NULL; s++) {
		if (lacks_port(*s)) {
			whole = xasprintf("%s:%d", *s, SENTINEL_PORT);
			free(*s);
			*s = whole;
		}
		buf_printf(&b, "%s%s", s != r->sentinels ? "," : "", *s);
	}
	(void)buf_str(&b);
	for (s = r->servers; *s != NULL; s++)
		free(*s);
	r->servers[0] = buf_steal(&b);
	r->servers[1] = NULL;
}
