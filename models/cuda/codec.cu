/* SPDX-License-Identifier: Apache-2.0
 *
 * codec.cu - the codecs of models/update/codec.c, to the bit. Sixteen threads have a block of 64 elements, each four in a row: what they
 * write of a payload, which may be the host's, is 4 or 8 bytes at a time. Products and sums that round are kept apart, since a
 * fused one would round once.
 */
#include "models/cuda/portable.cuh"

#define THREADS 128
#define THREAD_POOL 16 /* threads of a block of elements */
#define EACH 4
#define WIDE_THREADS 1024 /* for a long block */
#define INFINITY_BITS 0x7f800000u
#define NAN_BITS 0x7fc00000u

struct piece { /* four elements, of which the block may have fewer */
	size_t first;
	unsigned count;
};

__device__ static inline struct piece own_piece(size_t n)
{
	const size_t thread = (size_t)blockIdx.x * THREADS + threadIdx.x;
	struct piece p = {thread * EACH, EACH};
	if (p.first + EACH > n)
		p.count = p.first < n ? (unsigned)(n - p.first) : 0;
	return p;
}

/* Of the sixteen. */
__device__ static inline uint32_t thread_pool_most(uint32_t x)
{
	for (int distance = THREAD_POOL / 2; distance > 0; distance /= 2) {
		const uint32_t other = __shfl_xor_sync(ALL_LANES, x, distance);
		x = other > x ? other : x;
	}
	return x;
}

__device__ static inline uint32_t half_of(uint32_t bits)
{
	const uint32_t sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
	if (size >= INFINITY_BITS) {
		const uint32_t special = 0x7c00 | (size >> 13 & 0x3ff);
		return sign | (size > INFINITY_BITS && special == 0x7c00 ? 0x7e00 : special);
	}
	if (size < 0x38800000) /* below 2^-14, in steps of 2^-24: those of floats from 1/2 to 1 */
		return sign | (__float_as_uint(__fadd_rn(__uint_as_float(size), 0.5f)) - 0x3f000000);
	if (size >= 0x477ff000) /* from 65520 on */
		return sign | 0x7bff;
	return sign | (size - (112u << 23) + 0xfff + (size >> 13 & 1)) >> 13;
}

__device__ static inline uint32_t whole_of(uint32_t half)
{
	const uint32_t sign = (half & 0x8000) << 16, size = (half & 0x7fff) << 13;
	if (size < 1u << 23)
		return sign | __float_as_uint(__fadd_rn(__uint_as_float(size + (113u << 23)), -0x1p-14f));
	return sign | (size >= 31u << 23 ? size + (224u << 23) : size + (112u << 23));
}

/* ---- e3m0: models/update/codec.c says why ------------------------------------------------------------------------------------ */

__device__ static inline uint32_t e3m0_of(float x, float inverse)
{
	const float y = __fmul_rn(fabsf(x), inverse);
	int32_t number = ((int32_t)(__float_as_uint(y) + (1u << 22)) >> 23) - (127 + 2 - 7);
	const int32_t least = y >= 0x1p-5f;
	number = number > least ? number : least;
	return number > 0 ? (uint32_t)number | (__float_as_uint(x) >> 31) << 3 : 0;
}

__device__ static inline float e3m0_value(uint32_t code)
{
	const uint32_t number = code & 7, sign = (code & 8) << 28;
	return __uint_as_float(number > 0 ? (120 + number) << 23 | sign : 0);
}

/* A block without a scale has the NaN that the CPU makes of it; a GPU's products have another one. */
__device__ static inline float scaled(float number, float scale)
{
	const float product = __fmul_rn(number, scale);
	return product == product ? product : __uint_as_float(NAN_BITS);
}

/* Elements of the block in which the piece is. */
__device__ static inline unsigned block_of(const struct piece &p, size_t n)
{
	const size_t first = p.first / SKEP_CODEC_BLOCK * SKEP_CODEC_BLOCK, rest = n > first ? n - first : 0;
	return rest < SKEP_CODEC_BLOCK ? (unsigned)rest : SKEP_CODEC_BLOCK;
}

/* ---- four elements from and to a payload ---------------------------------------------------------------------------- */

template <int codec> __device__ static inline unsigned char *place_of(void *encoded, const struct piece &p)
{
	unsigned char *bytes = (unsigned char *)encoded;
	if (codec == SKEP_CODEC_INT8)
		return bytes + p.first / SKEP_CODEC_BLOCK * (SKEP_CODEC_BLOCK + SKEP_CODEC_SCALE_BYTES);
	if (codec == SKEP_CODEC_E3M0)
		return bytes + p.first / SKEP_CODEC_BLOCK * (SKEP_CODEC_BLOCK / 2 + SKEP_CODEC_SCALE_BYTES);
	return bytes + p.first * (codec == SKEP_CODEC_FP16 ? 2 : 4);
}

