/*
 * A list is collected, then printed.  After an error, a table shows the rows that were
 * read; JSON is whole or not there.
 */
#include "rqctl/listing.h"

#include <stdarg.h>
#include <stdlib.h>

#define LIST_ALL	100000000L	/* more than anybody reads */

int
listing_init(struct listing *l, struct ctl *c, const char *heads)
{
	bool all = ctl_given(c, OPT_ALL) || ctl_given(c, OPT_JSON) || c->args.verb->rows == 0;

	*l = (struct listing){ .ctl = c, .most = all ? LIST_ALL : c->args.verb->rows };
	table_init(&l->table, heads);
	if (ctl_given(c, OPT_JSON))
		l->array = json_array();
	if (ctl_given(c, OPT_ALL) && ctl_given(c, OPT_COUNT))
		return ctl_error(c, EX_USAGE, "--all does not go together with --count");
	return ctl_count(c, OPT_COUNT, 1, LIST_ALL, &l->most);
}

json_t *
listing_row(struct listing *l)
{
	json_t *o = NULL;

	l->rows++;
	if (l->array != NULL)
		json_array_append_new(l->array, o = json_object());
	return o;
}

bool
listing_is_full(const struct listing *l)
{
	return l->rows >= l->most;
}

long
listing_room(const struct listing *l, long most)
{
	long room = l->most - (long)l->rows;

	return room < most ? room : most;
}

/* Tells that the table does not have all. */
static void
note_cut(const struct listing *l, int64_t total, const char *what)
{
	char n[OUT_NUMBER_MAX], of[OUT_NUMBER_MAX];

	out_number(l->rows, n);
	if (total > l->rows)
		ctl_note("%s of %s %s; --all for all", n, out_number(total, of), what);
	else if (total < 0 && l->more)
		ctl_note("the first %s %s; --all for all", n, what);
}

void
listing_end(struct listing *l, int64_t total, const char *what, const char *fmt, ...)
{
	char *note;
	va_list ap;

	va_start(ap, fmt);
	note = xvasprintf(fmt, ap);
	va_end(ap);
	if (l->ctl->status == 0 && l->array != NULL)
		out_json(json_incref(l->array));
	else if (table_rows(&l->table) > 0) {
		table_show(&l->table);
		if (listing_is_full(l) || l->more)
			note_cut(l, total, what);
	} else if (l->ctl->status == 0)
		ctl_note("%s", note);
	free(note);
	json_decref(l->array);
	table_done(&l->table);
}
