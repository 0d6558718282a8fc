/*
 * rqctl quiet: sends a hint to daemons.
 *
 * rqctl publishes a hint to a daemon's control channel; Redis answers how many have received
 * it.  A daemon receives none if Redis forbids it to subscribe, or if its version is too old.
 */
#include <string.h>

#include "rqctl/ask.h"
#include "rqctl/snapshot.h"

/* Sends a hint; returns whether the daemon has received it. */
static bool
send_hint(struct ctl *c, const char *instance, const char *hint)
{
	int64_t heard = ask_number(ask(c, "PUBLISH %s%s %s", KEYS_CONTROL_PREFIX, instance, hint));

	heard = ask_heard(c, instance, heard);
	if (heard == 0)
		ctl_error(c, EX_UNAVAILABLE, "%s is not subscribed to %s%s: Redis forbids it, or "
		    "its version is too old", instance, KEYS_CONTROL_PREFIX, instance);
	return heard > 0;
}

static void
quiet_run(struct ctl *c)
{
	const char *name = c->args.words[0], *instance;
	const char *hint = "quiet", *is = "quiet";
	struct fleet f;
	size_t i, n = 0;

	if (snapshot_fleet(c, &f) == -1)
		return;
	if (ctl_given(c, OPT_END)) {
		hint = "end_quiet";
		is = "no longer quiet";
	}
	for (i = 0; i < f.n; i++) {
		instance = f.daemons[i].instance;
		if (strcmp(name, instance) != 0 &&
		    strcmp(name, fleet_text(f.daemons[i].beat, "name")) != 0)
			continue;
		n++;
		if (send_hint(c, instance, hint))
			ctl_result(c, json_set(json_object(), "daemon:s done:s", instance, hint),
			    "%s: %s", is, instance);
	}
	if (n == 0)
		ctl_error(c, EX_NOTHING, "there is no live daemon %s: rqctl daemons lists them",
		    name);
	fleet_done(&f);
}

const struct verb verb_quiet = {
	.name = "quiet",
	.args = "HOST|INSTANCE",
	.help = "make a daemon take no new messages",
	.more = "Messages in flight are finished. Quiet lasts until --end, a "
	    "reload or a restart.",
	.options = OPT(END),
	.min_args = 1,
	.max_args = 1,
	.flags = VERB_JSON | VERB_LINES,
	.run = quiet_run,
};
