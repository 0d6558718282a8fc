/*
 * A new verb needs a file verb_NAME.c, its name in verb_table and in the help of verb_help.c, and
 * a section of rqctl(1); a new option needs a row of opt_table.
 *
 * Options of every verb may stand before it; its own stand behind it, because two verbs may have
 * different options of one name.
 *
 * Long options are written in full, "--name=value" or "--name value"; letters
 * may be joined, and the last of them may have its value attached: -nc FILE.
 */
#include "rqctl/verbs.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/units.h"

#define OPTS_EVERY	(OPT(CONFIG) | OPT(SERVER) | OPT(SET) | OPT(HELP) | OPT(VERSION))

const struct opt_def opt_table[OPT_MAX] = {
	[OPT_CONFIG] = { "config", 'c', "FILE", "read queues and server from FILE" },
	[OPT_SERVER] = { "server", 0, "ADDRESS",
	    "host:port, unix:PATH, sentinel://..., cluster://..." },
	[OPT_SET] = { "option", 'o', "NAME=VALUE", "set an option over the file, as rqd -o does" },
	[OPT_HELP] = { "help", 'h', NULL, "show how to use the verb" },
	[OPT_VERSION] = { "version", 'V', NULL, "print the version" },
	[OPT_JSON] = { "json", 0, NULL, "print JSON, for programs" },
	[OPT_DRY_RUN] = { "dry-run", 'n', NULL, "print what would be done, but change nothing" },
	[OPT_YES] = { "yes", 'y', NULL, "do not ask; required without a terminal" },
	[OPT_LINES] = { "lines", 'l', NULL, "each line of standard input is a message" },
	[OPT_DELAY] = { "delay", 0, "DURATION", "deliver after DURATION: 30s, 5m, 2h" },
	[OPT_AT] = { "at", 0, "TIME", "deliver at 08:00, 2026-11-21T08:00:00Z or @1795248000" },
	[OPT_WATCH] = { "watch", 'w', NULL, "print again and again; Control-C ends it" },
	[OPT_INTERVAL] = { "interval", 0, "DURATION",
	    "with -w: time between refreshes (2s)" },
	[OPT_COUNT] = { "count", 0, "N", "show at most N" },
	[OPT_SUMMARY] = { "summary", 0, NULL, "count them by reason and error" },
	[OPT_RAW] = { "raw", 0, NULL, "write the message itself, byte for byte" },
	[OPT_NAMES] = { "names", 0, NULL, "print only the names, one per line" },
	[OPT_KEYS] = { "keys", 0, NULL,
	    "print only the keys that producers push to" },
	[OPT_REASON] = { "reason", 0, "REASON", "only dead letters with this reason" },
	[OPT_SINCE] = { "since", 0, "TIME",
	    "only those since TIME: 2h (ago), RFC 3339 or @epoch" },
	[OPT_UNTIL] = { "until", 0, "TIME", "only those until TIME" },
	[OPT_MATCH] = { "match", 0, "TEXT", "only those whose message or error contains TEXT" },
	[OPT_ALL] = { "all", 0, NULL, "all entries" },
	[OPT_RATE] = { "rate", 0, "N/UNIT", "at most this many per time: 100/s, 30/m, 500/h" },
	[OPT_FOR] = { "for", 0, "DURATION", "the pause ends by itself after DURATION" },
	[OPT_BURY_WHY] = { "reason", 0, "TEXT", "why; part of the error of the dead letters" },
	[OPT_WHY] = { "reason", 0, "TEXT", "the reason, for status and the daemons' logs" },
	[OPT_WAIT] = { "wait", 0, "[DURATION]",
	    "wait at most DURATION until none is in flight (10m)" },
	[OPT_TIMEOUT] = { "timeout", 0, "DURATION", "with --wait: wait at most DURATION" },
	[OPT_ATTEMPT] = { "attempt", 0, "N", "run it as attempt N (1)" },
	[OPT_ID] = { "id", 0, "ID", "use this id instead of the message's own" },
	[OPT_SAVED] = { "saved", 0, "TEXT", "the text that an earlier delivery has saved" },
	[OPT_WAITING] = { "waiting", 0, NULL, "messages that wait for their first delivery" },
	[OPT_HELD] = { "held", 0, NULL, "messages that wait for others of their group" },
	[OPT_RETRY] = { "retry", 0, NULL, "messages that wait for a retry" },
	[OPT_DELAYED] = { "delayed", 0, NULL,
	    "messages delayed by ZADD (push --delay: retries)" },
	[OPT_DEAD] = { "dead", 0, NULL, "dead letters" },
	[OPT_LOCK_WAIT] = { "wait", 0, "DURATION",
	    "wait at most DURATION; 0: do not wait (no limit)" },
	[OPT_TTL] = { "ttl", 0, "DURATION",
	    "time until a lock whose holder died is free (30s)" },
	[OPT_FORCE] = { "force", 0, NULL, "do it even if it is in use or not empty" },
	[OPT_END] = { "end", 0, NULL, "end it: the daemon takes messages again" },
	[OPT_LETTER] = { "dead", 0, NULL, "make them dead letters, reason cancelled" },
	[OPT_RERUN] = { "retry", 0, NULL, "end the runs, and try the messages again" },
	[OPT_GROUP] = { "group", 0, "GROUP", "cancel all messages of this group" },
	[OPT_SCAN] = { "scan", 0, "N", "look at the next N of the messages that wait (10000)" },
	[OPT_WARN_LATENCY] = { "latency", 0, "THRESHOLD",
	    "a problem if one waits longer: 5m, 5m:30m or :30m" },
	[OPT_WARN_WAITING] = { "waiting", 0, "THRESHOLD",
	    "a problem if more messages wait: 1000 or 1000:5000" },
	[OPT_WARN_DEAD] = { "dead", 0, "THRESHOLD",
	    "a problem if there are more: 10 or 10:100" },
	[OPT_COMPLETION] = { "completion", 0, "SHELL",
	    "print the completion script for bash or zsh" },
};

