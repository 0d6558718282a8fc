/*
 * The soak: daemons work while faults happen, and a proof afterwards shows that nothing
 * was lost; see soak.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define DAEMONS		2
#define LIVES_MAX	1000	/* processes that a daemon was, in a run */
#define LEASE		3.0	/* seconds */
#define RENEWAL		1.0
#define LEASE_AND_SLACK	(1.25 * LEASE)	/* until an expired one is taken */
#define MAX_ATTEMPTS	8
#define SOAK_DEFERRED	3	/* status of a run that has deferred its message */

/*
 * With PIPE message n hands over up to two children to queue "b", each with a number of
 * its own, and, if it is a multiple of four, its number to list "end".  A run of queue "b"
 * gets a batch of children, and hands the number of each one to "end".
 */
#define CHILDREN	1000000L	/* numbers of children are larger */
#define CHILDREN_EACH	4		/* numbers that a message has for them */
#define CHILDREN_MOST	2
#define BATCH_MOST	5

/* Lua: the entries that the group has not been given; q is a stream or missing. */
#define UNREAD \
    "local function unread(most) " \
    "local last = '0-0' " \
    "if redis.call('EXISTS', 'q') == 0 then return {} end " \
    "for _, g in ipairs(redis.call('XINFO', 'GROUPS', 'q')) do " \
    "for i = 1, #g, 2 do if g[i] == 'last-delivered-id' then last = g[i+1] end end end " \
    "return redis.call('XRANGE', 'q', '(' .. last, '+', 'COUNT', most) end "

/* The causes that explain why a message ran again. */
enum cause {
	CAUSE_NONE, CAUSE_KILLED, CAUSE_ENDED, CAUSE_STOPPED, CAUSE_REFUSED,
	CAUSE_CUT_OFF, CAUSE_REDIS_STOPPED, CAUSE_REDIS_KILLED, CAUSE_PROMOTED, CAUSES
};

enum effect {
	EFFECT_NONE,
	EFFECT_HINDERS,		/* handlers cannot run, though the daemon can talk to Redis */
	EFFECT_FORGETS,		/* Redis loses what it has confirmed */
	EFFECT_CHOOSES,		/* which daemon it strikes */
};

struct fault_kind {
	const char	*name;
	unsigned	 weight;
	enum cause	 cause;
	double		 least, most;	/* how long it lasts, in seconds */
	bool		 asks_redis;	/* not while Redis is away */
	bool		 of_daemon;	/* strikes one daemon only */
	enum effect	 effect;
	bool		 (*begin)(unsigned slot, double seconds, char *detail, size_t);
	bool		 (*end)(unsigned slot, const char *detail);	/* false: again */
};

struct fault {
	const struct fault_kind	*kind;
	unsigned	 slot;		/* which daemon */
	pid_t		 pid;		/* its process then */
	double		 from, due, to;	/* to: 0 while it lasts */
	char		 detail[40];
};

struct run {
	long	n;			/* message */
	int	attempt;
	pid_t	pid, daemon;
	double	from, to;		/* to: 0 where it did not get so far */
	int	status;
	int	saved;			/* text it got: 10 PID + 1 or 2; 0: none; -1: cannot */
	bool	confirmed;		/* Redis said ok to its ack or dead letter */
};

/* The end of a delivery by a daemon's log. */
struct settled {
	unsigned slot;
	pid_t	 pid;			/* of the handler */
	int	 attempt;
	long	 n;			/* of the child, in queue "b"; else 0 */
	double	 at;			/* seen; it was written up to then */
};

/* Messages that a fault has pushed. */
struct special {
	long	first, last;		/* their numbers */
	double	at;
	bool	certain;		/* Redis has said that they are there */
	bool	burst;			/* the last one succeeds, those before it fail */
	size_t	bytes;			/* of a large one */
};

struct life {
	pid_t		 pid;
	unsigned	 slot;
};

