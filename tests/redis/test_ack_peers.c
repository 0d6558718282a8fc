/*
 * Kind "ack", several daemons at one queue: leases that expire, messages that others
 * have taken, daemons that die.
 */
#include "box.h"

#include <signal.h>

static void
two_boxes(struct box *other, unsigned slots, usec_t lease)
{
	box.cfg->lease = box.cfg->foreign_timeout = lease;
	push("{\"id\":1}");
	box_take(&box, 1);
	box_init(other, &server, "b");
	other->cfg->lease = other->cfg->foreign_timeout = lease;
	box_start(other, slots);
}

/* A daemon takes a message behind a tick that saw none in hand, and dies: it is noticed in time. */
FIXTURE_TEST(test_expiry_unseen)
{
	usec_t lease = unit_time(600 * MSEC), since;
	struct box *dead = xcalloc(1, sizeof(*dead));

	box.cfg->lease = lease;
	box_start(&box, 0);
	box_turn(&box, lease);		/* until it may judge leases, and has ticked */
	box_init(dead, &server, "dead");
	dead->cfg->lease = lease;
	push("{\"id\":1}");
	box_take(dead, 1);
	since = clock_mono();
	box_set_slots(&box, 1);
	while (box.n == 0 && clock_mono() - since <= lease + 5 * SEC)
		loop_turn(box.loop, 20 * MSEC);
	assert_int_equal(box.n, 1);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	box_done(dead);
	free(dead);
}

/*
 * A daemon hangs until the lease of its message ends: another daemon takes the message.
 */
