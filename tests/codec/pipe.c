/* SPDX-License-Identifier: Apache-2.0
 *
 * pipe.c - a codec as a filter, for referees in other languages: floats or encoded bytes in, encoded bytes or floats out.
 *
 *   pipe CODEC BLOCK encode N    N floats                     what they encode to
 *   pipe CODEC BLOCK decode N    encoded bytes                N floats
 *   pipe CODEC BLOCK add N       encoded bytes and N floats   encoded bytes of the sum, and the N floats that they decode to
 *   pipe CODEC BLOCK fold N      encoded bytes and N floats   the N floats with what the bytes decode to added
 *
 * CODEC is a number of enum skep_codec, BLOCK as in core/codec.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/update/codec.h"

int main(int argc, char **argv)
{
	if (argc != 5)
		return 2;
	const enum skep_codec codec = (enum skep_codec)atoi(argv[1]);
	const uint32_t block = (uint32_t)strtoul(argv[2], NULL, 10);
	const char *what = argv[3];
	const size_t n = strtoul(argv[4], NULL, 10), bytes = skep_codec_bytes(codec, block, n);
	const bool encodes = strcmp(what, "encode") == 0, decodes = strcmp(what, "decode") == 0,
		   adds = strcmp(what, "add") == 0;
	unsigned char *payload = malloc(bytes + 1);
	float *value = malloc(n * sizeof *value + 1);
	if (!payload || !value || (!encodes && fread(payload, 1, bytes, stdin) != bytes) ||
		(!decodes && fread(value, sizeof *value, n, stdin) != n))
		return 1;
	if (encodes)
		skep_codec_encode(codec, block, n, value, payload);
	else if (decodes)
		skep_codec_decode(codec, block, n, payload, value);
	else if (adds) /* as where the sum replaces the own part */
		skep_codec_add(codec, block, n, value, payload, value);
	else
		skep_codec_fold(codec, block, n, payload, value);
	if (encodes || adds)
		fwrite(payload, 1, bytes, stdout);
	if (!encodes)
		fwrite(value, sizeof *value, n, stdout);
	free(payload);
	free(value);
	return 0;
}
