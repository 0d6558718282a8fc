/*
 * The scripts of kind "ack" beside a foreign consumer, which follows the published
 * convention (doc/keys.md).  In random steps no message is lost, whichever of the two
 * takes it.
 */
#define RIG_KEY "{orders}"
#include "script_test.h"

#define KNOWN_MAX	4096

static struct popped	known[KNOWN_MAX];	/* deliveries, also of long ago */
static size_t		nknown;
static unsigned		calls;

#define MESSAGES	1000

static bool	done[MESSAGES + 1];	/* acked by either, or a dead letter */
static char	foreign[64][16];	/* ids that the foreign consumer has popped */
static size_t	nforeign;

static const char foreign_pop[] =
    "local id = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', ARGV[1] - ARGV[2], 'LIMIT', 0, 1)[1]\n"
    "if id then\n"
    "  redis.call('ZREM', KEYS[2], id)\n"
    "  local m = redis.call('HGET', KEYS[3], id)\n"
    "  if m then redis.call('LPUSH', KEYS[1], m) end\n"
    "end\n"
    "local m = redis.call('RPOP', KEYS[1])\n"
    "if not m then return '' end\n"
    "id = cjson.decode(m).id\n"
    "redis.call('ZADD', KEYS[2], ARGV[1], id)\n"
    "redis.call('HSET', KEYS[3], id, m)\n"
    "return tostring(id)";

static void
foreign_step(void)
{
	redisReply *r;
	size_t i;

	if (nforeign < ARRAY_LEN(foreign) && unit_below(2) == 0) {
		r = rig_command(&rig, "EVAL %s 3 %s %s %s %f %d", foreign_pop,
		    rig_key(&rig, KEY_QUEUE), rig_key(&rig, KEY_BACKUP), rig_key(&rig, KEY_CONTEXT),
		    rig_now(&rig), 30);
		assert_int_equal(r->type, REDIS_REPLY_STRING);
		if (r->len > 0)
			snprintf(foreign[nforeign++], sizeof(foreign[0]), "%s", r->str);
		freeReplyObject(r);
	} else if (nforeign > 0) {
		i = unit_below(nforeign);
		if (unit_below(5) != 0) {	/* or it dies */
			rig_do(&rig, "ZREM %s %s", rig_key(&rig, KEY_BACKUP), foreign[i]);
			rig_do(&rig, "HDEL %s %s", rig_key(&rig, KEY_CONTEXT), foreign[i]);
			done[atoi(foreign[i])] = true;
		}
		memmove(foreign[i], foreign[--nforeign], sizeof(foreign[0]));
	}
}

static void
rqd_pop(void)
{
	char call[24];
	int n;

	snprintf(call, sizeof(call), "m.%u", ++calls);
	n = rig_pop(&rig, (int)unit_below(8) + 1, 1048576, MAX, call, 0, known + nknown, NULL);
	assert_true(n >= 0);
	nknown += (size_t)n;
}

static const char *const ops[] = { "ack", "retry", "return", "dead", "stale", "defer" };

static void
rqd_settle(void)
{
	size_t i;
	const char *op, *answer;
	struct popped p;

	if (nknown == 0)
		return;
	i = unit_below(nknown);
	p = known[i];
	op = ops[unit_below(ARRAY_LEN(ops))];
	answer = rig_settle(&rig, op, &p, "0");
	assert_non_null(answer);
	if (strcmp(answer, "ok") == 0 && (op == ops[0] || op == ops[3]))
		done[atoi(p.tag)] = true;
	/*
	 * A foreign consumer has put back an acked message: it is done, and runs again.
	 */
	if (strcmp(answer, "taken") == 0 && op == ops[0])
		done[atoi(p.tag)] = true;
	rig_popped_done(&p, 1);
	known[i] = known[--nknown];
}