const struct verb *const verb_table[] = {
	&verb_status, &verb_queues, &verb_daemons, &verb_running,
	&verb_show, &verb_peek, &verb_push, &verb_try, &verb_dead_list,
	&verb_dead_show, &verb_dead_retry, &verb_dead_drop,
	&verb_dead_export, &verb_retry_list, &verb_retry_now,
	&verb_delayed_list, &verb_delayed_cancel, &verb_delayed_now,
	&verb_bury, &verb_cancel, &verb_purge, &verb_pause, &verb_resume,
	&verb_quiet, &verb_forget, &verb_schedules_run, &verb_schedules,
	&verb_lock, &verb_unlock, &verb_check, &verb_ping, &verb_acl,
	&verb_help,
	NULL
};

const struct verb *
verb_find(const char *first, const char *second, int *words)
{
	char both[64];
	const char *typed;

	snprintf(both, sizeof(both), "%.20s %.20s", first, or_empty(second));
	EACH_VERB(v) {
		typed = first;
		*words = 1;
		if (strchr(v->name, ' ') != NULL) {
			typed = both;
			*words = 2;
		}
		if (strcmp(v->name, typed) == 0)
			return v;
	}
	return NULL;
}

uint64_t
verb_options(const struct verb *v)
{
	uint64_t set = OPTS_EVERY;

	if (v == NULL)
		return set;
	if (v->flags & VERB_JSON)
		set |= OPT(JSON);
	if (v->flags & (VERB_ASKS | VERB_ASKS_ALL))
		set |= OPT(DRY_RUN) | OPT(YES);
	return set | v->options;
}

bool
opt_is_optional(const struct opt_def *o)
{
	return o->arg != NULL && o->arg[0] == '[';
}

/* -- the command line ------------------------------------------------------------- */

