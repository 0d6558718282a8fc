/*
 * Filters for dead letters.  They narrow each other: a letter must pass all.
 */
#include "rqctl/select.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "rqctl/when.h"

bool
select_is_letter(const char *id)
{
	size_t n = strspn(id, "0123456789");

	return n > 0 && n < 20 && id[n] == '-' && id[n + 1] != '\0' &&
	    id[n + 1 + strspn(id + n + 1, "0123456789")] == '\0';
}

static int
parse_time(struct ctl *c, enum opt o, wall_t *ret)
{
	char *cause = NULL;
	int rc = 0;

	if (ctl_given(c, o) &&
	    when_parse_past(ctl_value(c, o), clock_wall(), ret, &cause) == -1)
		rc = ctl_error(c, EX_USAGE, "--%s: %s", opt_table[o].name, cause);
	free(cause);
	return rc;
}

static const char *
text_or_any(const struct ctl *c, enum opt o)
{
	return ctl_given(c, o) ? ctl_value(c, o) : "";
}

/* One that a letter can have. */
static int
check_reason(struct ctl *c, const char *reason)
{
	static const char *const known[] = {
		"exit", "signal", "timeout", "crashed", "status", "attempts", "answer", "protocol",
		"pushes", "cancelled", "too_large", "unframeable", "buried", NULL
	};
	struct buf list = BUF_INIT;
	size_t i;
	int rc = -1;

	for (i = 0; known[i] != NULL && strcmp(reason, known[i]) != 0; i++)
		buf_printf(&list, "%s%s", i > 0 ? ", " : "", known[i]);
	if (known[i] != NULL || reason[0] == '\0')
		rc = 0;
	else
		ctl_error(c, EX_USAGE, "--reason: \"%s\" is no reason of dead letters: write one of %s", reason,
		    buf_str(&list));
	buf_done(&list);
	return rc;
}

int
select_parse(struct ctl *c, struct select *s, bool must)
{
	bool filtered;

	*s = (struct select){
		.ids = c->args.words + 1,
		.nids = c->args.nwords - 1,
		.reason = text_or_any(c, OPT_REASON),
		.match = text_or_any(c, OPT_MATCH)
	};
	if (check_reason(c, s->reason) == -1 || parse_time(c, OPT_SINCE, &s->since) == -1 ||
	    parse_time(c, OPT_UNTIL, &s->until) == -1)
		return -1;
	filtered = s->reason[0] != '\0' || s->match[0] != '\0' || ctl_given(c, OPT_SINCE) ||
	    ctl_given(c, OPT_UNTIL);
	if (ctl_given(c, OPT_ALL) && !ctl_is_list(c) && (filtered || s->nids > 0))
		return ctl_error(c, EX_USAGE, "--all does not go together with %s",
		    s->nids > 0 ? "ids" : "filters");
	if (must && !filtered && s->nids == 0 && !ctl_given(c, OPT_ALL))
		return ctl_error(c, EX_USAGE,
		    "select dead letters: by id, --reason, --since, --until, --match, or --all");
	return 0;
}
