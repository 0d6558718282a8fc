/*
 * Fields of QDELIVERY: "ATTEMPTS CRASHES TOKEN TIME IDLEN" for each tag, and "\1INSTANCE" for
 * each daemon with messages in flight (see doc/keys.md).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DELIVERY_INSTANCE	128	/* bytes for the name of an instance */
#define DELIVERY_BY		65	/* bytes for who has cancelled it */

struct delivery_info {
	bool	 ours;		/* rqd has written the field; else the rest is 0 */
	long	 attempts;	/* failures so far */
	long	 crashes;
	bool	 owned;		/* in flight, or it was when its lease ended */
	double	 time;		/* Redis seconds of the delivery, or of the push */
	size_t	 idlen;		/* length of the id in the tag */
	bool	 cancelled;	/* by rqctl cancel: no handler gets it again ... */
	char	 by[DELIVERY_BY];	/* ... and who did it; "": not known */
	char	 instance[DELIVERY_INSTANCE];	/* the daemon's, while owned; else "" */
};

/* The daemon of a token; "": it is no token of rqd. */
void	delivery_instance(const char *token, char ret[DELIVERY_INSTANCE]);

/* Parses a field.  NULL, or text of another form: rqd has not written it. */
void	delivery_parse(const char *, struct delivery_info *);

struct ctl;
struct redisReply;
struct target;

/*
 * Returns the fields of the tags: every step-th element of the list is a tag.  NULL after an
 * error was reported.
 */
struct redisReply *delivery_fields(struct ctl *, const struct target *,
	    const struct redisReply *tags, size_t step);

/* How many fields of this QDELIVERY belong to daemons, not to tags; fewer after an error. */
int64_t	delivery_daemons(struct ctl *, const char *key);
