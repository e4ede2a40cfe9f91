/* SPDX-License-Identifier: Apache-2.0
 *
 * codec.h - how many bytes a tensor takes when it travels. models/update/codec.h says what the encodings are.
 */
#ifndef SKEP_CORE_CODEC_H
#define SKEP_CORE_CODEC_H

#include <stdbool.h>
#include <stdint.h>

enum skep_codec { SKEP_CODEC_NONE, SKEP_CODEC_FP16, SKEP_CODEC_INT8, SKEP_CODEC_E3M0, SKEP_CODECS };

#define SKEP_CODEC_BLOCK 64u      /* elements; the last block may have fewer */
#define SKEP_CODEC_SCALE_BYTES 4u /* before the integers of each block */
#define SKEP_PART_HEADER_BYTES                                                                                         \
	4u /* before a part that is gathered (core/skep.h, PACK_PART): how many microbatches it has */

/* Does it encode elements in blocks, with a scale each? Then only whole blocks stand alone. */
static inline bool skep_codec_blocks(enum skep_codec codec)
{
	return codec == SKEP_CODEC_INT8 || codec == SKEP_CODEC_E3M0;
}

static inline uint64_t skep_codec_bytes(enum skep_codec codec, uint64_t elements)
{
	uint64_t blocks = elements / SKEP_CODEC_BLOCK + (elements % SKEP_CODEC_BLOCK != 0);
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

#endif
