/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_states.c - a folder of checkpoints in any condition: what is not a whole state of this job is refused with a
 * reason, and the folder can be written to again.
 *
 * The input is a list of changes of a sound folder, five bytes each: the file (a state, or the list of what they are learnt
 * from), what is done to it, where (two), and a value; 248 and more: all states are removed, or one of another job is kept.
 *
 *   clang -DSKEP_LIBFUZZER -fsanitize=fuzzer,address,undefined ...    then: fuzz_states
 *   without SKEP_LIBFUZZER it is a plain program: the files of its arguments one after the other, or so many random inputs
 */
#include <ftw.h>
#include <sys/stat.h>

#include "models/checkpoint/checkpoint_folder.h"
#include "tests/fuzz/damage.h"

enum { STAGES = 2, VERSIONS = 2, BYTES = 24, JOB = 0x1122, RUN = 5, CHANGES_MAX = 16 };

static struct {
	unsigned read, refused, found;
} tried; /* for the last line */

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *where)
{
	(void)status, (void)kind, (void)where;
	return remove(path);
}

static void keep_sound(const char *path)
{
	struct skep_checkpoint_folder folder = {.path = path, .job = JOB, .run = RUN, .keep = SKEP_CHECKPOINTS_KEPT};
	const struct skep_keeper keeper = skep_checkpoint_keeper(&folder);
	struct skep_diag diag = {0};
	uint8_t state[BYTES];
	for (uint32_t i = 0; i < STAGES * VERSIONS; i++) {
		memset(state, (int)i, sizeof state);
		must(keeper.write(keeper.context, i % STAGES, 3 + 2 * (i / STAGES), false, state, BYTES, &diag));
	}
}

/* What the states are learnt from, for the list of their sums: two files that stay, one that is not there. */
static const struct skep_learnt_from learnt_from[] = {{"model", "models/square-mlp.yaml"},
	{"topology", "topologies/one-host.yaml"}, {"weights", "none-of-this-name"}, {"law", ""}};
enum { LEARNT_FROM = sizeof learnt_from / sizeof *learnt_from };

/* A copy of the bytes under another name, which may be that of any stage and version or of none. */
static void put_copy(const char *folder, const uint8_t *bytes, size_t size, unsigned where, unsigned value)
{
	static const char *const name[] = {"%s/stage-%u-version-%u.kept",
		"%s/stage-%u-version-%u.kept.77-0123456789abcdef.new", "%s/stage-%u-version-%ux.kept", "%s/%u-%u",
		"%s/stage-%u-version-99999999999%u.kept"};
	char path[256];
	snprintf(path, sizeof path, name[value / 16 % 5], folder, value % 4, where % 12);
	if (value / 16 == 15) {
		(void)!mkdir(path, 0777);
		return;
	}
	FILE *file = fopen(path, "wb");
	if (file == NULL)
		return; /* a folder has that name */
	fwrite(bytes, 1, size, file);
	fclose(file);
}

static void change_all(const char *folder, unsigned stage, unsigned version, bool other)
{
	struct skep_checkpoint_folder of = {
		.path = folder, .job = JOB + 1, .run = RUN + 1, .keep = SKEP_CHECKPOINTS_KEPT};
	const struct skep_keeper keeper = skep_checkpoint_keeper(&of);
	struct skep_diag diag = {0};
	const uint8_t state[BYTES] = {1};
	char path[256];
	for (unsigned i = 0; !other && i < STAGES * VERSIONS; i++) {
		snprintf(path, sizeof path, "%s/stage-%u-version-%u.kept", folder, i % STAGES, 3 + 2 * (i / STAGES));
		(void)!remove(path);
	}
	if (other && !keeper.write(keeper.context, stage % STAGES, version % 12, false, state, BYTES, &diag))
		check_diag(&diag); /* a folder has that name */
}

static void change(const char *folder, const uint8_t *c)
{
	char path[256];
	uint8_t bytes[1024] = {0};
	if (c[1] >= 248) {
		change_all(folder, c[0], c[4], c[1] >= 251);
		return;
	}
	unsigned which = c[0] % (STAGES * VERSIONS + 1), where = (unsigned)(c[2] | c[3] << 8);
	if (which == STAGES * VERSIONS)
		snprintf(path, sizeof path, "%s/files", folder);
	else
		snprintf(path, sizeof path, "%s/stage-%u-version-%u.kept", folder, which % STAGES,
			3 + 2 * (which / STAGES));
	FILE *file = fopen(path, "rb");
	size_t size = file != NULL ? fread(bytes, 1, sizeof bytes / 2, file) : 0;
	if (file != NULL)
		fclose(file);
	if (c[1] % 6 == 4) {
		(void)!remove(path);
		return;
	}
	if (c[1] % 6 == 5) {
		put_copy(folder, bytes, size, where, c[4]);
		return;
	}
	size_t at = size > 0 ? where % size : 0, most = sizeof bytes / 2;
	if (c[1] % 6 == 0)
		bytes[at] = c[4];
	else if (c[1] % 6 == 1)
		bytes[at] ^= (uint8_t)(1 << c[4] % 8);
	else
		size = c[1] % 6 == 2 ? at : size + c[4] < most ? size + c[4] : most;
	file = fopen(path, "wb");
	if (file == NULL)
		return;
	fwrite(bytes, 1, size, file);
	fclose(file);
}

