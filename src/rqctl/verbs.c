/*
 * The tables.  A new verb is one row of verb_table, its function, and its part
 * of rqctl(1); a new option one row of opt_table.
 */
#include "rqctl/verbs.h"

#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "rqctl/args.h"
#include "rqctl/groups.h"

#define OPTS_EVERY	(OPT(CONFIG) | OPT(SERVER) | OPT(SET) | OPT(HELP) | OPT(VERSION))
#define OPTS_LETTERS	(OPT(REASON) | OPT(SINCE) | OPT(UNTIL) | OPT(MATCH))

const struct opt_def opt_table[OPT_MAX] = {
	[OPT_CONFIG] = { "config", 'c', "FILE", "read queues and server from FILE" },
	[OPT_SERVER] = { "server", 0, "ADDRESS",
	    "host:port, [v6]:port or unix:/path; without -c no file is read" },
	[OPT_SET] = { "option", 'o', "NAME=VALUE", "set an option over the file, as rqd -o does" },
	[OPT_HELP] = { "help", 'h', NULL, "say what the verb does and takes" },
	[OPT_VERSION] = { "version", 'V', NULL, "say the version" },
	[OPT_JSON] = { "json", 0, NULL, "print JSON, for programs" },
	[OPT_DRY_RUN] = { "dry-run", 'n', NULL, "say what would be done, and do nothing" },
	[OPT_YES] = { "yes", 'y', NULL, "do not ask" },
	[OPT_LINES] = { "lines", 'l', NULL, "each line of standard input is a message" },
	[OPT_DELAY] = { "delay", 0, "DURATION", "deliver after DURATION: 30s, 5m, 2h" },
	[OPT_AT] = { "at", 0, "TIME", "deliver at TIME: 2026-11-21T08:00:00Z or @1795248000" },
	[OPT_WATCH] = { "watch", 'w', NULL, "show it again and again; q ends it" },
	[OPT_INTERVAL] = { "interval", 0, "DURATION", "with -w: how often (2s)" },
	[OPT_COUNT] = { "count", 0, "N", "show N at most" },
	[OPT_RAW] = { "raw", 0, NULL, "write the message itself, byte for byte" },
	[OPT_NAMES] = { "names", 0, NULL, "only the names, one a line" },
	[OPT_REASON] = { "reason", 0, "REASON", "only letters with this reason" },
	[OPT_SINCE] = { "since", 0, "TIME", "only letters since TIME: 2h (ago), RFC 3339, @epoch" },
	[OPT_UNTIL] = { "until", 0, "TIME", "only letters until TIME" },
	[OPT_MATCH] = { "match", 0, "TEXT", "only those whose message or error contains TEXT" },
	[OPT_ALL] = { "all", 0, NULL, "all of them" },
	[OPT_RATE] = { "rate", 0, "N/UNIT", "no faster than this: 100/s, 30/m, 500/h" },
	[OPT_FOR] = { "for", 0, "DURATION", "the pause ends by itself after DURATION" },
	[OPT_WHY] = { "reason", 0, "TEXT", "why: shown by status and logged by the daemons" },
	[OPT_WAIT] = { "wait", 0, "[DURATION]",
	    "return when nothing of the queue is running; give up after DURATION (10m)" },
	[OPT_TIMEOUT] = { "timeout", 0, "DURATION", "the same as --wait DURATION, which it needs" },
	[OPT_ATTEMPT] = { "attempt", 0, "N", "as the Nth attempt (1)" },
	[OPT_ID] = { "id", 0, "ID", "under this id, whatever the message says" },
	[OPT_WAITING] = { "waiting", 0, NULL, "messages that wait for their first delivery" },
	[OPT_RETRY] = { "retry", 0, NULL, "messages that wait for a retry" },
	[OPT_DELAYED] = { "delayed", 0, NULL, "messages that a producer delayed" },
	[OPT_DEAD] = { "dead", 0, NULL, "dead letters" },
	[OPT_LOCK_WAIT] = { "wait", 0, "DURATION",
	    "give up after DURATION; 0: at once (without end)" },
	[OPT_TTL] = { "ttl", 0, "DURATION", "how long the lock outlives its holder (30s)" },
	[OPT_FORCE] = { "force", 0, NULL, "do it, whoever has it and whatever is in it" },
	[OPT_END] = { "end", 0, NULL, "end it" },
	[OPT_COMPLETION] = { "completion", 0, "SHELL", "write the completion for bash or zsh" },
};

