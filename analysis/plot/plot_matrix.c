/* SPDX-License-Identifier: Apache-2.0
 *
 * plot_matrix.c - what each ordered pair of workers can get, workers grouped by stage and place.
 *
 * A cell is the least of the sender's up capacity, the receiver's down capacity and what joins their places: the same as
 * the view v_pairs, but computed here because that view is slow for thousands of workers.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/plot/plot_script.h"
#include "analysis/store/database.h"

#define SHOWN_MAX 1024u  /* workers; of more, every k-th is shown */
#define NUMBERED_MAX 48u /* workers with their number on the axis */
#define CELLS_MAX 16u    /* workers with figures in the cells */
#define NAME_SHARE 12u   /* a stage with a smaller share of the workers has a short name */
#define STRIP_MAX 8u     /* places with a colour of their own */

static const char *const TEMPLATE[] = {
#include "matrix.gp.inc"
};

struct machine {
	uint32_t worker, place, stage; /* SKEP_NO_STAGE: spare */
	double up_Bps, down_Bps;
};

struct matrix {
	uint32_t workers, places;
	struct machine *machine; /* [workers], by stage, place, number */
	double *pair_Bps;        /* [places * places] */
	double *cell_Bps;        /* [workers * workers], row = sender; NAN: itself, or not limited */
	double low_Bps, high_Bps;
	bool unlimited; /* some cell beside those of workers themselves */
};

/* ---- reading ---------------------------------------------------------------------------------------------------- */

static double limit(sqlite3_stmt *row, int column)
{
	double value = skep_column_real(row, column);
	return isnan(value) ? INFINITY : value;
}

static bool read_machines(
	struct skep_store *store, const struct skep_plot_run *run, struct matrix *ret, struct skep_diag *reterr)
{
	static const char sql[] =
		"SELECT worker, place, coalesce(first_stage, 4294967295), up_bytes_per_s, down_bytes_per_s"
		" FROM workers WHERE run = ?1 AND role = 'worker' ORDER BY 3, 2, 1";
	uint32_t stride = (run->workers + SHOWN_MAX - 1) / SHOWN_MAX, i = 0;
	ret->machine = calloc(run->workers / stride + 1, sizeof *ret->machine);
	sqlite3_stmt *row = ret->machine ? skep_store_query(store, sql, run->id, 0, reterr) : NULL;
	for (; row != NULL && i < run->workers && skep_store_row(store, row); i++)
		if (i % stride == 0)
			ret->machine[ret->workers++] =
				(struct machine){.worker = (uint32_t)sqlite3_column_int64(row, 0),
					.place = (uint32_t)sqlite3_column_int64(row, 1),
					.stage = (uint32_t)sqlite3_column_int64(row, 2),
					.up_Bps = limit(row, 3),
					.down_Bps = limit(row, 4)};
	sqlite3_finalize(row);
	if (ret->machine == NULL)
		skep_fail(reterr, "no memory for %u workers", run->workers);
	return row != NULL;
}

static bool read_pairs(
	struct skep_store *store, const struct skep_plot_run *run, struct matrix *ret, struct skep_diag *reterr)
{
	static const char sql[] = "SELECT source, destination, capacity_bytes_per_s, shared_bytes_per_s,"
				  " (SELECT count(*) FROM places WHERE run = ?1) FROM pairs WHERE run = ?1";
	sqlite3_stmt *row = skep_store_query(store, sql, run->id, 0, reterr);
	if (row == NULL)
		return false;
	while (skep_store_row(store, row)) {
		size_t from = (size_t)sqlite3_column_int64(row, 0), to = (size_t)sqlite3_column_int64(row, 1);
		if (ret->pair_Bps == NULL) {
			ret->places = (uint32_t)sqlite3_column_int64(row, 4);
			ret->pair_Bps = calloc((size_t)ret->places * ret->places, sizeof *ret->pair_Bps);
		}
		if (ret->pair_Bps == NULL || from >= ret->places || to >= ret->places)
			break;
		ret->pair_Bps[from * ret->places + to] = fmin(limit(row, 2), limit(row, 3));
	}
	sqlite3_finalize(row);
	if (ret->pair_Bps == NULL)
		skep_fail(reterr, "run %lld has no matrix in the database: more than 1,024 places are not kept",
			(long long)run->id);
	return ret->pair_Bps != NULL;
}

static bool fill_cells(struct matrix *matrix, struct skep_diag *reterr)
{
	size_t n = matrix->workers;
	matrix->cell_Bps = malloc(n * n * sizeof *matrix->cell_Bps);
	matrix->low_Bps = INFINITY;
	if (matrix->cell_Bps == NULL)
		return skep_fail(reterr, "no memory for a matrix of %zu workers", n);
	for (size_t i = 0; i < n * n; i++) {
		const struct machine *from = &matrix->machine[i / n], *to = &matrix->machine[i % n];
		double pair_Bps = matrix->pair_Bps[(size_t)from->place * matrix->places + to->place];
		double Bps = fmin(pair_Bps, fmin(from->up_Bps, to->down_Bps));
		matrix->cell_Bps[i] = from == to || !isfinite(Bps) ? NAN : Bps;
		matrix->unlimited = matrix->unlimited || (from != to && !isfinite(Bps));
		matrix->low_Bps = fmin(matrix->low_Bps, matrix->cell_Bps[i]);
		matrix->high_Bps = fmax(matrix->high_Bps, matrix->cell_Bps[i]);
	}
	if (matrix->high_Bps > 0)
		return true;
	return skep_fail(reterr, "no pair of workers has a limited capacity: there is nothing to show");
}

