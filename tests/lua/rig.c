/*
 * The rig; see rig.h.
 */
#include "rig.h"

#include <ctype.h>

#include "redis/reply.h"
#include "redis/script.h"

void
rig_connect(struct rig *r, const char *user)
{
	redisReply *reply;

	if (r->c != NULL)
		redisFree(r->c);
	r->c = redisConnectUnix(r->server.path);
	if (r->c == NULL || r->c->err != 0)
		fail_msg("cannot connect to %s", r->server.path);
	if (user[0] == '\0')
		return;
	reply = redisCommand(r->c, "AUTH %s x", user);
	assert_int_equal(reply->type, REDIS_REPLY_STATUS);
	freeReplyObject(reply);
}

void
rig_open(struct rig *r, const char *q)
{
	memset(r, 0, sizeof(*r));
	r->max_crashes = 1000000;
	server_start(&r->server, NULL);
	keys_init(&r->keys, q);
	rig_connect(r, "");
}

void
rig_close(struct rig *r)
{
	redisFree(r->c);
	keys_done(&r->keys);
	server_stop(&r->server);
}

static redisReply *
rig_vcommand(struct rig *r, const char *fmt, va_list ap)
{
	redisReply *reply = redisvCommand(r->c, fmt, ap);

	if (reply == NULL)
		fail_msg("%s: %s", fmt, r->c->errstr);
	return reply;
}

redisReply *
rig_command(struct rig *r, const char *fmt, ...)
{
	redisReply *reply;
	va_list ap;

	va_start(ap, fmt);
	reply = rig_vcommand(r, fmt, ap);
	va_end(ap);
	return reply;
}

long long
rig_int(struct rig *r, const char *fmt, ...)
{
	redisReply *reply;
	long long n = -1;
	va_list ap;

	va_start(ap, fmt);
	reply = rig_vcommand(r, fmt, ap);
	va_end(ap);
	if (reply->type == REDIS_REPLY_INTEGER)
		n = reply->integer;
	else if (reply->type == REDIS_REPLY_STRING)
		n = atoll(reply->str);
	freeReplyObject(reply);
	return n;
}

void
rig_do(struct rig *r, const char *fmt, ...)
{
	redisReply *reply;
	va_list ap;

	va_start(ap, fmt);
	reply = rig_vcommand(r, fmt, ap);
	va_end(ap);
	if (reply->type == REDIS_REPLY_ERROR)
		fail_msg("%s: %s", fmt, reply->str);
	freeReplyObject(reply);
}

static const char *
rig_letter(const struct rig *r, char letter)
{
	static const char letters[] = "QBCRDLXPSKTHGO";
	static const enum key keys[] = {
		KEY_QUEUE, KEY_BACKUP, KEY_CONTEXT, KEY_RETRY, KEY_DELIVERY,
		KEY_DELAYED, KEY_DEAD, KEY_PAUSED, KEY_STATS, KEY_RATE, KEY_SCHEDULE,
		KEY_HELD, KEY_GROUP, KEY_ORDER
	};
	const char *at = strchr(letters, letter);

	assert_non_null(at);
	return r->keys.name[keys[at - letters]];
}

void
rig_words(struct words *w, ...)
{
	va_list ap;

	va_start(ap, w);
	words_list(w, ap);
	va_end(ap);
}

