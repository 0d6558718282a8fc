/*
 * A picture of all queues, and how it is printed.
 */
#ifndef RQD_RQCTL_STATUS_H
#define RQD_RQCTL_STATUS_H

#include "base/buf.h"
#include "base/clock.h"
#include "rqctl/ctl.h"
#include "rqctl/picture.h"

/* Per second; < 0: not known yet. */
struct rates {
	double	 acked, failed;
};

/* A headline and the table; rates are one for each queue, or NULL. */
void	status_print(const struct ctl *, const struct picture *, const struct rates *, struct buf *);

/* Shows it again and again on the terminal, until q. */
void	watch_run(struct ctl *, usec_t interval);

#endif
