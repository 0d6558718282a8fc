/*
 * How much is in some queues (queue/depth.h), in one round trip for all of them.
 */
#ifndef RQD_RQCTL_ASK_DEPTH_H
#define RQD_RQCTL_ASK_DEPTH_H

#include "queue/depth.h"
#include "rqctl/ctl.h"

/* 0, or -1 after an error was said; ret holds n, each to be freed with depth_done(). */
int	depth_read(struct ctl *, const struct target *, size_t n, struct depth *ret) MUSTCHECK;

#endif
