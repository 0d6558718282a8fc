/*
 * Kinds "ack", "unique" and "stream": random histories of two daemons, compared with a model of
 * what doc/guarantees.md promises.  The first daemon has a bad network, and hangs at times.
 * Redis refuses commands at times, and forgets.  Of a stream, another consumer of the group
 * takes, claims and abandons entries, and entries are deleted.  Half of the histories of kind
 * "ack" have groups: with one place, no message of a group begins before the earlier ones of it
 * are done; with two, no more are in flight.  The seed of the first history
 * is RQD_SEED, or 1.  A history that fails is printed, each line with its seed.
 */
#include "box.h"

#include <hiredis/hiredis.h>

enum { GROUPS = 3, MESSAGES = 100, HOLDS = 8, STEPS = 90, LINES = 2000 };

/* A delivery that the queue has not reported as settled. */
struct hold {
	struct message	*m;
	unsigned	 number;	/* of the message's deliveries */
	bool		 given;		/* the engine has settled it */
	enum verdict_op	 op;
	unsigned	 saved;		/* the last text of it; 0: none */
};

/* What the model knows of a message; its index is its id. */
static struct record {
	struct hold	 holds[HOLDS];
	unsigned	 deliveries;
	unsigned	 failures;	/* reported */
	unsigned	 acked;
	unsigned	 texts;		/* that its deliveries have saved */
	unsigned	 kept;		/* the next delivery gets this text, or a later one */
	bool		 may;		/* a delivery is expected */
	bool		 torn;		/* a lease ended: two results may count as done */
	bool		 forgot;	/* Redis has forgotten something of it */
	bool		 may_be_lost;
	bool		 may_be_done;	/* a result was given that ends it */
	bool		 done;		/* and the queue said that it has acted */
	usec_t		 foreign;	/* another consumer of the stream took it then; or 0 */
} records[MESSAGES];

static struct box a, b;
static unsigned pushed, copied;		/* messages by now, and when the copy was made */
static bool running, forgets, was_full;
static enum kind kind;
static int places;			/* of each group; 0: no groups */
static usec_t began, lease;
static FILE *proxy;			/* the network of the first daemon */
static char history[LINES][100];
static unsigned nlines;
static uint64_t seed;

static void PRINTF(1, 2)
note(const char *fmt, ...)
{
	char *line = history[nlines++ % LINES];
	va_list ap;
	int n = snprintf(line, 100, "%8.1f ", (double)(clock_mono() - began) / MSEC);

	va_start(ap, fmt);
	vsnprintf(line + n, 100 - (size_t)n, fmt, ap);
	va_end(ap);
}

/* The id of a message: of a stream that of its entry. */
static const char *
name_of(unsigned i)
{
	static char name[24];

	snprintf(name, sizeof(name), kind == KIND_STREAM ? "%u-1" : "%u",
	    kind == KIND_STREAM ? i + 1 : i);
	return name;
}

static struct record *
record_of(const struct message *m)
{
	unsigned i = (unsigned)atoi(m->id) - (kind == KIND_STREAM);

	assert_true(i < pushed && strcmp(m->id, name_of(i)) == 0);
	return &records[i];
}

/* The group of a message; -1: none. */
static int
group_of(unsigned i)
{
	return i % (GROUPS + 1) < GROUPS ? (int)(i % (GROUPS + 1)) : -1;
}

static void
message_text(unsigned i, char text[48])
{
	if (places > 0 && group_of(i) >= 0)
		snprintf(text, 48, "{\"id\":%s,\"g\":\"%d\"}", name_of(i), group_of(i));
	else
		snprintf(text, 48, "{\"id\":%s}", name_of(i));
}

/* Whether messages wait that no pop has taken. */
static bool
any_waits(void)
{
	static const char unread[] = "local last = '0-0' "
	    "if redis.call('EXISTS', 'orders') == 0 then return 0 end "
	    "for _, g in ipairs(redis.call('XINFO', 'GROUPS', 'orders')) do last = g[8] end "
	    "return #redis.call('XRANGE', 'orders', '(' .. last, '+', 'COUNT', 1)";

	if (kind == KIND_STREAM)
		return server_int(&server, "EVAL %s 0", unread) > 0;
	return server_int(&server, "EXISTS orders") > 0;
}