redisReply *
rig_script(struct rig *r, const char *name, const char *keys, struct words *args)
{
	const struct script *s = script_find(name);
	struct words w = { 0 };
	redisReply *reply;
	int i;

	assert_non_null(s);
	rig_words(&w, "EVALSHA", s->sha, NULL);
	words_fmt(&w, "%zu", strlen(keys) + r->nmore);
	for (i = 0; keys[i] != '\0'; i++)
		words_add(&w, rig_letter(r, keys[i]));
	for (i = 0; i < (int)r->nmore; i++)
		words_add(&w, r->more[i]);
	for (i = 0; i < args->n; i++)
		words_mem(&w, args->v[i], args->len[i]);
	reply = redisCommandArgv(r->c, w.n, w.v, w.len);
	if (reply != NULL && reply->type == REDIS_REPLY_ERROR &&
	    strncmp(reply->str, "NOSCRIPT", 8) == 0) {
		freeReplyObject(reply);
		/* Redis checks that the script's SHA-1 is that of its text. */
		reply = redisCommand(r->c, "SCRIPT LOAD %b", s->text, s->len);
		if (reply->type == REDIS_REPLY_STRING)
			assert_string_equal(reply->str, s->sha);
		freeReplyObject(reply);
		w.v[0] = "EVAL";
		w.len[0] = 4;
		w.v[1] = s->text;
		w.len[1] = s->len;
		reply = redisCommandArgv(r->c, w.n, w.v, w.len);
	}
	words_done(&w);
	words_done(args);
	if (reply == NULL) {
		fail_msg("%s: %s", name, r->c->errstr);
		abort();
	}
	r->script = s;
	r->error[0] = '\0';
	if (reply->type != REDIS_REPLY_ERROR)
		return reply;
	snprintf(r->error, sizeof(r->error), "%s", reply->str);
	reply_cause(reply, r->cause, sizeof(r->cause));
	freeReplyObject(reply);
	return NULL;
}

/* -- pop and reclaim -------------------------------------------------------- */

static void
rig_take(const redisReply *reply, size_t i, struct popped *p)
{
	const redisReply *body = reply->element[i + 5];
	const char *token;

	p->tag = xmemdup(reply->element[i]->str, reply->element[i]->len + 1);
	p->taglen = reply->element[i]->len;
	p->idlen = (size_t)reply->element[i + 1]->integer;
	token = reply->element[i + 2]->str;
	p->mark = strncmp(token, "!drop:", 6) == 0 ? "drop" :
	    strncmp(token, "!dead:", 6) == 0 ? "dead" : NULL;
	p->token = xstrdup(p->mark != NULL ? strrchr(token, ':') + 1 : token);
	p->attempts = reply->element[i + 3]->integer;
	p->crashes = reply->element[i + 4]->integer;
	p->payload = p->saved = NULL;
	if (body->type == REDIS_REPLY_ARRAY) {
		assert_int_equal(body->elements, 2);
		p->saved = xstrdup(body->element[1]->str);
		body = body->element[0];
	}
	if (body->type == REDIS_REPLY_STRING) {
		p->payload = xmemdup(body->str, body->len + 1);
		p->len = body->len;
	} else {
		assert_int_equal(body->type, REDIS_REPLY_INTEGER);
		p->len = (size_t)body->integer;
	}
}

/* Adds the words that all scripts of kind "stream" get, or those of groups. */
static void
rig_add_group(const struct rig *r, struct words *w, bool consumer)
{
	if (r->by != NULL && consumer)
		words_add(w, r->by);
	if (r->by != NULL)
		words_fmt(w, "%d", r->places);
	if (r->consumer == NULL)
		return;
	words_add(w, "rqd");
	if (consumer)
		words_add(w, r->consumer);
}

int
rig_pop(struct rig *r, int n, long long maxbytes, long long max, const char *call,
    double deadline, struct popped *p, const char **status)
{
	static char text[16];
	struct words w = { 0 };
	redisReply *reply;
	size_t i;
	int got = 0;

	words_fmt(&w, "%d", n);
	words_fmt(&w, "%lld", maxbytes);
	words_fmt(&w, "%lld", max);
	words_fmt(&w, "%d", r->max_crashes);
	words_add(&w, call);
	words_fmt(&w, "%.6f", deadline);
	words_fmt(&w, "%d", r->fleet);
	words_fmt(&w, "%.9f", r->gap);
	words_fmt(&w, "%.9f", r->slack);
	words_add(&w, r->turn != NULL ? r->turn : "retry");
	if (!r->unique && r->consumer == NULL) {
		words_add(&w, r->left ? "left" : "right");
		words_add(&w, r->id != NULL ? r->id : "id");
	}
	rig_add_group(r, &w, true);
	reply = rig_script(r, r->consumer != NULL ? "stream_pop" :
	    r->unique ? "unique_pop" : r->by != NULL ? "groups_pop" : "pop",
	    r->by != NULL ? "QBCRDPKSHGO" : "QBCRDPKS", &w);
	if (reply == NULL)
		return -1;
	snprintf(text, sizeof(text), "%s", reply->element[0]->str);
	if (status != NULL)
		*status = text;
	snprintf(r->limited, sizeof(r->limited), "%s", reply->element[5]->str);
	r->popped_now = atof(reply->element[1]->str);
	r->popped_due = atof(reply->element[3]->str);
	r->taken = reply->element[6]->integer;
	if (strcmp(text, "ok") == 0) {
		assert_int_equal(reply->elements % 6, 1);
		for (i = 7; i < reply->elements; i += 6)
			rig_take(reply, i, &p[got++]);
	}
	assert_true(got <= n);
	freeReplyObject(reply);
	return got;
}

