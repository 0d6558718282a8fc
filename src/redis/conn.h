/*
 * One connection to Redis, which is made again whenever it ends: resolve the name,
 * connect, greet (authenticate, select), work.  After a failure it
 * backs off for 0.1 s to 10 s, with jitter.
 *
 * The backoff starts over after a connection that was READY for a second, or for 10 s if
 * conn_reset() ended it.  After a shorter one that ended otherwise the next pause is at
 * most 0.8 s.  Servers are tried in order; one whose role is not master is skipped.
 * Names are resolved and the password file is read at every connect.
 *
 * Every command is answered exactly once, never from inside the call: CONN_REPLY with
 * the reply; CONN_LOST if it had been written before the connection ended (its effect
 * is unknown); CONN_NOT_SENT if it was not written.  The answers come in the order of
 * the calls, except those to a script that was sent again and to a command that went on
 * to another node (ASK).  If no byte of a command or of its reply moves for
 * options.timeout, the connection is closed, and all its commands are LOST.  A command
 * or reply that moves may take as long as it needs.  Commands are sent in READY only
 * (else they are NOT_SENT); up() is the first call in READY, and may send commands.
 *
 * Users of this file see nothing of hiredis; conn.c handles its traps.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "loop/loop.h"
#include "redis/addr.h"
#include "redis/redis_options.h"
#include "redis/script.h"
#include "redis/words.h"

struct conn;
struct pending;
struct redisReply;

enum conn_answer { CONN_REPLY, CONN_LOST, CONN_NOT_SENT };

/* reply is not NULL exactly for CONN_REPLY, and lives for the call only. */
typedef void conn_answer_fn(enum conn_answer, const struct redisReply *, void *);

/* The facts that the server stated at the greeting; valid while READY. */
struct conn_server {
	char		 address[ADDR_TEXT_MAX];	/* as configured */
	char		 run_id[48];	/* "": INFO is denied */
	char		 version[24];
	char		 maxmemory_policy[24];	/* "": CONFIG is denied */
	bool		 no_aof;	/* it has no append-only file */
	char		 replid[48];		/* "": INFO is denied */
	int64_t		 client_id;		/* 0: unknown */
	/* It may be another server than at the last READY, or have an older data set. */
	bool		 changed;
	bool		 first;		/* the first READY of this conn */
};

struct conn_events {
	void	(*up)(const struct conn_server *, void *);
	/* Once per change from READY, and per change of the cause while not READY. */
	void	(*down)(const char *cause, void *);
	/*
	 * For a node of a cluster; NULL: it is none.  MOVED, ASK, TRYAGAIN and CLUSTERDOWN
	 * mean that a caller's command did not run.  Then this gets the error, and the slot
	 * of the command's first key.  may_ask: the command has one key, and was not sent
	 * after ASKING.  Then this may return another connection, which must be READY: that
	 * one sends the command after ASKING, and answers it.  If it returns NULL, the
	 * command is answered CONN_NOT_SENT.
	 */
	struct conn *(*redirected)(const char *error, unsigned slot, bool may_ask, void *);
};

enum { CONN_SUBSCRIBER = 1 };	/* for SUBSCRIBE */

/*
 * Options are borrowed and must outlive the conn; name is for CLIENT SETNAME.  From now
 * on this process ignores SIGPIPE.
 */
struct conn	*conn_new(struct loop *, const struct redis_options *, const char *name,
		    unsigned flags, const struct conn_events *, void *arg);
/* 0: the default. */
struct conn_limits {
	/* A larger reply ends the connection.  Default: the most that Redis can hold. */
	size_t		 reply_max;
	usec_t		 backoff_max;	/* the longest pause between attempts, if less than 10 s */
	/*
	 * A longer silence ends the period of conn_timely_since().  The owner calls
	 * conn_probe() every 10 s; if that is too rare, an idle connection also sends PINGs
	 * by itself.  Default: any silence.
	 */
	usec_t		 silence_max;
};
void		 conn_set_limits(struct conn *, const struct conn_limits *);
void		 conn_start(struct conn *);	/* connects now, also during a backoff */

/*
 * No new commands; done() comes from the loop once all outstanding ones are
 * answered (at most `within` later; then they are LOST).  Free it after that,
 * or at any time: conn_free() answers what is outstanding as LOST first.
 */
void		 conn_close(struct conn *, usec_t within, void (*done)(void *), void *arg);
void		 conn_free(struct conn *);

/*
 * Copies the words; fn may be NULL.  Returns the record of the command, which lives
 * until fn is called.  All callers but heartbeats send by request.h.
 */
struct pending	*conn_command(struct conn *, conn_answer_fn *fn, void *arg,
		    const struct words *);
/* The answer is not wanted any more: fn is not called.  The command may still act. */
void		 conn_drop_answer(struct pending *);
/* Words without spaces, NULL-terminated. */
void		 conn_words(struct conn *, conn_answer_fn *fn, void *arg, ...)
		    __attribute__((__sentinel__));

/*
 * Calls a script: the words are KEYS, then ARGV.  It is sent as EVALSHA.  After
 * NOSCRIPT the call is sent again as EVAL, at once; then its answer comes after those to
 * later calls.
 *
 * caching, for watch.c: sends CLIENT CACHING YES right before the call, each time.  If
 * Redis refuses that, refused() gets the error reply from the loop, before fn is
 * called; NULL ends this.
 */
struct pending	*conn_script(struct conn *, bool caching, const struct script *,
		    conn_answer_fn *fn, void *arg, const struct words *);
void		 conn_set_caching(struct conn *,
		    void (*refused)(const struct redisReply *, void *), void *arg);

/*
 * CONN_SUBSCRIBER only.  fn gets each message: the channel, and the payload as
 * a reply (a string; for invalidations an array of keys or nil).  Subscribes
 * again by itself after a reconnect, before up() is called.
 */
typedef void conn_message_fn(const char *channel, size_t, const struct redisReply *, void *);
void		 conn_subscribe(struct conn *, bool pattern, const char *name,
		    conn_message_fn *, void *);

/*
 * Tests the connection by a PING with a word, or on a subscriber by another SUBSCRIBE
 * (hiredis 0.14 cannot PING there).  The connection is closed if there is no reply within
 * the timeout, or another word.
 */
void		 conn_probe(struct conn *);

/* Closes and connects anew (after READONLY, say): outstanding commands are LOST. */
void		 conn_reset(struct conn *, const char *cause);

bool		 conn_is_ready(const struct conn *);
const struct conn_server *conn_server(const struct conn *);	/* of the last READY */
int64_t		 conn_id(const struct conn *);		/* CLIENT ID; 0 while not READY */
uint64_t	 conn_generation(const struct conn *);	/* number of times it became READY */
/*
 * The time since when the server has answered in time; mono, 0: not READY.  With a
 * silence_max the period includes the end of a connection, if the same
 * server is READY again within that time and no attempt was refused.
 */
usec_t		 conn_timely_since(const struct conn *);
unsigned	 conn_outstanding(const struct conn *);
usec_t		 conn_waits(const struct conn *);	/* of the oldest; 0: there is none */

/*
 * Redis' own time now, in seconds since 1970; 0: unknown.  It is the last time given to
 * conn_saw_time(), plus the time since on the monotonic clock.  It is never later than
 * the truth by more than clock drift, because Redis reads the time before its reply
 * arrives.  Impossible times are ignored.
 */
double		 conn_redis_time(const struct conn *);
void		 conn_saw_time(struct conn *, double redis_seconds);
