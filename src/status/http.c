/*
 * The HTTP server; see http.h.
 *
 * evhttp reads requests and writes answers.  It does not bound connections, and its
 * timeouts start anew with every byte.  So this file keeps a record of each connection,
 * with a deadline.  When the deadline passes it shuts the socket down; evhttp then sees
 * an end of file, and closes.
 *
 *	NEW ---------> ANSWERING <------> READING	--> closed by evhttp, or shut
 *	  the first request    answer sent, next request
 *
 * evhttp asks accepted() for a bufferevent when it accepts a connection.  It shows the
 * connection itself only with a request: libevent 2.1 has no callback before that.  So
 * rqd notices the close of a NEW connection only when it looks (is_gone()), at the
 * latest at the deadline.  Until then the socket stays open, because the record holds a
 * reference of the bufferevent.
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
#define REST		(1 * SEC)	/* pause of the listener after accept(2) failed */
#define IDLE		(1 * SEC)	/* then a connection without a request counts as idle */
#define SLOW		(2 * SEC)	/* then an answer that is not read counts as stalled */

enum peer_state {
	PEER_NEW = 1,		/* no request has come: evhttp does not report its close */
	PEER_READING = 2,	/* waits for another request */
	PEER_ANSWERING = 4	/* a request waits, or its answer is being sent */
};

/* A connection. */
struct peer {
	TAILQ_ENTRY(peer)	 entry;	/* the longest silent first */
	struct http	*http;
	struct bufferevent	*bev;	/* own reference */
	enum peer_state	 state;
	usec_t	 since;		/* of the last change of state */
	struct timer	 deadline;	/* not set: the socket was shut down */
};
TAILQ_HEAD(peer_list, peer);

struct http_request {
	TAILQ_ENTRY(http_request)	 entry;
	struct http	*http;
	struct evhttp_request	*req;
};
TAILQ_HEAD(request_list, http_request);

struct http {
	LIST_ENTRY(http)	 entry;
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
	struct peer_list	 peers;
	unsigned	 npeers;
	struct request_list	 requests;
};

/* All servers, for accept_failed(), because evhttp uses the listener's argument. */
static LIST_HEAD(, http) servers = LIST_HEAD_INITIALIZER(servers);

/* -- connections ------------------------------------------------------------- */

static void
peer_free(struct peer *p)
{
	struct http *h = p->http;

	TAILQ_REMOVE(&h->peers, p, entry);
	h->npeers--;
	timer_stop(&p->deadline);
	bufferevent_decref(p->bev);
	free(p);
}

/*
 * Shuts the socket down.  evhttp sees an end of file, and closes; it reports that if
 * there was a request.
 */
static void
peer_shut(void *arg)
{
	struct peer *p = arg;
	int fd = bufferevent_getfd(p->bev);

	timer_stop(&p->deadline);
	if (fd != -1)
		shutdown(fd, SHUT_RDWR);
	if (p->state == PEER_NEW)
		peer_free(p);
}

static void
peer_closed(struct evhttp_connection *evcon UNUSED, void *arg)
{
	peer_free(arg);
}

/* Changes the state, and makes the peer the last to be evicted. */
static void
peer_set_state(struct peer *p, enum peer_state state, usec_t deadline)
{
	struct http *h = p->http;

	p->state = state;
	p->since = clock_mono();
	timer_set(&p->deadline, deadline);
	TAILQ_REMOVE(&h->peers, p, entry);
	TAILQ_INSERT_TAIL(&h->peers, p, entry);
}

/* The connection of a request; NULL: it was shut down. */
static struct peer *
peer_find(struct http *h, struct evhttp_request *req)
{
	struct evhttp_connection *evcon = evhttp_request_get_connection(req);
	struct peer *p;

	TAILQ_FOREACH(p, &h->peers, entry) {
		if (evcon != NULL && p->bev == evhttp_connection_get_bufferevent(evcon))
			return timer_is_set(&p->deadline) ? p : NULL;
	}
	return NULL;
}

/* Whether the client has closed a connection that evhttp never showed. */
static bool
is_gone(const struct peer *p)
{
	int fd = bufferevent_getfd(p->bev);
	char byte;

	return p->state == PEER_NEW && (fd == -1 ||
	    recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0);
}

/*
 * The peer that has been in one of these states for the longest time, at least for
 * `least`; NULL: none.
 */
static struct peer *
silent_peer(const struct http *h, unsigned states, usec_t least)
{
	struct peer *p;

	TAILQ_FOREACH(p, &h->peers, entry) {
		if (timer_is_set(&p->deadline) && (p->state & states) != 0 &&
		    clock_mono() - p->since >= least)
			return p;
	}
	return NULL;
}

