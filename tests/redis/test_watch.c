/*
 * Watched keys: a change is reported once per arming, whatever happens to either
 * connection.
 */
#include "harness.h"

#include <hiredis/hiredis.h>
#include <time.h>

#include "loop/timer.h"
#include "redis/script.h"
#include "redis/slots.h"
#include "redis/watch.h"

#define TIMEOUT		(2 * SEC)

const struct script script_table[] = {
	{ "arm", "return redis.call('LLEN', KEYS[1])", 34,
	    "8c65b2bc1e1aa28b7e857a77051f1ccb4b611adb" },
	{ NULL, NULL, 0, NULL }
};

struct fixture;

struct watched {
	struct watch_key key;
	struct fixture	*f;
	unsigned	 changes;
	void		(*then)(struct watched *);
};

struct fixture {
	struct harness h;
	struct server s;
	struct watch *w;
	struct watched keys[40];
	struct call	calls[64];
	unsigned	ons, offs;
	char		why[256];
};

static void
changed(void *arg)
{
	struct watched *k = arg;

	k->changes++;
	if (k->then != NULL)
		k->then(k);
}

static void
mode(bool on, const char *why, void *arg)
{
	struct fixture *f = arg;

	assert_int_equal(on, watch_is_on(f->w));
	assert_int_equal(why == NULL, on);
	*(on ? &f->ons : &f->offs) += 1;
	if (why != NULL)
		snprintf(f->why, sizeof(f->why), "%s", why);
}

static void
arm_script(struct watch *w, const struct script *s, struct call *c, int nkeys, int argc,
    const char *const *argv, const size_t *argvlen)
{
	struct words words = words_of(nkeys, argc, argv, argvlen);

	request_init(&c->request, call_answered, c);
	watch_request(w, &c->request, s, &words);
}

static struct fixture *current;

static void
up(struct harness *h UNUSED)
{
	watch_conn_up(current->w);
}

static void
down(struct harness *h UNUSED)
{
	watch_conn_down(current->w);
}

static void
add(struct fixture *f, unsigned i, const char *name)
{
	f->keys[i].f = f;
	f->keys[i].key = (struct watch_key){ .key = name, .len = strlen(name),
		.changed = changed, .arg = &f->keys[i] };
	watch_add(f->w, &f->keys[i].key);
}

static int
setup(void **state)
{
	struct fixture *f = xcalloc(1, sizeof(*f));

	current = f;
	harness_start(&f->h, &f->s, TIMEOUT, 0);
	f->h.on_up = up;
	f->h.on_down = down;
	f->w = watch_new(f->h.loop, f->h.conn, &f->h.opt, "rqd-test", mode, f);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	watch_free(f->w);
	harness_done(&f->h);
	server_stop(&f->s);
	free(f);
	clock_real(0);
	return 0;
}

#define FIXTURE_TEST(name)	TEST_WITH(name, setup, teardown)

static void
start(struct fixture *f)
{
	conn_start(f->h.conn);
	WAIT(&f->h, f->ons == 1);
	loop_turn(f->h.loop, 0);
}

/* Arms a key, and waits until it is. */
static void
arm(struct fixture *f, const char *key)
{
	struct call *c = &f->calls[63];

	memset(c, 0, sizeof(*c));
	arm_script(f->w, script_table, c, 1, 1, &key,
	    (size_t[]){ strlen(key) });
	WAIT(&f->h, c->answers == 1);
	assert_int_equal(c->answer, CONN_REPLY);
	assert_int_equal(c->error, REPLY_OK);
}

/* Turns the loop until what was sent has arrived. */
static void
quiet(struct fixture *f)
{
	for (int i = 0; i < 10; i++)
		loop_turn(f->h.loop, 5 * MSEC);
}

