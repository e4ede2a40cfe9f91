/* SPDX-License-Identifier: Apache-2.0
 *
 * codec.h - how many bytes a tensor takes when it travels. models/update/codec.h says what the encodings are.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum skep_codec { SKEP_CODEC_NONE, SKEP_CODEC_FP16, SKEP_CODEC_INT8, SKEP_CODEC_E3M0, SKEP_CODECS };

/* Elements with a scale in common, a block; the last block of a payload may have fewer. 0 stands for SKEP_CODEC_BLOCK, so that
 * what says nothing has the usual one, and SKEP_CODEC_TENSOR for all elements of the payload, however many they are. */
#define SKEP_CODEC_BLOCK 64u
#define SKEP_CODEC_BLOCK_STEP 8u /* blocks are multiples of it: the next block's scale has an alignment of 4 */
#define SKEP_CODEC_BLOCK_MAX (1u << 20)
#define SKEP_CODEC_TENSOR UINT32_MAX
#define SKEP_CODEC_SCALE_BYTES 4u /* before the integers of each block */
#define SKEP_PART_HEADER_BYTES                                                                                         \
	4u /* before a part that is gathered (core/skep.h, PACK_PART): how many microbatches it has */

/* Does it encode elements in blocks, with a scale each? Then only whole blocks stand alone. */
static inline bool skep_codec_blocks(enum skep_codec codec)
{
	return codec == SKEP_CODEC_INT8 || codec == SKEP_CODEC_E3M0;
}

/* Elements of a whole block in a payload of so many. */
static inline uint64_t skep_codec_block_of(uint32_t block, uint64_t elements)
{
	if (block == SKEP_CODEC_TENSOR)
		return elements > 0 ? elements : 1;
	return block > 0 ? block : SKEP_CODEC_BLOCK;
}

static inline uint64_t skep_codec_bytes(enum skep_codec codec, uint32_t block, uint64_t elements)
{
	uint64_t whole = skep_codec_block_of(block, elements), blocks = elements / whole + (elements % whole != 0);
	switch (codec) {
	case SKEP_CODEC_FP16:
		return 2 * elements;
	case SKEP_CODEC_INT8:
		return elements + SKEP_CODEC_SCALE_BYTES * blocks;
	case SKEP_CODEC_E3M0:
		return elements / 2 + elements % 2 + SKEP_CODEC_SCALE_BYTES * blocks;
	case SKEP_CODEC_NONE:
	case SKEP_CODECS:
		break;
	}
	return 4 * elements;
}
