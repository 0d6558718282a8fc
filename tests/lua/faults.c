/* Denied commands and wrong types; see faults.h. */
#include "faults.h"

#include <stdio.h>
#include <string.h>

static void
expire(struct rig *rig, enum key k, void (*fn)(struct rig *, const char *, size_t))
{
	redisReply *r = rig_command(rig, "ZRANGE %s 0 -1", rig_key(rig, k));

	for (size_t i = 0; i < r->elements; i++)
		fn(rig, r->element[i]->str, r->element[i]->len);
	freeReplyObject(r);
}

void
faults_expire_all(struct rig *rig)
{
	redisReply *r;

	expire(rig, KEY_BACKUP, rig_expire);
	expire(rig, KEY_RETRY, rig_fall_due);
	if (rig->consumer == NULL)
		return;
	r = rig_command(rig, "XPENDING %s rqd - + 100", rig_key(rig, KEY_QUEUE));
	for (size_t i = 0; r->type == REDIS_REPLY_ARRAY && i < r->elements; i++)
		rig_idle(rig, r->element[i]->element[0]->str, r->element[i]->element[0]->len);
	freeReplyObject(r);
}

void
faults_revive(struct rig *rig, const char *script, const char *keys)
{
	redisReply *letters = rig_command(rig, "XRANGE %s - +", rig_key(rig, KEY_DEAD)), *r;
	struct words w = { 0 };

	words_add(&w, "1048576");
	for (size_t i = 0; letters->type == REDIS_REPLY_ARRAY && i < letters->elements; i++)
		words_add(&w, letters->element[i]->element[0]->str);
	if ((r = rig_script(rig, script, keys, &w)) != NULL)
		freeReplyObject(r);
	freeReplyObject(letters);
}

static int
pop(struct rig *rig, int n, struct popped *p)
{
	static unsigned calls;
	char call[24];

	snprintf(call, sizeof(call), "w.%u", ++calls);
	return rig_pop(rig, n, 1048576, MAX, call, 0, p, NULL);
}

void
faults_work_off(struct rig *rig, const struct fault_path *p, const char *fault, enum key key)
{
	struct popped got[50];
	struct ticked t = { .scan = "" };
	int i, n, rounds = 0;

	do {
		faults_expire_all(rig);
		assert_int_equal(rig_tick(rig, 60, 60, true, 1e12, 250, 1048576, 0, NULL, &t), 0);
		if ((n = pop(rig, 50, got)) < 0)
			fail_msg("%s, %s: %s", p->name, fault, rig->error);
		for (i = 0; i < n; i++)
			assert_string_equal(rig_settle(rig, "ack", &got[i], NULL), "ok");
		rig_popped_done(got, n);
		assert_true(++rounds < 50);
	} while (n > 0 || rig_int(rig, "ZCARD %s", rig_key(rig, key)) > 0);
	rig_do(rig, "DEL %s", rig_key(rig, KEY_DEAD));
	assert_int_equal(rig_tick(rig, 0, 0, true, 1e12, 250, 1048576, 0, "0", &t), 0);
	rig_do(rig, "DEL %s", rig_key(rig, KEY_STATS));
	rig_forget_pops(rig);
}

void
faults_nothing_left(struct rig *rig, const struct fault_path *p, const char *fault)
{
	redisReply *r = rig_command(rig, "KEYS *");

	if (r->elements > 0)
		fail_msg("%s, %s: left over: %s", p->name, fault, r->element[0]->str);
	freeReplyObject(r);
}

/* Makes the user "few", who may use all commands but this one. */
static void
deny(struct rig *rig, const char *command)
{
	rig_do(rig, "ACL SETUSER few reset on >x ~* &* +@all -%s", command);
}

static void
recover(const struct faults *f, const struct fault_path *p, const char *fault)
{
	f->nothing_lost(p, fault);
	p->run();
	f->nothing_lost(p, fault);
	f->recover(p, fault);
	f->end();
}

static bool
denied(const struct faults *f, const struct fault_path *p, const char *command)
{
	bool refused;

	f->begin(p);
	deny(f->rig, command);
	rig_connect(f->rig, "few");
	p->run();
	refused = f->rig->error[0] != '\0';
	p->run();
	rig_connect(f->rig, "");
	recover(f, p, command);
	return refused;
}

void
faults_denied(const struct faults *f, int least)
{
	int refused = 0;

	for (size_t i = 0; i < f->npaths; i++) {
		for (size_t k = 0; k < f->ncommands; k++)
			refused += denied(f, &f->paths[i], f->commands[k]);
	}
	print_message("# %d of %zu calls were refused\n", refused, f->npaths * f->ncommands);
	assert_true(refused > least);
}

static void
run_denied(const struct faults *f, const struct fault_path *p, const char *command)
{
	struct rig *rig = f->rig;
	char was[48], is[48];

	rig_connect(rig, "");
	rig_digest(rig, was);
	rig_connect(rig, "few");
	rig->error[0] = '\0';
	p->run();
	if (rig->error[0] == '\0')
		return;
	if (strcasestr(rig->cause, command) == NULL)
		fail_msg("%s, %s is not named: %s", p->name, command, rig->cause);
	rig_connect(rig, "");
	rig_digest(rig, is);
	if (strcmp(was, is) != 0 && !f->may_change(p, command))
		fail_msg("%s, %s: something has changed: %s", p->name, command, rig->cause);
}

static void
refused_whole(const struct faults *f, const struct fault_path *p, const char *command)
{
	int n, now;

	f->begin(p);
	n = f->copies != NULL ? f->copies() : 0;
	deny(f->rig, command);
	for (int i = 0; i < 3; i++)
		run_denied(f, p, command);
	rig_connect(f->rig, "");
	now = f->copies != NULL ? f->copies() : 0;
	if (now > n)
		fail_msg("%s, %s: %d copies, %d were there", p->name, command, now, n);
	f->end();
}

void
faults_refused_whole(const struct faults *f)
{
	for (size_t i = 0; i < f->npaths; i++) {
		for (size_t k = 0; k < f->ncommands; k++)
			refused_whole(f, &f->paths[i], f->commands[k]);
	}
}

/* Returns false if the key exists already: it has its own type. */
static bool
wrong_type(const struct faults *f, const struct fault_path *p, enum key k, size_t type)
{
	static const char *const makes[] = { "SET %s x", "LPUSH %s x", "HSET %s x y",
	    "ZADD %s 1 x" };
	const char *key = rig_key(f->rig, k);
	char fault[64];

	if (f->fits(k, type))
		return true;
	f->begin(p);
	if (rig_int(f->rig, "EXISTS %s", key) == 1) {
		f->end();
		return false;
	}
	snprintf(fault, sizeof(fault), "Q%s by %.4s", keys_suffix(k), makes[type]);
	rig_do(f->rig, makes[type], key);
	p->run();
	p->run();
	rig_do(f->rig, "DEL %s", key);
	recover(f, p, fault);
	return true;
}

void
faults_wrong_types(const struct faults *f)
{
	for (size_t i = 0; i < f->npaths; i++) {
		for (size_t k = 0; k <= (size_t)f->last; k++) {
			for (size_t type = 0; type < 4; type++)
				if (!wrong_type(f, &f->paths[i], (enum key)k, type))
					break;
		}
	}
}