int
rig_reclaim(struct rig *r, const char *call, int page, bool crash)
{
	char from[40] = "0", offset[24] = "0";
	struct words w = { 0 };
	redisReply *reply;
	int n = 0;

	while (from[0] != '\0') {
		rig_words(&w, call, from, offset, crash ? "1" : "0", NULL);
		words_fmt(&w, "%d", page);
		reply = rig_script(r, "reclaim", "BRDC", &w);
		if (reply == NULL)
			return -1;
		n += (int)reply->element[1]->integer;
		snprintf(from, sizeof(from), "%s", reply->element[2]->str);
		snprintf(offset, sizeof(offset), "%lld", reply->element[3]->integer);
		freeReplyObject(reply);
	}
	return n;
}

void
rig_popped_done(struct popped *p, int n)
{
	int i;

	for (i = 0; i < n; i++) {
		free(p[i].tag);
		free(p[i].token);
		free(p[i].payload);
		free(p[i].saved);
		memset(&p[i], 0, sizeof(p[i]));
	}
}

/* -- settle, renew, tick ---------------------------------------------------- */

void
rig_settle_begin(const struct rig *r, struct words *w)
{
	rig_words(w, "0", "testhost", r->tell != NULL ? r->tell : "", NULL);
	rig_add_group(r, w, false);
}

redisReply *
rig_settle_script(struct rig *r, struct words *w)
{
	return r->consumer != NULL ? rig_script(r, "stream_settle", "BCRDXQ", w) :
	    r->unique ? rig_script(r, "unique_settle", "BCRDXQ", w) :
	    r->by != NULL ? rig_script(r, "groups_settle", "BCRDXHGO", w) :
	    rig_script(r, "settle", "BCRDX", w);
}

const char *
rig_settle(struct rig *r, const char *op, const struct popped *p, const char *arg)
{
	static char answer[256];
	struct words w = { 0 };
	redisReply *reply;

	rig_settle_begin(r, &w);
	words_add(&w, op);
	words_mem(&w, p->tag, p->taglen);
	words_add(&w, p->token);
	if (strcmp(op, "retry") == 0 || strcmp(op, "defer") == 0 || strcmp(op, "save") == 0 ||
	    strcmp(op, "keep") == 0)
		words_add(&w, arg);
	if (strcmp(op, "dead") == 0) {
		rig_words(&w, arg, "attempts", "1", "stderr's end",
		    "the handler's words", "0.25 8192", NULL);
	}
	if ((reply = rig_settle_script(r, &w)) == NULL)
		return NULL;
	assert_int_equal(reply->elements, 3);
	snprintf(answer, sizeof(answer), "%s", reply->element[2]->str);
	freeReplyObject(reply);
	return answer;
}

int
rig_renew(struct rig *r, const struct popped *p)
{
	struct words w = { 0 };
	redisReply *reply;
	int answer;

	words_fmt(&w, "%d", r->fleet);
	rig_words(&w, "", "", NULL);
	words_mem(&w, p->tag, p->taglen);
	words_add(&w, p->token);
	reply = rig_script(r, "renew", "BRD", &w);
	if (reply == NULL)
		return -99;
	assert_int_equal(reply->elements, 2);
	/* "3 WHO" where it was cancelled. */
	answer = reply->element[1]->type == REDIS_REPLY_STRING ? atoi(reply->element[1]->str) :
	    (int)reply->element[1]->integer;
	freeReplyObject(reply);
	return answer;
}

