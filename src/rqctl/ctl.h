/*
 * Shared by the verbs: the command line, the configuration, one connection, and the
 * exit status.
 *
 * A verb is a void function.  ctl_error() reports a failure once and sets the exit
 * status.  Functions that have called it return -1 or NULL, and the verb returns.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <sysexits.h>

#include "base/util.h"
#include "policy/config.h"
#include "queue/keys.h"
#include "redis/sync.h"
#include "redis/words.h"
#include "rqctl/out.h"
#include "rqctl/verbs.h"

/* Besides those of <sysexits.h>: nothing matched. */
#define EX_NOTHING	1
#define EX_INTERRUPTED	130

/*
 * A queue of the configuration, or a key if no configuration names it.  Q is the queue's key.  A
 * queue with shards has more keys: EACH_KEY() visits each of them.
 */
struct target {
	const char			*name;	/* borrowed, or key */
	const struct queue_config	*cfg;	/* NULL: the name is the key */
	enum kind			 kind;
	enum source			 source;
	bool				 left;	/* of a list: its left end is the oldest */
	char				*id;	/* the member of a message that is its id; owned */
	char				*group_by;	/* "": not known, or none; owned */
	/* The list that hears of dead letters, and how: see part/letter.lua.  "": none; owned. */
	char				*dead_key, *dead_tell;
	bool				 known;	/* a configuration or a daemon has named it */
	struct keys			 keys;	/* of Q, or in EACH_KEY() of a shard; borrowed */
	struct keys			*all;	/* those of each key; Q is the last; owned */
	size_t				 nkeys;
	const char			*key;	/* Q: heartbeats know the queue by it */
};

/* The first so many keys are the shards that producers push to; 0: they push to Q. */
size_t	target_shards(const struct target *);
/* Sets t->keys to those of key i, 0 to nkeys - 1, or of Q; false: there is no such key. */
bool	target_select(struct target *, size_t i);
void	target_unselect(struct target *);
/* Visits each key as t->keys.  If you leave the loop early, call target_unselect(). */
#define EACH_KEY(i, t) \
	for (size_t i = 0; target_select((t), i); i++)
/* Sends COMMAND KEY for each shard; returns the sum of the replies, or -1 after an error. */
int64_t	target_count(struct ctl *, struct target *, const char *command, enum key);
/* shards: how many; with cfg it is ignored, because cfg has their keys.  cfg may be NULL. */
void	target_init(struct target *, const struct queue_config *cfg, const char *key,
	    int64_t shards);
/*
 * Without a configuration: takes the facts about the key from a heartbeat, or from the
 * index of queues.  told NULL: nobody has said any.
 */
void	target_told(struct target *, const char *key, const json_t *told);

struct ctl {
	struct args	 args;
	struct config	*config;	/* NULL for VERB_LOCAL */
	struct target	 target;	/* of the first argument, with VERB_TARGET */
	struct sync	*client;	/* NULL until ctl_connect() */
	int		 status;	/* exit status: that of the first error */
	char		 note[96];	/* printed after an error: what long work has done so far */
	bool		 hold;		/* errors are kept in held, not printed */
	char		*held;		/* the first; escaped; owned */
};

/*
 * ctl_error(c, status, fmt, ...) prints "rqctl: ..." in one line on stderr, sets the status,
 * returns -1.  ctl_note(fmt, ...) prints the same; the status stays.
 *
 * ctl_result(c, object, fmt, ...) prints what the verb has done: with --json the object, else
 * the line.  It frees the object.  All of them escape the text.
 */
#define ctl_error(c, status, ...)	ctl_put_error((c), (status), out_text(__VA_ARGS__))
#define ctl_note(...)			ctl_put_note(out_text(__VA_ARGS__))
#define ctl_result(c, o, ...)		ctl_put_result((c), (o), out_text(__VA_ARGS__))
int	ctl_put_error(struct ctl *, int status, char *line);	/* these free the line */
void	ctl_put_note(char *line);
void	ctl_put_result(const struct ctl *, json_t *, char *line);

/* Drops the held error, and prints later ones again. */
void	ctl_forget(struct ctl *);

/*
 * Reads the configuration: -c, --server, $RQD_CONFIG, $RQD_SERVER, the default file.
 * Then finds the verb's queue, c->target.
 */
int	ctl_configure(struct ctl *) MUSTCHECK;
/* Says what the verb would have to know of its queue, and nobody has told. */
void	ctl_note_unknown(const struct ctl *);
bool	ctl_has_file(const struct ctl *);	/* a file was read */
bool	ctl_is_cluster(const struct ctl *);
int	ctl_connect(struct ctl *) MUSTCHECK;
void	ctl_disconnect(struct ctl *);		/* the next command connects again */
int	ctl_unreachable(struct ctl *, const char *cause);	/* reports it; returns -1 */
void	ctl_done(struct ctl *);

bool		 ctl_given(const struct ctl *, enum opt);
const char	*ctl_value(const struct ctl *, enum opt);	/* "": not given */

/*
 * Values of options: 0, or -1 after an error was reported.  *ret stays if the option is
 * not given.
 */
int	ctl_count(struct ctl *, enum opt, long max, long *ret) MUSTCHECK;	/* 1 to max */
int	ctl_duration(struct ctl *, enum opt, usec_t *ret) MUSTCHECK;
int	ctl_wrong(struct ctl *, enum opt, char *cause);	/* takes the cause; -1 */

/*
 * For verbs that ask: true if the work may be done.  Asks on a terminal; -y answers.  The
 * format's text is an imperative: "drop 12 dead letters of orders".
 */
#define ctl_confirm(c, ...)		ctl_ask((c), out_text(__VA_ARGS__))
bool	ctl_ask(struct ctl *, char *what);	/* frees the text */

/* Adds each line of a text as a word.  Skips empty lines. */
void	ctl_add_lines(struct words *, const char *);
/* Replaces all but letters, digits and the others by "_". */
void	ctl_make_plain(char *, const char *others);

/*
 * From here on SIGINT, SIGTERM and SIGHUP, unless that is ignored, only set a
 * flag.  Long work checks it between two steps.
 */
void	ctl_catch_signals(void);
bool	ctl_interrupted(void);

/* Sleeps; false when interrupted. */
bool	ctl_sleep(usec_t);

/*
 * Finds a queue by its name.  serves is one of VERB_ANY, VERB_KEEPING, VERB_LISTS and
 * VERB_PUSHES.  Returns 0, or -1 after an error was reported: the file does not have the
 * queue, or the verb does not serve its kind.  Without a file, the name is the key, and the
 * index of queues that daemons write has its facts, unless serves is VERB_ANY.
 * Call target_done() in both cases.
 */
int	target_find(struct ctl *, const char *name, unsigned serves, struct target *) MUSTCHECK;
void	target_done(struct target *);
/* For scripts that make dead letters: adds the last of KEYS, if there is one; returns how many. */
int	target_add_dead_key(const struct target *, struct words *);
/* Whether the configuration only declares it: other daemons consume it. */
bool	target_is_elsewhere(const struct target *);

/* Has daemons log that the verb has removed n messages of c->target; what: "purge --dead". */
void	audit_removed(struct ctl *, const char *what, int64_t n);

/* The queues that are the verb's arguments; without any, all of the configuration. */
struct target *targets_find(struct ctl *, size_t *n);
void	targets_free(struct target *, size_t);
