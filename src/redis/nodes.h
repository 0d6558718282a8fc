/*
 * The servers of a daemon, and its connections to each: a node is one server.
 *
 * With one server, or the one that the Sentinels name, there is one node, which serves
 * every key.
 *
 * With a cluster there is a node for each master that some user needs, by the table of
 * slots.  The table is asked for at each connect, after MOVED, every 10 s, and each second
 * while a needed node is down or does not answer.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/list.h"
#include "loop/loop.h"
#include "redis/conn.h"
#include "redis/redis_options.h"
#include "redis/watch.h"

struct nodes;

/* The first three members are valid as long as the node. */
struct node {
	struct conn	*conn;
	struct watch	*watch;
	void		*data;		/* the owner's */
	unsigned	 users;		/* the owner counts them: it is not freed before 0 */
	/* private: */
	TAILQ_ENTRY(node) entry;
	struct nodes	*nodes;
	char		*address;	/* of a cluster's master; NULL: see the options */
	char		*servers[2];
	struct redis_options options;	/* of a cluster's master */
	char		*cause;		/* why it is down; NULL: it is up, or was not tried */
	bool		 retired;	/* it no longer owns a slot */
};

/* All from the loop.  up(), watch(), gone() and changed() may be NULL. */
struct nodes_events {
	/* As conn's.  The owner calls watch_conn_up() and watch_conn_down(). */
	void	(*up)(struct node *, const struct conn_server *, void *);
	void	(*down)(struct node *, const char *cause, void *);
	/* See watch_new(). */
	void	(*watch)(bool on, const char *why, void *);
	/* The node is about to be freed. */
	void	(*gone)(struct node *, void *);
	/* Of a cluster: the owner of some slot has changed, or was not known before. */
	void	(*changed)(unsigned masters, void *);
	/*
	 * A command of this slot did not run on this node, and will be answered
	 * CONN_NOT_SENT.  later: sending it again at once would not help.  There is no
	 * such call if ASK is followed: for a command with one key, to a node that is
	 * READY.
	 */
	void	(*redirected)(struct node *, const char *error, unsigned slot, bool later, void *);
	/* The reason why no table of slots comes.  NULL: there is one again. */
	void	(*no_table)(const char *cause, void *);
};

/* The options are borrowed; the name is for CLIENT SETNAME. */
struct nodes	*nodes_new(struct loop *, const struct redis_options *, const char *name,
		    const struct nodes_events *, void *arg);
void		 nodes_free(struct nodes *);	/* NULL is fine */
void		 nodes_start(struct nodes *);
/* See conn.h; for all nodes, also of later ones. */
void		 nodes_set_limits(struct nodes *, const struct conn_limits *);
void		 nodes_probe(struct nodes *);	/* every 10 s */
/* Calls conn_close() for all; done() comes from the loop. */
void		 nodes_close(struct nodes *, usec_t within, void (*done)(void *), void *arg);

bool		 nodes_is_cluster(const struct nodes *);
/* The slot of a key; 0 for every key with one server. */
unsigned	 nodes_slot(const struct nodes *, const char *key, size_t len);
/* The slot's node, which is made if needed; NULL: it is not known. */
struct node	*nodes_of(struct nodes *, unsigned slot);
/* A node that is never READY, for slots without a node.  NULL: there is one server. */
struct node	*nodes_nowhere(struct nodes *);
/* The connection of the key's node, perhaps not READY.  Use it at once: slots move. */
struct conn	*nodes_conn(struct nodes *, const char *key);
/* Of a cluster, the i-th master and its connection; NULL beyond the last one. */
const char	*nodes_master(const struct nodes *, size_t i);
struct conn	*nodes_master_conn(struct nodes *, size_t i);
/* Options to connect to any server, also a replica: for subscriptions to channels. */
const struct redis_options *nodes_any(const struct nodes *);

/* Whether every node that somebody needs is READY; and whether at least one node is. */
bool		 nodes_are_ready(const struct nodes *);
bool		 nodes_is_one_ready(const struct nodes *);
void		 nodes_causes(const struct nodes *, struct buf *);	/* why not all are READY */
unsigned	 nodes_outstanding(const struct nodes *);	/* commands */
uint64_t	 nodes_reconnects(const struct nodes *);
/* A READY server; else the last one; never NULL. */
const struct conn_server *nodes_server(const struct nodes *);
