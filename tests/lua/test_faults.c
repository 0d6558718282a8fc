/*
 * Each script on each of its paths, with each command denied in turn, with each absent
 * key of a wrong type, and at maxmemory: no message may be lost.  When the fault is
 * over, every message can be delivered, and no key is left.  Once for kind "ack", once
 * for kind "stream".
 */
#include "script_test.h"

#include "faults.h"

static struct popped	had[8];		/* deliveries of the setup */
static int		nhad;
static unsigned		calls;

static void
produce(const char *payload)
{
	if (rig.consumer != NULL)
		rig_do(&rig, "XADD %s * message %s", rig_key(&rig, KEY_QUEUE), payload);
	else
		rig_do(&rig, "LPUSH %s %s", rig_key(&rig, KEY_QUEUE), payload);
}

/* Another consumer of the group reads all new entries.  They are pending for it then. */
static void
read_as_other(void)
{
	freeReplyObject(rig_command(&rig, "XGROUP CREATE %s rqd 0 MKSTREAM",
	    rig_key(&rig, KEY_QUEUE)));
	rig_do(&rig, "XREADGROUP GROUP rqd other STREAMS %s >", rig_key(&rig, KEY_QUEUE));
}

static void
take(int n)
{
	char call[24];

	snprintf(call, sizeof(call), "f.%u", ++calls);
	n = rig_pop(&rig, n, 1048576, MAX, call, 0, had + nhad, NULL);
	assert_true(n > 0);
	nhad += n;
}

/* Calls a script with these words, up to a NULL. */
static void
script(const char *name, const char *keys, const char *word, ...)
{
	struct words w = { 0 };
	redisReply *r;
	va_list ap;

	va_start(ap, word);
	words_list(&w, word, ap);
	va_end(ap);
	if ((r = rig_script(&rig, name, keys, &w)) != NULL)
		freeReplyObject(r);
}

/* -- paths: what is there before, and the call ------------------------------ */

static void
in_list(void)
{
	produce("{\"id\":1}");
	produce("{\"id\":1}");
	produce("no id");
}

static void
in_hand(void)
{
	in_list();
	take(3);
}

static void
in_retry(void)
{
	in_hand();
	assert_string_equal(rig_settle(&rig, "retry", &had[0], "0"), "ok");
	assert_string_equal(rig_settle(&rig, "return", &had[1], NULL), "ok");
	produce("another");
}

static void
expired(void)
{
	in_hand();
	faults_expire_all(&rig);
}

static void
moved(void)
{
	struct ticked t = { .scan = "" };

	expired();
	assert_int_equal(rig_tick(&rig, 60, 60, true, 1e12, 250, 1048576, 0, NULL, &t), 0);
}

static void
foreign(void)
{
	if (rig.consumer != NULL) {
		produce("{\"id\":7}");
		produce("gone");
		read_as_other();
		rig_do(&rig, "EVAL %s 1 %s",
		    "local e = redis.call('XREVRANGE', KEYS[1], '+', '-')\n"
		    "return redis.call('XDEL', KEYS[1], e[1][1])", rig_key(&rig, KEY_QUEUE));
		faults_expire_all(&rig);
		return;
	}
	rig_do(&rig, "ZADD %s 1000 7", rig_key(&rig, KEY_BACKUP));
	rig_do(&rig, "HSET %s 7 {\"id\":7}", rig_key(&rig, KEY_CONTEXT));
	rig_do(&rig, "ZADD %s 1000 nobody", rig_key(&rig, KEY_BACKUP));
}

static void
delayed(void)
{
	rig_do(&rig, "ZADD %s 1000 later 1e12 milliseconds", rig_key(&rig, KEY_DELAYED));
}

static void
taken(void)
{
	in_hand();
	if (rig.consumer != NULL) {
		rig_do(&rig, "XCLAIM %s rqd other 0 %s", rig_key(&rig, KEY_QUEUE), had[0].tag);
		return;
	}
	rig_do(&rig, "ZREM %s %s", rig_key(&rig, KEY_BACKUP), had[0].tag);
	produce("{\"id\":1}");
}

static void
pops(void)
{
	char call[24];
	int n;

	snprintf(call, sizeof(call), "f.%u", ++calls);
	n = rig_pop(&rig, 8 - nhad, 1048576, MAX, call, 0, had + nhad, NULL);
	if (n > 0)
		nhad += n;
}

