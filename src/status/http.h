/*
 * A small HTTP server for looking at the daemon: GET and HEAD only, on libevent's evhttp,
 * in the daemon's own loop.
 *
 * A client can cost only a bounded amount: at most HTTP_CONNECTIONS connections,
 * HTTP_HEADERS bytes of request, HTTP_PATIENCE without a byte of a request or of its answer,
 * HTTP_IDLE between two requests.  A new connection beyond the limit closes the longest idle
 * one, or if all have requests, the one whose request is the oldest.
 *
 * On a loopback address the Host of a request must be an address, localhost, or this
 * machine's name.  Otherwise a page from elsewhere could have its own name point at
 * 127.0.0.1 (DNS rebinding), and read this server with the browser of a local user.
 */
#pragma once

#include "base/buf.h"
#include "loop/loop.h"

#define HTTP_CONNECTIONS	32
#define HTTP_HEADERS		(8 * 1024)
#define HTTP_PATIENCE		(10 * SEC)
#define HTTP_IDLE		(75 * SEC)	/* longer than a scraper's usual interval */
#define HTTP_RETRY		(5 * SEC)	/* while rqd cannot listen there */

struct http;
struct http_request;	/* one that waits for its answer */

/* The server answers requests for these paths.  A NULL path ends the table. */
struct http_route {
	const char	*path;
	/* Calls http_answer() exactly once, now or later, but before http_free(). */
	void		(*fn)(struct http_request *, const struct http_route *, void *);
	const void	*data;		/* fn's own */
};

/*
 * The table is borrowed; host is a name of this machine that a Host may say.
 * SIGPIPE must not end the process.
 */
struct http	*http_new(struct loop *, const struct http_route *, const char *host, void *arg);
void		 http_free(struct http *);		/* NULL is fine */

/*
 * Listens there and nowhere else; "": nowhere.  A failure is logged once, and the
 * server tries again every HTTP_RETRY: the daemon must handle messages without the
 * page, too.
 */
void		 http_listen(struct http *, const char *where);

/* The parameter of that name after the "?" of the request, decoded; NULL: none.  Caller frees. */
char		*http_parameter(const struct http_request *, const char *name);

/* Whether it came over a unix socket, whose mode says who may ask. */
bool		 http_is_unix(const struct http_request *);

/* Sends the body, and leaves it empty; frees the request. */
void		 http_answer(struct http_request *, int status, const char *type, struct buf *body);
