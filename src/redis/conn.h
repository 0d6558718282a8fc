/*
 * One connection to Redis, which is made again whenever it ends: resolve the name,
 * connect, greet (authenticate, select, load scripts), work.  After a failure it
 * backs off for 0.1 s to 10 s, with jitter.
 *
 * The backoff starts over after a connection that worked and lasted a second: a
 * caller's command has succeeded on it and conn_reset() did not end it; or after one
 * that was READY for 10 s.  One that worked for less only limits the next pause to 0.8 s.
 * Servers are tried in order; one whose role is not master is skipped.  Names
 * are resolved and the password file is read at every connect.
 *
 * Every command is answered exactly once, never from inside the call:
 * CONN_REPLY with the reply; CONN_LOST if it had been written before the
 * connection ended (its effect is unknown); CONN_NOT_SENT if it was not written.
 * The answers come in the order of the calls, but for a script that had to be sent again and
 * for a command that went on to another node (ASK).  A connection is closed when nothing
 * moves of a command or of its reply for options.timeout; all its commands are
 * then LOST.  A command or reply that moves may take as long as it needs.
 * Commands are sent in READY only (else they are NOT_SENT); up() is the first call
 * in READY, and may send commands.
 *
 * This file's users see nothing of hiredis: conn.c deals with its traps.
 */
#ifndef RQD_REDIS_CONN_H
#define RQD_REDIS_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "loop/loop.h"
#include "redis/redis_options.h"
#include "redis/script.h"
#include "redis/words.h"

struct conn;
struct pending;
struct redisReply;

enum conn_state {
	CONN_DOWN,		/* waiting for the backoff, or not started */
	CONN_RESOLVING,
	CONN_CONNECTING,
	CONN_GREETING,		/* see greet.h */
	CONN_READY,
	CONN_CLOSING		/* conn_close(): answers outstanding commands, then stays down */
};

enum conn_answer { CONN_REPLY, CONN_LOST, CONN_NOT_SENT };

/* reply is not NULL exactly for CONN_REPLY, and lives for the call only. */
typedef void conn_answer_fn(enum conn_answer, const struct redisReply *, void *);

/* The facts that the server stated at the greeting; valid while READY. */
struct conn_server {
	char		 address[128];	/* as configured */
	char		 run_id[48];	/* "" where INFO is denied */
	char		 version[24];
	char		 maxmemory_policy[24];	/* "" where CONFIG is denied */
	/* Perhaps not the server of the last READY, or with an older data set. */
	bool		 changed;
	bool		 first;		/* the first READY of this conn */
};

struct conn_events {
	void	(*up)(const struct conn_server *, void *);
	/* Once per change into not-READY, or of the cause while not READY. */
	void	(*down)(const char *cause, void *);
};

enum { CONN_SUBSCRIBER = 1 };	/* for SUBSCRIBE: no scripts are loaded */

/*
 * Options are borrowed and must outlive the conn; name is for CLIENT SETNAME.
 * SIGPIPE is ignored from now on, in this process.  child_init() must come before
 * conn_start(), since a child process resolves the names of servers.
 */
struct conn	*conn_new(struct loop *, const struct redis_options *, const char *name,
		    unsigned flags, const struct conn_events *, void *arg);
/* A larger reply ends the connection.  Default: REPLY_BYTES_MAX, what Redis can hold. */
void		 conn_set_reply_max(struct conn *, size_t bytes);
/* The longest pause between attempts, if that is less than 10 s. */
void		 conn_set_backoff_max(struct conn *, usec_t);
/*
 * A longer silence ends the period of conn_timely_since().  The owner calls conn_probe()
 * every 10 s; where that is too rare, an idle connection sends PINGs by itself.
 */
void		 conn_set_silence_max(struct conn *, usec_t);
void		 conn_start(struct conn *);	/* connects now, also during a backoff */

/*
 * No new commands; done() comes from the loop once all outstanding ones are
 * answered (at most `within` later; then they are LOST).  Free it after that,
 * or at any time: conn_free() answers what is outstanding as LOST first.
 */
void		 conn_close(struct conn *, usec_t within, void (*done)(void *), void *arg);
void		 conn_free(struct conn *);

/*
 * The words are copied; fn may be NULL.  Returns the record of the command, which is there
 * until fn is called; see request.h, by which all callers but heartbeats send.
 */
struct pending	*conn_command(struct conn *, conn_answer_fn *fn, void *arg,
		    const struct words *);
/* Words without spaces, NULL-terminated. */
void		 conn_words(struct conn *, conn_answer_fn *fn, void *arg, ...)
		    __attribute__((__sentinel__));

/*
 * Calls a script: the words are KEYS, then ARGV.  Sent as EVALSHA; at NOSCRIPT that one
 * call is sent again as EVAL, at once, and the script loaded; its answer then comes after
 * those to later calls.
 *
 * caching, for watch.c: with CLIENT CACHING YES right before it, whenever it is sent.
 * refused() is called from the loop with an error reply to that, before fn; NULL
 * ends this.
 */
struct pending	*conn_script(struct conn *, bool caching, const struct script *,
		    conn_answer_fn *fn, void *arg, const struct words *);
void		 conn_set_caching(struct conn *,
		    void (*refused)(const struct redisReply *, void *), void *arg);

/*
 * For a node of a cluster.  MOVED, ASK, TRYAGAIN and CLUSTERDOWN say that a caller's command
 * did not run.  Where fn is set it gets the error, and the slot of the command's first key;
 * NULL ends this.  may_ask: the command has one key, and was not sent behind ASKING.  fn may
 * then return another connection, which is READY: the command is sent there behind ASKING,
 * and answered by it.  NULL: the command is answered CONN_NOT_SENT.
 */
typedef struct conn *conn_redirected_fn(const char *error, unsigned slot, bool may_ask, void *);
void		 conn_set_redirected(struct conn *, conn_redirected_fn *, void *arg);

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

enum conn_state	 conn_state(const struct conn *);
bool		 conn_is_ready(const struct conn *);
const struct conn_server *conn_server(const struct conn *);	/* of the last READY */
/* By their run ids, else by their addresses.  A CLIENT ID of one has no meaning on another. */
bool		 conn_is_one_server(const struct conn_server *, const struct conn_server *);
int64_t		 conn_id(const struct conn *);		/* CLIENT ID; 0 while not READY */
uint64_t	 conn_generation(const struct conn *);	/* number of times it became READY */
/*
 * Since when the server has answered in time; mono, 0: not READY.  After
 * conn_set_silence_max() the period includes the end of a connection, if the same
 * server is READY again within that time and no attempt was refused.
 */
usec_t		 conn_timely_since(const struct conn *);
unsigned	 conn_outstanding(const struct conn *);
usec_t		 conn_waits(const struct conn *);	/* the oldest of them; 0: there is none */

/*
 * Redis' own time now, as far as known: the last TIME seen by
 * conn_saw_time() plus the monotonic clock, in seconds since 1970; 0: unknown.
 * Never later than the truth by more than clock drift: a reply's time was read
 * before the reply arrived.  An impossible time is ignored.
 */
double		 conn_redis_time(const struct conn *);
void		 conn_saw_time(struct conn *, double redis_seconds);

#endif
