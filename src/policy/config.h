/*
 * The configuration, as plain structs that never change once made.
 *
 * Counted references: a message in flight keeps the configuration under which
 * it was popped, across any number of reloads.  Strings are owned by the config
 * and are never NULL ("" is unset) unless a field says so.
 *
 * The table in config/options.c has the names, ranges and defaults of the options; this
 * file describes the meaning of the values.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/log.h"
#include "policy/cron.h"
#include "policy/kind.h"
#include "redis/redis_options.h"

enum mode { MODE_EXEC, MODE_PERSISTENT };
enum framing { FRAMING_LENGTH, FRAMING_LINE, FRAMING_RAW };
enum pop { POP_RIGHT, POP_LEFT };	/* the end of the list that messages are taken from */
enum notifications { NOTIFICATIONS_CHECK, NOTIFICATIONS_SET };
enum leftovers { LEFTOVERS_KILL, LEFTOVERS_KEEP };

#define CONFIG_LIMIT_INHERIT	((uint64_t)-1)
#define CONFIG_NICE_INHERIT	INT32_MIN
#define CONFIG_PUSH_MAX		10000	/* the highest push_max */
#define CONFIG_MEMBERS_MAX	32	/* names of env_message */

struct queue_config {
	char		 *name;		/* the section's title */
	const char	 *file;		/* where it stands, for messages; "" for -q */
	int		  line;
	char		  hash[9];	/* of all that follows; hex */

	enum kind	  kind;
	char		 *key;		/* Q, from which other keys' names are made */
	/* As given, NULL-terminated: Q alone, or with TRAIT_SUBSCRIBES channels or patterns. */
	char		**keys;
	/* TRAIT_SHARDS: parts of the queue, each with a key of its own; 1: it has one key */
	int		  shards;
	int		  shards_drain;	/* a larger number that there was; 1: none */
	/*
	 * Its keys in Redis: those of the `shards` parts in order, those that are only
	 * drained, then Q.  NULL: Q is the only one; see config_key_at().
	 */
	char		**shard_keys;
	size_t		  nshard_keys;
	int		  backlog;	/* TRAIT_SUBSCRIBES: messages that wait for a handler */
	uint64_t	  backlog_bytes;
	/* TRAIT_KEY_EVENTS: */
	char		**match;	/* globs: the keys that count; NULL-terminated */
	int		  database;	/* of the keys; redis.database if unset */
	enum notifications notifications;
	usec_t		  skew;		/* how late a daemon may hear of another's push */
	enum pop	  pop;		/* TRAIT_LIST */
	char		 *id;		/* the member of a message that is its id; never "" */
	char		 *delayed_key;	/* TRAIT_TAKES_PUSHES: in place of QDELAYED; "": unset */
	char		 *consumer_group;	/* TRAIT_CONSUMER_GROUP */
	enum mode	  mode;
	char		**command;	/* NULL-terminated; [0] is absolute */

	/* Runs of the command at once, this daemon; 0: others consume it, see
	 * config_consumes(). */
	int		  concurrency;
	int		  fleet_concurrency; /* 0: no limit */
	char		 *rate;		/* "": no limit; "100/s" */
	/* The member of a message that names its group; "/": its id does; "": no groups */
	char		 *group_by;
	int		  group_concurrency;	/* messages of a group in flight, the whole fleet */
	int		  priority;	/* higher first when max_handlers is short */

	usec_t		  lease;
	usec_t		  foreign_timeout;	/* never 0 here: the lease if unset */
	usec_t		  time_limit;	/* 0: none */
	usec_t		  kill_grace;
	int		  max_attempts;	/* >= 1 */
	int		  max_crashes;	/* >= 0 */
	usec_t		  backoff;
	usec_t		  backoff_max;
	bool		  dead_status[256];
	int		  suspend_after;	/* 0: never for failures in a row */
	int64_t		  dead_max;	/* 0: keep all */
	usec_t		  dead_max_age;	/* 0: keep them */
	char		 *on_dead;	/* "": tells nobody of them; "push:NAME" */
	bool		  on_dead_message;	/* and tells the message */
	/* The list that on_dead names, and words for part/letter.lua; NULL without on_dead. */
	char		 *dead_key, *dead_tell;
	uint64_t	  message_max;

	char		 *user;		/* "": the daemon's */
	char		 *group;	/* "": the user's */
	char		 *directory;
	int		  umask;	/* -1: the daemon's */
	int		  nice;		/* or CONFIG_NICE_INHERIT: the daemon's */
	/* Resource limits, CONFIG_LIMIT_INHERIT: as the daemon's own. */
	uint64_t	  limit_nofile;
	uint64_t	  limit_as;	/* bytes */
	uint64_t	  limit_cpu;	/* seconds */
	uint64_t	  limit_fsize;	/* bytes */
	uint64_t	  limit_nproc;
	uint64_t	  limit_core;	/* bytes */
	/* Of all processes of a run together; 0: no limit. */
	uint64_t	  memory_max;	/* bytes */
	int		  pids_max;
	char		**env;		/* "NAME=value", NULL-terminated */
	char		 *env_file;
	/* "NAME=MEMBER", NULL-terminated: variables from the message; see config_members() */
	char		**env_message;
	/* "log"; "none": /dev/null, and no tail of stderr; "push:NAME" */
	char		 *output;
	uint64_t	  output_limit;	/* bytes per delivery */
	enum leftovers	  leftovers;
	bool		  verdicts;	/* exec: descriptor 3 takes statements */
	char		**pushes;	/* names of queues that handlers push to; NULL-terminated */
	int		  push_max;	/* messages that one delivery may push */

