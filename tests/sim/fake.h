/*
 * A handler without processes, for simulation: a test says how each message ends, and
 * after how long.  It works on any loop, simulated or real.  A program that has it has it
 * instead of src/handler/handler.c.
 *
 *	static struct fake_end
 *	fail_twice(struct message *msg, void *arg)
 *	{
 *		return (struct fake_end){ .after = 50 * MSEC,
 *		    .status = msg->attempts < 2 };
 *	}
 *
 *	struct fake fake = { .script = fail_twice, .env = { .loop = loop } };
 *	struct handler *handler = handler_open(&fake.env, ...);
 */
#pragma once

#include <stdbool.h>

#include "handler/handler.h"

/* The end of a run.  All zero: exits with 0 at once. */
struct fake_end {
	usec_t		 after;		/* until then it runs; USEC_MAX: until it is stopped */
	enum end	 end;
	int		 status;	/* END_EXIT */
	int		 signo;		/* END_SIGNAL */
	int		 error;		/* END_NOT_STARTED; after does not count */
	enum said	 said;		/* END_ANSWER, END_EXIT */
	usec_t		 delay;		/* SAID_RETRY, SAID_DEFER */
	usec_t		 ok_after;	/* in a batch: says "N ok" after this time, and runs on */
	const char	*answer;	/* the text with `said`; NULL: none */
	const char	*error_tail;	/* its stderr and output; NULL: nothing */
	bool		 leftovers;

	/* After SIGTERM it ends after term_after, with term_status if it traps the signal. */
	usec_t		 term_after;	/* beyond kill_grace: SIGKILL ends it */
	bool		 traps_term;
	int		 term_status;
};

/* Shared by all handlers of a simulated daemon; the test owns it. */
struct fake {
	struct fake_end	(*script)(struct message *, void *arg);	/* NULL: all succeed */
	void		 *arg;
	struct handler_env env;
	/* Counters: */
	unsigned	  started;
	unsigned	  running;
	unsigned	  peak;		/* most at once */
	unsigned	  largest;	/* batch */
};
