/*
 * The privileges of this process: tells whether it has them, and gives them up.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/util.h"

/* Whether this process may become any user: root, or CAP_SETUID and CAP_SETGID. */
bool	privilege_held(void);

/*
 * Uses only these of the first 32 capabilities, and lets no program inherit any; the others stay
 * permitted, unless it is 0, which gives up all for good.  0, or -1 with errno.
 */
int	privilege_limit(uint32_t effective) MUSTCHECK;

/* The user that the main process becomes. */
#define PRIVILEGE_USER	"_rqd"

/* Finds that user; false: there is none. */
bool	privilege_user(uid_t *, gid_t *);

/* Becomes that user, for good.  0, or -1 and *cause. */
int	privilege_drop(char **cause) MUSTCHECK;

/*
 * From now on only root can trace this process and those that it forks, and look into their
 * memory; no core of them is made.  Programs that they execute are not concerned.
 */
void	privilege_hide(void);

/*
 * From now on this process can execute no program, gain no privilege and read no other
 * process; its memory is not dumped.  0, or -1 and *cause.
 */
int	privilege_seal(char **cause) MUSTCHECK;
