/*
 * Random sequences of the scripts on messages that belong to groups.  After each step every
 * message is in one place, and QGROUP and QORDER fit.  With one place for a group, no message
 * starts before all earlier ones of its group are done; with N, no more than N are in flight.
 * While a handler holds its group, only messages of it start that were in flight then.
 * Half of the runs pop from the left end.  Each dead letter is announced once, and each delivery
 * gets the text that an earlier one of its message has saved last.
 */
#define RIG_KEY "{orders}"
#include "script_test.h"

enum { MESSAGES = 4000, STEPS = 1500, GROUPS = 4 };

enum state { NOWHERE, WAITS, STARTED, DEAD_LETTER, DONE };

static struct record {
	int		 group;		/* GROUPS: none */
	bool		 later;		/* it did not come by the list, or came again */
	enum state	 state;
	bool		 in_flight;
	bool		 holds;		/* its handler holds its group */
	bool		 placed;	/* it was in flight then, and has a place */
	unsigned	 saved;		/* its last text; 0: none */
	struct popped	 p;		/* its last delivery */
	bool		 has;
} records[MESSAGES];
static int nrecords, letters;
static unsigned calls, texts;

static void
payload(char text[64], int i)
{
	static const char *const forms[] = {
		"{\"id\":%d,\"g\":\"c%d\"}", "{\"g\":\"c%2$d\",\"id\":%1$d}",
		"{\"x\":{\"g\":1},\"g\":\"c%2$d\",\"id\":%1$d}",
		"{\"id\":1,\"n\":%d,\"g\":\"c%d\"}",
		"{\"n\":%d,\"\\u0067\":\"c%d\"}",
	};

	if (records[i].group == GROUPS)
		snprintf(text, 64, "{\"id\":%d,\"g\":%s}", i, i % 2 == 0 ? "null" : "1.5");
	else
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(text, 64, forms[i % 5], i, records[i].group);
#pragma GCC diagnostic pop
}

static int
number(const struct popped *p)
{
	char text[64];

	for (int i = 0; i < nrecords; i++) {
		payload(text, i);
		if (strlen(text) == p->len && memcmp(text, p->payload, p->len) == 0)
			return i;
	}
	fail_msg("an unknown message: %.*s", (int)p->len, p->payload);
	abort();
}

static void
step_push(void)
{
	char text[64], tag[32];
	bool later = unit_below(8) == 0;
	struct words w = { 0 };

	if (nrecords == MESSAGES)
		return;
	records[nrecords] = (struct record){ .group = (int)unit_below(GROUPS + 1),
	    .state = WAITS, .later = later };
	payload(text, nrecords++);
	if (!later) {
		push(text);
		return;
	}
	snprintf(tag, sizeof(tag), "x#push%d", nrecords);
	rig_words(&w, "", "0", tag, "1", text, NULL);
	freeReplyObject(rig_script(&rig, "push", "BCRD", &w));
}

static void
check_start(int i)
{
	const struct record *r = &records[i], *o;
	int flying = 0;

	for (o = records; o < records + nrecords; o++) {
		if (o == r || o->group != r->group || r->group == GROUPS)
			continue;
		flying += o->in_flight;
		if (o->holds && !r->placed)
			fail_msg("%d starts while %d holds the group", i, (int)(o - records));
		if (rig.places > 1)
			continue;
		if (o->state == STARTED)
			fail_msg("%d starts before %d is done", i, (int)(o - records));
		if (o < r && o->state == WAITS && !o->later && !r->later && r->state == WAITS)
			fail_msg("%d starts before %d", i, (int)(o - records));
	}
	if (flying >= rig.places)
		fail_msg("%d starts, and %d are in flight", i, flying);
}

static void
ended(int i, enum state state)
{
	records[i].in_flight = records[i].holds = false;
	if (state != STARTED || rig.places == 1)
		records[i].state = state;
}

static void
step_pop(int most)
{
	static const char *const turns[] = { "retry", "new", "newest", "fewest", "due" };
	size_t kind = unit_below(ARRAY_LEN(turns));
	int n, want = kind == 2 || kind == 3 ? 1 : (int)unit_below((unsigned)most) + 1;
	struct popped p[200];
	char call[24];
	bool lost = unit_below(8) == 0;

	rig.turn = turns[kind];
	snprintf(call, sizeof(call), "m.%u", ++calls);
	n = rig_pop(&rig, want, unit_below(4) == 0 ? 100 : 1048576, MAX, call, 0, p, NULL);
	assert_true(n >= 0);
	for (int k = 0; k < n; k++) {
		int i = number(&p[k]);

		check_start(i);
		assert_true(records[i].state == WAITS || records[i].state == STARTED);
		assert_false(records[i].in_flight);
		assert_int_equal(p[k].saved != NULL ? atoi(p[k].saved) : 0, records[i].saved);
		records[i].state = STARTED;
		records[i].in_flight = true;
		records[i].holds = false;
		if (records[i].has)
			rig_popped_done(&records[i].p, 1);
		records[i].p = p[k];
		records[i].has = true;
	}
	if (!lost)
		return;
	assert_int_equal(rig_reclaim(&rig, call, 20, false), n);
	for (int k = 0; k < n; k++)
		records[number(&p[k])].in_flight = false;
}

