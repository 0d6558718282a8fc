/*
 * Reloads: the configuration in force, and how a new one takes its place.  A configuration
 * with errors is logged, and the old one stays.
 */
#pragma once

#include <stdbool.h>

#include "config/load.h"
#include "engine/dispatcher.h"
#include "engine/schedule.h"
#include "handler/launcher.h"
#include "loop/loop.h"
#include "redis/nodes.h"
#include "service/consumers.h"
#include "status/pages.h"

struct reload;

/* The objects that a new configuration changes, and its source; all borrowed. */
struct reload_env {
	struct loop	*loop;
	const struct config_source	*source;
	bool	 debug;		/* the log's level, whatever the file says */
	struct launcher		*launcher;	/* reads the files; NULL: this process does */
	struct nodes		*nodes;
	struct pages		*pages;
	struct dispatcher	*dispatcher;
	struct consumers	*consumers;
	struct schedules	*schedules;
	/* One has ended; from the loop.  ok: another configuration is in force. */
	void	(*ended)(bool ok, void *);
	void	*arg;
};

/* Copies env.  Takes its own reference of the configuration that is in force. */
struct reload	*reload_new(const struct reload_env *, struct config *);
/* After launcher_stop(), before loop_free(); NULL is fine. */
void		 reload_free(struct reload *);

/* Begins a reload.  If one is under way, another follows it. */
void		 reload_begin(struct reload *);
/* The daemon stops: a reload under way has no effect, and no other begins. */
void		 reload_stop(struct reload *);

struct config	*reload_config(const struct reload *);	/* in force; borrowed until the next */
/* The first error of the last one, "FILE:LINE: ...", in a bounded length; "": it has none. */
const char	*reload_error(const struct reload *);