/* An entry waits for the group, or is pending, until it is done; then it is neither. */
static void
look_at_pending(void)
{
	static const char state[] = "local last = '0-0' "
	    "if redis.call('EXISTS', 'orders') == 0 then return 0 end "
	    "for _, g in ipairs(redis.call('XINFO', 'GROUPS', 'orders')) do last = g[8] end "
	    "if last ~= '0-0' and #redis.call('XPENDING', 'orders', 'rqd', ARGV[1], ARGV[1], 1) "
	    "> 0 then return 2 end "
	    "return tonumber(string.match(ARGV[1], '%d+')) > tonumber(string.match(last, '%d+')) "
	    "and 1 or 0";
	unsigned i = (unsigned)unit_below(pushed + 1);
	const struct record *r = &records[i];
	long long is;

	if (kind != KIND_STREAM || i == pushed || r->forgot)
		return;
	is = server_int(&server, "EVAL %s 0 %s", state, name_of(i));
	if (is == 0 && !r->may_be_done)
		fail_msg("entry %s is not pending, and not done", name_of(i));
	if (is == 2 && r->done && !r->torn)
		fail_msg("entry %s is done, and still pending", name_of(i));
}

static int
print_history(void **state UNUSED)
{
	for (unsigned i = nlines > LINES ? nlines - LINES : 0; running && i < nlines; i++)
		print_message("# %llu %s\n", (unsigned long long)seed, history[i % LINES]);
	server_stop(&server);
	return 0;
}

/* Whether its lease may have ended: a little less than the lease, for the clocks. */
static bool
is_over(const struct hold *h)
{
	return clock_boot() - h->m->ours_at >= lease - lease / 50;
}

/* The message begins: which others of its group may be in flight, or still to be done? */
static void
look_at_group(const struct record *r)
{
	unsigned i = (unsigned)(r - records), k;
	int flying = 0;

	for (k = 0; k < pushed && places > 0 && group_of(i) >= 0; k++) {
		const struct record *o = &records[k];
		const struct hold *h;
		bool owned = false;

		if (k == i || group_of(k) != group_of(i) || o->forgot || r->forgot)
			continue;
		for (h = o->holds; h < o->holds + HOLDS; h++)
			owned |= h->m != NULL && !h->given && !is_over(h);
		flying += owned && !o->torn;
		if (places == 1 && k < i && !o->may_be_done)
			fail_msg("message %u begins before %u", i, k);
	}
	if (places > 0 && flying >= places)
		fail_msg("message %u begins, and %d of its group are in flight", i, flying);
}

static struct hold *
hold_of(struct record *r, const struct message *m)
{
	for (struct hold *h = r->holds; h < r->holds + HOLDS; h++) {
		if (h->m == m)
			return h;
	}
	abort();
}

/* What the other consumer has had for longer than foreign_timeout may be ours. */
static void
abandon(struct record *r)
{
	if (r->foreign > 0 && clock_mono() - r->foreign >= lease - lease / 50)
		r->may = r->torn = true;
}

/* A delivery gets the text that an earlier one of its message has saved last. */
static void
look_at_text(const struct record *r, const struct message *m)
{
	char id[24] = "";
	unsigned n = 0;

	if (m->saved != NULL)
		assert_true(sscanf(m->saved, "%23s %u", id, &n) == 2 && strcmp(id, m->id) == 0);
	if (n > r->texts)
		fail_msg("message %s gets text %u, which it has not saved", m->id, n);
	if (n < r->kept && !r->torn && !r->forgot)
		fail_msg("message %s gets text %u, not %u", m->id, n, r->kept);
}

static void
delivered(struct box *d, const struct message *m)
{
	struct record *r = record_of(m);
	char body[48];
	struct hold *h;

	note("%s gets %s %s attempts %u crashes %u", d->instance, m->id, m->token, m->attempts,
	    m->crashes);
	if (kind == KIND_UNIQUE)
		snprintf(body, sizeof(body), "%s", m->id);
	else
		message_text((unsigned)(r - records), body);
	assert_true(m->len == strlen(body) && memcmp(m->payload, body, m->len) == 0);
	assert_true(d->n <= (unsigned)d->cfg->concurrency);
	abandon(r);
	look_at_text(r, m);
	for (h = r->holds; h < r->holds + HOLDS; h++) {
		if (h->m != NULL && is_over(h))
			r->may = r->torn = true;
		/* It has acted; only the queue does not know yet. */
		if (h->m != NULL && h->given && h->op != VERDICT_ACK && h->op != VERDICT_DEAD)
			r->may = true;
	}
	if (!r->may && !r->forgot)
		fail_msg("message %s was delivered again without a cause", m->id);
	if (m->attempts > r->failures || (m->crashes > 0 && lease == HOUR))
		fail_msg("message %s has wrong counts; it has failed %u times", m->id, r->failures);
	if (m->attempts < r->failures && lease == HOUR && !r->forgot)
		fail_msg("message %s has lost a failure of %u", m->id, r->failures);
	r->may = false;
	look_at_group(r);
	h = hold_of(r, NULL);
	*h = (struct hold){ .m = d->msgs[d->n - 1], .number = ++r->deliveries };
}

