/*
 * Three daemons, random histories, and a Redis that now and then goes back to a random
 * earlier state.  Daemons hang for longer than the lease, and lose their connections
 * with the replies on them.  Redis restarts with all its data, or without its latest
 * writes.
 *
 * These must hold in all cases:
 *
 *	1. A message whose ack was confirmed, and whose ack Redis remembers, does not run
 *	   again; likewise after its dead letter, of which there is one.
 *	2. Whatever Redis remembers runs until it has succeeded or is dead.
 *
 * Rule 1 does not hold for a message that a daemon had in flight when Redis lost data:
 * Redis may have it in the list again, while the daemon has it.  It is in flight from
 * the pop in Redis on.  The pop's reply may wait in the socket of a daemon that hangs.
 * Before the daemon reads it, Redis may lose data, or another daemon may settle the
 * message.
 */
#include <hiredis/hiredis.h>
#include <stdlib.h>

#include "box.h"

#define BOXES		3
#define MESSAGES	4000
#define STORED		32		/* keys */
#define LEASE		(600 * MSEC)

struct fate {
	bool	pushed;		/* pushed, and Redis remembers */
	bool	done;		/* acked, and Redis remembers */
	bool	dead;		/* it has a dead letter, and Redis remembers */
	bool	over;		/* ever acked, or declared dead */
	bool	exempt;		/* rule 1 does not hold for it */
	bool	gone;		/* Redis has forgotten it */
	unsigned out;		/* deliveries that are not settled */
	bool	given[BOXES];	/* by Redis; the daemon may not know yet */
};

struct moment {
	unsigned	 n;
	char		*key[STORED];
	redisReply	*dump[STORED];
	struct fate	 fates[MESSAGES];
	unsigned	 pushed;
};

static struct box	*boxes[BOXES];
static usec_t		 hangs_until[BOXES], deaf_until[BOXES];
static struct fate	 fates[MESSAGES];
static unsigned		 pushed;
static struct moment	 moment;
static redisContext	*admin;
static unsigned		 cuts, restarts, hangs, cuts_of_conns, stale, again;

/* A record of events, printed after a failure. */
static struct event {
	usec_t		 at;
	const char	*what;
	int		 message, box;	/* -1: all, none */
	char		 token[40];
}			*events;
static size_t		 nevents;

static void
note(const char *what, int message, int b, const char *token)
{
	if ((nevents & (nevents - 1)) == 0)
		events = xreallocarray(events, 2 * nevents + 1, sizeof(*events));
	events[nevents] = (struct event){
		.at = clock_mono(), .what = what, .message = message, .box = b
	};
	snprintf(events[nevents++].token, sizeof(events->token), "%s", token);
}

static int
number_of(const struct box *b)
{
	int i;

	for (i = 0; i < BOXES && boxes[i] != b; i++)
		;
	return i;
}

/* Prints all that has happened to the message, to Redis and to the daemons. */
static void
tell(int message)
{
	usec_t from = 0;
	size_t i;

	for (i = 0; i < nevents; i++) {
		const struct event *e = &events[i];

		if (e->message == message && from == 0)
			from = e->at - 3 * SEC;
	}
	for (i = 0; i < nevents; i++) {
		const struct event *e = &events[i];

		if (e->at < from || (e->message != message && e->message != -1))
			continue;
		print_message("# %8.3f %s %s", (double)(e->at - events[0].at) / 1e6,
		    e->what, e->token);
		if (e->box >= 0)
			print_message(" by d%d", e->box);
		print_message("\n");
	}
}

static redisReply *
command(const char *fmt, ...)
{
	redisReply *r;
	va_list ap;

	va_start(ap, fmt);
	if (admin == NULL)
		admin = redisConnectUnix(server.path);
	r = redisvCommand(admin, fmt, ap);
	va_end(ap);
	if (r == NULL || r->type == REDIS_REPLY_ERROR)
		fail_msg("%s: %s", fmt, r == NULL ? admin->errstr : r->str);
	return r;
}

static void
forget_admin(void)
{
	if (admin != NULL)
		redisFree(admin);
	admin = NULL;
	server_drop_admin(&server);
}

