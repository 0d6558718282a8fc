/*
 * Fields of QDELIVERY: "ATTEMPTS CRASHES TOKEN TIME IDLEN" for each tag, and, of each
 * daemon with messages in hand, "\1INSTANCE" (see doc/keys.md).
 */
#ifndef RQD_RQCTL_DELIVERY_H
#define RQD_RQCTL_DELIVERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct delivery {
	bool	 ours;		/* there is such a field; else the rest is 0 */
	long	 attempts;	/* failures so far */
	long	 crashes;
	bool	 owned;		/* a daemon has it in hand, or had when its lease ended */
	double	 time;		/* Redis seconds of the delivery, or of the push */
	size_t	 idlen;		/* how much of the tag is the id */
	char	 instance[128];	/* the daemon's, while owned; else "" */
};

/* NULL, or text of another form: not ours. */
void	delivery_parse(const char *, struct delivery *);

struct ctl;

/* How many fields of this QDELIVERY are those of daemons; 0 after an error. */
int64_t	delivery_daemons(struct ctl *, const char *key);

#endif
