/*
 * The scripts of kind "stream" against a model, in random steps.  There are two daemons
 * with one consumer's name, another consumer that reads, claims, acknowledges and
 * abandons entries, and entries are deleted at any time.  After each step every message
 * is where the model has it; at the end all are done.
 */
#include "rig.h"

#define STEPS	4000
#define MOST	3000
#define Q	rig_key(&rig, KEY_QUEUE)

enum state {
	NEW,		/* not yet delivered to the group */
	OTHER,		/* pending for the other consumer; rqd has nothing of it */
	HELD,		/* in QBACKUP */
	RETRY,		/* in QRETRY, due */
	DONE, DEAD,
	GONE		/* deleted before anybody had it, or when it was abandoned */
};
static const char *const states[] = {
	"new", "other's", "held", "retry", "done", "dead", "gone"
};

static struct message_model {
	char		 id[48];
	enum state	 state;
	bool		 there;		/* in the stream */
	enum { NOBODY, ME, THEM } pending;
	bool		 old;		/* HELD: its lease has ended; OTHER: abandoned */
	long long	 attempts, crashes;
	char		 token[32];	/* of QDELIVERY; "-": no owner; "": no field */
} model[MOST];
static int nmodel;

static struct rig	rig;
static struct popped	known[64];	/* deliveries, also of long ago */
static int		nknown;
static unsigned		calls;

static struct message_model *
by_tag(const char *tag)
{
	int i;

	for (i = 0; i < nmodel; i++) {
		if (strcmp(model[i].id, tag) == 0)
			return &model[i];
	}
	fail_msg("a tag that is none: %s", tag);
	return NULL;
}

/* A random message in this state; NULL: there is none. */
static struct message_model *
some(enum state state)
{
	int i, at = (int)unit_below((uint64_t)nmodel + 1);

	for (i = 0; i < nmodel; i++) {
		struct message_model *m = &model[(at + i) % nmodel];

		if (m->state == state)
			return m;
	}
	return NULL;
}

static int
count(enum state state)
{
	int i, n = 0;

	for (i = 0; i < nmodel; i++)
		n += model[i].state == state;
	return n;
}

/* -- checks --------------------------------------------------------------- */

/*
 * For whom the entry is pending.  From 7.0 on, a claim of a deleted entry removes it from
 * the list; in 6.2 it does not.
 */
static int
holder(const char *id)
{
	redisReply *r = rig_command(&rig, "XPENDING %s rqd %s %s 1", Q, id, id);
	int who = NOBODY;

	if (r->type == REDIS_REPLY_ARRAY && r->elements > 0)
		who = strcmp(r->element[0]->element[1]->str, "other") == 0 ? THEM : ME;
	freeReplyObject(r);
	return who;
}

static bool
is_in(enum key key, const char *id)
{
	redisReply *r = rig_command(&rig, "ZSCORE %s %s", rig_key(&rig, key), id);
	bool in = r->type == REDIS_REPLY_STRING;

	freeReplyObject(r);
	return in;
}

static void
check_message(const struct message_model *m)
{
	redisReply *r = rig_command(&rig, "HGET %s %s", rig_key(&rig, KEY_DELIVERY), m->id);
	char want[64] = "";
	size_t len;

	if (is_in(KEY_BACKUP, m->id) != (m->state == HELD) ||
	    is_in(KEY_RETRY, m->id) != (m->state == RETRY) ||
	    holder(m->id) != (int)m->pending)
		fail_msg("%s, which is %s: backup %d, retry %d, pending for %d, not %d", m->id,
		    states[m->state], is_in(KEY_BACKUP, m->id), is_in(KEY_RETRY, m->id),
		    holder(m->id), (int)m->pending);
	if (m->token[0] != '\0')
		snprintf(want, sizeof(want), "%lld %lld %s ", m->attempts, m->crashes, m->token);
	len = strlen(want);
	if ((r->type == REDIS_REPLY_STRING) != (len > 0) ||
	    (len > 0 && strncmp(r->str, want, len) != 0))
		fail_msg("%s, which is %s: \"%s\", not \"%s\"", m->id, states[m->state],
		    r->type == REDIS_REPLY_STRING ? r->str : "", want);
	freeReplyObject(r);
}

static void
check(void)
{
	int i;

	for (i = 0; i < nmodel; i++) {
		if (model[i].state != DONE && model[i].state != DEAD && model[i].state != GONE)
			check_message(&model[i]);
	}
	assert_int_equal(rig_int(&rig, "XLEN %s", rig_key(&rig, KEY_DEAD)), count(DEAD));
	assert_int_equal(rig_int(&rig, "ZCARD %s", rig_key(&rig, KEY_BACKUP)), count(HELD));
	assert_int_equal(rig_int(&rig, "ZCARD %s", rig_key(&rig, KEY_RETRY)), count(RETRY));
	assert_int_equal(rig_int(&rig, "HLEN %s", rig_key(&rig, KEY_CONTEXT)),
	    count(HELD) + count(RETRY));
}