FIXTURE_TEST(test_expiry)
{
	struct box *other = xcalloc(1, sizeof(*other));

	two_boxes(other, 1, unit_time(600 * MSEC));
	queue_tick(other->queue);
	WAIT(other, other->n == 1);
	assert_int_equal(other->requeued, 1);
	assert_int_equal(other->msgs[0]->crashes, 1);
	assert_int_equal(other->msgs[0]->attempts, 0);
	WAIT(&box, box.losts == 1);
	finish(&box, 0, VERDICT_STALE, false, 0, SETTLED_STALE);
	finish(other, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	assert_int_equal(server_int(&server,
	    "EXISTS orders ordersBACKUP ordersRETRY ordersDELIVERY"), 0);
	box_done(other);
	free(other);
}

/*
 * A message was requeued because its lease ended, and no daemon has popped it: its first
 * owner takes it back, and can still ack it.
 */
FIXTURE_TEST(test_taken_back)
{
	struct box *other = xcalloc(1, sizeof(*other));

	two_boxes(other, 0, unit_time(600 * MSEC));
	queue_tick(other->queue);
	WAIT(other, other->requeued == 1);
	assert_int_equal(server_int(&server, "ZCARD ordersRETRY"), 1);
	WAIT(&box, server_int(&server, "ZCARD ordersBACKUP") == 1);
	assert_int_equal(box.losts, 0);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	assert_int_equal(server_int(&server, "EXISTS ordersBACKUP ordersRETRY ordersDELIVERY"), 0);
	box_done(other);
	free(other);
}

/* The queue renews the lease of a message for as long as it is in flight. */
FIXTURE_TEST(test_renewal)
{
	struct box *other = xcalloc(1, sizeof(*other));
	usec_t end;

	two_boxes(other, 1, unit_time(1500 * MSEC));
	for (end = clock_mono() + unit_time(5 * SEC); clock_mono() < end;) {
		box_turn(&box, 20 * MSEC);
		box_turn(other, 20 * MSEC);
		queue_tick(other->queue);
	}
	assert_int_equal(other->n + other->requeued, 0);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	box_done(other);
	free(other);
}

/*
 * A foreign consumer takes a message from QBACKUP and pushes it again: the queue reports
 * the message as lost, and its result as stale.
 */
FIXTURE_TEST(test_taken)
{
	box.cfg->lease = 300 * MSEC;
	push("{\"id\":1}");
	box_take(&box, 1);
	server_do(&server, "ZREM ordersBACKUP 1");
	push("{\"id\":1}");
	WAIT(&box, box.losts == 1);
	box_set_slots(&box, 0);
	finish(&box, 0, VERDICT_STALE, false, 0, SETTLED_STALE);
	assert_int_equal(keys(), 1);
}

FIXTURE_TEST(test_foreign_expired)
{
	box.cfg->lease = box.cfg->foreign_timeout = 300 * MSEC;
	server_do(&server, "ZADD ordersBACKUP 1000 9");
	server_do(&server, "HSET ordersCONTEXT 9 {\"id\":9}");
	server_do(&server, "ZADD ordersBACKUP 1000 nobody");
	box_start(&box, 1);
	box_turn(&box, 300 * MSEC);
	queue_tick(box.queue);
	WAIT(&box, box.n == 1);
	assert_string_equal(box.msgs[0]->id, "9");
	assert_int_equal(box.dropped, 1);
	assert_int_equal(box.requeued, 1);
}

/*
 * Another daemon has finished messages whose leases ended: their results are stale, and
 * the queue writes neither a retry nor a dead letter.
 */
FIXTURE_TEST(test_gone)
{
	static const enum verdict_op ops[] = { VERDICT_RETRY, VERDICT_DEAD, VERDICT_RETURN,
	    VERDICT_ACK };
	unsigned i;

	box.cfg->lease = unit_time(900 * MSEC);
	box.cfg->concurrency = ARRAY_LEN(ops) + 1;
	for (i = 0; i <= ARRAY_LEN(ops); i++)
		server_int(&server, "LPUSH orders {\"id\":%u}", i);
	box_start(&box, ARRAY_LEN(ops) + 1);
	WAIT(&box, box.n == ARRAY_LEN(ops) + 1);
	box_set_slots(&box, 0);
	server_do(&server, "DEL ordersBACKUP ordersCONTEXT");
	for (i = 0; i <= ARRAY_LEN(ops); i++)
		server_do(&server, "HDEL ordersDELIVERY %u", i);
	for (i = 0; i < ARRAY_LEN(ops); i++)
		finish(&box, 0, ops[i], false, 0, SETTLED_STALE);
	WAIT(&box, box.losts == 1);
	finish(&box, 0, VERDICT_STALE, false, 0, SETTLED_STALE);
	assert_false(left_over());
	assert_int_equal(server_int(&server, "EXISTS orders ordersDEAD"), 0);
	/* The queue also deletes the record of its last pop. */
	WAIT(&box, server_int(&server, "EXISTS ordersDELIVERY") == 0);
}

enum { FLEET = 3, FLEET_MESSAGES = 500 };

static void
fleet_open(struct box *b, unsigned i)
{
	char name[8];

	snprintf(name, sizeof(name), "d%u", i);
	box_init(b, &server, name);
	b->cfg->lease = b->cfg->foreign_timeout = SEC;
	box_start(b, 5);
}

/*
 * Daemons die with messages in flight, hang, and lose their connections, and Redis
 * forgets its scripts.  All messages are acked, and Redis keeps no data of a delivery.
 */
FIXTURE_TEST(test_fleet)
{
	static bool acked[FLEET_MESSAGES];
	struct box *fleet[FLEET];
	unsigned i, left = FLEET_MESSAGES, deaths = 0, again = 0;
	usec_t next = 0;

	memset(acked, 0, sizeof(acked));
	for (i = 0; i < FLEET_MESSAGES; i++)
		server_int(&server, "LPUSH orders {\"id\":%u}", i);
	for (i = 0; i < FLEET; i++) {
		fleet[i] = xcalloc(1, sizeof(struct box));
		fleet_open(fleet[i], i);
	}
	while (left > 0) {
		struct box *b = fleet[unit_below(FLEET)];
		unsigned k, chance = (unsigned)unit_below(100);
		for (k = 0; k < b->n; k++) {
			int id = atoi(b->msgs[k]->id);
			if (unit_below(4) != 0)
				continue;
			if (unit_below(3) == 0) {
				box_settle(b, k, VERDICT_RETRY, true, unit_below(50) * MSEC);
				break;
			}
			again += acked[id];
			left -= !acked[id];
			acked[id] = true;
			box_settle(b, k, VERDICT_ACK, false, 0);
			break;
		}
		box_turn(b, (usec_t)unit_below(5) * MSEC);
		if (chance == 0 && deaths < 20) {
			deaths++;
			box_done(b);
			fleet_open(b, FLEET + deaths);
		} else if (chance < 4 && conn_is_ready(b->conn)) {
			server_do(&server, "CLIENT KILL ID %lld", (long long)conn_id(b->conn));
		} else if (chance == 4) {
			server_do(&server, "SCRIPT FLUSH");
		}
		if (clock_mono() > next) {
			for (i = 0; i < FLEET; i++)
				queue_tick(fleet[i]->queue);
			next = clock_mono() + 300 * MSEC;
		}
	}
	print_message("# %u deaths, %u acked again\n", deaths, again);
	/* Settle also messages that were delivered again after their ack. */
	box_drain(fleet, FLEET, NULL);
	for (i = 0; i < FLEET; i++) {
		box_done(fleet[i]);
		free(fleet[i]);
	}
}

/* Writes what `rqctl cancel` writes. */
static void
cancel(const struct message *m, const char *mode)
{
	char value[256];

	snprintf(value, sizeof(value), "0 0 !%s:%s %.6f %zu", mode, m->token,
	    (double)clock_wall() / (double)SEC, strlen(m->id));
	server_int(&server, "HSET ordersDELIVERY %s %s", m->tag, value);
}

static enum verdict_op	last_op;

static void
note_op(struct box *b, const struct message *m, enum verdict_op op, enum settled how)
{
	(void)b;
	(void)m;
	(void)how;
	last_op = op;
}

/*
 * The queue reports a cancelled message at once after a hint from rqctl, else with its
 * next renewal.  It keeps the lease until the message is settled.
 */
FIXTURE_TEST(test_cancelled)
{
	usec_t start;
	int k;

	box.on_settled = note_op;
	box.cfg->lease = unit_time(6 * SEC);
	box_start(&box, 1);
	for (k = 0; k < 2; k++) {
		push("{\"id\":1}");
		box_set_slots(&box, 1);
		WAIT(&box, box.n == 1);
		box_set_slots(&box, 0);
		cancel(box.msgs[0], k == 0 ? "drop" : "dead");
		start = clock_mono();
		if (k == 0)
			queue_renew(box.queue);
		WAIT(&box, box.cancels == (unsigned)k + 1);
		assert_true(clock_mono() - start < unit_time(k == 0 ? 1800 * MSEC : 10 * SEC));
		box_turn(&box, 2 * box.cfg->lease / 5);	/* it is renewed meanwhile */
		assert_int_equal(box.cancels, k + 1);
		assert_int_equal(server_int(&server, "ZCARD ordersBACKUP"), 1);
		if (k == 0)
			finish(&box, 0, VERDICT_DROP, false, 0, SETTLED_OK);
		else
			finish(&box, 0, VERDICT_RETURN, false, 0, SETTLED_OK);
		assert_int_equal(last_op, k == 0 ? VERDICT_DROP : VERDICT_DEAD);
		assert_int_equal(server_int(&server, "XLEN ordersDEAD"), k);
		assert_int_equal(server_int(&server, "EXISTS orders ordersBACKUP ordersRETRY"), 0);
	}
}

/* Renewals and pops that Redis has run. */
static long long
zmscores(void)
{
	const char *at = strstr(server_do(&server, "INFO commandstats"), "zmscore:calls=");

	return at != NULL ? atoll(at + strlen("zmscore:calls=")) : 0;
}

/* Sends a renewal to a Redis that has stopped, and lets the box take what came before. */
static void
renew_stopped(void)
{
	server_signal(&server, SIGSTOP);
	queue_reconfigure(box.queue, box.config, box.cfg);
	box_turn(&box, 50 * MSEC);
}

/*
 * Two renewals are on their way.  The first finds that the lease has ended and that others hold
 * all places of the fleet, so the message ends; the second finds it cancelled.
 */
FIXTURE_TEST(test_cancelled_done)
{
	long long before;

	box.cfg->fleet_concurrency = 1;
	push("{\"id\":1}");
	box_take(&box, 1);
	box_set_slots(&box, 0);
	server_do(&server, "ZADD ordersRETRY 1 1");
	server_do(&server, "ZREM ordersBACKUP 1");
	server_do(&server, "ZADD ordersBACKUP 9999999999 other");
	before = zmscores();
	renew_stopped();
	server_signal(&server, SIGCONT);
	while (zmscores() == before)
		usleep(1000);
	server_do(&server, "ZREM ordersBACKUP other");
	cancel(box.msgs[0], "drop:me@host");
	renew_stopped();
	assert_int_equal(box.losts, 1);
	box_settle(&box, 0, VERDICT_STALE, false, 0);
	WAIT(&box, box.settled[SETTLED_STALE] == 1);
	server_signal(&server, SIGCONT);
	while (zmscores() == before + 1)
		usleep(1000);
	box_turn(&box, 50 * MSEC);
	assert_int_equal(box.ups, 1);
}

/*
 * A message is cancelled while its owner gets no replies: an ack stays an ack, and a
 * retry does not make the message due again.
 */
FIXTURE_TEST(test_cancelled_kept)
{
	static const enum verdict_op ops[] = { VERDICT_ACK, VERDICT_RETRY, VERDICT_DROP };
	size_t i;

	box.on_settled = note_op;
	box_start(&box, 1);
	for (i = 0; i < ARRAY_LEN(ops); i++) {
		push("{\"id\":1}");
		box_set_slots(&box, 1);
		WAIT(&box, box.n == 1);
		box_set_slots(&box, 0);
		cancel(box.msgs[0], "drop");
		box_deafen(&box);
		box_settle(&box, 0, ops[i], ops[i] == VERDICT_RETRY, HOUR);
		while (server_int(&server, "ZCARD ordersBACKUP") > 0)
			loop_turn(box.loop, 10 * MSEC);
		box_cut(&box, &server);
		WAIT(&box, total_settled(&box) == i + 1);
		assert_int_equal(box.last_settled, SETTLED_OK);
		assert_int_equal(server_int(&server, "EXISTS orders ordersBACKUP ordersRETRY"), 0);
	}
}

/*
 * The owner of a cancelled message hangs.  The daemon that takes the message next learns
 * that it was cancelled, and need not run it.
 */
FIXTURE_TEST(test_cancelled_expired)
{
	struct box *other = xcalloc(1, sizeof(*other));

	two_boxes(other, 1, unit_time(600 * MSEC));
	cancel(box.msgs[0], "dead");
	queue_tick(other->queue);
	WAIT(other, other->n == 1);
	assert_int_equal(other->msgs[0]->cancel, CANCEL_DEAD);
	assert_int_equal(other->msgs[0]->token[0] == '!', 0);
	WAIT(&box, box.losts == 1);
	finish(&box, 0, VERDICT_STALE, false, 0, SETTLED_STALE);
	finish(other, 0, VERDICT_RETURN, false, 0, SETTLED_OK);
	assert_int_equal(server_int(&server, "XLEN ordersDEAD"), 1);
	assert_int_equal(server_int(&server,
	    "EXISTS orders ordersBACKUP ordersRETRY ordersDELIVERY"), 0);
	box_done(other);
	free(other);
}