static void
settled(struct box *d, const struct message *m, enum verdict_op op, enum settled how)
{
	struct record *r = record_of(m);
	struct hold *h = hold_of(r, m);
	bool last = h->number == r->deliveries;

	note("%s: %s %s is settled: %d", d->instance, m->id, m->token, (int)how);
	/* At maxmemory a dead letter may have to wait. */
	if (how != SETTLED_DEFERRED || op != VERDICT_DEAD || !was_full)
		assert_in_range(how, SETTLED_OK, SETTLED_STALE);
	if (how == SETTLED_STALE && last && !is_over(h) && !r->forgot)
		fail_msg("message %s: stale without a cause", m->id);
	r->torn |= is_over(h);
	if (how == SETTLED_OK && last && h->saved > r->kept)
		r->kept = h->saved;
	r->done |= how == SETTLED_OK && (op == VERDICT_ACK || op == VERDICT_DEAD);
	if (how == SETTLED_OK && op == VERDICT_ACK)
		r->acked++;
	else if (last && (how != SETTLED_OK || op != VERDICT_DEAD))
		r->may = true;
	h->m = NULL;
}

static void
settle(struct box *d, enum verdict_op op)
{
	unsigned i = (unsigned)unit_below(d->n);
	struct record *r = record_of(d->msgs[i]);
	struct hold *h = hold_of(r, d->msgs[i]);

	note("%s settles %s %s: verdict %d", d->instance, h->m->id, h->m->token, (int)op);
	h->given = true;
	h->op = op;
	r->failures += op == VERDICT_RETRY;
	r->may_be_done |= op == VERDICT_ACK || op == VERDICT_DEAD;
	box_settle(d, i, op, op == VERDICT_RETRY, (usec_t)(1 + unit_below(50)) * MSEC);
}

static void
save_any(struct box *d)
{
	struct message *m = d->msgs[unit_below(d->n)];
	struct record *r = record_of(m);
	char text[64];

	hold_of(r, m)->saved = ++r->texts;
	snprintf(text, sizeof(text), "%s %u", m->id, r->texts);
	note("%s saves %s", d->instance, text);
	queue_save(d->queue, m, text, strlen(text));
}

static void
settle_any(struct box *d)
{
	static const enum verdict_op ops[] = { VERDICT_ACK, VERDICT_ACK, VERDICT_ACK, VERDICT_ACK,
		VERDICT_RETRY, VERDICT_DEFER, VERDICT_RETURN, VERDICT_DEAD, VERDICT_HOLD,
		VERDICT_HOLD_GROUP };

	while (d->n > 0 && unit_below(2) == 0)
		save_any(d);
	if (d->n > 0)
		settle(d, ops[unit_below(ARRAY_LEN(ops))]);
}

static void
turn(bool hangs, usec_t time)
{
	usec_t end = clock_mono() + time;

	do {
		if (!hangs)
			loop_turn(a.loop, 500);
		loop_turn(b.loop, 500);
		/* Two daemons must not believe at the same time that a message is theirs. */
		for (struct record *r = records; r < records + pushed; r++) {
			unsigned owners = 0;
			for (struct hold *h = r->holds; h < r->holds + HOLDS; h++)
				owners += h->m != NULL && !h->given && message_is_sure(h->m);
			assert_true(owners <= 1 || r->forgot);
		}
	} while (clock_mono() < end);
}

