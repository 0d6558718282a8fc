/*
 * Requests: each is answered once, or not at all after its cancellation, whatever happens
 * to the connection.  And struct words, which holds the words of a request.
 */
#include "harness.h"

#include <string.h>

#include "redis/request.h"
#include "redis/script.h"
#include "redis/watch.h"

#define TIMEOUT		(5 * SEC)

const struct script script_table[] = { SCRIPT_ADD, { NULL, NULL, 0, NULL } };

struct fixture {
	struct harness h;
	struct server s;
	struct request *request;	/* allocated, so that its use after free() shows */
	struct call call;
	unsigned again;			/* answered() sends it again so often */
};

static void
send_add(struct fixture *f)
{
	struct words w = { .n = 0 };

	words_key(&w, "key", 3);
	words_fmt(&w, "%d", 7);
	request_script(f->request, f->h.conn, script_find("add"), &w);
	assert_int_equal(w.n, 0);
	assert_null(w.v);
}

static void
answered(enum conn_answer answer, const struct redisReply *r, void *arg)
{
	struct fixture *f = arg;

	assert_false(request_is_sent(f->request));
	call_answered(answer, r, &f->call);
	if (f->again > 0) {
		f->again--;
		send_add(f);
		assert_true(request_is_sent(f->request));
	}
}

static int
setup(void **state)
{
	struct fixture *f = xcalloc(1, sizeof(*f));

	harness_start(&f->h, &f->s, TIMEOUT, 0);
	f->call.h = &f->h;
	f->request = xcalloc(1, sizeof(*f->request));
	request_init(f->request, answered, f);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	harness_done(&f->h);
	server_stop(&f->s);
	free(f->request);
	free(f);
	return 0;
}

#define FIXTURE_TEST(name)	TEST_WITH(name, setup, teardown)

/* Cancels and frees the request, as an owner does that goes away. */
static void
cancel(struct fixture *f)
{
	request_cancel(f->request);
	assert_false(request_is_sent(f->request));
	free(f->request);
	f->request = NULL;
}

FIXTURE_TEST(test_answered)
{
	struct fixture *f = *state;
	boot_t before;

	harness_connect(&f->h);
	assert_false(request_is_sent(f->request));
	before = clock_boot();
	send_add(f);
	assert_true(request_is_sent(f->request));
	assert_int_equal(f->call.answers, 0);
	assert_true(f->request->sent_at >= before && f->request->sent_at <= clock_boot());
	WAIT(&f->h, f->call.answers == 1);
	assert_int_equal(f->call.number, 7);
	request_words(f->request, f->h.conn, "GET", "key", NULL);
	WAIT(&f->h, f->call.answers == 2);
	assert_string_equal(f->call.text, "7");
	request_cancel(f->request);
}

/* A request can be sent again from its own callback. */
FIXTURE_TEST(test_again)
{
	struct fixture *f = *state;

	harness_connect(&f->h);
	f->again = 2;
	send_add(f);
	WAIT(&f->h, f->call.answers == 3);
	assert_int_equal(f->call.number, 21);
}

/*
 * A cancelled request still acts, and is not answered; later commands get their own
 * replies.
 */
FIXTURE_TEST(test_cancel)
{
	struct fixture *f = *state;
	struct call later = { .h = &f->h };

	harness_connect(&f->h);
	send_add(f);
	cancel(f);
	conn_words(f->h.conn, call_answered, &later, "GET", "key", NULL);
	WAIT(&f->h, later.answers == 1);
	/* Redis did not know the script: it ran after GET. */
	WAIT(&f->h, conn_outstanding(f->h.conn) == 0);
	assert_string_equal(server_do(&f->s, "GET key"), "7");
	assert_int_equal(f->call.answers, 0);
}

/*
 * A request is sent again while it is in flight: both calls act, and the owner gets only
 * the reply of the last one.
 */