FIXTURE_TEST(test_push)
{
	struct fixture *f = *state;
	struct watched *a = &f->keys[0], *b = &f->keys[1], *same = &f->keys[2];

	add(f, 0, "a");
	add(f, 1, "b\xff\r\n");
	add(f, 2, "a");
	start(f);
	/* setting up counts as a change */
	assert_int_equal(a->changes, 1);
	assert_int_equal(b->changes, 1);
	arm(f, "a");
	arm(f, "b\xff\r\n");
	server_int(&f->s, "LPUSH a 1");
	WAIT(&f->h, a->changes == 2);
	assert_int_equal(same->changes, 2);
	assert_int_equal(b->changes, 1);
	/* one report per arming */
	server_int(&f->s, "LPUSH a 2");
	server_int(&f->s, "LPUSH c 2");
	quiet(f);
	assert_int_equal(a->changes, 2);
	arm(f, "a");
	server_do(&f->s, "RENAME c a");
	WAIT(&f->h, a->changes == 3);
	server_int(&f->s, "LPUSH %b x", "b\xff\r\n", (size_t)4);
	WAIT(&f->h, b->changes == 2);
	arm(f, "b\xff\r\n");
	server_do(&f->s, "EVAL %s 1 %b", "return redis.call('DEL', KEYS[1])",
	    "b\xff\r\n", (size_t)4);
	WAIT(&f->h, b->changes == 3);
	assert_int_equal(a->changes, 3);
	/* a removed key is not reported any more */
	arm(f, "a");
	watch_remove(f->w, &a->key);
	server_int(&f->s, "LPUSH a 3");
	WAIT(&f->h, same->changes == 4);
	assert_int_equal(a->changes, 3);
	assert_int_equal(f->offs, 0);
	/* an idle watch has no timer */
	assert_int_equal(timer_next(f->h.loop), USEC_MAX);
}

FIXTURE_TEST(test_flushall)
{
	struct fixture *f = *state;
	static char names[40][8];

	for (unsigned i = 0; i < 40; i++) {
		snprintf(names[i], sizeof(names[i]), "k%u", i);
		add(f, i, names[i]);
	}
	start(f);
	server_int(&f->s, "LPUSH k7 1");
	for (unsigned i = 0; i < 40; i++)
		arm(f, names[i]);
	server_do(&f->s, "FLUSHALL");
	WAIT(&f->h, f->keys[39].changes == 2);
	quiet(f);
	for (unsigned i = 0; i < 40; i++)
		assert_int_equal(f->keys[i].changes, 2);
}

/*
 * Either connection is cut, or both: the watch reports each key as changed, and can arm
 * it again.
 */
FIXTURE_TEST(test_kill)
{
	struct fixture *f = *state;
	struct watched *a = &f->keys[0];
	unsigned before;

	add(f, 0, "a");
	start(f);
	arm(f, "a");
	before = a->changes;
	server_int(&f->s, "CLIENT KILL ID %lld", (long long)conn_id(f->h.conn));
	WAIT(&f->h, f->h.ups == 2 && watch_is_on(f->w));
	WAIT(&f->h, a->changes > before);
	quiet(f);
	arm(f, "a");
	before = a->changes;
	server_int(&f->s, "LPUSH a 1");
	WAIT(&f->h, a->changes == before + 1);
	for (unsigned i = 0; i < 4; i++) {
		unsigned ups = f->h.ups;

		arm(f, "a");
		before = a->changes;
		server_int(&f->s, "CLIENT KILL TYPE pubsub");
		if (i % 2 == 0) {
			/* reported at once, because no invalidation can arrive */
			WAIT(&f->h, a->changes == before + 1);
			assert_false(watch_is_on(f->w));
		} else {
			server_int(&f->s, "CLIENT KILL ID %lld", (long long)conn_id(f->h.conn));
			WAIT(&f->h, f->h.ups == ups + 1);
		}
		WAIT(&f->h, watch_is_on(f->w));
		quiet(f);
		assert_true(a->changes > before);
		arm(f, "a");
		before = a->changes;
		server_int(&f->s, "LPUSH a 1");
		WAIT(&f->h, a->changes == before + 1);
	}
	/* the watch does not report interruptions that are so short */
	assert_int_equal(f->ons, 1);
	assert_int_equal(f->offs, 0);
}

FIXTURE_TEST(test_restart)
{
	struct fixture *f = *state;
	struct watched *a = &f->keys[0];

	add(f, 0, "a");
	start(f);
	arm(f, "a");
	server_kill(&f->s);
	WAIT(&f->h, f->h.downs >= 1);
	server_again(&f->s);
	WAIT(&f->h, f->h.ups == 2 && watch_is_on(f->w));
	quiet(f);
	arm(f, "a");
	a->changes = 0;
	server_int(&f->s, "LPUSH a 1");
	WAIT(&f->h, a->changes == 1);
}

