/*
 * Converts the text of options to values in structs, and back.
 *
 * Each parse_ function checks the range before anything is stored.  option_print() is
 * the inverse of option_set() for each type.
 */
#include "config/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

#define INHERIT		"inherit"
#define SHOWN		60	/* bytes of a wrong value in a message */

/* -- the range, in the words of the type ------------------------------------- */

#define IN(o, types)	((1U << (o)->type & (types)) != 0)
#define DURATIONS	(1U << OPTION_DURATION | 1U << OPTION_LIMIT_TIME)
#define SIZES		(1U << OPTION_SIZE | 1U << OPTION_LIMIT_SIZE)
#define LIMITS		(1U << OPTION_LIMIT | 1U << OPTION_LIMIT_SIZE | 1U << OPTION_LIMIT_TIME)
#define INHERITS	(LIMITS | 1U << OPTION_NICE)
#define INTS		(1U << OPTION_INT | 1U << OPTION_OCTAL | 1U << OPTION_CHOICE | \
    1U << OPTION_NICE)

static char *
number_text(const struct option *o, int64_t n, char *buf)
{
	if (o->type == OPTION_LIMIT_TIME)
		return units_duration(n * SEC, buf);
	if (IN(o, DURATIONS))
		return units_duration(n, buf);
	if (IN(o, SIZES))
		return units_size((uint64_t)n, buf);
	snprintf(buf, UNITS_TEXT_MAX, "%" PRId64, n);
	return buf;
}

/* "1 to 10000", "3s to 1d or 0", "1M to 1024T or \"inherit\"" */
static char *
range_text(const struct option *o)
{
	char min[UNITS_TEXT_MAX], max[UNITS_TEXT_MAX];
	const char *zero = "", *inherit = "";

	if (o->zero)
		zero = " or 0";
	if (IN(o, INHERITS))
		inherit = " or \"" INHERIT "\"";
	return xasprintf("%s to %s%s%s", number_text(o, o->min, min),
	    number_text(o, o->max, max), zero, inherit);
}

static int
range_error(const struct option *o, const char *value, char **cause)
{
	char *range = range_text(o);

	(void)util_cause(cause, "value %.*s for %s is out of range %s: %s", SHOWN, value, o->name,
	    range, o->help);
	free(range);
	return -1;
}

/* What the values of the option's type are. */
static const char *
type_words(const struct option *o)
{
	if (IN(o, DURATIONS))
		return "a duration such as 30s or 5m";
	if (IN(o, SIZES))
		return "a size such as 64K or 16M";
	return "a whole number";
}

/* The error for text that is no number, or lacks its unit. */
static int
number_error(const struct option *o, const char *value, char **cause)
{
	bool digits = value[0] != '\0' && strspn(value, "0123456789") == strlen(value);
	char *range;

	if (digits && IN(o, DURATIONS))
		return util_cause(cause, "value %.*s for %s has no unit: write %.*ss "
		    "(or ms, m, h, d)", SHOWN, value, o->name, SHOWN, value);
	if (digits)
		return range_error(o, value, cause);
	range = range_text(o);
	(void)util_cause(cause, "value \"%.*s\" for %s is not %s: write %s",
	    SHOWN, value, o->name, type_words(o), range);
	free(range);
	return -1;
}

/* -- scalars ------------------------------------------------------------------- */

/* A number, duration or size, within its range. */
static int
parse_number(const struct option *o, const char *value, int64_t *ret, char **cause)
{
	uint64_t size = 0;
	int64_t n = 0;
	int rc;

	if (IN(o, DURATIONS))
		rc = units_parse_duration(value, &n);
	else if (IN(o, SIZES))
		rc = units_parse_size(value, &size);
	else
		rc = units_parse_int(value, &n);
	if (rc == -1)
		return number_error(o, value, cause);
	if (o->type == OPTION_LIMIT_TIME) {
		if (n % SEC != 0)
			return util_cause(cause, "value %.*s for %s is not a whole number of "
			    "seconds", SHOWN, value, o->name);
		n /= SEC;
	}
	if (size > INT64_MAX)
		size = INT64_MAX;
	if (IN(o, SIZES))
		n = (int64_t)size;
	if ((n < o->min || n > o->max) && !(n == 0 && o->zero))
		return range_error(o, value, cause);
	*ret = n;
	return 0;
}

