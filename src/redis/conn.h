/*
 * One connection to Redis that is kept up: resolve, connect, authenticate,
 * select, greet, load scripts, work; when it is lost, back off and start over.
 *
 *	DOWN -> RESOLVING -> CONNECTING -> GREETING -> READY
 *	  ^---------- any failure: back off 0.1 s .. 10 s, jittered -----'
 *
 * The backoff starts over after a connection that worked: a caller's command
 * has succeeded on it and conn_reset() did not end it, or it was READY for 10 s.
 * Connections that work but end within a second are 0.8 s apart at most.
 * Servers are tried in order; one whose role is not master is skipped.  Names
 * are resolved and the password file is read at every connect.
 *
 * Every command is answered exactly once, never from inside the call:
 * CONN_REPLY with the reply; CONN_LOST if it had been written and the
 * connection went (its effect is unknown); CONN_NOT_SENT if it never left.
 * A command or reply of which nothing moves for options.timeout closes the
 * connection, which answers everything on it as LOST; one that moves may take
 * as long as it needs.  The order of answers is the order of
 * calls.  Commands are accepted in READY only (else NOT_SENT), and in the up()
 * callback, which comes first in READY.
 *
 * hiredis 0.14's traps (freeing inside its callbacks, blocking getaddrinfo,
 * commands from NULL replies) are dealt with here and nowhere else.
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

struct conn;
struct pending;
struct redisReply;

enum conn_state {
	CONN_DOWN,		/* waiting for the backoff, or not started */
	CONN_RESOLVING,
	CONN_CONNECTING,
	CONN_GREETING,		/* AUTH SELECT SETNAME ROLE/INFO SCRIPT LOAD */
	CONN_READY,
	CONN_CLOSING		/* conn_close(): answers outstanding commands, then stays down */
};

enum conn_answer { CONN_REPLY, CONN_LOST, CONN_NOT_SENT };

/* reply is not NULL exactly for CONN_REPLY, and lives for the call only. */
typedef void conn_answer_fn(enum conn_answer, const struct redisReply *, void *);

/* What the server said of itself at the greeting; valid while READY. */
struct conn_server {
	char		 address[128];	/* as configured */
	char		 run_id[48];	/* "" where INFO is denied */
	char		 version[24];
	char		 maxmemory_policy[24];	/* "" where CONFIG is denied */
	bool		 changed;	/* not surely the server of the last READY: its memory may be older */
	bool		 first;		/* the first READY of this conn */
};

struct conn_events {
	void	(*up)(const struct conn_server *, void *);
	/* Once per change into not-READY, or of the cause while not READY. */
	void	(*down)(const char *cause, void *);
	/* Unasked messages: only with CONN_SUBSCRIBER; see conn_subscribe(). */
};

enum { CONN_SUBSCRIBER = 1 };	/* for SUBSCRIBE: no scripts are loaded */

/*
 * Options are borrowed and must outlive the conn; name is for CLIENT SETNAME.
 * SIGPIPE is ignored from now on.  Names of servers need child_init().
 */
struct conn	*conn_new(struct loop *, const struct redis_options *, const char *name,
		    unsigned flags, const struct conn_events *, void *arg);
/* A larger reply ends the connection.  As long as this was not called: what Redis can hold. */
void		 conn_set_reply_max(struct conn *, size_t bytes);
/* The longest pause between attempts, if that is less than 10 s. */
void		 conn_set_backoff_max(struct conn *, usec_t);
/*
 * For conn_timely_since().  The owner calls conn_probe() every 10 s.  Where that is
 * too rare, PINGs go out while nothing else shows that the server is there.
 */
void		 conn_set_silence_max(struct conn *, usec_t);
void		 conn_start(struct conn *);	/* while it waits for its backoff: tries now */

/*
 * No new commands; done() comes from the loop once all outstanding ones are
 * answered (at most `within` later; then they are LOST).  Free it after that,
 * or at any time: conn_free() answers what is outstanding as LOST first.
 */
void		 conn_close(struct conn *, usec_t within, void (*done)(void *), void *arg);
void		 conn_free(struct conn *);

/*
 * argv and argvlen are copied; fn may be NULL.  Returns the record of the command, which
 * is there until fn is called; see request.h.
 */
struct pending	*conn_command(struct conn *, conn_answer_fn *fn, void *arg,
		    int argc, const char *const *argv, const size_t *argvlen);
/* Words without spaces, NULL-terminated. */
void		 conn_words(struct conn *, conn_answer_fn *fn, void *arg, ...)
		    __attribute__((__sentinel__));

/*
 * Calls a script: argv is KEYS then ARGV, argc in all.  Sent as EVALSHA; at
 * NOSCRIPT that one call is sent again as EVAL, at once, and the script loaded;
 * its answer then comes after those to what was called meanwhile.
 */
struct pending	*conn_script(struct conn *, const struct script *, conn_answer_fn *fn,
		    void *arg, int nkeys, int argc, const char *const *argv,
		    const size_t *argvlen);

/*
 * For watch.c: the same with CLIENT CACHING YES right before it, whenever it is sent.
 * refused() is called from the loop with an error reply to that, before fn; NULL
 * ends this.
 */
struct pending	*conn_script_caching(struct conn *, const struct script *,
		    conn_answer_fn *fn, void *arg, int nkeys, int argc,
		    const char *const *argv, const size_t *argvlen);
void		 conn_set_caching(struct conn *,
		    void (*refused)(const struct redisReply *, void *), void *arg);

/*
 * CONN_SUBSCRIBER only.  fn gets each message: the channel, and the payload as
 * a reply (a string; for invalidations an array of keys or nil).  Subscribes
 * again by itself after a reconnect, before up() is called.
 */
typedef void conn_message_fn(const char *channel, size_t, const struct redisReply *, void *);
void		 conn_subscribe(struct conn *, const char *channel, conn_message_fn *, void *);
void		 conn_psubscribe(struct conn *, const char *pattern, conn_message_fn *, void *);

/*
 * Proves the connection, whatever it is: PING with a word, or SUBSCRIBE again on
 * a subscriber (hiredis 0.14 cannot PING there).  No answer within the timeout, or
 * another word: closed.
 */
void		 conn_probe(struct conn *);

/* Closes and connects anew (after READONLY, say): outstanding commands are LOST. */
void		 conn_reset(struct conn *, const char *cause);

enum conn_state	 conn_state(const struct conn *);
bool		 conn_is_ready(const struct conn *);
const struct conn_server *conn_server(const struct conn *);	/* of the last READY */
/* As far as they tell; an id of one names nobody, or somebody else, on another. */
bool		 conn_is_one_server(const struct conn_server *, const struct conn_server *);
int64_t		 conn_id(const struct conn *);		/* CLIENT ID; 0 while not READY */
uint64_t	 conn_generation(const struct conn *);	/* number of times it became READY */
/*
 * Since when the server has answered in time; mono, 0: not READY.  Where
 * conn_set_silence_max() was called that goes on across the end of a connection,
 * if the same server is READY again within that time and no attempt was refused.
 */
usec_t		 conn_timely_since(const struct conn *);
unsigned	 conn_outstanding(const struct conn *);

/*
 * Redis' own time now, as far as known: the last TIME seen by
 * conn_saw_time() plus the monotonic clock, in seconds since 1970; 0: unknown.
 * Never later than the truth by more than clock drift: a reply's time was read
 * before the reply arrived.  A time that no clock shows is passed over.
 */
double		 conn_redis_time(const struct conn *);
void		 conn_saw_time(struct conn *, double redis_seconds);

#endif