const char *
rig_cancel(struct rig *r, const char *mode, const char *tag, size_t taglen)
{
	static char state[16];
	struct words w = { 0 };
	redisReply *reply;

	rig_words(&w, mode, "0", "h", "me@host", NULL);
	words_mem(&w, tag, taglen);
	words_add(&w, "rqd");
	words_add(&w, r->tell != NULL ? r->tell : "");
	if ((reply = rig_script(r, "cancel", "BCRDXQHGO", &w)) == NULL)
		return NULL;
	assert_int_equal(reply->elements, 2);
	snprintf(state, sizeof(state), "%s", reply->element[0]->str);
	freeReplyObject(reply);
	return state;
}

int
rig_tick(struct rig *r, double lease, double foreign, bool requeue, double sent,
    int batch, long long maxbytes, long long rank, const char *cursor, struct ticked *t)
{
	struct words w = { 0 };
	redisReply *reply;

	words_fmt(&w, "%.6f", lease);
	words_fmt(&w, "%.6f", foreign);
	words_add(&w, requeue ? "1" : "0");
	words_fmt(&w, "%.6f", sent);
	words_fmt(&w, "%d", batch);
	words_fmt(&w, "%lld", maxbytes);
	words_fmt(&w, "%lld", rank);
	words_add(&w, cursor != NULL ? cursor : "-");
	words_fmt(&w, "%.3f", r->dead_max_age);
	if (!r->unique && r->consumer == NULL)
		words_add(&w, r->left ? "RPUSH" : "LPUSH");
	rig_add_group(r, &w, r->by != NULL);
	if (r->consumer != NULL) {
		rig_words(&w, t->scan, "16777216", NULL);
	}
	rig_words(&w, "acked", "1", NULL);
	reply = r->consumer != NULL ? rig_script(r, "stream_tick", "QBCRDLSX", &w) :
	    r->unique ? rig_script(r, "unique_tick", "QBCRDLSX", &w) :
	    rig_script(r, r->by != NULL ? "groups_tick" : "tick", "QBCRDLSXHGO", &w);
	if (reply == NULL)
		return -1;
	assert_int_equal(reply->elements, 16);
	if (r->consumer != NULL)
		snprintf(t->scan, sizeof(t->scan), "%s", reply->element[12]->str);
	t->more = reply->element[1]->integer;
	t->requeued = reply->element[2]->integer;
	t->promoted = reply->element[3]->integer;
	t->dropped = reply->element[4]->integer;
	t->waiting = reply->element[5]->integer;
	snprintf(t->expires, sizeof(t->expires), "%s", reply->element[6]->str);
	snprintf(t->due, sizeof(t->due), "%s", reply->element[7]->str);
	snprintf(t->delayed, sizeof(t->delayed), "%s", reply->element[8]->str);
	t->rank = reply->element[9]->integer;
	snprintf(t->cursor, sizeof(t->cursor), "%s", reply->element[10]->str);
	snprintf(t->warning, sizeof(t->warning), "%s", reply->element[11]->str);
	t->taken = reply->element[13]->integer;
	t->others = reply->element[14]->integer;
	freeReplyObject(reply);
	return 0;
}

double
rig_now(struct rig *r)
{
	redisReply *reply = rig_command(r, "TIME");
	double now = atof(reply->element[0]->str) + atof(reply->element[1]->str) / 1e6;

	freeReplyObject(reply);
	return now;
}

/* Makes the entry idle since 1970; its owner in the pending list stays the same. */
static const char age[] =
    "local id = string.match(ARGV[1], '^%d+%-%d+')\n"
    "local row = id and redis.pcall('XPENDING', KEYS[1], 'rqd', id, id, 1)\n"
    "if not row or row.err or not row[1] then return 0 end\n"
    "redis.call('XCLAIM', KEYS[1], 'rqd', row[1][2], 0, id, 'TIME', 1000000, 'JUSTID')\n"
    "return 1";

void
rig_idle(struct rig *r, const char *id, size_t len)
{
	rig_do(r, "EVAL %s 1 %s %b", age, rig_key(r, KEY_QUEUE), id, len);
}

void
rig_expire(struct rig *r, const char *tag, size_t len)
{
	if (r->consumer != NULL)
		rig_idle(r, tag, len);
	rig_do(r, "ZADD %s XX 1000 %b", rig_key(r, KEY_BACKUP), tag, len);
}

