/*
 * Each path through the scripts (faults.steps), with each of its commands denied in turn, with
 * each absent key of a wrong type, and at maxmemory: no message may be lost.  When the fault is
 * over, every message can be delivered, and no key is left.
 */
#include "steps.h"

/* The path, and what there was before its call. */
static struct section	*paths;
static size_t		 npaths;
static const struct section *path;
static redisReply	*before;

static bool
has(const char *flag)
{
	return strstr(path->flags, flag) != NULL;
}

static int
all_places(const redisReply *places, const redisReply *payload)
{
	return rig_count(places->element[0], payload->str, payload->len) +
	    rig_count(places->element[1], payload->str, payload->len);
}

static size_t
copies(const redisReply *places)
{
	return places->element[0]->elements + places->element[1]->elements;
}

static void
begin(unsigned kind)
{
	steps_reset(kind);
	assert_int_equal(steps_run(path, path->text, false), 0);
	freeReplyObject(before);
	before = rig_places(&rig);
}

static void
run(void)
{
	(void)steps_run(path, path->then, true);
}

/*
 * A message may be there twice, but must not be missing.  An id is in two places while it runs
 * and is enqueued.  A result that is refused comes again: it must not write a letter each time.
 */
static void
nothing_lost(const char *fault)
{
	redisReply *now = rig_places(&rig);
	long long letters = rig_int(&rig, "XLEN %s", rig_key(&rig, KEY_DEAD));

	for (size_t k = 0; k < 2 && !has("finishes"); k++)
		for (size_t i = 0; i < before->element[k]->elements; i++) {
			const redisReply *m = before->element[k]->element[i];
			int n = all_places(now, m), was = all_places(before, m);

			if (n < (rig.unique ? 1 : was))
				fail_msg("%s, %s: %d of %s, %d were there", path->name, fault,
				    n, m->str, was);
		}
	if (steps_had() > 0 && letters > steps_had())
		fail_msg("%s, %s: %lld letters of %d messages", path->name, fault, letters,
		    steps_had());
	freeReplyObject(now);
}

/* Delivers and acks what is due. */
static void
drain(const char *fault)
{
	static unsigned calls;
	struct popped got[50];
	char call[24];
	int n;

	do {
		snprintf(call, sizeof(call), "w.%u", ++calls);
		if ((n = rig_pop(&rig, 50, 1048576, MAX, call, 0, got, NULL)) < 0)
			fail_msg("%s, %s: %s", path->name, fault, rig.error);
		for (int i = 0; i < n; i++)
			assert_string_equal(rig_settle(&rig, "ack", &got[i], NULL), "ok");
		rig_popped_done(got, n);
	} while (n > 0);
}

static void
work_off(const char *fault)
{
	struct ticked t = { .scan = "" };
	int rounds = 0;

	do {
		steps_age();
		assert_int_equal(rig_tick(&rig, 60, 60, true, 1e12, 250, 1048576, 0, NULL, &t), 0);
		drain(fault);
		if (++rounds == 50)
			fail_msg("%s, %s: there is no end of messages", path->name, fault);
	} while (rig_int(&rig, "ZCARD %s", rig_key(&rig, KEY_RETRY)) > 0 ||
	    rig_int(&rig, "ZCARD %s", rig_key(&rig, KEY_BACKUP)) > 0 ||
	    rig_int(&rig, "ZCARD %s", rig_key(&rig, KEY_HELD)) > 0 ||
	    (rig.unique && rig_int(&rig, "ZCARD %s", rig_key(&rig, KEY_QUEUE)) > 0));
}