/* The option exists, but not here.  v: NULL: before the verb. */
static int
misplaced(const struct verb *v, const char *name, char **cause)
{
	if (v == NULL)
		return util_cause(cause, "--%s belongs behind the verb: "
		    "rqctl VERB --%s", name, name);
	return util_cause(cause, "%s has no option --%s: rqctl help %s lists its "
	    "options", v->name, name, v->name);
}

/* Names the option that was probably meant by "--TEXT" or "--TEXT=...". */
static int
unknown_option(const struct verb *v, const char *text, char **cause)
{
	char name[64];
	struct nearest near = { name, 3, NULL };

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(text + 2, "="), text + 2);
	for (size_t i = 0; i < OPT_MAX; i++) {
		if (strcmp(opt_table[i].name, name) == 0)
			return misplaced(v, name, cause);
		util_nearest(&near, opt_table[i].name);
	}
	if (near.best == NULL)
		return util_cause(cause, "there is no option --%s: rqctl help VERB lists them",
		    name);
	return util_cause(cause, "there is no option --%s; did you mean --%s?", name, near.best);
}

#define LONG	1000	/* getopt_long() returns this and the option's number, or a letter */

/* The option that getopt_long() has found. */
static const struct opt_def *
opt_of(int o)
{
	size_t i = 0;

	if (o >= LONG)
		i = (size_t)(o - LONG);
	while (o < LONG && opt_table[i].letter != (char)o && i + 1 < OPT_MAX)
		i++;
	return &opt_table[i];
}

/* What is wrong with the option that getopt_long() has refused. */
static int
refused(const struct verb *v, int o, const char *text, char **cause)
{
	const struct opt_def *def = opt_of(optopt);

	if (o == ':')
		return util_cause(cause, "--%s needs a value: %s", def->name, def->arg);
	if (optopt >= LONG)
		return util_cause(cause, "--%s takes no value", def->name);
	if (optopt != 0 && def->letter == (char)optopt)
		return misplaced(v, def->name, cause);
	if (optopt != 0)
		return util_cause(cause, "there is no option -%c: rqctl help VERB lists them",
		    optopt);
	return unknown_option(v, text, cause);
}

/* Whether it takes a value, for getopt_long(). */
static int
argument_rule(const struct opt_def *def)
{
	if (def->arg == NULL)
		return no_argument;
	if (opt_is_optional(def))
		return optional_argument;
	return required_argument;
}

/*
 * Sorts argv[1] and on into options and words; "-" alone is a word.  Without a
 * verb it takes the options of every verb, and stops at the first word.  Long
 * options have no short forms.  Returns where it has stopped, or -1 with a
 * cause.
 */
