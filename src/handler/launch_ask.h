/* Questions to the launcher whose answer is a descriptor; the main process waits for it. */
#ifndef RQD_HANDLER_LAUNCH_ASK_H
#define RQD_HANDLER_LAUNCH_ASK_H

#include <stddef.h>

#include "base/util.h"

/*
 * Sends an order of n bytes (launch_wire.h) and waits a few seconds at most.  Returns the
 * descriptor, which the caller closes, or -1 with errno.
 */
int	launch_ask_fd(int socket, const void *order, size_t n) MUSTCHECK;

#endif
