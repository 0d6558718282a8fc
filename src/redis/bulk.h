/*
 * A second connection, for large payloads.  A large reply takes long on a slow link,
 * and the server may close the connection instead of sending it
 * (client-output-buffer-limit).  Neither may delay the commands of the first
 * connection.
 *
 * The connection is made for the first call, and closed after a minute without calls.
 * Calls are sent one at a time, so that the server's limit applies to one reply.  A
 * call waits for the connection for options.timeout at most.
 */
#pragma once

#include "redis/conn.h"
#include "redis/request.h"

struct bulk;

/* conn is the daemon's first connection, borrowed; both must be to the same server. */
struct bulk	*bulk_new(struct loop *, struct conn *, const struct redis_options *,
		    const char *name);
void		 bulk_free(struct bulk *);	/* answers outstanding calls; NULL is fine */
void		 bulk_set_limits(struct bulk *, size_t reply_max, usec_t backoff_max);

/* As conn_set_redirected(). */
void		 bulk_set_redirected(struct bulk *, conn_redirected_fn *, void *arg);

/* As request_script().  CONN_NOT_SENT: the call has waited too long for the connection. */
void		 bulk_request(struct bulk *, struct request *, const struct script *,
		    struct words *);

/* Why the connection cannot be made, or why the last one ended; "": neither was. */
const char	*bulk_cause(const struct bulk *);
