/* SPDX-License-Identifier: Apache-2.0
 *
 * token_file.c - see token_file.h. Numbers are put together from bytes, so the byte order of the machine does not matter;
 * compilers make plain loads of it.
 *
 * A file says what it is by its magic or not at all: nanoGPT's has no header. So a header of llm.c in a file that is to be read
 * as nanoGPT's is refused, where it would pass as 512 odd tokens.
 */
#include "models/corpus/token_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { HEADER_BYTES = 256 * 4 };

/* Of llm.c's files; the last are questions with choices, not running text. */
static const uint32_t magic16 = 20240520, version16 = 1, magic32 = 20240801, version32 = 7, magic_choices = 20240522;

#define fail(...) (skep_diag_set(reterr, file->path, 0, 0, NULL, __VA_ARGS__), false)

static uint32_t number16(const unsigned char *p)
{
	return p[0] | (uint32_t)p[1] << 8;
}

static uint32_t number32(const unsigned char *p)
{
	return number16(p) | number16(p + 2) << 16;
}

static uint32_t magic_of(const struct skep_mapped *mapped)
{
	return mapped->size >= HEADER_BYTES ? number32(mapped->byte) : 0;
}

static bool known(uint32_t magic)
{
	return magic == magic16 || magic == magic32 || magic == magic_choices;
}

static enum skep_tokens_format detect(const struct skep_token_file *file)
{
	if (known(magic_of(&file->mapped)))
		return SKEP_TOKENS_LLMC;
	return skep_text_ends(file->path, ".bin") ? SKEP_TOKENS_NANOGPT : SKEP_TOKENS_BYTES;
}

static bool read_header(struct skep_token_file *file, struct skep_diag *reterr)
{
	const unsigned char *byte = file->mapped.byte;
	uint32_t magic = magic_of(&file->mapped);
	if (file->mapped.size < HEADER_BYTES)
		return fail("is cut short: %" PRIu64 " bytes, but llm.c's header alone has %d", file->mapped.size,
			HEADER_BYTES);
	if (magic == magic_choices)
		return fail("holds questions with choices (llm.c's magic %u), not running text", magic);
	if (magic != magic16 && magic != magic32)
		return fail("begins with %u, but files of llm.c begin with %u (16-bit tokens) or %u (32-bit); files of "
			    "nanoGPT have no header: format nanogpt",
			magic, magic16, magic32);
	uint32_t expected = magic == magic16 ? version16 : version32, version = number32(byte + 4);
	if (version != expected)
		return fail("is of version %u, expected %u: write it again with a newer llm.c", version, expected);
	file->width = magic == magic16 ? 2 : 4;
	file->tokens = number32(byte + 8);
	file->first = byte + HEADER_BYTES;
	uint64_t bytes = HEADER_BYTES + file->tokens * file->width;
	if (file->mapped.size != bytes)
		return fail("is %s: %" PRIu64 " bytes, but by its header %" PRIu64 " tokens of %u bytes make %" PRIu64
			    "; fetch or write it again",
			file->mapped.size < bytes ? "cut short" : "too long", file->mapped.size, file->tokens,
			file->width, bytes);
	return true;
}

static bool recognise(struct skep_token_file *file, struct skep_diag *reterr)
{
	uint64_t size = file->mapped.size;
	if (size == 0)
		return fail("is empty: expected tokens");
	if (file->format == SKEP_TOKENS_DETECT)
		file->format = detect(file);
	if (file->format == SKEP_TOKENS_LLMC)
		return read_header(file, reterr);
	file->first = file->mapped.byte;
	file->width = file->format == SKEP_TOKENS_BYTES ? 1 : 2;
	file->tokens = size / file->width;
	if (file->format == SKEP_TOKENS_NANOGPT && known(magic_of(&file->mapped)))
		return fail("has the header of llm.c, which would be read as tokens: use format llmc");
	if (size % file->width != 0)
		return fail("has an odd number of bytes, %" PRIu64 ", but tokens of 16 bits: it is cut short, or text "
			    "(format bytes)",
			size);
	return true;
}

bool skep_token_file_open(
	const char *path, enum skep_tokens_format format, struct skep_token_file *ret, struct skep_diag *reterr)
{
	*ret = (struct skep_token_file){.path = strdup(path), .format = format};
	if (ret->path == NULL)
		skep_diag_set(reterr, path, 0, 0, NULL, "not enough memory");
	else if (skep_mapped_open(path, &ret->mapped, reterr) && recognise(ret, reterr))
		return true;
	skep_token_file_close(ret);
	return false;
}

void skep_token_file_close(struct skep_token_file *file)
{
	skep_mapped_close(&file->mapped);
	free(file->path);
	*file = (struct skep_token_file){0};
}

/* ---- ids ---------------------------------------------------------------------------------------------------- */

uint32_t skep_token_file_read(const struct skep_token_file *file, uint64_t at, uint64_t count, int32_t *ret)
{
	const unsigned char *from = file->first + at * file->width;
	uint32_t largest = 0;
	if (file->width == 1)
		for (uint64_t i = 0; i < count; i++)
			ret[i] = from[i];
	else if (file->width == 2)
		for (uint64_t i = 0; i < count; i++)
			ret[i] = (int32_t)number16(from + 2 * i);
	else
		for (uint64_t i = 0; i < count; i++)
			ret[i] = (int32_t)number32(from + 4 * i);
	for (uint64_t i = 0; i < count; i++)
		largest = (uint32_t)ret[i] > largest ? (uint32_t)ret[i] : largest;
	return largest;
}

uint32_t skep_token_file_largest(const struct skep_token_file *file, uint64_t at, uint64_t count)
{
	int32_t id[1024];
	uint32_t largest = 0;
	while (count > 0) {
		uint64_t some = count < 1024 ? count : 1024;
		uint32_t found = skep_token_file_read(file, at, some, id);
		largest = found > largest ? found : largest;
		at += some;
		count -= some;
	}
	return largest;
}

bool skep_token_file_fits(const struct skep_token_file *file, uint64_t at, uint64_t count, uint32_t largest,
	uint32_t vocabulary, struct skep_diag *reterr)
{
	if (largest < vocabulary)
		return true;
	int32_t id = 0;
	for (uint64_t i = 0; i < count; i++, at++)
		if (skep_token_file_read(file, at, 1, &id) >= vocabulary)
			break;
	return fail("token %" PRIu64
		    " (from 0) is %u, but the model knows %u (0 to %u): the text was cut into tokens for "
		    "another vocabulary; use a model with `vocabulary` of at least %" PRIu64 ", or make the file anew",
		at, (uint32_t)id, vocabulary, vocabulary - 1, (uint64_t)largest + 1);
}
