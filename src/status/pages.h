/*
 * The pages of the HTTP listener: /healthz, /readyz, /metrics, /status, and the page that
 * draws /status.
 */
#pragma once

#include "base/buf.h"
#include "loop/loop.h"
#include "redis/nodes.h"
#include "status/view.h"

struct pages;

/* look() fills the view for each request. */
struct pages	*pages_new(struct loop *, struct nodes *, const char *host,
		    void (*look)(struct view *, void *), void *arg);
/* See survey_set_beat(). */
void		 pages_set_beat(struct pages *, const char *instance,
		    void (*beat)(struct buf *, void *), void *arg);
void		 pages_listen(struct pages *, const char *where);	/* "": nowhere */
/* From now on answers 503; the view's objects may be freed. */
void		 pages_stop(struct pages *);
/* Call it any time, but not from its own callbacks. */
void		 pages_free(struct pages *);
