/*
 * Commands that wait for their replies, in the order of the calls.
 */
#pragma once

#include <stdbool.h>

#include "base/clock.h"
#include "base/list.h"
#include "redis/conn.h"

enum pending_fate {
	PENDING_SENT,			/* hiredis has it */
	PENDING_LOST,			/* was sent; the connection has ended */
	PENDING_NOT_SENT
};

/* Whether it is SSUBSCRIBE or SUNSUBSCRIBE. */
enum pending_slot { PENDING_NO_SLOT, PENDING_JOIN, PENDING_LEAVE };

struct pending {
	TAILQ_ENTRY(pending) entry;
	conn_answer_fn	 *fn;		/* NULL: nobody waits for the answer */
	void		 *arg;
	enum pending_fate fate;
	bool		  own;		/* the connection's own, not a caller's */
	enum pending_slot of_slot;
	unsigned	  slot;		/* of_slot */
	usec_t		  since;	/* mono; when it was sent */
	uint64_t	  end;		/* its last byte, counted from the connection's first */
	/*
	 * The words of a script's call are kept, to send them again as EVAL after
	 * NOSCRIPT.  In a cluster those of any caller's command are kept, to send them
	 * to another node after ASK.
	 */
	const struct script *script;	/* NULL: another command */
	bool		  eval;		/* sent as text */
	bool		  caching;	/* CLIENT CACHING YES goes before it */
	bool		  asking;	/* ASKING goes before it */
	struct words	  words;	/* kept: EVALSHA sha nkeys ARG...; v is one block, owned */
	char		  nkeys[12];
};

TAILQ_HEAD(pending_list, pending);

struct pending	*pending_new(conn_answer_fn *, void *, bool own);
void		 pending_free(struct pending *);

/* Makes it a script's call; everything but the script is copied. */
void		 pending_set_script(struct pending *, const struct script *, const struct words *);

/* Keeps the words of another command. */
void		 pending_keep(struct pending *, const struct words *);

/* Makes it EVAL with the script's text. */
void		 pending_use_text(struct pending *);

/* The oldest command that was sent; NULL: none. */
struct pending	*pending_oldest(const struct pending_list *);

/* Marks all commands that were sent as lost. */
void		 pending_lose(struct pending_list *);
