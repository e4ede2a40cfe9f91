/* SPDX-License-Identifier: Apache-2.0
 *
 * plot_search.c - see plot_search.h. A search that asked once is a dot, not a line: contiguous and strided. Evaluations are on a
 * logarithmic axis, since half of what is gained is gained in the first hundred; costs on a straight one, cut at what random
 * allocations cost at first.
 */
#include "analysis/plot/plot_search.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/plot/plot_script.h"
#include "base/files/csv.h"
#include "base/grow.h"

#define CELL_BYTES 64
#define PANEL_WIDTH 520u
#define PANEL_HEIGHT 400u
#define HEAD_HEIGHT 80u
#define OTHER_WIDTH 2.0 /* of a line whose method is not known here */
#define DOT_SIZE 1.2

static const char *const TEMPLATE[] = {
#include "search.gp.inc"
};

/* ---- the table ---------------------------------------------------------------------------------------------------- */

static struct skep_search_panel *panel_of(struct skep_search_figure *f, const char *network)
{
	for (uint32_t i = 0; i < f->panels; i++)
		if (strcmp(f->panel[i].network, network) == 0)
			return &f->panel[i];
	if (f->panels == SKEP_SEARCH_PANELS_MAX)
		return NULL;
	struct skep_search_panel *panel = &f->panel[f->panels++];
	*panel = (struct skep_search_panel){.lines = 0};
	snprintf(panel->network, sizeof panel->network, "%s", network);
	return panel;
}

static struct skep_search_line *line_of(struct skep_search_panel *panel, const char *method)
{
	for (uint32_t i = 0; i < panel->lines; i++)
		if (strcmp(panel->line[i].method, method) == 0)
			return &panel->line[i];
	if (panel->lines == SKEP_SEARCH_LINES_MAX)
		return NULL;
	struct skep_search_line *line = &panel->line[panel->lines++];
	*line = (struct skep_search_line){.dots = 0};
	snprintf(line->method, sizeof line->method, "%s", method);
	return line;
}

bool skep_search_figure_add(
	struct skep_search_figure *f, const char *network, const char *method, struct skep_search_dot dot)
{
	struct skep_search_panel *panel = panel_of(f, network);
	struct skep_search_line *line = panel ? line_of(panel, method) : NULL;
	if (!line || !skep_grow(&line->dot, line->dots, sizeof *line->dot))
		return false;
	line->dot[line->dots++] = dot;
	return true;
}

void skep_search_figure_finish(struct skep_search_figure *f)
{
	for (uint32_t i = 0; i < f->panels; i++)
		for (uint32_t j = 0; j < f->panel[i].lines; j++)
			free(f->panel[i].line[j].dot);
	*f = (struct skep_search_figure){.panels = 0};
}

static void read_rows(struct skep_table *t, struct skep_search_figure *ret)
{
	static const char *const name[] = {"network", "method", "evaluations", "steps", "cost_s", NULL};
	enum { NETWORK, METHOD, EVALUATIONS, STEPS, COST, COLUMNS };
	uint32_t at[COLUMNS];
	char network[CELL_BYTES], method[CELL_BYTES];
	struct skep_search_dot dot;
	struct skep_lines *l = &t->lines;
	if (!skep_table_need(t, name, at))
		return;
	while (skep_table_next(t)) {
		const struct skep_cell *cell = t->cell;
		if (!skep_cell_copy(l, cell[at[NETWORK]], "a network", network, sizeof network) ||
			!skep_cell_copy(l, cell[at[METHOD]], "a method", method, sizeof method) ||
			!skep_cell_number(l, cell[at[EVALUATIONS]], "evaluations", 1, 1e18, &dot.evaluations) ||
			!skep_cell_number(l, cell[at[COST]], "cost_s", 1e-9, 1e18, &dot.cost_s))
			return;
		if (!skep_search_figure_add(ret, network, method, dot))
			skep_lines_fail(l, l->text, "more than %u networks or %u methods", SKEP_SEARCH_PANELS_MAX,
				SKEP_SEARCH_LINES_MAX);
	}
	if (ret->panels == 0)
		skep_diag_set(l->diag, l->path, 0, 0, NULL, "there is no row in it");
}