const struct verb verb_table[] = {
	{ "status", "[QUEUE...]", "queues, their daemons, and what blocks them",
	    "With -w it redraws like top(1) and shows rates.", OPT(WATCH) | OPT(INTERVAL),
	    0, -1, VERB_JSON | VERB_QUEUES, status_run },
	{ "queues", "[QUEUE...]", "the queues of the configuration", NULL, OPT(NAMES),
	    0, -1, VERB_JSON | VERB_QUEUES, queues_run },
	{ "daemons", "", "the daemons that live, and what they serve",
	    "Says also where daemons disagree about a queue.", 0,
	    0, 0, VERB_JSON, daemons_run },
	{ "running", "[QUEUE...]", "messages in the hands of handlers", NULL, OPT(COUNT) | OPT(ALL),
	    0, -1, VERB_JSON | VERB_QUEUES, running_run },
	{ "show", "QUEUE ID", "where a message is, and what happened to it",
	    "ID is the message's id, or its tag. Of the messages that wait for their first\n"
	    "delivery the next thousand are looked at.", OPT(RAW),
	    2, 2, VERB_JSON | VERB_QUEUES, show_run },
	{ "peek", "QUEUE", "the messages that come next, without taking them",
	    "With --raw: the next message alone, byte for byte.", OPT(COUNT) | OPT(ALL) | OPT(RAW),
	    1, 1, VERB_JSON | VERB_QUEUES, peek_run },
	{ "push", "QUEUE [MESSAGE]", "put a message into a queue",
	    "Without MESSAGE, or where it is \"-\", standard input is the message, byte for\n"
	    "byte. Prints the id of each; \"-\" where rqd will make one at delivery.",
	    OPT(LINES) | OPT(DELAY) | OPT(AT), 1, 2, VERB_JSON | VERB_QUEUES, push_run },
	{ "try", "QUEUE [FILE]", "run a queue's handler once, by hand, without Redis",
	    "The message is FILE, or standard input. Says on standard error what the daemon\n"
	    "would have done, and exits as the handler did.", OPT(ATTEMPT) | OPT(ID),
	    1, 2, VERB_QUEUES, try_run },
	{ "dead list", "QUEUE", "dead letters, the newest first", NULL,
	    OPTS_LETTERS | OPT(COUNT) | OPT(ALL), 1, 1, VERB_JSON | VERB_QUEUES, dead_list },
	{ "dead show", "QUEUE ID...", "dead letters, whole",
	    "ID is a message's id or a letter's number. With --raw: the messages alone.",
	    OPT(RAW), 2, -1, VERB_JSON | VERB_QUEUES, dead_show },
	{ "dead retry", "QUEUE [ID...]", "give dead letters another life",
	    "They are due at once and begin with attempt 1. Say which: by ID, by filters,\n"
	    "or --all, which asks first. Interrupted, it leaves the rest as they were.",
	    OPTS_LETTERS | OPT(ALL) | OPT(RATE) | OPT(DRY_RUN) | OPT(YES), 1, -1,
	    VERB_JSON | VERB_QUEUES, dead_retry },
	{ "dead drop", "QUEUE [ID...]", "delete dead letters",
	    "Say which: by ID, by filters, or --all.",
	    OPTS_LETTERS | OPT(ALL) | OPT(RATE), 1, -1,
	    VERB_JSON | VERB_DESTRUCTIVE | VERB_QUEUES, dead_drop },
	{ "dead export", "QUEUE [ID...]", "write dead letters as JSON, one a line",
	    "All of them, if neither ID nor filter says which. Bytes that are not UTF-8\n"
	    "stand in base64 as message_base64.", OPTS_LETTERS | OPT(ALL) | OPT(RATE), 1, -1,
	    VERB_QUEUES, dead_export },
	{ "dead import", "QUEUE", "make dead letters of what dead export has written",
	    "Reads standard input, an object a line. A letter whose number is there is passed\n"
	    "over, so what was interrupted can be repeated.", 0, 1, 1,
	    VERB_JSON | VERB_QUEUES, dead_import },
	{ "dead move", "QUEUE [ID...] TO", "give dead letters to another queue",
	    "They are due there at once and begin with attempt 1. Say which: by ID, by filters,\n"
	    "or --all, which asks first.",
	    OPTS_LETTERS | OPT(ALL) | OPT(RATE) | OPT(DRY_RUN) | OPT(YES), 2, -1,
	    VERB_JSON | VERB_QUEUES, dead_move },
	{ "retry list", "QUEUE", "messages that wait for a retry, the next first", NULL,
	    OPT(COUNT) | OPT(ALL) | OPT(MATCH), 1, 1, VERB_JSON | VERB_QUEUES, retry_list },
	{ "retry now", "QUEUE [ID...]", "do not wait: make retries due",
	    "Say which: by ID, --match, or --all.", OPT(ALL) | OPT(MATCH) | OPT(DRY_RUN), 1, -1,
	    VERB_JSON | VERB_QUEUES, retry_now },
	{ "delayed list", "QUEUE", "messages that a producer delayed",
	    "Those of push --delay and --at, and those in the producers' own sorted set.",
	    OPT(COUNT) | OPT(ALL) | OPT(MATCH), 1, 1, VERB_JSON | VERB_QUEUES, delayed_list },
	{ "delayed cancel", "QUEUE [ID...]", "delete delayed messages",
	    "Say which: by ID, --match, or --all.", OPT(ALL) | OPT(MATCH), 1, -1,
	    VERB_JSON | VERB_DESTRUCTIVE | VERB_QUEUES, delayed_cancel },
	{ "delayed now", "QUEUE [ID...]", "make delayed messages due",
	    "Say which: by ID, --match, or --all.", OPT(ALL) | OPT(MATCH) | OPT(DRY_RUN), 1, -1,
	    VERB_JSON | VERB_QUEUES, delayed_now },
	{ "bury", "QUEUE [ID...]", "make dead letters of messages that wait for a retry",
	    "Say which: by ID, --match, or --all. With --all it asks first.",
	    OPT(ALL) | OPT(MATCH) | OPT(WHY) | OPT(DRY_RUN) | OPT(YES), 1, -1,
	    VERB_JSON | VERB_QUEUES, bury_run },
	{ "purge", "QUEUE", "empty parts of a queue",
	    "What is in the hands of a handler stays.",
	    OPT(WAITING) | OPT(RETRY) | OPT(DELAYED) | OPT(DEAD), 1, 1,
	    VERB_JSON | VERB_DESTRUCTIVE | VERB_QUEUES, purge_run },
	{ "pause", "QUEUE...", "stop the delivery of queues, for all daemons",
	    "What runs goes on. Producers are not affected.",
	    OPT(FOR) | OPT(WHY) | OPT(WAIT) | OPT(TIMEOUT), 1, -1,
	    VERB_JSON | VERB_QUEUES, pause_run },
	{ "resume", "QUEUE...", "end a pause", NULL, 0, 1, -1,
	    VERB_JSON | VERB_QUEUES, pause_resume },
	{ "probe", "QUEUE", "have a suspended queue probed now", NULL, 0, 1, 1,
	    VERB_JSON | VERB_QUEUES, probe_run },
	{ "quiet", "HOST|INSTANCE", "let a daemon take no new messages",
	    "Until --end, a reload, or its end. Its handlers go on.", OPT(END), 1, 1,
	    VERB_JSON, quiet_run },
	{ "forget", "QUEUE", "delete the keys of a queue that is gone",
	    "Refuses while a daemon serves it or messages are in it, unless --force says so.",
	    OPT(FORCE), 1, 1, VERB_JSON | VERB_DESTRUCTIVE, forget_run },
	{ "schedules run", "SCHEDULE", "push what a schedule would push now",
	    "Its next run is not changed by it.", 0, 1, 1, VERB_JSON, schedules_push },
	{ "schedules", "[SCHEDULE...]", "when schedules ran last, and when they run next",
	    NULL, 0, 0, -1, VERB_JSON, schedules_run },
	{ "lock", "NAME -- COMMAND...", "run a command while holding a lock in Redis",
	    "Waits until nobody else has it. Exits as the command did; with 75 if it was not\n"
	    "had in time, with 76 if it was lost while the command ran, which is then ended.",
	    OPT(LOCK_WAIT) | OPT(TTL), 2, -1, 0, lock_run },
	{ "locks", "", "the locks that are held, and by whom",
	    "Looks at the names of all keys in Redis, in steps.", OPT(COUNT) | OPT(ALL),
	    0, 0, VERB_JSON, locks_run },
	{ "unlock", "NAME", "break a lock",
	    "Without --force it only says who has it. Its holder ends its command when it\n"
	    "renews the lock next.", OPT(FORCE), 1, 1, VERB_JSON | VERB_DESTRUCTIVE, unlock_run },
	{ "check", "[QUEUE...]", "look for what is wrong with Redis, queues and daemons",
	    "Exits 0 where all is well, 1 with warnings, 2 with errors or where Redis cannot be\n"
	    "reached, 3 where it cannot tell.", 0, 0, -1,
	    VERB_JSON | VERB_QUEUES, check_run },
	{ "ping", "", "ask Redis for a sign of life", NULL, 0, 0, 0, VERB_JSON, ping_run },
	{ "help", "[VERB...]", "this, or how to use a verb", NULL, OPT(COMPLETION), 0, 2,
	    VERB_LOCAL, help_run },
	{ .name = NULL }
};