/* ---- the script ------------------------------------------------------------------------------------------------- */

/* Bits per second of the unit that makes the largest capacity a handy number. */
static double unit_bps(const struct matrix *matrix, const char **ret_name)
{
	static const struct {
		double bps;
		const char *name;
	} unit[] = {{1e12, "Tbit/s"}, {1e9, "Gbit/s"}, {1e6, "Mbit/s"}, {1e3, "kbit/s"}, {1, "bit/s"}};
	size_t i = 0;
	while (i + 1 < sizeof unit / sizeof unit[0] && matrix->high_Bps * 8 < unit[i].bps)
		i++;
	*ret_name = unit[i].name;
	return unit[i].bps;
}

/* Logarithmic colours with marks at 1, 2, 5, 10 ...; a single value stands in the legend, and there is no scale. */
static void write_scale(FILE *script, double low, double high, const char *unit)
{
	fprintf(script, "set logscale cb\n");
	if (high < low * 1.01) {
		fprintf(script, "Single = '%.4g %s'\nset cbrange [%.6g:%.6g]\n", high, unit, low / 2, high * 2);
		return;
	}
	fprintf(script, "Single = ''\nset cbrange [%.6g:%.6g]\nset cbtics ('%.3g' %.6g, '%.3g' %.6g", low, high, low,
		low, high, high);
	for (double decade = pow(10, floor(log10(low))); decade <= high; decade *= 10)
		for (int i = 0; i < 3; i++) {
			double tic = decade * (double[]){1, 2, 5}[i];
			if (tic > low * 1.15 && tic < high / 1.15)
				fprintf(script, ", '%.4g' %.6g", tic, tic);
		}
	fprintf(script, ")\n");
}

/* Lines between stages, and the name of each beside and above its workers. */
static void write_stages(FILE *script, const struct matrix *matrix)
{
	uint32_t n = matrix->workers;
	for (uint32_t first = 0, end; first < n; first = end) {
		char name[32] = "spare";
		uint32_t stage = matrix->machine[first].stage;
		for (end = first; end < n && matrix->machine[end].stage == stage; end++)
			;
		if (stage != SKEP_NO_STAGE)
			snprintf(name, sizeof name, (end - first) * NAME_SHARE >= n ? "stage %u" : "s%u", stage);
		double middle = (first + end) / 2.0 - 0.5;
		fprintf(script, "set label '%s' at graph 0, first %.2f center offset -5, 0 rotate by 90\n", name,
			middle);
		fprintf(script, "set label '%s' at first %.2f, graph 1 center offset 0, 0.9\n", name, middle);
		for (int under = 1; first > 0 && under >= 0;
			under--) { /* white seen on dark cells, black on bright ones */
			const char *look = under ? "lw 6 lc rgb 'white'" : "lw 2 lc rgb 'black'";
			double at = first - 0.5;
			fprintf(script, "set arrow from %.1f, %.1f to %.1f, %.1f nohead front %s\n", at, -0.5, at,
				n - 0.5, look);
			fprintf(script, "set arrow from %.1f, %.1f to %.1f, %.1f nohead front %s\n", -0.5, at, n - 0.5,
				at, look);
		}
	}
}

/* Places with a worker, counted from 1 in their order: ret[place], 0 of others. Returns how many there are. */
static uint32_t count_places(const struct matrix *matrix, uint32_t *ret)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < matrix->workers; i++)
		ret[matrix->machine[i].place] = 1;
	for (uint32_t place = 0; place < matrix->places; place++)
		if (ret[place] > 0)
			ret[place] = ++count;
	return count;
}

static void write_bands(FILE *script, const struct matrix *matrix, const uint32_t *nth, double near, double far)
{
	uint32_t n = matrix->workers;
	for (uint32_t first = 0, end; first < n; first = end) {
		const char *colour = skep_plot_colour(nth[matrix->machine[first].place] - 1);
		for (end = first; end < n && matrix->machine[end].place == matrix->machine[first].place; end++)
			;
		fprintf(script, "set object rectangle from %.3f, %.1f to %.3f, %.1f fs solid noborder fc rgb '%s'\n",
			far, first - 0.5, near, end - 0.5, colour);
		fprintf(script, "set object rectangle from %.1f, %.3f to %.1f, %.3f fs solid noborder fc rgb '%s'\n",
			first - 0.5, n - 1 - far, end - 0.5, n - 1 - near, colour);
	}
}