static void
settles(const char *op, const char *arg)
{
	struct words w = { 0 };
	redisReply *r;
	size_t k;
	int i;

	rig_settle_begin(&rig, &w);
	for (i = 0; i < nhad; i++) {
		words_add(&w, op);
		words_mem(&w, had[i].tag, had[i].taglen);
		words_add(&w, had[i].token);
		if (arg != NULL)
			words_add(&w, arg);
		if (strcmp(op, "dead") == 0) {
			rig_words(&w, "exit", "1", "e", "a", NULL);
		}
	}
	if ((r = rig_settle_script(&rig, &w)) == NULL)
		return;
	for (k = 2; k < r->elements; k++) {
		if (strncmp(r->element[k]->str, "error ", 6) != 0)
			continue;
		snprintf(rig.error, sizeof(rig.error), "%s", r->element[k]->str);
		snprintf(rig.cause, sizeof(rig.cause), "%s", r->element[k]->str);
	}
	freeReplyObject(r);
}

static void
acks(void)
{
	settles("ack", NULL);
}

static void
retries(void)
{
	settles("retry", "0");
}

static void
returns(void)
{
	settles("return", NULL);
}

static void
defers(void)
{
	settles("defer", "0");
}

static void
deads(void)
{
	settles("dead", "1");
}

static void
ticks(void)
{
	struct ticked t = { .scan = "" };

	(void)rig_tick(&rig, 60, 60, true, 1e12, 250, 1048576, 0, "0", &t);
}

static void
renews(void)
{
	char error[sizeof(rig.error)] = "";
	int i;

	for (i = 0; i < nhad; i++) {
		if (rig_renew(&rig, &had[i]) == -99)
			snprintf(error, sizeof(error), "%s", rig.error);
	}
	memcpy(rig.error, error, sizeof(error));
}

static void
bodies(void)
{
	script("body", "CD", had[0].tag, had[0].token, NULL);
}

static void
pushes(void)
{
	script("push", "BCRD", "9#x", "1", "", "0", "pushed", NULL);
}

static void
rescues_as(const char *op)
{
	script("rescue", "BCRDX", op, "1", "1#f.0.1", "1", "2", "1", "0", "rescued", "10", "h",
	    "exit", "1", "e", "", "f.99", "0", NULL);
}

static void
rescues(void)
{
	rescues_as("retry");
}

static void
rescues_dead(void)
{
	rescues_as("dead");
}

/* Calls of rqctl on retries and dead letters. */

static void
buries(void)
{
	script("bury", "CRDX", had[0].tag, "0", "h", "e", NULL);
}

static void
forgets(void)
{
	script("drop_retries", "CRD", had[0].tag, had[1].tag, NULL);
}

static void
cancels(void)
{
	(void)rig_cancel(&rig, "drop", had[0].tag, had[0].taglen);
}

static void
cancels_dead(void)
{
	(void)rig_cancel(&rig, "dead", had[0].tag, had[0].taglen);
}

static void
cancelled(void)
{
	int i;

	in_hand();
	for (i = 0; i < nhad; i++)
		assert_string_equal(rig_cancel(&rig, "dead", had[i].tag, had[i].taglen), "running");
}

static void
cancelled_moved(void)
{
	int i;

	moved();
	for (i = 0; i < nhad; i++)
		assert_string_equal(rig_cancel(&rig, "dead", had[i].tag, had[i].taglen), "expired");
}

static void
cancels_delayed(void)
{
	script("cancel_waiting", "LX", "zset", "dead", "0", "h", "e", "10", "id", "later", NULL);
}

static void
cancels_waiting(void)
{
	if (rig.consumer == NULL)
		script("cancel_waiting", "QX", "list", "dead", "0", "h", "e", "10", "id", "no id",
		    NULL);
}

static void
in_dead(void)
{
	in_hand();
	settles("dead", "1");
}

static void
revives(void)
{
	faults_revive(&rig, "dead_retry", "BCRDX");
}

static void
looks(void)
{
	struct popped p[8];
	char call[24];
	int n;

	script(rig.consumer != NULL ? "stream_arm" : "arm", "QRLP", "0", "rqd", NULL);
	snprintf(call, sizeof(call), "f.%u", calls);
	if ((n = rig_mine(&rig, call, 10, MAX, p)) > 0)
		rig_popped_done(p, n);
}

