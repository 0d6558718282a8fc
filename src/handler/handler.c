/*
 * Dispatch to the mode of a queue.
 */
#include "handler/handler.h"

#include "handler/exec.h"
#include "handler/persistent.h"

struct handler_env
handler_env_of(const struct config *config)
{
	return (struct handler_env){
		.config_file = config->file[0] != '\0' ? config->file : NULL,
		.server = config->file[0] == '\0' ? config->redis.servers[0] : NULL,
		.options = config->overrides[0] != '\0' ? config->overrides : NULL,
	};
}

struct handler *
handler_open(const struct handler_env *env, struct config *config,
    const struct queue_config *cfg, const struct handler_events *events, void *arg)
{
	const struct handler_ops *ops = cfg->mode == MODE_PERSISTENT ? &handler_persistent :
	    &handler_exec;

	if (env->ops != NULL)
		ops = env->ops;
	return ops->open(env, config, cfg, events, arg);
}

struct run *
handler_start(struct handler *h, struct message *msg)
{
	return h->ops->start(h, msg);
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

void
handler_close(struct handler *h, void (*done)(void *), void *arg)
{
	h->ops->close(h, done, arg);
}

void
handler_free(struct handler *h)
{
	if (h != NULL)
		h->ops->free(h);
}