void
rig_fall_due(struct rig *r, const char *tag, size_t len)
{
	rig_do(r, "ZADD %s XX 1000 %b", rig_key(r, KEY_RETRY), tag, len);
}

/* -- places of messages --------------------------------------------------- */

static bool
same(const redisReply *r, const char *payload, size_t len)
{
	return r->type == REDIS_REPLY_STRING && r->len == len && memcmp(r->str, payload, len) == 0;
}

/* Returns all payloads that will be delivered, and those of dead letters. */
static const char places[] =
    "local live, dead, call = {}, {}, redis.call\n"
    "local function tagged(t) return call('ZSCORE', KEYS[4], t) or call('ZSCORE', KEYS[5], t)\n"
    "  or call('ZSCORE', KEYS[7], t) end\n"
    "local kind = call('TYPE', KEYS[1]).ok\n"
    "if kind == 'list' then live = call('LRANGE', KEYS[1], 0, -1) end\n"
    "if kind == 'stream' then\n"
    "  local last\n"
    "  for _, g in ipairs(call('XINFO', 'GROUPS', KEYS[1])) do\n"
    "    for i = 1, #g, 2 do if g[i] == 'last-delivered-id' then last = g[i + 1] end end\n"
    "  end\n"
    "  for _, e in ipairs(call('XRANGE', KEYS[1], last and '(' .. last or '-', '+')) do\n"
    "    live[#live + 1] = e[2][2]\n"
    "  end\n"
    "  for _, p in ipairs(last and call('XPENDING', KEYS[1], 'rqd', '-', '+', 10000) or {}) do\n"
    "    local e = not tagged(p[1]) and call('XRANGE', KEYS[1], p[1], p[1])[1]\n"
    "    if e then live[#live + 1] = e[2][2] end\n"
    "  end\n"
    "end\n"
    "for _, m in ipairs(call('ZRANGE', KEYS[2], 0, -1)) do live[#live + 1] = m end\n"
    "local c = call('HGETALL', KEYS[3])\n"
    "for i = 1, #c, 2 do\n"
    "  if tagged(c[i]) then live[#live + 1] = c[i + 1] end\n"
    "end\n"
    "if call('TYPE', KEYS[6]).ok == 'stream' then\n"
    "  for _, e in ipairs(call('XRANGE', KEYS[6], '-', '+')) do dead[#dead + 1] = e[2][4] end\n"
    "end\n"
    "return {live, dead}";

redisReply *
rig_places(struct rig *r)
{
	redisReply *reply = rig_command(r, "EVAL %s 7 %s %s %s %s %s %s %s", places,
	    rig_key(r, r->unique ? KEY_SCHEDULE : KEY_QUEUE),
	    rig_key(r, r->unique ? KEY_QUEUE : KEY_DELAYED), rig_key(r, KEY_CONTEXT),
	    rig_key(r, KEY_BACKUP), rig_key(r, KEY_RETRY), rig_key(r, KEY_DEAD),
	    rig_key(r, KEY_HELD));

	if (reply->type != REDIS_REPLY_ARRAY)
		fail_msg("places: %s", reply->str);
	return reply;
}

int
rig_count(const redisReply *all, const char *payload, size_t len)
{
	size_t i;
	int n = 0;

	for (i = 0; i < all->elements; i++)
		n += same(all->element[i], payload, len);
	return n;
}

int
rig_live(struct rig *r, const char *payload, size_t len)
{
	redisReply *all = rig_places(r);
	int n = rig_count(all->element[0], payload, len);

	freeReplyObject(all);
	return n;
}

int
rig_dead(struct rig *r, const char *payload, size_t len)
{
	redisReply *all = rig_places(r);
	int n = rig_count(all->element[1], payload, len);

	freeReplyObject(all);
	return n;
}

void
rig_digest(struct rig *r, char digest[48])
{
	redisReply *reply = rig_command(r, "DEBUG DIGEST");

	assert_int_equal(reply->type, REDIS_REPLY_STATUS);
	snprintf(digest, 48, "%s", reply->str);
	freeReplyObject(reply);
}

/*
 * Returns fields whose tag is in neither zset or in both, and keys with fewer fields than
 * tags.
 */
