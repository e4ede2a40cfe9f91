/* SPDX-License-Identifier: Apache-2.0
 *
 * mapped.c - see mapped.h.
 */
#include "base/files/mapped.h"
#include "base/files/files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define fail(...) (skep_diag_set(reterr, path, 0, 0, NULL, __VA_ARGS__), false)

static bool map(int fd, const char *path, struct skep_mapped *ret, struct skep_diag *reterr)
{
	struct stat st;
	if (fstat(fd, &st) != 0)
		return fail("cannot be read: %s", strerror(errno));
	if (S_ISDIR(st.st_mode))
		return fail("is a folder: expected a file");
	if (!S_ISREG(st.st_mode))
		return fail("is not a regular file");
	*ret = (struct skep_mapped){.size = (uint64_t)st.st_size, .device = st.st_dev, .inode = st.st_ino};
	if (ret->size == 0)
		return true;
	void *at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return fail("cannot be mapped into memory: %s", strerror(errno));
	ret->byte = at;
	return true;
}

bool skep_mapped_open(const char *path, struct skep_mapped *ret, struct skep_diag *reterr)
{
	*ret = (struct skep_mapped){0};
	if (reterr->set)
		return false;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return fail("cannot be opened: %s", strerror(errno));
	skep_files_note(reterr->files, path, true);
	bool ok = map(fd, path, ret, reterr);
	close(fd);
	return ok;
}

void skep_mapped_close(struct skep_mapped *mapped)
{
	if (mapped->byte != NULL)
		munmap((void *)mapped->byte, (size_t)mapped->size);
	*mapped = (struct skep_mapped){0};
}
