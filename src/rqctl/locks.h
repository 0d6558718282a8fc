/*
 * The holder of a lock, for people.
 */
#ifndef RQD_RQCTL_LOCKS_H
#define RQD_RQCTL_LOCKS_H

#include <stddef.h>

/* "HOST PID" of this process, for the value of a lock; the caller frees it. */
char	*locks_self(void);

/*
 * From a lock's value: "web3, process 4711, since 2026-11-21T08:00:00.000Z".  For the lock
 * of another program, the value itself.  The caller frees it.
 */
char	*locks_holder(const char *value, size_t len);

#endif