static const char strays[] =
    "local bad = {}\n"
    "for k = 1, 2 do\n"
    "  local n = 0\n"
    "  for _, tag in ipairs(redis.call('HKEYS', KEYS[k])) do\n"
    "    local text = k == 1 and string.match(tag, '^(.*)%zsaved$')\n"
    "    tag, n = text or tag, text and n - 1 or n\n"
    "    local b, r = redis.call('ZSCORE', KEYS[3], tag), redis.call('ZSCORE', KEYS[4], tag)\n"
    "    local h = redis.call('ZSCORE', KEYS[5], tag)\n"
    "    if (b and 1 or 0) + (r and 1 or 0) + (h and 1 or 0) ~= 1 then\n"
    "      bad[#bad + 1] = KEYS[k] .. ': ' .. tag end\n"
    "    n = n + 1\n"
    "  end\n"
    "  if n ~= redis.call('ZCARD', KEYS[3]) + redis.call('ZCARD', KEYS[4]) +\n"
    "    redis.call('ZCARD', KEYS[5]) then bad[#bad + 1] = KEYS[k] .. ': too few fields' end\n"
    "end\n"
    "local rows = redis.call('ZRANGE', KEYS[7], 0, -1)\n"
    "for _, row in ipairs(rows) do\n"
    "  local group, time, tag = string.match(row, '^([^%z]+)%z%d([^%z]*)%z(.*)$')\n"
    "  local zset = redis.call('ZSCORE', KEYS[5], tag) and 'held' or 'place'\n"
    "  if redis.call('HGET', KEYS[6], tag) ~= group or (zset == 'held') == (time == '') then\n"
    "    bad[#bad + 1] = KEYS[7] .. ': ' .. tag end\n"
    "end\n"
    "if redis.call('HLEN', KEYS[6]) ~= #rows then bad[#bad + 1] = KEYS[6] .. ': fields' end\n"
    "for _, tag in ipairs(redis.call('HKEYS', KEYS[6])) do\n"
    "  if redis.call('HEXISTS', KEYS[1], tag) == 0 then bad[#bad + 1] = KEYS[6] .. tag end\n"
    "end\n"
    "return bad";

void
rig_check_clean(struct rig *r)
{
	redisReply *bad = rig_command(r, "EVAL %s 7 %s %s %s %s %s %s %s", strays,
	    rig_key(r, KEY_CONTEXT), rig_key(r, KEY_DELIVERY),
	    rig_key(r, KEY_BACKUP), rig_key(r, KEY_RETRY), rig_key(r, KEY_HELD),
	    rig_key(r, KEY_GROUP), rig_key(r, KEY_ORDER));

	if (bad->type != REDIS_REPLY_ARRAY)
		fail_msg("strays: %s", bad->str);
	if (bad->elements > 0)
		fail_msg("%zu stray fields: %s ...", bad->elements, bad->element[0]->str);
	freeReplyObject(bad);
}

long long
rig_left(struct rig *r)
{
	return rig_int(r, "DBSIZE") - rig_int(r, "EXISTS %s", rig_key(r, KEY_STATS));
}

/* The time that Redis' main thread has been on a processor; -1: the kernel does not say. */
static long long
cpu_usec(const struct rig *rig)
{
	char path[64];
	long long ns = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/schedstat", (int)rig->server.pid);
	f = fopen(path, "r");
	if (f == NULL || fscanf(f, "%lld", &ns) != 1)
		ns = -1000;
	if (f != NULL)
		fclose(f);
	return ns / 1000;
}

long long
rig_time(struct rig *rig)
{
	rig_do(rig, "CONFIG RESETSTAT");
	return cpu_usec(rig);
}

long long
rig_took(struct rig *rig, long long since)
{
	long long cpu = cpu_usec(rig) - since;
	redisReply *r = rig_command(rig, "INFO commandstats");
	const char *at = strstr(r->str, "cmdstat_evalsha:");
	long long usec = -1;

	assert_non_null(at);
	at = strstr(at, "usec=");
	assert_non_null(at);
	usec = atoll(at + 5);
	freeReplyObject(r);
	return since >= 0 && cpu >= 0 && cpu < usec ? cpu : usec;
}
