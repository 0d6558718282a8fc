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

#include "base/units.h"

#define GAP		2
#define CUT_MIN		8		/* least width of a column that is cut for the last one */
#define SHED_MIN	20		/* columns are shed before it gets less than that */
#define RECORD_MIN	16		/* of the last column, else records */
#define SHED		SIZE_MAX	/* width of a column that is left out */
#define LIST_ALL	100000000L	/* no limit */

/* -- tables ----------------------------------------------------------------------- */

void
table_init(struct table *t, const char *columns)
{
	char *rest, *head;
	size_t n;

	memset(t, 0, sizeof(*t));
	rest = t->columns = xstrdup(columns);
	while (t->ncolumns < TABLE_COLUMNS && (head = strsep(&rest, "|")) != NULL) {
		n = t->ncolumns++;
		t->align[n] = 'l';
		if (*head == '>') {
			t->align[n] = 'r';
			head++;
		}
		t->head[n] = strsep(&head, "=");
		t->member[n] = head;
	}
}

/* The text of a member, as listing.h says. */
static char *
cell_text(const json_t *o, const char *member)
{
	bool plain = *member == '#';
	const json_t *v = json_object_get(o, member += plain);
	char text[OUT_NUMBER_MAX], age[UNITS_TEXT_MAX], *bytes;
	json_int_t n = json_integer_value(v);
	struct buf b = BUF_INIT;
	json_t *word;
	size_t len, i;

	if ((bytes = json_get_bytes(o, member, &len)) != NULL)
		out_escape(&b, bytes, len);
	else if (json_is_array(v))
		json_array_foreach(v, i, word) {
			if (i > 0)
				buf_addc(&b, ' ');
			if (json_is_object(word))	/* base64 */
				word = json_object_iter_value(json_object_iter(word));
			out_escape(&b, json_string_value(word), json_string_length(word));
		}
	else if (json_is_integer(v) && n >= 0 && plain)
		buf_printf(&b, "%lld", (long long)n);
	else if (json_is_integer(v) && n >= 0)
		buf_puts(&b, out_number(n, text));
	else if (json_is_real(v))
		buf_puts(&b, units_age(json_real_value(v), age));
	else
		buf_addc(&b, '-');
	free(bytes);
	return buf_steal(&b);
}

void
table_row(struct table *t, const json_t *o)
{
	for (size_t c = 0; c < t->ncolumns; c++) {
		/* Not APPEND(): there may be a million. */
		if ((t->ncells & (t->ncells - 1)) == 0)
			t->cells = xreallocarray(t->cells,
			    size_max(2 * t->ncells, 1), sizeof(t->cells[0]));
		t->cells[t->ncells++] = (struct cell){ cell_text(o, t->member[c]), COLOUR_NONE };
	}
}

void
table_colour(struct table *t, size_t column, enum colour colour)
{
	if (t->ncells > 0)
		t->cells[t->ncells - t->ncolumns + column].colour = colour;
}

/* How wide the columns before the last one are together. */
static size_t
width_before(const struct table *t, const size_t *widths)
{
	size_t before = 0;

	for (size_t c = 0; c + 1 < t->ncolumns; c++)
		if (widths[c] != SHED)
			before += widths[c] + GAP;
	return before;
}

/* How many columns of a width are left. */
static size_t
width_left(size_t width, size_t used)
{
	if (used >= width)
		return 0;
	return width - used;
}

/* Whether the column has nothing but "0" and "-". */
static bool
is_idle(const struct table *t, size_t column)
{
	const char *text;

	for (size_t i = column; i < t->ncells; i += t->ncolumns) {
		text = t->cells[i].text;
		if (strcmp(text, "0") != 0 && strcmp(text, "-") != 0)
			return false;
	}
	return t->ncells > 0;
}

/*
 * Computes the widths of all columns; the last one gets the room that is left.  false: it would
 * be so little that the table is better printed as records.
 */
static bool
layout(const struct table *t, size_t width, size_t *widths)
{
	size_t c, before, last, spare, w, *cut = &widths[t->cut];

	for (c = 0; c < t->ncolumns; c++)
		widths[c] = out_columns(t->head[c]);
	for (size_t i = 0; i < t->ncells; i++)
		if ((w = out_columns(t->cells[i].text)) > widths[i % t->ncolumns])
			widths[i % t->ncolumns] = w;
	if (width == 0)
		return true;
	for (c = t->ncolumns - 1; c-- > 1 &&
	    width_before(t, widths) + widths[t->ncolumns - 1] > width;)
		if (is_idle(t, c))
			widths[c] = SHED;
	c = t->ncolumns;
	last = size_min(widths[c - 1], t->last_min);
	spare = width_left(*cut, SHED_MIN);
	for (const char *s = t->shed; s != NULL && *s != '\0' &&
	    width_before(t, widths) + last > width + spare; s++)
		widths[*s - '0'] = SHED;
	before = width_before(t, widths);
	if (t->last_min > 0 && before + last > width && *cut > CUT_MIN) {
		before -= *cut;
		*cut = size_max(width_left(width, before + last), CUT_MIN);
		before += *cut;
	}
	last = size_min(widths[c - 1], RECORD_MIN);
	if (t->last_min == 0 && before + last > width)
		return false;
	widths[c - 1] = width_left(width, before);
	return true;
}