static void
push_some(void)
{
	const char *id;
	char text[48];

	for (uint64_t n = 1 + unit_below(4); n > 0 && pushed < MESSAGES; n--) {
		id = name_of(pushed);
		note("push %s", id);
		if (kind == KIND_UNIQUE)
			snprintf(text, sizeof(text), "%s", id);
		else
			message_text(pushed, text);
		records[pushed++] = (struct record){ .may = true };
		if (kind == KIND_STREAM)
			server_int(&server, "XADD orders %s message {\"id\":%s}", id, id);
		else
			server_int(&server, kind == KIND_UNIQUE ? "ZADD orders 0 %s" :
			    "LPUSH orders %s", text);
	}
}

/* Both daemons work on while the fault lasts, or only the second one. */
static void
last(bool hangs, usec_t time)
{
	usec_t end = clock_mono() + time;

	do {
		if (unit_below(3) == 0)
			settle_any(&b);
		if (!hangs && unit_below(3) == 0)
			settle_any(&a);
		if (unit_below(4) == 0)
			queue_tick(b.queue);
		turn(hangs, (usec_t)unit_below(5) * MSEC);
	} while (clock_mono() < end);
}

/* What one way carries is lost, and then the connection. */
static void
lose(const char *way)
{
	note("%.*s", (int)strcspn(way, "\n"), way);
	fputs(way, proxy);
	if (unit_below(2) == 0)
		push_some();
	settle_any(&a);
	last(false, (usec_t)unit_below(30) * MSEC);
	fputs("swallow none\ndrop\n", proxy);
}

/* The daemon hangs, or what it sends and gets is late, or what it gets from its next pop on. */
static void
hang(bool expires)
{
	static const char *const ways[][2] = { { "", "" },
		{ "blackhole 1\n", "blackhole 0\n" }, { "hold a-\n", "release\n" } };
	const char *const *way = ways[expires ? 0 : unit_below(ARRAY_LEN(ways))];
	usec_t time = lease == HOUR ? 20 * MSEC : (usec_t)unit_below(4) * lease / 2;

	note("hang, %.*s", (int)strcspn(way[0], "\n"), way[0]);
	/* The best moment: the reply of its pop is on the way. */
	box_set_slots(&b, 0);
	settle_any(&a);
	turn(false, 2 * MSEC);
	fputs(way[0], proxy);
	push_some();
	for (int i = 0; i < 20 && !a.fetching; i++)
		loop_turn(a.loop, 500);
	loop_turn(a.loop, 0);
	for (int i = 0; i < 100 && any_waits(); i++)
		continue;
	box_set_slots(&b, (unsigned)b.cfg->concurrency);
	last(way[0][0] == '\0', expires ? 3 * lease / 2 : time);
	fputs(way[1], proxy);
}

static void
refuse(void)
{
	static const char *const words[] = { "zrem", "hdel", "zadd", "hset", "hstrlen", "ltrim",
		"zscore", "hmget", "time", "zcard", "hget", "evalsha", "zmscore", "lindex",
		"xack", "xreadgroup" };
	const char *word = words[unit_below(ARRAY_LEN(words))];
	bool full = unit_below(4) == 0;

	was_full |= full;
	note("refuse %s", full ? "all that grows" : word);
	server_do(&server, full ? "CONFIG SET maxmemory 1" : "ACL SETUSER default -%s", word);
	last(false, (usec_t)unit_below(30) * MSEC);
	server_do(&server, full ? "CONFIG SET maxmemory 0" : "ACL SETUSER default +%s", word);
}

static void
busy(void)
{
	redisContext *c = redisConnectUnix(server.path);
	int done = 0;
	void *reply;

	note("busy");
	server_do(&server, "CONFIG SET busy-reply-threshold 1");
	redisAppendCommand(c, "EVAL %s 0", "while true do end");
	while (!done)
		assert_int_equal(redisBufferWrite(c, &done), REDIS_OK);
	last(false, (usec_t)unit_below(40) * MSEC);
	while (strncmp(server_do(&server, "SCRIPT KILL"), "NOTBUSY", 7) == 0)
		continue;
	assert_int_equal(redisGetReply(c, &reply), REDIS_OK);
	freeReplyObject(reply);
	redisFree(c);
	server_do(&server, "CONFIG SET busy-reply-threshold 5000");
}

