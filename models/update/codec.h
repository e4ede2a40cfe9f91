/* SPDX-License-Identifier: Apache-2.0
 *
 * codec.h - how float arrays travel: as they are, as binary16, or as blocks of 8-bit integers or 4-bit powers of 2
 * with a scale each. What is
 * encoded is in the byte order of the machine and wants an alignment of 4.
 *
 * Encoding is blockwise, in blocks of so many elements as `block` says (core/codec.h): with `first` a multiple of it, elements
 * from `first` on begin at byte skep_codec_bytes(codec, block, first) and can be encoded or decoded on their own. With
 * SKEP_CODEC_TENSOR all is one block, and nothing less stands alone. The bits are the same on every machine and compiler, as
 * long as the processor rounds to nearest even. Any bytes of the right size can be decoded.
 *
 *   fp16  IEEE 754 binary16, rounded to nearest, ties to even. Error at most max(|x| 2^-11, 2^-25) up to 65504, the largest
 *         finite value; finite values beyond become that. Infinity stays infinity. A NaN stays a NaN with its sign and as
 *         much of its payload as there is room for.
 *   int8  per block an fp32 scale s and x / s rounded to nearest, ties to even, within -127 .. 127, so that the largest |x| of
 *         the block, m, is close to 127 s. Error at most max(1.0001 m / 254, 2^-127). Zero is exact; -0 becomes 0. A block with
 *         a NaN or an infinity is all NaN when decoded.
 *   e3m0  per block an fp32 scale s, and for each element 4 bits: a sign and a number from 0 to 7, which stands for 0 or for
 *         s 2^(number - 7): three bits of exponent and none of mantissa, the format in which Streaming DiLoCo (Douillard et al.
 *         2025) sends outer gradients. s is m, the largest |x| of the block, so m is exact. x becomes the nearest of these,
 *         the larger of two as near: error at most max((1 + 2^-20) |x| / 3, m / 128, 2^-127). Zero is exact; -0 becomes 0. A
 *         block with a NaN or an infinity is all NaN when decoded. With n elements in a block, byte i of (n + 1) / 2
 *         holds element i in its low half and element i + (n + 1) / 2, if there is one, in its high half.
 *
 * What encoded bytes of ours decode to encodes to bytes that decode to the same, in blocks of the same elements. That is
 * plain for fp16. For int8: the largest |x| of a block became 127 s, so it is about the scale s' of fl(127 s). s = fl(x / 127)
 * is at most half a unit u of its last place off, so 127 s is within 63.5 u of x. Where x has a unit of 128 u it is rounded
 * back to x; where it has 64 u, it is rounded by at most 32 u, which is 0.26 u after the division. In both cases s' = s.
 * For e3m0 s is exact, and from 2^-120 on, where smaller blocks have their scale, all its parts are normal floats.
 *
 * A ring of n members encodes a sum n times on its way, each time a partial sum of 1 .. n members: the error of the result
 * is at most the sum of the above for these n, and of n - 1 roundings of fp32. Where each part is encoded once, and the sum
 * once (butterfly, parameter-server; in all-to-all not even that), all sums are of fp32: what 4 bits are for.
 */
#pragma once

#include <stddef.h>

#include "core/codec.h"

void skep_codec_encode(enum skep_codec codec, uint32_t block, size_t n, const float *value, void *ret_encoded);
void skep_codec_decode(enum skep_codec codec, uint32_t block, size_t n, const void *encoded, float *ret_value);

/* encoded = encode(decode(encoded) + value), summed in fp32; ret_sum: what the new `encoded` decodes to, NULL if not wanted. */
void skep_codec_add(enum skep_codec codec, uint32_t block, size_t n, const float *value, void *encoded, float *ret_sum);

/* sum += decode(encoded), in fp32. */
void skep_codec_fold(enum skep_codec codec, uint32_t block, size_t n, const void *encoded, float *sum);
