/* SPDX-License-Identifier: Apache-2.0
 *
 * import.c - see import.h. Decides which importer reads the files, which places are wanted, and under which name the
 * result is written.
 */
#include "topologies/import/importer.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "topologies/gpu/gpu.h"

const char *const skep_import_format_names[] = {
	"skyplane", "city-pairs", "rtt", "gcp-ping", "regions", "nccl", "osu", "iperf3", "simgrid", NULL};
const char *const skep_import_tier_names[] = {"premium", "standard", "any", NULL};

struct skep_import_options skep_import_defaults(void)
{
	return (struct skep_import_options){.gpu = "v100",
		.rules.constant = {NAN, NAN},
		.up_Bps = NAN,
		.down_Bps = NAN,
		.inside_Bps = NAN,
		.inside_s = NAN,
		.count = 1024};
}

/* ---- what importers use ------------------------------------------------------------------------------------------ */

void skep_import_note(struct skep_importer *importer, const char *format, ...)
{
	char *notes = importer->report->notes;
	size_t used = strlen(notes), room = sizeof importer->report->notes - used;
	va_list args;
	va_start(args, format);
	int n = vsnprintf(notes + used, room, format, args);
	va_end(args);
	if (n < 0 || (size_t)n + 2 > room)
		notes[used] = 0; /* no half notes */
	else
		strcpy(notes + used + n, "\n");
}

/* For the error about a name that is not there. */
static void remember(struct skep_importer *importer, const char *name, size_t length)
{
	char *known = importer->known;
	size_t used = strlen(known);
	for (const char *at = known; at < known + used; at += strcspn(at, ",") + 2)
		if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == '\0'))
			return;
	if (used + length + 3 < sizeof importer->known)
		snprintf(known + used, sizeof importer->known - used, "%s%.*s", used ? ", " : "", (int)length, name);
}

uint32_t skep_import_place(struct skep_importer *importer, struct skep_lines *lines, struct skep_cell cell)
{
	const char *wrong;
	uint32_t place = skep_survey_place(&importer->survey, cell.at, cell.length, &wrong);
	if (wrong)
		skep_lines_fail(lines, cell.at, "%s", wrong);
	else if (place == SKEP_NO_PLACE)
		remember(importer, cell.at, cell.length);
	return place;
}

void skep_import_add(
	struct skep_importer *importer, enum skep_survey_kind kind, uint32_t from, uint32_t to, double value)
{
	if (!importer->diag->set && !skep_survey_add(&importer->survey, kind, from, to, value))
		skep_diag_set(importer->diag, importer->options->file[0], 0, 0, NULL,
			"more measurements than %u, or not enough memory", SKEP_SURVEY_SAMPLES_MAX);
}

const char *skep_import_untagged(const char *line)
{
	const char *end = line[0] == '[' ? strstr(line, ">:") : NULL;
	return end && end - line < 64 ? end + 2 : line;
}

static bool name_end(
	struct skep_importer *importer, const char *operand, const char *name, size_t length, uint32_t *ret)
{
	const char *wrong;
	*ret = skep_survey_place(&importer->survey, name, length, &wrong);
	if (!wrong && *ret == SKEP_NO_PLACE)
		wrong = "is not among the places of --between";
	if (wrong)
		skep_diag_set(importer->diag, operand, 0, 0, NULL, "'%.*s': %s", (int)length, name, wrong);
	return !wrong;
}

const char *skep_import_operand(struct skep_importer *importer, const char *operand, uint32_t ret_place[2])
{
	const char *comma = strchr(operand, ','), *equals = strchr(operand, '=');
	struct stat st;
	ret_place[0] = ret_place[1] = SKEP_NO_PLACE;
	if (!comma || !equals || comma > equals || stat(operand, &st) == 0)
		return operand;
	if (name_end(importer, operand, operand, (size_t)(comma - operand), &ret_place[0]))
		name_end(importer, operand, comma + 1, (size_t)(equals - comma - 1), &ret_place[1]);
	return equals + 1;
}

/* ---- which places ------------------------------------------------------------------------------------------------ */

