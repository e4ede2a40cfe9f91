/* SPDX-License-Identifier: Apache-2.0
 *
 * fit.c - `skep fit`: a law of losses from runs of the database, printed and, with -o, written as a file that train.law.file
 * names. The file is written beside its name and renamed when it is whole.
 */
#include "commands/fit.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/fit.h"
#include "commands/output.h"
#include "version.h"

#define HEAD "# Fitted by skep "

static enum status complain(const char *message)
{
	fprintf(stderr, "skep: %s\n", message);
	return STATUS_BAD_INPUT;
}

/* Runs 3, 4 and 5 as "3..5". */
static void write_runs(const struct skep_loss_points *points, FILE *out)
{
	for (uint32_t i = 0; i < points->runs;) {
		uint32_t last = i;
		while (last + 1 < points->runs && points->run[last + 1] == points->run[last] + 1)
			last++;
		fprintf(out, " %" PRId64, points->run[i]);
		if (last > i)
			fprintf(out, "..%" PRId64, points->run[last]);
		i = last + 1;
	}
}

static bool write_law(const char *path, const char *database, const struct skep_law *law,
	const struct skep_loss_points *points, char *reterr, size_t size)
{
	char part[PATH_MAX];
	struct stat st;
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) { /* a device would be replaced */
		snprintf(reterr, size, "%s: is no regular file", path);
		return false;
	}
	bool fits = snprintf(part, sizeof part, "%s.part", path) < (int)sizeof part;
	FILE *file = fits ? fopen(part, "we") : NULL;
	if (file) {
		fprintf(file, HEAD "%s to run%s", SKEP_VERSION, points->runs == 1 ? "" : "s");
		write_runs(points, file);
		fprintf(file, " of %s, %" PRIu32 " points. The law is in scenarios/law.h of skep.\n", database,
			points->count);
		skep_law_write(law, file);
	}
	bool whole = file && !ferror(file);
	if (file)
		whole = fclose(file) == 0 && whole;
	if (whole && rename(part, path) == 0)
		return true;
	snprintf(reterr, size, "%s: cannot be written: %s", path, fits ? strerror(errno) : "the name is too long");
	if (file)
		unlink(part);
	return false;
}

static enum status fit(const struct arguments *arguments, const struct skep_loss_points *points)
{
	char error[1024];
	struct skep_law law;
	if (!skep_law_fit(points, &law, error, sizeof error))
		return complain(error);
	if (arguments->output && !write_law(arguments->output, arguments->db, &law, points, error, sizeof error))
		return complain(error);
	if (arguments->json)
		skep_fit_print_json(&law, points, stdout);
	else
		skep_fit_print(&law, points, stdout);
	if (arguments->output && !arguments->json && !arguments->quiet)
		fprintf(stderr, "wrote %s; use it as `train: {maths: law, law: {file: %s}}`\n", arguments->output,
			arguments->output);
	return STATUS_DONE;
}

enum status skep_fit_command(const struct arguments *arguments)
{
	int64_t run[RUNS_MAX];
	uint32_t runs;
	char error[1024];
	struct skep_loss_points points;
	if (!skep_arguments_run_ranges(arguments, 0, run, &runs))
		return STATUS_BAD_INPUT;
	if (arguments->output && !skep_output_ready(arguments, HEAD))
		return STATUS_BAD_INPUT;
	struct skep_store *store = skep_store_open(arguments->db, false, error, sizeof error);
	if (!store)
		return complain(error);
	bool read = skep_loss_points_read(store, run, runs, arguments->has_from ? arguments->from : SKEP_FIT_FROM_USUAL,
		&points, error, sizeof error);
	skep_store_close(store);
	if (!read)
		return complain(error);
	enum status status = fit(arguments, &points);
	skep_loss_points_finish(&points);
	return status;
}