static struct fate *
fate_of(const struct message *m)
{
	unsigned i = (unsigned)atoi(m->id);

	assert_in_range(i, 0, MESSAGES - 1);
	return &fates[i];
}

static bool
is_live(const char *id)
{
	redisReply *b = command("ZSCORE ordersBACKUP %s", id),
	    *r = command("ZSCORE ordersRETRY %s", id);
	bool live = b->type != REDIS_REPLY_NIL || r->type != REDIS_REPLY_NIL;

	freeReplyObject(b);
	freeReplyObject(r);
	return live;
}

/* Whether Redis has lost data since the pop of this delivery. */
static bool
is_forgotten(const struct message *m)
{
	redisReply *r = command("HGET ordersDELIVERY %s", m->id);
	bool forgotten = r->type != REDIS_REPLY_STRING || strstr(r->str, m->token) == NULL;

	freeReplyObject(r);
	return forgotten;
}

static void
delivered(struct box *b, const struct message *m)
{
	struct fate *f = fate_of(m);

	if (cuts > 0 && is_forgotten(m))
		f->exempt = true;
	note(f->exempt ? "delivered, exempt," : "delivered", (int)(f - fates), number_of(b),
	    m->token);
	if (!f->exempt && (f->done || f->dead)) {
		tell((int)(f - fates));
		fail_msg("message %s comes back after its %s", m->id,
		    f->done ? "ack" : "dead letter");
	}
	again += f->over;
	f->given[number_of(b)] = false;
	f->out++;
}

static const char *const settled_names[] = {
	[SETTLED_OK] = "settled", [SETTLED_STALE] = "stale",
	[SETTLED_DROPPED] = "dropped", [SETTLED_DEFERRED] = "letter deferred",
	[SETTLED_GAVE_UP] = "given up",
};

static void
settled(struct box *b, const struct message *m, enum verdict_op op, enum settled how)
{
	struct fate *f = fate_of(m);

	note(settled_names[how], (int)(f - fates), number_of(b), m->token);
	assert_true(f->out > 0);
	f->out--;
	f->given[number_of(b)] = false;
	stale += how == SETTLED_STALE;
	/* "ok" may also mean that another daemon holds it by now. */
	if (how != SETTLED_OK || f->exempt || is_live(m->id))
		return;
	f->done = f->done || op == VERDICT_ACK;
	f->dead = f->dead || op == VERDICT_DEAD;
}

/*
 * Reads from Redis which daemon has which message.  The test looks more often than leases
 * end, so that it misses no delivery.
 */
static void
look_at_given(void)
{
	redisReply *r = command("HGETALL ordersDELIVERY");
	unsigned id, number, who, at;
	size_t i;

	for (i = 0; i + 1 < r->elements; i += 2) {
		if (sscanf(r->element[i]->str, "%u", &id) == 1 && id < MESSAGES &&
		    sscanf(r->element[i + 1]->str, "%*u %*u d%u-%*[0-9a-f].%u.%u", &who,
		    &number, &at) == 3 && who < BOXES)
			fates[id].given[who] = true;
	}
	freeReplyObject(r);
}

static bool
is_in_hand(const struct fate *f)
{
	bool in_hand = f->out > 0;
	unsigned i;

	for (i = 0; i < BOXES; i++)
		in_hand |= f->given[i];
	return in_hand;
}

/* -- faults ------------------------------------------------------------------- */

/* Makes the saved moment that of an empty Redis. */
static void
moment_drop(void)
{
	while (moment.n > 0) {
		free(moment.key[--moment.n]);
		freeReplyObject(moment.dump[moment.n]);
	}
	moment.pushed = 0;
}

static void
moment_take(void)
{
	redisReply *names;
	size_t i;

	note("moment", -1, -1, "");
	look_at_given();
	moment_drop();
	names = command("EVAL %s 0",
	    "local out = {} for _, k in ipairs(redis.call('KEYS', '*')) do "
	    "out[#out + 1] = k out[#out + 1] = redis.call('DUMP', k) end return out");
	assert_true(names->elements <= 2 * STORED);
	for (i = 0; i < names->elements; i += 2) {
		moment.key[moment.n] = xstrdup(names->element[i]->str);
		moment.dump[moment.n++] = names->element[i + 1];
		names->element[i + 1] = NULL;
	}
	freeReplyObject(names);
	memcpy(moment.fates, fates, sizeof(fates));
	moment.pushed = pushed;
}