/* Redis has forgotten the script: the key is armed all the same. */
FIXTURE_TEST(test_noscript)
{
	struct fixture *f = *state;
	struct watched *a = &f->keys[0];

	add(f, 0, "a");
	start(f);
	server_do(&f->s, "SCRIPT FLUSH");
	arm(f, "a");
	a->changes = 0;
	server_int(&f->s, "LPUSH a 1");
	WAIT(&f->h, a->changes == 1);
}

/* Keys of calls that do not arm are not watched. */
FIXTURE_TEST(test_optin)
{
	struct fixture *f = *state;
	struct watched *a = &f->keys[0];
	const char *key = "a";

	add(f, 0, "a");
	start(f);
	a->changes = 0;
	call_script(f->h.conn, script_table, call_answered, &f->calls[0], 1, 1, &key,
	    (size_t[]){ 1 });
	WAIT(&f->h, f->calls[0].answers == 1);
	server_int(&f->s, "LPUSH a 1");
	quiet(f);
	assert_int_equal(a->changes, 0);
}

/* -- refused ------------------------------------------------------------------ */

FIXTURE_TEST(test_denied)
{
	struct fixture *f = *state;
	struct watched *a = &f->keys[0];

	add(f, 0, "a");
	server_do(&f->s, "ACL SETUSER default -client|tracking");
	conn_start(f->h.conn);
	WAIT(&f->h, f->offs == 1);
	assert_non_null(strstr(f->why, "NOPERM"));
	assert_false(watch_is_on(f->w));
	/* the watch still calls scripts */
	arm(f, "a");
	/* the same refusal is reported once; when tracking is permitted, it begins */
	conn_reset(f->h.conn, "again");
	WAIT(&f->h, f->h.ups == 2);
	quiet(f);
	assert_int_equal(f->offs, 1);
	server_do(&f->s, "ACL SETUSER default +client|tracking");
	conn_reset(f->h.conn, "again");
	WAIT(&f->h, f->ons == 1);
	arm(f, "a");
	a->changes = 0;
	server_int(&f->s, "LPUSH a 1");
	WAIT(&f->h, a->changes == 1);
}

/* The ACL forbids the channel of invalidations: the watch reports that, and backs off. */
FIXTURE_TEST(test_channel_denied)
{
	struct fixture *f = *state;
	const char *p;

	server_do(&f->s, "ACL SETUSER default resetchannels");
	conn_start(f->h.conn);
	WAIT(&f->h, f->offs == 1);
	assert_non_null(strstr(f->why, "NOPERM"));
	arm(f, "a");
	p = strstr(server_do(&f->s, "INFO stats"), "total_connections_received:");
	assert_true(strtol(p + strlen("total_connections_received:"), NULL, 10) < 15);
	server_do(&f->s, "ACL SETUSER default allchannels");
	WAIT(&f->h, f->ons == 1);
	assert_int_equal(f->offs, 1);
}

/* The second connection is lost for longer than a moment: the watch reports that. */
FIXTURE_TEST(test_second_lost)
{
	struct fixture *f = *state;
	struct watched *a = &f->keys[0];

	add(f, 0, "a");
	start(f);
	arm(f, "a");
	a->changes = 0;
	server_do(&f->s, "ACL SETUSER default resetchannels");
	server_int(&f->s, "CLIENT KILL TYPE pubsub");
	WAIT(&f->h, f->offs == 1);
	assert_non_null(strstr(f->why, "NOPERM"));
	assert_int_equal(a->changes, 1);
	server_do(&f->s, "ACL SETUSER default allchannels");
	WAIT(&f->h, f->ons == 2);
	WAIT(&f->h, a->changes == 2);
}

static usec_t ahead;

/* Puts the clock forward, and probes the watch as its owner does. */
static void
probe_later(struct fixture *f, usec_t after)
{
	clock_real(ahead += after);
	watch_probe(f->w);
	quiet(f);
}

/*
 * While a script runs for long, Redis refuses nearly all commands: the watch is off, and
 * tries again with a later probe.
 */