/* Redis comes back from a copy made before, or empty, perhaps with a new connection. */
static void
copy_or_forget(void)
{
	static const char copy[] = "redis.call('SELECT', ARGV[2]) redis.call('FLUSHDB') "
	    "redis.call('SELECT', ARGV[1]) for _, key in ipairs(redis.call('KEYS', '*')) do "
	    "redis.call('COPY', key, key, 'DB', ARGV[2]) end return 1";
	bool back = lease < HOUR;

	note(copied == 0 ? "copy" : back ? "back to the copy" : "forget all");
	if (copied == 0) {
		server_int(&server, "EVAL %s 0 0 1", copy);
		copied = pushed;
		return;
	}
	server_do(&server, back ? "EVAL %s 0 1 0" : "FLUSHALL", copy);
	if (unit_below(2) == 0)
		fputs("drop\n", proxy);
	for (unsigned i = 0; i < pushed; i++) {
		records[i].forgot = true;
		records[i].may_be_lost |= !back || i >= copied;
	}
}

/* The other consumer of the group finishes what it has. */
static void
finish_foreign(void)
{
	for (struct record *r = records; r < records + pushed; r++) {
		if (r->foreign == 0)
			continue;
		note("another consumer finishes %s", name_of((unsigned)(r - records)));
		server_do(&server, "XACK orders rqd %s", name_of((unsigned)(r - records)));
		abandon(r);
		r->foreign = 0;
		r->acked++;
		r->done = true;
	}
}

/*
 * Another consumer of the group takes an entry, to finish it later or never, or claims one that
 * may be in flight, which changes nothing.  Or an entry is deleted.
 */
static void
meddle(void)
{
	unsigned i = (unsigned)unit_below(pushed + 1);
	struct record *r = &records[i];
	usec_t at = clock_mono();
	const char *id;

	if (i == pushed || server_int(&server, "EXISTS orders") == 0 ||
	    server_int(&server, "EVAL %s 0",
	    "return #redis.call('XINFO', 'GROUPS', 'orders')") == 0)
		return;
	switch (unit_below(4)) {
	case 3:
		finish_foreign();
		break;
	case 0:
		id = server_do(&server, "EVAL %s 0", "local e = redis.call('XREADGROUP', 'GROUP', "
		    "'rqd', 'x', 'COUNT', 1, 'STREAMS', 'orders', '>') "
		    "return e and e[1][2][1][1] or ''");
		if (*id == '\0')
			return;
		r = &records[i = (unsigned)atoi(id) - 1];
		note("another consumer takes %s", name_of(i));
		r->foreign = at;
		r->may_be_done = true;
		r->may = false;
		break;
	case 1:
		note("another consumer claims %s", name_of(i));
		if (!r->done && r->deliveries > 0)
			server_do(&server, "XCLAIM orders rqd x 0 %s", name_of(i));
		break;
	case 2:
		note("%s is deleted", name_of(i));
		server_int(&server, "XDEL orders %s", name_of(i));
		/* A copy in QCONTEXT stays. */
		r->may_be_lost |= r->deliveries == 0;
		r->may_be_done |= r->deliveries == 0;
		break;
	}
}

static void
step(void)
{
	look_at_pending();
	switch (unit_below(30)) {
	case 0: case 1: lose(unit_below(3) == 0 ? "swallow up\n" : "swallow down\n"); break;
	case 3: fputs("drop\n", proxy); break;
	case 4: hang(false); break;
	case 5: case 6: case 7: case 8: refuse(); break;
	case 9: busy(); break;
	case 11: case 12: queue_tick(unit_below(2) == 0 ? b.queue : a.queue); break;
	case 13: case 14: case 15: case 16: push_some(); break;
	case 17: case 18: case 19: kind == KIND_STREAM ? meddle() : settle_any(&a); break;
	default: settle_any(unit_below(3) == 0 ? &b : &a); break;
	}
	if (forgets && unit_below(30) == 0)
		copy_or_forget();
	turn(false, (usec_t)unit_below(4) * MSEC);
}

