/*
 * Shared by the tests of the scripts: a private server, the scripts called by name with
 * typed results, and the book of all messages, which knows whether any is lost.
 */
#pragma once

#include <hiredis/hiredis.h>

#include "../redis/server.h"
#define UNIT_OWN_MAIN		/* it opens and closes the rig */
#include "../unit/unit.h"
#include "redis/words.h"
#include "queue/keys.h"

#define MAX	16777216LL		/* the largest message */

struct rig {
	struct server	 server;
	redisContext	*c;		/* scripts run here; perhaps with few rights */
	struct keys	 keys;
	bool		 unique;	/* pop, settle, tick are those of kind "unique" */
	/* not NULL: those of kind "stream", and renew; group "rqd" */
	const char	*consumer;
	/* The limits that pop and renew are given; 0: none. */
	int		 fleet;
	double		 gap, slack;
	const char	*turn;		/* what a pop takes first; NULL: "retry" */
	char		 limited[32];	/* as the last pop answered */
	double		 popped_now, popped_due;	/* the same */
	long long	 taken;		/* likewise */
	long long	 prev;		/* pop's; see lua/part/seen.lua */
	bool		 took;		/* as the last mine answered */
	const char	*over;		/* settle's; NULL: "" */
	const char	*const *more;	/* nmore KEYS that follow those with letters */
	size_t		 nmore;
	char		 error[512];	/* of the last call; "" if it was answered */
	char		 cause[256];	/* the same, as the log has it */
};

/* A delivery, as pop and mine return it.  Zeroed by rig_popped_done(). */
struct popped {
	char		*tag;
	size_t		 taglen;
	size_t		 idlen;
	char		*token;		/* without its mark */
	const char	*mark;		/* "drop" or "dead" where it was cancelled; NULL */
	long long	 attempts;
	long long	 crashes;
	char		*payload;	/* NULL: too large */
	size_t		 len;
};

void	 rig_open(struct rig *, const char *q);
void	 rig_close(struct rig *);
/* "": the default one; else without password */
void	 rig_connect(struct rig *, const char *user);

/* Any command, as redisCommand(3); never NULL; freed by the caller. */
redisReply *rig_command(struct rig *, const char *fmt, ...);
long long   rig_int(struct rig *, const char *fmt, ...);	/* -1 on errors */
void	    rig_do(struct rig *, const char *fmt, ...);		/* must not fail */
/* The name of a key: rig_key(r, KEY_BACKUP). */
#define rig_key(r, k)	((r)->keys.name[k])

/*
 * A script: keys is a letter for each of KEYS, as in the scripts (Q B C R D L
 * P S, X: QDEAD, T: QSCHEDULE, K: QRATE); args is done after it.  NULL, and r->error, on an error.
 */
redisReply *rig_script(struct rig *, const char *name, const char *keys, struct words *);
/* Adds all words up to a NULL; borrowed. */
void	 rig_words(struct words *, ...) __attribute__((__sentinel__));
/*
 * Microseconds that Redis took for the scripts since rig_time(), which says since when: by
 * INFO commandstats, or, where it had to wait for a processor, the time that it had one.
 */
long long   rig_time(struct rig *);
long long   rig_took(struct rig *, long long since);

/* How many came, or -1; status is a static text. */
int	 rig_pop(struct rig *, int n, long long maxbytes, long long max, const char *call,
	    double deadline, struct popped *, const char **status);
int	 rig_mine(struct rig *, const char *call, int page, long long max, struct popped *);
void	 rig_popped_done(struct popped *, int n);

/* settle's words in front of the results, and the script of the rig's kind. */
void	 rig_settle_begin(const struct rig *, struct words *);
redisReply *rig_settle_script(struct rig *, struct words *);
/* One result; the answer is valid until the next call; NULL on an error. */
const char *rig_settle(struct rig *, const char *op, const struct popped *, const char *arg);
int	 rig_renew(struct rig *, const struct popped *);	/* -99 on errors */
/* Of one tag; its state, valid until the next call; NULL on an error. */
const char *rig_cancel(struct rig *, const char *mode, const char *tag, size_t taglen);

struct ticked {
	long long more, requeued, promoted, dropped, waiting, rank, taken, others;
	char expires[32], due[32], delayed[32], cursor[24], warning[128];
	char scan[48];		/* in and out: kind "stream" */
};
/* requeue, and no sweep where cursor is NULL; 0, or -1 on an error. */
int	 rig_tick(struct rig *, double lease, double foreign, bool requeue, double sent,
	    int batch, long long maxbytes, long long rank, const char *cursor, struct ticked *);
double	 rig_now(struct rig *);

/* Lets a delivery's lease end, a retry fall due. */
void	 rig_expire(struct rig *, const char *tag, size_t taglen);
void	 rig_fall_due(struct rig *, const char *tag, size_t taglen);
void	 rig_idle(struct rig *, const char *id, size_t len);	/* kind "stream": a pending entry */

/*
 * How many messages with this payload are in a place where they will be
 * delivered from: Q, QDELAYED, QCONTEXT with QBACKUP or QRETRY.  dead: in QDEAD.
 * Of a stream's entries those that are new to the group, or pending and not in
 * QBACKUP or QRETRY; their payload is the value of their first field.
 */
redisReply *rig_places(struct rig *);		/* element[0]: all live ones, [1]: dead */
/* in one of these */
int	 rig_count(const redisReply *, const char *payload, size_t len);
int	 rig_live(struct rig *, const char *payload, size_t len);
int	 rig_dead(struct rig *, const char *payload, size_t len);

/* The digest of all that is stored; two equal ones: nothing has changed. */
void	 rig_digest(struct rig *, char digest[48]);

/* Calls fails() if QCONTEXT or QDELIVERY do not hold exactly the tags of QBACKUP and QRETRY. */
void	 rig_check_clean(struct rig *);
long long rig_left(struct rig *);		/* keys; QSTATS does not count */
/* Deletes from QDELIVERY what Redis has seen of the pops of daemons; how many fields. */
int	 rig_forget_pops(struct rig *);
