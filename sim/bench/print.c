/* SPDX-License-Identifier: Apache-2.0
 *
 * print.c - see print.h.
 */
#include "sim/bench/print.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"

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

struct skep_bench_machine skep_bench_this_machine(void)
{
	struct skep_bench_machine machine = {.cores = sysconf(_SC_NPROCESSORS_ONLN)};
	read_processor(machine.processor, sizeof machine.processor);
	if (getloadavg(&machine.load, 1) != 1)
		machine.load = NAN;
	return machine;
}

/* ---- what is printed ------------------------------------------------------------------------------------------------ */

static double per_second(const struct skep_bench_figures *f)
{
	return (double)f->result.done / f->cpu_s;
}

void skep_bench_print_head(const char *version, const struct skep_bench_machine *machine, FILE *out)
{
	fprintf(out, "skep %s, %s%s\n%s, one of %ld cores, load %.1f%s\n\n", version, COMPILER, OPTIMISED,
		machine->processor, machine->cores, machine->load,
		machine->load > 0.5 ? ": other programs run, trust cpu_s before wall_s" : "");
	fprintf(out, "%-12s %-54s %15s %9s %9s %9s %11s %9s\n", "workload", "parameters", "makespan_s", "error",
		"wall_s", "cpu_s", "done_per_s", "peak_MiB");
}

void skep_bench_print_row(const struct skep_bench_row *row, const struct skep_bench_figures *f, FILE *out)
{
	char error[16] = "-";
	if (!isnan(f->error))
		snprintf(error, sizeof error, "%.1e", f->error);
	fprintf(out, "%-12s %-54s %15.9f %9s %9.4f %9.4f %11.0f %9.1f%s\n", row->name, row->parameters,
		f->result.makespan_s, error, f->wall_s, f->cpu_s, per_second(f), f->peak_MiB,
		f->right ? "" : "  WRONG");
	fflush(out);
}

cJSON *skep_bench_row_json(const struct skep_bench_row *row, const struct skep_bench_figures *f)
{
	cJSON *object = cJSON_CreateObject();
	cJSON_AddStringToObject(object, "workload", row->name);
	cJSON_AddStringToObject(object, "parameters", row->parameters);
	skep_json_add_number(object, "makespan_s", f->result.makespan_s);
	skep_json_add_number(object, "exact_s", row->makespan_s);
	skep_json_add_number(object, "error", f->error);
	cJSON_AddBoolToObject(object, "right", f->right);
	skep_json_add_number(object, "wall_s", f->wall_s);
	skep_json_add_number(object, "cpu_s", f->cpu_s);
	skep_json_add_number(object, "done", (double)f->result.done);
	skep_json_add_number(object, "done_per_s", per_second(f));
	skep_json_add_number(object, "peak_MiB", f->peak_MiB);
	return object;
}

bool skep_bench_print_json(
	const char *version, const struct skep_bench_machine *machine, cJSON *rows, bool right, FILE *out)
{
	cJSON *object = cJSON_CreateObject();
	cJSON_AddStringToObject(object, "version", version);
	cJSON_AddStringToObject(object, "compiler", COMPILER OPTIMISED);
	cJSON_AddStringToObject(object, "processor", machine->processor);
	skep_json_add_number(object, "cores", (double)machine->cores);
	skep_json_add_number(object, "load", machine->load);
	cJSON_AddItemToObject(object, "rows", rows);
	cJSON_AddBoolToObject(object, "right", right);
	return skep_json_print(object, out);
}
