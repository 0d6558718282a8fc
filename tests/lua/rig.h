/*
 * Shared by the tests of the scripts: a private server, the scripts called by name with
 * typed results, and a count of each message in all its places, which shows a loss.
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
	redisContext	*c;		/* runs the scripts; its user may have few rights */
	struct keys	 keys;
	bool		 unique;	/* use the scripts of kind "unique" */
	/*
	 * Not NULL: use the scripts of kind "stream", with this consumer of group "rqd".
	 */
	const char	*consumer;
	/* Not NULL: use the scripts of groups; the member, and the places of a group. */
	const char	*by;
	int		 places;
	/* The limits that pop and renew are given; 0: none. */
	int		 fleet;
	double		 gap, slack;
	int		 max_crashes;	/* that a pop is given */
	bool		 left;		/* the list's left end is the oldest */
	const char	*id;		/* the member that is the id; NULL: "id" */
	const char	*tell;		/* of settle and cancel; NULL: nobody */
	double		 dead_max_age;	/* that a tick is given */
	const char	*turn;		/* what a pop takes first; NULL: "retry" */
	char		 limited[32];	/* the last pop's limit */
	double		 popped_now, popped_due;	/* the last pop's times */
	long long	 taken;		/* the last pop's count */
	const char	*const *more;	/* nmore KEYS that follow those with letters */
	size_t		 nmore;
	const struct script *script;	/* of the last call */
	char		 error[512];	/* of the last call; "" if it was answered */
	char		 cause[256];	/* the same as the log shows it */
};

/* A delivery, as pop returns it.  Zeroed by rig_popped_done(). */
struct popped {
	char		*tag;
	size_t		 taglen;
	size_t		 idlen;
	char		*token;		/* without its mark */
	const char	*mark;		/* "drop" or "dead" where it was cancelled; NULL */
	long long	 attempts;
	long long	 crashes;
	char		*payload;	/* NULL: not sent */
	char		*saved;		/* NULL: none */
	size_t		 len;
};

void	 rig_open(struct rig *, const char *q);
void	 rig_close(struct rig *);
/* Connects as this user, whose password is "x"; "": as the default user. */
void	 rig_connect(struct rig *, const char *user);

/*
 * Runs a command, as redisCommand(3) does.  Never returns NULL; the caller frees the
 * reply.
 */
redisReply *rig_command(struct rig *, const char *fmt, ...);
long long   rig_int(struct rig *, const char *fmt, ...);	/* -1 on errors */
void	    rig_do(struct rig *, const char *fmt, ...);		/* an error fails the test */
/* The name of a key: rig_key(r, KEY_BACKUP). */
#define rig_key(r, k)	((r)->keys.name[k])

/*
 * Runs a script.  Each letter of keys stands for one of KEYS, as in the scripts (Q B C R D
 * L P S H G O, X: QDEAD, T: QSCHEDULE, K: QRATE).  Frees the words of args.  Returns NULL on an
 * error, which is in r->error.
 */
redisReply *rig_script(struct rig *, const char *name, const char *keys, struct words *);
/* Adds all words up to a NULL; does not copy them. */
void	 rig_words(struct words *, ...) __attribute__((__sentinel__));
/*
 * rig_took() returns the microseconds that Redis spent on scripts since rig_time(), which
 * returns the beginning.  They are those of INFO commandstats, or the processor time of
 * Redis if that is less.
 */
long long   rig_time(struct rig *);
long long   rig_took(struct rig *, long long since);

/* Return how many messages came, or -1; *status is a static text. */
int	 rig_pop(struct rig *, int n, long long maxbytes, long long max, const char *call,
	    double deadline, struct popped *, const char **status);
/* Returns how many are due now; -1 on errors. */
int	 rig_reclaim(struct rig *, const char *call, int page, bool crash);
void	 rig_popped_done(struct popped *, int n);

/*
 * Adds the words that come before the results of settle; calls settle of the rig's kind.
 */
void	 rig_settle_begin(const struct rig *, struct words *);
redisReply *rig_settle_script(struct rig *, struct words *);
/* Settles one delivery.  The answer is valid until the next call; NULL on an error. */
const char *rig_settle(struct rig *, const char *op, const struct popped *, const char *arg);
int	 rig_renew(struct rig *, const struct popped *);	/* -99 on errors */
/*
 * Cancels the message of a tag.  Returns its state, which is valid until the next call;
 * NULL on an error.
 */
const char *rig_cancel(struct rig *, const char *mode, const char *tag, size_t taglen);

struct ticked {
	long long more, requeued, promoted, dropped, waiting, rank, taken, others;
	char expires[32], due[32], delayed[32], cursor[24], warning[128];
	char scan[48];		/* in and out: kind "stream" */
};
/*
 * Requeues expired deliveries if `requeue`; sweeps unless cursor is NULL.  Returns 0, or
 * -1 on an error.
 */
int	 rig_tick(struct rig *, double lease, double foreign, bool requeue, double sent,
	    int batch, long long maxbytes, long long rank, const char *cursor, struct ticked *);
double	 rig_now(struct rig *);

/* End a delivery's lease; make a retry due. */
void	 rig_expire(struct rig *, const char *tag, size_t taglen);
void	 rig_fall_due(struct rig *, const char *tag, size_t taglen);
void	 rig_idle(struct rig *, const char *id, size_t len);	/* makes a pending entry idle */

/*
 * Where messages are.  Live: in a place from which rqd will deliver them, that is Q,
 * QDELAYED, or QCONTEXT with QBACKUP, QRETRY or QHELD. Dead: in QDEAD. Of a stream's entries
 * those are live that are new to the group, or pending and not in QBACKUP or QRETRY;
 * their payload is the value of their first field.
 */
redisReply *rig_places(struct rig *);		/* element[0]: all live ones, [1]: dead */
/* How many messages with this payload are in one of these lists; live; dead. */
int	 rig_count(const redisReply *, const char *payload, size_t len);
int	 rig_live(struct rig *, const char *payload, size_t len);
int	 rig_dead(struct rig *, const char *payload, size_t len);

/* The digest of all data; if it is the same again, nothing has changed. */
void	 rig_digest(struct rig *, char digest[48]);

/*
 * Fails the test if QCONTEXT or QDELIVERY do not hold exactly the tags of QBACKUP, QRETRY
 * and QHELD, each in one of them, or if QGROUP and QORDER do not fit.
 */
void	 rig_check_clean(struct rig *);
long long rig_left(struct rig *);		/* keys; QSTATS does not count */
