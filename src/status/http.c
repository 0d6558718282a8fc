/*
 * The HTTP server; see http.h.
 *
 * evhttp has the timeouts and the limits of a request.  It does not bound the number of
 * connections, so this file keeps a list of them, the longest silent first.  evhttp shows a
 * connection itself only with its first request: libevent 2.1 has no callback before that.  Until
 * then the list holds a reference of the bufferevent, and looks now and then whether evhttp has
 * let go of it.
 *
 * Without free descriptors accept(2) fails in every turn, so the listener pauses for a
 * while.
 *
 * While a request waits for its answer, evhttp does not read from the connection.  So
 * only http_answer() can change it.
 */
#include "status/http.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>

#include "base/list.h"
#include "base/listen_socket.h"
#include "base/log.h"
#include "base/util.h"
#include "loop/timer.h"

#define BODY_MAX	4096		/* of a request that is refused anyway */
#define IDLE		(1 * SEC)	/* a connection without a request is idle after this time */
#define REST		(1 * SEC)	/* pause of the listener after accept(2) failed */

/* A connection. */
struct peer {
	TAILQ_ENTRY(peer)	 entry;
	struct http	*http;
	struct bufferevent	*bev;	/* own reference */
	struct evhttp_connection	*evcon;	/* NULL: no request has come */
	bool	 busy;		/* a request waits, or its answer is being sent */
	usec_t	 since;		/* mono; of the last change */
};
TAILQ_HEAD(peer_list, peer);

struct http_request {
	struct http	*http;
	struct evhttp_request	*req;
};

struct http {
	struct loop	*loop;
	const struct http_route	*routes;
	char	*host;
	void	*arg;
	struct evhttp	*server;
	struct evhttp_bound_socket	*bound;	/* NULL: not listening */
	struct listen_socket	 listener;	/* its descriptor is bound's */
	char	*where;		/* as configured; "": nowhere */
	bool	 complained;	/* logged that it cannot listen */
	struct timer	 retry;	/* to open where, or to end a rest */
	struct peer_list	 peers;	/* the longest silent first */
	unsigned	 npeers;
};

/* The server, for accept_failed(), because evhttp uses the listener's argument. */
static struct http *the_server;

/* -- connections ------------------------------------------------------------- */

static void
peer_free(struct peer *p)
{
	TAILQ_REMOVE(&p->http->peers, p, entry);
	p->http->npeers--;
	if (p->evcon != NULL)
		evhttp_connection_set_closecb(p->evcon, NULL, NULL);
	bufferevent_decref(p->bev);
	free(p);
}

/* Shuts the socket down: evhttp sees an end of file, and closes. */
static void
peer_shut(struct peer *p)
{
	int fd = bufferevent_getfd(p->bev);

	if (fd != -1)
		shutdown(fd, SHUT_RDWR);
	peer_free(p);
}

static void
peer_closed(struct evhttp_connection *evcon UNUSED, void *arg)
{
	peer_free(arg);
}

/* A request has come, or its answer was sent: the peer is now the last to be closed. */
static void
peer_note(struct http *h, struct evhttp_request *req, bool busy)
{
	struct evhttp_connection *evcon = evhttp_request_get_connection(req);
	usec_t patience = HTTP_IDLE;
	struct peer *p;

	TAILQ_FOREACH(p, &h->peers, entry) {
		if (evcon != NULL && p->bev == evhttp_connection_get_bufferevent(evcon))
			break;
	}
	if (p == NULL)		/* it was shut down */
		return;
	p->busy = busy;
	p->since = clock_mono();
	p->evcon = evcon;
	evhttp_connection_set_closecb(evcon, peer_closed, p);
	if (busy)
		patience = HTTP_PATIENCE;
	evhttp_connection_set_timeout(evcon, (int)(patience / SEC));
	TAILQ_REMOVE(&h->peers, p, entry);
	TAILQ_INSERT_TAIL(&h->peers, p, entry);
}

/* Frees the peers without a request that evhttp has closed. */
static void
close_gone(struct http *h)
{
	struct peer *p, *next;
	bufferevent_event_cb used;

	TAILQ_FOREACH_SAFE(p, &h->peers, entry, next) {
		bufferevent_getcb(p->bev, NULL, NULL, &used, NULL);
		if (used == NULL)
			peer_free(p);
	}
}

/* evhttp has accepted a connection, and asks for its bufferevent. */
static struct bufferevent *
accepted(struct event_base *base, void *arg)
{
	struct http *h = arg;
	struct peer *p;

	close_gone(h);
	if (h->npeers >= HTTP_CONNECTIONS) {
		TAILQ_FOREACH(p, &h->peers, entry)
			if (!p->busy && clock_mono() - p->since >= IDLE)
				break;
		if (p == NULL)
			p = TAILQ_FIRST(&h->peers);
		peer_shut(p);
	}
	p = NEW(struct peer, .http = h, .since = clock_mono(),
	    .bev = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE));
	if (p->bev == NULL)
		fatal_os("out of memory");
	bufferevent_incref(p->bev);
	TAILQ_INSERT_TAIL(&h->peers, p, entry);
	h->npeers++;
	return p->bev;
}

