/*
 * The state of the fleet and of queues at one moment: four round trips (index of
 * heartbeats, heartbeats, depths, memory), whatever the number of queues and messages.
 */
#pragma once

#include "base/clock.h"
#include "queue/depth.h"
#include "rqctl/ctl.h"
#include "status/judge.h"

struct snapshot {
	struct fleet	 fleet;
	struct target	*targets;	/* n of each */
	struct depth	*depths;
	struct service	*services;
	size_t		 n;
	wall_t		 taken;
	struct words	 notes;		/* what daemons say of their log and their reload */
	char		*full;		/* see advice_memory(); owned; NULL: Redis has room */
	char		*refuses;	/* Redis' error, if it refuses all writes; owned; or NULL */
};

/*
 * Takes the queues that are the verb's arguments, or all of the configuration; without a file,
 * those that daemons serve.  Returns 0, or -1 after an error was reported.
 */
int	snapshot_take(struct ctl *, struct snapshot *) MUSTCHECK;
void	snapshot_done(struct snapshot *);
/* Returns queue i of the snapshot, which owns it. */
struct facts snapshot_facts(const struct snapshot *, size_t i);

/* The same for the live daemons alone; free them with fleet_done(). */
int	snapshot_fleet(struct ctl *, struct fleet *) MUSTCHECK;

/*
 * Asks the daemons for new heartbeats, and waits for them, 1.5 s at most.  Does not wait for
 * daemons that do not receive hints.  Returns 0, or -1 after an error was reported.
 */
int	snapshot_refresh(struct ctl *) MUSTCHECK;

/* The daemon whose heartbeat lists the tag, and its entry there; both NULL: none. */
const struct daemon *snapshot_holder(const struct fleet *, const struct target *, const char *tag,
	    size_t len, const json_t **entry);

/* The same for the depths of n queues alone; free each with depth_done(). */
int	snapshot_depths(struct ctl *, const struct target *, size_t n, struct depth *ret) MUSTCHECK;
