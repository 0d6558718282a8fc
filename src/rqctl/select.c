/* A message must meet all conditions. */
#include "rqctl/select.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/units.h"

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
	    units_parse_past(ctl_value(c, o), clock_wall(), ret, &cause) == -1)
		rc = ctl_error(c, EX_USAGE, "--%s: %s", opt_table[o].name, cause);
	free(cause);
	return rc;
}

/* It must be one that a letter can have. */
static int
check_reason(struct ctl *c, const char *reason)
{
	static const char *const known[] = {
		"exit", "signal", "timeout", "crashed", "status", "attempts", "answer", "protocol",
		"pushes", "cancelled", "too_large", "unframeable", "buried"
	};
	struct buf list = BUF_INIT;
	size_t i;

	for (i = 0; i < ARRAY_LEN(known) && strcmp(reason, known[i]) != 0; i++)
		buf_printf(&list, "%s%s", i > 0 ? ", " : "", known[i]);
	if (i == ARRAY_LEN(known) && reason[0] != '\0')
		ctl_error(c, EX_USAGE,
		    "--reason: \"%s\" is not a reason of dead letters: write one of "
		    "%s",
		    reason, buf_str(&list));
	buf_done(&list);
	return c->status == 0 ? 0 : -1;
}

bool
select_is_narrow(const struct select *s)
{
	return s->nids > 0 || s->reason[0] != '\0' || s->match[0] != '\0' || s->since != 0 ||
	    s->until != 0;
}

int
select_parse(struct ctl *c, struct select *s)
{
	bool all = ctl_given(c, OPT_ALL) && c->args.verb->rows == 0, narrow;

	*s = (struct select){
		.ids = c->args.words + 1, .nids = c->args.nwords - 1,
		.reason = ctl_value(c, OPT_REASON), .match = ctl_value(c, OPT_MATCH)
	};
	if (check_reason(c, s->reason) == -1 || parse_time(c, OPT_SINCE, &s->since) == -1 ||
	    parse_time(c, OPT_UNTIL, &s->until) == -1)
		return -1;
	narrow = select_is_narrow(s) || ctl_given(c, OPT_SINCE) || ctl_given(c, OPT_UNTIL);
	if (all && narrow)
		return ctl_error(c, EX_USAGE, "--all does not go together with %s",
		    s->nids > 0 ? "ids" : "filters");
	if (narrow || all || (c->args.verb->flags & VERB_SELECTS) == 0)
		return 0;
	if (verb_options(c->args.verb) & OPT(REASON))
		return ctl_error(c, EX_USAGE, "select dead letters: by id, --reason, --since, "
		    "--until, --match, or --all");
	return ctl_error(c, EX_USAGE, "select messages: by id, --match, or --all");
}
