/*
 * The privileges of this process: tells whether it has them, and gives them up.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/util.h"

/* Whether this process may become any user: root, or CAP_SETUID and CAP_SETGID. */
bool	privilege_held(void);

/* The user that the main process becomes: _rqd, or "nobody" if there is no _rqd. */
struct privilege_user {
	const char	*name;		/* static */
	uid_t		 uid;
	gid_t		 gid;
};
struct privilege_user privilege_user(void);

/* Becomes that user, for good.  0, or -1 and *cause. */
int	privilege_drop(char **cause) MUSTCHECK;

/*
 * From now on this process can execute no program, gain no privilege and read no other
 * process; its memory is not dumped.  0, or -1 and *cause.
 */
int	privilege_seal(char **cause) MUSTCHECK;
