/* SPDX-License-Identifier: Apache-2.0
 *
 * print.c - see print.h. Text and page show the same columns and notes.
 */
#include "sweeping/published/print.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/layout.h"
#include "sweeping/published/published.h"

#define CELL 160u
#define LINE 110 /* columns of a note */

enum column { ROW, PUBLISHED, OURS, RATIO, BAR, SOURCE, COLUMNS };
static const char *const heads[COLUMNS] = {"row", "published", "ours", "ratio", "bar", "source"};

/* ---- cells ------------------------------------------------------------------------------------------------------- */

/* Three digits, or all that a published figure has. */
static const char *number(double value, const char *format, char ret[CELL])
{
	if (isnan(value))
		return "-";
	snprintf(ret, CELL, format, value);
	return ret;
}

static const char *published(const struct skep_published_row *row, char ret[CELL])
{
	if (isnan(row->low))
		return "not found";
	if (row->low == row->high)
		return number(row->low, "%.6g", ret);
	snprintf(ret, CELL, "%.6g to %.6g", row->low, row->high);
	return ret;
}

static double three_digits(double value)
{
	char text[32];
	double rounded = value;
	snprintf(text, sizeof text, "%.3g", value);
	sscanf(text, "%lf", &rounded);
	return rounded;
}

static const char *ours(const struct skep_published_experiment *e, const struct skep_published_row *row, char ret[CELL])
{
	if (isinf(row->ours))
		snprintf(ret, CELL, "over %.6g", e->to);
	else if (e->run[row->run].failure[0] != '\0')
		return "failed";
	else
		return number(three_digits(row->ours), "%.6g", ret);
	return ret;
}

static const char *bar(const struct skep_published_experiment *e, const struct skep_published_row *row, char ret[CELL])
{
	if (row->fitted)
		return "fitted";
	if (!skep_published_judged(row))
		return "-";
	snprintf(ret, CELL, "%s %g %%", skep_published_within(e, row) ? "within" : "outside", 100 * e->bar);
	return ret;
}

/* From 1, in the order of the rows; rows with the same note share its number. 0: the row has none. */
static uint32_t note_of(const struct skep_published_experiment *e, uint32_t row)
{
	uint32_t notes = 0;
	for (uint32_t i = 0; i <= row && e->row[row].note[0] != '\0'; i++) {
		uint32_t first = 0;
		while (strcmp(e->row[first].note, e->row[i].note) != 0)
			first++;
		notes += first == i && e->row[i].note[0] != '\0';
		if (strcmp(e->row[i].note, e->row[row].note) == 0)
			return notes;
	}
	return 0;
}

/* Is it the first row with its note? */
static bool opens_note(const struct skep_published_experiment *e, uint32_t row)
{
	for (uint32_t i = 0; i < row; i++)
		if (strcmp(e->row[i].note, e->row[row].note) == 0)
			return false;
	return e->row[row].note[0] != '\0';
}

static void fill(const struct skep_published_experiment *e, uint32_t number_of_row, char cell[COLUMNS][CELL])
{
	char text[CELL];
	const struct skep_published_row *row = &e->row[number_of_row];
	double ratio = isinf(row->ours) ? NAN : skep_published_ratio(row);
	uint32_t note = note_of(e, number_of_row);
	if (note > 0)
		snprintf(cell[ROW], CELL, "%s [%u]", row->name, note);
	else
		snprintf(cell[ROW], CELL, "%s", row->name);
	snprintf(cell[PUBLISHED], CELL, "%s", published(row, text));
	snprintf(cell[OURS], CELL, "%s", ours(e, row, text));
	snprintf(cell[RATIO], CELL, "%s", number(ratio, "%.2f", text));
	snprintf(cell[BAR], CELL, "%s", bar(e, row, text));
	snprintf(cell[SOURCE], CELL, "%s", row->place[0] != '\0' ? row->place : e->place);
}

struct count {
	uint32_t rows, within, outside, fitted, unknown;
};

static struct count count_rows(const struct skep_published_experiment *experiment, uint32_t count)
{
	struct count c = {0};
	for (uint32_t i = 0; i < count; i++)
		for (uint32_t k = 0; experiment[i].wanted && k < experiment[i].rows; k++) {
			const struct skep_published_row *row = &experiment[i].row[k];
			bool judged = skep_published_judged(row), within = skep_published_within(&experiment[i], row);
			c.rows++;
			c.fitted += row->fitted;
			c.unknown += !row->fitted && !judged;
			c.within += judged && within;
			c.outside += judged && !within;
		}
	return c;
}