static const struct fault_path paths[] = {
	{ "pop", in_list, pops, false },
	{ "pop of retries", in_retry, pops, false },
	{ "pop of expired ones", moved, pops, false },
	{ "pop beside those in hand", in_hand, pops, false },
	{ "ack", in_hand, acks, true },
	{ "ack of expired ones", moved, acks, true },
	{ "ack of taken ones", taken, acks, true },
	{ "retry", in_hand, retries, false },
	{ "retry of expired ones", moved, retries, false },
	{ "retry of taken ones", taken, retries, false },
	{ "return", in_hand, returns, false },
	{ "defer", in_hand, defers, false },
	{ "body", in_hand, bodies, false },
	{ "dead", in_hand, deads, false },
	{ "dead, expired", moved, deads, false },
	{ "tick, expired", expired, ticks, false },
	{ "tick, foreign", foreign, ticks, false },
	{ "tick, delayed", delayed, ticks, false },
	{ "renew", in_hand, renews, false },
	{ "renew of expired ones", moved, renews, false },
	{ "push", in_list, pushes, false },
	{ "bury", in_retry, buries, false },
	{ "drop_retries", in_retry, forgets, true },
	{ "cancel", in_hand, cancels, false },
	{ "cancel of a retry", in_retry, cancels, true },
	{ "cancel to a letter", in_retry, cancels_dead, false },
	{ "cancel of delayed", delayed, cancels_delayed, false },
	{ "cancel in the list", in_list, cancels_waiting, false },
	{ "retry of cancelled ones", cancelled, retries, false },
	{ "return of cancelled, expired ones", cancelled_moved, returns, false },
	{ "pop of cancelled ones", cancelled_moved, pops, false },
	{ "renew of cancelled ones", cancelled, renews, false },
	{ "dead retry", in_dead, revives, false },
	{ "rescue", in_hand, rescues, false },
	{ "rescue of a letter", in_hand, rescues_dead, false },
	{ "arm, mine", in_hand, looks, false },
};

/* -- what must hold ---------------------------------------------------------- */

static const char *const payloads[] = {
	"{\"id\":1}", "no id", "another", "{\"id\":7}", "later", "milliseconds"
};
static int	before[ARRAY_LEN(payloads)];

static void
count(int n[])
{
	redisReply *all = rig_places(&rig);
	size_t i;

	for (i = 0; i < ARRAY_LEN(payloads); i++)
		n[i] = rig_count(all->element[0], payloads[i], strlen(payloads[i])) +
		    rig_count(all->element[1], payloads[i], strlen(payloads[i]));
	freeReplyObject(all);
}

static int
copies(void)
{
	int n[ARRAY_LEN(payloads)], all = 0;
	size_t i;

	count(n);
	for (i = 0; i < ARRAY_LEN(payloads); i++)
		all += n[i];
	return all;
}

/* A settle that is refused comes again: it must not write a letter each time. */
static void
one_letter_each(const struct fault_path *p, const char *fault)
{
	long long letters;

	if (p->run != deads && p->run != buries && p->run != cancels_dead)
		return;
	letters = rig_int(&rig, "XLEN %s", rig_key(&rig, KEY_DEAD));
	if (letters > nhad)
		fail_msg("%s, %s: %lld letters of %d messages", p->name, fault, letters, nhad);
}

/* A message may be there twice, but must not be missing. */
static void
nothing_lost(const struct fault_path *p, const char *fault)
{
	int now[ARRAY_LEN(payloads)];
	size_t i;

	count(now);
	for (i = 0; i < ARRAY_LEN(payloads); i++) {
		if (now[i] < before[i] && !p->finishes)
			fail_msg("%s, %s: %d of %s, %d were there", p->name, fault,
			    now[i], payloads[i], before[i]);
	}
	one_letter_each(p, fault);
}

/* Checks that no entry is pending or unread, and deletes the stream. */
static void
remove_stream(const struct fault_path *p, const char *fault)
{
	redisReply *r = rig_command(&rig, "XPENDING %s rqd", rig_key(&rig, KEY_QUEUE));

	if (r->type != REDIS_REPLY_ARRAY || r->element[0]->integer != 0)
		fail_msg("%s, %s: left pending", p->name, fault);
	freeReplyObject(r);
	r = rig_places(&rig);
	if (r->element[0]->elements > 0)
		fail_msg("%s, %s: left unread", p->name, fault);
	freeReplyObject(r);
	rig_do(&rig, "DEL %s", rig_key(&rig, KEY_QUEUE));
}

static void
recover(const struct fault_path *p, const char *fault)
{
	faults_work_off(&rig, p, fault, KEY_RETRY);
	if (rig.consumer != NULL)
		remove_stream(p, fault);
	faults_nothing_left(&rig, p, fault);
}

