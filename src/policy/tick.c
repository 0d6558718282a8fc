/*
 * The ticks of a schedule; see tick.h.  "every" counts from 1970, not from the start of
 * a daemon, so that all daemons compute the same ticks.
 */
#include "policy/tick.h"

#include <stdio.h>
#include <time.h>

#include "base/buf.h"

static int64_t
every(const struct schedule_config *s)
{
	return s->every / SEC;
}

int64_t
tick_next(const struct schedule_config *s, int64_t after)
{
	if (s->every == 0)
		return cron_next(&s->times, s->timezone, after);
	return tick_last(s, after) + every(s);
}

int64_t
tick_last(const struct schedule_config *s, int64_t until)
{
	int64_t rest;

	if (s->every == 0)
		return cron_last(&s->times, s->timezone, until);
	rest = until % every(s);
	return until - rest - (rest < 0 ? every(s) : 0);
}

int64_t
tick_period(const struct schedule_config *s, int64_t tick)
{
	return s->every != 0 ? every(s) : tick_next(s, tick) - tick;
}

int64_t
tick_grace(const struct schedule_config *s, int64_t tick, bool fresh)
{
	int64_t period;

	if (s->catch_up)
		return -1;
	if (fresh)
		return TICK_GRACE_FRESH;
	period = tick_period(s, tick);
	if (period < TICK_GRACE_MIN)
		return TICK_GRACE_MIN;
	return period < TICK_GRACE_MAX ? period : TICK_GRACE_MAX;
}

char *
tick_message(const struct schedule_config *s, int64_t tick, bool of_ids)
{
	struct buf b = BUF_INIT;
	char text[TICK_TEXT_MAX];
	const char *p;

	if (s->message[0] != '\0')
		return xstrdup(s->message);
	if (of_ids)
		return xstrdup(s->name);
	buf_puts(&b, "{\"id\":\"");
	for (p = s->name; *p != '\0'; p++) {
		if (*p == '"' || *p == '\\')
			buf_addc(&b, '\\');
		buf_addc(&b, *p);
	}
	buf_printf(&b, "@%s\"}", tick_text(tick, text));
	(void)buf_str(&b);
	return buf_steal(&b);
}

char *
tick_text(int64_t tick, char *buf)
{
	time_t t = (time_t)tick;
	struct tm tm;

	if (gmtime_r(&t, &tm) == NULL || strftime(buf, TICK_TEXT_MAX, "%FT%TZ", &tm) == 0)
		snprintf(buf, TICK_TEXT_MAX, "@%lld", (long long)tick);
	return buf;
}
