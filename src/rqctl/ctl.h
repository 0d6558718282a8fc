/*
 * What the verbs share: the command line, the configuration, one connection,
 * and the exit status.
 *
 * A verb is a void function.  What goes wrong is said once, by ctl_error(), which
 * also sets the exit status; helpers that have said it return -1 or NULL and
 * the verb just returns.
 */
#ifndef RQD_RQCTL_CTL_H
#define RQD_RQCTL_CTL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sysexits.h>

#include "base/util.h"
#include "policy/config.h"
#include "queue/keys.h"
#include "redis/client.h"
#include "rqctl/args.h"

/* Besides those of <sysexits.h>: nothing matched, or a check found something. */
#define EX_NOTHING	1
#define EX_INTERRUPTED	130

struct ctl {
	struct args	 args;
	struct config	*config;	/* NULL for VERB_LOCAL */
	struct client	*client;	/* NULL until ctl_connect() */
	int		 status;	/* of exit; the first error's */
	char		 note[96];	/* how far long work has come: ends the error */
	bool		 hold;		/* errors are kept in held, not printed */
	char		*held;		/* the first; escaped; owned */
	bool	 left_out;	/* files with errors were: their queues are not known */
};

/* A queue that was named: of the configuration, or a bare key. */
struct target {
	const char			*name;	/* borrowed */
	const struct queue_config	*cfg;	/* NULL: taken as the key */
	enum kind			 kind;
	struct keys			 keys;
};

/* Says "rqctl: ..." in one line on stderr, sets the status, returns -1. */
int	ctl_error(struct ctl *, int status, const char *, ...) PRINTF(3, 4);

/* Says "rqctl: ..." in one line on stderr; no error. */
void	ctl_note(struct ctl *, const char *, ...) PRINTF(2, 3);

/* From here to ctl_forget() errors are kept in c->held; ctl_forget() drops them. */
void	ctl_hold(struct ctl *);
void	ctl_forget(struct ctl *);

/* Finds the configuration: -c, --server, $RQD_CONFIG, $RQD_SERVER, the default file. */
int	ctl_configure(struct ctl *) MUSTCHECK;
bool	ctl_has_file(const struct ctl *);	/* the queues' names are known */
int	ctl_connect(struct ctl *) MUSTCHECK;
void	ctl_disconnect(struct ctl *);		/* the next command connects again */
int	ctl_unreachable(struct ctl *, const char *cause);	/* says that Redis is; -1 */
void	ctl_done(struct ctl *);

/* The queue called name: 0, or -1 when a file does not have it. */
int	ctl_target(struct ctl *, const char *name, struct target *) MUSTCHECK;
void	ctl_target_done(struct target *);
/* The same, where messages stay until they are done; what: for the error, "dead". */
int	ctl_keeping_target(struct ctl *, const char *name, const char *what, struct target *)
	    MUSTCHECK;
/* The same, where its messages wait in Q; what: for the error, "push". */
int	ctl_list_target(struct ctl *, const char *name, const char *what, struct target *) MUSTCHECK;

/* The same, where something can be pushed to: a list or a channel. */
int	ctl_push_target(struct ctl *, const char *name, struct target *) MUSTCHECK;

/* Those of the arguments from `first` on; without any, all of the configuration. */
struct target *ctl_targets(struct ctl *, int first, size_t *n);
void	ctl_targets_free(struct target *, size_t);

bool		 ctl_given(const struct ctl *, enum opt);
const char	*ctl_value(const struct ctl *, enum opt);	/* NULL: not given */

/* Values of options; 0, or -1 after an error was said.  *ret stays where not given. */
int	ctl_count(struct ctl *, enum opt, long min, long max, long *ret) MUSTCHECK;
int	ctl_duration(struct ctl *, enum opt, usec_t *ret) MUSTCHECK;
/*
 * How much of a list is shown: --count, or all with --all; by default all as JSON, and as a
 * table what *ret says.
 */
bool	ctl_is_list(const struct ctl *);	/* it takes --count: --all is its opposite */
int	ctl_list_count(struct ctl *, long *ret) MUSTCHECK;
/* Says where a table does not have all: "50 of 300 letters; --all for all".  total -1: unknown. */
void	ctl_list_cut(struct ctl *, int64_t shown, int64_t total, const char *what);

/*
 * For destructive verbs: true where it may be done.  Asks on a terminal; -y
 * answers.  The question is what follows: "drop 12 dead letters of orders".
 */
bool	ctl_confirm(struct ctl *, const char *, ...) PRINTF(2, 3);

/* SIGINT and SIGTERM only set a flag from here on: long work stops between two steps. */
void	ctl_catch_signals(void);
bool	ctl_interrupted(void);

/* Sleeps; false when interrupted. */
bool	ctl_sleep(usec_t);

#endif
