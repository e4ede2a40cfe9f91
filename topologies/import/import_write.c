/* SPDX-License-Identifier: Apache-2.0
 *
 * import_write.c - writes a settled survey as a topology file: in the matrix form, with a matrix for each quantity that
 * was measured, or, where a place has several machines, in the sites form.
 *
 * What is kept true: a file that has its final name is complete. All files are written under temporary names that no
 * other process uses, and renamed when every one of them is whole, the topology last.
 */
#include "topologies/import/importer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/replace.h"
#include "topologies/import/writer.h"
#include "topologies/read/regions.h"

#define SITES_MAX 256u /* their links are lines of a file of at most 4 MiB */

/* Nothing that is imported, whose names may stand behind FROM,TO=; nor what no import has written. */
static bool may_write(const struct skep_importer *importer, const char *path)
{
	const struct skep_import_options *options = importer->options;
	struct skep_diag error = {0};
	bool may = options->force || skep_replace_written(path, SKEP_IMPORT_HEAD, &error);
	for (uint32_t i = 0; may && i < options->files; i++) {
		const char *file = options->file[i], *equals = strchr(file, '=');
		may = skep_replace_not_read(path, file, "an operand", &error) &&
		      (!equals || skep_replace_not_read(path, equals + 1, "an operand", &error));
	}
	if (!may) /* it begins with the path, as the diagnosis does */
		skep_diag_set(importer->diag, path, 0, 0, NULL, "%s", error.message + strlen(path) + 2);
	return may;
}

static FILE *begin(const struct skep_importer *importer, struct skep_outputs *outputs, const char *path)
{
	return may_write(importer, path) ? skep_outputs_begin(outputs, path) : NULL;
}

/* ---- what both forms begin with ---------------------------------------------------------------------------------- */

static void put_notes(FILE *file, const char *notes)
{
	while (*notes) {
		size_t length = strcspn(notes, "\n");
		fprintf(file, "# %.*s\n", (int)length, notes);
		notes += length + (notes[length] == '\n');
	}
}

static void fill_text(const struct skep_survey *s, enum skep_survey_kind kind, char *ret, size_t size)
{
	for (uint32_t rule = 0; rule < SKEP_FILLS; rule++)
		if (s->filled[kind][rule] > 0 && rule != SKEP_FILL_CONSTANT)
			snprintf(ret + strlen(ret), size - strlen(ret), " %s of %zu pairs by %s,",
				skep_survey_kind_names[kind], s->filled[kind][rule], skep_fill_names[rule]);
}

static void constant_text(const struct skep_survey *s, enum skep_survey_kind kind, char *ret, size_t size)
{
	if (s->filled[kind][SKEP_FILL_CONSTANT] > 0)
		snprintf(ret + strlen(ret), size - strlen(ret), ", %s of %s", skep_survey_kind_names[kind],
			s->measured[kind] == 0 ? "all pairs" : "some pairs");
}

/* Measured: what. Filled: how many by which rule. Assumed: the rest. */
static bool put_source(struct skep_importer *importer, FILE *file)
{
	const struct skep_survey *s = &importer->survey;
	const char *given = importer->options->source;
	char filled[128] = "", assumed[96] = "GPUs", text[512];
	for (int kind = 0; kind < SKEP_SURVEY_KINDS; kind++) {
		fill_text(s, (enum skep_survey_kind)kind, filled, sizeof filled);
		constant_text(s, (enum skep_survey_kind)kind, assumed, sizeof assumed);
	}
	if (filled[0])
		filled[strlen(filled) - 1] = '.';
	snprintf(text, sizeof text, "%.300s%s%s%s Assumed: %s.", given ? given : importer->measured,
		(given ? given : importer->measured)[0] ? "." : "", filled[0] ? " Filled:" : "", filled, assumed);
	if (strlen(text) > 255)
		skep_diag_set(importer->diag, "--source", 0, 0, NULL,
			"with what was filled and assumed it would have %zu bytes; at most 255 fit", strlen(text));
	skep_put_quoted(file, "source", text);
	return !importer->diag->set;
}

