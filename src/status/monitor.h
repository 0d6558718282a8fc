/*
 * What the HTTP listener shows of the daemon: /healthz, /readyz, /metrics,
 * /status, and the page that draws /status.
 */
#ifndef RQD_STATUS_MONITOR_H
#define RQD_STATUS_MONITOR_H

#include "loop/loop.h"
#include "redis/conn.h"
#include "status/view.h"

struct monitor;

/* look() fills the view each time somebody wants to see it. */
struct monitor	*monitor_new(struct loop *, struct conn *, const char *host,
		    void (*look)(struct view *, void *), void *arg);
void		 monitor_listen(struct monitor *, const char *where);	/* "": nowhere */
/* From now on answers 503; the view's objects may be freed. */
void		 monitor_stop(struct monitor *);
/* Any time but from its own callbacks. */
void		 monitor_free(struct monitor *);

#endif
