/*
 * The identity that a handler runs as: user, group, supplementary groups, and what passwd(5)
 * says of the user.  Looked up once per queue, because a name service may be
 * slow; a configuration that is loaded again is looked up again.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "base/util.h"

struct identity {
	uid_t	 uid;		/* (uid_t)-1: unchanged; likewise for gid */
	gid_t	 gid;
	gid_t	*groups;	/* owned */
	size_t	 ngroups;	/* 0: unchanged */
	uid_t	 runs_as;	/* the user in effect, changed or not */
	char	*name;		/* owned, as are the next two; never NULL */
	char	*home;
};

/*
 * user and group are names or numbers; "" is unset.  Returns 0, or -1 with
 * errno and *step "user" or "group"; *ret is then untouched.  ENOENT: no such.
 */
int	identity_find(const char *user, const char *group, struct identity *ret,
	    const char **step) MUSTCHECK;
void	identity_done(struct identity *);	/* a zeroed one is fine */