__device__ static inline void read_quads(const struct piece &p, size_t n, const unsigned char *from, float value[EACH])
{
	const unsigned half = (block_of(p, n) + 1) / 2, at = p.first % SKEP_CODEC_BLOCK;
	for (unsigned i = 0; i < p.count; i++) {
		const bool high = at + i >= half;
		const uint32_t byte = from[SKEP_CODEC_SCALE_BYTES + at + i - (high ? half : 0)];
		value[i] = scaled(e3m0_value(high ? byte >> 4 : byte), *(const float *)from);
	}
}

template <int codec>
__device__ static inline void read_piece(const struct piece &p, size_t n, void *encoded, float value[EACH])
{
	unsigned char *from = place_of<codec>(encoded, p);
	if (codec == SKEP_CODEC_E3M0)
		read_quads(p, n, from, value);
	for (unsigned i = 0; i < p.count; i++) {
		if (codec == SKEP_CODEC_NONE)
			value[i] = ((const float *)from)[i];
		else if (codec == SKEP_CODEC_FP16)
			value[i] = __uint_as_float(whole_of(((const uint16_t *)from)[i]));
		else if (codec == SKEP_CODEC_INT8)
			value[i] = scaled((float)(int8_t)from[SKEP_CODEC_SCALE_BYTES + p.first % SKEP_CODEC_BLOCK + i],
				*(const float *)from);
	}
}

/* A normal float, 127 times of which is finite. */
__device__ static inline float scale_of(float largest)
{
	const float scale = __fdiv_rn(largest, 127.0f);
	return fminf(fmaxf(scale, 0x1p-126f), 0x1.020406p121f);
}

/* Of the block: the bits of the largest |x|. */
__device__ static inline uint32_t largest_of(const struct piece &p, const float value[EACH])
{
	uint32_t largest = 0;
	for (unsigned i = 0; i < p.count; i++) {
		const uint32_t size = __float_as_uint(value[i]) & 0x7fffffff;
		largest = size > largest ? size : largest;
	}
	return thread_pool_most(largest);
}

__device__ static inline void write_bytes(const struct piece &p, unsigned char *to, const float value[EACH])
{
	uint32_t word = 0;
	const uint32_t largest = largest_of(p, value);
	const bool finite = largest < INFINITY_BITS;
	const float scale = scale_of(__uint_as_float(largest)), inverse = __fdiv_rn(1.0f, scale);
	for (unsigned i = 0; i < p.count && finite; i++)
		word |= (__float_as_uint(__fadd_rn(__fmul_rn(value[i], inverse), 0x1.8p23f)) & 0xff) << 8 * i;
	if (p.first % SKEP_CODEC_BLOCK == 0 && p.count > 0)
		*(uint32_t *)to = finite ? __float_as_uint(scale) : NAN_BITS;
	to += SKEP_CODEC_SCALE_BYTES + p.first % SKEP_CODEC_BLOCK;
	if (p.count == EACH)
		*(uint32_t *)to = word;
	for (unsigned i = 0; i < p.count && p.count < EACH; i++)
		to[i] = (unsigned char)(word >> 8 * i);
}

/* A byte has one element of the first half of its block and one of the second, whose codes two neighbours have. */
__device__ static inline void write_quads(const struct piece &p, size_t n, unsigned char *to, const float value[EACH])
{
	const unsigned block = block_of(p, n), half = (block + 1) / 2, at = p.first % SKEP_CODEC_BLOCK;
	const uint32_t largest = largest_of(p, value);
	const bool finite = largest < INFINITY_BITS;
	const float scale = fmaxf(finite ? __uint_as_float(largest) : 0.0f, 0x1p-120f);
	const float inverse = __fdiv_rn(1.0f, __fmul_rn(scale, 0.25f));
	uint32_t code = 0, word = 0;
	for (unsigned i = 0; i < p.count && finite; i++)
		code |= e3m0_of(value[i], inverse) << 8 * i;
	const unsigned lane = threadIdx.x % WARP, own = lane % THREAD_POOL, thread_pool = lane - own,
		       other = own + half / EACH;
	const uint32_t low = __shfl_sync(ALL_LANES, code, (int)(thread_pool + other % THREAD_POOL));
	const uint32_t high = __shfl_sync(ALL_LANES, code, (int)(thread_pool + (other + 1) % THREAD_POOL));
	const uint64_t across = (uint64_t)high << 32 | low;
	if (at == 0 && p.count > 0)
		*(uint32_t *)to = finite ? __float_as_uint(scale) : NAN_BITS;
	to += SKEP_CODEC_SCALE_BYTES + at;
	for (unsigned i = 0; i < EACH && at + i < half; i++) {
		const uint32_t second = at + i + half < block ? (uint32_t)(across >> 8 * (half % EACH + i)) & 0xff : 0;
		word |= ((code >> 8 * i & 0xff) | second << 4) << 8 * i;
	}
	if (at + EACH <= half)
		*(uint32_t *)to = word;
	for (unsigned i = 0; i < EACH && at + i < half && at + EACH > half; i++)
		to[i] = (unsigned char)(word >> 8 * i);
}

