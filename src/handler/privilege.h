/*
 * Privileges of the process: to have them, and to give them up.
 */
#ifndef RQD_HANDLER_PRIVILEGE_H
#define RQD_HANDLER_PRIVILEGE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/util.h"

/* Whether this process may become any user: root, or CAP_SETUID and CAP_SETGID. */
bool	privilege_held(void);

/* The user that the main process becomes: _rqd, or "nobody" where there is no _rqd. */
struct privilege_user {
	const char	*name;		/* static */
	uid_t		 uid;
	gid_t		 gid;
};
struct privilege_user privilege_user(void);

/* Becomes that user, for good.  0, or -1 and *cause. */
int	privilege_drop(char **cause) MUSTCHECK;

/*
 * No program can be executed any more, no privilege gained, no process looked into;
 * this one's memory is not dumped.  0, or -1 and *cause.
 */
int	privilege_seal(char **cause) MUSTCHECK;

#endif
