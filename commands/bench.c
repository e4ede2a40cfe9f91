/* SPDX-License-Identifier: Apache-2.0
 *
 * bench.c - `skep bench`: which rows are run, and what is printed. The work is done in sim/bench/.
 */
#include "commands/bench.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "sim/bench/rows.h"

#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif
#ifdef __OPTIMIZE__
#define OPTIMISED ""
#else
#define OPTIMISED ", not optimised"
#endif

/* ---- the machine ---------------------------------------------------------------------------------------------------- */

struct machine {
	char processor[128];
	long cores;
	double load; /* processes that ran or waited to run, mean of the last minute */
};

static void read_processor(char *ret, size_t size)
{
	char line[256];
	FILE *file = fopen("/proc/cpuinfo", "r");
	snprintf(ret, size, "unknown processor");
	while (file && fgets(line, sizeof line, file)) {
		const char *value = strchr(line, ':');
		if (strncmp(line, "model name", 10) != 0 || !value)
			continue;
		snprintf(ret, size, "%.*s", (int)strcspn(value + 2, "\n"), value + 2);
		break;
	}
	if (file)
		fclose(file);
}

static struct machine this_machine(void)
{
	struct machine machine = {.cores = sysconf(_SC_NPROCESSORS_ONLN)};
	read_processor(machine.processor, sizeof machine.processor);
	if (getloadavg(&machine.load, 1) != 1)
		machine.load = NAN;
	return machine;
}

/* ---- which rows ----------------------------------------------------------------------------------------------------- */

static bool word_takes(const char *word, const struct skep_bench_row *row)
{
	if (strcasecmp(word, "all") == 0)
		return true;
	if (strcasecmp(word, "small") == 0)
		return row->length == SKEP_BENCH_SMALL;
	return skep_bench_named(row, word);
}

static bool wanted(const struct skep_bench_request *request, const struct skep_bench_row *row)
{
	for (uint32_t i = 0; i < request->words; i++)
		if (word_takes(request->word[i], row))
			return true;
	return request->words == 0 && row->length != SKEP_BENCH_LONG;
}

static void print_names(const struct skep_bench_row *row, uint32_t rows, FILE *err)
{
	for (uint32_t r = 0; r < rows; r++)
		if (r == 0 || strcmp(row[r].name, row[r - 1].name) != 0)
			fprintf(err, " %s", row[r].name);
}

bool skep_bench_understood(const struct skep_bench_request *request, FILE *err)
{
	struct skep_bench_row row[SKEP_BENCH_ROWS_MAX];
	uint32_t rows = skep_bench_rows(row);
	for (uint32_t i = 0; i < request->words; i++) {
		uint32_t r = 0;
		while (r < rows && !word_takes(request->word[i], &row[r]))
			r++;
		if (r < rows)
			continue;
		fprintf(err, "skep: there is no workload '%s'; write all, small, or a name or its beginning:",
			request->word[i]);
		print_names(row, rows, err);
		fputc('\n', err);
		return false;
	}
	return true;
}

/* ---- what is printed ------------------------------------------------------------------------------------------------ */

static double per_second(const struct skep_bench_figures *f)
{
	return (double)f->result.done / f->cpu_s;
}

static void print_head(const struct skep_bench_request *request, const struct machine *machine, FILE *out)
{
	fprintf(out, "skep %s, %s%s\n%s, one of %ld cores, load %.1f%s\n\n", request->version, COMPILER, OPTIMISED,
		machine->processor, machine->cores, machine->load,
		machine->load > 0.5 ? ": other programs run, trust cpu_s before wall_s" : "");
	fprintf(out, "%-12s %-54s %15s %9s %9s %9s %11s %9s\n", "workload", "parameters", "makespan_s", "error",
		"wall_s", "cpu_s", "done_per_s", "peak_MiB");
}

static void print_row(const struct skep_bench_row *row, const struct skep_bench_figures *f, FILE *out)
{
	char error[16] = "-";
	if (!isnan(f->error))
		snprintf(error, sizeof error, "%.1e", f->error);
	fprintf(out, "%-12s %-54s %15.9f %9s %9.4f %9.4f %11.0f %9.1f%s\n", row->name, row->parameters,
		f->result.makespan_s, error, f->wall_s, f->cpu_s, per_second(f), f->peak_MiB,
		f->right ? "" : "  WRONG");
	fflush(out);
}

static void add_number(cJSON *object, const char *name, double value)
{
	if (isfinite(value))
		cJSON_AddNumberToObject(object, name, value);
	else
		cJSON_AddNullToObject(object, name);
}

static cJSON *row_object(const struct skep_bench_row *row, const struct skep_bench_figures *f)
{
	cJSON *object = cJSON_CreateObject();
	cJSON_AddStringToObject(object, "workload", row->name);
	cJSON_AddStringToObject(object, "parameters", row->parameters);
	add_number(object, "makespan_s", f->result.makespan_s);
	add_number(object, "exact_s", row->makespan_s);
	add_number(object, "error", f->error);
	cJSON_AddBoolToObject(object, "right", f->right);
	add_number(object, "wall_s", f->wall_s);
	add_number(object, "cpu_s", f->cpu_s);
	add_number(object, "done", (double)f->result.done);
	add_number(object, "done_per_s", per_second(f));
	add_number(object, "peak_MiB", f->peak_MiB);
	return object;
}

static bool print_json(
	const struct skep_bench_request *request, const struct machine *machine, cJSON *rows, bool right, FILE *out)
{
	cJSON *object = cJSON_CreateObject();
	cJSON_AddStringToObject(object, "version", request->version);
	cJSON_AddStringToObject(object, "compiler", COMPILER OPTIMISED);
	cJSON_AddStringToObject(object, "processor", machine->processor);
	add_number(object, "cores", (double)machine->cores);
	add_number(object, "load", machine->load);
	cJSON_AddItemToObject(object, "rows", rows);
	cJSON_AddBoolToObject(object, "right", right);
	char *text = cJSON_PrintUnformatted(object);
	if (text)
		fprintf(out, "%s\n", text);
	cJSON_free(text);
	cJSON_Delete(object);
	return text;
}

bool skep_bench_command(const struct skep_bench_request *request, FILE *out, FILE *err)
{
	struct skep_bench_row row[SKEP_BENCH_ROWS_MAX];
	uint32_t rows = skep_bench_rows(row), wrong = 0;
	struct machine machine = this_machine();
	cJSON *list = request->json ? cJSON_CreateArray() : NULL;
	if (!request->json)
		print_head(request, &machine, out);
	for (uint32_t r = 0; r < rows; r++) {
		struct skep_bench_figures figures;
		if (!wanted(request, &row[r]))
			continue;
		if (!skep_bench_measure(&row[r], request->repeat, &figures)) {
			wrong++;
			continue;
		}
		wrong += !figures.right;
		if (request->json)
			cJSON_AddItemToArray(list, row_object(&row[r], &figures));
		else
			print_row(&row[r], &figures, out);
	}
	if (request->json && !print_json(request, &machine, list, wrong == 0, out))
		wrong++;
	if (wrong > 0)
		fprintf(err, "skep: %u of the rows went wrong: a makespan is not the exact one, or a run did not end\n",
			wrong);
	return wrong == 0;
}
