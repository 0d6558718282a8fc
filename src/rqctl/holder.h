/*
 * Who holds a lock, in words.
 */
#ifndef RQD_RQCTL_HOLDER_H
#define RQD_RQCTL_HOLDER_H

#include <stddef.h>

/* "HOST PID" of this process, for the value of a lock; the caller frees it. */
char	*holder_self(void);

/*
 * Of a lock's value: "web3, process 4711, since 2026-11-21T08:00:00.000Z", or,
 * of another program's, the value itself.  The caller frees it.
 */
char	*holder_text(const char *value, size_t len);

#endif
