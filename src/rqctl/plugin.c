/*
 * Thresholds and output of a monitoring plugin, after the Monitoring Plugins Development
 * Guidelines: 'label'=value[unit];warning;critical;minimum.
 */
#include "rqctl/plugin.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

#define COUNT_MAX	INT64_C(1000000000000)

/* -- thresholds ------------------------------------------------------------------- */

/* Reads one limit.  Returns -1 if the text is not a number or a duration in range. */
static int
read_limit(const char *text, bool durations, double *ret)
{
	usec_t duration;
	int64_t count;

	if (durations) {
		if (units_parse_duration(text, &duration) == -1)
			return -1;
		*ret = (double)duration / 1e6;
		return 0;
	}
	if (units_parse_int(text, &count) == -1 || count < 0 || count > COUNT_MAX)
		return -1;
	*ret = (double)count;
	return 0;
}

/* Reads WARN, WARN:CRIT or :CRIT.  Returns -1 if the text is none of these. */
static int
read_limits(const char *text, bool durations, struct threshold *ret)
{
	size_t n = strcspn(text, ":");
	char *first = xstrndup(text, n);
	int rc = 0;

	if (n > 0 || text[n] == '\0')
		rc = read_limit(first, durations, &ret->warning);
	if (rc == 0 && text[n] == ':')
		rc = read_limit(text + n + 1, durations, &ret->critical);
	free(first);
	return rc;
}

int
threshold_read(struct ctl *c, enum opt o, bool durations, struct threshold *ret)
{
	const char *name = opt_table[o].name, *text = ctl_value(c, o);

	*ret = (struct threshold){ NAN, NAN };
	if (!ctl_given(c, o))
		return 0;
	if (read_limits(text, durations, ret) == -1)
		return ctl_error(c, EX_USAGE, "--%s: \"%s\" is not WARN, WARN:CRIT or :CRIT with "
		    "%s: write %s", name, text,
		    durations ? "durations" : "counts from 0 to 1000000000000",
		    durations ? "5m or 5m:30m" : "10 or 10:100");
	if (ret->critical < ret->warning)
		return ctl_error(c, EX_USAGE, "--%s: \"%s\": CRIT must not be below WARN: "
		    "write %s", name, text, durations ? "5m:30m" : "10:100");
	return 0;
}

int
threshold_judge(const struct threshold *t, double value)
{
	if (value > t->critical)
		return PLUGIN_CRITICAL;
	return value > t->warning ? PLUGIN_WARNING : PLUGIN_OK;
}

/* -- output ----------------------------------------------------------------------- */

/* Escapes text for the output.  The characters in `special` become \xHH, too. */
static void
add_escaped(struct buf *b, const char *text, const char *special)
{
	struct buf plain = BUF_INIT;
	const char *p;

	out_escape(&plain, text, strlen(text));
	for (p = buf_str(&plain); *p != '\0'; p++)
		if (strchr(special, *p) != NULL)
			buf_printf(b, "\\x%02x", (unsigned char)*p);
		else
			buf_addc(b, *p);
	buf_done(&plain);
}

/* A label may hold all but "="; the guidelines double its quotes. */
static void
add_label(struct buf *b, const char *queue, const char *measure)
{
	struct buf name = BUF_INIT;
	const char *p;

	add_escaped(&name, queue, "=|");
	buf_addc(b, '\'');
	for (p = buf_str(&name); *p != '\0'; p++) {
		if (*p == '\'')
			buf_addc(b, '\'');
		buf_addc(b, *p);
	}
	buf_printf(b, "_%s'", measure);
	buf_done(&name);
}

/* Adds a number with up to three decimals, without trailing zeros; nothing for NAN. */
static void
add_number(struct buf *b, double value)
{
	if (isnan(value))
		return;
	buf_printf(b, "%.3f", value);
	while (b->data[b->len - 1] == '0')
		b->len--;
	if (b->data[b->len - 1] == '.')
		b->len--;
}

void
plugin_add(struct buf *b, const char *queue, const char *measure, double value, const char *unit,
    const struct threshold *t)
{
	buf_addc(b, ' ');
	add_label(b, queue, measure);
	buf_addc(b, '=');
	add_number(b, value);
	buf_puts(b, isnan(value) ? "U" : unit);
	buf_addc(b, ';');
	add_number(b, t->warning);
	buf_addc(b, ';');
	add_number(b, t->critical);
	buf_puts(b, ";0");
}

char *
plugin_text(const char *text)
{
	struct buf b = BUF_INIT;

	add_escaped(&b, text, "|");
	return buf_steal(&b);
}

void
plugin_line(int status, const char *text, struct buf *data)
{
	static const char *const words[] = {
		[PLUGIN_OK] = "OK", [PLUGIN_WARNING] = "WARNING",
		[PLUGIN_CRITICAL] = "CRITICAL", [PLUGIN_UNKNOWN] = "UNKNOWN",
	};
	char *line = plugin_text(text);

	printf("RQD %s - %s%s%s\n", words[status], line, data->len > 0 ? " |" : "",
	    buf_str(data));
	free(line);
}
