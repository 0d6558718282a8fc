/*
 * The table of the modes of handlers.  It is not in handler.c, because the modes call
 * that file.
 */
#include "handler/handler.h"

static const struct handler_ops *const handler_modes[] = {
	[MODE_EXEC] = &handler_exec,
	[MODE_PERSISTENT] = &handler_persistent,
};

struct handler *
handler_open(const struct handler_env *env, struct config *config,
    const struct queue_config *cfg, const struct handler_events *events, void *arg)
{
	const struct handler_ops *ops = env->ops != NULL ? env->ops : handler_modes[cfg->mode];
	struct handler *h = xcalloc(1, ops->size);

	*h = (struct handler){ .ops = ops, .events = events, .arg = arg, .env = env,
	    .config = config_ref(config), .cfg = cfg };
	ops->open(h);
	return h;
}