/* One that is in flight; -1: none was found. */
static int
any_in_flight(void)
{
	for (int k = 0; k < 50; k++) {
		int i = (int)unit_below((unsigned)nrecords + 1);
		if (i < nrecords && records[i].in_flight)
			return i;
	}
	return -1;
}

/* Whether messages of the group have a place, and wait for a pop: those start in any case. */
static bool
any_is_due(int group)
{
	return rig_int(&rig, "EVAL %s 2 %s %s c%d", "local n = 0 "
	    "for _, r in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do "
	    "local tag = string.match(r, '^' .. ARGV[1] .. '%z0%z(.*)$') "
	    "if tag and redis.call('ZSCORE', KEYS[2], tag) then n = n + 1 end end return n",
	    rig_key(&rig, KEY_ORDER), rig_key(&rig, KEY_RETRY), group) > 0;
}

static void
step_settle(const char *op)
{
	static const char *const ops[] = { "ack", "ack", "retry", "defer", "return", "dead",
	    "keep" };
	int i = any_in_flight(), k;
	bool keep;
	char text[16] = "";

	if (i < 0)
		return;
	if (unit_below(3) == 0) {
		records[i].saved = unit_below(4) > 0 ? ++texts : 0;
		if (records[i].saved > 0)
			snprintf(text, sizeof(text), "%u", texts);
		assert_string_equal(rig_settle(&rig, "save", &records[i].p, text), "ok");
	}
	if (op == NULL)
		op = ops[unit_below(ARRAY_LEN(ops))];
	keep = strcmp(op, "keep") == 0;
	if (keep && any_is_due(records[i].group))
		return;
	assert_string_equal(rig_settle(&rig, op, &records[i].p, keep ? "1000" :
	    op[0] == 'd' && op[2] == 'a' ? "1" : unit_below(2) == 0 ? "0" : "1000"), "ok");
	if (rig.places > 1 && (strcmp(op, "retry") == 0 || strcmp(op, "defer") == 0))
		records[i].later = true;
	letters += strcmp(op, "dead") == 0;
	if (strcmp(op, "return") != 0)
		records[i].placed = false;
	ended(i, strcmp(op, "ack") == 0 ? DONE : strcmp(op, "dead") == 0 ? DEAD_LETTER : STARTED);
	records[i].holds = keep;
	for (k = 0; keep && k < nrecords; k++) {
		if (records[k].group == records[i].group)
			records[k].placed = records[k].in_flight;
	}
}

/* Some leases end. */
static void
step_tick(void)
{
	struct ticked t;
	int i = any_in_flight();

	if (i >= 0 && unit_below(2) == 0) {
		rig_expire(&rig, records[i].p.tag, records[i].p.taglen);
		records[i].in_flight = false;
	}
	rig_do(&rig, "HDEL %s groups", rig_key(&rig, KEY_STATS));
	do
		assert_int_equal(rig_tick(&rig, 60, 60, true, rig_now(&rig), 250, 1048576, 0, "0",
		    &t), 0);
	while (t.more != 0);
	assert_string_equal(t.warning, "");
}

/* Everything that waits for later is due. */
static void
step_due(void)
{
	redisReply *r = rig_command(&rig, "ZRANGE %s 0 -1", rig_key(&rig, KEY_RETRY));

	for (size_t i = 0; i < r->elements; i++)
		rig_fall_due(&rig, r->element[i]->str, r->element[i]->len);
	for (int i = 0; i < nrecords; i++)
		records[i].holds = false;
	freeReplyObject(r);
}