static void
drain(void)
{
	static const char letters_of[] = "local n = 0 for _, e in "
	    "ipairs(redis.call('XRANGE', 'ordersDEAD', '-', '+')) do "
	    "if e[2][2] == ARGV[1] then n = n + 1 end end return n";
	static const char pending[] = "local n = 0 if redis.call('EXISTS', 'orders') == 0 then "
	    "return 0 end for _, g in ipairs(redis.call('XINFO', 'GROUPS', 'orders')) do "
	    "n = n + g[6] end return n";
	/* What waits for its letter is due in a minute. */
	static const char hurry[] = "local t = redis.call('TIME')[1] + 10 for _, tag in ipairs("
	    "redis.call('ZRANGE', 'ordersRETRY', '(' .. t, '+inf', 'BYSCORE')) do "
	    "redis.call('ZADD', 'ordersRETRY', 'XX', 0, tag) end return 0";
	usec_t end = clock_mono() + MINUTE;

	if (lease == HOUR || unit_below(2) == 0)
		finish_foreign();
	while (left_over() || any_waits() || a.n + b.n > 0 || (kind == KIND_STREAM &&
	    server_int(&server, "EVAL %s 0", pending) > 0)) {
		if (clock_mono() >= end)
			fail_msg("%lld leases stay", server_int(&server, "ZCARD ordersBACKUP"));
		while (a.n + b.n > 0)
			settle(a.n > 0 ? &a : &b, VERDICT_ACK);
		server_int(&server, "EVAL %s 0", hurry);
		queue_tick(a.queue);
		queue_tick(b.queue);
		turn(false, 5 * MSEC);
	}
	queue_close(a.queue);
	queue_close(b.queue);
	WAIT(&a, a.closes == 1);
	WAIT(&b, b.closes == 1);
	assert_int_equal(keys(), server_int(&server, "EXISTS ordersDEAD orders"));
	for (unsigned id = 0; id < pushed; id++) {
		const struct record *r = &records[id];
		long long letters = server_int(&server, "EVAL %s 0 %s", letters_of, name_of(id));
		if (r->acked + letters == 0 && !r->may_be_lost)
			fail_msg("message %u is lost", id);
		if (r->acked + letters > 1 && (letters > 1 || !r->torn) && !r->forgot)
			fail_msg("message %u: acked %u, letters %lld", id, r->acked, letters);
	}
}

static void
run(void)
{
	static const enum kind kinds[] = { KIND_STREAM, KIND_ACK, KIND_UNIQUE };
	struct server network;		/* only its address */
	const char *dir = getenv("BUILDDIR");
	char command[512];

	unit_state = seed;
	forgets = unit_below(3) == 0;
	was_full = false;
	server_do(&server, "FLUSHALL");
	pushed = copied = nlines = 0;
	lease = seed % 3 == 0 ? 600 * MSEC : HOUR;
	kind = kinds[(seed + (seed - 1) / 3) % ARRAY_LEN(kinds)];
	places = kind == KIND_ACK ? (int)unit_below(4) - 1 : 0;
	if (places < 0)
		places = 0;
	began = clock_mono();
	running = true;
	snprintf(network.uri, sizeof(network.uri), "unix:%s/bad", server.dir);
	snprintf(command, sizeof(command), "exec %s/tests/fault/flakyproxy %s/bad %s >/dev/null",
	    dir != NULL ? dir : ".", server.dir, server.path);
	assert_non_null(proxy = popen(command, "w"));
	setlinebuf(proxy);
	box_init(&a, &network, "a");
	box_init(&b, &server, "b");
	for (struct box *d = &a; d != NULL; d = d == &a ? &b : NULL) {
		d->cfg->lease = d->cfg->foreign_timeout = lease;
		d->cfg->kind = kind;
		d->cfg->max_crashes = 1000;
		if (places > 0)
			xreplace(&d->cfg->group_by, "g");
		d->cfg->group_concurrency = places;
		d->cfg->concurrency = d == &a ? 6 : 2;
		d->on_deliver = delivered;
		d->on_settled = settled;
		box_start(d, (unsigned)d->cfg->concurrency);
	}
	if (unit_below(2) == 0)
		a.config->redis.timeout = 500 * MSEC;
	for (int i = 0; i < STEPS; i++) {
		step();
		if (lease < HOUR && i % (STEPS / 3) == 10)
			hang(true);
	}
	drain();
	print_message("# %llu: %u messages, %u deliveries, %u connections\n",
	    (unsigned long long)seed, pushed, a.delivered + b.delivered, a.ups);
	box_done(&a);
	box_done(&b);
	pclose(proxy);
	running = false;
}

/* In two of three histories no lease ends: what is lost comes back, and nothing has crashed. */
TEST_WITH(test_histories, NULL, print_history)
{
	server_start(&server, NULL);
	seed = getenv("RQD_SEED") != NULL ? strtoull(getenv("RQD_SEED"), NULL, 10) : 1;
	for (int i = 0; i < unit_rounds(12); i++, seed++)
		run();
}
