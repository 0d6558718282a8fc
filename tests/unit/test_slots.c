/*
 * Slots of keys, and the table of a cluster, also from servers that send garbage.
 */
#define UNIT_OWN_MAIN
#include "unit.h"

#include <hiredis/hiredis.h>

#include "redis/script.h"
#include "redis/slots.h"

const struct script script_table[] = { { NULL, NULL, 0, NULL } };

static struct slots table;

static redisReply *
parse(const char *bytes)
{
	redisReader *reader = redisReaderCreate();
	void *r = NULL;

	assert_int_equal(redisReaderFeed(reader, bytes, strlen(bytes)), REDIS_OK);
	assert_int_equal(redisReaderGetReply(reader, &r), REDIS_OK);
	redisReaderFree(reader);
	assert_non_null(r);
	return r;
}

/* Fills the table from a reply; returns NULL or a cause, which the next call frees. */
static const char *
fill(const char *bytes)
{
	static char *cause;
	redisReply *r = parse(bytes);
	bool changed;
	int rc;

	free(cause);
	cause = NULL;
	rc = slots_fill(&table, r, "seed:7000", &changed, &cause);
	freeReplyObject(r);
	assert_int_equal(rc, cause == NULL ? 0 : -1);
	return cause;
}

static unsigned
slot(const char *key)
{
	return slot_of(key, strlen(key));
}

static bool
has_tag(const char *key)
{
	return slot_has_tag(key, strlen(key));
}

/* The figures are from CLUSTER KEYSLOT of Redis 7. */
TEST(test_slots_of_keys)
{
	assert_int_equal(slot("123456789"), 12739);	/* CRC16 = 0x31c3 */
	assert_int_equal(slot("foo"), 12182);
	assert_int_equal(slot("bar"), 5061);
	assert_int_equal(slot("hello"), 866);
	assert_int_equal(slot(""), 0);
	assert_int_equal(slot_of("a\0b", 3), 8383);
	assert_int_equal(slot("\xc3\xa4"), 13929);
}

TEST(test_hash_tags)
{
	assert_int_equal(slot("{foo}"), slot("foo"));
	assert_int_equal(slot("{foo}BACKUP"), slot("foo"));
	assert_int_equal(slot("Lock:{foo}:x"), slot("foo"));
	assert_int_equal(slot("a{foo}b{bar}"), slot("foo"));
	assert_int_equal(slot("{{foo}}"), slot("{foo"));
	assert_int_not_equal(slot("{}foo"), slot("foo"));
	assert_int_not_equal(slot("{}{foo}"), slot("foo"));
	assert_true(has_tag("{a}") && has_tag("x{a}y"));
	assert_false(has_tag("") || has_tag("a") || has_tag("{a") || has_tag("a}"));
	assert_false(has_tag("{}") || has_tag("{}{a}") || has_tag("}a{"));
	assert_false(slot_has_tag("{a}", 2));
}

#define NODE(host, port) "*3\r\n" host ":" port "\r\n$1\r\nx\r\n"
#define RANGE(a, b, node) "*3\r\n:" a "\r\n:" b "\r\n" node

TEST(test_table)
{
	assert_null(fill("*3\r\n" RANGE("0", "99", NODE("$9\r\n127.0.0.1\r\n", "7001"))
	    RANGE("100", "100", NODE("$3\r\n::1\r\n", "7002"))
	    RANGE("200", "16383", NODE("$9\r\n127.0.0.1\r\n", "7001"))));
	assert_int_equal(table.n, 2);
	assert_string_equal(slots_node(&table, 0), "127.0.0.1:7001");
	assert_string_equal(slots_node(&table, 99), "127.0.0.1:7001");
	assert_string_equal(slots_node(&table, 100), "[::1]:7002");
	assert_null(slots_node(&table, 101));
	assert_string_equal(slots_node(&table, 16383), "127.0.0.1:7001");
	slots_set(&table, 101, "a:1");
	assert_string_equal(slots_node(&table, 101), "a:1");
	slots_set(&table, 16383, "[::1]:7002");
	assert_string_equal(slots_node(&table, 16383), "[::1]:7002");
	assert_int_equal(table.n, 3);
}

/* A range also lists replicas after the master, and metadata after address and id. */
TEST(test_replicas_and_metadata)
{
	assert_null(fill("*1\r\n*4\r\n:0\r\n:1\r\n"
	    "*4\r\n$1\r\nm\r\n:1\r\n$1\r\nx\r\n*2\r\n$8\r\nhostname\r\n$1\r\nh\r\n"
	    "*2\r\n$1\r\nr\r\n:2\r\n"));
	assert_string_equal(slots_node(&table, 0), "m:1");
	assert_int_equal(table.n, 1);
}

