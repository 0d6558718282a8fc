/*
 * The header line of a message; see frame.h.
 */
#include "handler/frame.h"

#include <string.h>

static char *
put_number(char *p, uint64_t n)
{
	char digits[20];
	size_t i = sizeof(digits);

	do {
		digits[--i] = (char)('0' + n % 10);
		n /= 10;
	} while (n > 0);
	memcpy(p, digits + i, sizeof(digits) - i);
	return p + sizeof(digits) - i;
}

size_t
frame_payload_len(const struct message *msg)
{
	return msg->payload != NULL ? msg->len : 0;
}

/* Without snprintf(3), which would cost more than all the rest. */
size_t
frame_header(char *to, uint64_t number, const struct message *msg)
{
	size_t id_len = strlen(msg->id);
	char *p = put_number(to, number);

	*p++ = ' ';
	p = put_number(p, (uint64_t)msg->attempts + 1);
	*p++ = ' ';
	p = put_number(p, frame_payload_len(msg));
	*p++ = ' ';
	memcpy(p, msg->id, id_len);
	p += id_len;
	*p++ = '\n';
	return (size_t)(p - to);
}
