/*
 * Which queue is meant, and which queues a verb serves.
 */
#ifndef RQD_RQCTL_TARGET_H
#define RQD_RQCTL_TARGET_H

#include <stddef.h>

#include "base/util.h"
#include "queue/keys.h"

struct ctl;
struct queue_config;

/* A queue of the configuration, or, without a file, a bare key. */
struct target {
	const char			*name;	/* borrowed */
	const struct queue_config	*cfg;	/* NULL: the name is the key */
	enum kind			 kind;
	enum source			 source;
	struct keys			 keys;
};

/*
 * Finds a queue by its name.  serves is one of VERB_ANY, VERB_KEEPING, VERB_LISTS and
 * VERB_PUSHES.  Returns 0, or -1 after an error was reported: the file does not have the
 * queue, or the verb does not serve its kind.  Call target_done() in both cases.
 */
int	target_find(struct ctl *, const char *name, unsigned serves, struct target *) MUSTCHECK;
void	target_done(struct target *);

/* The queues that are the verb's arguments; without any, all of the configuration. */
struct target *targets_find(struct ctl *, size_t *n);
void	targets_free(struct target *, size_t);

#endif
