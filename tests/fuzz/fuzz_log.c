/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_log.c - any bytes as the log of a run: a verdict, and no machine is ever told what its core would assert against.
 *
 * The first byte of the input says how the rest is read: even, as the whole log of one machine beside the sound logs of the
 * others; odd, as changes of sound logs, four bytes each: machine, place (two), and what the byte there becomes. Marks that no
 * longer fit are then made to fit, so that what follows from a change is played as well.
 *
 *   clang -DSKEP_LIBFUZZER -fsanitize=fuzzer,address,undefined ...    then: fuzz_log
 *   without SKEP_LIBFUZZER it is a plain program: the files of its arguments one after the other, or so many random inputs
 */
#include <stdio.h>

#include "tests/unit/replay_fixture.h"

#define FORGERIES 40

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct swarm *sound(void)
{
	static struct swarm swarm;
	if (swarm.post == NULL)
		swarm_record(&swarm, 4, 3, true);
	return &swarm;
}

static struct skep_replay_result judge(const struct swarm *swarm, const struct skep_machine_log *log)
{
	struct skep_replay_result result;
	bool fine = skep_replay_run(&swarm->plan, log, &result);
	bool named = result.machine < SWARM_MACHINES && result.event > 0 && result.why != NULL;
	if (!fine || (result.verdict != SKEP_REPLAY_AGREES && !named))
		abort();
	return result;
}

/* The digest's mark of an entry, so that the machine seems to have decided what it decides now. */
static void forge(uint8_t *bytes, size_t size, uint64_t number, uint64_t digest)
{
	struct skep_wire wire = skep_wire_reader(bytes, size);
	struct skep_event event;
	uint16_t mark;
	for (uint64_t i = 0; i < number; i++)
		skep_log_read(&wire, &event, &mark);
	if (!wire.ok)
		abort();
	wire.at[-2] = (uint8_t)digest;
	wire.at[-1] = (uint8_t)(digest >> 8);
}

/* Makes no log of its own: it is the fuzzer's bytes. */
static void try_whole(const struct swarm *swarm, uint32_t machine, const uint8_t *bytes, size_t size)
{
	struct skep_machine_log log[SWARM_MACHINES];
	memcpy(log, swarm->log, sizeof log);
	log[machine].bytes = bytes;
	log[machine].count = size;
	judge(swarm, log);
	log[machine].ended = false;
	judge(swarm, log);
}

static void try_changes(const struct swarm *swarm, const uint8_t *bytes, size_t size)
{
	struct skep_machine_log log[SWARM_MACHINES];
	uint8_t *copy[SWARM_MACHINES];
	memcpy(log, swarm->log, sizeof log);
	for (uint32_t i = 0; i < SWARM_MACHINES; i++) {
		copy[i] = malloc(log[i].count);
		memcpy(copy[i], log[i].bytes, log[i].count);
		log[i].bytes = copy[i];
	}
	for (size_t i = 0; i + 4 <= size; i += 4) {
		uint32_t machine = bytes[i] % SWARM_MACHINES;
		size_t place = (size_t)(bytes[i + 1] | bytes[i + 2] << 8);
		if (place < log[machine].count)
			copy[machine][place] = bytes[i + 3];
	}
	struct skep_replay_result result = judge(swarm, log);
	for (int i = 0; i < FORGERIES && strlen(result.replayed) == 4; i++) {
		uint32_t m = result.machine;
		forge(copy[m], log[m].count, result.event, strtoul(result.replayed, NULL, 16));
		result = judge(swarm, log);
	}
	for (uint32_t i = 0; i < SWARM_MACHINES; i++)
		free(copy[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct swarm *swarm = sound();
	if (size < 2)
		return 0;
	if (data[0] & 1)
		try_changes(swarm, data + 1, size - 1);
	else
		try_whole(swarm, (data[0] >> 1) % SWARM_MACHINES, data + 1, size - 1);
	return 0;
}

#ifndef SKEP_LIBFUZZER
static bool try_path(const char *path)
{
	static uint8_t data[1 << 20];
	FILE *f = fopen(path, "rb");
	if (f == NULL) {
		perror(path);
		return false;
	}
	size_t size = fread(data, 1, sizeof data, f);
	fclose(f);
	LLVMFuzzerTestOneInput(data, size);
	return true;
}

/* A part of a sound log, or a few changes of sound ones; the marks of a changed event are as likely right as not. */
static void try_random(uint64_t seed)
{
	struct swarm *swarm = sound();
	uint8_t data[4096];
	swarm->random = seed;
	size_t size = 1 + swarm_draw(swarm, 24) * 4;
	data[0] = (uint8_t)swarm_draw(swarm, 256);
	for (size_t i = 1; i < size; i++)
		data[i] = (uint8_t)(i % 4 == 3 ? swarm_draw(swarm, 32) : swarm_draw(swarm, 256));
	if ((data[0] & 1) == 0) {
		const struct skep_machine_log *log = &swarm->log[(data[0] >> 1) % SWARM_MACHINES];
		size = 1 + swarm_draw(swarm, log->count < 4000 ? log->count : 4000);
		memcpy(data + 1, log->bytes, size - 1);
		for (int i = 0; i < 3 && size > 1; i++)
			data[1 + swarm_draw(swarm, size - 1)] = (uint8_t)swarm_draw(swarm, 256);
	}
	LLVMFuzzerTestOneInput(data, size);
}

int main(int argc, char **argv)
{
	bool ok = true;
	unsigned long tries = argc == 2 ? strtoul(argv[1], NULL, 10) : argc == 1 ? 2000 : 0;
	for (unsigned long i = 0; i < tries; i++)
		try_random(i);
	for (int i = 1; i < argc && tries == 0; i++)
		ok = try_path(argv[i]) && ok;
	swarm_finish(sound());
	return ok ? 0 : 1;
}
#endif