/* Cancels, or drops, what waits in this key. */
static void
step_remove(enum key key)
{
	redisReply *r = rig_command(&rig, "ZRANGE %s 0 -1", rig_key(&rig, key)), *body, *value;
	const char *state;
	struct words w = { 0 };
	struct popped p;

	if (r->elements > 0) {
		size_t at = unit_below((unsigned)r->elements);
		body = rig_command(&rig, "HGET %s %b", rig_key(&rig, KEY_CONTEXT),
		    r->element[at]->str, r->element[at]->len);
		p = (struct popped){ .payload = body->str, .len = body->len };
		int i = number(&p);
		if (unit_below(2) == 0) {
			value = rig_command(&rig, "HGET %s %b", rig_key(&rig, KEY_DELIVERY),
			    r->element[at]->str, r->element[at]->len);
			state = rig_cancel(&rig, "drop", r->element[at]->str, r->element[at]->len);
			if (strcmp(state, "waiting") == 0 || strcmp(state, "held") == 0)
				ended(i, DONE);
			else	/* its lease had ended: it must not be cancelled */
				rig_do(&rig, "HSET %s %b %s", rig_key(&rig, KEY_DELIVERY),
				    r->element[at]->str, r->element[at]->len, value->str);
			freeReplyObject(value);
		} else {
			rig_words(&w, "drop", "0", "h", "e", "rqd", "", NULL);
			words_mem(&w, r->element[at]->str, r->element[at]->len);
			redisReply *gone = rig_script(&rig, "drop", "CRDXQHGO", &w);
			if (gone->element[0]->integer == 1)
				ended(i, DONE);
			freeReplyObject(gone);
		}
		freeReplyObject(body);
	}
	freeReplyObject(r);
}

static void
step_replay(void)
{
	redisReply *r = rig_command(&rig, "XRANGE %s - + COUNT 1", rig_key(&rig, KEY_DEAD));
	struct words w = { 0 };
	struct popped p;

	if (r->elements > 0) {
		redisReply *fields = r->element[0]->element[1];

		p = (struct popped){ .payload = fields->element[3]->str,
		    .len = fields->element[3]->len };
		int i = number(&p);
		rig_words(&w, "1048576", r->element[0]->element[0]->str, NULL);
		freeReplyObject(rig_script(&rig, "dead_retry", "BCRDX", &w));
		records[i].state = WAITS;
		records[i].later = true;
	}
	freeReplyObject(r);
}

/* A key is deleted: the tick makes it again from the others. */
static void
step_delete(void)
{
	static const enum key keys[] = { KEY_ORDER, KEY_GROUP, KEY_HELD };
	size_t i = unit_below(ARRAY_LEN(keys));

	rig_do(&rig, "DEL %s", rig_key(&rig, keys[i]));
	step_tick();
}

static void
run(int places)
{
	static const char *const alerts[] = { "{orders}alerts" };

	rig_do(&rig, "FLUSHALL");
	rig.left = unit_below(2) == 0;
	rig.tell = "LPUSH:0:q";
	rig.more = alerts;
	rig.nmore = 1;
	letters = 0;
	rig.by = "g";
	rig.places = places;
	rig.max_crashes = 1000000;
	nrecords = 0;
	for (int s = 0; s < STEPS; s++) {
		switch (unit_below(16)) {
		case 0: case 1: case 2: case 3: step_push(); break;
		case 4: case 5: case 6: step_pop(s % 3 == 0 ? 100 : 3); break;
		case 7: case 8: case 9: step_settle(NULL); break;
		case 10: step_tick(); break;
		case 11: step_due(); break;
		case 12: step_remove(KEY_RETRY); break;
		case 13: step_remove(KEY_HELD); break;
		case 14: step_replay(); break;
		case 15: if (unit_below(10) == 0) step_delete(); break;
		}
		rig_check_clean(&rig);
	}
	for (int s = 0; s < 100 * nrecords + 100 && rig_int(&rig, "EXISTS %s %s %s %s",
	    rig_key(&rig, KEY_QUEUE), rig_key(&rig, KEY_BACKUP), rig_key(&rig, KEY_RETRY),
	    rig_key(&rig, KEY_HELD)) > 0; s++) {
		step_due();
		step_pop(100);
		step_settle("ack");
		step_settle("ack");
	}
	assert_int_equal(rig_int(&rig, "LLEN %s", alerts[0]), letters);
	rig_do(&rig, "DEL %s %s", rig_key(&rig, KEY_DEAD), alerts[0]);
	step_tick();
	assert_int_equal(rig_left(&rig), 0);
	print_message("# %d places: %d messages, %u pops\n", places, nrecords, calls);
	for (int i = 0; i < nrecords; i++) {
		if (records[i].state != DONE && records[i].state != DEAD_LETTER && rig.places == 1)
			fail_msg("message %d is lost", i);
		if (records[i].has)
			rig_popped_done(&records[i].p, 1);
		records[i].has = false;
	}
}

TEST(test_in_order)
{
	for (int i = 0; i < unit_rounds(8); i++)
		run(1);
}

TEST(test_places)
{
	for (int i = 0; i < unit_rounds(4); i++) {
		run(2);
		run(5);
	}
}