	/* mode = "exec" */
	int		  batch;	/* messages of one run, at most; 1: unframed; never 0 */
	usec_t		  batch_wait;	/* how long the first message waits for others */
	/* mode = "persistent", and a batch above 1 */
	enum framing	  framing;
	/* mode = "persistent" */
	int		  pipeline;	/* messages outstanding per process */
	int		  max_messages;	/* 0: no limit */
	usec_t		  max_age;	/* 0: no limit */
};

/* A message that is pushed at certain times, once in the whole fleet. */
struct schedule_config {
	char		 *name;		/* the section's title */
	const char	 *file;
	int		  line;
	char		 *queue;	/* the name of one of the queues */
	char		 *message;	/* "": made of the schedule's name and the time */
	usec_t		  every;	/* whole seconds, counted from 1970; 0: cron */
	char		 *cron;		/* "": every */
	char		 *timezone;	/* of cron */
	bool		  catch_up;	/* push a tick late that no daemon pushed in time */
	struct cron	  times;	/* of cron */
};

struct http_config {
	char		 *listen;	/* "": off */
	bool		  details;	/* over TCP, show what messages and handlers wrote */
};

struct log_config {
	char		 *target;	/* "stderr" "syslog" or an absolute path */
	enum log_level	  level;
	enum log_format	  format;
	bool		  payloads;
};

#define CONFIG_RUN_BYTES	((size_t)16 * 1024 * 1024)	/* of a batch, or one message */

struct config {
	unsigned		  refs;		/* config_ref(), config_unref() */
	unsigned		  generation;	/* the spawner's number for it; 0: there is none */
	unsigned		  held;		/* by spawner_hold() */
	bool			  privileged;	/* the spawner keeps privileges */
	char			 *file;		/* "": none (-q) */
	/* The -o options about Redis, for tools: "redis.database=3", one a line. */
	char			 *overrides;
	struct redis_options	  redis;
	struct log_config	  log;
	struct http_config	  http;
	char			 *name;		/* never empty: the host's name if unset */
	int			  max_handlers;
	usec_t			  drain_timeout;
	struct queue_config	**queues;	/* NULL-terminated, in order of the file */
	size_t			  nqueues;
	struct schedule_config	**schedules;	/* NULL-terminated, in order of the file */
	size_t			  nschedules;
	char			  hash[17];	/* see config_print_hash(); hex */
};

/*
 * The texts that config_unref() frees: of struct config, of each queue, of each
 * schedule.  Each option that is a text or a list of texts is among them;
 * tests/unit/test_config compares them with the table of options.
 */
struct config_text {
	const char	*name;		/* of the member; NULL ends the table */
	size_t		 offset;
	bool		 list;		/* char **, else char * */
};
extern const struct config_text config_texts[], queue_texts[], schedule_texts[];

struct config	*config_new(void);		/* all empty; refs is 1 */
struct config	*config_ref(struct config *);
void		 config_unref(struct config *);	/* NULL is fine; frees at 0 */
/*
 * Makes the reference, which may be NULL or to another configuration, one to this
 * configuration.
 */
void		 config_hold(struct config **, struct config *);
/* NULL: there is none of this name. */
const struct queue_config *config_queue(const struct config *, const char *name);

/* Whether it has several keys; then all of them, of any queue at least one. */
bool		 config_is_sharded(const struct queue_config *);
size_t		 config_key_count(const struct queue_config *);
const char	*config_key_at(const struct queue_config *, size_t i);
bool		 config_has_key(const struct queue_config *, const char *key);
/* Whether messages are taken from the left end of a list. */
bool		 config_pops_left(const struct queue_config *);
/* The command by which producers push a message: "LPUSH". */
const char	*config_push_command(const struct queue_config *);
/* False: the queue is only declared: other daemons consume it.  It may have no command. */
bool		 config_consumes(const struct queue_config *);
/* The queue that `output` or `on_dead` names, as "push:NAME"; NULL: none. */
const char	*config_pushed_queue(const char *);
/* Whether a handler's output goes to /dev/null. */
bool		 config_drops_output(const struct queue_config *);
/* How many messages of a queue may be in flight at once, this daemon. */
unsigned	 config_most(const struct queue_config *);
/* The same in runs: a batch is one. */
unsigned	 config_most_runs(const struct queue_config *);
/* How many variables env_message sets: none where a process may get several messages. */
unsigned	 config_members(const struct queue_config *);
/* Whether one run may get several messages. */
bool		 config_has_batches(const struct queue_config *);
/*
 * The bytes of messages, and of those that they hand over, from which on a queue pops
 * no more: CONFIG_RUN_BYTES for each run that there may be at once.
 */
uint64_t	 config_bytes_max(const struct config *, const struct queue_config *);

/* Names by enum mode; NULL-terminated. */
extern const char *const config_modes[];
