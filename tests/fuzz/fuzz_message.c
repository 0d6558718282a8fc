/*
 * Fuzzes the members of messages that become variables: message_read() gives a string for
 * each, without NUL, at most of MESSAGE_MEMBER_MAX bytes, and nothing if it is no JSON object
 * of the size that is read.  A trace id has 32 hexadecimal digits, not all 0.
 */
#include "fuzz.h"

#include <stdbool.h>
#include <string.h>

#include "policy/message.h"

FUZZ_MAIN("message")

static void
check(bool right)
{
	if (!right)
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static char names[][16] = { "A=a", "B=b", "ID=id", "A2=a", "T=traceparent", "E=a=\"" };
	char *list[ARRAY_LEN(names) + 1] = { NULL };
	const struct queue_config cfg = { .env_message = list };
	struct message m = { .payload = xmemdup(data, n), .len = n };
	char id[MESSAGE_ID_MAX + 1];
	const char *p, *value[ARRAY_LEN(names)];
	size_t i;

	for (i = 0; i < ARRAY_LEN(names); i++)
		list[i] = names[i];
	message_read(&m, &cfg);
	p = m.members.data;
	for (i = 0; i < ARRAY_LEN(names); i++, p += strlen(p) + 1) {
		value[i] = p;
		check(*p == '\0' || (*p == '=' && strlen(p) <= MESSAGE_MEMBER_MAX + 1 && n >= 6));
	}
	check(p == m.members.data + m.members.len);
	check(strcmp(value[0], value[3]) == 0);
	/* The same parser reads the id: one that is no first member counts for both. */
	if (n > 0 && data[0] == ' ' && message_id("id", m.payload, n, id) == 0)
		check(value[2][0] == '=' && strcmp(value[2] + 1, id) == 0);
	if (m.trace != NULL)
		check(strlen(m.trace) == 32 && strspn(m.trace, "0123456789abcdef") == 32 &&
		    strspn(m.trace, "0") < 32 && strstr(value[4], m.trace) == value[4] + 4);
	buf_done(&m.members);
	free(m.trace);
	free(m.payload);
	return 0;
}
