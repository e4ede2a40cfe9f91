/* SPDX-License-Identifier: Apache-2.0
 *
 * sum.c - see sum.h. The library is a header: nothing has to be there when the program runs.
 */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/sum.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK_BYTES (UINT64_C(1) << 20)
#define NARROW_BYTES 240u /* up to which XXH3 does not stripe */
#define BLOCKS_MOST UINT64_C(1024)

uint64_t skep_sum(uint64_t before, const void *bytes, size_t count)
{
#ifdef SKEP_SUM_WIDE
	if (count > NARROW_BYTES && __builtin_cpu_supports("avx2"))
		return skep_sum_wide(before, bytes, count);
#endif
	return count > 0 ? XXH3_64bits_withSeed(bytes, count, before) : before;
}

static bool add_block(int fd, uint64_t at, unsigned char *block, uint64_t *sum)
{
	size_t had = 0;
	ssize_t got = 1;
	while (had < BLOCK_BYTES && got > 0) {
		got = pread(fd, block + had, BLOCK_BYTES - had, (off_t)(at + had));
		had += got > 0 ? (size_t)got : 0;
	}
	*sum = skep_sum(*sum, block, had);
	return got >= 0;
}

bool skep_sum_file(const char *path, uint64_t *ret)
{
	struct stat about;
	unsigned char *block = malloc(BLOCK_BYTES);
	int fd = block != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	bool good = fd >= 0 && fstat(fd, &about) == 0;
	uint64_t bytes = good ? (uint64_t)about.st_size : 0, blocks = (bytes + BLOCK_BYTES - 1) / BLOCK_BYTES;
	uint64_t taken = blocks < BLOCKS_MOST ? blocks : BLOCKS_MOST;
	*ret = skep_sum(0, &bytes, sizeof bytes);
	for (uint64_t i = 0; good && i < taken; i++)
		good = add_block(fd, (taken == blocks ? i : i * (blocks - 1) / (taken - 1)) * BLOCK_BYTES, block, ret);
	if (fd >= 0)
		close(fd);
	free(block);
	return good;
}
