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

/* -- the short forms ------------------------------------------------------------------ */

static struct setting *
add(struct draft *d, const char *option, const struct setting *like)
{
	struct setting **slot = given(d, option);

	if (*slot == NULL || (is_override(like) && !is_override(*slot)))
		return *slot = draft_setting_new(d, option_find(SECTION_REDIS, option), &like->at);
	finding_error(&d->findings, &like->at, "server gives the %s, and so does %s: "
	    "remove one", strcmp(option, "cluster") == 0 ? "cluster" : "Sentinels", option);
	return NULL;
}

static int
malformed(struct draft *d, const struct setting *server, const char *form)
{
	finding_error(&d->findings, &server->at, "\"%s\": write %s", server->values[0], form);
	return -1;
}

/* Adds the parts of "HOST:PORT,HOST:PORT". */
static void
add_hosts(struct setting *s, const char *text, int line)
{
	char *copy = xstrdup(text), *rest = copy, *host;

	while ((host = strsep(&rest, ",")) != NULL)
		setting_add(s, host, line);
	free(copy);
}

/* Turns sentinel:// into the two options; -1: reported. */
static int
take_sentinels(struct draft *d, struct setting *server, const char *text)
{
	const char *at = strrchr(text, '@');
	struct setting *sentinel, *master;
	char *name;

	if (at == NULL || at == text || at[1] == '\0')
		return malformed(d, server, SENTINEL "MASTER@HOST:PORT,HOST:PORT");
	if ((sentinel = add(d, "sentinel", server)) == NULL ||
	    (master = add(d, "master", server)) == NULL)
		return -1;
	name = xstrndup(text, (size_t)(at - text));
	setting_add(master, name, server->lines[0]);
	add_hosts(sentinel, at + 1, server->lines[0]);
	free(name);
	return 0;
}

static int
take_cluster(struct draft *d, struct setting *server, const char *text)
{
	struct setting *cluster;

	if (text[0] == '\0')
		return malformed(d, server, CLUSTER "HOST:PORT,HOST:PORT");
	if ((cluster = add(d, "cluster", server)) == NULL)
		return -1;
	add_hosts(cluster, text, server->lines[0]);
	return 0;
}

/* Turns a short form into options; -1: reported. */
static int
take_short_form(struct draft *d)
{
	struct setting *server = *given(d, "server");
	const char *text = server != NULL && server->n == 1 ? server->values[0] : "";

	if (strncmp(text, SENTINEL, strlen(SENTINEL)) == 0) {
		*given(d, "server") = NULL;
		return take_sentinels(d, server, text + strlen(SENTINEL));
	}
	if (strncmp(text, CLUSTER, strlen(CLUSTER)) == 0) {
		*given(d, "server") = NULL;
		return take_cluster(d, server, text + strlen(CLUSTER));
	}
	return 0;
}

/* -- one of the forms -------------------------------------------------------------------- */

static void
drop(struct draft *d, enum form form)
{
	*given(d, forms[form]) = NULL;
	if (form == FORM_SENTINEL)
		*given(d, "master") = NULL;
}

/* A form of the command line replaces those of files. */
static void
replace(struct draft *d)
{
	bool override = false;
	enum form i;

	for (i = 0; i < FORMS; i++)
		if (has_value(*given(d, forms[i])))
			override |= is_override(*given(d, forms[i]));
	for (i = 0; override && i < FORMS; i++)
		if (has_value(*given(d, forms[i])) && !is_override(*given(d, forms[i])))
			drop(d, i);
}

/* Reports the later one of two forms that exclude each other. */
static void
exclude(struct draft *d, enum form x, enum form y)
{
	const struct setting *a = *given(d, forms[x]), *b = *given(d, forms[y]);
	bool later = b->at.file == a->at.file && b->at.line > a->at.line;
	char first[PLACE_TEXT_MAX];

	finding_error(&d->findings, later ? &b->at : &a->at,
	    "%s at %s says where Redis is: remove that, or %s", forms[later ? x : y],
	    place_text(later ? &a->at : &b->at, first), forms[later ? y : x]);
}

static void
choose(struct draft *d)
{
	enum form i, k;

	replace(d);
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

/* [v6], or a name or address, without a port. */
static bool
lacks_port(const char *server)
{
	return server[0] == '[' ? server[strlen(server) - 1] == ']' :
	    strchr(server, ':') == NULL;
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
		buf_printf(b, "%s%s", s != list ? "," : "", *s);
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
