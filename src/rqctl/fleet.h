/*
 * The daemons that live, by their heartbeats (section 2 of the contract).
 *
 * A heartbeat is JSON of which every member is optional; the accessors here
 * give NULL or a default for what is not there or of another type.
 */
#ifndef RQD_RQCTL_FLEET_H
#define RQD_RQCTL_FLEET_H

#include <jansson.h>
#include <stddef.h>

#include "rqctl/ctl.h"

#define FLEET_MAX	1000		/* daemons that are looked at: the latest */

struct daemon {
	json_t		*beat;		/* owned; an object */
	char		*instance;	/* owned */
	double		 seen;		/* Redis seconds of the heartbeat */
};

struct fleet {
	struct daemon	*daemons;
	size_t		 n;
};

/* Two round trips; 0, or -1 after an error was said. */
int	fleet_read(struct ctl *, struct fleet *) MUSTCHECK;
void	fleet_done(struct fleet *);

const char *fleet_text(const json_t *object, const char *member);	/* "" */
double	fleet_number(const json_t *object, const char *member, double otherwise);

/* What a daemon says of the queue with this key; NULL: it does not serve it. */
const json_t *fleet_queue(const struct daemon *, const char *key);

/* Sums over all daemons that serve the queue. */
struct service {
	int		 daemons;
	int		 running;
	int		 concurrency;
	double		 oldest;	/* seconds that a handler has run; -1: none known */
	const char	*state;		/* the worst: "" while all run; borrowed from the fleet */
	const char	*reason;
	double		 since;		/* wall seconds; 0: not said */
	bool		 leases_differ;
};
void	fleet_service(const struct fleet *, const char *key, struct service *);

#endif