static void
some_time_passes(void)
{
	redisReply *r = rig_command(&rig, "ZRANGE %s 0 -1", rig_key(&rig, KEY_BACKUP));
	size_t i;

	for (i = 0; i < r->elements; i++) {
		if (unit_below(4) == 0)
			rig_expire(&rig, r->element[i]->str, r->element[i]->len);
	}
	freeReplyObject(r);
}

static void
nothing_lost(unsigned n)
{
	redisReply *all = rig_places(&rig);
	static bool seen[MESSAGES + 1];
	unsigned i, id;
	size_t k;

	memset(seen, 0, sizeof(seen));
	for (i = 0; i < 2; i++) {
		for (k = 0; k < all->element[i]->elements; k++) {
			assert_int_equal(sscanf(all->element[i]->element[k]->str, "{\"id\":%u}",
			    &id), 1);
			seen[id] = true;
		}
	}
	for (i = 1; i <= n; i++) {
		if (!done[i] && !seen[i])
			fail_msg("message %u is lost", i);
	}
	freeReplyObject(all);
}

TEST(test_shared)
{
	unsigned n = 0, i;
	struct ticked t = { .cursor = "0" };
	int steps = 0;

	server_do(&rig.server, "FLUSHALL");
	while (n < MESSAGES) {
		switch (unit_below(8)) {
		case 0:
			n++;
			rig_do(&rig, "LPUSH %s {\"id\":%u}", rig_key(&rig, KEY_QUEUE), n);
			break;
		case 1:
			rqd_pop();
			break;
		case 2:
		case 3:
			rqd_settle();
			break;
		case 4:
		case 5:
			foreign_step();
			break;
		case 6:
			if (unit_below(4) == 0)
				some_time_passes();
			break;
		case 7:
			assert_int_equal(rig_tick(&rig, 60, 45, true, 1e12, 250, 1048576, 0,
			    t.cursor, &t), 0);
			if (nknown > 0)
				assert_true(rig_renew(&rig, &known[unit_below(nknown)]) >= -2);
			break;
		}
		if (++steps % 50 == 0)
			nothing_lost(n);
	}
	/* Both die; then one rqd works off all messages. */
	rig_popped_done(known, (int)nknown);
	nknown = 0;
	for (i = 0; i < 3; i++) {
		redisReply *r = rig_command(&rig, "ZRANGE %s 0 -1", rig_key(&rig, KEY_BACKUP));
		size_t k;
		for (k = 0; k < r->elements; k++)
			rig_expire(&rig, r->element[k]->str, r->element[k]->len);
		freeReplyObject(r);
		do
			assert_int_equal(rig_tick(&rig, 60, 60, true, 1e12, 250, 1048576, 0,
			    NULL, &t), 0);
		while (t.more);
		nothing_lost(n);
		do {
			rqd_pop();
			while (nknown > 0) {
				struct popped *p = &known[--nknown];
				if (strcmp(rig_settle(&rig, "ack", p, NULL), "ok") == 0)
					done[atoi(p->tag)] = true;
				rig_popped_done(p, 1);
			}
		} while (rig_int(&rig, "LLEN %s", rig_key(&rig, KEY_QUEUE)) > 0 ||
		    rig_int(&rig, "ZCARD %s", rig_key(&rig, KEY_RETRY)) > 0);
	}
	for (i = 1; i <= n; i++)
		assert_true(done[i]);
	assert_int_equal(rig_int(&rig, "ZCARD %s", rig_key(&rig, KEY_BACKUP)), 0);
	/* The tick sweeps old fields of QDELIVERY; with a lease of 0 all are old. */
	for (int round = 0; round < 2; round++) {
		for (i = 0, strcpy(t.cursor, "0"); i == 0 || strcmp(t.cursor, "0") != 0; i++)
			rig_tick(&rig, 0, 0, false, 0, 250, 1048576, 0, t.cursor, &t);
	}
	assert_int_equal(rig_int(&rig, "HLEN %s", rig_key(&rig, KEY_DELIVERY)),
	    rig_int(&rig, "HLEN %s", rig_key(&rig, KEY_CONTEXT)));
}