static void print_count(const struct skep_published_experiment *experiment, uint32_t count, FILE *out)
{
	struct count c = count_rows(experiment, count);
	fprintf(out, "%u rows: %u within their bar, %u outside, %u fitted, %u with nothing to compare\n", c.rows,
		c.within, c.outside, c.fitted, c.unknown);
}

/* ---- for a person ------------------------------------------------------------------------------------------------ */

static void print_wrapped(const char *head, const char *text, FILE *out)
{
	int indent = fprintf(out, "%s", head);
	skep_wrap(text, indent, indent, LINE, out);
}

static void print_failures(const struct skep_published_experiment *e, FILE *out)
{
	for (uint32_t i = 0; i < e->runs; i++)
		if (e->run[i].failure[0] != '\0')
			fprintf(out, "  failed: %s\n", e->run[i].failure);
}

static void print_experiment(const struct skep_published_experiment *e, FILE *out)
{
	struct skep_layout layout;
	char cell[COLUMNS][CELL], head[32];
	fprintf(out, "%s: %s\n  %s\n  %s: %s%s%s\n", e->name, e->title, e->paper, e->written,
		skep_published_metrics[e->metric], e->unit[0] != '\0' ? ", " : "", e->unit);
	skep_layout_begin(&layout, "lrrrll", heads);
	for (uint32_t i = 0; i < e->rows; i++) {
		fill(e, i, cell);
		for (uint32_t c = 0; c < COLUMNS; c++)
			skep_layout_cell(&layout, "%s", cell[c]);
	}
	skep_layout_end(&layout, out);
	if (e->note[0] != '\0')
		print_wrapped("  ", e->note, out);
	for (uint32_t i = 0; i < e->rows; i++)
		if (opens_note(e, i)) {
			snprintf(head, sizeof head, "  [%u] ", note_of(e, i));
			print_wrapped(head, e->row[i].note, out);
		}
	print_failures(e, out);
	fputc('\n', out);
}

void skep_published_print(const struct skep_published_experiment *experiment, uint32_t count, FILE *out)
{
	for (uint32_t i = 0; i < count; i++)
		if (experiment[i].wanted)
			print_experiment(&experiment[i], out);
	print_count(experiment, count, out);
}

/* ---- as a page ------------------------------------------------------------------------------------------------------ */

static void page_cell(const char *text, FILE *out)
{
	fputs("| ", out);
	for (; *text != '\0'; text++) {
		if (*text == '|')
			fputc('\\', out);
		fputc(*text, out);
	}
	fputc(' ', out);
}

/* How each experiment does, with a link to it. */
static void page_overview(const struct skep_published_experiment *experiment, uint32_t count, FILE *out)
{
	fputs("\n| experiment | within | outside | fitted | nothing to compare |\n| --- | --- | --- | --- | --- |\n",
		out);
	for (uint32_t i = 0; i < count; i++) {
		struct count c = count_rows(&experiment[i], 1);
		if (experiment[i].wanted)
			fprintf(out, "| [%s](#%s): %s | %u | %u | %u | %u |\n", experiment[i].name, experiment[i].name,
				experiment[i].title, c.within, c.outside, c.fitted, c.unknown);
	}
}

static void page_experiment(const struct skep_published_experiment *e, FILE *out)
{
	char cell[COLUMNS][CELL], head[32];
	fprintf(out, "\n## %s\n\n%s.\n", e->name, e->title);
	print_wrapped("", e->paper, out);
	fprintf(out, "`%s`: %s%s%s\n\n", e->written, skep_published_metrics[e->metric], e->unit[0] != '\0' ? ", " : "",
		e->unit);
	for (uint32_t c = 0; c < COLUMNS; c++)
		page_cell(heads[c], out);
	fputs("|\n| --- | --- | --- | --- | --- | --- |\n", out);
	for (uint32_t i = 0; i < e->rows; i++) {
		fill(e, i, cell);
		for (uint32_t c = 0; c < COLUMNS; c++)
			page_cell(cell[c], out);
		fputs("|\n", out);
	}
	if (e->note[0] != '\0') {
		fputc('\n', out);
		print_wrapped("", e->note, out);
	}
	for (uint32_t i = 0; i < e->rows; i++)
		if (opens_note(e, i)) {
			snprintf(head, sizeof head, "* [%u] ", note_of(e, i));
			fputs(note_of(e, i) == 1 ? "\n" : "", out);
			print_wrapped(head, e->row[i].note, out);
		}
}