bool skep_search_figure_read(const char *path, struct skep_search_figure *ret, struct skep_diag *reterr)
{
	struct skep_table *table = malloc(sizeof *table);
	*ret = (struct skep_search_figure){.title = "How each search came down"};
	if (!table) {
		skep_diag_set(reterr, path, 0, 0, NULL, "not enough memory");
		return false;
	}
	if (skep_table_open(table, path, reterr))
		read_rows(table, ret);
	skep_table_close(table);
	free(table);
	if (reterr->set)
		skep_search_figure_finish(ret);
	return !reterr->set;
}

/* ---- the picture -------------------------------------------------------------------------------------------------- */

static const struct {
	const char *method, *colour;
	double width;
} STYLE[] = {
	{"portfolio", "#0072B2", 5.5},
	{"genetic", "#D55E00", 3.0},
	{"anneal", "#009E73", 2.4},
	{"relaxed", "#CC79A7", 2.0},
	{"greedy", "#E69F00", 1.8},
	{"random", "#808080", 1.3},
	{"strided", "#000000", 1.6},
	{"contiguous", "#56B4E9", 1.6},
};
#define STYLES (sizeof STYLE / sizeof STYLE[0])

static uint32_t style_of(const char *method)
{
	for (uint32_t i = 0; i < STYLES; i++)
		if (strcmp(STYLE[i].method, method) == 0)
			return i;
	return STYLES;
}

static double best_of(const struct skep_search_line *line)
{
	return line->dot[line->dots - 1].cost_s;
}

static bool is_dot(const struct skep_search_line *line)
{
	return line->dot[line->dots - 1].evaluations <= 1;
}

struct range {
	double low, high, most; /* costs; evaluations */
};

/* From the best of all to where the first lines begin, but not more than three times the worst end. */
static struct range range_of(const struct skep_search_panel *panel)
{
	struct range r = {INFINITY, 0, 2};
	double worst = 0;
	for (uint32_t i = 0; i < panel->lines; i++) {
		const struct skep_search_line *line = &panel->line[i];
		r.low = fmin(r.low, best_of(line));
		worst = fmax(worst, best_of(line));
		r.high = fmax(r.high, line->dot[0].cost_s);
		r.most = fmax(r.most, line->dot[line->dots - 1].evaluations);
	}
	r.high = fmin(r.high, r.low + 3 * fmax(worst - r.low, 0.05 * r.low));
	double margin = 0.06 * fmax(r.high - r.low, 0.05 * r.low);
	return (struct range){fmax(0, r.low - margin), r.high + margin, r.most};
}

static void write_lines(const struct skep_search_panel *panel, uint32_t number, double per_s, FILE *script)
{
	for (uint32_t i = 0; i < panel->lines; i++) {
		const struct skep_search_line *line = &panel->line[i];
		fprintf(script, "$line_%u_%u << END\n", number, i + 1);
		for (uint32_t j = 0; j < line->dots; j++)
			fprintf(script, "%.9g %.9g\n", line->dot[j].evaluations, per_s * line->dot[j].cost_s);
		fprintf(script, "END\n");
	}
}

static void write_line(
	const struct skep_search_line *line, uint32_t panel, uint32_t number, const char **comma, FILE *script)
{
	uint32_t style = style_of(line->method);
	const char *colour = style < STYLES ? STYLE[style].colour : skep_plot_colour(number);
	double width = style < STYLES ? STYLE[style].width : OTHER_WIDTH;
	if (!is_dot(line)) {
		fprintf(script, "%s$line_%u_%u using 1:2 with steps lw %.1f lc rgb '%s'", *comma, panel, number, width,
			colour);
		*comma = ", \\\n     ";
	}
	fprintf(script, "%s$line_%u_%u every ::%u using 1:2 with points pt 7 ps %.2f lc rgb '%s'", *comma, panel,
		number, line->dots - 1, is_dot(line) ? DOT_SIZE : 0.4 * sqrt(width), colour);
	*comma = ", \\\n     ";
}