/* Appends each row as a block: a line "HEAD  text" for each column. */
static void
print_records(const struct table *t, struct buf *b)
{
	size_t width = 0, w, c;

	for (c = 0; c < t->ncolumns; c++)
		if ((w = out_columns(t->head[c])) > width)
			width = w;
	for (size_t i = 0; i < t->ncells; i++) {
		c = i % t->ncolumns;
		if (c == 0 && i > 0)
			buf_addc(b, '\n');
		buf_printf(b, "%s%s%s%*s%s\n", out_colour(COLOUR_BOLD), t->head[c],
		    out_colour(COLOUR_NONE), (int)(width - out_columns(t->head[c]) + GAP), "",
		    t->cells[i].text);
	}
}

/*
 * Appends one cell.  A plus marks where text that is wider than the column is cut: in the middle,
 * because the ends of names differ; in the last column at the end.
 */
static void
print_cell(struct buf *b, const struct table *t, size_t column, const struct cell *cell,
    size_t width)
{
	bool last = column + 1 == t->ncolumns, right = t->align[column] == 'r', cut;
	const char *text = text_if(width > 0, cell->text), *rest = "";
	size_t used = out_columns(text), len = strlen(text), kept = used;
	size_t end = width / 2, pad = GAP;

	if (last)
		end = 0;
	if ((cut = used > width)) {
		rest = text + out_skip(text, end);
		len = out_fit(text, width - 1 - out_columns(rest));
		kept = used - out_columns(text + len) + 1 + out_columns(rest);
	}
	if (right && kept < width && !last)
		buf_printf(b, "%*s", (int)(width - kept), "");
	if (cell->colour != COLOUR_NONE)
		buf_puts(b, out_colour(cell->colour));
	buf_add(b, text, len);
	if (cut)
		buf_printf(b, "+%s", rest);
	if (cell->colour != COLOUR_NONE)
		buf_puts(b, out_colour(COLOUR_NONE));
	if (!right)
		pad += width_left(width, kept);
	if (!last)
		buf_printf(b, "%*s", (int)pad, "");
}

void
table_print(const struct table *t, struct buf *b, size_t width)
{
	size_t widths[TABLE_COLUMNS], i, c;
	struct cell head = { .colour = COLOUR_BOLD };
	const struct cell *cell;

	if (!layout(t, width, widths)) {
		print_records(t, b);
		return;
	}
	for (i = 0; i < t->ncolumns + t->ncells; i++) {
		c = i % t->ncolumns;
		head.text = (char *)(uintptr_t)t->head[c];
		cell = &head;
		if (i >= t->ncolumns)
			cell = &t->cells[i - t->ncolumns];
		if (widths[c] != SHED)
			print_cell(b, t, c, cell, widths[c]);
		if (c + 1 < t->ncolumns)
			continue;
		while (b->len > 0 && b->data[b->len - 1] == ' ')
			b->len--;
		buf_addc(b, '\n');
	}
}

void
table_done(struct table *t)
{
	while (t->ncells > 0)
		free(t->cells[--t->ncells].text);
	free(t->cells);
	free(t->columns);
	t->cells = NULL;
	t->columns = NULL;
}

/* -- lists ------------------------------------------------------------------------ */

int
listing_init(struct listing *l, struct ctl *c, const char *columns)
{
	bool all = ctl_given(c, OPT_ALL) || ctl_given(c, OPT_JSON) || c->args.verb->rows == 0;

	*l = (struct listing){ .ctl = c, .most = c->args.verb->rows };
	if (all)
		l->most = LIST_ALL;
	table_init(&l->table, columns);
	if (ctl_given(c, OPT_JSON))
		l->array = json_array();
	if (ctl_given(c, OPT_ALL) && ctl_given(c, OPT_COUNT))
		return ctl_error(c, EX_USAGE, "--all does not go together with --count");
	return ctl_count(c, OPT_COUNT, LIST_ALL, &l->most);
}

void
listing_row(struct listing *l, json_t *o)
{
	const char *name;
	json_t *value;
	void *next;

	l->rows++;
	if (l->array == NULL) {
		table_row(&l->table, o);
		json_decref(o);
		return;
	}
	json_object_foreach_safe(o, next, name, value)
		if (name[0] == '.')
			json_object_del(o, name);
	json_array_append_new(l->array, o);
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

	if (room > most)
		return most;
	return room;
}

void
listing_finish(struct listing *l, int64_t total, const char *what, char *note)
{
	char n[OUT_NUMBER_MAX], of[OUT_NUMBER_MAX];
	struct buf b = BUF_INIT;

	if (l->ctl->status == 0 && l->array != NULL)
		out_json(json_incref(l->array), false);
	else if (l->table.ncells > 0) {
		table_print(&l->table, &b, (size_t)out_width());
		fwrite(b.data, 1, b.len, stdout);
		buf_done(&b);
		/* The table may not have all rows. */
		out_number(l->rows, n);
		if ((listing_is_full(l) || l->more) && total > l->rows)
			ctl_note("%s of %s %s; --all for all", n, out_number(total, of), what);
		else if (total < 0 && l->more)
			ctl_note("the first %s %s; --all for all", n, what);
	} else if (l->ctl->status == 0 && l->rows == 0)
		ctl_put_note(xstrdup(note));
	free(note);
	json_decref(l->array);
	table_done(&l->table);
}