static void
close_gone(struct http *h)
{
	struct peer *p, *next;

	TAILQ_FOREACH_SAFE(p, &h->peers, entry, next) {
		if (is_gone(p))
			peer_shut(p);
	}
}

/* Evicts an idle connection, else a stalled one, else the longest silent of all. */
static void
make_room(struct http *h)
{
	struct peer *p;

	if (h->npeers < HTTP_CONNECTIONS)
		return;
	p = silent_peer(h, PEER_NEW | PEER_READING, IDLE);
	if (p == NULL)
		p = silent_peer(h, PEER_ANSWERING, SLOW);
	if (p == NULL)
		p = silent_peer(h, PEER_NEW | PEER_READING | PEER_ANSWERING, 0);
	if (p != NULL)
		peer_shut(p);
}

/* evhttp has accepted a connection, and asks for its bufferevent. */
static struct bufferevent *
accepted(struct event_base *base, void *arg)
{
	struct http *h = arg;
	struct peer *p = xcalloc(1, sizeof(*p));

	close_gone(h);
	make_room(h);
	*p = (struct peer){ .http = h, .state = PEER_NEW, .since = clock_mono(),
	    .bev = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE) };
	if (p->bev == NULL)
		fatal_os("out of memory");
	bufferevent_incref(p->bev);
	timer_init(&p->deadline, h->loop, peer_shut, p);
	timer_set(&p->deadline, HTTP_PATIENCE);
	TAILQ_INSERT_TAIL(&h->peers, p, entry);
	h->npeers++;
	return p->bev;
}

/* -- requests ---------------------------------------------------------------- */

/* The kernel has the whole answer: the next request may come. */
static void
request_sent(struct evhttp_request *req, void *arg)
{
	struct peer *p = peer_find(arg, req);

	if (p != NULL)
		peer_set_state(p, PEER_READING, HTTP_IDLE);
}

static void
add_headers(struct evhttp_request *req, const char *type, size_t len)
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
	struct evkeyvalq *to = evhttp_request_get_output_headers(req);
	char length[24];

	snprintf(length, sizeof(length), "%zu", len);
	evhttp_add_header(to, "Content-Type", type);
	evhttp_add_header(to, "Content-Length", length);
	for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
		evhttp_add_header(to, fixed[i][0], fixed[i][1]);
}

static void
send_answer(struct http *h, struct evhttp_request *req, int status, const char *type,
    struct buf *body)
{
	bool head = evhttp_request_get_command(req) == EVHTTP_REQ_HEAD;
	struct evbuffer *out = evbuffer_new();

	if (out == NULL || (!head && evbuffer_add(out, body->data, body->len) == -1))
		fatal_os("out of memory");
	add_headers(req, type, body->len);
	buf_done(body);
	if (h->bound == NULL)	/* after http_listen(""): close */
		evhttp_add_header(evhttp_request_get_output_headers(req), "Connection", "close");
	evhttp_request_set_on_complete_cb(req, request_sent, h);
	evhttp_send_reply(req, status, NULL, out);
	evbuffer_free(out);
}

void
http_answer(struct http_request *r, int status, const char *type, struct buf *body)
{
	struct http *h = r->http;
	struct peer *p = peer_find(h, r->req);

	TAILQ_REMOVE(&h->requests, r, entry);
	if (p != NULL)
		peer_set_state(p, PEER_ANSWERING, HTTP_PATIENCE);
	send_answer(h, r->req, status, type, body);
	free(r);
}

char *
http_parameter(const struct http_request *r, const char *name)
{
	const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(r->req);
	const char *query = uri != NULL ? evhttp_uri_get_query(uri) : NULL, *value = NULL;
	struct evkeyvalq parameters;
	char *copy;

	if (query == NULL || evhttp_parse_query_str(query, &parameters) == -1)
		return NULL;
	value = evhttp_find_header(&parameters, name);
	copy = value != NULL ? xstrdup(value) : NULL;
	evhttp_clear_headers(&parameters);
	return copy;
}

