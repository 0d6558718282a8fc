/*
 * How long each script, and each verb of rqctl that only looks, blocks Redis with the worst
 * contents of its keys.  The best of several runs must be below LIMIT.  Prints the times.
 */
#include "rig.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "redis/script.h"

#define LIMIT	limit()
#define RUNS	8		/* runs, if the best is near the limit */
#define RUNS_MAX	30	/* runs, if the best is above it */

static struct rig	rig;

/*
 * Microseconds.  A machine whose page faults are slow has four times as many.
 * Beside other tests, which make(1) runs at the same time, a script takes up to
 * half as long again.
 */
static long long
limit(void)
{
	if (getenv("RQD_TEST_SLOW") != NULL)
		return 80000;
	if (getenv("MAKEFLAGS") != NULL)
		return 30000;
	return 20000;
}

struct row {
	const char	*name;
	const char	*setup;		/* Lua; the keys have the names of the scripts */
	const char	*script, *keys;
	const char	*words;		/* ARGV, separated by blanks; "" is empty, @9 nine x */
	int		 many;		/* number of repetitions ... */
	const char	*each;		/* ... of these words, with %d */
};
#define ROW(name, setup, ...)	{ name, setup, __VA_ARGS__, 0, NULL }
#define MANY(name, setup, ...)	{ name, setup, __VA_ARGS__ }

/*
 * With N entries a script that visits each of them takes longer than LIMIT: even to free
 * an entry, the least that Redis can do, takes 0.25 us.
 */
static const char prelude[] =
    "local Q, B, C, R, D, L, P, S, X, K, T, H, G, O = unpack(KEYS)\n"
    "local call, N = redis.call, 100000\n"
    "local now = tonumber(call('TIME')[1])\n"
    /* Doubles the string, because string.rep() copies byte by byte. */
    "local function rep(s, n) if n < 64 then return string.rep(s, n) end\n"
    "  local half = rep(s, math.floor(n / 2)) return half .. half .. string.rep(s, n % 2) end\n"
    "local MIB, ONES, KIB64 = rep('x', 1048576), rep('1', 1048576), rep('x', 65536)\n"
    "local odd = {'inf', '-inf', '-5', '1e308', tostring(now * 1000), '1000', '1e10', "
    "'15000000000',\n"
    "  tostring(now + 50), '1e11', tostring(now - 1000)}\n"
    /*
     * Calls COMMAND key with the words that f returns for 1 to n.  Small words go together
     * in one call.
     */
    "local function fill(command, key, n, f) local w, bytes = {command, key}, 0 for i = 1, n do\n"
    "  local a, b = f(i) w[#w + 1] = a w[#w + 1] = b bytes = bytes + #a + #(b or '')\n"
    "  if #w > 2000 or bytes > 100000 or i == n then\n"
    "    call(unpack(w)) w, bytes = {command, key}, 0 end end end\n"
    /*
     * The same.  If there is a name, database 1 keeps the key under it, and later rows
     * copy it.
     */
    "local function many(command, key, n, f, name)\n"
    "  if not name then return fill(command, key, n, f) end\n"
    "  name = command .. n .. name call('SELECT', 1)\n"
    "  if call('EXISTS', name) == 0 then fill(command, name, n, f) end\n"
    "  assert(call('COPY', name, key, 'DB', 0) == 1) call('SELECT', 0) end\n"
    "local function zset(key, n, name) name = name or 't'\n"
    "  many('ZADD', key, n, function(i) return odd[i % #odd + 1], name .. i end,\n"
    "    'odd' .. name) end\n"
    "local function same(key, n, score, name) name, score = name or 't', tostring(score)\n"
    "  many('ZADD', key, n, function(i) return score, name .. i end,\n"
    "    score == '1000' and 'same' .. name) end\n"
    "local function state(n) many('HSET', D, n, function(i)\n"
    "  return 't' .. i, '0 0 x.1.' .. i .. ' 1000.000000 2' end, 'state') end\n"
    "local function bodies(n, body) many('HSET', C, n, function(i) return 't' .. i, body end,\n"
    "  #body == 1 and 'bodies') end\n"
    /* Members of 1 MiB; the score is a number, or a function. */
    "local function large(key, score, n) many('ZADD', key, n or 60, function(i)\n"
    "  return tostring(type(score) == 'number' and score or score(i)), MIB .. i end,\n"
    "  score == 1000 and 'large') end\n"
    "local function large_bodies() many('HSET', C, 60, function(i) return MIB .. i, 'x' end,\n"
    "  'large') end\n"
    "local function digits(n) many('HSET', D, n, function(i) return 't' .. i, ONES end) end\n"
    /* 64 MiB, which Lua would copy several times. */
    "local function huge(key)\n"
    "  call('SETRANGE', key, 67108863, 'x') call('SETRANGE', key, 0, MIB) end\n"
    "local function push(n, body) many('LPUSH', Q, n, function() return body end,\n"
    "  n >= N and body) end\n"
    "local function fields(n, size) local t = {} for i = 1, n do t[2 * i - 1] = 'f' .. i\n"
    "  t[2 * i] = rep('v', size or 1) end return t end\n"
    "local function xadd(key, n, id) call('XADD', key, id or '*', unpack(fields(n))) end\n"
    "local function letters(n, nf, size) for i = 1, n do\n"
    "  local w = {'XADD', X, i .. '-1', 'id', 'i' .. i, 'message', rep('m', size), "
    "'reason', 'exit'}\n"
    "  for k = 1, nf do w[#w + 1] = 'f' .. k w[#w + 1] = 'v' end call(unpack(w)) end end\n"
    /* t1, t2 ... have places in so many groups; h1, h2 ... are held. */
    "local function taken(n, groups)\n"
    "  many('HSET', G, n, function(i) return 't' .. i, tostring(i % groups) end)\n"
    "  many('ZADD', O, n, function(i) return '0', i % groups .. '\\0000\\0t' .. i end) end\n"
    "local function held(n, groups)\n"
    "  many('HSET', G, n, function(i) return 'h' .. i, tostring(i % groups) end)\n"
    "  many('HSET', C, n, function(i) return 'h' .. i, 'x' end)\n"
    "  many('ZADD', H, n, function(i) return tostring(now + i / 1e6), 'h' .. i end)\n"
    "  many('ZADD', O, n, function(i) return '0', i % groups .. '\\0002' ..\n"
    "    string.format('%017.6f', now + i / 1e6) .. '\\0h' .. i end) end\n"
    "local function group() call('XGROUP', 'CREATE', Q, 'rqd', '0', 'MKSTREAM') end\n"
    /* Makes a stream by f, once, in the same way. */
    "local function once(name, f) call('SELECT', 1) if call('EXISTS', name) == 0 then f(name) end\n"
    "  assert(call('COPY', name, Q, 'DB', 0) == 1) call('SELECT', 0) end\n"
    "local function entries(key, n)\n"
    "  for i = 1, n do call('XADD', key, i .. '-1', 'message', 'm') end end\n"
    "local function unread(n) once('entries' .. n, function(key) entries(key, n) end) end\n"
    "local function pend(n) once('pend' .. n, function(key) entries(key, n)\n"
    "  call('XGROUP', 'CREATE', key, 'rqd', '0')\n"
    "  for i = 1, n, 1000 do call('XREADGROUP', 'GROUP', 'rqd', 'other', 'COUNT', 1000, "
    "'STREAMS', key, '>') end end) end\n";

