/*
 * Verbs that change many messages; see change.h.  A selected message meets all
 * conditions.
 *
 * For --rate, change_add() computes from the beginning when the next step may start.  So after
 * a slow step the next ones follow at once.
 */
#include "rqctl/change.h"

#include <string.h>

#include "base/buf.h"
#include "base/units.h"
#include "rqctl/out.h"

/* -- which messages --------------------------------------------------------------- */

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
	char *cause;

	if (ctl_given(c, o) &&
	    units_parse_past(ctl_value(c, o), clock_wall(), ret, &cause) == -1)
		return ctl_wrong(c, o, cause);
	return 0;
}

/* Refuses a --reason that no dead letter can have. */
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

/* -- changes ---------------------------------------------------------------------- */

int
change_begin(struct ctl *c, struct change *ch, const char *word)
{
	char *cause;

	*ch = (struct change){ .ctl = c, .word = word, .began = clock_mono() };
	if (select_parse(c, &ch->select) == -1)
		return -1;
	if (ctl_given(c, OPT_RATE) &&
	    units_parse_rate(ctl_value(c, OPT_RATE), &ch->rate, &cause) == -1)
		return ctl_wrong(c, OPT_RATE, cause);
	ctl_catch_signals();
	return 0;
}

bool
change_goes_on(const struct change *ch)
{
	return !ctl_interrupted() && (ch->most == 0 || ch->matched < ch->most);
}

int
change_match(struct change *ch, int n)
{
	if (ch->most > 0 && n > ch->most - ch->matched)
		n = (int)(ch->most - ch->matched);
	ch->matched += n;
	return n;
}

int
change_step(const struct change *ch, int n)
{
	if (ch->rate <= 0 || ch->rate / 10 >= n)
		return n;
	return ch->rate / 10 < 1 ? 1 : (int)(ch->rate / 10);
}

static void
show_progress(const struct change *ch, int64_t looked, int64_t total)
{
	double passed = (double)(clock_mono() - ch->began) / (double)SEC, left;
	char done[OUT_NUMBER_MAX], of[OUT_NUMBER_MAX], age[UNITS_TEXT_MAX];

	if (ch->silent || !out_progress_is_on())
		return;
	left = looked > 0 && total > looked ?
	    passed / (double)looked * (double)(total - looked) : 0;
	out_progress("%s %s; %d%% of %s letters looked at, %.0f/s, %s left", ch->word,
	    out_number(ch->done, done), total > 0 ? (int)(100 * looked / total) : 100,
	    out_number(total, of), passed > 0 ? (double)ch->done / passed : 0,
	    units_age(left, age));
}

bool
change_add(struct change *ch, int64_t n, int64_t looked, int64_t total)
{
	usec_t due;

	ch->done += n;
	show_progress(ch, looked, total);
	if (ch->rate <= 0)
		return !ctl_interrupted();
	due = ch->began + (usec_t)((double)ch->done / ch->rate * (double)SEC);
	return ctl_sleep(due > clock_mono() ? due - clock_mono() : 0);
}

void
change_none(struct change *ch, const char *what)
{
	const char *queue = ch->ctl->target.name;

	if (ch->ctl->status != 0)
		return;
	if (select_is_narrow(&ch->select))
		ctl_error(ch->ctl, EX_NOTHING, "no %s of %s matches", what, queue);
	else
		ctl_error(ch->ctl, EX_NOTHING, "%s has no %ss", queue, what);
}

static void
report_none(struct change *ch, const struct change_ops *ops)
{
	if (ch->ctl->status == 0 && ops->none != NULL)
		ops->none(ch);
	change_none(ch, ops->what);
}

/* Reports what was changed, also after an error or an interruption. */
static void
report(const struct change *ch, const struct change_ops *ops)
{
	const struct ctl *c = ch->ctl;
	const char *queue = c->target.name, *thing = ops->thing != NULL ? ops->thing : ops->what;
	int64_t n = ch->dry ? ch->matched : ch->done;
	char text[OUT_NUMBER_MAX];
	json_t *o = json_set(json_object(), "queue:s *:i dry_run:t", queue,
	    ops->member != NULL ? ops->member : ops->word, n, ch->dry);

	if (ops->complete)
		json_set(o, "complete:t", c->status == 0);
	out_number(n, text);
	ctl_result(c, o, "%s%s%s %s %s%s of %s%s", ch->dry ? "would be " : "", ops->word,
	    ch->dry ? ":" : "", text, thing, n == 1 ? "" : "s", queue,
	    ch->dry || c->status == 0 ? "" : "; stopped before the end, the rest is unchanged");
}

/* Counts the matches and asks.  Returns how many may be changed, or -1: do nothing. */
static int64_t
ask_first(struct ctl *c, const struct change_ops *ops, const void *arg)
{
	struct change ch = { .ctl = c, .arg = arg, .dry = true };
	char text[OUT_NUMBER_MAX];

	if (select_parse(c, &ch.select) == -1)
		return -1;
	ops->walk(&ch);
	if (ch.matched == 0)
		report_none(&ch, ops);
	if (c->status != 0 || !ctl_confirm(c, "%s %s %s%s of %s", ops->verb,
	    out_number(ch.matched, text), ops->what, ch.matched == 1 ? "" : "s", c->target.name))
		return -1;
	return ch.matched;
}

static bool
must_ask(const struct ctl *c)
{
	unsigned flags = c->args.verb->flags;

	if (ctl_given(c, OPT_DRY_RUN) || ctl_given(c, OPT_YES))
		return false;
	return (flags & VERB_ASKS) != 0 || ((flags & VERB_ASKS_ALL) != 0 && ctl_given(c, OPT_ALL));
}

void
change_run(struct ctl *c, const struct change_ops *ops, const void *arg)
{
	int64_t most = must_ask(c) ? ask_first(c, ops, arg) : 0;
	struct change ch;

	if (most == -1 || change_begin(c, &ch, ops->word) == -1)
		return;
	ch.arg = arg;
	ch.most = most;
	ch.dry = ctl_given(c, OPT_DRY_RUN);
	ops->walk(&ch);
	out_progress_clear();
	if (ctl_interrupted() && c->status == 0)
		c->status = EX_INTERRUPTED;
	if (ch.matched == 0)
		report_none(&ch, ops);
	else if (c->status == 0 || ch.done > 0)
		report(&ch, ops);
}