FIXTURE_TEST(test_sent_twice)
{
	struct fixture *f = *state;

	harness_connect(&f->h);
	send_add(f);
	send_add(f);
	assert_true(request_is_sent(f->request));
	WAIT(&f->h, conn_outstanding(f->h.conn) == 0);
	assert_int_equal(f->call.answers, 1);
	assert_int_equal(f->call.number, 14);
	assert_false(request_is_sent(f->request));
}

/* A request that was not sent, or was lost, is answered so, unless it was cancelled. */
FIXTURE_TEST(test_no_reply)
{
	struct fixture *f = *state;

	send_add(f);
	assert_int_equal(f->call.answers, 0);
	WAIT(&f->h, f->call.answers == 1);
	assert_int_equal(f->call.answer, CONN_NOT_SENT);
	harness_connect(&f->h);
	send_add(f);
	conn_reset(f->h.conn, "test");
	WAIT(&f->h, f->call.answers == 2);
	assert_int_equal(f->call.answer, CONN_LOST);
	send_add(f);
	cancel(f);
	WAIT(&f->h, f->h.ups == 2);
	assert_int_equal(f->call.answers, 2);
}

/* The connection is freed before the request is cancelled. */
FIXTURE_TEST(test_conn_freed)
{
	struct fixture *f = *state;

	harness_connect(&f->h);
	send_add(f);
	conn_free(f->h.conn);
	f->h.conn = NULL;
	assert_int_equal(f->call.answers, 1);
	assert_int_equal(f->call.answer, CONN_LOST);
	cancel(f);
}

static void
watch_mode(bool on, const char *why UNUSED, void *arg)
{
	*(bool *)arg = on;
}

/*
 * A request of a watched key is cancelled, while tracking is on: the reply to CLIENT
 * CACHING, which was sent before it, must find no owner either.
 */
FIXTURE_TEST(test_watched)
{
	struct fixture *f = *state;
	bool on = false;
	struct watch *watch = watch_new(f->h.loop, f->h.conn, &f->h.opt, "rqd-test", watch_mode,
	    &on);
	struct words w = { .n = 0 };

	harness_connect(&f->h);
	watch_conn_up(watch);
	WAIT(&f->h, on);
	words_key(&w, "key", 3);
	words_add(&w, "2");
	watch_request(watch, f->request, script_find("add"), &w);
	cancel(f);
	watch_free(watch);
	WAIT(&f->h, conn_outstanding(f->h.conn) == 0);
	assert_string_equal(server_do(&f->s, "GET key"), "2");
	assert_int_equal(f->call.answers, 0);
}

TEST(test_words)
{
	struct words w = { .n = 0 };
	char text[24];
	int i;

	words_key(&w, "a\0b", 3);
	words_key(&w, "k", 1);
	words_add(&w, "str");
	for (i = 0; i < 1000; i++)
		words_fmt(&w, "%d", i);
	words_own(&w, xstrdup("own"), 2);
	assert_int_equal(w.nkeys, 2);
	assert_int_equal(w.n, 1004);
	assert_memory_equal(w.v[0], "a\0b", 3);
	assert_int_equal(w.len[0], 3);
	assert_string_equal(w.v[2], "str");
	for (i = 0; i < 1000; i++) {
		snprintf(text, sizeof(text), "%d", i);
		assert_string_equal(w.v[i + 3], text);
		assert_int_equal(w.len[i + 3], strlen(text));
	}
	assert_int_equal(w.len[1003], 2);
	assert_int_equal(w.bytes, 3 + 1 + 3 + 10 + 180 + 2700 + 2);
	words_clear(&w);
	assert_int_equal(w.n + w.nkeys, 0);
	assert_int_equal(w.bytes, 0);
	words_mem(&w, "x", 1);
	assert_int_equal(w.n, 1);
	words_done(&w);
	assert_int_equal(w.n, 0);
	words_done(&w);
}