/* An empty or nil host means the server that answers; "?" means an unknown host. */
TEST(test_hosts_left_out)
{
	assert_null(fill("*3\r\n" RANGE("0", "1", NODE("$0\r\n\r\n", "7001"))
	    RANGE("2", "2", NODE("$-1\r\n", "7002"))
	    RANGE("3", "3", NODE("$1\r\n?\r\n", "7003"))));
	assert_string_equal(slots_node(&table, 1), "seed:7001");
	assert_string_equal(slots_node(&table, 2), "seed:7002");
	assert_null(slots_node(&table, 3));
}

/* An invalid table leaves the old one as it was. */
TEST(test_hostile_tables)
{
	static const char *const bad[] = {
		"-ERR This instance has cluster support disabled\r\n",
		"+OK\r\n", ":1\r\n", "$-1\r\n", "*0\r\n", "*1\r\n:1\r\n", "*1\r\n*0\r\n",
		"*1\r\n" RANGE("-1", "1", NODE("$1\r\na\r\n", "1")),
		"*1\r\n" RANGE("1", "0", NODE("$1\r\na\r\n", "1")),
		"*1\r\n" RANGE("0", "16384", NODE("$1\r\na\r\n", "1")),
		"*1\r\n" RANGE("0", "9223372036854775807", NODE("$1\r\na\r\n", "1")),
		"*1\r\n" RANGE("0", "1", NODE("$1\r\na\r\n", "0")),
		"*1\r\n" RANGE("0", "1", NODE("$1\r\na\r\n", "65536")),
		"*1\r\n" RANGE("0", "1", NODE("$1\r\na\r\n", "-1")),
		"*1\r\n" RANGE("0", "1", NODE("$3\r\na b\r\n", "1")),
		"*1\r\n" RANGE("0", "1", NODE("$4\r\na:1:\r\n", "1")),
		"*1\r\n" RANGE("0", "1", NODE("$6\r\nunix:/\r\n", "1")),
		"*1\r\n" RANGE("0", "1", ":1\r\n"),
		"*1\r\n" RANGE("0", "1", "*1\r\n$1\r\na\r\n"),
		"*1\r\n" RANGE("0", "1", "*2\r\n:1\r\n:1\r\n"),
		"*2\r\n" RANGE("0", "1", NODE("$1\r\na\r\n", "1"))
		    RANGE("1", "2", NODE("$1\r\na\r\n", "1"))
	};

	assert_null(fill("*1\r\n" RANGE("0", "16383", NODE("$3\r\nold\r\n", "1"))));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_non_null(fill(bad[i]));
		assert_string_equal(slots_node(&table, 0), "old:1");
	}
	assert_string_equal(fill(bad[0]), "CLUSTER SLOTS: ERR This instance has cluster support "
	    "disabled");
}

TEST(test_too_many_nodes)
{
	char *text = xasprintf("*%d\r\n", SLOTS_NODES_MAX + 1), *next;

	for (int i = 0; i <= SLOTS_NODES_MAX; i++) {
		next = xasprintf("%s*3\r\n:%d\r\n:%d\r\n*2\r\n$1\r\na\r\n:%d\r\n", text, i, i,
		    i + 1);
		free(text);
		text = next;
	}
	assert_non_null(fill(text));
	free(text);
}

static void
redirection(const char *error, const char *node, unsigned slot_wanted)
{
	unsigned n = 0;
	char *got = slots_redirection(error, "[::1]:7000", &n);

	if (node == NULL) {
		assert_null(got);
		return;
	}
	assert_non_null(got);
	assert_string_equal(got, node);
	assert_int_equal(n, slot_wanted);
	free(got);
}

TEST(test_redirections)
{
	redirection("MOVED 3999 127.0.0.1:6381", "127.0.0.1:6381", 3999);
	redirection("ASK 0 host.example:1", "host.example:1", 0);
	redirection("MOVED 16383 ::1:6381", "[::1]:6381", 16383);
	redirection("MOVED 3999 :6381", "[::1]:6381", 3999);
	redirection("MOVED 16384 a:1", NULL, 0);
	redirection("MOVED -1 a:1", NULL, 0);
	redirection("MOVED 99999999999999999999 a:1", NULL, 0);
	redirection("MOVED", NULL, 0);
	redirection("MOVED ", NULL, 0);
	redirection("MOVED 1", NULL, 0);
	redirection("MOVED 1 ", NULL, 0);
	redirection("MOVED 1 a", NULL, 0);
	redirection("MOVED 1 a:", NULL, 0);
	redirection("MOVED 1 a:0", NULL, 0);
	redirection("MOVED 1 a:65536", NULL, 0);
	redirection("MOVED 1 ?:6381", NULL, 0);
	redirection("MOVED 1 a b:6381", NULL, 0);
	redirection("TRYAGAIN Multiple keys", NULL, 0);
}

int
main(void)
{
	int rc = unit_run(NULL, NULL);

	slots_done(&table);
	(void)fill("*0\r\n");
	return rc;
}
