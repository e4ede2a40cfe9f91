/* SPDX-License-Identifier: Apache-2.0
 *
 * reserve.c - see reserve.h.
 */
#include "analysis/store/reserve.h"

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "base/files/outputs.h"

/* To say in a database that a run is over: its row with the scenario's text in the log, and a part of the log's index. */
#define RESERVE_BYTES (128 << 10)

int skep_reserve_take(const char *path)
{
	char folder[PATH_MAX];
	skep_path_folder(path, folder, sizeof folder);
	int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0 || posix_fallocate(fd, 0, RESERVE_BYTES) == 0)
		return fd;
	close(fd);
	return -1;
}

void skep_reserve_give_back(int reserve)
{
	if (reserve >= 0)
		close(reserve);
}