static int
parse_bool(const struct option *o, const char *value, int64_t *ret, char **cause)
{
	static const char *const words[] = { "false", "true", "no", "yes", "off", "on" };

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		if (strcasecmp(value, words[i]) == 0) {
			*ret = i % 2;
			return 0;
		}
	}
	return util_cause(cause, "value \"%.*s\" for %s: write true or false", SHOWN, value,
	    o->name);
}

static int
parse_choice(const struct option *o, const char *value, int64_t *ret, char **cause)
{
	struct buf list = BUF_INIT;

	/* syslog and many others call it "warning". */
	if (strcmp(o->name, "level") == 0 && strcmp(value, "warning") == 0)
		value = "warn";
	for (size_t i = 0; o->choices[i] != NULL; i++) {
		if (strcmp(o->choices[i], value) == 0) {
			*ret = (int64_t)i;
			buf_done(&list);
			return 0;
		}
		if (list.len > 0)
			buf_puts(&list, " or ");
		buf_printf(&list, "\"%s\"", o->choices[i]);
	}
	(void)util_cause(cause, "%s \"%.*s\" is unknown: write %s", o->name, SHOWN, value,
	    buf_str(&list));
	buf_done(&list);
	return -1;
}

/* The number that stands for "inherit". */
static int64_t
value_inherited(const struct option *o)
{
	if (o->type == OPTION_NICE)
		return CONFIG_NICE_INHERIT;
	return -1;
}

static int
parse_scalar(const struct option *o, const char *value, int64_t *ret, char **cause)
{
	if (o->type == OPTION_BOOL)
		return parse_bool(o, value, ret, cause);
	if (o->type == OPTION_CHOICE)
		return parse_choice(o, value, ret, cause);
	if (o->type == OPTION_OCTAL) {
		*ret = -1;
		if (value[0] != '\0')
			*ret = strtol(value, NULL, 8);
		if (strspn(value, "01234567") == strlen(value) && strlen(value) <= 4 &&
		    *ret <= o->max)
			return 0;
		return util_cause(cause, "value \"%.*s\" for %s is not an octal number up to "
		    "0777: write \"027\"", SHOWN, value, o->name);
	}
	if (!IN(o, INHERITS) || strcmp(value, INHERIT) != 0)
		return parse_number(o, value, ret, cause);
	*ret = value_inherited(o);
	return 0;
}

/* -- storing --------------------------------------------------------------------- */

static void
store_strings(void *at, char *const *values, size_t n)
{
	char ***list = at, **new = xcalloc(n + 1, sizeof(*new));

	for (size_t i = 0; i < n; i++)
		new[i] = xstrdup(values[i]);
	util_free_list(*list);
	*list = new;
}

/* Exit statuses without 0 (success) and 126, 127 (cannot execute). */
static int
set_statuses(const struct option *o, bool *at, char *const *values, size_t n,
    size_t *bad, char **cause)
{
	bool set[256] = { false };
	int64_t status;

	for (*bad = 0; *bad < n; (*bad)++) {
		if (parse_number(o, values[*bad], &status, cause) == -1)
			return -1;
		if (status == 126 || status == 127)
			return util_cause(cause, "value %d for %s: 126 and 127 mean that the "
			    "command cannot be run, and suspend the queue", (int)status, o->name);
		set[status] = true;
	}
	memcpy(at, set, sizeof(set));
	return 0;
}

_Static_assert(sizeof(enum kind) == sizeof(int), "OPTION_CHOICE stores an int");
_Static_assert(sizeof(usec_t) == sizeof(int64_t), "OPTION_DURATION stores an int64_t");
_Static_assert(CONFIG_LIMIT_INHERIT == (uint64_t)-1, "a limit of -1 is \"inherit\"");