template <int codec>
__device__ static inline void write_piece(const struct piece &p, size_t n, void *encoded, const float value[EACH])
{
	unsigned char *to = place_of<codec>(encoded, p);
	if (codec == SKEP_CODEC_INT8)
		write_bytes(p, to, value);
	if (codec == SKEP_CODEC_E3M0)
		write_quads(p, n, to, value);
	for (unsigned i = 0; i < p.count; i++) {
		if (codec == SKEP_CODEC_NONE)
			((float *)to)[i] = value[i];
		if (codec == SKEP_CODEC_FP16)
			((uint16_t *)to)[i] = (uint16_t)half_of(__float_as_uint(value[i]));
	}
}

/* ---- kernels -------------------------------------------------------------------------------------------------------- */

template <int codec> __global__ void encode(size_t n, const float *value, void *encoded)
{
	const struct piece p = own_piece(n);
	float x[EACH] = {};
	for (unsigned i = 0; i < p.count; i++)
		x[i] = value[p.first + i];
	write_piece<codec>(p, n, encoded, x);
}

template <int codec> __global__ void decode(size_t n, void *encoded, float *value)
{
	const struct piece p = own_piece(n);
	float x[EACH] = {};
	read_piece<codec>(p, n, encoded, x);
	for (unsigned i = 0; i < p.count; i++)
		value[p.first + i] = x[i];
}

/* The payload takes the values in; what it then says is read again by those who wrote it, whose scale the first of them wrote. */
template <int codec> __global__ void take_in(size_t n, const float *value, void *encoded, float *sum)
{
	const struct piece p = own_piece(n);
	float x[EACH] = {};
	read_piece<codec>(p, n, encoded, x);
	for (unsigned i = 0; i < p.count; i++)
		x[i] = __fadd_rn(x[i], value[p.first + i]);
	__syncwarp();
	write_piece<codec>(p, n, encoded, x);
	__syncwarp();
	if (!sum)
		return;
	read_piece<codec>(p, n, encoded, x);
	for (unsigned i = 0; i < p.count; i++)
		sum[p.first + i] = x[i];
}

template <int codec> __global__ void fold(size_t n, void *encoded, float *sum)
{
	const struct piece p = own_piece(n);
	float x[EACH] = {};
	read_piece<codec>(p, n, encoded, x);
	for (unsigned i = 0; i < p.count; i++)
		sum[p.first + i] = __fadd_rn(sum[p.first + i], x[i]);
}

/* ---- blocks of another length ---------------------------------------------------------------------------------------- */

/* Decoding is by the element. To encode, all threads of a thread block go over one block of elements twice, for its largest one and
 * then to write it. So one scale for a whole payload leaves most of a GPU idle, for as long as it takes one multiprocessor to read
 * that payload. */
struct wide {
	size_t block, n; /* elements of a whole block, and of the payload */
};

struct span {                      /* one block */
	size_t first, count, half; /* half: e3m0 has element half + i beside element i */
	unsigned char *byte;
	float *scale;
};

template <int codec> __device__ static inline struct span span_of(const struct wide &w, void *encoded, size_t nth)
{
	struct span s;
	const size_t bytes = SKEP_CODEC_SCALE_BYTES + (codec == SKEP_CODEC_INT8 ? w.block : w.block / 2);
	s.first = nth * w.block;
	s.count = w.n - s.first < w.block ? w.n - s.first : w.block;
	s.half = codec == SKEP_CODEC_INT8 ? s.count : (s.count + 1) / 2;
	s.scale = (float *)((unsigned char *)encoded + nth * bytes);
	s.byte = (unsigned char *)s.scale + SKEP_CODEC_SCALE_BYTES;
	return s;
}