/* -- requests ---------------------------------------------------------------- */

/* The kernel has the whole answer: the next request may come. */
static void
request_sent(struct evhttp_request *req, void *arg)
{
	peer_note(arg, req, false);
}

void
http_answer(struct http_request *r, int status, const char *type, struct buf *body)
{
	/* The page loads nothing from other hosts, and no other page may embed it. */
	static const char *const fixed[][2] = {
		{ "Cache-Control", "no-store" },
		{ "Content-Security-Policy", "default-src 'none'; script-src 'self'; "
		    "style-src 'self'; connect-src 'self'; img-src 'self' data:; "
		    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'" },
		{ "Cross-Origin-Resource-Policy", "same-origin" },
		{ "Referrer-Policy", "no-referrer" },
		{ "X-Content-Type-Options", "nosniff" },
		{ "X-Frame-Options", "DENY" },
	};
	struct evkeyvalq *headers = evhttp_request_get_output_headers(r->req);
	bool head = evhttp_request_get_command(r->req) == EVHTTP_REQ_HEAD;
	struct evbuffer *out = evbuffer_new();
	char length[24];

	if (out == NULL || (!head && evbuffer_add(out, body->data, body->len) == -1))
		fatal_os("out of memory");
	snprintf(length, sizeof(length), "%zu", body->len);
	evhttp_add_header(headers, "Content-Type", type);
	evhttp_add_header(headers, "Content-Length", length);
	for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
		evhttp_add_header(headers, fixed[i][0], fixed[i][1]);
	if (r->http->bound == NULL)	/* after http_listen(""): close */
		evhttp_add_header(headers, "Connection", "close");
	evhttp_request_set_on_complete_cb(r->req, request_sent, r->http);
	evhttp_send_reply(r->req, status, NULL, out);
	evbuffer_free(out);
	buf_done(body);
	free(r);
}

char *
http_parameter(const struct http_request *r, const char *name)
{
	const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(r->req);
	const char *query = NULL, *value;
	struct evkeyvalq parameters;
	char *copy = NULL;

	if (uri != NULL)
		query = evhttp_uri_get_query(uri);
	if (query == NULL || evhttp_parse_query_str(query, &parameters) == -1)
		return NULL;
	value = evhttp_find_header(&parameters, name);
	if (value != NULL)
		copy = xstrdup(value);
	evhttp_clear_headers(&parameters);
	return copy;
}

bool
http_is_unix(const struct http_request *r)
{
	struct evhttp_connection *evcon = evhttp_request_get_connection(r->req);
	struct sockaddr_storage own;
	socklen_t len = sizeof(own);

	/* Not the listener's address: a reload may have moved it meanwhile. */
	return evcon != NULL && getsockname(bufferevent_getfd(evhttp_connection_get_bufferevent(
	    evcon)), (struct sockaddr *)&own, &len) == 0 && own.ss_family == AF_UNIX;
}

/* Whether the Host is this machine.  A foreign page can rebind its name, but not an address. */
static bool
host_is_ours(const struct http *h, const char *host)
{
	const char *last = strrchr(host, '.');
	char bare[64];
	struct in6_addr in6;
	struct in_addr in;
	size_t n = strlen(host);

	if (inet_pton(AF_INET, host, &in) == 1)
		return true;
	if (host[0] == '[' && n > 2 && n < sizeof(bare)) {
		snprintf(bare, sizeof(bare), "%.*s", (int)n - 2, host + 1);
		return inet_pton(AF_INET6, bare, &in6) == 1;
	}
	return strcasecmp(host, "localhost") == 0 ||
	    (last != NULL && strcasecmp(last, ".localhost") == 0) ||
	    strcasecmp(host, util_hostname()) == 0 || strcasecmp(host, h->host) == 0;
}

static void
requested(struct evhttp_request *req, void *arg)
{
	struct http *h = arg;
	enum evhttp_cmd_type command = evhttp_request_get_command(req);
	const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(req);
	const char *host = evhttp_request_get_host(req), *why = NULL;
	const char *path = uri != NULL ? evhttp_uri_get_path(uri) : NULL;
	const struct http_route *route = h->routes;
	struct http_request *r = NEW(struct http_request, .http = h, .req = req);
	struct buf b = BUF_INIT;
	int status = 0;

	peer_note(h, req, true);
	while (route->path != NULL && (path == NULL || strcmp(route->path, path) != 0))
		route++;
	if (command != EVHTTP_REQ_GET && command != EVHTTP_REQ_HEAD) {
		evhttp_add_header(evhttp_request_get_output_headers(req), "Allow", "GET, HEAD");
		status = HTTP_BADMETHOD;
		why = "Only GET and HEAD: nothing can be changed here.";
	} else if (h->listener.loopback && host != NULL && !host_is_ours(h, host)) {
		status = 403;
		why = "This host goes by another name: use its address, localhost, or listen on "
		    "an address that others reach.";
	} else if (route->path == NULL) {
		status = HTTP_NOTFOUND;
		why = "Not found: see rqd-http(7).";
	} else {
		route->fn(r, route, h->arg);
		return;
	}
	buf_printf(&b, "%s\n", why);
	http_answer(r, status, "text/plain; charset=utf-8", &b);
}

/* -- listening --------------------------------------------------------------- */

/* Out of descriptors: clients wait in the backlog. */
static void
accept_failed(struct evconnlistener *l, void *arg UNUSED)
{
	close_gone(the_server);
	evconnlistener_disable(l);
	timer_set(&the_server->retry, REST);
}

static void
open_listener(struct http *h)
{
	struct evconnlistener *l;
	char *cause = NULL;

	if (listen_socket_open(&h->listener, h->where, &cause) == -1) {
		if (!h->complained)
			log_event(LOG_LV_WARN, "warning", NULL, LF_STR("error", cause),
			    LF_STR("warning", "cannot listen on http.listen: rqd serves "
			    "its queues and tries again"));
		h->complained = true;
		free(cause);
		timer_set(&h->retry, HTTP_RETRY);
		return;
	}
	l = evconnlistener_new(loop_base(h->loop), NULL, NULL,
	    LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, h->listener.fd);
	h->bound = NULL;
	if (l != NULL)
		h->bound = evhttp_bind_listener(h->server, l);
	if (h->bound == NULL)
		fatal_os("out of memory");
	evconnlistener_set_error_cb(l, accept_failed);
	log_event(LOG_LV_INFO, "listening", NULL, LF_STR("address", h->listener.address));
	h->complained = false;
}

static void
retry(void *arg)
{
	struct http *h = arg;

	if (h->bound != NULL)
		evconnlistener_enable(evhttp_bound_socket_get_listener(h->bound));
	else
		open_listener(h);
}

void
http_listen(struct http *h, const char *where)
{
	struct peer *p, *next;

	if (strcmp(h->where, where) == 0)
		return;
	timer_stop(&h->retry);
	if (h->bound != NULL) {
		evhttp_del_accept_socket(h->server, h->bound);
		h->bound = NULL;
		h->listener.fd = -1;
		listen_socket_close(&h->listener);
		TAILQ_FOREACH_SAFE(p, &h->peers, entry, next)
			if (!p->busy)
				peer_shut(p);
	}
	xreplace(&h->where, where);
	h->complained = false;
	if (where[0] != '\0')
		open_listener(h);
}

/* -- life -------------------------------------------------------------------- */

struct http *
http_new(struct loop *loop, const struct http_route *routes, const char *host, void *arg)
{
	struct http *h = NEW(struct http, .loop = loop, .routes = routes, .host = xstrdup(host),
	    .arg = arg, .where = xstrdup(""),
	    .listener = (struct listen_socket)LISTEN_SOCKET_INIT);

	TAILQ_INIT(&h->peers);
	timer_init(&h->retry, loop, retry, h);
	h->server = evhttp_new(loop_base(loop));
	if (h->server == NULL)
		fatal_os("out of memory");
	/* Also methods that requested() refuses, because it names the allowed ones. */
	evhttp_set_allowed_methods(h->server, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD |
	    EVHTTP_REQ_POST | EVHTTP_REQ_PUT | EVHTTP_REQ_DELETE | EVHTTP_REQ_OPTIONS |
	    EVHTTP_REQ_TRACE | EVHTTP_REQ_CONNECT | EVHTTP_REQ_PATCH);
	evhttp_set_max_headers_size(h->server, HTTP_HEADERS);
	evhttp_set_max_body_size(h->server, BODY_MAX);
	evhttp_set_bevcb(h->server, accepted, h);
	evhttp_set_gencb(h->server, requested, h);
	evhttp_set_timeout(h->server, (int)(HTTP_PATIENCE / SEC));
	the_server = h;
	return h;
}

void
http_free(struct http *h)
{
	if (h == NULL)
		return;
	http_listen(h, "");
	while (!TAILQ_EMPTY(&h->peers))
		peer_free(TAILQ_FIRST(&h->peers));
	evhttp_free(h->server);
	the_server = NULL;
	free(h->where);
	free(h->host);
	free(h);
}
