/* rqctl unlock: breaks a lock. */
#include <stdlib.h>

#include "rqctl/ask.h"
#include "rqctl/lock.h"
#include "rqctl/out.h"

#define VALUE_END	"511"		/* lock.lua compares 512 bytes */

/*
 * Breaks the lock if its value is still this one.  Returns 1; 0 if it is not;
 * -1 after an error was reported.
 */
static int64_t
break_lock(struct ctl *c, const char *name, const char *value, size_t len)
{
	struct redisReply *reply;
	int64_t n = -1;

	if (ctl_given(c, OPT_DRY_RUN))
		return 1;
	reply = ask_script(c, "lock", 1, "%s%s %.*s break", KEYS_LOCK_PREFIX,
	    name, (int)len, value);
	if (reply != NULL)
		n = reply_int_at(reply, 0);
	reply_free(reply);
	return n;
}

static void
unlock_run(struct ctl *c)
{
	bool dry = ctl_given(c, OPT_DRY_RUN);
	const char *name = c->args.words[0], *text, *did = "broke";
	int64_t n = ask_number(ask(c, "EXISTS %s%s", KEYS_LOCK_PREFIX, name));
	struct redisReply *value;
	size_t len = 0;
	char *holder;

	if (dry)
		did = "would break";
	if (n == 0)
		ctl_error(c, EX_NOTHING, "nobody holds lock %s", name);
	if (n <= 0 ||
	    (value = ask(c, "GETRANGE %s%s 0 " VALUE_END, KEYS_LOCK_PREFIX, name)) == NULL)
		return;
	if ((text = reply_str(value, &len)) == NULL)
		text = "";
	holder = lock_holder_text(text);
	if (!ctl_given(c, OPT_FORCE))
		ctl_error(c, EX_TEMPFAIL, "lock %s is held by %s; --force breaks it", name, holder);
	else if (dry || ctl_confirm(c, "break lock %s, held by %s", name, holder)) {
		n = break_lock(c, name, text, len);
		if (n == 0)
			ctl_error(c, EX_NOTHING,
			    "lock %s has another holder now: nothing was done", name);
		else if (n > 0)
			ctl_result(c, json_set(json_object(), "name:s broken:i dry_run:t", name, n,
			    dry), "%s %s", did, name);
	}
	free(holder);
	reply_free(value);
}

const struct verb verb_unlock = {
	.name = "unlock",
	.args = "NAME",
	.help = "break a lock",
	.more = "Without --force, it only prints the holder, and exits with "
	    "75. If rqctl holds the lock, it terminates its command at the "
	    "next renewal.",
	.options = OPT(FORCE),
	.min_args = 1,
	.max_args = 1,
	.flags = VERB_JSON | VERB_ASKS,
	.run = unlock_run,
};
