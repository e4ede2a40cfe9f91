/* SPDX-License-Identifier: Apache-2.0
 *
 * import_write.c - a settled survey as a topology file: in the matrix form with a matrix for each quantity that was measured, or,
 * where a place has several machines, in the sites form.
 *
 * What is kept true: under its name a file is complete. All files are written under names that nobody else has and renamed
 * when every one of them is whole, the topology last. No matrix gets a name under which the working folder has another file,
 * which would be read in its place.
 */
#include "topologies/importer.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "scenarios/reader/replace.h"
#include "topologies/regions.h"

#define SITES_MAX 256u /* their links are lines of a file of at most 4 MiB */
#define FILES_MAX 3

/* ---- files ------------------------------------------------------------------------------------------------------- */

struct output {
	FILE *file;
	char path[600], part[608];
};

struct outputs {
	const struct skep_import_options *options;
	struct skep_diag *diag;
	struct output output[FILES_MAX];
	uint32_t count;
};

/* Nothing that is imported, whose names may stand behind FROM,TO=; nor what no import has written. */
static bool may_write(struct outputs *o, const char *path)
{
	char error[sizeof o->diag->message];
	bool may = o->options->force || skep_replace_written(path, SKEP_IMPORT_HEAD, error, sizeof error);
	for (uint32_t i = 0; may && i < o->options->files; i++) {
		const char *file = o->options->file[i], *equals = strchr(file, '=');
		may = skep_replace_not_read(path, file, "an operand", error, sizeof error) &&
		      (!equals || skep_replace_not_read(path, equals + 1, "an operand", error, sizeof error));
	}
	if (!may) /* it begins with the path, as the diagnosis does */
		skep_diag_set(o->diag, path, 0, 0, NULL, "%s", error + strlen(path) + 2);
	return may;
}

static FILE *begin(struct outputs *o, const char *path)
{
	if (!may_write(o, path))
		return NULL;
	struct output *out = &o->output[o->count];
	mode_t mask = umask(0);
	umask(mask);
	snprintf(out->path, sizeof out->path, "%s", path);
	snprintf(out->part, sizeof out->part, "%s.XXXXXX", path);
	int fd = mkostemp(out->part, O_CLOEXEC);
	out->file = fd >= 0 && fchmod(fd, 0666 & ~mask) == 0 ? fdopen(fd, "w") : NULL;
	if (!out->file) {
		skep_diag_set(o->diag, path, 0, 0, NULL, "cannot be written: %s", strerror(errno));
		if (fd >= 0) {
			close(fd);
			unlink(out->part);
		}
		return NULL;
	}
	o->count++;
	return out->file;
}

/* All of them into place, or none that is new is left. */
static bool commit(struct outputs *o)
{
	for (uint32_t i = 0; i < o->count; i++) {
		struct output *out = &o->output[i];
		bool sound = ferror(out->file) == 0;
		if ((fclose(out->file) != 0 || !sound) && !o->diag->set)
			skep_diag_set(o->diag, out->path, 0, 0, NULL, "cannot be written: %s", strerror(errno));
	}
	for (uint32_t i = 0; i < o->count; i++) {
		struct output *out = &o->output[i];
		if (!o->diag->set && rename(out->part, out->path) != 0)
			skep_diag_set(o->diag, out->path, 0, 0, NULL, "cannot be written: %s", strerror(errno));
		if (o->diag->set)
			unlink(out->part);
	}
	return !o->diag->set;
}