/* The fault is over: the call, once more, and all messages; then nothing may be left. */
static void
recover(const char *fault)
{
	struct ticked t = { .scan = "" };
	redisReply *r;

	nothing_lost(fault);
	run();
	if (rig.error[0] != '\0' && strcmp(fault, "maxmemory") == 0)
		fail_msg("%s after %s: %s", path->name, fault, rig.error);
	nothing_lost(fault);
	if (has("keeps"))
		return;
	rig.fleet = 0;
	rig.gap = 0;
	work_off(fault);
	rig_do(&rig, "DEL items mails %s %s", rig_key(&rig, KEY_DEAD), rig_key(&rig, KEY_RATE));
	assert_int_equal(rig_tick(&rig, 0, 0, true, 1e12, 250, 1048576, 0, "0", &t), 0);
	rig_do(&rig, "DEL %s", rig_key(&rig, KEY_STATS));
	if (rig.consumer != NULL) {
		assert_int_equal(rig_int(&rig, "EVAL %s 1 %s",
		    "return redis.call('XPENDING', KEYS[1], 'rqd')[1]",
		    rig_key(&rig, KEY_QUEUE)), 0);
		rig_do(&rig, "DEL %s", rig_key(&rig, KEY_QUEUE));
	}
	r = rig_command(&rig, "KEYS *");
	if (r->elements > 0)
		fail_msg("%s, %s: left over: %s", path->name, fault, r->element[0]->str);
	freeReplyObject(r);
}

/* -- denied commands ------------------------------------------------------------------- */

/* The commands that the call needs; returns how many. */
static int
commands_of(unsigned kind, char names[64][24])
{
	redisReply *r;
	char *rest, *line;
	int n = 0;

	begin(kind);
	rig_do(&rig, "CONFIG RESETSTAT");
	run();
	if (rig.error[0] != '\0')
		fail_msg("%s: %s", path->name, rig.error);
	r = rig_command(&rig, "INFO commandstats");
	rest = r->str;
	while ((line = strsep(&rest, "\r\n")) != NULL && n < 64)
		if (sscanf(line, "cmdstat_%23[a-z]:", names[n]) == 1 &&
		    strstr("config info evalsha eval script acl select", names[n]) == NULL)
			n++;
	freeReplyObject(r);
	return n;
}

static void
deny(const char *command)
{
	rig_do(&rig, "ACL SETUSER few reset on >x ~* &* +@all -%s", command);
	rig_connect(&rig, "few");
}

/* Whether a call that was refused may have changed something. */
static bool
may_change(const char *command)
{
	/* Of several results in a call some may be done. */
	return (strncmp(rig.error, "error ", 6) == 0 && strstr(path->then, "%1") != NULL) ||
	    strstr(path->then, "; ") != NULL ||
	    has("early") ||
	    /* The pop may have made seconds of milliseconds. */
	    (rig.unique && strncmp(path->then, "pop", 3) == 0 && strcmp(command, "hset") == 0);
}

/*
 * A refused call changes nothing, and its error names the command.  Calls that are made again
 * and again do not multiply messages.  Returns whether it was refused.
 */
static bool
denied(unsigned kind, const char *command)
{
	char was[48], is[48];
	bool refused = false;
	redisReply *now;

	begin(kind);
	for (int i = 0; i < 3; i++) {
		rig_connect(&rig, "");
		rig_digest(&rig, was);
		deny(command);
		run();
		rig_connect(&rig, "");
		if (rig.error[0] == '\0')
			continue;
		refused = true;
		if (strcasestr(rig.cause, command) == NULL)
			fail_msg("%s, %s is not named: %s", path->name, command, rig.cause);
		rig_digest(&rig, is);
		if (strcmp(was, is) != 0 && !may_change(command))
			fail_msg("%s, %s: something has changed: %s", path->name, command,
			    rig.cause);
	}
	now = rig_places(&rig);
	if (refused && !rig.unique && copies(now) > copies(before))
		fail_msg("%s, %s: %zu copies, %zu were there", path->name, command, copies(now),
		    copies(before));
	freeReplyObject(now);
	recover(command);
	return refused;
}

static void
test_denied_path(unsigned kind)
{
	char names[64][24];
	int n = commands_of(kind, names), refused = 0;

	for (int i = 0; i < n; i++)
		refused += denied(kind, names[i]);
	if (refused * 4 < n || refused == 0)
		fail_msg("%s: of %d commands %d were refused", path->name, n, refused);
}