static uint32_t directory_place(struct skep_importer *importer)
{
	const struct skep_survey *s = &importer->survey;
	const char *name = importer->options->directory;
	for (uint32_t i = 0; name && i < s->places; i++)
		if (strcmp(s->place[i].name, name) == 0)
			return i;
	if (name)
		skep_diag_set(importer->diag, "--directory", 0, 0, NULL, "no place '%.100s' in these files", name);
	return 0;
}

static bool put_head(struct skep_importer *importer, FILE *file, const char *path)
{
	const char *base = skep_path_base(path);
	char name[64];
	snprintf(name, sizeof name, "%.*s", (int)(strlen(base) - 5), base);
	fprintf(file, SKEP_IMPORT_HEAD "%s`.\n", skep_import_format_names[importer->options->format]);
	put_notes(file, importer->report->notes);
	skep_put_quoted(file, "name", importer->options->name ? importer->options->name : name);
	return put_source(importer, file);
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

/* Measured values are written with four digits; values that a SimGrid platform states are written exactly. */
static bool is_exact(const struct skep_importer *importer)
{
	return importer->options->format == SKEP_IMPORT_SIMGRID;
}

/* gpu and what one machine can send and receive. */
static void put_machine(
	struct skep_importer *importer, FILE *file, const struct skep_survey_place *place, uint32_t count)
{
	fprintf(file, "{count: %u, gpu: \"%s\"", count, importer->options->gpu);
	const double limit[] = {place->up_Bps, place->down_Bps};
	for (int way = 0; way < 2; way++)
		if (isfinite(limit[way])) {
			fprintf(file, ", %s: ", way == 0 ? "up" : "down");
			skep_put_quantity(file, SKEP_BANDWIDTH, limit[way], is_exact(importer));
		}
	fputs("}", file);
}

/* ---- the matrix form --------------------------------------------------------------------------------------------- */

static enum skep_dimension dimension_of(int kind)
{
	return kind == SKEP_BANDWIDTH_SAMPLE ? SKEP_BANDWIDTH : SKEP_TIME;
}

static bool put_matrix(
	struct skep_importer *importer, FILE *file, enum skep_survey_kind kind, const struct skep_unit *unit)
{
	const struct skep_survey *s = &importer->survey;
	fprintf(file, "# %s in %s; row = source, column = destination.\n",
		kind == SKEP_BANDWIDTH_SAMPLE ? "Bandwidth" : "One-way latency", unit->name);
	fprintf(file, SKEP_IMPORT_HEAD "%s`; source and licence: the topology that names this file.\n",
		skep_import_format_names[importer->options->format]);
	for (uint32_t i = 0; i < s->places; i++) {
		for (uint32_t j = 0; j < s->places; j++) {
			double value = i == j ? 0 : s->cell[kind][(size_t)i * s->places + j];
			fputs(j ? "," : "", file);
			skep_put_number(file, value * unit->per_base, is_exact(importer));
		}
		putc('\n', file);
	}
	return !importer->diag->set;
}

/* Machines one after the other; equal neighbours are one group. */
static void put_machines(struct skep_importer *importer, FILE *file)
{
	const struct skep_survey *s = &importer->survey;
	fputs("machines:\n", file);
	for (uint32_t i = 0, end; i < s->places; i = end) {
		const struct skep_survey_place *place = &s->place[i];
		for (end = i + 1; end < s->places && s->place[end].up_Bps == place->up_Bps &&
				  s->place[end].down_Bps == place->down_Bps;
			end++)
			;
		fputs("  - ", file);
		put_machine(importer, file, place, end - i);
		putc('\n', file);
	}
}

static void csv_path(const char *path, int kind, char *ret, size_t size)
{
	skep_path_beside(path, kind == SKEP_BANDWIDTH_SAMPLE ? "-bandwidth.csv" : "-latency.csv", ret, size);
}

/* A quantity that was not measured has one value for all pairs and needs no file. */
static void put_pairs(
	struct skep_importer *importer, struct skep_outputs *outputs, FILE *file, const char *path, int kind)
{
	const struct skep_survey *s = &importer->survey;
	char csv[600];
	const char *word = skep_survey_kind_names[kind];
	if (s->measured[kind] == 0) {
		double constant = importer->options->rules.constant[kind];
		fprintf(file, "  %s: ", word);
		skep_put_quantity(file, dimension_of(kind), constant, true);
		putc('\n', file);
		return;
	}
	csv_path(path, kind, csv, sizeof csv);
	FILE *matrix = begin(importer, outputs, csv);
	const struct skep_unit *unit = skep_unit_of_matrix(dimension_of(kind), s->cell[kind], s->places);
	if (!matrix || !put_matrix(importer, matrix, (enum skep_survey_kind)kind, unit))
		return;
	fprintf(file, "  %s: \"%s\"\n  %s_unit: %s\n", word, skep_path_base(csv), word, unit->name);
}

static void put_matrix_form(struct skep_importer *importer, struct skep_outputs *outputs, FILE *file, const char *path)
{
	const struct skep_survey *s = &importer->survey;
	fputs("matrix:\n", file);
	for (int kind = 0; kind < SKEP_SURVEY_KINDS && !importer->diag->set; kind++)
		put_pairs(importer, outputs, file, path, kind);
	fputs("  names:\n", file);
	for (uint32_t i = 0; i < s->places; i++)
		fprintf(file, "    - \"%s\"\n", s->place[i].name);
	put_machines(importer, file);
	fprintf(file, "directory: %u\n", directory_place(importer));
}

/* ---- the sites form ---------------------------------------------------------------------------------------------- */

static void put_site(struct skep_importer *importer, FILE *file, uint32_t i)
{
	const struct skep_survey *s = &importer->survey;
	const struct skep_import_options *o = importer->options;
	const struct skep_survey_place *place = &s->place[i];
	size_t at = (size_t)i * s->places + i;
	double Bps = s->cell[SKEP_BANDWIDTH_SAMPLE][at], latency_s = s->cell[SKEP_LATENCY_SAMPLE][at];
	Bps = isnan(Bps) ? o->inside_Bps : Bps;
	latency_s = isnan(latency_s) ? o->inside_s : latency_s;
	if (isnan(Bps) || isnan(latency_s))
		skep_diag_set(importer->diag, o->file[0], 0, 0, NULL,
			"no %s inside %s, which has %u machines: give it, such as --inside '10 Gbit/s, 0.1 ms'",
			isnan(Bps) ? "bandwidth" : "latency", place->name, place->machines);
	fprintf(file, "  \"%s\":\n    machines: [", place->name);
	put_machine(importer, file, place, place->machines);
	fputs("]\n    inside: {bandwidth: ", file);
	skep_put_quantity(file, SKEP_BANDWIDTH, Bps, is_exact(importer));
	fputs(", latency: ", file);
	skep_put_quantity(file, SKEP_TIME, latency_s, is_exact(importer));
	fputs(place->shared ? ", shared: true}\n" : "}\n", file);
}

static void put_sites_form(struct skep_importer *importer, FILE *file)
{
	const struct skep_survey *s = &importer->survey;
	if (s->places > SITES_MAX)
		skep_diag_set(importer->diag, importer->options->file[0], 0, 0, NULL,
			"%u places with several machines each: at most %u; leave some out with --between", s->places,
			SITES_MAX);
	if (importer->diag->set)
		return;
	fprintf(file, "directory: \"%s\"\nsites:\n", s->place[directory_place(importer)].name);
	for (uint32_t i = 0; i < s->places && !importer->diag->set; i++)
		put_site(importer, file, i);
	if (s->places < 2)
		return;
	fputs("links:\n", file);
	for (size_t i = 0; i < (size_t)s->places * s->places; i++) {
		uint32_t from = (uint32_t)(i / s->places), to = (uint32_t)(i % s->places);
		if (from == to)
			continue;
		fprintf(file, "  - {from: \"%s\", to: \"%s\", bandwidth: ", s->place[from].name, s->place[to].name);
		skep_put_quantity(file, SKEP_BANDWIDTH, s->cell[SKEP_BANDWIDTH_SAMPLE][i], is_exact(importer));
		fputs(", latency: ", file);
		skep_put_quantity(file, SKEP_TIME, s->cell[SKEP_LATENCY_SAMPLE][i], is_exact(importer));
		bool shared = importer->shared || (s->place[from].cluster && s->place[to].cluster);
		fprintf(file, "%s}\n", shared ? ", shared: true" : "");
	}
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

bool skep_import_write(struct skep_importer *importer, const char *path)
{
	const struct skep_survey *s = &importer->survey;
	struct skep_outputs outputs = {.diag = importer->diag};
	bool one_each = true;
	for (uint32_t i = 0; i < s->places; i++)
		one_each = one_each && s->place[i].machines == 1;
	for (int kind = 0; kind < SKEP_SURVEY_KINDS; kind++)
		if (s->several[kind] > 0)
			skep_import_note(importer, "%s of %zu pairs measured more than once: the median",
				skep_survey_kind_names[kind], s->several[kind]);
	FILE *file = begin(importer, &outputs, path);
	if (file && put_head(importer, file, path)) {
		if (one_each)
			put_matrix_form(importer, &outputs, file, path);
		else
			put_sites_form(importer, file);
	}
	skep_outputs_put_last(&outputs, 0); /* the topology */
	return skep_outputs_commit(&outputs);
}

/* ---- peers of a region table ------------------------------------------------------------------------------------- */

static bool copy_table(struct skep_importer *importer, FILE *out)
{
	char *text;
	size_t size;
	if (!skep_file_read(importer->options->file[0], SKEP_FILE_BYTES_MAX, &text, &size, importer->diag))
		return false;
	fputs(SKEP_IMPORT_HEAD "regions`; source and licence: the topology that names this file.\n", out);
	fwrite(text, 1, size, out);
	free(text);
	return true;
}

bool skep_import_write_peers(struct skep_importer *importer, const char *path)
{
	const struct skep_import_options *o = importer->options;
	struct skep_regions regions;
	struct skep_outputs outputs = {.diag = importer->diag};
	char csv[600], base[64];
	if (!skep_regions_read(o->file[0], &regions, importer->diag))
		return false;
	uint32_t directory = 0;
	while (o->directory && directory < regions.count && strcmp(regions.region[directory].name, o->directory) != 0)
		directory++;
	if (directory == regions.count)
		skep_diag_set(
			importer->diag, "--directory", 0, 0, NULL, "no region '%.100s' in this table", o->directory);
	skep_path_beside(path, "-regions.csv", csv, sizeof csv);
	FILE *table = !importer->diag->set ? begin(importer, &outputs, csv) : NULL;
	FILE *file = table && copy_table(importer, table) ? begin(importer, &outputs, path) : NULL;
	if (file) {
		snprintf(base, sizeof base, "%.*s", (int)(strlen(skep_path_base(path)) - 5), skep_path_base(path));
		fputs(SKEP_IMPORT_HEAD "regions`.\n", file);
		skep_put_quoted(file, "name", o->name ? o->name : base);
		skep_put_quoted(file, "source",
			o->source ? o->source
				  : "Published: the region table beside this file. Assumed: number and GPUs of the "
				    "peers.");
		fprintf(file, "peers:\n  count: %u\n  regions: \"%s\"\n  gpu: \"%s\"\n  seed: %llu\n", o->count,
			skep_path_base(csv), o->gpu, (unsigned long long)o->seed);
		skep_put_quoted(file, "directory", regions.region[directory].name);
	}
	skep_regions_finish(&regions);
	return skep_outputs_commit(&outputs);
}
