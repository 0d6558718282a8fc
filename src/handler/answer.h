/*
 * The answers of persistent handlers: one line each, without its newline.
 *
 *	N ok | N retry [SECONDS] [REASON] | N dead [REASON]
 */
#ifndef RQD_HANDLER_ANSWER_H
#define RQD_HANDLER_ANSWER_H

#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/util.h"
#include "policy/outcome.h"

#define ANSWER_DELAY_MAX	(365 * 24 * HOUR)	/* longer ones are cut to it */

struct answer {
	uint64_t	 number;
	enum end	 end;		/* END_ANSWER_* */
	usec_t		 delay;		/* END_ANSWER_RETRY: -1 where it gave none */
	const char	*reason;	/* in the line; NULL: none */
	size_t		 reason_len;
};

/* 0, or -1 where it is not an answer; *ret is then untouched. */
int	answer_parse(const char *, size_t, struct answer *ret) MUSTCHECK;

#endif
