/*
 * Tests of scripts as text.  A file NAME.steps has sections:
 *
 *	== list ids stream: what is shown	the kinds that it is run for; "all": these three;
 *						"groups": by the member "g"
 *	add #1 plain				one step a line, or several, with "; " between
 *	pop 2 = 1 ~i.1.2			with the answer that it must have
 *
 * Words are separated by blanks.  Of each word, or of a word of an answer, this is replaced:
 * "" is empty; Q, QRETRY ... a key; $0 and %0 the tag and the token of the first delivery;
 * #7 {"id":7}; @9 nine x; now+5 and ms-5 a time of Redis in seconds, in milliseconds; ~n the
 * repetition; \xHH, \0, \n and \s (a blank) one byte.  In an answer * stands for any bytes of
 * a word, A..B for a number between these, and ... at the end for all further words.
 *
 *	add MESSAGE ...		produces messages, as the kind's producers do; ids are due
 *	pop N [BYTES [MAX [DEADLINE]]]	calls i.1, i.2 ...; answers TAG ... with /ATTEMPTS/
 *				CRASHES if there are some, !MARK, (LENGTH) if not sent, +TEXT if
 *				one was saved
 *	popped status|limited|taken|due|payload I|idlen I	what pop has found, of delivery I
 *	limits [NAME=VALUE ...]	of pops: turn (its words with ","), fleet, gap, slack, crashes,
 *				places; of the list: end ("left": producers push right), id; tell,
 *				of letters
 *	settle I OP [ARG]	of delivery I
 *	settles WORD ...	settle, with these words after those that all calls have
 *	to LIST ...		the lists that "settles" may push to
 *	renew I | cancel MODE TAG | expire TAG ... | due TAG ... | idle ENTRY ...
 *	reclaim [CRASH [PAGE [CALL]]]	what the last call, or this one, has taken
 *	tick [NAME=VALUE ...]	lease, foreign, judge, sent (seconds from now, or @TIME), batch,
 *				bytes, cursor, age; answers what is not 0, as "requeued:1"
 *	ticks [NAME=VALUE ...]	until there is no more; answers the sums, and steps:N
 *	ticked expires|due|delayed|cursor|scan|warning|waiting|taken	of the last tick
 *	call SCRIPT KEYS WORD ...	answers its reply; KEYS as rig_script()
 *	live PAYLOAD | dead PAYLOAD	how many there are; clean: rig_check_clean(); left: of keys
 *	deny COMMAND | allow	of the user of all further steps
 *	age			all leases end, all retries fall due, groups are looked at
 *	mark | unchanged	nothing may have changed since
 *	times N STEP | until STEP = ANSWER | sleep MILLISECONDS
 * Any other step is a command of Redis.  An error is an answer; without "=" it fails the test.
 */
#pragma once

#include "rig.h"

enum { OF_LIST = 1, OF_IDS = 2, OF_STREAM = 4, OF_GROUPS = 8, OF_ALL = 7 };

struct section {
	char		*file, *name;
	char		*flags;		/* the words before the colon */
	char		*text;		/* of its steps */
	char		*then;		/* of those behind a line "--"; NULL */
	unsigned	 kinds;
	int		 line;
};

extern struct rig rig;

/* Reads tests/lua/NAME.steps; until steps_close(), which takes NULL. */
struct section *steps_open(const char *name, size_t *n);
void	 steps_close(struct section *, size_t n);
/* An empty Redis, without deliveries, for one of the kinds. */
void	 steps_reset(unsigned kind);
/*
 * Runs steps.  Returns 0; or -1 after a step has another answer than it must have, or, unless
 * it may fail, an error: this is printed.  rig.error has the last error, "" if there was none.
 */
int	 steps_run(const struct section *, const char *text, bool may_fail);
int	 steps_had(void);		/* how many deliveries there are */
/* All leases end, and all retries fall due. */
void	 steps_age(void);
