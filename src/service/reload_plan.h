/* From an old and a new configuration to what must be done: a pure function. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "policy/config.h"

enum reload_op {
	RELOAD_KEEP,		/* nothing about it changed */
	RELOAD_CHANGE,		/* same key and kind: new settings for what is popped next */
	RELOAD_ADD,
	RELOAD_REMOVE,		/* gone, or its key or kind changed (then an ADD follows) */
};

struct reload_step {
	enum reload_op			 op;
	const struct queue_config	*from;	/* in the old; NULL for ADD */
	const struct queue_config	*to;	/* in the new; NULL for REMOVE */
};

struct reload_plan {
	struct reload_step	*steps;		/* removals first; owned */
	size_t			 nsteps;
	/* Sections and options that changed and need a restart; NULL-terminated. */
	const char		*restart[8];
	bool			 log;		/* the log section changed */
	bool			 http;
};

void	reload_plan(struct reload_plan *, const struct config *from, const struct config *to);
void	reload_plan_done(struct reload_plan *);
