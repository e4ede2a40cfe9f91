/* SPDX-License-Identifier: Apache-2.0
 *
 * import_rtt.c - square matrices of round trips, blanks or commas between the numbers, row = source. Several files are several
 * measurements of the same places, of which the median is taken.
 *
 * What is kept true: off the diagonal a zero is a hole (nothing is that fast), and so is `nan`. The unit must be given, or the
 * median of all entries is 5 or more: half the world would be farther than 5 s in any other unit than ms. Smaller numbers may
 * be a local network in ms or a planet in s, so the file alone does not tell.
 */
#include "topologies/import/importer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/csv.h"

#define LINE_BYTES_MAX (1u << 20)
#define MEDIAN_OF_MS 5.0

static const char blanks[] = " \t,";

static uint32_t count_cells(const char *text)
{
	uint32_t count = 0;
	for (text += strspn(text, blanks); *text; text += strspn(text, blanks)) {
		text += strcspn(text, blanks);
		count++;
	}
	return count;
}

/* of[i]: the place of row or column i, SKEP_NO_PLACE where it is not wanted. */
static void read_row(struct skep_importer *importer, struct skep_lines *l, const uint32_t *of, uint32_t row, uint32_t n)
{
	const char *at = l->text + strspn(l->text, blanks);
	for (uint32_t column = 0; *at && !importer->diag->set; column++) {
		struct skep_cell cell = {at, strcspn(at, blanks)};
		double value = 0;
		if (column >= n) {
			skep_lines_fail(l, at, "a cell too many: the first row has %u", n);
			return;
		}
		if (!skep_cell_is(cell, "nan") && !skep_cell_number(l, cell, "a round trip", 0, 1e9, &value))
			return;
		if (row != column && value > 0 && of[row] != SKEP_NO_PLACE && of[column] != SKEP_NO_PLACE)
			skep_import_add(importer, SKEP_LATENCY_SAMPLE, of[row], of[column], value);
		at += cell.length;
		at += strspn(at, blanks);
		if (!*at && column + 1 < n)
			skep_lines_fail(
				l, l->text + l->length, "this row has %u cells, the first one %u", column + 1, n);
	}
}

/* Places are called by their number. */
static uint32_t *find_places(struct skep_importer *importer, struct skep_lines *l, uint32_t n)
{
	char name[16];
	const char *wrong = NULL;
	uint32_t *of = malloc((n + 1) * sizeof *of);
	if (n > SKEP_SURVEY_PLACES_MAX)
		skep_lines_fail(
			l, l->text, "a row of %u numbers: at most %u places are taken", n, SKEP_SURVEY_PLACES_MAX);
	for (uint32_t i = 0; of && i < n && !wrong && !importer->diag->set; i++) {
		int length = snprintf(name, sizeof name, "%u", i);
		of[i] = skep_survey_place(&importer->survey, name, (size_t)length, &wrong);
	}
	if (!of || wrong)
		skep_lines_fail(l, l->text, "%s", wrong ? wrong : "not enough memory");
	return of;
}

static void read_matrix(struct skep_importer *importer, struct skep_lines *l, uint32_t *n)
{
	uint32_t row = 0, *of = NULL;
	for (; skep_lines_next_row(l); row++) {
		if (!of) {
			uint32_t first = *n, count = *n = count_cells(l->text);
			if (first > 0 && count != first)
				skep_lines_fail(
					l, l->text, "a matrix of %u columns: the file before has %u", count, first);
			of = find_places(importer, l, count);
		}
		if (of && row >= *n)
			skep_lines_fail(l, l->text, "a row too many: the matrix has %u columns", *n);
		if (importer->diag->set)
			break;
		read_row(importer, l, of, row, *n);
	}
	free(of);
	if (row < *n || row == 0)
		skep_diag_set(importer->diag, l->path, 0, 0, NULL, "%s: %u rows of %u",
			row ? "is not square" : "is empty", row, *n);
}

static int by_value(const void *left, const void *right)
{
	const struct skep_survey_sample *a = left, *b = right;
	return (a->value > b->value) - (a->value < b->value);
}

/* Seconds of a unit of the files; 0: an error. */
static double find_unit(struct skep_importer *importer)
{
	struct skep_survey *s = &importer->survey;
	if (importer->options->unit_s > 0)
		return importer->options->unit_s;
	if (s->samples > 0) /* else there is no array */
		qsort(s->sample, s->samples, sizeof *s->sample, by_value);
	double median = s->samples > 0 ? s->sample[s->samples / 2].value : 0;
	if (median >= MEDIAN_OF_MS) {
		skep_import_note(
			importer, "round trips taken as ms: their median is %.4g, too long for seconds", median);
		return 1e-3;
	}
	skep_diag_set(importer->diag, importer->options->file[0], 0, 0, NULL,
		"the unit cannot be told: the median round trip would be %.4g s or %.4g ms; give --unit s or --unit ms",
		median, median);
	return 0;
}

static void scale(struct skep_importer *importer, double unit_s)
{
	struct skep_survey *s = &importer->survey;
	double part = importer->options->one_way ? 1 : 0.5;
	for (size_t i = 0; i < s->samples; i++) {
		s->sample[i].value *= unit_s * part;
		if (s->sample[i].value > SKEP_IMPORT_S_MAX)
			skep_diag_set(importer->diag, importer->options->file[0], 0, 0, NULL,
				"%g s from %s to %s: at most an hour is taken; is the unit right?", s->sample[i].value,
				s->place[s->sample[i].from].name, s->place[s->sample[i].to].name);
	}
}

bool skep_import_rtt(struct skep_importer *importer)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < importer->options->files && !importer->diag->set; i++) {
		struct skep_lines lines;
		if (!skep_lines_open(&lines, importer->options->file[i], LINE_BYTES_MAX, importer->diag))
			return false;
		read_matrix(importer, &lines, &n);
		skep_lines_close(&lines);
	}
	if (importer->diag->set)
		return false;
	double unit_s = find_unit(importer);
	scale(importer, unit_s);
	snprintf(importer->measured, sizeof importer->measured, "Measured: a matrix in %s; latency %s",
		unit_s < 1 ? "ms" : "s", importer->options->one_way ? "as given" : "half of the round trip");
	return !importer->diag->set;
}