/*
 * Puts Redis back to the saved moment, and closes its connections.  One time in three it
 * makes Redis empty instead, and leaves the connections open.
 */
static void
lose_memory(void)
{
	bool flush = unit_below(3) == 0;
	unsigned i;

	note(flush ? "Redis is empty" : "Redis is as at the moment", -1, -1, "");
	look_at_given();
	if (flush)
		moment_drop();
	else {
		freeReplyObject(command("CLIENT KILL TYPE normal SKIPME yes"));
		server_drop_admin(&server);
	}
	freeReplyObject(command("FLUSHALL"));
	for (i = 0; i < moment.n; i++)
		freeReplyObject(command("RESTORE %s 0 %b", moment.key[i], moment.dump[i]->str,
		    moment.dump[i]->len));
	for (i = 0; i < pushed; i++) {
		struct fate *f = &fates[i], *then = &moment.fates[i];
		bool was = !flush && i < moment.pushed && then->pushed;
		f->done = was && then->done;
		f->dead = was && then->dead;
		f->exempt = f->exempt || is_in_hand(f) || (was && is_in_hand(then));
		f->gone = f->gone || !was;
		f->pushed = was;
	}
	cuts++;
}

static void
restart(void)
{
	redisReply *r = NULL;

	note("Redis restarts", -1, -1, "");
	forget_admin();
	server_kill(&server);
	server_again(&server);
	admin = redisConnectUnix(server.path);
	do {
		freeReplyObject(r);
		r = redisCommand(admin, "PING");
		assert_non_null(r);
	} while (r->type == REDIS_REPLY_ERROR);	/* LOADING */
	freeReplyObject(r);
	restarts++;
}

/* Makes a random fault, at most one in up to 250 ms.  Those that last may overlap. */
static void
some_fault(unsigned i)
{
	static usec_t next;
	usec_t now = clock_mono();
	struct box *b = boxes[i];

	if (now < next)
		return;
	next = now + (usec_t)unit_below(250) * MSEC;
	switch (unit_below(16)) {
	case 0:
		lose_memory();
		break;
	case 1:
		restart();
		break;
	case 2:
	case 3:
		moment_take();
		break;
	case 4:
	case 5:
	case 6:
	case 7:
		note("hangs", -1, (int)i, "");
		hangs_until[i] = now + LEASE + (usec_t)unit_below(1500) * MSEC;
		hangs++;
		break;
	default:
		if (conn_is_ready(b->conn) && deaf_until[i] == 0) {
			note("deaf", -1, (int)i, "");
			box_deafen(b);
			deaf_until[i] = now + (usec_t)unit_below(30) * MSEC;
		}
		break;
	}
}

/* Ends the connection of a daemon that gets no replies, some time after box_deafen(). */
static void
end_deafness(unsigned i)
{
	struct box *b = boxes[i];

	if (deaf_until[i] == 0 || clock_mono() < deaf_until[i])
		return;
	note("connection ends", -1, (int)i, "");
	if (conn_is_ready(b->conn))
		conn_reset(b->conn, "deaf");
	deaf_until[i] = 0;
	cuts_of_conns++;
}

/* -- steps -------------------------------------------------------------------- */

static void
push_one(void)
{
	if (pushed == MESSAGES || server_int(&server, "LLEN orders") > 10)
		return;
	freeReplyObject(command("LPUSH orders {\"id\":%u}", pushed));
	note("pushed", (int)pushed, -1, "");
	fates[pushed].pushed = true;
	pushed++;
}

static void
end_one(struct box *b, bool ack)
{
	unsigned k = (unsigned)unit_below(b->n), chance = ack ? 0 : (unsigned)unit_below(10);
	struct fate *f = fate_of(b->msgs[k]);

	note(chance < 5 ? "ack" : chance < 6 ? "retry" : chance < 7 ? "defer" :
	    chance < 9 ? "dead" : "return", (int)(f - fates), number_of(b), b->msgs[k]->token);
	if (chance < 5) {
		f->over = true;
		box_settle(b, k, VERDICT_ACK, false, 0);
	} else if (chance < 6) {
		box_settle(b, k, VERDICT_RETRY, true, (usec_t)unit_below(50) * MSEC);
	} else if (chance < 7) {
		box_settle(b, k, VERDICT_DEFER, false, (usec_t)unit_below(50) * MSEC);
	} else if (chance < 9) {
		f->over = true;
		box_settle(b, k, VERDICT_DEAD, true, 0);
	} else {
		box_settle(b, k, VERDICT_RETURN, false, 0);
	}
}