int
option_set(const struct option *o, void *base, char *const *values, size_t n,
    size_t *bad, char **cause)
{
	void *at = (char *)base + o->offset;
	int64_t number;

	*bad = 0;
	if (n != 1 && !option_is_list(o))
		return util_cause(cause, "%s takes one value", o->name);
	if (o->type == OPTION_STATUSES)
		return set_statuses(o, at, values, n, bad, cause);
	if (n == 0 && o->missing != NULL)
		return util_cause(cause, "%s", o->missing);
	for (; o->check != NULL && *bad < n; (*bad)++) {
		if (o->check(values[*bad], *bad, n, cause) == -1)
			return -1;
	}
	*bad = 0;
	if (o->type == OPTION_STRINGS) {
		store_strings(at, values, n);
		return 0;
	}
	if (o->type == OPTION_STRING) {
		xreplace(at, values[0]);
		return 0;
	}
	if (parse_scalar(o, values[0], &number, cause) == -1)
		return -1;
	/* Scalars are a bool, an int or 64 bits. */
	if (o->type == OPTION_BOOL)
		*(bool *)at = number != 0;
	else if (IN(o, INTS))
		*(int *)at = (int)number;
	else
		*(int64_t *)at = number;
	return 0;
}

/* Defaults in the table are valid.  command has none and stays empty. */
void
option_set_default(const struct option *o, void *base)
{
	char *values[] = { xstrdup(o->def) }, *cause = NULL;
	size_t bad, n = 1;

	if (option_is_list(o) && o->def[0] == '\0')
		n = 0;
	if (o->type == OPTION_STRINGS)
		store_strings((char *)base + o->offset, values, n);
	else if (option_set(o, base, values, n, &bad, &cause) == -1)
		fatalx("default of %s: %s", o->name, cause);
	free(values[0]);
}

/* -- printing --------------------------------------------------------------------- */

/* Prints in double quotes, with escapes. */
void
option_print_string(const char *s, struct buf *b)
{
	buf_addc(b, '"');
	for (; *s != '\0'; s++) {
		unsigned char c = (unsigned char)*s;

		if (c == '\n')
			buf_puts(b, "\\n");
		else if (c == '\t')
			buf_puts(b, "\\t");
		else if (c < 0x20 || c == 0x7f)
			buf_printf(b, "\\x%02x", c);
		else if (c == '"' || c == '\\' || (c == '$' && s[1] == '{'))
			buf_printf(b, "\\%c", c);
		else
			buf_addc(b, *s);
	}
	buf_addc(b, '"');
}

static void
print_strings(const struct option *o, char *const *list, struct buf *b)
{
	if ((o->flags & OPTION_ALONE) != 0 && list[0] != NULL &&
	    list[1] == NULL) {
		option_print_string(list[0], b);
		return;
	}
	buf_addc(b, '{');
	for (size_t i = 0; list[i] != NULL; i++) {
		if (i > 0)
			buf_puts(b, ", ");
		option_print_string(list[i], b);
	}
	buf_addc(b, '}');
}

static void
print_statuses(const bool set[256], struct buf *b)
{
	const char *comma = "";

	buf_addc(b, '{');
	for (size_t i = 0; i < 256; i++) {
		if (!set[i])
			continue;
		buf_printf(b, "%s%zu", comma, i);
		comma = ", ";
	}
	buf_addc(b, '}');
}

/* The value of a scalar, which is a bool, an int or 64 bits. */
static int64_t
scalar_at(const struct option *o, const void *at)
{
	if (o->type == OPTION_BOOL)
		return *(const bool *)at;
	if (IN(o, INTS))
		return *(const int *)at;
	return *(const int64_t *)at;
}

static void
print_scalar(const struct option *o, int64_t n, struct buf *b)
{
	char text[UNITS_TEXT_MAX];

	if (IN(o, INHERITS) && n == value_inherited(o))
		option_print_string(INHERIT, b);
	else if (o->type == OPTION_BOOL)
		buf_puts(b, n != 0 ? "true" : "false");
	else if (o->type == OPTION_CHOICE)
		option_print_string(o->choices[n], b);
	else if (o->type != OPTION_OCTAL)
		buf_puts(b, number_text(o, n, text));
	else if (n == -1)
		buf_puts(b, "\"\"");
	else
		buf_printf(b, "\"%03o\"", (unsigned)n);
}

void
option_print(const struct option *o, const void *base, struct buf *b)
{
	const void *at = (const char *)base + o->offset;

	if (o->type == OPTION_STRING)
		option_print_string(*(char *const *)at, b);
	else if (o->type == OPTION_STRINGS)
		print_strings(o, *(char *const *const *)at, b);
	else if (o->type == OPTION_STATUSES)
		print_statuses(at, b);
	else
		print_scalar(o, scalar_at(o, at), b);
}
