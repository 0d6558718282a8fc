/*
 * The daemons that live, by their heartbeats (section 2 of the contract).  The
 * index rqd:daemons names the instances, each one's heartbeat is a key with a
 * TTL: a daemon lives while its key is there.  No SCAN, and no more than the
 * latest thousand.
 *
 * A heartbeat is JSON of which every member is optional; the accessors here
 * give NULL or a default for what is not there or of another type.
 */
#ifndef RQD_SERVICE_FLEET_H
#define RQD_SERVICE_FLEET_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct redisReply;

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

/*
 * Adds the instance that is number i in a ZREVRANGE WITHSCORES of the index, with
 * the reply to the GET of its heartbeat; nothing where that is gone or no JSON object.
 */
void	fleet_add(struct fleet *, const struct redisReply *index, size_t i,
	    const struct redisReply *beat);
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
