/*
 * Tables and lists; see listing.h.  A table keeps its cells until it is printed,
 * because a column is as wide as its widest cell.
 *
 * rqctl collects a list, then prints it.  After an error it prints a table of the rows that it
 * has, but no JSON.
 */
#include "rqctl/listing.h"

#include <stdlib.h>
#include <string.h>

#define GAP		2
#define CUT_MIN		8		/* least width of a column that is cut for the last one */
#define LIST_ALL	100000000L	/* no limit */

/* -- tables ----------------------------------------------------------------------- */

void
table_init(struct table *t, const char *heads)
{
	char *rest, *head;

	memset(t, 0, sizeof(*t));
	rest = t->heads = xstrdup(heads);
	while (t->ncolumns < TABLE_COLUMNS && (head = strsep(&rest, "|")) != NULL) {
		t->align[t->ncolumns] = *head == '>' ? 'r' : 'l';
		t->head[t->ncolumns++] = head + (*head == '>');
	}
}

void
table_put(struct table *t, char *text)
{
	if ((t->ncells & (t->ncells - 1)) == 0)	/* not APPEND(): there may be a million */
		t->cells = xreallocarray(t->cells, t->ncells > 0 ? 2 * t->ncells : 1,
		    sizeof(t->cells[0]));
	t->cells[t->ncells++] = (struct cell){ text, COLOUR_NONE };
}

void
table_bytes(struct table *t, const char *data, size_t len)
{
	struct buf b = BUF_INIT;

	out_escape(&b, data, len);
	table_put(t, buf_steal(&b));
}

void
table_number(struct table *t, long long n)
{
	char text[OUT_NUMBER_MAX];

	table_add(t, "%s", n < 0 ? "-" : out_number(n, text));
}

void
table_colour(struct table *t, enum colour colour)
{
	t->cells[t->ncells - 1].colour = colour;
}

size_t
table_rows(const struct table *t)
{
	return t->ncells / t->ncolumns;
}

static size_t
column_width(const struct table *t, size_t column)
{
	size_t width = out_columns(t->head[column]), w, i;

	for (i = column; i < t->ncells; i += t->ncolumns)
		if ((w = out_columns(t->cells[i].text)) > width)
			width = w;
	return width;
}

static void
pad(struct buf *b, size_t n)
{
	while (n-- > 0)
		buf_addc(b, ' ');
}

/* Appends text cut to `room` columns.  A plus marks the cut, at the end or in the middle. */
static void
print_cut(struct buf *b, const char *text, size_t room, bool middle)
{
	const char *rest = text + out_skip(text, middle ? room / 2 : 0);
	size_t len = out_fit(text, room - 1 - out_columns(rest));
	size_t cut = out_columns(text + len) - out_columns(rest), all = out_columns(text);

	buf_add(b, text, len);
	buf_addc(b, '+');
	buf_puts(b, rest);
	pad(b, room - (all - cut + 1));		/* a wide character may not have fitted */
}

/*
 * Appends one cell.  Text wider than `room` is cut, with a plus unless it is the last column.
 * The last cell of a line is not padded.
 */
static void
print_cell(struct buf *b, const struct table *t, size_t column, const char *text,
    enum colour colour, size_t width, size_t room)
{
	size_t used = out_columns(text);
	bool last = column + 1 == t->ncolumns, right = t->align[column] == 'r';

	if (right && used < width)
		pad(b, width - used);
	if (colour != COLOUR_NONE)
		buf_puts(b, out_colour(colour));
	if (used <= room)
		buf_puts(b, text);
	else if (last)
		buf_add(b, text, out_fit(text, room));
	else
		print_cut(b, text, room, t->middle);
	if (colour != COLOUR_NONE)
		buf_puts(b, out_colour(COLOUR_NONE));
	if (!last)
		pad(b, (!right && used < width ? width - used : 0) + GAP);
}

/* Computes the widths of all columns; returns how much room is left for the last one. */
static size_t
layout(const struct table *t, size_t width, size_t *widths)
{
	size_t before = 0, c, need, *cut = &widths[t->cut];

	for (c = 0; c + 1 < t->ncolumns; c++) {
		widths[c] = column_width(t, c);
		before += widths[c] + GAP;
	}
	widths[c] = column_width(t, c);
	if (width == 0)
		return SIZE_MAX / 2;
	need = before + (widths[c] < t->last_min ? widths[c] : t->last_min);
	if (t->last_min > 0 && need > width && *cut > CUT_MIN) {
		before -= *cut;
		*cut = *cut > need - width + CUT_MIN ? *cut - (need - width) : CUT_MIN;
		before += *cut;
	}
	return width > before ? width - before : 0;
}

void
table_print(const struct table *t, struct buf *b, size_t width)
{
	size_t widths[TABLE_COLUMNS], last = t->ncolumns - 1, room = layout(t, width, widths), i, c;

	for (c = 0; c <= last; c++)
		print_cell(b, t, c, t->head[c], COLOUR_BOLD, widths[c],
		    c == last ? room : widths[c]);
	buf_addc(b, '\n');
	for (i = 0; i < t->ncells; i++) {
		c = i % t->ncolumns;
		print_cell(b, t, c, t->cells[i].text, t->cells[i].colour, widths[c],
		    c == last ? room : widths[c]);
		if (c == last) {
			while (b->len > 0 && b->data[b->len - 1] == ' ')
				b->len--;
			buf_addc(b, '\n');
		}
	}
}

void
table_done(struct table *t)
{
	while (t->ncells > 0)
		free(t->cells[--t->ncells].text);
	free(t->cells);
	free(t->heads);
	t->cells = NULL;
	t->heads = NULL;
}

/* -- lists ------------------------------------------------------------------------ */

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
	return ctl_count(c, OPT_COUNT, LIST_ALL, &l->most);
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

/* Tells the user that the table does not have all rows. */
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
listing_finish(struct listing *l, int64_t total, const char *what, char *note)
{
	struct buf b = BUF_INIT;

	if (l->ctl->status == 0 && l->array != NULL)
		out_json(json_incref(l->array));
	else if (table_rows(&l->table) > 0) {
		table_print(&l->table, &b, (size_t)out_width());
		fwrite(b.data, 1, b.len, stdout);
		buf_done(&b);
		if (listing_is_full(l) || l->more)
			note_cut(l, total, what);
	} else if (l->ctl->status == 0)
		ctl_put_note(xstrdup(note));
	free(note);
	json_decref(l->array);
	table_done(&l->table);
}
