/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_jobs.c - any bytes as what `skep jobs` and `skep trace jobs` read: refused with a sound diagnosis, or jobs in order of
 * arrival that fit the cluster.
 *
 * The first byte of the input chooses: 'f' a file of jobs, 's' options on a sound one, 't' a trace of jobs, 'p' and 'o' tables of
 * Alibaba's clusters of 2020 and 2023. Options are some in each line, with tabs between them; what begins with a minus is for
 * --policy. Runs from the root of the tree, whose scenarios and topologies the files name.
 */
#include <math.h>

#include "scenarios/jobs/import.h"
#include "scenarios/jobs/jobs_file.h"
#include "tests/fuzz/damage.h"

enum { DAMAGES = 300, SETS_MAX = 8 };

static const char base_text[] =
	"name: base\n"
	"cluster: {topology: topologies/sixteen-p3.yaml}\n"
	"jobs: {trace: x, types: [scenarios/pipedream.yaml, {name: b, scenario: scenarios/pipedream.yaml}]}\n";

static const char drawn_text[] =
	"name: drawn\n"
	"cluster: {topology: topologies/sixteen-p3.yaml, host: {machines: 8, cpus: 24, memory: 500 GB}}\n"
	"jobs:\n"
	"  draw: {count: 20, interval: 10 min, law: fixed, duration: 3 h}\n"
	"  types: [{name: a, scenario: scenarios/pipedream.yaml}]\n";

static unsigned taken, refused;

static void check_needs(const struct skep_jobs_needs *n)
{
	double last = 0;
	for (uint32_t i = 0; i < n->cpus; i++) {
		double factor = skep_jobs_factor(n, n->cpu[i], 1e18);
		must(factor >= last && factor <= 1 + 1e-9);
		last = factor;
	}
	must(n->cpus == 0 || last >= 1 - 1e-9);
}

static void try_with(const char *path, const struct skep_jobs_options *options)
{
	struct skep_jobs_file file;
	struct skep_diag diag = {0};
	bool ok = skep_jobs_file_read(path, options, &file, &diag);
	must(ok == !diag.set);
	taken += ok;
	refused += !ok;
	if (!ok)
		check_diag(&diag);
	must(!ok || (file.jobs > 0 && file.types > 0 && file.policies > 0 && file.text));
	for (uint32_t i = 0; ok && i < file.jobs; i++) {
		must(i == 0 || file.job[i - 1].arrival_ns <= file.job[i].arrival_ns);
		must(file.job[i].type < file.types && file.job[i].machines <= file.topology.machines);
		must(file.job[i].duration_s >= 0 && isfinite(file.job[i].duration_s));
	}
	for (uint32_t i = 0; ok && i < file.types; i++)
		check_needs(&file.type[i].needs);
	if (ok)
		skep_jobs_file_finish(&file);
}

static void try_file(const char *path, const char *set)
{
	try_with(path, &(struct skep_jobs_options){.set = &set, .sets = set ? 1 : 0});
}

/* `text` is of the caller, and cut into its words. */
static void try_sets(char *text)
{
	char path[64], *rest = text, *line;
	int fd;
	make_file(drawn_text, sizeof drawn_text - 1, &fd, path, sizeof path);
	while ((line = strsep(&rest, "\n")) != NULL) {
		const char *set[SETS_MAX];
		struct skep_jobs_options options = {.set = set};
		for (char *word; options.sets < SETS_MAX && (word = strsep(&line, "\t")) != NULL;)
			if (word[0] == '-')
				options.policies = word + 1;
			else if (word[0] != '\0')
				set[options.sets++] = word;
		try_with(path, &options);
	}
	close(fd);
}

static void try_trace(const char *trace)
{
	char path[64], set[128];
	int fd;
	make_file(base_text, sizeof base_text - 1, &fd, path, sizeof path);
	snprintf(set, sizeof set, "jobs.trace=%s", trace);
	try_file(path, set);
	close(fd);
}

static void try_table(const char *path, enum skep_jobs_format format)
{
	char to[] = "/tmp/fuzz-jobs-XXXXXX";
	int fd = mkstemp(to);
	struct skep_diag diag = {0};
	struct skep_jobs_import_report report;
	const struct skep_jobs_import_options options = {.format = format, .end_s = 1e9, .source = "", .licence = ""};
	must(fd >= 0);
	bool ok = skep_jobs_import(path, to, &options, &report, &diag);
	must(ok == !diag.set && (!ok || report.jobs > 0));
	taken += ok;
	refused += !ok;
	if (ok)
		try_trace(to); /* what is written is read, unless its jobs are larger than the cluster */
	else
		check_diag(&diag);
	close(fd);
	unlink(to);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[64];
	int fd;
	if (size < 1)
		return 0;
	if (data[0] == 's') {
		char *text = strndup((const char *)data + 1, size - 1);
		must(text != NULL);
		try_sets(text);
		free(text);
		return 0;
	}
	make_file(data + 1, size - 1, &fd, path, sizeof path);
	if (data[0] == 'f')
		try_file(path, NULL);
	else if (data[0] == 't')
		try_trace(path);
	else
		try_table(path, data[0] == 'p' ? SKEP_JOBS_PAI : data[0] == 'o' ? SKEP_JOBS_OPENB : SKEP_JOBS_DETECT);
	close(fd);
	return 0;
}

#ifndef SKEP_LIBFUZZER
int main(int argc, char **argv)
{
	bool ok = argc > 1;
	uint64_t random = 1;
	for (int i = 1; i < argc; i++)
		ok = damage_file(argv[i], DAMAGES, &random) && ok;
	printf("%d files, %u inputs taken and %u refused\n", argc - 1, taken, refused);
	return ok && taken > 0 && refused > 0 ? 0 : 1;
}
#endif
