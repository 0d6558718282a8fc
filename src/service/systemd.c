/* Reports to systemd; see systemd.h. */
#include "service/systemd.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "loop/notify.h"
#include "loop/timer.h"

#define EXTEND_BY	(15 * SEC)	/* asked for every third of it */

struct systemd {
	systemd_line	*line;
	void		*arg;
	char		 told[160];	/* the last line */
	struct timer	 watchdog;
	struct timer	 extend;	/* set from systemd_stopping() on */
};

void
systemd_update(struct systemd *s)
{
	char line[sizeof(s->told)];

	s->line(line, sizeof(line), s->arg);
	if (strcmp(line, s->told) == 0)
		return;
	memcpy(s->told, line, sizeof(line));
	notify("STATUS=%s", line);
}

static void
systemd_watchdog(void *arg)
{
	struct systemd *s = arg;

	notify("WATCHDOG=1");
	timer_set(&s->watchdog, notify_watchdog_interval());
}

static void
systemd_extend(void *arg)
{
	struct systemd *s = arg;

	notify("EXTEND_TIMEOUT_USEC=%lld", (long long)EXTEND_BY);
	timer_set(&s->extend, EXTEND_BY / 3);
	systemd_update(s);
}

void
systemd_stopping(struct systemd *s)
{
	systemd_update(s);
	notify("STOPPING=1");
	systemd_extend(s);
}

struct systemd *
systemd_new(struct loop *loop, systemd_line *line, void *arg)
{
	struct systemd *s = NEW(struct systemd, .line = line, .arg = arg);

	timer_init(&s->watchdog, loop, systemd_watchdog, s);
	timer_init(&s->extend, loop, systemd_extend, s);
	if (notify_watchdog_interval() > 0)
		systemd_watchdog(s);
	return s;
}

void
systemd_free(struct systemd *s)
{
	if (s == NULL)
		return;
	timer_stop(&s->watchdog);
	timer_stop(&s->extend);
	free(s);
}