static void
refuse(struct http *h, struct evhttp_request *req, int status, const char *why)
{
	struct buf b = BUF_INIT;

	buf_printf(&b, "%s\n", why);
	send_answer(h, req, status, "text/plain; charset=utf-8", &b);
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

static const struct http_route *
find_route(const struct http *h, const char *path)
{
	const struct http_route *r;

	for (r = h->routes; r->path != NULL; r++) {
		if (path != NULL && strcmp(r->path, path) == 0)
			return r;
	}
	return NULL;
}

/* From its first request on, evhttp reports the connection's close. */
static void
note_request(struct http *h, struct evhttp_request *req)
{
	struct peer *p = peer_find(h, req);

	if (p == NULL)
		return;
	if (p->state == PEER_NEW)
		evhttp_connection_set_closecb(evhttp_request_get_connection(req), peer_closed, p);
	peer_set_state(p, PEER_ANSWERING, HTTP_PATIENCE);
}

static void
requested(struct evhttp_request *req, void *arg)
{
	struct http *h = arg;
	enum evhttp_cmd_type command = evhttp_request_get_command(req);
	const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(req);
	const char *host = evhttp_request_get_host(req);
	const struct http_route *route;
	struct http_request *r;

	note_request(h, req);
	if (command != EVHTTP_REQ_GET && command != EVHTTP_REQ_HEAD) {
		evhttp_add_header(evhttp_request_get_output_headers(req), "Allow", "GET, HEAD");
		refuse(h, req, HTTP_BADMETHOD, "Only GET and HEAD: nothing can be changed here.");
	} else if (h->listener.loopback && host != NULL && !host_is_ours(h, host)) {
		refuse(h, req, 403, "This host goes by another name: use its address, "
		    "localhost, or listen on an address that others reach.");
	} else if ((route = find_route(h, uri != NULL ? evhttp_uri_get_path(uri) : NULL)) == NULL) {
		refuse(h, req, HTTP_NOTFOUND, "Not found: see rqd(8), HTTP.");
	} else {
		r = NEW(struct http_request, .http = h, .req = req);
		TAILQ_INSERT_TAIL(&h->requests, r, entry);
		route->fn(r, route, h->arg);
	}
}

/* -- listening --------------------------------------------------------------- */

/* Out of descriptors: clients wait in the backlog. */
static void
accept_failed(struct evconnlistener *l, void *arg UNUSED)
{
	struct http *h;

	LIST_FOREACH(h, &servers, entry) {
		if (h->bound == NULL || evhttp_bound_socket_get_listener(h->bound) != l)
			continue;
		close_gone(h);
		evconnlistener_disable(l);
		timer_set(&h->retry, REST);
	}
}

static void
unlisten(struct http *h)
{
	struct peer *p, *next;

	if (h->bound == NULL)
		return;
	evhttp_del_accept_socket(h->server, h->bound);
	h->bound = NULL;
	h->listener.fd = -1;
	listen_socket_close(&h->listener);
	TAILQ_FOREACH_SAFE(p, &h->peers, entry, next) {
		if (p->state != PEER_ANSWERING)
			peer_shut(p);
	}
}

static void
start_listening(struct http *h)
{
	struct evconnlistener *l = evconnlistener_new(loop_base(h->loop), NULL, NULL,
	    LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, h->listener.fd);

	h->bound = l != NULL ? evhttp_bind_listener(h->server, l) : NULL;
	if (h->bound == NULL)
		fatal_os("out of memory");
	evconnlistener_set_error_cb(l, accept_failed);
	log_event(LOG_LV_INFO, "listening", NULL, LF_STR("address", h->listener.address));
	h->complained = false;
}

static void
open_listener(struct http *h)
{
	char *cause = NULL;

	if (listen_socket_open(&h->listener, h->where, &cause) == 0) {
		start_listening(h);
		return;
	}
	if (!h->complained)
		log_event(LOG_LV_WARN, "warning", NULL, LF_STR("error", cause),
		    LF_STR("warning", "cannot listen on http.listen: rqd serves "
		    "its queues and tries again"));
	h->complained = true;
	free(cause);
	timer_set(&h->retry, HTTP_RETRY);
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
	if (strcmp(h->where, where) == 0)
		return;
	timer_stop(&h->retry);
	unlisten(h);
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
	TAILQ_INIT(&h->requests);
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
	/* Its own timeouts are longer than any deadline here. */
	evhttp_set_timeout(h->server, 3600);
	LIST_INSERT_HEAD(&servers, h, entry);
	return h;
}

void
http_free(struct http *h)
{
	struct http_request *r;

	if (h == NULL)
		return;
	LIST_REMOVE(h, entry);
	timer_stop(&h->retry);
	unlisten(h);
	while ((r = TAILQ_TAKE(&h->requests, entry)) != NULL)
		free(r);
	evhttp_free(h->server);
	while (!TAILQ_EMPTY(&h->peers))
		peer_free(TAILQ_FIRST(&h->peers));
	free(h->where);
	free(h->host);
	free(h);
}
