/*
 * Commands that wait for their answers, in the order of the calls.
 */
#ifndef RQD_REDIS_PENDING_H
#define RQD_REDIS_PENDING_H

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/list.h"
#include "redis/conn.h"

enum pending_fate {
	PENDING_SENT,			/* hiredis has it */
	PENDING_LOST,			/* was sent; the connection went */
	PENDING_NOT_SENT
};

struct pending {
	TAILQ_ENTRY(pending) entry;
	conn_answer_fn	 *fn;		/* NULL: nobody cares */
	void		 *arg;
	enum pending_fate fate;
	bool		  own;		/* conn's own, not a caller's */
	usec_t		  since;	/* mono; when it was sent */
	uint64_t	  end;		/* where it ends in the bytes of its connection's commands */
	struct pending_script *script;	/* owned; NULL for plain commands */
};

/* All of a script's call, kept so that NOSCRIPT can be met by EVAL. */
struct pending_script {
	const struct script *script;
	bool		  eval;		/* sent as text */
	bool		  caching;	/* CLIENT CACHING YES goes before it */
	int		  argc;
	const char	**argv;		/* EVALSHA sha nkeys ARG... */
	size_t		 *argvlen;
	char		  nkeys[12];
};

TAILQ_HEAD(pending_list, pending);

struct pending	*pending_new(conn_answer_fn *, void *, bool own);
void		 pending_free(struct pending *);

/* Makes it a call of a script; everything but the script is copied. */
void		 pending_set_script(struct pending *, const struct script *, int nkeys,
		    int argc, const char *const *argv, const size_t *argvlen);

/* Frees what pending_set_script() has copied. */
void		 pending_drop_script(struct pending *);

/* From now on it is to be sent as EVAL with the text. */
void		 pending_use_text(struct pending *);

/* The oldest one that hiredis has; NULL: none. */
struct pending	*pending_oldest(const struct pending_list *);

/* All that were sent are lost. */
void		 pending_lose(struct pending_list *);

#endif