static void
step(bool calm)
{
	unsigned i = (unsigned)unit_below(BOXES);
	struct box *b = boxes[i];
	static usec_t tick;
	unsigned k;

	if (!calm)
		some_fault(i);
	if (!calm && unit_below(3) == 0)
		push_one();
	if (clock_mono() < hangs_until[i])
		return;
	end_deafness(i);
	if (b->n > 0 && (calm || unit_below(8) == 0))
		end_one(b, calm);
	loop_turn(b->loop, (usec_t)unit_below(3) * MSEC);
	if (clock_mono() < tick)
		return;
	look_at_given();
	for (k = 0; k < BOXES; k++)
		queue_tick(boxes[k]->queue);
	tick = clock_mono() + 200 * MSEC;
}

static bool
all_over(void)
{
	unsigned i;

	for (i = 0; i < pushed; i++) {
		if (fates[i].out > 0 || (!fates[i].over && !fates[i].gone))
			return false;
	}
	return !left_over() && server_int(&server, "LLEN orders") == 0;
}

static void
check_letters(void)
{
	static unsigned letters[MESSAGES];
	redisReply *r = command("XRANGE ordersDEAD - +");
	size_t i;

	memset(letters, 0, sizeof(letters));
	for (i = 0; i < r->elements; i++) {
		unsigned id = (unsigned)atoi(r->element[i]->element[1]->element[1]->str);
		if (++letters[id] > 1 && !fates[id].exempt)
			fail_msg("message %u has %u letters", id, letters[id]);
	}
	freeReplyObject(r);
}

static int
setup(void **state)
{
	(void)state;
	server_start(&server, "--appendonly", "yes", "--appendfsync", "always", NULL);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	server_stop(&server);
	return 0;
}

TEST_WITH(test_cut, setup, teardown)
{
	usec_t end;
	unsigned i;
	char name[8];

	for (i = 0; i < BOXES; i++) {
		boxes[i] = xcalloc(1, sizeof(struct box));
		snprintf(name, sizeof(name), "d%u", i);
		box_init(boxes[i], &server, name);
		boxes[i]->cfg->lease = boxes[i]->cfg->foreign_timeout = LEASE;
		boxes[i]->cfg->concurrency = 4;
		boxes[i]->config->redis.timeout = SEC;
		boxes[i]->on_deliver = delivered;
		boxes[i]->on_settled = settled;
		box_start(boxes[i], 4);
	}
	for (end = clock_mono() + 20 * SEC; clock_mono() < end;)
		step(false);
	for (i = 0; i < BOXES; i++) {
		if (deaf_until[i] > 0)
			conn_reset(boxes[i]->conn, "deaf");
		hangs_until[i] = 0;
	}
	for (end = clock_mono() + BOX_WAIT; !all_over() && clock_mono() < end;) {
		for (i = 0; i < 50; i++)
			step(true);
	}
	print_message("# %u messages; Redis lost its memory %u times, restarted %u times; "
	    "%u hangs, %u connections cut; %u stale, %u run again\n",
	    pushed, cuts, restarts, hangs,
	    cuts_of_conns, stale, again);
	for (i = 0; i < pushed; i++) {
		if (fates[i].out == 0 && (fates[i].over || fates[i].gone))
			continue;
		print_message("# message %u is lost%s%s\n", i, fates[i].exempt ?
		    ", in hand at a cut" : "", fates[i].out > 0 ? ", not settled" : "");
		tell((int)i);
	}
	assert_true(all_over());
	check_letters();
	for (i = 0; i < BOXES; i++) {
		box_done(boxes[i]);
		free(boxes[i]);
	}
	moment_drop();
	forget_admin();
	free(events);
}