/* -- steps of rqd --------------------------------------------------------- */

static void
add(void)
{
	struct message_model *m = &model[nmodel];
	redisReply *r;

	if (nmodel == MOST)
		return;
	r = rig_command(&rig, "XADD %s * message %d", Q, nmodel);
	assert_int_equal(r->type, REDIS_REPLY_STRING);
	*m = (struct message_model){ .state = NEW, .there = true };
	snprintf(m->id, sizeof(m->id), "%s", r->str);
	freeReplyObject(r);
	nmodel++;
}

static void
remember(struct popped *p)
{
	if (nknown == (int)ARRAY_LEN(known)) {
		rig_popped_done(known, 1);
		memmove(known, known + 1, sizeof(known) - sizeof(known[0]));
		nknown--;
	}
	known[nknown++] = *p;
}

static void
popped(struct popped *p)
{
	struct message_model *m = by_tag(p->tag);

	if (m == NULL)
		abort();
	assert_true(m->state == NEW || m->state == RETRY);
	if (m->state == NEW)
		m->pending = ME;
	else if (strcmp(m->token, "-") != 0)
		m->crashes++;
	m->state = HELD;
	m->old = false;
	snprintf(m->token, sizeof(m->token), "%s", p->token);
	assert_int_equal(p->attempts, m->attempts);
	assert_int_equal(p->crashes, m->crashes);
	assert_int_equal(atoi(p->payload), m - model);
	remember(p);
}

static void
pop(void)
{
	struct popped p[8];
	int want = 1 + (int)unit_below(8), there = count(NEW) + count(RETRY), n, i;
	static const char *const turns[] = { "retry", "new", "newest", "fewest" };
	struct message_model *m;
	char call[24];

	rig.turn = turns[unit_below(ARRAY_LEN(turns))];
	snprintf(call, sizeof(call), "m%u.%u", (unsigned)unit_below(2), ++calls);
	n = rig_pop(&rig, want, 1048576, MAX, call, 0, p, NULL);
	assert_int_equal(n, want < there ? want : there);
	for (i = 0; i < n; i++)
		popped(&p[i]);
	if (unit_below(8) != 0)
		return;
	/* The reply is lost. */
	assert_int_equal(rig_reclaim(&rig, call, 1000, false), n);
	for (i = 0; i < n; i++) {
		if ((m = by_tag(p[i].tag)) == NULL)
			abort();
		m->state = RETRY;
		strcpy(m->token, "-");
	}
}

static bool
is_live(const struct message_model *m)
{
	return m->state == HELD || m->state == RETRY;
}

/* Returns the answer that settle must give, and applies it to the model. */
static const char *
settled(struct message_model *m, const char *op, const char *token)
{
	if (strcmp(m->token, token) != 0)
		return is_live(m) || m->token[0] != '\0' ? "held" : "gone";
	if (strcmp(op, "stale") == 0)
		return "held";
	m->old = false;
	if (strcmp(op, "retry") == 0 || strcmp(op, "return") == 0 || strcmp(op, "defer") == 0) {
		m->attempts += strcmp(op, "retry") == 0;
		m->state = RETRY;
		strcpy(m->token, "-");
		return "ok";
	}
	m->pending = NOBODY;
	m->state = strcmp(op, "ack") == 0 ? DONE : DEAD;
	m->token[0] = '\0';
	return "ok";
}

static void
settle(void)
{
	static const char *const ops[] = { "ack", "ack", "retry", "return", "dead", "stale",
	    "defer" };
	const char *op = ops[unit_below(ARRAY_LEN(ops))];
	struct popped *p = &known[unit_below((uint64_t)nknown + 1)];
	struct message_model *m;

	if (p == &known[nknown])
		return;
	m = by_tag(p->tag);
	assert_string_equal(rig_settle(&rig, op, p, strcmp(op, "dead") == 0 ? "1" : "0"),
	    settled(m, op, p->token));
}

static void
renew(void)
{
	struct popped *p = &known[unit_below((uint64_t)nknown + 1)];
	struct message_model *m;
	int want;

	if (p == &known[nknown])
		return;
	m = by_tag(p->tag);
	if (strcmp(m->token, p->token) != 0)
		want = is_live(m) || m->token[0] != '\0' ? 0 : -1;
	else
		want = m->state == HELD ? 1 : 2;
	assert_int_equal(rig_renew(&rig, p), want);
	if (want <= 0)
		return;
	m->state = HELD;
	m->old = false;
}

static void
expire(void)
{
	struct message_model *m = some(HELD);

	if (m == NULL)
		return;
	rig_expire(&rig, m->id, strlen(m->id));
	m->old = true;
	if (!m->there)
		m->pending = holder(m->id);
}

