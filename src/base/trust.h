/*
 * Checks that only root decides where a path leads.
 *
 * When root opens a path, a user who may change a folder on the way can put a symbolic link
 * there, to a file that only root may open.  sshd(8) checks each folder, too (StrictModes).
 *
 * A folder must be root's, and nobody but root and root's group may write to it, also not by an
 * access control list: then the group's mode is the mask of the list.  A sticky
 * folder, as /tmp is, may be open to others; the file that is taken from it must then be
 * root's.  Only root can have made a symbolic link that passes these checks: it is followed,
 * and its target is checked in the same way.
 */
#pragma once

#include <sys/types.h>

#include "base/util.h"

/*
 * Looks at all folders of a path, from the root on.  The last component may be missing; the
 * owner of the file itself matters only in a sticky folder.  What belongs to the user
 * `also` counts as root's; 0: no such user.
 *
 * Returns 0, or -1 with errno and *cause, a sentence that names the folder: EPERM where
 * somebody else decides, or why it cannot be looked at.
 */
int	trust_folders(const char *path, uid_t also, char **cause) MUSTCHECK;

/* The file, too: it must be there, be root's, and nobody else may write to it. */
int	trust_file(const char *path, uid_t also, char **cause) MUSTCHECK;

/* What root's process does for one without privileges. */
enum lend {
	LEND_READ = 'r',	/* opens a file to read it */
	LEND_CONNECT = 'c',	/* connects to a unix socket */
	LEND_LOG = 'a',		/* opens a file to append to it, see log_open_file() */
	LEND_LISTEN = 'l',	/* listens on a unix socket */
	LEND_REMOVE = 'u'	/* removes the file of a unix socket that nobody listens on */
};

/*
 * Asks root's process, if there is one, and waits for it, a few seconds at most.  Returns a
 * descriptor, or -1 with errno: EPERM if another user could redirect the path, EACCES if the
 * configuration does not name it.  Where there is nobody to ask, errno stays as it was.
 */
int	trust_lend(enum lend, const char *path);
/* The same for a file to read.  It is opened here if root refuses the path, or is not there. */
int	trust_open(const char *path) MUSTCHECK;
/* From now on lend() does that; NULL: nobody does. */
void	trust_set_lender(int (*lend)(enum lend, const char *path, void *arg), void *arg);
