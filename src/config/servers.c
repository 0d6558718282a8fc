/*
 * The options that name Redis: redis.server, or redis.sentinel and redis.master, or
 * redis.cluster.
 *
 * The short forms are "sentinel://MASTER@HOST:PORT,HOST:PORT" and
 * "cluster://HOST:PORT,HOST:PORT" as the only server; $RQD_SERVER and rqctl's --server
 * have no other form.  The command line replaces the form of a file, whichever each
 * uses.
 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "config/draft.h"

#define SENTINEL	"sentinel://"
#define CLUSTER		"cluster://"
#define SENTINEL_PORT	26379
#define REDIS_PORT	6379

/* The options that name Redis. */
enum form { FORM_SERVER, FORM_SENTINEL, FORM_CLUSTER, FORMS };
static const char *const forms[] = {
	[FORM_SERVER] = "server", [FORM_SENTINEL] = "sentinel", [FORM_CLUSTER] = "cluster"
};

/* The slot of the setting of an option in section redis. */
static struct setting **
given(struct draft *d, const char *option)
{
	return &d->given[option_index(option_named(SECTION_REDIS, option))];
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

/* -- the short forms ------------------------------------------------------------------ */

/* Gives the option the parts of a text, which commas separate. */
static void
set_parts(struct draft *d, const char *option, const struct setting *server, const char *text)
{
	struct setting **slot = given(d, option);
	const char *what = "Sentinels";
	char *copy, *rest, *part;

	if (strcmp(option, "cluster") == 0)
		what = "cluster";
	if (*slot != NULL && (!is_override(server) || is_override(*slot))) {
		finding_error(&d->findings, &server->at, "server gives the %s, "
		    "and so does %s: remove one", what, option);
		return;
	}
	*slot = draft_setting_new(d, option_named(SECTION_REDIS, option), &server->at);
	copy = rest = xstrdup(text);
	while ((part = strsep(&rest, ",")) != NULL)
		setting_add(*slot, part, server->lines[0]);
	free(copy);
}

/* MASTER@HOST:PORT,HOST:PORT */
static void
take_sentinels(struct draft *d, const struct setting *server, const char *text)
{
	const char *at = strrchr(text, '@');
	char *master;

	if (at == NULL || at == text || at[1] == '\0') {
		finding_error(&d->findings, &server->at, "\"%s\": write "
		    SENTINEL "MASTER@HOST:PORT,HOST:PORT", server->values[0]);
		return;
	}
	master = xstrndup(text, (size_t)(at - text));
	set_parts(d, "sentinel", server, at + 1);
	set_parts(d, "master", server, master);
	free(master);
}

/* HOST:PORT,HOST:PORT */
static void
take_cluster(struct draft *d, const struct setting *server, const char *text)
{
	if (text[0] == '\0')
		finding_error(&d->findings, &server->at, "\"%s\": write "
		    CLUSTER "HOST:PORT,HOST:PORT", server->values[0]);
	else
		set_parts(d, "cluster", server, text);
}

/* Turns a short form into options; -1: reported. */
static int
take_short_form(struct draft *d)
{
	struct setting **slot = given(d, "server");
	const struct setting *server = *slot;
	size_t errors = d->findings.nerrors;
	const char *text;

	if (server == NULL || server->n != 1)
		return 0;
	text = server->values[0];
	if (strncmp(text, SENTINEL, strlen(SENTINEL)) == 0) {
		*slot = NULL;
		take_sentinels(d, server, text + strlen(SENTINEL));
	} else if (strncmp(text, CLUSTER, strlen(CLUSTER)) == 0) {
		*slot = NULL;
		take_cluster(d, server, text + strlen(CLUSTER));
	}
	if (d->findings.nerrors > errors)
		return -1;
	return 0;
}

/* -- one of the forms -------------------------------------------------------------------- */

/* Reports the later one of two forms that exclude each other. */
static void
exclude(struct draft *d, enum form x, enum form y)
{
	const struct place *a = &(*given(d, forms[x]))->at;
	const struct place *b = &(*given(d, forms[y]))->at;
	static const char both[] =
	    "%s at %s says where Redis is: remove that, or %s";
	char text[PLACE_TEXT_MAX];

	if (b->file == a->file && b->line > a->line)
		finding_error(&d->findings, b, both, forms[x],
		    place_text(a, text), forms[y]);
	else
		finding_error(&d->findings, a, both, forms[y],
		    place_text(b, text), forms[x]);
}

static void
choose(struct draft *d)
{
	bool override = false;
	enum form i, k;

	/* A form of the command line replaces those of files. */
	for (i = 0; i < FORMS; i++)
		if (has_value(*given(d, forms[i])))
			override |= is_override(*given(d, forms[i]));
	for (i = 0; override && i < FORMS; i++) {
		if (!has_value(*given(d, forms[i])) || is_override(*given(d, forms[i])))
			continue;
		*given(d, forms[i]) = NULL;
		if (i == FORM_SENTINEL)
			*given(d, "master") = NULL;
	}
	for (i = 0; i < FORMS; i++)
		for (k = i + 1; k < FORMS; k++)
			if (has_value(*given(d, forms[i])) && has_value(*given(d, forms[k])))
				exclude(d, i, k);
}

static void
check_pairs(struct draft *d)
{
	static const char *const parts[] = {
		"master", "sentinel_username", "sentinel_password_file"
	};
	const struct setting *sentinel = *given(d, "sentinel");
	bool replaced = false;

	if (has_value(sentinel) && !has_value(*given(d, "master")))
		finding_error(&d->findings, &sentinel->at, "sentinel without master: write the "
		    "name that the Sentinels know, such as master = \"mymaster\"");
	for (enum form i = 0; i < FORMS; i++)
		replaced |= *given(d, forms[i]) != NULL && is_override(*given(d, forms[i]));
	for (size_t i = 0; i < ARRAY_LEN(parts) && !has_value(sentinel) && !replaced; i++) {
		const struct setting *s = *given(d, parts[i]);

		if (has_value(s))
			finding_error(&d->findings, &s->at, "%s has no meaning without sentinel",
			    parts[i]);
	}
}

void
servers_choose(struct draft *d)
{
	if (take_short_form(d) == -1)
		return;
	choose(d);
	check_pairs(d);
}

/* -- the result ------------------------------------------------------------------------ */

/* Of a name, an address, or [v6]. */
static bool
lacks_port(const char *server)
{
	if (server[0] == '[')
		return server[strlen(server) - 1] == ']';
	return strchr(server, ':') == NULL;
}

/* Adds the missing ports, and appends all addresses, separated by commas. */
static void
finish_list(char **list, int port, struct buf *b)
{
	char *whole, **s;

	for (s = list; *s != NULL; s++) {
		if (lacks_port(*s)) {
			whole = xasprintf("%s:%d", *s, port);
			free(*s);
			*s = whole;
		}
		if (s != list)
			buf_addc(b, ',');
		buf_puts(b, *s);
	}
}

void
servers_finish(struct redis_options *r)
{
	struct buf b = BUF_INIT;

	if (r->sentinels[0] != NULL) {
		buf_printf(&b, SENTINEL "%s@", r->master);
		finish_list(r->sentinels, SENTINEL_PORT, &b);
	} else if (r->clusters[0] != NULL) {
		buf_puts(&b, CLUSTER);
		finish_list(r->clusters, REDIS_PORT, &b);
	} else {
		return;
	}
	for (char **s = r->servers; *s != NULL; s++)
		free(*s);
	r->servers[0] = buf_steal(&b);
	r->servers[1] = NULL;
}