/* The widest first, with where each ended; dots last: they stand on lines. */
static void write_plot(const struct skep_search_panel *panel, uint32_t number, FILE *script)
{
	const char *comma = "plot ";
	for (uint32_t pass = 0; pass < 2; pass++)
		for (uint32_t style = 0; style <= STYLES; style++)
			for (uint32_t i = 0; i < panel->lines; i++)
				if (style_of(panel->line[i].method) == style && is_dot(&panel->line[i]) == (pass == 1))
					write_line(&panel->line[i], number, i + 1, &comma, script);
	fprintf(script, "\n");
}

static void write_panel(const struct skep_search_panel *panel, uint32_t number, bool first, bool last, FILE *script)
{
	struct range range = range_of(panel);
	struct skep_plot_unit unit = skep_plot_unit(range.high);
	write_lines(panel, number, unit.per_s, script);
	fprintf(script, "set title ");
	skep_script_string(script, panel->network);
	fprintf(script, "\nset ylabel '%s(%s)' offset 1, 0\nset xlabel '%s' offset 0, 0.3\n",
		first ? "best cost so far " : "", unit.name, last ? "evaluations" : "");
	fprintf(script, "set xrange [0.8:%.9g]\nset yrange [%.9g:%.9g]\n", 1.25 * range.most, unit.per_s * range.low,
		unit.per_s * range.high);
	write_plot(panel, number, script);
	fprintf(script, "unset label\nunset arrow\n"); /* the heading and the key: written once is enough */
}

/* Of all panels; in the order of the styles. */
static uint32_t write_key(const struct skep_search_figure *f, FILE *script)
{
	uint32_t count = 0;
	fprintf(script, "array Key[%u]\narray Colour[%u]\narray Width[%u]\narray Dot[%u]\n", SKEP_SEARCH_LINES_MAX,
		SKEP_SEARCH_LINES_MAX, SKEP_SEARCH_LINES_MAX, SKEP_SEARCH_LINES_MAX);
	for (uint32_t style = 0; style <= STYLES; style++)
		for (uint32_t i = 0; i < f->panel[0].lines; i++) {
			const struct skep_search_line *line = &f->panel[0].line[i];
			if (style_of(line->method) != style)
				continue;
			count++;
			fprintf(script, "Key[%u] = ", count);
			skep_script_string(script, line->method);
			fprintf(script, "\nColour[%u] = '%s'\nWidth[%u] = %.1f\nDot[%u] = %d\n", count,
				style < STYLES ? STYLE[style].colour : skep_plot_colour(i), count,
				style < STYLES ? STYLE[style].width : OTHER_WIDTH, count, is_dot(line));
		}
	fprintf(script, "keys = %u\n", count);
	return count;
}

static bool write_figure(const void *what, struct skep_picture *picture, struct skep_diag *reterr)
{
	const struct skep_search_figure *f = what;
	FILE *script = picture->script;
	uint32_t columns = f->panels == 1 ? 1 : f->panels <= 4 ? 2 : 3, rows = (f->panels + columns - 1) / columns;
	(void)reterr;
	picture->width = f->panels == 1 ? 1000 : columns * PANEL_WIDTH;
	picture->height = HEAD_HEIGHT + (f->panels == 1 ? 600 : rows * PANEL_HEIGHT);
	fprintf(script, "heading = ");
	skep_script_string(script, f->title);
	fprintf(script, "\ncolumns = %u\nrows = %u\nhead = %.6f\n", columns, rows,
		(double)HEAD_HEIGHT / picture->height);
	write_key(f, script);
	skep_script_lines(script, TEMPLATE, sizeof TEMPLATE / sizeof TEMPLATE[0]);
	for (uint32_t i = 0; i < f->panels; i++)
		write_panel(&f->panel[i], i + 1, i % columns == 0, i + columns >= f->panels, script);
	fprintf(script, "unset multiplot\n");
	return true;
}

bool skep_plot_search(const struct skep_search_figure *figure, const char *target, struct skep_diag *reterr)
{
	return skep_plot_picture(target, write_figure, figure, reterr);
}