/* Path of a file beside the topology: its name without .yaml, and `ending`. */
static void beside(const char *path, const char *ending, char *ret, size_t size)
{
	snprintf(ret, size, "%.*s%s", (int)(strlen(path) - 5), path, ending);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

/* A file that a topology names is looked for in the working folder first. */
static bool check_shadow(struct skep_importer *importer, const char *path)
{
	struct stat here, there;
	const char *name = base_name(path);
	if (name == path || stat(name, &here) != 0)
		return true;
	if (stat(path, &there) == 0 && there.st_ino == here.st_ino && there.st_dev == here.st_dev)
		return true;
	char folder[600];
	snprintf(folder, sizeof folder, "%.*s.", (int)(name - path), path);
	if (stat(folder, &there) == 0 && stat(".", &here) == 0 && there.st_ino == here.st_ino &&
		there.st_dev == here.st_dev)
		return true;
	skep_diag_set(importer->diag, path, 0, 0, NULL,
		"the working folder has another file called %.200s, which would be read in its place: choose another "
		"name",
		name);
	return false;
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

/* Within double quotes. */
static void put_quoted(FILE *file, const char *key, const char *text)
{
	fprintf(file, "%s: \"", key);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putc('\\', file);
		putc((uint8_t)*text < 0x20 ? ' ' : *text, file);
	}
	fputs("\"\n", file);
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
	put_quoted(file, "source", text);
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
	const char *base = base_name(path);
	char name[64];
	snprintf(name, sizeof name, "%.*s", (int)(strlen(base) - 5), base);
	fprintf(file, SKEP_IMPORT_HEAD "%s`.\n",
		skep_import_format_names[importer->options->format]);
	put_notes(file, importer->report->notes);
	put_quoted(file, "name", importer->options->name ? importer->options->name : name);
	return put_source(importer, file);
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

struct unit {
	const char *name;
	double per_base; /* of it in a byte per second, or in a second */
};

#define UNITS 5u
static const struct unit units[SKEP_SURVEY_KINDS][UNITS] = {
	[SKEP_BANDWIDTH_SAMPLE] = {{"Tbit/s", 8e-12}, {"Gbit/s", 8e-9}, {"Mbit/s", 8e-6}, {"kbit/s", 8e-3},
		{"bit/s", 8}},
	[SKEP_LATENCY_SAMPLE] = {{"s", 1}, {"ms", 1e3}, {"us", 1e6}, {"us", 1e6}, {"us", 1e6}},
};

/* What was measured is known to three digits at best, and gets four; what somebody wrote down stays as it is. */
static bool is_exact(const struct skep_importer *importer)
{
	return importer->options->format == SKEP_IMPORT_SIMGRID;
}

/* Without an exponent, and without zeros at its end. */
static void put_number(FILE *file, double value, bool exact)
{
	char text[64];
	int digits = exact ? 10 : 4, before = value > 0 ? (int)floor(log10(value)) + 1 : 1, decimals = digits - before;
	double step = pow(10, decimals < 0 ? -decimals : 0);
	snprintf(text, sizeof text, "%.*f",
		decimals < 0    ? 0
		: decimals > 30 ? 30
				: decimals,
		decimals < 0 ? round(value / step) * step : value);
	size_t length = strlen(text);
	while (strchr(text, '.') && (text[length - 1] == '0' || text[length - 1] == '.')) {
		bool point = text[--length] == '.';
		text[length] = '\0';
		if (point)
			break;
	}
	fputs(text, file);
}

/* The largest unit in which the value is at least 1. */
static const struct unit *unit_of(enum skep_survey_kind kind, double value)
{
	uint32_t i = 0;
	while (i + 1 < UNITS && value * units[kind][i].per_base < 0.99995)
		i++;
	return &units[kind][i];
}

static void put_quantity(FILE *file, enum skep_survey_kind kind, double value, bool exact)
{
	const struct unit *unit = unit_of(kind, value);
	put_number(file, value * unit->per_base, exact);
	fprintf(file, " %s", unit->name);
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
			put_quantity(file, SKEP_BANDWIDTH_SAMPLE, limit[way], is_exact(importer));
		}
	fputs("}", file);
}

/* ---- the matrix form --------------------------------------------------------------------------------------------- */

/* One for all values: the largest in which half of them are at least 1. */
static const struct unit *matrix_unit(const struct skep_survey *s, enum skep_survey_kind kind)
{
	for (uint32_t u = 0; u < UNITS; u++) {
		size_t large = 0, all = 0;
		for (size_t i = 0; i < (size_t)s->places * s->places; i++) {
			bool pair = i / s->places != i % s->places;
			all += pair;
			large += pair && s->cell[kind][i] * units[kind][u].per_base >= 0.99995;
		}
		if (2 * large >= all)
			return &units[kind][u];
	}
	return &units[kind][UNITS - 1];
}

static bool put_matrix(struct skep_importer *importer, FILE *file, enum skep_survey_kind kind, const struct unit *unit)
{
	const struct skep_survey *s = &importer->survey;
	fprintf(file, "# %s in %s; row = source, column = destination.\n",
		kind == SKEP_BANDWIDTH_SAMPLE ? "Bandwidth" : "One-way latency", unit->name);
	fprintf(file,
		SKEP_IMPORT_HEAD "%s`; source and licence: the topology that names this file.\n",
		skep_import_format_names[importer->options->format]);
	for (uint32_t i = 0; i < s->places; i++) {
		for (uint32_t j = 0; j < s->places; j++) {
			double value = i == j ? 0 : s->cell[kind][(size_t)i * s->places + j];
			fputs(j ? "," : "", file);
			put_number(file, value * unit->per_base, is_exact(importer));
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
	beside(path, kind == SKEP_BANDWIDTH_SAMPLE ? "-bandwidth.csv" : "-latency.csv", ret, size);
}

/* What nobody measured is one value and needs no file. */
static void put_pairs(struct skep_importer *importer, struct outputs *outputs, FILE *file, const char *path, int kind)
{
	const struct skep_survey *s = &importer->survey;
	char csv[600];
	const char *word = skep_survey_kind_names[kind];
	if (s->measured[kind] == 0) {
		double constant = importer->options->rules.constant[kind];
		fprintf(file, "  %s: ", word);
		put_quantity(file, (enum skep_survey_kind)kind, constant, true);
		putc('\n', file);
		return;
	}
	csv_path(path, kind, csv, sizeof csv);
	FILE *matrix = begin(outputs, csv);
	const struct unit *unit = matrix_unit(s, (enum skep_survey_kind)kind);
	if (!matrix || !put_matrix(importer, matrix, (enum skep_survey_kind)kind, unit))
		return;
	fprintf(file, "  %s: \"%s\"\n  %s_unit: %s\n", word, base_name(csv), word, unit->name);
}

static void put_matrix_form(struct skep_importer *importer, struct outputs *outputs, FILE *file, const char *path)
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
	put_quantity(file, SKEP_BANDWIDTH_SAMPLE, Bps, is_exact(importer));
	fputs(", latency: ", file);
	put_quantity(file, SKEP_LATENCY_SAMPLE, latency_s, is_exact(importer));
	fputs("}\n", file);
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
		put_quantity(file, SKEP_BANDWIDTH_SAMPLE, s->cell[SKEP_BANDWIDTH_SAMPLE][i], is_exact(importer));
		fputs(", latency: ", file);
		put_quantity(file, SKEP_LATENCY_SAMPLE, s->cell[SKEP_LATENCY_SAMPLE][i], is_exact(importer));
		fprintf(file, "%s}\n", importer->shared ? ", shared: true" : "");
	}
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

bool skep_import_write(struct skep_importer *importer, const char *path)
{
	const struct skep_survey *s = &importer->survey;
	struct outputs outputs = {.options = importer->options, .diag = importer->diag};
	struct output yaml;
	bool one_each = true;
	for (uint32_t i = 0; i < s->places; i++)
		one_each = one_each && s->place[i].machines == 1;
	for (int kind = 0; kind < SKEP_SURVEY_KINDS; kind++)
		if (s->several[kind] > 0)
			skep_import_note(importer, "%s of %zu pairs measured more than once: the median",
				skep_survey_kind_names[kind], s->several[kind]);
	for (int kind = 0; kind < SKEP_SURVEY_KINDS && one_each; kind++) {
		char csv[600];
		csv_path(path, kind, csv, sizeof csv);
		if (s->measured[kind] > 0 && !check_shadow(importer, csv))
			return false;
	}
	FILE *file = begin(&outputs, path);
	if (file && put_head(importer, file, path)) {
		if (one_each)
			put_matrix_form(importer, &outputs, file, path);
		else
			put_sites_form(importer, file);
	}
	if (outputs.count > 1) { /* the topology last */
		yaml = outputs.output[0];
		memmove(outputs.output, outputs.output + 1, (outputs.count - 1) * sizeof yaml);
		outputs.output[outputs.count - 1] = yaml;
	}
	return commit(&outputs);
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
	struct outputs outputs = {.options = importer->options, .diag = importer->diag};
	char csv[600], base[64];
	if (!skep_regions_read(o->file[0], &regions, importer->diag))
		return false;
	uint32_t directory = 0;
	while (o->directory && directory < regions.count && strcmp(regions.region[directory].name, o->directory) != 0)
		directory++;
	if (directory == regions.count)
		skep_diag_set(
			importer->diag, "--directory", 0, 0, NULL, "no region '%.100s' in this table", o->directory);
	beside(path, "-regions.csv", csv, sizeof csv);
	FILE *table = !importer->diag->set && check_shadow(importer, csv) ? begin(&outputs, csv) : NULL;
	FILE *file = table && copy_table(importer, table) ? begin(&outputs, path) : NULL;
	if (file) {
		snprintf(base, sizeof base, "%.*s", (int)(strlen(base_name(path)) - 5), base_name(path));
		fputs(SKEP_IMPORT_HEAD "regions`.\n", file);
		put_quoted(file, "name", o->name ? o->name : base);
		put_quoted(file, "source",
			o->source ? o->source
				  : "Published: the region table beside this file. Assumed: number and GPUs of the "
				    "peers.");
		fprintf(file, "peers:\n  count: %u\n  regions: \"%s\"\n  gpu: \"%s\"\n  seed: %llu\n", o->count,
			base_name(csv), o->gpu, (unsigned long long)o->seed);
		put_quoted(file, "directory", regions.region[directory].name);
	}
	skep_regions_finish(&regions);
	return commit(&outputs);
}