/* With --between the survey takes these places alone, in their order. */
static void close_survey(struct skep_importer *importer)
{
	const char *at = importer->options->between, *wrong = NULL;
	while (at && *at && !wrong) {
		size_t length = strcspn(at, ",");
		uint32_t before = importer->survey.places;
		uint32_t place = skep_survey_place(&importer->survey, at, length, &wrong);
		if (!wrong && place < before)
			wrong = "is named twice";
		if (wrong)
			skep_diag_set(importer->diag, "--between", 0, 0, NULL, "'%.*s': %s", (int)length, at, wrong);
		at += length + (at[length] == ',');
	}
	importer->survey.closed = importer->options->between != NULL;
	if (importer->survey.closed && importer->survey.places < 2)
		skep_diag_set(importer->diag, "--between", 0, 0, NULL, "expected at least two places, such as A,B,C");
}

/* A place of --between that no file knows is a slip of the pen. */
static void check_places(struct skep_importer *importer)
{
	const struct skep_survey *s = &importer->survey;
	for (uint32_t i = 0; i < s->places; i++)
		if (!s->place[i].seen)
			skep_diag_set(importer->diag, "--between", 0, 0, NULL, "no '%s' in these files%s%s",
				s->place[i].name, importer->known[0] ? "; there are also: " : "", importer->known);
}

static void apply_options(struct skep_importer *importer)
{
	const struct skep_import_options *o = importer->options;
	for (uint32_t i = 0; i < importer->survey.places; i++) {
		struct skep_survey_place *place = &importer->survey.place[i];
		place->machines = o->machines > 0 ? o->machines : place->machines;
		place->up_Bps = isnan(o->up_Bps) ? place->up_Bps : o->up_Bps;
		place->down_Bps = isnan(o->down_Bps) ? place->down_Bps : o->down_Bps;
	}
	if (importer->survey.places > 1)
		return;
	if (importer->survey.places == 1 && importer->survey.place[0].machines < 2)
		skep_diag_set(importer->diag, o->file[0], 0, 0, NULL, "one place with one machine is no network");
}

/* ---- where it goes ----------------------------------------------------------------------------------------------- */

/* NAME.yaml as it is; in a folder FORMAT.yaml. */
static bool find_output(const struct skep_import_options *o, char *ret, size_t size, struct skep_diag *reterr)
{
	struct stat st;
	size_t length = strlen(o->output);
	bool folder =
		length > 0 && (o->output[length - 1] == '/' || (stat(o->output, &st) == 0 && S_ISDIR(st.st_mode)));
	int n = folder ? snprintf(ret, size, "%s%s%s.yaml", o->output, o->output[length - 1] == '/' ? "" : "/",
				 skep_import_format_names[o->format])
	               : snprintf(ret, size, "%s", o->output);
	if (n < 0 || (size_t)n >= size || n < 6 || strcmp(ret + n - 5, ".yaml") != 0)
		skep_diag_set(
			reterr, "-o", 0, 0, NULL, "expected a folder, or the name of a topology that ends in .yaml");
	return !reterr->set;
}

static bool read_files(struct skep_importer *importer)
{
	static bool (*const reader[])(struct skep_importer *) = {
		[SKEP_IMPORT_SKYPLANE] = skep_import_skyplane,
		[SKEP_IMPORT_CITY_PAIRS] = skep_import_city_pairs,
		[SKEP_IMPORT_RTT] = skep_import_rtt,
		[SKEP_IMPORT_GCP_PING] = skep_import_gcp_ping,
		[SKEP_IMPORT_NCCL] = skep_import_nccl,
		[SKEP_IMPORT_OSU] = skep_import_osu,
		[SKEP_IMPORT_IPERF3] = skep_import_iperf3,
		[SKEP_IMPORT_SIMGRID] = skep_import_simgrid,
	};
	close_survey(importer);
	if (!importer->diag->set)
		reader[importer->options->format](importer);
	if (!importer->diag->set && importer->options->between)
		check_places(importer);
	if (!importer->diag->set)
		apply_options(importer);
	return !importer->diag->set;
}

bool skep_import(const struct skep_import_options *options, struct skep_import_report *ret, struct skep_diag *reterr)
{
	struct skep_importer importer = {.options = options, .report = ret, .diag = reterr};
	*ret = (struct skep_import_report){0};
	if (!find_output(options, ret->path, sizeof ret->path, reterr))
		return false;
	if (!skep_gpu_is_there(ret->path, options->gpu, reterr)) /* what is written must be read again */
		return false;
	bool ok;
	if (options->format == SKEP_IMPORT_REGIONS)
		ok = skep_import_write_peers(&importer, ret->path);
	else
		ok = read_files(&importer) &&
		     skep_survey_settle(&importer.survey, &options->rules, options->file[0], reterr) &&
		     skep_import_write(&importer, ret->path);
	skep_survey_finish(&importer.survey);
	return ok;
}