static void
begin(const struct fault_path *p)
{
	rig_connect(&rig, "");
	rig_do(&rig, "FLUSHALL");
	p->setup();
	count(before);
}

static void
end(void)
{
	rig_popped_done(had, nhad);
	nhad = 0;
}

/* -- the faults --------------------------------------------------------------- */

static const char *const commands[] = {
	"exists", "getrange", "hdel", "hexists", "hget", "hincrby", "hlen", "hmget",
	"hscan", "hset", "hstrlen", "lindex", "llen", "lpos", "lpush", "lrange", "lrem", "ltrim",
	"pttl", "time", "xadd", "zadd", "zcard", "zcount", "zmscore", "zrange",
	"zrangebyscore", "zrem", "zremrangebyrank", "zscore",
	"xack", "xclaim", "xdel", "xgroup", "xinfo", "xlen", "xpending", "xrange", "xreadgroup",
};

/* Of several results in a call some may be done. */
static bool
may_change(const struct fault_path *p UNUSED, const char *command UNUSED)
{
	return strncmp(rig.error, "error ", 6) == 0;
}

static bool
fits(enum key k, size_t type)
{
	return (k == KEY_QUEUE && type == 1 && rig.consumer == NULL) ||
	    (type == 3 && (k == KEY_DELAYED || k == KEY_BACKUP || k == KEY_RETRY)) ||
	    (type == 2 && (k == KEY_CONTEXT || k == KEY_DELIVERY));
}

static const struct faults faults = {
	.rig = &rig, .paths = paths, .npaths = ARRAY_LEN(paths), .commands = commands,
	.ncommands = ARRAY_LEN(commands), .last = KEY_STATS, .begin = begin, .end = end,
	.nothing_lost = nothing_lost, .recover = recover, .copies = copies,
	.may_change = may_change, .fits = fits,
};

TEST(test_denied)
{
	faults_denied(&faults, 150);
}

TEST(test_refused_whole)
{
	faults_refused_whole(&faults);
}

TEST(test_wrong_types)
{
	faults_wrong_types(&faults);
}

static void
drain(void)
{
	struct popped got[50];
	char call[24];
	int i, n;

	do {
		snprintf(call, sizeof(call), "f.%u", ++calls);
		n = rig_pop(&rig, 50, 1048576, MAX, call, 0, got, NULL);
		assert_true(n >= 0);
		for (i = 0; i < n; i++)
			assert_string_equal(rig_settle(&rig, "ack", &got[i], NULL), "ok");
		rig_popped_done(got, n);
	} while (n > 0);
	if (rig.consumer == NULL)
		assert_int_equal(rig_int(&rig, "LLEN %s", rig_key(&rig, KEY_QUEUE)), 0);
}

/* At maxmemory Redis refuses producers, but never the scripts that free memory. */
TEST(test_maxmemory)
{
	redisReply *r;
	size_t i;

	for (i = 0; i < ARRAY_LEN(paths); i++) {
		begin(&paths[i]);
		rig_do(&rig, "CONFIG SET maxmemory 100000");
		paths[i].run();
		if (paths[i].run == pushes)
			assert_non_null(strstr(rig.error, "OOM"));
		else
			assert_string_equal(rig.error, "");
		nothing_lost(&paths[i], "maxmemory");
		r = rig_command(&rig, "LPUSH %s x", rig_key(&rig, KEY_QUEUE));
		assert_int_equal(r->type, REDIS_REPLY_ERROR);
		freeReplyObject(r);
		drain();
		count(before);
		rig_do(&rig, "CONFIG SET maxmemory 0");
		paths[i].run();
		nothing_lost(&paths[i], "maxmemory");
		recover(&paths[i], "maxmemory");
		end();
	}
}

static int
of_a_stream(void **state UNUSED)
{
	rig_connect(&rig, "");
	rig.consumer = "host-orders";
	return 0;
}

TEST_WITH(test_denied_of_a_stream, of_a_stream, NULL)
{
	faults_denied(&faults, 150);
}

TEST_WITH(test_refused_whole_of_a_stream, of_a_stream, NULL)
{
	faults_refused_whole(&faults);
}

TEST_WITH(test_wrong_types_of_a_stream, of_a_stream, NULL)
{
	faults_wrong_types(&faults);
}

TEST_WITH(test_maxmemory_of_a_stream, of_a_stream, NULL)
{
	test_maxmemory(state);
}