FIXTURE_TEST(test_busy)
{
	struct fixture *f = *state;
	struct watched *a = &f->keys[0];
	struct call *c = &f->calls[0];
	const char *key = "a";
	redisContext *other;
	usec_t since = clock_mono();
	int done = 0;

	add(f, 0, key);
	start(f);
	server_do(&f->s, "CONFIG SET lua-time-limit 50");
	other = redisConnectUnix(f->s.path);
	redisAppendCommand(other, "EVAL %s 0", "while true do end");
	while (!done)
		assert_int_equal(redisBufferWrite(other, &done), REDIS_OK);
	usleep(300000);
	arm_script(f->w, script_table, c, 1, 1, &key, (size_t[]){ 1 });
	WAIT(&f->h, f->offs == 1);
	assert_non_null(strstr(f->why, "BUSY"));
	server_do(&f->s, "SCRIPT KILL");
	redisFree(other);
	WAIT(&f->h, c->answers == 1);
	probe_later(f, SEC);
	if (clock_mono() - since < 9 * SEC)	/* else the machine stood still */
		assert_int_equal(f->ons, 1);
	probe_later(f, 10 * SEC);
	WAIT(&f->h, f->ons == 2);
	arm(f, key);
	a->changes = 0;
	server_int(&f->s, "LPUSH a 1");
	WAIT(&f->h, a->changes == 1);
}

FIXTURE_TEST(test_caching_denied)
{
	struct fixture *f = *state;

	server_do(&f->s, "ACL SETUSER default -client|caching");
	start(f);
	arm(f, "a");
	WAIT(&f->h, f->offs == 1);
	assert_non_null(strstr(f->why, "NOPERM"));
	arm(f, "a");
	quiet(f);
	/* Only an operator can change that: the watch does not go on and off again. */
	probe_later(f, 2 * HOUR);
	arm(f, "a");
	assert_int_equal(f->offs, 1);
	assert_int_equal(f->ons, 1);
}

static char *elsewhere;

static void
up_and_move(struct harness *h)
{
	char *here = h->servers[0];

	h->servers[0] = elsewhere;
	elsewhere = here;
	up(h);
}

/*
 * The second connection reaches another server than the first one: the watch stays off.
 */
FIXTURE_TEST(test_two_servers)
{
	struct fixture *f = *state;
	struct server other;

	server_start(&other, NULL);
	elsewhere = xstrdup(other.uri);
	f->h.on_up = up_and_move;
	conn_start(f->h.conn);
	WAIT(&f->h, f->offs == 1);
	assert_non_null(strstr(f->why, "another server"));
	f->h.on_up = up;
	free(f->h.servers[0]);
	f->h.servers[0] = elsewhere;
	WAIT(&f->h, f->ons == 1);
	server_stop(&other);
}

/*
 * The server has closed the second connection, and the watch does not know it yet: it
 * must notice, and make another one.
 */
FIXTURE_TEST(test_half_open)
{
	struct fixture *f = *state;
	struct watched *a = &f->keys[0];

	add(f, 0, "a");
	start(f);
	server_int(&f->s, "CLIENT KILL TYPE pubsub");
	watch_conn_down(f->w);
	watch_conn_up(f->w);
	WAIT(&f->h, watch_is_on(f->w));
	quiet(f);
	arm(f, "a");
	a->changes = 0;
	server_int(&f->s, "LPUSH a 1");
	WAIT(&f->h, a->changes == 1);
	assert_int_equal(f->offs, 0);
}

/* -- owners that act in changed() ---------------------------------------------- */

static void
then_remove_all(struct watched *k)
{
	for (unsigned i = 0; i < 3; i++) {
		if (k->f->keys[i].key.key != NULL)
			watch_remove(k->f->w, &k->f->keys[i].key);
		k->f->keys[i].key.key = NULL;
	}
}

static void
then_free(struct watched *k)
{
	watch_free(k->f->w);
	k->f->w = NULL;
	k->f->h.on_up = k->f->h.on_down = NULL;
}

FIXTURE_TEST(test_remove_in_changed)
{
	struct fixture *f = *state;

	add(f, 0, "a");
	add(f, 1, "b");
	add(f, 2, "c");
	for (unsigned i = 0; i < 3; i++)
		f->keys[i].then = then_remove_all;
	start(f);
	assert_int_equal(f->keys[0].changes + f->keys[1].changes + f->keys[2].changes, 1);
}

