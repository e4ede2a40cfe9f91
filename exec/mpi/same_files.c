/* SPDX-License-Identifier: Apache-2.0
 *
 * same_files.c - see startup.h. Files are compared by their place in the list of what was read: as long as all before were the
 * same, the next one is the same one.
 */
#include "exec/mpi/startup.h"

#include <assert.h>
#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sum.h"

#define MOST 65536u /* files */

struct identity { /* of a file on a host, as long as it runs */
	uint64_t host, device, inode, bytes, changed_ns;
	uint64_t sum; /* 0: not taken */
};

struct reading { /* what this rank has read, and rank 0 */
	const char **path;
	struct identity *mine, *first;
	uint32_t count, first_count;
	int rank;
};

static uint64_t this_host(void)
{
	char id[64] = "";
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
	size_t got = file != NULL ? fread(id, 1, sizeof id, file) : 0;
	if (file != NULL)
		fclose(file);
	return skep_sum(0, id, got);
}

static void identify(const char *path, uint64_t host, struct identity *ret)
{
	struct stat about;
	*ret = (struct identity){.host = host};
	if (stat(path, &about) != 0)
		return;
	ret->device = about.st_dev;
	ret->inode = about.st_ino;
	ret->bytes = (uint64_t)about.st_size;
	ret->changed_ns = (uint64_t)about.st_ctim.tv_sec * 1000000000u + (uint64_t)about.st_ctim.tv_nsec;
}

static bool reading_init(struct reading *r, const struct skep_files *files)
{
	uint64_t host = this_host();
	r->path = calloc(files->count + 1, sizeof *r->path);
	r->mine = calloc(files->count + 1, sizeof *r->mine);
	MPI_Comm_rank(MPI_COMM_WORLD, &r->rank);
	for (uint32_t i = 0; r->path != NULL && r->mine != NULL && i < files->count; i++) {
		if (!files->asked[i].read)
			continue;
		r->path[r->count] = files->asked[i].path;
		identify(files->asked[i].path, host, &r->mine[r->count++]);
	}
	return r->path != NULL && r->mine != NULL;
}

static void reading_finish(struct reading *r)
{
	free(r->path);
	free(r->mine);
	free(r->first);
}

/* The list of rank 0, with or without sums. */
static bool hear_first(struct skep_start *start, struct reading *r, struct skep_diag *reterr)
{
	assert(r->count <= MOST);
	uint64_t count = r->count;
	if (!skep_together_tell(start, "the files of its scenario", 1, &count, sizeof count, reterr))
		return false;
	r->first_count = (uint32_t)count;
	free(r->first);
	r->first = calloc(count + 1, sizeof *r->first);
	if (r->first == NULL)
		skep_fail(reterr, "no memory for the list of rank 0's files");
	if (!skep_together_agree(start, "the files of its scenario", 1, reterr))
		return false;
	if (r->rank == 0)
		memcpy(r->first, r->mine, count * sizeof *r->first);
	return skep_together_tell(start, "the files of its scenario", 1, r->first, count * sizeof *r->first, reterr);
}

static uint32_t shared(const struct reading *r)
{
	return r->count < r->first_count ? r->count : r->first_count;
}

static bool is_very_same(const struct reading *r, uint32_t i)
{
	struct identity other = r->first[i];
	other.sum = r->mine[i].sum;
	return memcmp(&other, &r->mine[i], sizeof other) == 0;
}

static bool needs_sums(const struct reading *r)
{
	bool needs = r->count != r->first_count;
	for (uint32_t i = 0; i < shared(r); i++)
		needs = needs || !is_very_same(r, i);
	return needs;
}

static void take_sums(struct reading *r)
{
	for (uint32_t i = 0; i < r->count; i++) {
		bool needless = r->rank > 0 && i < r->first_count && is_very_same(r, i);
		if (!needless && !skep_sum_file(r->path[i], &r->mine[i].sum))
			r->mine[i].sum = 1; /* it has gone since it was read */
	}
}

static void compare(const struct reading *r, struct skep_diag *reterr)
{
	char host[64] = "";
	gethostname(host, sizeof host - 1);
	for (uint32_t i = 0; i < shared(r); i++) {
		if (is_very_same(r, i) || r->mine[i].sum == r->first[i].sum)
			continue;
		skep_fail(reterr,
			"rank %d on %s has read another %.300s than rank 0 (%" PRIu64 " bytes here, %" PRIu64
			" there): all ranks need the same one",
			r->rank, host, r->path[i], r->mine[i].bytes, r->first[i].bytes);
		return;
	}
	if (r->count != r->first_count)
		skep_fail(reterr, "rank %d on %s has read %" PRIu32 " files for its scenario, and rank 0 %" PRIu32,
			r->rank, host, r->count, r->first_count);
}

static bool agree(struct skep_start *start, struct reading *r, struct skep_diag *reterr)
{
	uint64_t needing = 0;
	if (!hear_first(start, r, reterr) ||
		!skep_together_sum(start, "the files of its scenario", 1, needs_sums(r), &needing, reterr) ||
		!skep_together_tell(start, "the files of its scenario", 1, &needing, sizeof needing, reterr))
		return false;
	if (needing == 0)
		return true;
	take_sums(r);
	if (!skep_together_agree(start, "the sums of its files", SKEP_START_AT_WORK, reterr) ||
		!hear_first(start, r, reterr))
		return false;
	compare(r, reterr);
	return skep_together_agree(start, "the sums of its files", 1, reterr);
}

bool skep_together_same_files(struct skep_start *start, const struct skep_files *files, struct skep_diag *reterr)
{
	struct reading r = {0};
	if (!reading_init(&r, files))
		skep_fail(reterr, "no memory for the list of files");
	else if (files->incomplete || r.count > MOST)
		skep_fail(reterr, "the scenario reads more files than can be compared");
	bool same = skep_together_agree(start, "the files of its scenario", 1, reterr) && agree(start, &r, reterr);
	reading_finish(&r);
	return same;
}
