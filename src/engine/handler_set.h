/*
 * The handlers of one queue: the one for new messages, and those of older configurations,
 * which finish what they have begun.
 */
#pragma once

#include <stdbool.h>

#include "handler/handler.h"

struct handler_set;

/* fewer() comes from the loop, when a handler has closed and was freed. */
struct handler_set	*handler_set_new(const struct handler_env *,
			    const struct handler_events *, void (*fewer)(void *), void *arg);
/* See handler_free(). */
void			 handler_set_free(struct handler_set *);

/* Opens a handler for new messages, and closes the one before. */
void			 handler_set_open(struct handler_set *, struct config *,
			    const struct queue_config *);
struct handler		*handler_set_current(const struct handler_set *);
/* Nothing more is started. */
void			 handler_set_close(struct handler_set *);
bool			 handler_set_is_empty(const struct handler_set *);
