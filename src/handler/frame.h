/*
 * The frame of a message in the input of a process that gets several: the header line
 * "N ATTEMPT LENGTH ID", the payload, and a newline.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "policy/message.h"

#define FRAME_HEADER_MAX	((size_t)64 + MESSAGE_ID_MAX)

/* Writes the header line, FRAME_HEADER_MAX bytes at most; returns its length. */
size_t	frame_header(char *to, uint64_t number, const struct message *);
/* The length of the payload in the frame; 0 if it was not fetched. */
size_t	frame_payload_len(const struct message *);
