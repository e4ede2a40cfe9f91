/* SPDX-License-Identifier: Apache-2.0
 *
 * wired.c - see wired.h. What a kind of message does not carry is not in the bytes, and zero behind them: a machine that reads
 * such a field decides otherwise than without the bytes, and digests differ.
 */
#include "tests/cluster/wired.h"

#include <assert.h>
#include <string.h>

#include "exec/transport/wire.h"

#define RUN 0x77697265u

struct skep_message wired_message(const struct skep_message *message)
{
	uint8_t bytes[SKEP_FRAME_MAX], again[SKEP_FRAME_MAX];
	struct skep_frame frame = {.type = SKEP_FRAME_MESSAGE, .number = 1, .u.message = *message}, read;
	frame.body = message->payload_bytes;
	size_t size = skep_frame_encode(&frame, RUN, bytes);
	enum skep_frame_fault fault = skep_frame_decode(bytes, size, RUN, &read);
	assert(fault == SKEP_FRAME_GOOD);
	assert(read.number == frame.number && read.body == frame.body);
	size_t same = skep_frame_encode(&read, RUN, again);
	assert(same == size && memcmp(bytes, again, size) == 0);
	read.u.message.payload = message->payload;
	return read.u.message;
}
