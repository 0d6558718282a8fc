/*
 * The walk through servers and addresses.  The causes of a round are joined to
 * one text, "a:6379: Connection refused; b:6379: is a replica", which is the
 * same for the same failures: callers compare it to report a change only.
 */
#include "redis/address_walk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
walk_switched(const char *master, void *arg)
{
	struct address_walk *r = arg;

	if (walk_server(r) == NULL || strcmp(walk_server(r), master) != 0)
		r->switched_fn(master, r->arg);
}

/* The Sentinels' answer. */
static void
walk_told(const char *master, const char *why, void *arg)
{
	struct address_walk *r = arg;
	char *cause = NULL;

	if (master == NULL) {
		r->found_fn(why, r->arg);
		return;
	}
	r->master = xstrdup(master);
	if (walk_find(r, &cause) != WALK_RESOLVING)
		r->found_fn(cause, r->arg);
	free(cause);
}

void
walk_init(struct address_walk *r, struct loop *loop, const struct redis_options *opt,
    void (*found)(const char *, void *), void (*switched)(const char *, void *), void *arg)
{
	*r = (struct address_walk){ .loop = loop, .opt = opt, .found_fn = found,
		.switched_fn = switched, .arg = arg };
	r->client = (struct sentinel_client){ .told = walk_told, .switched = walk_switched,
		.arg = r };
	if (opt->sentinel != NULL)
		sentinel_join(opt->sentinel, &r->client);
}

/* Forgets the server's address, to look it up anew. */
static void
walk_forget(struct address_walk *r)
{
	walk_cancel(r);
	addr_done(&r->addr);
	r->nfound = r->next = 0;
	xreplace(&r->cause, NULL);
}

void
walk_done(struct address_walk *r)
{
	walk_restart(r);
	buf_done(&r->causes);
	walk_leave(r);
}

void
walk_leave(struct address_walk *r)
{
	if (r->opt->sentinel != NULL)
		sentinel_leave(r->opt->sentinel, &r->client);
}

void
walk_restart(struct address_walk *r)
{
	walk_forget(r);
	buf_clear(&r->causes);
	r->server = 0;
	free(r->master);
	r->master = NULL;
}

void
walk_cancel(struct address_walk *r)
{
	addr_resolve_cancel(r->resolve);
	r->resolve = NULL;
	sentinel_cancel(&r->client);
}

static void
walk_resolved(char (*found)[INET6_ADDRSTRLEN], unsigned n, const char *cause, void *arg)
{
	struct address_walk *r = arg;
	char *text;

	r->resolve = NULL;
	if (n > 0)
		memcpy(r->found, found, n * sizeof(r->found[0]));
	r->nfound = n;
	r->next = 0;
	text = cause != NULL ? xasprintf("cannot resolve the name: %s", cause) : NULL;
	r->found_fn(text, r->arg);
	free(text);
}

enum walk_find
walk_find(struct address_walk *r, char **cause)
{
	if (r->next < r->nfound)
		return WALK_FOUND;
	walk_forget(r);
	if (r->opt->sentinel != NULL && r->master == NULL) {
		sentinel_ask(r->opt->sentinel, &r->client);
		return WALK_RESOLVING;
	}
	if (walk_server(r) == NULL) {
		(void)util_cause(cause, "no server is configured");
		return WALK_BAD;
	}
	if (addr_parse(walk_server(r), &r->addr, cause) == -1)
		return WALK_BAD;
	if (r->addr.path == NULL && !addr_is_numeric(&r->addr)) {
		r->resolve = addr_resolve(r->loop, r->addr.host, walk_resolved, r);
		return WALK_RESOLVING;
	}
	if (r->addr.path == NULL)
		snprintf(r->found[0], sizeof(r->found[0]), "%s", r->addr.host);
	r->nfound = 1;
	return WALK_FOUND;
}

bool
walk_failed(struct address_walk *r, const char *cause)
{
	walk_cancel(r);
	xreplace(&r->cause, cause);
	if (r->next < r->nfound && ++r->next < r->nfound)
		return true;
	if (r->causes.len > 0)
		buf_puts(&r->causes, "; ");
	if (walk_server(r) != NULL)
		buf_printf(&r->causes, "%s: ", walk_server(r));
	buf_puts(&r->causes, r->cause);
	if (r->master != NULL)
		sentinel_doubt(r->opt->sentinel, r->master);
	if (walk_server(r) == NULL || r->opt->sentinel != NULL ||
	    r->opt->servers[r->server + 1] == NULL)
		return false;
	walk_forget(r);
	r->server++;
	return true;
}

const char *
walk_server(const struct address_walk *r)
{
	return r->opt->sentinel != NULL ? r->master : r->opt->servers[r->server];
}
