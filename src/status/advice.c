/* The words of advice; see advice.h. */
#include "status/advice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "base/util.h"

const char *
advice_log_file(const struct config *config)
{
	if (config == NULL || config->log.target[0] != '/')
		return NULL;
	return config->log.target;
}

/* "13.1M" */
static const char *
about(uint64_t bytes, char *text)
{
	const double mib = 1024.0 * 1024.0;

	if (bytes < (uint64_t)mib)
		return units_size(bytes, text);
	snprintf(text, UNITS_TEXT_MAX, "%.1fM", (double)bytes / mib);
	return text;
}

char *
advice_memory(uint64_t used, uint64_t max)
{
	char a[UNITS_TEXT_MAX], b[UNITS_TEXT_MAX];

	if (max == 0 || used <= max)
		return NULL;
	return xasprintf("Redis is full: it uses %s of maxmemory %s, and refuses pushes, "
	    "hand-overs and heartbeats: daemons may run unseen; raise maxmemory (CONFIG SET, "
	    "and redis.conf), or drop messages (rqctl purge, rqctl dead drop)", about(used, a),
	    about(max, b));
}

/* -- commands --------------------------------------------------------------------- */

void
advice_word(struct buf *b, const char *text)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	    "0123456789_./:@%+=,-";
	const unsigned char *p = (const unsigned char *)text;
	bool odd = false;

	if (text[0] != '\0' && text[0] != '-' && text[strspn(text, plain)] == '\0') {
		buf_puts(b, text);
		return;
	}
	for (; *p != '\0'; p++)
		odd = odd || *p < 0x20 || *p > 0x7e || *p == '\'' || *p == '\\';
	if (odd)
		buf_addc(b, '$');
	buf_addc(b, '\'');
	for (p = (const unsigned char *)text; *p != '\0'; p++)
		if (*p == '\'' || *p == '\\')
			buf_printf(b, "\\%c", *p);
		else if (*p < 0x20 || *p > 0x7e)
			buf_printf(b, "\\x%02x", *p);
		else
			buf_addc(b, (char)*p);
	buf_addc(b, '\'');
}

void
advice_command(struct buf *b, const char *rqctl, const char *verb, const char *queue,
    const char *rest)
{
	buf_printf(b, "%s %s%s ", rqctl, verb,
	    text_if(queue[0] == '-', " --"));
	advice_word(b, queue);
	if (rest[0] != '\0') {
		buf_addc(b, ' ');
		advice_word(b, rest);
	}
	buf_addc(b, '\n');
}

void
advice_log_lines(struct buf *b, const struct config *config, const char *name)
{
	const char *before = "level=(warn|error) .*queue=\"?", *after = "\"? ";
	struct buf pattern = BUF_INIT;

	if (config->log.format == LOG_JSON) {
		before = "\"level\":\"(warn|error)\".*\"queue\":\"";
		after = "\"";
	}
	if (advice_log_file(config) == NULL) {
		buf_puts(b, "journalctl -p warning -n 50 RQD_QUEUE=");
		advice_word(b, name);
		buf_addc(b, '\n');
		return;
	}
	buf_puts(&pattern, before);
	for (; *name != '\0'; name++) {
		if (strchr("^\\", *name) != NULL)
			buf_printf(&pattern, "\\%c", *name);
		else if (strchr(".[]()*+?{}$|", *name) != NULL)
			buf_printf(&pattern, "[%c]", *name);
		else
			buf_addc(&pattern, *name);
	}
	buf_puts(&pattern, after);
	buf_puts(b, "grep -E ");
	advice_word(b, buf_str(&pattern));
	buf_addc(b, ' ');
	advice_word(b, advice_log_file(config));
	buf_puts(b, " | tail -n 50\n");
	buf_done(&pattern);
}