/* A message in flight that was cancelled, to be a dead letter. */
struct cancelled {
	long	n;
	double	at;			/* from then on it may not be delivered */
	bool	certain;		/* Redis has said that it is marked */
};

/* A message that Redis forgot: by FLUSHALL, or because a promoted replica was behind. */
enum place { PLACE_WAITING, PLACE_IN_HAND, PLACE_DEAD };

struct forgotten {
	long		n;		/* message */
	enum place	place;		/* where it was */
	double		at;
};

extern bool soak_stream;	/* the queue is of kind "stream" */
extern bool soak_pipe;		/* it hands over to queue "b" and list "end" */
extern const struct fault_kind	 fault_kinds[];
extern unsigned		 fault_slot;	/* of the fault that begins; it may choose */
extern const char	*soak_dir, *soak_self;
extern uint64_t		 soak_seed;
extern long		 soak_messages;	/* of the producer: 1 to this */
extern bool		 redis_away;	/* stopped or killed */
extern bool		 redis_behind;	/* the replica is cut off, to be promoted */
extern volatile long	*soak_pushed;	/* by the producer, so far */

extern double		 soak_patience;	/* how much slower the machine may be */

bool	 soak_redis_is_whole(void);	/* no fault lasts that is Redis' own */

/* soak_world.c: processes */
void	 world_start(const char *rqd, const char *proxy, const char *shim);
void	 world_stop(void);
bool	 world_reap(void);		/* false: something ended by itself */
bool	 world_end_daemons(void);	/* with SIGTERM; true: all well, nothing left */
pid_t	 world_daemon(unsigned slot);	/* 0: none now */
const struct life *world_life(pid_t);
unsigned world_descriptors(unsigned slot);
bool	 world_is_busy(void);		/* handlers run */
void	 world_adopt(pid_t);		/* one of ours: its end is waited for elsewhere */
bool	 world_adopted_ended(int *status);

/* soak_log.c: the daemons' logs, read while they are written */
void	 log_poll(void);
bool	 log_is_suspended(void);	/* the queue, in one of the daemons */
bool	 log_was_cut(unsigned slot, double from, double to);	/* a connection ended; at the end */
const struct settled *log_settled(size_t *n);
void	 log_done(void);

/* soak_redis.c */
/* Of Redis, as the user admin; NULL: not there.  The reply is freed by the next call. */
struct redisReply *ask(const char *fmt, ...);
struct redisReply *ask_argv(int argc, const char *const argv[], const size_t len[]);
const struct forgotten *redis_forgotten(size_t *n);

/* soak_work.c */
int	 work_handle(const char *dir, uint64_t seed, bool hands_over);
int	 work_handle_batch(const char *dir, uint64_t seed);
/* Whether message n, or child n, hands over: its own number to "end", child i to "b". */
bool	 work_hands_number(long n);
bool	 work_hands_child(long n, int i);
long	 work_child(long n, int i);	/* the number of child i, from 1 on */
int	 work_produce(long messages, double seconds);	/* counts in *soak_pushed */
long	 work_number(const char *payload, size_t len);
/* Pushes messages beside the producer's; see soak_work.c.  False: it could not. */
bool	 work_push_burst(void);
bool	 work_push_large(size_t len);
bool	 work_push_late(double seconds);
pid_t	 work_late_daemon(long n);	/* that runs the late message; 0: none yet */
const struct special *work_special(size_t *n);
bool	 work_cancel(uint32_t any);	/* one of those in flight, if there is any */
const struct cancelled *work_cancelled(long n);	/* NULL: it was not */
long	 work_last(void);		/* number of the last message of all */
double	 now(void);
uint32_t draw(uint64_t *state, uint32_t n);
uint64_t mix(uint64_t);

/* soak_check.c */
bool	 check_caught_up(void);	/* whether no message is waiting that nobody has taken yet */
bool	 check_drained(void);
int	 check_all(long messages, const struct fault *, size_t faults);
double	 check_taken_up(double since);	/* the longest that a message waited for its next run */
void	 check_done(void);