static int
take(struct args *a, const struct verb *v, int argc, char *const *argv, char **cause)
{
	struct option longs[OPT_MAX + 1] = { { .name = NULL } };
	char letters[2 * OPT_MAX + 3] = "+:", *l = letters + 2;
	uint64_t takes = verb_options(v);
	const struct opt_def *def;
	size_t n = 0, nset = 0;
	const char *text;
	usec_t ignored;
	int o;

	if (v == NULL)
		takes |= OPT(JSON);
	else
		letters[0] = '-';
	for (int i = 0; i < OPT_MAX; i++) {
		def = &opt_table[i];
		if ((takes >> i & 1) == 0)
			continue;
		longs[n++] = (struct option){ def->name, argument_rule(def),
			NULL, LONG + i };
		if (def->letter != 0)
			*l++ = def->letter;
		if (def->letter != 0 && def->arg != NULL)
			*l++ = ':';
	}
	while (a->set[nset] != NULL)
		nset++;
	opterr = optind = 0;
	while ((o = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		text = argv[optind - 1];
		a->open = o == ':';
		if (o == '?' || o == ':')
			return refused(v, o, text, cause);
		if (o == 1) {
			a->words[a->nwords++] = optarg;
			continue;
		}
		def = opt_of(o);
		if (optarg != NULL && optarg == text)	/* the word behind the option */
			text = argv[optind - 2];
		if (o >= LONG && strcspn(text + 2, "=") != strlen(def->name))
			return unknown_option(v, text, cause);
		if (opt_is_optional(def) && optarg == NULL && optind < argc &&
		    units_parse_duration(argv[optind], &ignored) == 0)
			optarg = argv[optind++];
		if (def == &opt_table[OPT_SET])
			a->set[nset++] = optarg;
		else if (a->value[def - opt_table] != NULL && def->arg != NULL)
			return util_cause(cause, "--%s is given twice", def->name);
		a->value[def - opt_table] = or_empty(optarg);
	}
	for (; v != NULL && optind < argc; optind++)
		a->words[a->nwords++] = argv[optind];
	return optind;
}

bool
verb_is_group(const char *word)
{
	size_t n = strlen(word);

	EACH_VERB(v)
		if (strncmp(v->name, word, n) == 0 && v->name[n] == ' ')
			return true;
	return false;
}

int
verb_unknown(const char *word, char **cause)
{
	struct nearest near = { word, 3, NULL };
	struct buf list = BUF_INIT;
	size_t n = strlen(word);
	int rc;

	EACH_VERB(v) {
		util_nearest(&near, v->name);
		if (strncmp(v->name, word, n) == 0 && v->name[n] == ' ')
			buf_printf(&list, "%s%s", text_if(list.len > 0, ", "),
			    v->name + n + 1);
	}
	if (list.len > 0)
		rc = util_cause(cause, "%s needs one of: %s%s", word, buf_str(&list),
		    text_if(strcmp(word, "retry") == 0,
			"; for dead letters: rqctl dead retry"));
	else if (near.best != NULL)
		rc = util_cause(cause, "there is no verb \"%.40s\"; did you mean %s?", word,
		    near.best);
	else
		rc = util_cause(cause, "there is no verb \"%.40s\"; rqctl help lists them", word);
	buf_done(&list);
	return rc;
}

/* Takes the verb, and what stands behind it. */
static int
take_verb(struct args *a, int argc, char *const *argv, char **cause)
{
	int words;

	a->verb = verb_find(argv[0], argv[1], &words);
	if (a->verb == NULL && verb_is_group(argv[0])) {
		if (take(a, NULL, argc, argv, cause) == -1)
			return -1;
		if (a->value[OPT_HELP] != NULL)
			a->group = argv[0];
	}
	if (a->group != NULL)
		return 0;
	if (a->verb == NULL) {
		a->words[a->nwords++] = argv[0];	/* for completion */
		return verb_unknown(argv[0], cause);
	}
	if (take(a, a->verb, argc - words + 1, argv + words - 1, cause) == -1)
		return -1;
	if (a->value[OPT_JSON] != NULL &&
	    (verb_options(a->verb) & OPT(JSON)) == 0)
		return misplaced(a->verb, "json", cause);
	return 0;
}

int
args_parse(struct args *a, int argc, char *const *argv, char **cause)
{
	const struct verb *v;
	const char *wrong = "too many arguments";
	size_t room = (size_t)argc + 1;
	int at;

	memset(a, 0, sizeof(*a));
	a->set = xcalloc(room, sizeof(a->set[0]));
	a->words = xcalloc(room, sizeof(a->words[0]));
	if ((at = take(a, NULL, argc, argv, cause)) == -1)
		return -1;
	if (at < argc && take_verb(a, argc - at, argv + at, cause) == -1)
		return -1;
	if (a->value[OPT_HELP] != NULL || a->value[OPT_VERSION] != NULL)
		return 0;
	if ((v = a->verb) == NULL)
		return util_cause(cause, "no verb is given: rqctl help lists them");
	if (a->nwords >= v->min_args && (v->max_args < 0 || a->nwords <= v->max_args))
		return 0;
	if (a->nwords < v->min_args)
		wrong = "an argument is missing";
	return util_cause(cause, "%s: usage: rqctl %s%s%s", wrong, v->name,
	    text_if(v->args[0] != '\0', " "), v->args);
}

void
args_done(struct args *a)
{
	free(a->set);
	free(a->words);
	memset(a, 0, sizeof(*a));
}