/* Of the byte that has the element. */
template <int codec> __device__ static inline float value_of(uint32_t byte, bool high, float scale)
{
	if (codec == SKEP_CODEC_INT8)
		return scaled((float)(int8_t)byte, scale);
	return scaled(e3m0_value(high ? byte >> 4 : byte), scale);
}

template <int codec> __device__ static inline float wide_value(const struct wide &w, void *encoded, size_t i)
{
	const struct span s = span_of<codec>(w, encoded, i / w.block);
	const size_t at = i % w.block;
	const bool high = at >= s.half;
	return value_of<codec>(s.byte[high ? at - s.half : at], high, *s.scale);
}

/* Of all threads of the block. */
__device__ static inline uint32_t block_most_bits(uint32_t x, uint32_t *room)
{
	const unsigned warps = blockDim.x / WARP, warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
	for (int turn = 0; turn < 2; turn++) {
		for (int distance = WARP / 2; distance > 0; distance /= 2) {
			const uint32_t other = __shfl_xor_sync(ALL_LANES, x, distance);
			x = other > x ? other : x;
		}
		if (turn == 0 && lane == 0)
			room[warp] = x;
		__syncthreads();
		if (turn == 0)
			x = room[lane < warps ? lane : 0];
	}
	return x;
}

/* What is encoded of an element: the value, on top of what the payload says of it. */
template <int codec, bool adds>
__device__ static inline float wide_sum(const struct span &s, const float *value, size_t at, uint32_t byte, float was)
{
	const float own = value[s.first + at];
	return adds ? __fadd_rn(value_of<codec>(byte, at >= s.half, was), own) : own;
}

__device__ static inline uint32_t larger(uint32_t largest, float x)
{
	const uint32_t size = __float_as_uint(x) & 0x7fffffff;
	return size > largest ? size : largest;
}

/* The scale is written when all threads have read the one that was there. A byte is read and written by one thread. */
template <int codec, bool adds>
__global__ void encode_wide(struct wide w, const float *value, void *encoded, float *sum)
{
	const struct span s = span_of<codec>(w, encoded, blockIdx.x);
	const float was = adds ? *s.scale : 0;
	uint32_t largest = 0;
	for (size_t i = threadIdx.x; i < s.half; i += blockDim.x) {
		const uint32_t byte = adds ? s.byte[i] : 0;
		largest = larger(largest, wide_sum<codec, adds>(s, value, i, byte, was));
		if (s.half + i < s.count)
			largest = larger(largest, wide_sum<codec, adds>(s, value, s.half + i, byte, was));
	}
	largest = block_most_bits(largest, (uint32_t *)shared_memory());
	const bool finite = largest < INFINITY_BITS, bytes = codec == SKEP_CODEC_INT8;
	const float good =
		bytes ? scale_of(__uint_as_float(largest)) : fmaxf(finite ? __uint_as_float(largest) : 0.0f, 0x1p-120f);
	const float inverse = __fdiv_rn(1.0f, bytes ? good : __fmul_rn(good, 0.25f));
	const float scale = finite ? good : __uint_as_float(NAN_BITS);
	if (threadIdx.x == 0)
		*s.scale = scale;
	for (size_t i = threadIdx.x; i < s.half; i += blockDim.x) {
		const uint32_t byte = adds ? s.byte[i] : 0;
		const bool two = s.half + i < s.count;
		const float x = wide_sum<codec, adds>(s, value, i, byte, was);
		const float y = two ? wide_sum<codec, adds>(s, value, s.half + i, byte, was) : 0;
		uint32_t code = bytes ? __float_as_uint(__fadd_rn(__fmul_rn(x, inverse), 0x1.8p23f)) & 0xff
		                      : e3m0_of(x, inverse) | e3m0_of(y, inverse) << 4;
		code = finite ? code : 0;
		s.byte[i] = (unsigned char)code;
		if (sum)
			sum[s.first + i] = value_of<codec>(code, false, scale);
		if (sum && two)
			sum[s.first + s.half + i] = value_of<codec>(code, true, scale);
	}
}

template <int codec, bool adds> __global__ void decode_wide(struct wide w, void *encoded, float *value)
{
	const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= w.n)
		return;
	const float x = wide_value<codec>(w, encoded, i);
	value[i] = adds ? __fadd_rn(value[i], x) : x;
}

/* Does the codec want these kernels for such a block? */
static bool is_wide(enum skep_codec codec, uint32_t block, size_t n)
{
	return skep_codec_blocks(codec) && skep_codec_block_of(block, n) != SKEP_CODEC_BLOCK;
}