/* -- keys of a wrong type, maxmemory ----------------------------------------------------- */

static void
test_wrong_types_of_path(unsigned kind)
{
	static const char *const makes[] = { "SET %s x", "LPUSH %s x", "HSET %s x y",
	    "ZADD %s 1 x" };
	static const struct { enum key key; int fits; } keys[] = {	/* the right one of makes */
		{ KEY_QUEUE, 1 }, { KEY_BACKUP, 3 }, { KEY_CONTEXT, 2 }, { KEY_RETRY, 3 },
		{ KEY_DELIVERY, 2 }, { KEY_DELAYED, 3 }, { KEY_DEAD, -1 }, { KEY_PAUSED, -1 },
		{ KEY_STATS, 2 }, { KEY_RATE, -1 }, { KEY_SCHEDULE, 2 },
	};
	char fault[64];

	for (size_t k = 0; k < ARRAY_LEN(keys); k++) {
		const char *key = rig_key(&rig, keys[k].key);
		int fits = keys[k].key != KEY_QUEUE ? keys[k].fits :
		    kind == OF_LIST ? 1 : kind == OF_IDS ? 3 : -1;

		begin(kind);
		/* A key that is there has its own type.  rig_places() reads two others of ids. */
		if (rig_int(&rig, "EXISTS %s", key) == 1 ||
		    (kind == OF_IDS && (keys[k].key == KEY_DELAYED || keys[k].key == KEY_SCHEDULE)))
			continue;
		for (int type = 0; type < (int)ARRAY_LEN(makes); type++) {
			if (type == fits)
				continue;
			begin(kind);
			snprintf(fault, sizeof(fault), "Q%s by %.4s", keys_suffix(keys[k].key),
			    makes[type]);
			rig_do(&rig, makes[type], key);
			run();
			run();
			rig_do(&rig, "DEL %s", key);
			recover(fault);
		}
	}
}

/* At maxmemory Redis refuses producers, but never the scripts that free memory. */
static void
test_maxmemory_of_path(unsigned kind)
{
	char was[48], is[48];
	redisReply *r;

	begin(kind);
	rig_digest(&rig, was);
	rig_do(&rig, "CONFIG SET maxmemory 100000");
	run();
	rig_digest(&rig, is);
	if (has("grows") && (strstr(rig.error, "OOM") == NULL || strcmp(was, is) != 0))
		fail_msg("%s at maxmemory: %s, or it has changed something", path->name, rig.error);
	if (!has("grows") && rig.error[0] != '\0')
		fail_msg("%s at maxmemory: %s", path->name, rig.error);
	nothing_lost("maxmemory");
	r = rig_command(&rig, "LPUSH %s x", rig_key(&rig, KEY_QUEUE));
	assert_int_equal(r->type, REDIS_REPLY_ERROR);
	freeReplyObject(r);
	if (!has("keeps")) {
		drain("maxmemory");
		freeReplyObject(before);
		before = rig_places(&rig);
	}
	rig_do(&rig, "CONFIG SET maxmemory 0");
	recover("maxmemory");
}

static void
each_path(void (*fn)(unsigned kind))
{
	for (size_t i = 0; i < npaths; i++)
		for (unsigned kind = OF_LIST; kind <= OF_GROUPS; kind <<= 1)
			if (paths[i].kinds & kind) {
				path = &paths[i];
				fn(kind);
			}
}

TEST(test_denied)
{
	each_path(test_denied_path);
}

TEST(test_wrong_types)
{
	each_path(test_wrong_types_of_path);
}

TEST(test_maxmemory)
{
	each_path(test_maxmemory_of_path);
}

int
main(void)
{
	int rc;

	rig_open(&rig, "orders");
	paths = steps_open("faults", &npaths);
	rc = unit_run(NULL, NULL);
	steps_reset(OF_LIST);
	steps_close(paths, npaths);
	freeReplyObject(before);
	rig_close(&rig);
	return rc;
}
