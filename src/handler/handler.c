/*
 * The code that all modes of handlers share, and the dispatch to them.  handler_modes.c
 * opens a handler.
 */
#include "handler/handler.h"

#include <stdlib.h>

#include "base/utf8.h"

struct handler_env
handler_env_of(const struct config *config)
{
	return (struct handler_env){
		.config_file = config->file[0] != '\0' ? config->file : NULL,
		.server = config->file[0] == '\0' ? config->redis.servers[0] : NULL,
		.options = config->overrides[0] != '\0' ? config->overrides : NULL,
	};
}

struct run *
handler_start(struct handler *h, struct message *msg)
{
	return h->ops->start(h, msg);
}

struct run *
handler_start_batch(struct handler *h, struct message *const *msgs, unsigned n)
{
	return h->ops->start_batch(h, msgs, n);
}

void
handler_stop(struct run *r, enum stop reason)
{
	r->handler->ops->stop(r, reason);
}

void
handler_kill(struct run *r)
{
	r->handler->ops->kill(r);
}

/* Keeps the text; a question mark replaces each character that is not visible. */
void
run_set_progress(struct run *r, const char *p, size_t len)
{
	free(r->progress);
	r->progress = len > 0 ? xmalloc(PROGRESS_MAX + 1) : NULL;
	if (r->progress != NULL)
		utf8_copy_visible(r->progress, PROGRESS_MAX, p, len);
}

void
handler_close(struct handler *h, void (*done)(void *), void *arg)
{
	h->closed = done;
	h->closed_arg = arg;
	h->ops->close(h);
}

static void
tell_closed(void *arg)
{
	struct handler *h = arg;
	void (*closed)(void *) = h->closed;

	h->closed = NULL;
	closed(h->closed_arg);
}

void
handler_closed(struct handler *h)
{
	if (h->closed != NULL)
		loop_defer(h->env->loop, &h->closing, tell_closed, h);
}

void
handler_free(struct handler *h)
{
	if (h == NULL)
		return;
	h->ops->free(h);
	loop_defer_cancel(h->env->loop, &h->closing);
	config_unref(h->config);
	free(h);
}
