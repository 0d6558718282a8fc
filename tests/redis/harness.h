/*
 * Shared by the tests of connections: a loop, options, a connection whose callbacks are
 * recorded, and calls that keep their answers.
 */
#pragma once

#include "../unit/unit.h"

#include "loop/loop.h"
#include "redis/conn.h"
#include "redis/reply.h"
#include "redis/request.h"
#include "server.h"

#define WAIT_MAX	(2 * MINUTE)	/* only a test that fails waits so long */

/* Turns the loop until the condition holds; the test fails if it never does. */
#define WAIT(h, cond) do {						\
	usec_t end_ = clock_mono() + WAIT_MAX;				\
	bool is_;							\
	while (!(is_ = (cond)) && clock_mono() < end_)			\
		loop_turn((h)->loop, 20 * MSEC);			\
	if (!is_)							\
		fail_msg("never: %s (cause: %s)", #cond, (h)->cause);	\
} while (0)

/* Waits until the cause of the last down() contains the text. */
#define WAIT_CAUSE(h, text)	WAIT(h, strstr((h)->cause, (text)) != NULL)

/*
 * Rows of a script_table. "add" adds its argument to the key; "echo" returns its
 * argument.
 */
#define SCRIPT_ADD	{ "add", "return redis.call('INCRBY', KEYS[1], ARGV[1])", 45, \
			  "8cd00688c05c46bde4a2e60658ef20a2e5c0b248" }
#define SCRIPT_ECHO	{ "echo", "return ARGV[1]", 14, \
			  "098e0f0d1448c0a81dafe820f66d460eb09263da" }

struct harness {
	struct loop	*loop;
	struct redis_options opt;
	char		*servers[5];
	char		 username[32], password_file[128];
	struct conn	*conn;

	unsigned	 ups, downs;
	bool		 changed, first;	/* of the last up() */
	char		 run_id[48], address[ADDR_TEXT_MAX];
	char		 version[24], policy[24];
	char		 cause[512];		/* of the last down() */
	void		(*on_up)(struct harness *);	/* called in up(); NULL: nothing */
	void		(*on_down)(struct harness *);
};

/* An answered call. */
struct call {
	struct harness	*h;
	unsigned	 answers;
	unsigned	 order;		/* its place among all answers, from 1 */
	enum conn_answer answer;
	enum reply_error error;
	char		 text[64];	/* a string, status or error */
	int64_t		 number;
	void		(*then)(struct call *);	/* NULL: nothing */
	struct request	 request;	/* used if the call is sent as a request */
};

/*
 * harness_init() makes the loop and the options. harness_open() makes the connection, and
 * does not start it.
 */
void	harness_init(struct harness *, const char *server, usec_t timeout);
void	harness_open(struct harness *, unsigned flags);
void	harness_done(struct harness *);
/*
 * harness_start() starts a server and opens a connection to it. harness_connect() starts
 * the connection, and waits until it is up.
 */
void	harness_start(struct harness *, struct server *, usec_t timeout, unsigned flags);
void	harness_connect(struct harness *);
void	harness_turn(struct harness *, usec_t);	/* turns the loop for so long */

/*
 * words_of() makes words of arrays; the other two send them by conn_command() and
 * conn_script().
 */
struct words words_of(int nkeys, int argc, const char *const *argv, const size_t *argvlen);
void	call_command(struct conn *, conn_answer_fn *, void *, int argc, const char *const *argv,
	    const size_t *argvlen);
void	call_script(struct conn *, const struct script *, conn_answer_fn *, void *, int nkeys,
	    int argc, const char *const *argv, const size_t *argvlen);

/* Records the answer in arg, which is a struct call. */
void	call_answered(enum conn_answer, const struct redisReply *, void *);
