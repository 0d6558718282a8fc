/*
 * The messages of a part of a queue: retries, delayed messages, or dead letters.  A walk lists,
 * writes or changes those that are selected, page by page.  The verbs that use it are in files
 * of their own.
 *
 * A change is a step, which changes some messages in one call.  Each step is atomic in Redis, and
 * puts a message to its new place before it deletes it from the old one.  So an interruption
 * neither loses nor doubles a message, and the same command changes the rest.
 *
 * Delayed messages are in two places.  Producers add members to QDELAYED; for kind "unique"
 * these are the ids in Q that are not due.  rqctl push --delay adds messages to QRETRY: there
 * the delayed ones are those that no handler has seen.
 */
#pragma once

#include "rqctl/letters.h"
#include "rqctl/listing.h"
#include "rqctl/waiting.h"
#include "status/fleet.h"

#define MESSAGES_BYTES	"1048576"	/* of messages per call */

enum part { PART_RETRY, PART_DELAYED, PART_DEAD };

struct walk {
	struct ctl	*ctl;
	struct select	 select;
	bool		*found;		/* for each id: a message or letter has it; owned */
	enum part	 part;
	struct listing	*list;		/* to list the messages; or NULL */
	struct fleet	 fleet;		/* of a list of retries: daemons know their errors */
	json_t		*summary;	/* instead, counts the letters; or NULL */
	bool		 write;		/* to write letters in full; */
	bool		 json;		/* as JSON */
	const struct action *action;	/* to change them; NULL: only counts them */
	char		*error;		/* of bury; owned */
	int64_t		 most;		/* matches at which it stops; 0: no limit */
	double		 rate;		/* changes per second; 0: no limit */
	bool		 silent;	/* shows no progress */
	usec_t		 began;
	/* The position of the walk, and its results: */
	struct waiting_place at;
	bool		 tags;		/* its members are tags, not messages */
	double		 since, now;	/* Redis seconds, of the first and of the last page */
	int64_t		 looked;	/* letters, of so many in total */
	int64_t		 total;
	int64_t		 matched;	/* messages that it has found */
	int64_t		 done;		/* messages that were changed */
	int64_t		 kept;		/* that a daemon has, or that were cancelled */
};

/*
 * What a verb lists or changes: verb.action.  step() changes up to n messages,
 * by their members or letters, from number i on.  It returns how many of these
 * it has looked at, or -1 after an error was reported; *gone: how many it has
 * removed or moved.  Lists need the part only.
 */
struct action {
	enum part	 part;
	int		(*step)(struct walk *, const struct words *, int i, int n, int64_t *gone);
	const char	*ask;		/* for the question: "retry" */
	const char	*what;		/* "dead letter" */
	const char	*word;		/* "retried" */
	const char	*thing;		/* for the result; NULL: what */
	const char	*member;	/* the number's name in JSON; NULL: word */
	bool		 removes;	/* daemons log it */
};

/* Runs the verbs that list a part. */
verb_fn	messages_list;
/* dead show and export; json: as one object per line; silent: no progress. */
void	messages_write(struct ctl *, bool json, bool silent);
/*
 * Runs the verbs that change messages.  Before the question rqctl counts them,
 * and afterwards it changes at most as many.
 */
verb_fn	messages_change;

/*
 * Drops at most so many messages that wait in QRETRY or QHELD of the selected key,
 * and adds to *gone how many are gone.  Returns 0, or -1 after an error was reported.
 */
int	messages_drop(struct ctl *, enum key, int64_t most, int64_t *gone);

/* Adds n of the members, from number i on, to a command. */
void	messages_add(struct words *, const struct words *members, int i, int n);
/* Steps of several verbs: makes members of QRETRY or QDELAYED due. */
int	messages_make_due(struct walk *, const struct words *members, int i, int n,
	    int64_t *gone);
/*
 * Deletes messages that wait in QRETRY or QHELD; or buries them, one after the
 * other.  Counts those that stay in w->kept.
 */
int	messages_end_retries(struct walk *, const struct words *members, int i, int n, bool bury,
	    int64_t *gone);

/*
 * Lists a message that waits; now: its due time is shown, as of then; -1: it has none.  error:
 * why it failed last; "": not known; NULL: the list does not say so.  place: the list shows its
 * place.
 */
void	messages_list_waiting(struct listing *, const struct waiting *, double now, bool retries,
	    const char *error, bool place);
