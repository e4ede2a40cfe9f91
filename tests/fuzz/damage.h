/* SPDX-License-Identifier: Apache-2.0
 *
 * damage.h - for fuzzers that run without libFuzzer: files, then versions of each that are cut off, have bits turned, bytes set,
 * or parts left out or doubled.
 */
#pragma once

#include "core/random.h"
#include "tests/fuzz/fuzz.h"

static inline void damage_bytes(uint8_t *data, size_t *size, size_t room, uint64_t *random)
{
	static const char odd[] = "\0\xff\"'{}[]()<>:;,,/=#&0129.-eE\\u \t\n\n";
	uint32_t times = 1 + skep_random_below(random, 4);
	for (uint32_t i = 0; *size > 2 && i < times; i++) {
		size_t at = skep_random_below(random, (uint32_t)*size), length = 1 + skep_random_below(random, 32);
		length = length < *size - at ? length : *size - at;
		switch (skep_random_below(random, 6)) {
		case 0:
			data[at] ^= (uint8_t)(1u << skep_random_below(random, 8));
			break;
		case 1:
			data[at] = (uint8_t)odd[skep_random_below(random, sizeof odd - 1)];
			break;
		case 2:
			data[at] = (uint8_t)skep_random_below(random, 256);
			break;
		case 3:
			memmove(data + at, data + at + length, *size - at - length);
			*size -= length;
			break;
		case 4:
			if (*size + length <= room) {
				memmove(data + at + length, data + at, *size - at);
				*size += length;
			}
			break;
		default:
			*size = skep_random_below(random, 4) == 0 ? at : *size;
		}
	}
}

/* The file at `path`, then `damages` damaged versions of it, each as one input. */
static inline bool damage_file(const char *path, uint32_t damages, uint64_t *random)
{
	static uint8_t data[1 << 19], copy[2 * sizeof data];
	FILE *file = fopen(path, "rb");
	if (!file) {
		perror(path);
		return false;
	}
	size_t size = fread(data, 1, sizeof data, file);
	fclose(file);
	LLVMFuzzerTestOneInput(data, size);
	for (uint32_t i = 0; i < damages; i++) {
		size_t left = size;
		memcpy(copy, data, size);
		damage_bytes(copy, &left, sizeof copy, random);
		LLVMFuzzerTestOneInput(copy, left);
	}
	return true;
}

/* The files of a command line. */
static inline bool damage_files(char **path, int files, uint32_t damages)
{
	uint64_t random = skep_mix(1);
	bool ok = files > 0;
	for (int i = 0; i < files; i++)
		ok = damage_file(path[i], damages, &random) && ok;
	return ok;
}
