/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_wire.c - any bytes as what another process of a run sends: a frame, a batch of rows, a batch of log entries. Refused, or
 * values that are written back as the same bytes; nothing outside the bytes is read.
 *
 * The first byte of the input chooses: 'f' a frame as it is, 'h' the content of a frame of this run, whose second byte
 * is its type, 'r' rows, 'l' log entries.
 *
 *   clang -DSKEP_LIBFUZZER -fsanitize=fuzzer,address,undefined ...    then: fuzz_wire FOLDER
 *   without SKEP_LIBFUZZER it is a plain program: the files of its arguments, each also in damaged versions
 */
#include "base/sum.h"
#include "exec/loop/log.h"
#include "exec/loop/rows.h"
#include "tests/fuzz/damage.h"

enum { DAMAGES = 3000, RUN = 77 };

static struct {
	unsigned taken, refused, rows, entries;
} tried; /* for the last line */

/* In memory of exactly that size, so that the sanitizer sees a byte too many. */
static uint8_t *alone(const uint8_t *bytes, size_t size)
{
	uint8_t *copy = malloc(size > 0 ? size : 1);
	must(copy);
	memcpy(copy, bytes, size);
	return copy;
}

static void try_frame(const uint8_t *bytes, size_t size)
{
	struct skep_frame frame;
	uint8_t again[SKEP_FRAME_MAX], *copy = alone(bytes, size);
	enum skep_frame_fault fault = skep_frame_decode(copy, size, RUN, &frame);
	must(fault < SKEP_FRAME_FAULTS && skep_frame_fault_text(fault)[0]);
	tried.taken += fault == SKEP_FRAME_GOOD;
	tried.refused += fault != SKEP_FRAME_GOOD;
	if (fault == SKEP_FRAME_GOOD) {
		must(frame.type > 0 && frame.type < SKEP_FRAME_TYPES);
		must(skep_frame_encode(&frame, RUN, again) == size && memcmp(again, copy, size) == 0);
	}
	free(copy);
}

/* The head is what a writer would have written, so that the content is looked at. */
static void try_content(const uint8_t *bytes, size_t size)
{
	struct skep_frame frame = {.type = SKEP_FRAME_LAST};
	uint8_t whole[SKEP_FRAME_MAX], other[SKEP_FRAME_MAX];
	if (size < 1 || size - 1 > SKEP_FRAME_CONTENT)
		return;
	size_t head = skep_frame_encode(&frame, RUN, whole), length;
	must(head == SKEP_FRAME_HEAD);
	/* Two frames that differ in the length of their content tell where that stands. */
	frame = (struct skep_frame){.type = SKEP_FRAME_FAULT, .u.text = {bytes + 1, (uint32_t)(size - 1)}};
	length = skep_frame_encode(&frame, RUN, other);
	for (size_t at = 0; at < SKEP_FRAME_HEAD; at++) /* all but the type */
		if (other[at] != whole[at] && !(whole[at] == SKEP_FRAME_LAST && other[at] == SKEP_FRAME_FAULT))
			whole[at] = other[at];
		else if (whole[at] == SKEP_FRAME_LAST && other[at] == SKEP_FRAME_FAULT)
			whole[at] = bytes[0] % SKEP_FRAME_TYPES;
	memcpy(whole + SKEP_FRAME_HEAD, other + SKEP_FRAME_HEAD, length - SKEP_FRAME_HEAD);
	uint64_t sum = skep_sum(0, whole, SKEP_FRAME_HEAD - 8);
	sum = skep_sum(sum, whole + SKEP_FRAME_HEAD, length - SKEP_FRAME_HEAD);
	for (size_t i = 0; i < 8; i++)
		whole[SKEP_FRAME_HEAD - 8 + i] = (uint8_t)(sum >> 8 * i);
	try_frame(whole, length);
}

/* Those who hear rows write them again. */
static void hear_note(void *context, skep_time now, struct skep_peer who, const struct skep_note *note)
{
	must(note->kind < 255);
	tried.rows++;
	while (!skep_rows_note(context, now, who, note))
		((struct skep_rows *)context)->count = 0;
}

static void hear_op(void *context, const struct skep_op_span *span)
{
	tried.rows++;
	while (!skep_rows_op(context, 0, span))
		((struct skep_rows *)context)->count = 0;
}

static void hear_link(void *context, const struct skep_link_use *use)
{
	must(use->traffic < SKEP_TRAFFICS);
	tried.rows++;
	while (!skep_rows_link(context, 0, use))
		((struct skep_rows *)context)->count = 0;
}

static void hear_worker(void *context, const struct skep_worker_use *use)
{
	tried.rows++;
	while (!skep_rows_worker(context, 0, use))
		((struct skep_rows *)context)->count = 0;
}

static void try_rows(const uint8_t *bytes, size_t size)
{
	struct skep_rows again = {.count = 0};
	const struct skep_recorder recorder = {
		.context = &again, .note = hear_note, .op = hear_op, .link = hear_link, .worker = hear_worker};
	uint64_t events = 0;
	uint8_t *copy = alone(bytes, size);
	bool fine = skep_rows_replay(copy, (uint32_t)size, &recorder, &events);
	tried.taken += fine;
	tried.refused += !fine;
	if (fine && size <= sizeof again.bytes)
		must(again.count == size && memcmp(again.bytes, copy, size) == 0);
	free(copy);
}

static void try_log(const uint8_t *bytes, size_t size)
{
	uint8_t *copy = alone(bytes, size);
	struct skep_wire wire = skep_wire_reader(copy, size);
	struct skep_log again = {.left = size / 2 + SKEP_LOG_ENTRY_MAX};
	while (wire.ok && wire.at < wire.end) {
		struct skep_event event;
		uint64_t events, digest;
		uint16_t mark;
		const uint8_t *before = wire.at;
		bool end = skep_log_read_end(&wire, &events, &digest);
		if (!end)
			skep_log_read(&wire, &event, &mark);
		must(!wire.ok || wire.at > before);
		if (!wire.ok)
			break;
		while (!(end ? skep_log_end(&again, 0, events, digest) : skep_log_add(&again, &event, mark)))
			again.count = 0;
		must(again.entry == 0 ||
			(again.entry == wire.at - before && /* written as it was read */
				memcmp(again.bytes + again.count - again.entry, before, again.entry) == 0));
		tried.entries++;
	}
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1 || size > 1 << 16)
		return 0;
	if (data[0] == 'h')
		try_content(data + 1, size - 1);
	else if (data[0] == 'r')
		try_rows(data + 1, size - 1);
	else if (data[0] == 'l')
		try_log(data + 1, size - 1);
	else
		try_frame(data + 1, size - 1);
	return 0;
}

#ifndef SKEP_LIBFUZZER
int main(int argc, char **argv)
{
	bool ok = damage_files(argv + 1, argc - 1, DAMAGES);
	printf("%u taken, %u refused, %u rows, %u log entries\n", tried.taken, tried.refused, tried.rows,
		tried.entries);
	return ok && tried.taken > 0 && tried.refused > 0 && tried.rows > 0 && tried.entries > 0 ? 0 : 1;
}
#endif
