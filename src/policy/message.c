/*
 * One delivery, and the id that a payload has of its own; see message.h.
 *
 * The pop script decides ids (lua/pop.lua); message_id() follows its rules, so
 * that rqctl can say before the delivery what the id will be.  It is stricter
 * in one point: text that is not UTF-8 has no id here.
 */
#include "policy/message.h"

#include <ctype.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define JSON_MAX	(64 * 1024)

struct message *
message_new(struct config *config, const struct queue_config *cfg)
{
	struct message *msg = xcalloc(1, sizeof(*msg));

	msg->config = config_ref(config);
	msg->cfg = cfg;
	msg->delivered = clock_mono();
	return msg;
}

void
message_free(struct message *msg)
{
	if (msg == NULL)
		return;
	free(msg->tag);
	free(msg->id);
	free(msg->token);
	if (msg->payload != NULL && msg->free_payload != NULL)
		msg->free_payload(msg->payload);
	config_unref(msg->config);
	free(msg);
}

bool
message_id_ok(const char *id, size_t len)
{
	size_t i;

	if (len < 1 || len > MESSAGE_ID_MAX)
		return false;
	for (i = 0; i < len; i++) {
		if ((unsigned char)id[i] < 0x20 || id[i] == 0x7f)
			return false;
	}
	return true;
}

/* Past the string that begins at p; end where it does not end. */
static const char *
skip_string(const char *p, const char *end)
{
	for (p++; p < end && *p != '"'; p++) {
		if (*p == '\\')
			p++;
	}
	return p < end ? p + 1 : end;
}

/* Whether the quoted text [p, end) spells "id", escapes included. */
static bool
is_id_key(const char *p, const char *end)
{
	json_t *key = json_loadb(p, (size_t)(end - p), JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
	bool is = json_is_string(key) && json_string_length(key) == 2 &&
	    memcmp(json_string_value(key), "id", 2) == 0;

	json_decref(key);
	return is;
}

/* The digits of an integer literal at p; 0 where it is none. */
static size_t
integer_length(const char *p, const char *end)
{
	const char *q = p;

	if (q < end && *q == '-')
		q++;
	if (q == end || !isdigit((unsigned char)*q))
		return 0;
	while (q < end && isdigit((unsigned char)*q))
		q++;
	if (q < end && (*q == '.' || *q == 'e' || *q == 'E'))
		return 0;
	return (size_t)(q - p);
}

/*
 * The digits of the last first-level member "id" of valid JSON text, taken
 * from the text because a double holds no more than 53 bits.
 */
static size_t
find_integer(const char *p, const char *end, const char **ret)
{
	const char *key = NULL, *after = NULL;
	bool expect_key = true;
	size_t len = 0;
	int depth = 0;

	while (p < end) {
		switch (*p) {
		case '"':
			after = skip_string(p, end);
			if (depth == 1 && expect_key)
				key = is_id_key(p, after) ? p : NULL;
			p = after;
			continue;
		case '{': case '[':
			depth++;
			break;
		case '}': case ']':
			depth--;
			break;
		case ',':
			expect_key = depth == 1 ? true : expect_key;
			break;
		case ':':
			if (depth != 1)
				break;
			expect_key = false;
			for (p++; p < end && isspace((unsigned char)*p); p++)
				;
			if (key != NULL) {
				len = integer_length(p, end);
				*ret = p;
			}
			continue;
		default:
			break;
		}
		p++;
	}
	return len;
}

int
message_id(const char *payload, size_t len, char *ret)
{
	const char *text = NULL;
	size_t n = 0;
	json_t *root, *id;

	if (len == 0 || len > JSON_MAX || memchr(payload, '\0', len) != NULL)
		return -1;
	root = json_loadb(payload, len,
	    JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, NULL);
	id = json_object_get(root, "id");
	if (json_is_string(id)) {
		text = json_string_value(id);
		n = json_string_length(id);
	} else if (json_is_real(id))
		n = find_integer(payload, payload + len, &text);
	if (n == 0 || !message_id_ok(text, n)) {
		json_decref(root);
		return -1;
	}
	memcpy(ret, text, n);
	ret[n] = '\0';
	json_decref(root);
	return 0;
}
