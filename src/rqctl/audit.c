/*
 * Tells daemons of messages that a verb has removed: they log who it was, so that a log that
 * ends with "retry" does not puzzle anybody.
 *
 * rqctl tells the daemons that serve the queue, or all if none does.  It is a
 * hint: a daemon that is not subscribed to its control channel logs nothing.  A
 * failure is a note: what the verb has removed is gone, so its status stays.
 */
#include <stdlib.h>

#include "queue/pausetext.h"
#include "rqctl/ask.h"
#include "rqctl/ctl.h"
#include "rqctl/snapshot.h"

static void
audit_tell(struct ctl *c, const char *what, int64_t n)
{
	struct fleet f;
	const char *key = c->target.key;
	bool served = false;
	char *who;

	if (snapshot_fleet(c, &f) == -1)
		return;
	who = pausetext_who();
	for (size_t i = 0; i < f.n; i++)
		served |= fleet_queue(&f.daemons[i], key) != NULL;
	for (size_t i = 0; i < f.n && c->status == 0; i++) {
		struct words w = { .n = 0 };

		if (served && fleet_queue(&f.daemons[i], key) == NULL)
			continue;
		ask_add(&w, "PUBLISH %s%s", KEYS_CONTROL_PREFIX,
		    f.daemons[i].instance);
		words_fmt(&w, "removed\n%s\n%s\n%lld\n%s", key, who,
		    (long long)n, what);
		reply_free(ask_words(c, &w));
	}
	free(who);
	fleet_done(&f);
}

void
audit_removed(struct ctl *c, const char *what, int64_t n)
{
	int status = c->status;

	if (n <= 0)
		return;
	c->status = 0;
	c->hold = true;
	audit_tell(c, what, n);
	if (c->held != NULL)
		ctl_note("the daemons do not log it: %s", c->held);
	ctl_forget(c);
	c->status = status;
}
