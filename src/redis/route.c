/*
 * The walk through servers and addresses.  The causes of a round are joined to
 * one text, "a:6379: Connection refused; b:6379: is a replica", which is the
 * same for the same failures: callers compare it to report a change only.
 */
#include "redis/route.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
route_init(struct route *r, struct loop *loop, const struct redis_options *opt,
    void (*found)(const char *, void *), void *arg)
{
	*r = (struct route){ .loop = loop, .opt = opt, .found_fn = found, .arg = arg };
}

/* Forgets the server's address, to look it up anew. */
static void
route_forget(struct route *r)
{
	route_cancel(r);
	addr_done(&r->addr);
	r->nfound = r->next = 0;
	free(r->cause);
	r->cause = NULL;
}

void
route_done(struct route *r)
{
	route_forget(r);
	buf_done(&r->causes);
}

void
route_restart(struct route *r)
{
	route_forget(r);
	buf_clear(&r->causes);
	r->server = 0;
}

void
route_cancel(struct route *r)
{
	addr_resolve_cancel(r->resolve);
	r->resolve = NULL;
}

static void
route_resolved(char (*found)[INET6_ADDRSTRLEN], unsigned n, const char *cause, void *arg)
{
	struct route *r = arg;

	r->resolve = NULL;
	if (n > 0)
		memcpy(r->found, found, n * sizeof(r->found[0]));
	r->nfound = n;
	r->next = 0;
	r->found_fn(cause, r->arg);
}

enum route_find
route_find(struct route *r, char **cause)
{
	if (r->next < r->nfound)
		return ROUTE_FOUND;
	route_forget(r);
	if (route_server(r) == NULL) {
		(void)util_cause(cause, "no server is configured");
		return ROUTE_BAD;
	}
	if (addr_parse(route_server(r), &r->addr, cause) == -1)
		return ROUTE_BAD;
	if (r->addr.path == NULL && !addr_is_numeric(&r->addr)) {
		r->resolve = addr_resolve(r->loop, r->addr.host, route_resolved, r);
		return ROUTE_RESOLVING;
	}
	if (r->addr.path == NULL)
		snprintf(r->found[0], sizeof(r->found[0]), "%s", r->addr.host);
	r->nfound = 1;
	return ROUTE_FOUND;
}

bool
route_failed(struct route *r, const char *cause)
{
	route_cancel(r);
	free(r->cause);
	r->cause = xstrdup(cause);
	if (r->next < r->nfound && ++r->next < r->nfound)
		return true;
	if (r->causes.len > 0)
		buf_puts(&r->causes, "; ");
	if (route_server(r) != NULL)
		buf_printf(&r->causes, "%s: ", route_server(r));
	buf_puts(&r->causes, r->cause);
	if (route_server(r) == NULL || r->opt->servers[r->server + 1] == NULL)
		return false;
	route_forget(r);
	r->server++;
	return true;
}

const char *
route_causes(struct route *r)
{
	return buf_str(&r->causes);
}

const char *
route_path(const struct route *r)
{
	return r->addr.path;
}

const char *
route_host(const struct route *r)
{
	return r->addr.path == NULL && r->next < r->nfound ? r->found[r->next] : NULL;
}

const char *
route_server(const struct route *r)
{
	return r->opt->servers[r->server];
}
