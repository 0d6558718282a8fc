/*
 * Decoding by libconfuse; see decode.h.
 */
#include "config/decode.h"

#include <confuse.h>
#include <stdlib.h>

/* libconfuse's last error; its callback takes no argument. */
static char *complaint;

static void PRINTF(2, 0)
complain(cfg_t *cfg UNUSED, const char *fmt, va_list ap)
{
	free(complaint);
	complaint = xvasprintf(fmt, ap);
}

char *
decode_token(const struct token *t, char **cause)
{
	cfg_opt_t opts[] = { CFG_STR("value", NULL, CFGF_NODEFAULT), CFG_END() };
	char *text, *value = NULL;
	const char *decoded;
	cfg_t *cfg;

	if (t->type == TOKEN_WORD)	/* stands for itself; libconfuse might misread it */
		return xstrdup(t->text);
	if ((cfg = cfg_init(opts, CFGF_NONE)) == NULL)
		fatal_os("cfg_init: out of memory");
	(void)cfg_set_error_function(cfg, complain);
	text = xasprintf("value = %s", t->text);
	if (cfg_parse_buf(cfg, text) == CFG_SUCCESS) {
		decoded = cfg_getstr(cfg, "value");
		value = xstrdup(decoded != NULL ? decoded : "");
	} else {
		*cause = complaint != NULL ? complaint : xstrdup("syntax error");
		complaint = NULL;
	}
	free(complaint);
	complaint = NULL;
	free(text);
	cfg_free(cfg);
	return value;
}
