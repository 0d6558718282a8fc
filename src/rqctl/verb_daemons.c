/* rqctl daemons: lists the live daemons, and where they disagree. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rqctl/ask.h"
#include "rqctl/listing.h"
#include "rqctl/snapshot.h"

#define SETTINGS_MAX	10	/* queues with different settings that are listed */

static void
daemon_row(struct listing *l, const struct daemon *d, double now)
{
	double started = fleet_number(d->beat, "started", NAN);
	const char *name;
	struct buf b = BUF_INIT;
	json_t *q;

	json_object_foreach(json_object_get(d->beat, "queues"), name, q) {
		/* "orders mail(suspended)" */
		buf_printf(&b, "%s%s", text_if(b.len > 0, " "), name);
		if (fleet_state(q) != QUEUE_RUNNING)
			buf_printf(&b, "(%s)", fleet_state_name(fleet_state(q)));
	}
	listing_row(l, json_set(json_copy(d->beat), "seen:f .daemon:s .version:s .pid:i .up:f "
	    ".ago:f .config:j .queues:s", d->seen, d->instance, fleet_text(d->beat, "version"),
	    fleet_count(d->beat, "pid"), now - started,
	    double_max(now - d->seen, 0),
	    json_sprintf("%.8s", fleet_text(d->beat, "config")), buf_str(&b)));
	buf_done(&b);
}

/* Prints a line for each queue about which daemons disagree. */
static void
list_differences(const struct fleet *f)
{
	size_t n, i, shown = 0;
	struct served *served = fleet_served(f, &n);
	struct service s;
	char *text;

	for (i = 0; i < n; i++) {
		fleet_service(f, served[i].key, &s);
		if (s.leases_differ)
			out_line(NULL, "warning: daemons disagree about the lease of %s",
			    served[i].name);
		if (s.shards_differ)
			out_line(NULL, "warning: daemons disagree about the shards of %s",
			    served[i].name);
		if (s.groups_differ)
			out_line(NULL, "warning: daemons disagree about the groups of %s",
			    served[i].name);
		if (!s.settings_differ || shown++ >= SETTINGS_MAX)
			continue;
		/* Only a note: a larger host may have a higher concurrency on purpose. */
		text = fleet_difference(&s);
		out_line(NULL, "note: the configuration of %s differs between daemons: %s",
		    served[i].name, text);
		free(text);
	}
	if (shown > SETTINGS_MAX)
		printf("note: the configuration of %zu more queues differs, too\n",
		    shown - SETTINGS_MAX);
	free(served);
}

static void
daemons_run(struct ctl *c)
{
	double now = ask_time_of(c, KEYS_DAEMONS);
	struct fleet f;
	struct listing l;

	if (now < 0 || snapshot_fleet(c, &f) == -1)
		return;
	if (listing_init(&l, c, "DAEMON=.daemon|VERSION=.version|>PID=#.pid|>UP=.up|>SEEN=.ago|"
	    "CONFIG=.config|QUEUES=.queues") == 0)
		for (size_t i = 0; i < f.n; i++)
			daemon_row(&l, &f.daemons[i], now);
	listing_end(&l, l.rows, "daemons", "no daemon is running on %s",
	    sync_name(c->client));
	if (!ctl_given(c, OPT_JSON))
		list_differences(&f);
	if (f.ignored > 0)
		ctl_note("skipped %zu heartbeat%s: too large, or not readable", f.ignored,
		    plural(f.ignored));
	if (f.unread > 0)
		ctl_note("these are of the latest %d daemons; %s has %zu more, alive or not",
		    FLEET_MAX, KEYS_DAEMONS, f.unread);
	fleet_done(&f);
}

const struct verb verb_daemons = {
	.name = "daemons",
	.args = "",
	.help = "list live daemons and the queues that they serve",
	.more = "Also reports where daemons disagree about a queue.",
	.flags = VERB_JSON,
	.run = daemons_run,
};