static void try_run(struct skep_checkpoint_folder *folder)
{
	struct skep_checkpoints list;
	char text[1024];
	must(skep_checkpoints_find(folder->path, JOB, STAGES, &list));
	skep_checkpoints_say_none(&list, STAGES, text, sizeof text);
	for (uint32_t i = 1; i < list.versions; i++)
		must(list.version[i - 1] < list.version[i]);
	tried.found += list.versions > 0;
	folder->run = list.versions > 0 ? list.run : 5;
	const struct skep_keeper keeper = skep_checkpoint_keeper(folder);
	for (uint32_t stage = 0; stage < STAGES; stage++)
		for (uint32_t i = 0; i < 1 + (list.versions < 4 ? list.versions : 4); i++) {
			struct skep_diag diag = {0};
			uint8_t *state = malloc(BYTES);
			uint32_t version = i < list.versions ? list.version[i] : 3;
			bool fine = keeper.read(keeper.context, stage, version, state, BYTES, &diag);
			must(fine == !diag.set);
			tried.read += fine;
			tried.refused += !fine;
			if (!fine)
				check_diag(&diag);
			free(state);
		}
	skep_checkpoints_finish(&list);
}

/* Who goes on from there passes over what is damaged, as `--resume` does: what is left can be read. */
static void try_resumed(const char *path)
{
	struct skep_checkpoint_folder folder = {.path = path, .job = JOB, .keep = SKEP_CHECKPOINTS_KEPT};
	const struct skep_keeper keeper = skep_checkpoint_keeper(&folder);
	struct skep_checkpoints list;
	struct skep_diag diag = {0};
	uint8_t state[BYTES];
	const struct skep_learnt_from *other = skep_checkpoints_other_file(path, learnt_from, LEARNT_FROM);
	must(other == NULL || (other >= learnt_from && other < learnt_from + 2));
	must(skep_checkpoints_find(path, JOB, STAGES, &list) && skep_checkpoints_pass_over(path, JOB, STAGES, &list));
	folder.run = list.run;
	for (uint32_t stage = 0; stage < STAGES && list.versions > 0; stage++)
		if (!keeper.read(keeper.context, stage, list.version[list.versions - 1], state, BYTES, &diag))
			must(strstr(diag.message, "another") != NULL); /* whole, and not this one's */
	skep_checkpoints_finish(&list);
}

/* A new run begins there, keeps a state and reads it. */
static void begin_anew(const char *path)
{
	struct skep_checkpoint_folder folder = {.path = path, .job = JOB, .run = 9, .keep = SKEP_CHECKPOINTS_KEPT};
	const struct skep_keeper keeper = skep_checkpoint_keeper(&folder);
	struct skep_diag diag = {0};
	uint32_t moved;
	uint8_t state[BYTES], again[BYTES];
	memset(state, 42, sizeof state);
	must(skep_checkpoint_folder_usable(&folder, &moved, &diag));
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	skep_checkpoint_say_moved(&folder, moved, out);
	must(fclose(out) == 0 && (size > 0) == (moved > 0));
	free(text);
	must(skep_checkpoints_note_files(path, learnt_from, LEARNT_FROM, &diag));
	must(skep_checkpoints_other_file(path, learnt_from, LEARNT_FROM) == NULL);
	must(keeper.write(keeper.context, 1, 7, false, state, BYTES, &diag));
	must(keeper.read(keeper.context, 1, 7, again, BYTES, &diag) && memcmp(state, again, BYTES) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char folder[] = "/dev/shm/skep-fuzz-XXXXXX"; /* in memory, else on a disk */
	if (!mkdtemp(folder)) {
		strcpy(folder, "/tmp/skep-fuzz-XXXXXX");
		must(mkdtemp(folder));
	}
	struct skep_diag diag = {0};
	keep_sound(folder);
	must(skep_checkpoints_note_files(folder, learnt_from, LEARNT_FROM, &diag));
	for (size_t i = 0; i + 5 <= size && i < 5 * CHANGES_MAX; i += 5)
		change(folder, data + i);
	try_run(&(struct skep_checkpoint_folder){.path = folder, .job = JOB, .keep = SKEP_CHECKPOINTS_KEPT});
	try_resumed(folder);
	begin_anew(folder);
	must(nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0);
	return 0;
}

#ifndef SKEP_LIBFUZZER
int main(int argc, char **argv)
{
	bool ok = true;
	uint64_t random = skep_mix(1);
	unsigned long tries = argc == 2 ? strtoul(argv[1], NULL, 10) : 0;
	for (unsigned long i = 0; i < tries; i++) {
		uint8_t data[5 * 4];
		size_t size = 5 * (size_t)(1 + skep_random_below(&random, 4));
		for (size_t at = 0; at < size; at++)
			data[at] = (uint8_t)skep_random_below(&random, 256);
		LLVMFuzzerTestOneInput(data, size);
	}
	for (int i = 1; i < argc && tries == 0; i++)
		ok = fuzz_file(argv[i]) && ok;
	printf("%u read, %u refused, %u folders with a version of all stages\n", tried.read, tried.refused,
		tried.found);
	return ok && tried.read > 0 && tried.refused > 0 && tried.found > 0 ? 0 : 1;
}
#endif
