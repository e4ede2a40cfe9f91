/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_topology.c - any bytes as a file that `skep topology import` reads: refused with a sound diagnosis and nothing left
 * behind, or a topology that the reader of topologies takes, with every pair in range.
 *
 * The first byte of the input chooses the format ('A' and on), the second options (bits: fill by all rules, constants,
 * seconds, three machines), or, 'a' and on, how little is told (bits: between a and b alone, the directory at a, nothing of
 * the inside of places, three machines; never a unit or whom a file is about), or, 'q' to 't', places or an output that are
 * none; when these are no such letters the bytes are tried as every format. Runs from the root of the tree, for the GPU profile.
 *
 *   clang -DSKEP_LIBFUZZER -fsanitize=fuzzer,address,undefined ...    then: fuzz_topology FOLDER
 *   without SKEP_LIBFUZZER it is a plain program: the files of its arguments, each also in damaged versions
 */
#include <math.h>

#include "tests/fuzz/damage.h"
#include "topologies/import/import.h"
#include "topologies/read/topology_stats.h"

#define DAMAGES 30

static struct {
	unsigned taken, refused;
} tried; /* for the last line */

static void check_topology(const char *path)
{
	struct skep_topology t;
	struct skep_topology_stats s;
	struct skep_diag diag = {0};
	bool read = skep_topology_read(path, &t, &diag);
	if (!read)
		fprintf(stderr, "%u:%u: %s\n", diag.line, diag.column, diag.message);
	must(read);
	for (uint32_t i = 0; i <= t.machines && i < 100; i++)
		for (uint32_t j = 0; j <= t.machines && j < 100; j++) {
			struct skep_pair pair = skep_topology_pair(&t, i, j);
			must(pair.capacity_Bps >= 1 && pair.latency_s >= 0 && pair.latency_s <= 3600);
		}
	must(skep_topology_stats_make(&t, &s));
	skep_topology_finish(&t);
}

static void try_format(const char *path, enum skep_import_format format, unsigned bits, bool terse)
{
	static const char *const no_places[] = {"a", "a,b,a", "a,,b", "x,z"};
	static const char *const ending[] = {"", "-bandwidth.csv", "-latency.csv", "-regions.csv"};
	char folder[32] = "/dev/shm/skep-fuzz-XXXXXX", output[64], ping[64], operand[80], base[48], name[80];
	if (!mkdtemp(folder)) { /* in memory, else on a disk */
		snprintf(folder, sizeof folder, "/tmp/skep-fuzz-XXXXXX");
		must(mkdtemp(folder));
	}
	snprintf(base, sizeof base, "%s/out", folder);
	snprintf(output, sizeof output, "%s.yaml", base);
	snprintf(ping, sizeof ping, "%s/a.dat", folder);
	must(symlink(path, ping) == 0);
	snprintf(operand, sizeof operand, "x,y=%s", path);
	bool named = !terse && (format == SKEP_IMPORT_OSU || format == SKEP_IMPORT_IPERF3);
	char *file[] = {named ? operand : format == SKEP_IMPORT_GCP_PING ? ping : (char *)path};
	struct skep_import_options o = skep_import_defaults();
	o.format = format;
	o.file = file;
	o.files = 1;
	o.output = output;
	o.tier = SKEP_TIER_ANY;
	o.unit_s = bits & 4 ? 1 : 1e-3;
	o.rules = (struct skep_survey_rules){.fill = {SKEP_FILL_REVERSE, SKEP_FILL_WORST, SKEP_FILL_MEDIAN},
		.fills = bits & 1 ? 3 : 0,
		.constant = {bits & 2 ? 1e6 : NAN, bits & 2 ? 0.1 : NAN}};
	o.inside_Bps = 1e9;
	o.inside_s = 1e-4;
	o.machines = bits & 8 ? 3 : 0;
	o.count = 10;
	if (terse) {
		o.between = bits & 16 ? no_places[bits & 3] : bits & 1 ? "a,b" : NULL;
		o.output = bits == 19 ? folder : output;
		o.directory = bits & 2 ? "a" : NULL;
		o.inside_Bps = bits & 4 ? NAN : o.inside_Bps;
		o.inside_s = bits & 4 ? NAN : o.inside_s;
		o.rules = (struct skep_survey_rules){.constant = {NAN, NAN}};
		o.unit_s = 0;
		o.one_way = true;
	}
	struct skep_import_report report;
	struct skep_diag diag = {0};
	bool ok = skep_import(&o, &report, &diag);
	must(ok == !diag.set);
	tried.taken += ok;
	tried.refused += !ok;
	if (ok)
		check_topology(output);
	else
		check_diag(&diag);
	must(unlink(ping) == 0 && (unlink(output) == 0) == ok);
	for (size_t i = 1; i < sizeof ending / sizeof *ending; i++) {
		snprintf(name, sizeof name, "%s%s", base, ending[i]);
		must(unlink(name) != 0 || ok);
	}
	must(rmdir(folder) == 0); /* nothing else was left */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[64];
	int fd;
	bool terse = size >= 2 && data[1] >= 'a' && data[1] <= 't';
	bool told = size >= 2 && data[0] >= 'A' && data[0] < 'A' + SKEP_IMPORT_FORMATS &&
	            (terse || (data[1] >= 'A' && data[1] <= 'P'));
	enum skep_import_format format = told ? (enum skep_import_format)(data[0] - 'A') : SKEP_IMPORT_FORMATS;
	unsigned bits = told ? data[1] - (terse ? 'a' : 'A') : 3;
	make_file(data + (told ? 2 : 0), size - (told ? 2 : 0), &fd, path, sizeof path);
	for (int i = 0; i < SKEP_IMPORT_FORMATS; i++)
		if (!told || (int)format == i)
			try_format(path, (enum skep_import_format)i, bits, told && terse);
	close(fd);
	return 0;
}

#ifndef SKEP_LIBFUZZER
int main(int argc, char **argv)
{
	bool ok = damage_files(argv + 1, argc - 1, DAMAGES);
	printf("%u taken, %u refused\n", tried.taken, tried.refused);
	return ok && tried.taken > 0 && tried.refused > 0 ? 0 : 1;
}
#endif