FIXTURE_TEST(test_free_in_changed)
{
	struct fixture *f = *state;

	add(f, 0, "a");
	add(f, 1, "b");
	start(f);
	f->keys[0].then = f->keys[1].then = then_free;
	arm(f, "a");
	arm(f, "b");
	for (unsigned i = 0; i < 5; i++)
		arm_script(f->w, script_table, &f->calls[i], 1, 1,
		    (const char *[]){ "a" }, (size_t[]){ 1 });
	server_do(&f->s, "FLUSHALL");
	WAIT(&f->h, f->w == NULL);
	/* calls under way are answered though the watch is freed */
	WAIT(&f->h, f->calls[4].answers == 1);
	assert_int_equal(f->keys[0].changes + f->keys[1].changes, 3);
}

FIXTURE_TEST(test_free_early)
{
	struct fixture *f = *state;

	add(f, 0, "a");
	conn_start(f->h.conn);
	WAIT(&f->h, f->h.ups == 1);
	f->h.on_up = f->h.on_down = NULL;
	watch_free(f->w);
	f->w = NULL;
	quiet(f);
	watch_free(NULL);
}

FIXTURE_TEST(test_probe)
{
	struct fixture *f = *state;

	watch_probe(f->w);
	start(f);
	for (unsigned i = 0; i < 3; i++) {
		watch_probe(f->w);
		assert_int_not_equal(timer_next(f->h.loop), USEC_MAX);
		WAIT(&f->h, timer_next(f->h.loop) == USEC_MAX);
	}
	assert_true(watch_is_on(f->w));
}

#define QUEUES	1000
#define EACH	5		/* keys of a queue */

/*
 * The keys of many slots move to another watch, slot by slot; the watch reports each
 * moved key as changed.
 */
FIXTURE_TEST(test_move)
{
	struct fixture *f = *state;
	struct watch *to = watch_new(f->h.loop, f->h.conn, &f->h.opt, "rqd-test", mode, f);
	struct watched *k = xcalloc((size_t)QUEUES * EACH, sizeof(*k));
	char (*names)[32] = xcalloc((size_t)QUEUES * EACH, sizeof(*names));
	clock_t began;

	for (unsigned i = 0; i < QUEUES * EACH; i++) {
		snprintf(names[i], sizeof(names[i]), "{q%u}%u", i / EACH, i % EACH);
		k[i].key = (struct watch_key){ .key = names[i], .len = strlen(names[i]),
			.changed = changed, .arg = &k[i] };
		watch_add(f->w, &k[i].key);
	}
	began = clock();
	for (unsigned i = 0; i < QUEUES - 1; i++)
		watch_move(f->w, to, slot_of(names[i * EACH], strlen(names[i * EACH])));
	print_message("# %d slots and %d keys in %.0f ms\n", QUEUES, QUEUES * EACH,
	    (double)(clock() - began) * 1e3 / CLOCKS_PER_SEC);
	loop_turn(f->h.loop, 0);
	for (unsigned i = 0; i < (QUEUES - 1) * EACH; i++)
		assert_int_equal(k[i].changes, 1);
	/* The last queue's keys have not moved. */
	watch_note_change(to, names[0], strlen(names[0]));
	watch_note_change(f->w, names[QUEUES * EACH - 1], strlen(names[QUEUES * EACH - 1]));
	loop_turn(f->h.loop, 0);
	assert_int_equal(k[0].changes, 2);
	assert_int_equal(k[QUEUES * EACH - 1].changes, 1);

	/* Added again under another name, a key has that name's slot. */
	watch_remove(to, &k[0].key);
	k[0].key.key = "{other}x";
	k[0].key.len = strlen(k[0].key.key);
	watch_add(to, &k[0].key);
	watch_move(to, f->w, slot_of("other", 5));
	loop_turn(f->h.loop, 0);
	assert_int_equal(k[0].changes, 3);
	for (unsigned i = 0; i < QUEUES * EACH; i++)
		watch_remove(i == 0 || i >= (QUEUES - 1) * EACH ? f->w : to, &k[i].key);
	watch_free(to);
	free(k);
	free(names);
}