static void
tick(void)
{
	struct ticked t = { .scan = "" };
	int i, requeued = 0, dropped = 0;

	do {
		assert_int_equal(rig_tick(&rig, 60, 60, true, 1e12, 250, 1048576, 0, NULL, &t), 0);
		requeued -= (int)t.requeued;
		dropped -= (int)t.dropped;
	} while (t.more || t.scan[0] != '\0');	/* a long pending list takes several steps */
	for (i = 0; i < nmodel; i++) {
		struct message_model *m = &model[i];

		if (m->state == HELD && m->old) {
			m->state = RETRY;
			requeued++;
		} else if (m->state == OTHER && m->old && m->there) {
			m->state = RETRY;
			m->attempts = m->crashes = 0;
			strcpy(m->token, "-");
			requeued++;
		} else if (m->state == OTHER && m->old) {
			m->state = GONE;
			m->pending = NOBODY;
			dropped++;
		}
		m->old = false;
	}
	assert_int_equal(requeued, 0);
	assert_int_equal(dropped, 0);
}

/* -- steps of others ------------------------------------------------------ */

static void
other_reads(void)
{
	int i, n = 1 + (int)unit_below(3);

	freeReplyObject(rig_command(&rig, "XREADGROUP GROUP rqd other COUNT %d STREAMS %s >",
	    n, Q));
	for (i = 0; i < nmodel && n > 0; i++) {
		if (model[i].state != NEW)
			continue;
		model[i].state = OTHER;
		model[i].pending = THEM;
		n--;
	}
}

static void
other_acks(void)
{
	struct message_model *m = some(unit_below(4) == 0 ? HELD : OTHER);

	if (m == NULL || m->pending != THEM)
		return;
	rig_do(&rig, "XACK %s rqd %s", Q, m->id);
	m->pending = NOBODY;
	if (m->state == OTHER)
		m->state = DONE;
}

static void
other_claims(void)
{
	struct message_model *m = some(HELD);

	if (m == NULL || m->pending != ME || !m->there)
		return;
	rig_do(&rig, "XCLAIM %s rqd other 0 %s", Q, m->id);
	m->pending = THEM;
}

static void
other_abandons(void)
{
	struct message_model *m = some(OTHER);

	if (m == NULL)
		return;
	rig_idle(&rig, m->id, strlen(m->id));
	m->old = holder(m->id) == THEM;
	if (!m->old) {
		m->pending = NOBODY;
		m->state = GONE;
	}
}

static void
delete(void)
{
	struct message_model *m = nmodel > 0 ? &model[unit_below((uint64_t)nmodel)] : NULL;

	if (m == NULL || !m->there)
		return;
	rig_do(&rig, "XDEL %s %s", Q, m->id);
	m->there = false;
	if (m->state == NEW)
		m->state = GONE;
}

/* Makes a random step. */
static void
step(void)
{
	static const struct { unsigned weight; void (*fn)(void); } steps[] = {
		{ 22, add }, { 16, pop }, { 40, settle }, { 8, renew }, { 6, expire }, { 4, tick },
		{ 4, other_reads }, { 6, other_acks }, { 4, other_claims }, { 3, other_abandons },
		{ 7, delete },
	};
	unsigned at = (unsigned)unit_below(120);
	size_t i;

	for (i = 0; i < ARRAY_LEN(steps) && at >= steps[i].weight; i++)
		at -= steps[i].weight;
	if (i < ARRAY_LEN(steps))
		steps[i].fn();
}

/* All daemons and consumers are dead; one daemon works off all messages. */
static void
work_off(void)
{
	int rounds = 0;

	while (count(NEW) + count(OTHER) + count(HELD) + count(RETRY) > 0) {
		while (count(HELD) > 0) {
			expire();
			if (unit_below(4) == 0)
				tick();
		}
		while (some(OTHER) != NULL) {
			other_abandons();
			tick();
		}
		tick();
		pop();
		while (nknown > 0) {
			struct popped *p = &known[nknown - 1];

			(void)settled(by_tag(p->tag), "ack", p->token);
			(void)rig_settle(&rig, "ack", p, "0");
			rig_popped_done(p, 1);
			nknown--;
		}
		assert_true(++rounds < 10000);
	}
}

TEST(test_model)
{
	int i;

	rig_do(&rig, "FLUSHALL");
	rig_do(&rig, "XGROUP CREATE %s rqd 0 MKSTREAM", Q);
	for (i = 0; i < unit_rounds(STEPS); i++) {
		step();
		if (i % 20 == 0 || nmodel < 40)
			check();
	}
	check();
	print_message("# %d messages: %d done, %d dead, %d gone\n", nmodel, count(DONE),
	    count(DEAD), count(GONE));
	work_off();
	check();
	assert_int_equal(rig_int(&rig, "EVAL %s 1 %s",
	    "return redis.call('XPENDING', KEYS[1], 'rqd')[1]", Q), 0);
	rig_check_clean(&rig);
}

int
main(void)
{
	int rc;

	rig_open(&rig, "orders");
	rig.consumer = "me";
	rc = unit_run(NULL, NULL);
	rig_popped_done(known, nknown);
	rig_close(&rig);
	return rc;
}
