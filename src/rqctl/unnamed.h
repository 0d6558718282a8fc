/*
 * Queues that nobody names: keys with messages that neither the configuration nor a living
 * daemon has, for example since a queue was renamed.  The index KEYS_QUEUES lists the
 * queues that daemons have served, so nobody scans the keys of Redis.
 *
 * A list whose key lacks the braces of a queue's key is one of them: `orders`, where the queue's
 * key is `{orders}`, as on a cluster.  A producer has left the braces out, or has not read the
 * keys of the shards.
 */
#pragma once

#include "base/buf.h"
#include "rqctl/picture.h"

struct unnamed {
	struct target	*targets;	/* n of each; their name is their key */
	struct depth	*depths;
	char		**meant;	/* the queue with this key in braces, for verbs; or NULL */
	size_t		 n;
};

/*
 * Finds them among the latest UNNAMED_MAX of the index.  Finds none if the verb has arguments,
 * if a heartbeat or a file of the configuration cannot be read, or if Redis refuses the index.
 * Returns 0, or -1 after an error was reported; unnamed_done() is due in both cases.
 */
#define UNNAMED_MAX	1000
int	unnamed_find(struct ctl *, const struct picture *, struct unnamed *) MUSTCHECK;
void	unnamed_done(struct unnamed *);

/* "3 waiting, 1 in flight, 2 dead letters"; the caller frees it. */
char	*unnamed_text(const struct depth *);

/* A line for each; and an array of objects. */
void	 unnamed_print(const struct unnamed *, struct buf *);
json_t	*unnamed_json(const struct unnamed *);

/* The most shards that a member of the index has for this key; 0: none has. */
int64_t	unnamed_shards(struct ctl *, const char *key);

/* Removes the key from the index.  Reports an error only if the connection is lost. */
void	unnamed_forget(struct ctl *, const char *key);