const struct verb *
verb_find(const char *first, const char *second, int *words)
{
	const struct verb *v;
	char both[64];

	snprintf(both, sizeof(both), "%.20s %.20s", first, second != NULL ? second : "");
	for (v = verb_table; v->name != NULL; v++) {
		*words = 1 + (strchr(v->name, ' ') != NULL);
		if (strcmp(v->name, *words == 2 ? both : first) == 0)
			return v;
	}
	return NULL;
}

const char *
verb_nearest(const char *word)
{
	const struct verb *v;
	const char *best = NULL;
	unsigned d, best_d = 3;

	for (v = verb_table; v->name != NULL; v++) {
		d = util_distance(word, v->name);
		if (d < best_d && d < strlen(v->name)) {
			best_d = d;
			best = v->name;
		}
	}
	return best;
}

uint64_t
verb_options(const struct verb *v)
{
	uint64_t set = OPTS_EVERY;

	if (v == NULL)
		return set;
	if (v->flags & VERB_LOCAL)
		set = OPT(HELP) | OPT(VERSION);
	if (v->flags & VERB_JSON)
		set |= OPT(JSON);
	if (v->flags & VERB_DESTRUCTIVE)
		set |= OPT(DRY_RUN) | OPT(YES);
	return set | v->options;
}

const struct opt_def *
opt_find(const struct verb *v, const char *name, size_t len)
{
	const struct opt_def *first = NULL;
	uint64_t takes = v != NULL ? verb_options(v) : 0;
	size_t i;

	for (i = 0; i < OPT_MAX; i++) {
		if (strlen(opt_table[i].name) != len || memcmp(opt_table[i].name, name, len) != 0)
			continue;
		if ((takes >> i & 1) != 0)
			return &opt_table[i];
		if (first == NULL)
			first = &opt_table[i];
	}
	return first;
}

bool
opt_is_optional(const struct opt_def *o)
{
	return o->arg != NULL && o->arg[0] == '[';
}

const struct opt_def *
opt_find_letter(char letter)
{
	size_t i;

	for (i = 0; i < OPT_MAX; i++)
		if (opt_table[i].letter == letter)
			return &opt_table[i];
	return NULL;
}