#define POP	"pop", "QBCRDPKS"
#define POP_N	"200 1048576 16777216 3 x.1 0 0 0 0 retry"
#define TICK	"tick", "QBCRDLSXHGO"
#define TICK_N	"60 60 1 1e12 250 1048576 0 0 0 LPUSH"
#define GPOP	"groups_pop", "QBCRDPKSHGO"
#define GTICK	"groups_tick", "QBCRDLSXHGO"
#define UTICK	"unique_tick", "QBCRDLSX"
#define UPOP	"unique_pop", "QBCRDPKS"
#define SPOP	"stream_pop", "QBCRDPKS"
#define SPOP_N	POP_N " rqd host-orders"
#define STICK	"stream_tick", "QBCRDLSX"
#define STICK_N	"60 60 1 1e12 250 1048576 0 0 0 rqd \"\" 16777216"

static const struct row rows[] = {
	/* Ids. */
	ROW("pop: 64 KiB of \"id\":1, x 16",
	    "push(16, string.sub('{\"x\":0,' .. rep('\"id\":1,', 10000), 1, 65529) .. "
	    "'\"y\":1}')",
	    POP, POP_N),
	ROW("pop: 64 KiB of \"id\":1, first x 16",
	    "push(16, '{' .. rep('\"id\":1,', 9360) .. '\"y\":1}')",
	    POP, POP_N),
	ROW("pop: 64 KiB of \"\\u0069d\":1, x 16",
	    "push(16, '{' .. rep('\"\\\\u0069d\":1,', 5000) .. '\"y\":1}')",
	    POP, POP_N),
	ROW("pop: 64 KiB of an escaped member of 32 characters x 16",
	    "local k = '\"' .. rep('\\\\u0061', 32) .. '\":1,' push(16, '{' .. rep(k, 320) .. "
	    "'\"y\":1}')",
	    POP, POP_N " right aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
	ROW("pop: 64 KiB of a member that begins like one of 32 characters x 16",
	    "push(16, '{' .. rep('\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\\\\u0062\":1,', 1400) .. "
	    "'\"' .. "
	    "rep('a', 32) .. '\":1}')",
	    POP, POP_N " right aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
	ROW("pop: 64 KiB of [[],[],... x 16",
	    "push(16, '{\"x\":[' .. rep('[],', 21800) .. '[]],\"id\":7}')",
	    POP, POP_N),
	ROW("pop: 64 KiB of [0,0,... and two ids x 16",
	    "push(16, '{\"x\":[' .. rep('0,', 32700) .. '0],\"id\":7,\"id\":8}')",
	    POP, POP_N),
	ROW("pop: 64 KiB of \"a1\":{},... x 16",
	    "local t = {} for i = 1, 7000 do t[i] = '\"' .. i .. '\":0' end push(16, '{' .. "
	    "string.sub(table.concat(t, ','), 1, 65000) .. '\":1,\"id\":7,\"id\":8}')",
	    POP, POP_N),
	ROW("pop: 64 KiB of [[[[ x 16",
	    "push(16, '{\"x\":' .. rep('[', 65000) .. ',\"id\":7}')",
	    POP, POP_N),
	ROW("pop: 64 KiB of quotes x 16",
	    "push(16, '{\"x\":' .. rep('\"', 65000) .. '}')",
	    POP, POP_N),
	ROW("pop: 64 KiB of backslashes x 16",
	    "push(16, '{\"id\":\"' .. rep('\\\\', 65000) .. '\"}')",
	    POP, POP_N),
	ROW("pop: 64 KiB in an id x 16",
	    "push(16, '{\"id\":\"' .. rep('x', 65000) .. '\"}')",
	    POP, POP_N),
	ROW("pop: 64 KiB of digits x 16",
	    "push(16, '{\"id\":' .. rep('1', 65000) .. '}')",
	    POP, POP_N),
	ROW("pop: 64 KiB of blanks before x 16",
	    "push(16, rep(' ', 65000) .. '{\"id\":1}')",
	    POP, POP_N),
	ROW("pop: 64 KiB of blanks within x 16",
	    "push(16, '{' .. rep(' ', 65000) .. '\"id\":1}')",
	    POP, POP_N),
	ROW("pop: 64 KiB of blanks behind x 16",
	    "push(16, '{\"id\":1' .. rep(' ', 65000) .. '}')",
	    POP, POP_N),
	ROW("pop: 200 of 600 bytes without id",
	    "push(200, '{\"x\":[' .. rep('0,', 290) .. '0]}')",
	    POP, POP_N),
	ROW("pop: the newest and the fewest, of 100,000 retries",
	    "push(200, 'x') zset(R, N) state(2000) bodies(2000, 'x')",
	    POP, "200 1048576 16777216 3 x.1 0 0 0 0 newest"),
	ROW("pop: 200 of one id of 200 bytes",
	    "push(200, '{\"id\":\"' .. rep('x', 200) .. '\"}')",
	    POP, POP_N),
	ROW("pop: 200 of 10 KiB",
	    "push(200, rep('x', 10400))",
	    POP, POP_N),
	ROW("pop: 1 MiB behind 100 of 1 KiB",
	    "push(100, rep('x', 1024)) push(10, MIB)",
	    POP, POP_N),
	ROW("pop: a list of 1 M",
	    "push(1000000, 'm')",
	    POP, POP_N),
	ROW("pop: 64 MiB in QPAUSED",
	    "push(1, 'x') huge(P)",
	    POP, POP_N),
	ROW("pop: 64 MiB in QRATE",
	    "push(1, 'x') huge(K)",
	    POP, "200 1048576 16777216 3 x.1 0 0 0.001 0.1 retry"),
	ROW("pop: 100,000 odd retries",
	    "zset(R, N) state(2000) bodies(2000, 'x')",
	    POP, POP_N),
	ROW("pop: 100,000 equal retries",
	    "same(R, 100000, 1000) state(2000) bodies(2000, 'x')",
	    POP, POP_N),
	ROW("pop: retries of 1 MiB in QDELIVERY",
	    "same(R, 100, 1000) bodies(100, 'x') digits(100)",
	    POP, POP_N),
	ROW("pop: tags of 1 MiB",
	    "large(R, 1000) large_bodies()",
	    POP, POP_N),
	ROW("pop: tags of 100 KiB",
	    "local x = rep('x', 100000) for i = 1, 100 do local t = x .. i call('ZADD', R, "
	    "1000, t) call('HSET', C, t, 'x') end",
	    POP, POP_N),
	ROW("pop: retries of 200 KiB",
	    "same(R, 100, 1000) state(100) bodies(100, rep('x', 200000))",
	    POP, POP_N),
	ROW("pop: retries with texts of 4 KiB",
	    "same(R, 1000, 1000) for i = 1, 1000 do call('HSET', D, 't' .. i, '1 0 - 1000 02') "
	    "call('HSET', C, 't' .. i, 'x', 't' .. i .. '\\0saved', rep('s', 4096)) end",
	    POP, POP_N),
	/* reclaim, renew, settle. */
	ROW("reclaim: 100,000 equal scores",
	    "same(B, N, now)",
	    "reclaim", "BRDC", "x.1 0 98000 0 500"),
	ROW("reclaim: 100,000 odd scores",
	    "zset(B, N) state(N)",
	    "reclaim", "BRDC", "x.1 0 0 0 500"),
	ROW("reclaim: tags of 100 KiB",
	    "local t = rep('x', 100000) for i = 1, 1000 do call('ZADD', B, 1000, t .. i) end",
	    "reclaim", "BRDC", "x.1 0 0 0 500"),
	ROW("reclaim: 1 MiB in QDELIVERY",
	    "same(B, 100, 1000) digits(100)",
	    "reclaim", "BRDC", "x.1 0 0 0 500"),
	ROW("reclaim: 500 of one pop",
	    "same(B, N, now) state(N)",
	    "reclaim", "BRDC", "x.1 0 98000 0 500"),
	MANY("renew: 250",
	    "same(B, 100000, 1000) state(100000)",
	    "renew", "BRD", "0 \"\" \"\"", 250, "t%d x.1.%d"),
	ROW("renew: a pop among 100,000 of one time",
	    "same(B, N, now) state(N)",
	    "renew", "BRD", "0 x.1 0"),
	MANY("renew: 1 MiB in QDELIVERY",
	    "same(B, 100, 1000) digits(100)",
	    "renew", "BRD", "0 \"\" \"\"", 100, "t%d x.1.%d"),
	MANY("settle: 64 acks",
	    "same(B, 100000, 1000) state(100000) bodies(100, rep('x', 100000))",
	    "settle", "BCRDX", "0 h \"\"", 64, "ack t%d x.1.%d"),
	MANY("settle: 64 letters of 100 KiB",
	    "same(B, 100000, 1000) state(100000) bodies(100, rep('x', 100000))",
	    "settle", "BCRDX", "0 h \"\"", 64, "dead t%d x.1.%d 1 exit 1 e a u"),
	MANY("settle: 64 letters after dead_max was lowered",
	    "same(B, 100000, 1000) state(100000) bodies(100, 'x') letters(60000, 0, 4096)",
	    "settle", "BCRDX", "10 h \"\"", 64, "dead t%d x.1.%d 1 exit 1 e a u"),
	MANY("settle: 64 letters, told, of 32 KiB that are not UTF-8",
	    "same(B, 100000, 1000) state(100000) bodies(100, rep('\\195\\169', 16383) .. '\\255')",
	    "settle", "BCRDXT", "0 h LPUSH:1:q", 64, "dead t%d x.1.%d 1 exit 1 e a u"),
	MANY("settle: 64 letters, told, of 1,000 odd bytes, and errors of 4 KiB",
	    "same(B, 100000, 1000) state(100000) bodies(100, rep('\\240\\159', 500))",
	    "settle", "BCRDXT", "0 h LPUSH:1:q", 64, "dead t%d x.1.%d 1 exit 1 @4096 a u"),
	MANY("settle: 64 retries",
	    "same(B, 100000, 1000) zset(R, N, 'r') state(100000) bodies(100, 'x')",
	    "settle", "BCRDX", "0 h \"\"", 64, "retry t%d x.1.%d 5"),
	MANY("settle: 64 texts",
	    "same(B, 100000, 1000) state(100000) bodies(100, 'x')",
	    "settle", "BCRDX", "0 h \"\"", 64, "save t%d x.1.%d text"),
	MANY("settle: 64 KiB in QDELIVERY",
	    "same(B, 64, 1000) for i = 1, 64 do call('HSET', D, 't' .. i, rep('1', 65536)) end",
	    "settle", "BCRDX", "0 h \"\"", 64, "ack t%d x.1.%d"),
	/* tick. */
	ROW("tick: 100,000 odd leases",
	    "zset(B, N) state(100000) bodies(N, 'x')",
	    TICK, TICK_N),
	ROW("tick: 100,000 foreign in the future",
	    "many('ZADD', B, N, function(i) return tostring(now + 50 + i / 1e4), 't' .. i end)",
	    TICK, TICK_N),
	ROW("tick: 100,000 equal leases",
	    "same(B, 100000, 1000) state(100000) bodies(100000, 'x')",
	    TICK, TICK_N),
	ROW("tick: foreign payloads of 1 MiB",
	    "same(B, 50, 1000) bodies(50, MIB)",
	    TICK, TICK_N),
	ROW("tick: tags of 1 MiB",
	    "large(B, 1000) large_bodies()",
	    TICK, TICK_N),
	ROW("tick: tags of 1 MiB, not expired",
	    "large(B, now)",
	    TICK, TICK_N),
	ROW("tick: tags of 1 MiB in the future",
	    "large(B, now + 100)",
	    TICK, TICK_N),
	ROW("tick: fields of 1 MiB in QDELIVERY",
	    "many('HSET', D, 60, function(i) return MIB .. i, ONES end)",
	    TICK, TICK_N),
	ROW("tick: 1 MiB of digits in QDELIVERY",
	    "digits(100)",
	    TICK, TICK_N),
	ROW("tick: 100,000 fields in QDELIVERY",
	    "state(N) bodies(N, 'x')",
	    TICK, TICK_N),
	ROW("tick: 100,000 odd times in QDELAYED",
	    "zset(L, N)",
	    TICK, TICK_N),
	ROW("tick: 1 MiB each in QDELAYED",
	    "large(L, 1000)",
	    TICK, TICK_N),
	ROW("tick: 20,000 old letters",
	    "letters(20000, 0, 1000)",
	    TICK, "60 60 1 1e12 250 1048576 0 0 60 LPUSH"),
	ROW("tick: old letters of 1 MiB",
	    "letters(50, 0, 1048576)",
	    TICK, "60 60 1 1e12 250 1048576 0 0 60 LPUSH"),
	ROW("arm: 100,000 odd scores",
	    "zset(L, N) zset(R, N) zset(B, N)",
	    "arm", "PQRLB", "5"),
	ROW("arm: 64 MiB in QPAUSED",
	    "huge(P)",
	    "arm", "PQRLB", "5"),
	/* Kind "unique". */
	ROW("unique_pop: 100,000 odd scores",
	    "zset(Q, N) zset(B, N, 'b')",
	    UPOP, POP_N),
	ROW("unique_pop: 100,000 in hand",
	    "same(Q, 100000, 1000) same(B, 100000, 1000)",
	    UPOP, POP_N),
	ROW("unique_pop: 100,000 in milliseconds",
	    "same(Q, N, 1e12)",
	    UPOP, POP_N),
	ROW("unique_pop: ids of 1 MiB",
	    "large(Q, 1000)",
	    UPOP, POP_N),
	ROW("unique_pop: ids of 1 MiB, milliseconds",
	    "large(Q, 1e12)",
	    UPOP, POP_N),
	ROW("unique_pop: ids of 10 KiB",
	    "for i = 1, 200 do call('ZADD', Q, 1000, rep('x', 10400) .. i) end",
	    UPOP, POP_N),
	ROW("unique_tick: 100,000 odd scores",
	    "zset(Q, N)",
	    UTICK, TICK_N),
	ROW("unique_tick: 100,000 put off",
	    "many('ZADD', Q, N, function(i) return tostring(11000000000 + i), 't' .. i end)",
	    UTICK, TICK_N),
	ROW("unique_tick: ids of 1 MiB put off",
	    "large(Q, function(i) return 11000000000 + i end)",
	    UTICK, TICK_N),
	ROW("unique_arm: 100,000 odd scores",
	    "zset(Q, N)",
	    "unique_arm", "PQRLB", "5"),
	MANY("unique_settle: 64 of ids of 16 KiB",
	    "for i = 1, 64 do local id = rep('x', 16000) .. i call('ZADD', Q, 11000000000 + i, "
	    "id) call('HSET', C, 't' .. i, id) end same(B, 64, 1000) state(64)",
	    "unique_settle", "BCRDXQ", "0 h \"\"", 64, "ack t%d x.1.%d"),
	ROW("purge: due, 100 ids of 1 MiB",
	    "large(Q, 1000, 100)",
	    "purge", "Q", "1000 waiting"),
	ROW("purge: due, 100,000 odd scores",
	    "zset(Q, N)",
	    "purge", "Q", "1000 delayed"),
	MANY("unique_push: 1,000",
	    "zset(Q, N)",
	    "unique_push", "Q", "\"\" 0", 1000, "t%d"),
	MANY("unique_dead_retry: 500 letters",
	    "letters(500, 8, 2000)",
	    "unique_dead_retry", "QX", "1048576", 500, "%d-1"),
	/* Groups. */
	ROW("groups_pop: 1,000 of one group",
	    "for i = 1, 1000 do call('LPUSH', Q, '{\"id\":' .. i .. ',\"g\":\"a\"}') end",
	    GPOP, POP_N " right id g 1"),
	ROW("groups_pop: 1,000 of 500 groups, 100,000 held",
	    "for i = 1, 1000 do call('LPUSH', Q, '{\"id\":' .. i .. ',\"g\":\"' .. i % 500 .. "
	    "'\"}') end held(N, 500)",
	    GPOP, POP_N " right id g 1"),
	ROW("groups_pop: 1,000 of 500 groups with 100 places",
	    "for i = 1, 1000 do call('LPUSH', Q, '{\"id\":' .. i .. ',\"g\":\"' .. i % 500 .. "
	    "'\"}') end same(B, N, now) taken(N, 500)",
	    GPOP, POP_N " right id g 100"),
	ROW("groups_pop: 100,000 due retries of one group",
	    "same(R, N, 1000) state(N) bodies(N, '{\"g\":1}')",
	    GPOP, POP_N " right id g 1"),
	ROW("groups_pop: 64 KiB of \"g\":1, x 16",
	    "push(16, string.sub('{\"x\":0,' .. rep('\"g\":1,', 12000) .. '', 1, 65529) .. "
	    "'\"y\":1}')",
	    GPOP, POP_N " right id g 1"),
	ROW("groups_pop: 64 KiB of \"g\": and digits x 16",
	    "push(16, '{\"g\":1.5,\"g\":' .. rep('1', 65000) .. '}')",
	    GPOP, POP_N " right id g 1"),
	ROW("groups_pop: 64 KiB of \"g\": and blanks x 16",
	    "push(16, '{\"g\":1.5,' .. rep('\"g\"' .. rep(' ', 300) .. ':1,', 200) .. '\"g\":1}')",
	    GPOP, POP_N " right id g 1"),
	ROW("groups_pop: 64 KiB of [[],[],... x 16",
	    "push(16, '{\"x\":[' .. rep('[],', 21800) .. '[]],\"g\":7}')",
	    GPOP, POP_N " right id g 1"),
	ROW("groups_pop: 64 KiB whose id and group must be decoded x 16",
	    "push(16, '{\"x\":[' .. rep('[],', 21000) .. '[]],\"\\\\u0069d\":7,\"g\":7}')",
	    GPOP, POP_N " right id g 1"),
	ROW("groups_pop: 64 KiB of \"id\":1,\"g\":1, x 16",
	    "push(16, '{\"x\":0,' .. rep('\"id\":1,\"g\":1,', 4600) .. '\"y\":1}')",
	    GPOP, POP_N " right id g 1"),
	ROW("groups_pop: 1,000 of 25 groups with 100 places, all stale, 200 held of each",
	    "for i = 1, 1000 do call('LPUSH', Q, '{\"id\":' .. i .. ',\"g\":\"' .. i % 25 .. "
	    "'\"}') end taken(2500, 25) held(5000, 25)",
	    GPOP, POP_N " right id g 100"),
	ROW("groups_pop: 1,000 due retries of these groups",
	    "same(R, 1000, 1000, 'r') many('HSET', C, 1000, function(i) return 'r' .. i, "
	    "'{\"g\":\"' .. i % 25 .. '\"}' end) taken(2500, 25) held(5000, 25)",
	    GPOP, POP_N " right id g 100"),
	ROW("groups_pop: 200 of 10 KiB of one group",
	    "push(200, '{\"g\":1,\"x\":\"' .. rep('x', 10400) .. '\"}')",
	    GPOP, POP_N " right id g 1"),
	ROW("groups_pop: retries of 1 MiB, by their ids",
	    "same(R, 50, 1000, 'a/') for i = 1, 50 do call('HSET', C, 'a/' .. i, MIB) end",
	    GPOP, POP_N " right id / 1"),
	MANY("groups_settle: 64 acks of one group",
	    "same(B, N, 1000) state(N) taken(64, 1) held(N, 1)",
	    "groups_settle", "BCRDXHGO", "0 h \"\" 100", 64, "ack t%d x.1.%d"),
	MANY("groups_settle: 64 acks of 64 groups that each have 100 places",
	    "same(B, N, 1000) state(N) taken(6400, 64) held(N, 64)",
	    "groups_settle", "BCRDXHGO", "0 h \"\" 100", 64, "ack t%d x.1.%d"),
	MANY("groups_settle: 64 acks of 64 groups whose held messages are gone",
	    "same(B, N, 1000) state(N) taken(64, 64) held(N, 64) call('DEL', C)",
	    "groups_settle", "BCRDXHGO", "0 h \"\" 100", 64, "ack t%d x.1.%d"),
	ROW("groups_tick: 100,000 groups",
	    "same(B, N, now) state(N) bodies(N, 'x') taken(N, N)",
	    GTICK, TICK_N " g 1"),
	ROW("groups_tick: 1,000 groups with 100 places, all gone",
	    "taken(N, 1000)",
	    GTICK, TICK_N " g 100"),
	ROW("groups_tick: 100,000 held of one group that is stuck",
	    "held(N, 1)",
	    GTICK, TICK_N " g 1"),
	ROW("groups_tick: QORDER is gone",
	    "held(N, 500) call('DEL', O)",
	    GTICK, TICK_N " g 1"),
	ROW("groups_tick: QGROUP is gone",
	    "held(N, 500) call('DEL', G)",
	    GTICK, TICK_N " g 1"),
	ROW("groups_tick: keys of others with the names of those of groups, 1 MiB each",
	    "large(H, 1000) large(O, 1000) "
	    "many('HSET', G, 60, function(i) return MIB .. i, MIB end)",
	    GTICK, TICK_N " g 1"),
	ROW("groups_tick: rows of 1 MiB of one group",
	    "many('ZADD', O, 60, function(i) return '0', 'a\\0000\\0' .. MIB .. i end)",
	    GTICK, TICK_N " g 1"),
	ROW("groups_tick: 100,000 rows of other scores",
	    "zset(O, N)",
	    GTICK, TICK_N " g 1"),
	ROW("tick: 100,000 held by daemons with groups",
	    "held(N, 500)",
	    TICK, TICK_N),
	ROW("tick: keys of others with the names of those of groups",
	    "zset(H, N) zset(O, N)",
	    TICK, TICK_N),
	ROW("tick: such keys of 1 MiB each",
	    "large(H, 1000) large(O, 1000)",
	    TICK, TICK_N),
	MANY("drop: 500 held",
	    "held(N, 5)",
	    "drop", "CRDXQHGO", "drop 0 h e rqd \"\"", 500, "h%d"),
	/* rqctl. */
	ROW("purge: a list, 1 MiB each", "push(60, MIB)", "purge", "Q", "500 right"),
	ROW("purge: a list of 1 M",
	    "push(1000000, 'm')",
	    "purge", "Q", "500 right"),
	ROW("purge: delayed, 1 MiB each",
	    "large(L, 1000)",
	    "purge", "L", "500"),
	ROW("purge: letters of 1 MiB", "letters(60, 0, 1048576)", "purge", "X", "500"),
	ROW("purge: letters of 3,900 fields", "letters(60, 3900, 10)", "purge", "X", "500"),
	ROW("forget_queue: 100,000 in each key",
	    "zset(B, N) zset(R, N) zset(L, N) bodies(N, 'x') state(N) letters(20000, 8, 10) "
	    "push(N, 'm')",
	    "forget_queue", "QBRLXHCDPSTKGO", "force"),
	ROW("stream_purge: 100,000 entries",
	    "unread(100000) group()",
	    "stream_purge", "Q", "rqd 100000-1 100000"),
	MANY("dead_retry: 500 letters of 2,000 bytes",
	    "letters(500, 0, 2000)",
	    "dead_retry", "BCRDX", "1048576", 500, "%d-1"),
	MANY("dead_retry: letters of 3,900 fields",
	    "letters(100, 3900, 10)",
	    "dead_retry", "BCRDX", "1048576", 100, "%d-1"),
	MANY("dead_retry: no messages, 1 MiB",
	    "for i = 1, 60 do call('XADD', X, i .. '-1', 'error', MIB) end",
	    "dead_retry", "BCRDX", "1048576", 60, "%d-1"),
	ROW("bury: 1 MiB",
	    "same(R, N, 1000) bodies(1, MIB) call('HSET', D, 't1', '0 0 - 1000.0 2')",
	    "drop", "CRDXQHGO", "bury 0 h e rqd \"\" t1"),
	ROW("bury: 1 MiB in QDELIVERY",
	    "same(R, N, 1000) bodies(1, 'x') digits(1)",
	    "drop", "CRDXQHGO", "bury 0 h e rqd \"\" t1"),
	ROW("cancel: a letter of 1 MiB",
	    "same(R, N, 1000) bodies(1, MIB) call('HSET', D, 't1', '0 0 - 1000.0 2')",
	    "cancel", "BCRDXQHGO", "dead 0 h e t1 rqd"),
	ROW("cancel: 1 MiB in QDELIVERY",
	    "same(R, N, 1000) bodies(1, 'x') digits(1)",
	    "cancel", "BCRDXQHGO", "drop 0 h e t1 rqd"),
	ROW("cancel: one of 100,000 in flight",
	    "same(B, N, 1000) state(N) bodies(N, 'x')",
	    "cancel", "BCRDXQHGO", "drop 0 h e t50000 rqd"),
	ROW("cancel: a tag of 1 MiB",
	    "call('ZADD', R, 1000, MIB) call('HSET', C, MIB, MIB)",
	    "cancel", "BCRDXQHGO", "dead 0 h e @1048576 rqd"),
	/* As many as rqctl looks at. */
	ROW("cancel_waiting: the last one of 300,000",
	    "push(299999, 'm') call('LPUSH', Q, 'x')",
	    "cancel_waiting", "QX", "list drop 0 h e 300000 i @1"),
	ROW("cancel_waiting: 10,000 of 1 KiB that differ in the last byte",
	    "push(9999, rep('x', 1023) .. 'y') call('LPUSH', Q, rep('x', 1024))",
	    "cancel_waiting", "QX", "list dead 0 h e 10000 i @1024"),
	ROW("cancel_waiting: 60 of 1 MiB that differ in the last byte",
	    "push(59, string.sub(MIB, 2) .. 'y') call('LPUSH', Q, MIB)",
	    "cancel_waiting", "QX", "list dead 0 h e 10000 i @1048576"),
	ROW("cancel_waiting: 20,000 letters",
	    "push(1, 'x') letters(20000, 8, 10)",
	    "cancel_waiting", "QX", "list dead 10 h e 10000 i @1"),
	ROW("cancel_waiting: QDEAD is a list of 1 M",
	    "push(1000000, 'x') call('RENAME', Q, X) call('LPUSH', Q, 'x')",
	    "cancel_waiting", "QX", "list dead 0 h e 10000 i @1"),
	ROW("cancel_waiting: one of 100,000 delayed",
	    "zset(L, N) call('ZADD', L, 1000, MIB)",
	    "cancel_waiting", "LX", "zset dead 0 h e 0 i @1048576"),
	MANY("drop: 500",
	    "same(R, 100000, 1000) for i = 1, 1000 do call('HSET', D, 't' .. i, '0 0 - 1000.0 "
	    "2') end bodies(1000, rep('x', 10000))",
	    "drop", "CRDXQHGO", "drop 0 h e rqd \"\"", 500, "t%d"),
	MANY("due: 500",
	    "many('ZADD', R, 100000, function(i) return tostring(now + i), 't' .. i end)",
	    "due", "R", "", 500, "t%d"),
	ROW("push",
	    "same(R, N, 1000)",
	    "push", "BCRD", "\"\" 5 t9 2 x"),
	ROW("list_pop: 100 of 10 KiB",
	    "push(200, rep('x', 10400))",
	    "list_pop", "QPS", "right 100 1048576 16777216 0"),
	ROW("list_pop: 1 MiB each",
	    "push(60, MIB)",
	    "list_pop", "QPS", "right 100 1048576 16777216 0"),
	ROW("schedule",
	    "zset(Q, N)",
	    "schedule", "QT", "n 1000 60 -1 ZADD x"),
	ROW("lock: 64 MiB",
	    "huge(Q)",
	    "lock", "Q", "token 1000 who"),
	/* Kind "stream". */
	ROW("stream_arm: 100,000 entries, 100,000 pending",
	    "pend(100000) for i = 1, 100000 do call('XADD', Q, '*', 'message', 'm') end",
	    "stream_arm", "PQRLB", "5 rqd"),
	ROW("stream_pop: 100 of 100,000",
	    "unread(100000)",
	    SPOP, SPOP_N),
	ROW("stream_pop: entries of 3,900 fields",
	    "for i = 1, 30 do xadd(Q, 3900) end",
	    SPOP, SPOP_N),
	ROW("stream_pop: entries of 300 fields",
	    "for i = 1, 100 do xadd(Q, 300) end",
	    SPOP, SPOP_N),
	ROW("stream_pop: entries of 1 MiB",
	    "for i = 1, 30 do call('XADD', Q, '*', 'message', MIB) end",
	    SPOP, SPOP_N),
	ROW("stream_pop: control characters, 170 KB",
	    "for i = 1, 30 do call('XADD', Q, '*', 'm', rep('\\1', 170000)) end",
	    SPOP, SPOP_N),
	ROW("stream_tick: 100,000 pending",
	    "pend(100000)",
	    STICK, STICK_N),
	ROW("stream_tick: pending of 3,900 fields",
	    "for i = 1, 30 do xadd(Q, 3900) end group() call('XREADGROUP', 'GROUP', 'rqd', "
	    "'other', 'STREAMS', Q, '>')",
	    "stream_tick", "QBCRDLSX", "60 -1 1 1e12 250 1048576 0 0 0 rqd \"\" 16777216"),
	ROW("stream_tick: pending, in QRETRY, of 3,900 fields",
	    "for i = 1, 30 do xadd(Q, 3900, i .. '-1') call('ZADD', R, 1000, i .. '-1') end "
	    "group() call('XREADGROUP', 'GROUP', 'rqd', 'other', 'STREAMS', Q, '>')",
	    "stream_tick", "QBCRDLSX", "60 -1 1 1e12 250 1048576 0 0 0 rqd \"\" 16777216"),
	ROW("stream_tick: pending of 1 MiB",
	    "for i = 1, 30 do call('XADD', Q, '*', 'message', MIB) end group() "
	    "call('XREADGROUP', 'GROUP', 'rqd', 'other', 'STREAMS', Q, '>')",
	    "stream_tick", "QBCRDLSX", "60 -1 1 1e12 250 1048576 0 0 0 rqd \"\" 16777216"),
	ROW("stream_tick: pending and deleted",
	    "pend(1000) call('XTRIM', Q, 'MAXLEN', 0)",
	    "stream_tick", "QBCRDLSX", "60 -1 1 1e12 250 1048576 0 0 0 rqd \"\" 16777216"),
	MANY("stream_settle: 64 of 100,000",
	    "pend(100000) for i = 1, 250 do local id = i .. '-1' call('ZADD', B, 1000, id) "
	    "call('HSET', D, id, '0 0 x.1.' .. i .. ' 1000.0 3') call('HSET', C, id, 'x') end",
	    "stream_settle", "BCRDXQ", "0 h \"\" rqd", 64, "ack %d-1 x.1.%d"),
	ROW("stream_depth: not known",
	    "for i = 1, 5000 do call('XADD', Q, i .. '-1', 'message', 'm') end group() "
	    "call('XREADGROUP', 'GROUP', 'rqd', 'o', 'COUNT', 10, 'STREAMS', Q, '>') "
	    "call('XDEL', Q, '3000-1')",
	    "stream_depth", "RLQH", "rqd"),
	ROW("unique_depth: 200,000 ids, milliseconds, payloads of 1 MiB",
	    "for i = 1, 200000 do call('ZADD', Q, i % 2 == 0 and 1.5e9 + i or 1.5e12 + i, i) end "
	    "for i = 1, 20 do call('ZADD', L, 1.5e9 + i, MIB .. i) end "
	    "for i = 1, 1000 do call('ZADD', R, 1.5e9 + i, 'tag' .. i) end",
	    "unique_depth", "RLQH", "rqd"),
	ROW("stream_depth: entries of 3,900 fields",
	    "for i = 1, 30 do xadd(Q, 3900) end group() call('XREADGROUP', 'GROUP', 'rqd', "
	    "'o', 'COUNT', 1, 'STREAMS', Q, '>') local e = call('XREVRANGE', Q, '+', '-', "
	    "'COUNT', 1)[1] call('XDEL', Q, e[1])",
	    "stream_depth", "RLQH", "rqd"),
};

/* The words keep a pointer to this text. */
static const char *
many_x(void)
{
	static char x[1 << 20];

	memset(x, 'x', sizeof(x));
	return x;
}

static void
add_words(struct words *w, const char *words, int n)
{
	char *copy = xstrdup(words), *word, *rest = copy, text[300], *at;

	while ((word = strsep(&rest, " ")) != NULL) {
		if (word[0] == '\0')
			continue;
		if (word[0] == '@') {
			words_mem(w, many_x(), (size_t)atol(word + 1));
			continue;
		}
		if ((at = strstr(word, "%d")) != NULL) {
			*at = '\0';
			snprintf(text, sizeof(text), "%s%d%s", word, n, at + 2);
			word = text;
		}
		words_fmt(w, "%s", strcmp(word, "\"\"") == 0 ? "" : word);
	}
	free(copy);
}

static void
set_up(const char *lua)
{
	char *text = xasprintf("%s%s", prelude, lua);

	rig_do(&rig, "FLUSHDB");
	rig_do(&rig, "EVAL %s 14 %s %s %s %s %s %s %s %s %s %s %s %s %s %s", text,
	    rig_key(&rig, KEY_QUEUE), rig_key(&rig, KEY_BACKUP), rig_key(&rig, KEY_CONTEXT),
	    rig_key(&rig, KEY_RETRY), rig_key(&rig, KEY_DELIVERY), rig_key(&rig, KEY_DELAYED),
	    rig_key(&rig, KEY_PAUSED), rig_key(&rig, KEY_STATS), rig_key(&rig, KEY_DEAD),
	    rig_key(&rig, KEY_RATE), rig_key(&rig, KEY_SCHEDULE), rig_key(&rig, KEY_HELD),
	    rig_key(&rig, KEY_GROUP), rig_key(&rig, KEY_ORDER));
	free(text);
}

/*
 * Repeats slow measurements: if other programs use the memory, a script takes more
 * processor time, too.
 */
static bool
once_more(int run, long long best)
{
	if (run >= RUNS && best > LIMIT)
		usleep(30000);
	return best < 0 || (run < RUNS && best > LIMIT * 3 / 4) ||
	    (run < RUNS_MAX && best > LIMIT);
}

static long long
measure(const struct row *row)
{
	struct words w = { 0 };
	long long since;
	redisReply *r;
	int i;

	set_up(row->setup);
	add_words(&w, row->words, 0);
	for (i = 1; i <= row->many; i++)
		add_words(&w, row->each, i);
	since = rig_time(&rig);
	r = rig_script(&rig, row->script, row->keys, &w);
	if (r == NULL && strstr(rig.error, "WRONGTYPE") == NULL)
		fail_msg("%s: %s", row->name, rig.error);
	freeReplyObject(r);
	return rig_took(&rig, since);
}

TEST(test_bounds)
{
	const char *only = getenv("BOUNDS_ONLY");
	long long best, usec;
	size_t i;
	int run, slow = 0;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		if (only != NULL && strstr(rows[i].name, only) == NULL)
			continue;
		best = -1;
		for (run = 0; once_more(run, best); run++) {
			usec = measure(&rows[i]);
			if (best < 0 || usec < best)
				best = usec;
		}
		print_message("# %8.1f ms  %s\n", (double)best / 1e3, rows[i].name);
		if (best > LIMIT) {
			print_message("# too slow: %s\n", rows[i].name);
			slow++;
		}
	}
	assert_int_equal(slow, 0);
}

/* -- verbs that only look ----------------------------------------------------------- */

/*
 * Runs of rqctl: of all that Redis does for them, no command may take longer than LIMIT.  Where
 * a list is long, rqctl reads its beginning; cancel searches a list from far behind.
 */
#define MILLION	"local n = 1000000 "
#define LARGE	"local n = 10000 "
#define SOME	" --json --count 20000"

static const struct look {
	const char	*name, *kind;
	const char	*setup;
	const char	*verbs[6];
} looks[] = {
	{ "1,000,000 empty messages", "ack",
	    MILLION "push(n, '')",
	    { "peek q" SOME, "show q x", "cancel q x -n --scan 30000" } },
	{ "10,000 messages of 64 KiB", "ack",
	    LARGE "push(n, KIB64)",
	    { "peek q --json --count 500", "peek q --raw", "show q x",
		"cancel q x -n --scan 2000" } },
	{ "1,000,000 empty retries, in flight", "ack",
	    MILLION "same(R, n, 1000) call('COPY', R, B) state(n) bodies(n, '')",
	    { "retry list q" SOME, "running" SOME, "show q x" } },
	{ "1,000,000 small delayed messages", "ack",
	    MILLION "same(L, n, now + 1e6, '')",
	    { "delayed list q" SOME, "cancel q x -n" } },
	{ "10,000 retries of 64 KiB", "ack",
	    LARGE "same(R, n, 1000) same(B, n, 1000) state(n) bodies(n, KIB64)",
	    { "retry list q --json --count 500", "retry list q --match none", "running --json" } },
	{ "10,000 delayed messages of 64 KiB", "ack",
	    LARGE "same(L, n, now + 1e6, KIB64)",
	    { "delayed list q --json --count 500", "cancel q x -n" } },
	{ "100,000 retries, odd times", "ack",
	    "zset(R, N) zset(B, N) state(N) bodies(N, 'x')",
	    { "retry list q" SOME, "running" SOME } },
	{ "1 MiB: delayed, tags", "ack",
	    "large(L, 1000) large(R, 1000) large(B, 1000) large_bodies()",
	    { "delayed list q --json", "retry list q --json", "running --json", "show q x" } },
	{ "1 MiB in QDELIVERY", "ack",
	    "same(R, 60, 1000) same(B, 60, 1000) digits(60) bodies(60, 'x')",
	    { "retry list q --json", "running --json" } },
	{ "1,000,000 empty letters", "ack",
	    "for i = 1, 1000000 do call('XADD', X, i .. '-1', 'message', '') end",
	    { "dead list q" SOME, "show q x" } },
	{ "10,000 letters of 64 KiB", "ack",
	    "letters(10000, 0, 65536)",
	    { "dead list q --json --count 500", "dead list q", "dead list q --match none" } },
	{ "letters of 10,000 fields", "ack",
	    "letters(10, 1000, 10) for i = 11, 40 do xadd(X, 3900) end",
	    { "dead list q --json" } },
	{ "letters of 1 MiB, other fields of 1 MiB", "ack",
	    "letters(60, 0, 1048576) for i = 1, 60 do call('XADD', X, '*', 'error', MIB) end",
	    { "dead list q --json" } },
	{ "letters that hardly match", "ack",
	    "letters(400, 0, 2600)",
	    { "dead list q --match mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmn" } },
	{ "1,000,000 small ids", "unique",
	    MILLION "zset(Q, n, '')",
	    { "peek q" SOME, "show q x", "delayed list q" SOME, "cancel q x -n" } },
	{ "10,000 ids of 64 KiB", "unique",
	    LARGE "same(Q, n, 1000, KIB64)",
	    { "peek q --json --count 500", "show q x" } },
	{ "ids of 1 MiB", "unique",
	    "large(Q, 1000)",
	    { "peek q --json", "show q x" } },
	{ "1,000,000 empty entries", "stream",
	    "for i = 1, 1000000 do call('XADD', Q, i .. '-1', 'message', '') end group()",
	    { "peek q" SOME, "show q 500000-1" } },
	{ "10,000 entries of 64 KiB", "stream",
	    "for i = 1, 10000 do call('XADD', Q, i .. '-1', 'message', KIB64) end group()",
	    { "peek q --json --count 500", "show q 5000-1" } },
	{ "entries of 3,900 fields", "stream",
	    "for i = 1, 30 do xadd(Q, 3900, i .. '-1') end group()",
	    { "peek q --json", "show q 1-1" } },
};

/* Writes a configuration with a queue of this kind, which has the rig's keys. */
static void
write_config(const char *kind, char path[128])
{
	char *text = xasprintf("redis { server = \"%s\" }\nqueue \"q\" { key = \"%s\" kind = "
	    "\"%s\" command = {\"/bin/true\"} user = \"nobody\" }\n", rig.server.uri,
	    rig_key(&rig, KEY_QUEUE), kind);

	server_write_file(&rig.server, "rqctl.conf", text, path);
	free(text);
}

/* The microseconds of the longest command while rqctl runs. */
static long long
measure_verb(const char *verb, const char *config)
{
	const char *builddir = getenv("BUILDDIR");
	char *command = xasprintf("exec %s/rqctl -c %s %s >%s/out 2>&1",
	    builddir != NULL ? builddir : ".", config, verb, rig.server.dir);
	long long longest = 0;
	redisReply *r;
	int status;

	rig_do(&rig, "SLOWLOG RESET");
	status = system(command);
	/* 1: there is no such message. */
	if (!WIFEXITED(status) || WEXITSTATUS(status) > 1)
		fail_msg("%s: status %d, see %s/out", command, status, rig.server.dir);
	free(command);
	r = rig_command(&rig, "SLOWLOG GET 1000");
	for (size_t i = 0; i < r->elements; i++)
		if (r->element[i]->element[2]->integer > longest)
			longest = r->element[i]->element[2]->integer;
	freeReplyObject(r);
	return longest;
}

TEST(test_looks)
{
	const char *only = getenv("BOUNDS_ONLY"), *verb;
	long long best, usec;
	char config[128];
	int run, slow = 0;

	rig_do(&rig, "CONFIG SET slowlog-max-len 1000");
	/* One message in a node, as if all were large: Redis walks from node to node. */
	rig_do(&rig, "CONFIG SET list-max-ziplist-size 1");
	for (size_t i = 0; i < ARRAY_LEN(looks); i++) {
		if (only != NULL && strstr(looks[i].name, only) == NULL)
			continue;
		set_up(looks[i].setup);
		write_config(looks[i].kind, config);
		rig_do(&rig, "CONFIG SET slowlog-log-slower-than 1000");
		for (size_t k = 0; (verb = looks[i].verbs[k]) != NULL; k++) {
			best = LIMIT + 1;
			for (run = 0; run < RUNS_MAX && best > LIMIT; run++) {
				usec = measure_verb(verb, config);
				best = run == 0 || usec < best ? usec : best;
			}
			print_message("# %8.1f ms  %s: rqctl %s\n", (double)best / 1e3,
			    looks[i].name, verb);
			slow += best > LIMIT;
		}
		rig_do(&rig, "CONFIG SET slowlog-log-slower-than -1");
	}
	rig_do(&rig, "FLUSHALL");
	assert_int_equal(slow, 0);
}

/* -- entries of many fields ------------------------------------------------------ */

/*
 * Redis reads an entry as a whole, and a script cannot ask how many fields it has.  A
 * script cannot shorten the time for an entry of many fields; with FIELDS it must be
 * within the limit.
 */
#define FIELDS	10000

static void
add_entry(enum key key, const char *id, int fields)
{
	struct words w = { 0 };
	redisReply *r;
	int i;

	rig_words(&w, "XADD", rig_key(&rig, key), id, "id", "7", NULL);
	for (i = 1; i < fields; i++) {
		words_fmt(&w, "f%d", i);
		words_add(&w, "v");
	}
	r = redisCommandArgv(rig.c, w.n, w.v, w.len);
	assert_int_equal(r->type, REDIS_REPLY_STRING);
	freeReplyObject(r);
	words_done(&w);
}

static const struct entry_row {
	const char	*script, *keys, *words;
	bool		 pending;
} entry_rows[] = {
	{ SPOP, SPOP_N, false },
	{ "stream_arm", "PQRLB", "5 rqd", false },
	{ STICK, "60 -1 1 1e12 250 1048576 0 0 0 rqd \"\" 16777216", true },
	{ "stream_peek", "Q", "rqd 500 65536 \"\" 0", false },
	{ "stream_show", "Q", "rqd 1-1", false },
	{ "stream_depth", "RLQH", "rqd", false },
	{ "dead_list", "X", "1 + - 500 -1 \"\" \"\"", false },
	{ "dead_retry", "BCRDX", "1048576 1-1", false },
};

static long long
measure_entry(const struct entry_row *row, int fields)
{
	struct words w = { 0 };
	long long since;
	redisReply *r;
	char id[24];
	int i;

	set_up("");
	for (i = 1; i <= 3; i++) {
		snprintf(id, sizeof(id), "%d-1", i);
		add_entry(KEY_QUEUE, id, fields);
		add_entry(KEY_DEAD, id, fields);
	}
	rig_do(&rig, "XGROUP CREATE %s rqd 0", rig_key(&rig, KEY_QUEUE));
	if (row->pending) {
		r = rig_command(&rig, "XREADGROUP GROUP rqd other STREAMS %s >",
		    rig_key(&rig, KEY_QUEUE));
		freeReplyObject(r);
	}
	add_words(&w, row->words, 0);
	since = rig_time(&rig);
	if ((r = rig_script(&rig, row->script, row->keys, &w)) == NULL)
		fail_msg("%s: %s", row->script, rig.error);
	freeReplyObject(r);
	return rig_took(&rig, since);
}

TEST(test_many_fields)
{
	long long best, usec;
	size_t i;
	int run, slow = 0;

	for (i = 0; i < ARRAY_LEN(entry_rows); i++) {
		best = -1;
		for (run = 0; once_more(run, best); run++) {
			usec = measure_entry(&entry_rows[i], FIELDS);
			if (best < 0 || usec < best)
				best = usec;
		}
		print_message("# %8.1f ms  %s: entries of %d fields\n", (double)best / 1e3,
		    entry_rows[i].script, FIELDS);
		slow += best > LIMIT;
	}
	assert_int_equal(slow, 0);
}

int
main(void)
{
	const struct script *s;
	int rc;

	rig_open(&rig, "orders");
	for (s = script_table; s->name != NULL; s++)
		rig_do(&rig, "SCRIPT LOAD %b", s->text, s->len);
	rc = unit_run(NULL, NULL);
	rig_close(&rig);
	return rc;
}
