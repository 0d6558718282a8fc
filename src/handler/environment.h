/*
 * The environment of a handler, built from nothing: PATH, HOME and so on,
 * locale and time zone, env_file, env, and what rqd says of the message.
 * Later ones win.  All but the last is made once per queue; a message costs
 * three snprintf(3)s.
 */
#ifndef RQD_HANDLER_ENVIRONMENT_H
#define RQD_HANDLER_ENVIRONMENT_H

#include <stdbool.h>

#include "base/util.h"
#include "handler/handler.h"
#include "handler/identity.h"

struct environment;

/*
 * Returns 0, or -1 with errno where env_file cannot be read (EINVAL: it holds a
 * line that is not NAME=value).  Everything is copied but cfg, which must live as
 * long.
 */
int	environment_new(const struct handler_env *, const struct queue_config *,
	    const struct identity *, struct environment **ret) MUSTCHECK;
void	environment_free(struct environment *);	/* NULL is fine */

/* Whether env_file has changed since; one stat(2) where there is one. */
bool	environment_is_stale(const struct environment *);

/*
 * For execve(2), valid until the next call.  NULL: without what belongs to one
 * message.
 */
char	**environment_for(struct environment *, const struct message *);

#endif