template <bool adds>
static void launch_wide(struct skep_cuda_queue *queue, const char *what, enum skep_codec codec, uint32_t block,
	size_t n, const float *value, void *encoded, float *sum)
{
	const struct wide w = {(size_t)skep_codec_block_of(block, n), n};
	const dim3 grid((unsigned)((n + w.block - 1) / w.block)),
		threads(w.block > 8 * THREADS ? WIDE_THREADS : THREADS);
	const size_t room = WARP * sizeof(uint32_t);
	if (n == 0)
		return;
	if (codec == SKEP_CODEC_INT8)
		launch(queue, what, encode_wide<SKEP_CODEC_INT8, adds>, grid, threads, room, w, value, encoded, sum);
	else
		launch(queue, what, encode_wide<SKEP_CODEC_E3M0, adds>, grid, threads, room, w, value, encoded, sum);
}

template <bool adds>
static void launch_decode_wide(struct skep_cuda_queue *queue, const char *what, enum skep_codec codec, uint32_t block,
	size_t n, const void *encoded, float *value)
{
	const struct wide w = {(size_t)skep_codec_block_of(block, n), n};
	const dim3 grid(blocks_for(n, THREADS)), threads(THREADS);
	void *from = const_cast<void *>(encoded);
	if (n == 0)
		return;
	if (codec == SKEP_CODEC_INT8)
		launch(queue, what, decode_wide<SKEP_CODEC_INT8, adds>, grid, threads, 0, w, from, value);
	else
		launch(queue, what, decode_wide<SKEP_CODEC_E3M0, adds>, grid, threads, 0, w, from, value);
}

/* ---- asked for ------------------------------------------------------------------------------------------------------ */

#define FOR_CODEC(codec, what, kernel, ...)                                                                            \
	do {                                                                                                           \
		const dim3 grid(blocks_for(n, THREADS *EACH)), threads(THREADS);                                       \
		if (n == 0)                                                                                            \
			break;                                                                                         \
		if (codec == SKEP_CODEC_NONE)                                                                          \
			launch(queue, what, kernel<SKEP_CODEC_NONE>, grid, threads, 0, n, __VA_ARGS__);                \
		else if (codec == SKEP_CODEC_FP16)                                                                     \
			launch(queue, what, kernel<SKEP_CODEC_FP16>, grid, threads, 0, n, __VA_ARGS__);                \
		else if (codec == SKEP_CODEC_INT8)                                                                     \
			launch(queue, what, kernel<SKEP_CODEC_INT8>, grid, threads, 0, n, __VA_ARGS__);                \
		else                                                                                                   \
			launch(queue, what, kernel<SKEP_CODEC_E3M0>, grid, threads, 0, n, __VA_ARGS__);                \
	} while (0)

void skep_cuda_encode(struct skep_cuda_queue *queue, enum skep_codec codec, uint32_t block, size_t n,
	const float *value, void *ret_encoded)
{
	if (is_wide(codec, block, n))
		launch_wide<false>(queue, "encoding", codec, block, n, value, ret_encoded, (float *)NULL);
	else
		FOR_CODEC(codec, "encoding", encode, value, ret_encoded);
}

void skep_cuda_decode(struct skep_cuda_queue *queue, enum skep_codec codec, uint32_t block, size_t n,
	const void *encoded, float *ret_value)
{
	if (is_wide(codec, block, n))
		launch_decode_wide<false>(queue, "decoding", codec, block, n, encoded, ret_value);
	else
		FOR_CODEC(codec, "decoding", decode, const_cast<void *>(encoded), ret_value);
}

void skep_cuda_add(struct skep_cuda_queue *queue, enum skep_codec codec, uint32_t block, size_t n, const float *value,
	void *encoded, float *ret_sum)
{
	if (is_wide(codec, block, n))
		launch_wide<true>(queue, "adding to a payload", codec, block, n, value, encoded, ret_sum);
	else
		FOR_CODEC(codec, "adding to a payload", take_in, value, encoded, ret_sum);
}

void skep_cuda_fold(
	struct skep_cuda_queue *queue, enum skep_codec codec, uint32_t block, size_t n, const void *encoded, float *sum)
{
	if (is_wide(codec, block, n))
		launch_decode_wide<true>(queue, "adding a payload", codec, block, n, encoded, sum);
	else
		FOR_CODEC(codec, "adding a payload", fold, const_cast<void *>(encoded), sum);
}
