/* Bytes in JSON; see json_bytes.h. */
#include "status/json_bytes.h"

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/util.h"

char *
json_get_bytes(const json_t *object, const char *name, size_t *len)
{
	const json_t *value = json_object_get(object, name);
	char *key;

	if (json_is_string(value)) {
		*len = json_string_length(value);
		return xmemdup(json_string_value(value), *len + 1);
	}
	key = xasprintf("%s_base64", name);
	value = json_object_get(object, key);
	free(key);
	if (!json_is_string(value) ||
	    strlen(json_string_value(value)) != json_string_length(value))
		return NULL;
	return base64_decode(json_string_value(value), len);
}

void
json_set_bytes(json_t *object, const char *name, const char *data, size_t len)
{
	json_t *value = json_stringn(data, len);
	char *key, *text;

	if (value != NULL) {
		json_object_set_new(object, name, value);
		return;
	}
	key = xasprintf("%s_base64", name);
	text = base64_encode(data, len);
	json_object_set_new(object, key, json_string(text));
	free(text);
	free(key);
}

static void
set_member(json_t *o, const char *name, char type, va_list *ap)
{
	const char *data;
	int64_t count;
	double number;
	json_t *value = NULL;

	switch (type) {
	case 's':
	case 'b':
		data = va_arg(*ap, const char *);
		if (type == 'b')
			json_set_bytes(o, name, data, va_arg(*ap, size_t));
		else if (data != NULL)
			json_set_bytes(o, name, data, strlen(data));
		else
			json_object_set_new(o, name, json_null());
		return;
	case 'i':
		value = json_integer(va_arg(*ap, int64_t));
		break;
	case 'n':
		count = va_arg(*ap, int64_t);
		if (count >= 0)
			value = json_integer(count);
		break;
	case 'f':
	case 'p':
		number = va_arg(*ap, double);
		if (isfinite(number) && (type == 'f' || number >= 0))
			value = json_real(number);
		break;
	case 't':
		value = json_boolean(va_arg(*ap, int));
		break;
	case 'j':
		value = va_arg(*ap, json_t *);
		break;
	default:
		fatalx("json_set: unknown type %c", type);
	}
	if (value == NULL)
		value = json_null();
	json_object_set_new(o, name, value);
}

json_t *
json_set(json_t *o, const char *fmt, ...)
{
	char name[32];
	va_list ap;
	size_t n;

	va_start(ap, fmt);
	for (; *fmt != '\0'; fmt += n + 2, fmt += *fmt == ' ') {
		n = strcspn(fmt, ":");
		if (*fmt == '*')
			snprintf(name, sizeof(name), "%s", va_arg(ap, const char *));
		else
			snprintf(name, sizeof(name), "%.*s", (int)n, fmt);
		set_member(o, name, fmt[n + 1], &ap);
	}
	va_end(ap);
	return o;
}

void
json_add_text(const json_t *value, struct buf *out)
{
	char *text = json_dumps(value, JSON_COMPACT);

	if (text == NULL)
		fatalx("cannot make JSON");
	buf_puts(out, text);
	buf_addc(out, '\n');
	free(text);
}