void skep_published_print_page(const struct skep_published_experiment *experiment, uint32_t count, FILE *out)
{
	fprintf(out,
		"%s\n\nMade by `skep published --all -o docs/published.md`: experiments of papers, simulated with their own\n"
		"parameters, beside what was published. [scenarios/papers/](../scenarios/papers/README.md) has the scenarios\n"
		"and the tables. *ratio* is ours over published, *bar* how far off ours may be, *source* where the figure\n"
		"stands in the paper. Rows that are outside stay, with the reason where it is known; a figure that could not be\n"
		"read in the paper is *not found*; *fitted* is what was set to agree so that other rows can be compared.\n\n",
		SKEP_PUBLISHED_HEAD);
	print_count(experiment, count, out);
	page_overview(experiment, count, out);
	for (uint32_t i = 0; i < count; i++)
		if (experiment[i].wanted)
			page_experiment(&experiment[i], out);
}

/* ---- as JSON -------------------------------------------------------------------------------------------------------- */

static cJSON *row_json(const struct skep_published_experiment *e, const struct skep_published_row *row)
{
	cJSON *object = cJSON_CreateObject();
	bool judged = skep_published_judged(row);
	cJSON_AddStringToObject(object, "row", row->name);
	skep_json_add_number(object, "published", row->low);
	skep_json_add_number(object, "published_to", row->high);
	skep_json_add_number(object, "ours", row->ours);
	skep_json_add_number(object, "ratio", skep_published_ratio(row));
	cJSON_AddNumberToObject(object, "bar", e->bar);
	if (judged)
		cJSON_AddBoolToObject(object, "within", skep_published_within(e, row));
	else
		cJSON_AddNullToObject(object, "within");
	cJSON_AddBoolToObject(object, "fitted", row->fitted);
	skep_json_add_text(object, "source", row->place[0] != '\0' ? row->place : e->place);
	skep_json_add_text(object, "note", row->note);
	skep_json_add_text(object, "failure", e->run[row->run].failure);
	return object;
}

static void add_head(const struct skep_published_experiment *e, cJSON *object)
{
	cJSON_AddStringToObject(object, "name", e->name);
	cJSON_AddStringToObject(object, "title", e->title);
	cJSON_AddStringToObject(object, "paper", e->paper);
	cJSON_AddStringToObject(object, "scenario", e->scenario);
	cJSON_AddStringToObject(object, "metric", skep_published_metrics[e->metric]);
	skep_json_add_text(object, "unit", e->unit);
}

bool skep_published_print_json(const struct skep_published_experiment *experiment, uint32_t count, FILE *out)
{
	struct count c = count_rows(experiment, count);
	cJSON *root = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(root, "experiments");
	for (uint32_t i = 0; i < count; i++) {
		const struct skep_published_experiment *e = &experiment[i];
		if (!e->wanted)
			continue;
		cJSON *object = skep_json_add_row(list);
		add_head(e, object);
		skep_json_add_text(object, "note", e->note);
		cJSON *rows = cJSON_AddArrayToObject(object, "rows");
		for (uint32_t k = 0; k < e->rows; k++)
			cJSON_AddItemToArray(rows, row_json(e, &e->row[k]));
	}
	skep_json_add_count(root, "within", c.within);
	skep_json_add_count(root, "outside", c.outside);
	return skep_json_print(root, out);
}

/* ---- a list --------------------------------------------------------------------------------------------------------- */

void skep_published_print_list(const struct skep_published_experiment *experiment, uint32_t count, FILE *out)
{
	static const char *const columns[] = {"name", "rows", "runs", "title"};
	struct skep_layout layout;
	skep_layout_begin(&layout, "lrrl", columns);
	for (uint32_t i = 0; i < count; i++) {
		skep_layout_cell(&layout, "%s", experiment[i].name);
		skep_layout_cell(&layout, "%u", experiment[i].rows);
		skep_layout_cell(&layout, "%u%s", experiment[i].runs, experiment[i].slow ? ", slow" : "");
		skep_layout_cell(&layout, "%s", experiment[i].title);
	}
	skep_layout_end(&layout, out);
}

bool skep_published_print_list_json(const struct skep_published_experiment *experiment, uint32_t count, FILE *out)
{
	cJSON *root = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(root, "experiments");
	for (uint32_t i = 0; i < count; i++) {
		cJSON *object = skep_json_add_row(list);
		add_head(&experiment[i], object);
		skep_json_add_count(object, "rows", experiment[i].rows);
		cJSON_AddBoolToObject(object, "slow", experiment[i].slow);
	}
	return skep_json_print(root, out);
}