/* A band of colour along both axes says which place a worker stands at. */
static void write_places(struct skep_store *store, const struct skep_plot_run *run, FILE *script,
	const struct matrix *matrix, struct skep_diag *reterr)
{
	uint32_t n = matrix->workers, *nth = calloc(matrix->places + 1, sizeof *nth);
	uint32_t count = nth ? count_places(matrix, nth) : 0;
	bool shown = count > 1 && count <= STRIP_MAX && count < run->workers;
	double thick = 0.02 * n, near = -0.5 - 0.4 * thick, far = shown ? near - thick : -0.5;
	fprintf(script, "edge = %.3f\nplaces = %u\n", shown ? far - 0.3 * thick : -0.5, shown ? count : 0);
	fprintf(script, "array Place[%u]\n", shown ? count : 1);
	if (shown)
		write_bands(script, matrix, nth, near, far);
	else
		fprintf(script, "Place[1] = ''\n"); /* which gnuplot looks at though none is drawn */
	sqlite3_stmt *row = shown ? skep_store_query(store, "SELECT name FROM places WHERE run = ?1 ORDER BY place",
					    run->id, 0, reterr)
	                          : NULL;
	for (uint32_t place = 0; row != NULL && place < matrix->places && skep_store_row(store, row); place++) {
		if (nth[place] == 0)
			continue;
		fprintf(script, "Place[%u] = ", nth[place]);
		skep_script_string(script, skep_column_text(row, 0));
		fprintf(script, "\nset style line %u lc rgb '%s'\n", nth[place], skep_plot_colour(nth[place] - 1));
	}
	sqlite3_finalize(row);
	free(nth);
}

static void write_numbers(FILE *script, const struct matrix *matrix)
{
	static const char *const axis[] = {"x", "y"};
	for (int k = 0; k < 2; k++) {
		if (matrix->workers > NUMBERED_MAX) {
			fprintf(script, "unset %stics\n", axis[k]);
			continue;
		}
		fprintf(script, "set %stics scale 0 (", axis[k]);
		for (uint32_t i = 0; i < matrix->workers; i++)
			fprintf(script, "%s'%u' %u", i ? ", " : "", matrix->machine[i].worker, i);
		fprintf(script, ")\n");
	}
}

/* The cells as a block; and as text where there is room, dark on bright and bright on dark. */
static void write_cells(FILE *script, const struct matrix *matrix, double unit)
{
	uint32_t n = matrix->workers;
	double middle = sqrt(matrix->low_Bps * matrix->high_Bps);
	fprintf(script, "$cells << END\n");
	for (size_t i = 0; i < (size_t)n * n; i++)
		fprintf(script, "%.5g%c", matrix->cell_Bps[i] * 8 / unit, (i + 1) % n ? ' ' : '\n');
	fprintf(script, "END\n");
	for (uint32_t i = 0; n <= CELLS_MAX && i < n * n; i++)
		if (!isnan(matrix->cell_Bps[i]))
			fprintf(script, "set label '%.3g' at %u, %u center front textcolor rgb '%s'\n",
				matrix->cell_Bps[i] * 8 / unit, i % n, i / n,
				matrix->cell_Bps[i] > middle ? "black" : "white");
}

static void write_heading(FILE *script, const struct skep_plot_run *run, const struct matrix *matrix, const char *unit)
{
	char title[256], part[64] = "";
	if (matrix->workers < run->workers)
		snprintf(part, sizeof part, " (%u of them shown)", matrix->workers);
	snprintf(title, sizeof title, "%s: bandwidth between %u workers%s, grouped by stage", run->scenario,
		run->workers, part);
	fprintf(script, "set title ");
	skep_script_string(script, title);
	fprintf(script, "\nset cblabel 'capacity (%s)'\nworkers = %u\nWhite = 'to itself%s'\n", unit, matrix->workers,
		matrix->unlimited ? ", or without a limit" : "");
}

static bool write_matrix(struct skep_store *store, const struct skep_plot_run *run, struct matrix *matrix, FILE *script,
	struct skep_diag *reterr)
{
	const char *name;
	if (!read_machines(store, run, matrix, reterr) || !read_pairs(store, run, matrix, reterr) ||
		!fill_cells(matrix, reterr))
		return false;
	double unit = unit_bps(matrix, &name);
	write_heading(script, run, matrix, name);
	write_scale(script, matrix->low_Bps * 8 / unit, matrix->high_Bps * 8 / unit, name);
	write_stages(script, matrix);
	write_places(store, run, script, matrix, reterr);
	write_numbers(script, matrix);
	write_cells(script, matrix, unit);
	skep_script_lines(script, TEMPLATE, sizeof TEMPLATE / sizeof TEMPLATE[0]);
	return true;
}

bool skep_plot_matrix(struct skep_store *store, const int64_t *run, uint32_t runs, struct skep_picture *picture,
	struct skep_diag *reterr)
{
	struct skep_plot_run shown;
	struct matrix matrix = {0};
	if (!skep_plot_single_run(store, run, runs, &shown, reterr))
		return false;
	skep_picture_drew(picture, shown.id);
	picture->width = 1150;
	picture->height = 1050;
	bool ok = write_matrix(store, &shown, &matrix, picture->script, reterr);
	free(matrix.machine);
	free(matrix.pair_Bps);
	free(matrix.cell_Bps);
	return ok;
}
