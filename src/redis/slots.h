/*
 * Redis Cluster: the slot of a key, and which master serves each slot.
 *
 * The table is filled from a reply to CLUSTER SLOTS, and corrected by MOVED errors.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/util.h"

#define SLOTS		16384
#define SLOTS_NODES_MAX	1000

struct redisReply;

/* Zero it to start: no slot has a node. */
struct slots {
	char		**nodes;	/* masters, "host:port" or "[v6]:port"; owned */
	size_t		  n;
	uint16_t	  owner[SLOTS];	/* 0: no master; else 1 + index in nodes */
};

/*
 * The slot of the whole key, or of the text between its first "{" and the next "}"
 * unless empty.
 */
unsigned	 slot_of(const char *key, size_t len);
unsigned	 slot_of_text(const char *, size_t len);	/* of all the text, without tags */
bool		 slot_has_tag(const char *key, size_t len);

/*
 * Replaces the table by a reply to CLUSTER SLOTS.  from: the "host:port" of the server
 * that answered, for hosts that the reply leaves empty.  Returns 0 and whether a slot has
 * another node than before, or -1 with *cause, and then leaves the table as it was.
 */
int		 slots_fill(struct slots *, const struct redisReply *, const char *from,
		    bool *changed, char **cause) MUSTCHECK;
/* "host:port" of the slot's master; NULL: nobody serves it.  Valid until the next change. */
const char	*slots_node(const struct slots *, unsigned slot);
/* Gives the slot to this node. */
void		 slots_set(struct slots *, unsigned slot, const char *node);
void		 slots_done(struct slots *);	/* empties it */

/*
 * Parses "MOVED 3999 127.0.0.1:6381", or the same with ASK.  Returns a new "host:port",
 * which the caller frees, and the slot; NULL: the text is no such error.
 */
char		*slots_redirection(const char *error, const char *from, unsigned *slot);
