/*
 * Three daemons, random histories, and a Redis that now and then is what it was at a
 * random earlier moment.  Daemons hang for longer than the lease, lose their connections
 * and the replies on them; Redis restarts whole, or loses the end of its past.
 *
 * What must hold, whatever happens:
 *
 *	1. A message whose ack was confirmed, and whose ack Redis remembers, does not run
 *	   again; likewise after its dead letter, of which there is one.
 *	2. Whatever Redis remembers, or a daemon had in hand when Redis forgot it, runs
 *	   until it has succeeded or is dead.
 *
 * Exempt from 1 is a message that a daemon had in hand at the moment when Redis lost its
 * memory: Redis may have it in the list again, while the daemon has it in hand.
 */
#include <hiredis/hiredis.h>
#include <stdlib.h>

#include "box.h"

#define BOXES		3
#define MESSAGES	4000
#define STORED		32		/* keys */
#define LEASE		(600 * MSEC)

struct fate {
	bool	pushed;		/* Redis has it, or had it and remembers */
	bool	done;		/* acked, and Redis remembers */
	bool	dead;		/* likewise */
	bool	over;		/* a handler has succeeded, or said dead: ever */
	bool	exempt;
	bool	gone;		/* Redis has lost its push while nobody had it in hand */
	unsigned ended_at;	/* cuts when it was given back last */
	unsigned out;		/* deliveries that are not settled */
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
static unsigned		 cuts, restarts, hangs, cuts_of_conns, rescued, stale, again;

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

/* Its pop was before a cut, and its reply came after it. */
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

	(void)b;
	if (cuts > 0 && is_forgotten(m))
		f->exempt = true;
	if (!f->exempt && (f->done || f->dead))
		fail_msg("message %s comes back after its %s", m->id,
		    f->done ? "ack" : "dead letter");
	again += f->over;
	f->out++;
}

static void
settled(struct box *b, const struct message *m, enum verdict_op op, enum settled how)
{
	struct fate *f = fate_of(m);

	(void)b;
	assert_true(f->out > 0);
	f->out--;
	rescued += how == SETTLED_RESCUED;
	stale += how == SETTLED_STALE;
	/*
	 * Redis had taken it back before the cut, and its answer was on the way: nobody
	 * but Redis had the message when Redis forgot it.
	 */
	if (how == SETTLED_OK && op != VERDICT_ACK && op != VERDICT_DEAD &&
	    f->ended_at != cuts)
		f->gone = true;
	/* "ok" may also mean that another daemon holds it by now. */
	if (how != SETTLED_OK || f->exempt || is_live(m->id))
		return;
	f->done = f->done || op == VERDICT_ACK;
	f->dead = f->dead || op == VERDICT_DEAD;
}

/* -- faults ------------------------------------------------------------------- */

static void
moment_drop(void)
{
	while (moment.n > 0) {
		free(moment.key[--moment.n]);
		freeReplyObject(moment.dump[moment.n]);
	}
}

static void
moment_take(void)
{
	redisReply *names;
	size_t i;

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

/* Redis is what it was then; or, now and then, empty, with its connections as they are. */
static void
lose_memory(void)
{
	bool flush = unit_below(3) == 0;
	unsigned i;

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
		f->exempt = f->exempt || f->out > 0 || (was && then->out > 0);
		if (!was && f->out == 0)
			f->gone = true;
		f->pushed = was;
	}
	cuts++;
}

static void
restart(void)
{
	redisReply *r = NULL;

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

/* One after the other, some of them at once. */
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
		hangs_until[i] = now + LEASE + (usec_t)unit_below(1500) * MSEC;
		hangs++;
		break;
	default:
		if (conn_is_ready(b->conn) && deaf_until[i] == 0) {
			box_deafen(b);
			deaf_until[i] = now + (usec_t)unit_below(30) * MSEC;
		}
		break;
	}
}

/* Its replies are lost: its connection ends, some time after it became deaf. */
static void
end_deafness(unsigned i)
{
	struct box *b = boxes[i];

	if (deaf_until[i] == 0 || clock_mono() < deaf_until[i])
		return;
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
	fates[pushed].pushed = true;
	pushed++;
}

static void
end_one(struct box *b, bool ack)
{
	unsigned k = (unsigned)unit_below(b->n), chance = ack ? 0 : (unsigned)unit_below(10);
	struct fate *f = fate_of(b->msgs[k]);

	f->ended_at = cuts;
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
	    "%u hangs, %u connections cut; %u rescued, %u stale, %u run again\n",
	    pushed, cuts, restarts, hangs,
	    cuts_of_conns, rescued, stale, again);
	for (i = 0; i < pushed; i++) {
		if (fates[i].out > 0 || (!fates[i].over && !fates[i].gone))
			print_message("# message %u is lost%s%s\n", i, fates[i].exempt ?
			    ", in hand at a cut" : "", fates[i].out > 0 ? ", not settled" : "");
	}
	assert_true(all_over());
	check_letters();
	for (i = 0; i < BOXES; i++) {
		box_done(boxes[i]);
		free(boxes[i]);
	}
	moment_drop();
	forget_admin();
}

int
main(void)
{
	return unit_run(NULL, NULL);
}
