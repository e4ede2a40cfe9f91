/* SPDX-License-Identifier: Apache-2.0
 *
 * print.c - a calibration as a table and as JSON: each figure before and after, its interval, and of how many samples.
 */
#include <inttypes.h>
#include <math.h>

#include "analysis/calibrate/calibration.h"
#include "base/json.h"
#include "base/layout.h"

static const char *const pass_words[SKEP_STAGE_COLUMNS] = {
	"forward", "backward", "recompute", "backward, recomputed", "step", "inner step", "pseudo-gradient"};

enum form { FORM_TIME, FORM_RATE, FORM_BYTES_PER_S };

struct row {
	char what[120];
	enum form form;
	const char *unit; /* of the numbers in JSON */
	const struct skep_figure *figure;
};

/* Each figure of which the run has at least one sample, or could have had. */
struct walk {
	const struct skep_calibration *c;
	uint32_t unseen_stages, unused_pairs;
	void (*each)(void *context, const struct row *row);
	void *context;
};

static void visit(struct walk *w, const struct skep_figure *figure, enum form form, const char *what)
{
	struct row row = {.form = form, .unit = form == FORM_TIME ? "s" : "B/s", .figure = figure};
	snprintf(row.what, sizeof row.what, "%s", what);
	w->each(w->context, &row);
}

static void walk_passes(struct walk *w)
{
	const struct skep_scenario *s = w->c->scenario;
	char what[120];
	for (uint32_t gpu = 0; gpu < s->topology.gpus; gpu++)
		for (uint32_t v = 0; v < skep_plan_vstages(&s->plan); v++) {
			const struct skep_pass_figures *pass = skep_calibration_pass(w->c, gpu, v);
			w->unseen_stages += !pass->used;
			for (int k = 0; k < SKEP_STAGE_COLUMNS; k++) {
				if (pass->column[k].after.samples == 0)
					continue;
				snprintf(what, sizeof what, "%s of stage %" PRIu32 " on %s", pass_words[k], v,
					s->topology.gpu[gpu].name);
				visit(w, &pass->column[k], FORM_TIME, what);
			}
		}
}

static void walk_gpus(struct walk *w)
{
	const struct skep_topology *t = &w->c->scenario->topology;
	char what[120];
	for (uint32_t gpu = 0; gpu < t->gpus; gpu++) {
		snprintf(what, sizeof what, "overhead of an operation on %s", t->gpu[gpu].name);
		visit(w, &w->c->gpu[gpu].overhead, FORM_TIME, what);
		snprintf(what, sizeof what, "memory bandwidth of %s", t->gpu[gpu].name);
		visit(w, &w->c->gpu[gpu].memory_Bps, FORM_BYTES_PER_S, what);
	}
}

static void walk_links(struct walk *w)
{
	const struct skep_topology *t = &w->c->scenario->topology;
	char what[120], way[88];
	for (uint32_t i = 0; i < t->places * t->places; i++) {
		const struct skep_link_figures *link = &w->c->link[i];
		w->unused_pairs += link->messages == 0;
		if (link->messages == 0)
			continue;
		if (link->from == link->to)
			snprintf(way, sizeof way, "inside %s", t->place_name[link->from]);
		else
			snprintf(way, sizeof way, "from %s to %s", t->place_name[link->from], t->place_name[link->to]);
		snprintf(what, sizeof what, "latency %s", way);
		visit(w, &link->latency, FORM_TIME, what);
		snprintf(what, sizeof what, "bandwidth %s%s", way, link->shared ? ", shared" : "");
		visit(w, &link->bandwidth, FORM_RATE, what);
	}
}

static void walk_all(struct walk *w)
{
	walk_passes(w);
	walk_gpus(w);
	walk_links(w);
}

/* ---- for a person ------------------------------------------------------------------------------------------------ */

static const char *value_text(enum form form, double value, char ret[SKEP_TEXT_BYTES])
{
	if (form == FORM_TIME)
		return skep_time_text(value, ret);
	if (form == FORM_RATE)
		return skep_rate_text(value, ret);
	char bytes[SKEP_TEXT_BYTES];
	snprintf(ret, SKEP_TEXT_BYTES, "%.40s/s", skep_bytes_text(value, bytes));
	return ret;
}

static void lay(void *context, const struct row *row)
{
	struct skep_layout *layout = context;
	const struct skep_figure *f = row->figure;
	char before[SKEP_TEXT_BYTES], after[SKEP_TEXT_BYTES], low[SKEP_TEXT_BYTES], high[SKEP_TEXT_BYTES];
	skep_layout_cell(layout, "%s", row->what);
	skep_layout_cell(layout, "%s", value_text(row->form, f->before, before));
	if (f->after.samples == 0) {
		skep_layout_cell(layout, "kept");
		skep_layout_cell(layout, " ");
		skep_layout_cell(layout, " ");
		skep_layout_cell(layout, "%s", f->kept);
		return;
	}
	skep_layout_cell(layout, "%s", value_text(row->form, f->after.value, after));
	skep_layout_cell(layout, "%s to %s", value_text(row->form, f->after.low, low),
		value_text(row->form, f->after.high, high));
	skep_layout_cell(layout, "%" PRIu32, f->after.samples);
	if (f->before > 0 && isfinite(f->before))
		skep_layout_cell(layout, "%+.1f %%", 100 * (f->after.value / f->before - 1));
	else
		skep_layout_cell(layout, "-");
}

void skep_calibration_print(const struct skep_calibration *c, FILE *out)
{
	static const char *const head[] = {"figure", "before", "after", "95 % interval", "samples", "change"};
	struct skep_layout layout;
	struct walk w = {.c = c, .each = lay, .context = &layout};
	fprintf(out, "run %" PRId64 ", %" PRIu32 " rounds%s%s\n", c->run, c->rounds, c->paced ? ", paced" : "",
		c->shaped ? ", shaped" : "");
	skep_layout_begin(&layout, "lrrrrl", head);
	walk_all(&w);
	skep_layout_end(&layout, out);
	if (w.unseen_stages > 0)
		fprintf(out, "as before: %" PRIu32 " stage%s of a GPU that did not serve %s in this run\n",
			w.unseen_stages, skep_plural(w.unseen_stages), w.unseen_stages == 1 ? "it" : "them");
	if (w.unused_pairs > 0)
		fprintf(out, "as before: %" PRIu32 " link%s without a message in this run\n", w.unused_pairs,
			skep_plural(w.unused_pairs));
	for (uint32_t gpu = 0; gpu < c->topology.gpus; gpu++)
		if (c->gpu[gpu].mean > SKEP_CALIBRATE_BUSY)
			fprintf(out,
				"%s: passes and steps took %.0f %% longer in the mean than in the median: other work has delayed "
				"them,\nand a prediction is of a quiet machine\n",
				c->topology.gpu[gpu].name, 100 * (c->gpu[gpu].mean - 1));
	if (c->clocks_apart_s > 0)
		fprintf(out, "clocks of machines differed by up to %.3g ms from the directory's, which was taken out\n",
			1e3 * c->clocks_apart_s);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static void add_row(void *context, const struct row *row)
{
	const struct skep_figure *f = row->figure;
	cJSON *object = skep_json_add_row(context);
	bool fitted = f->after.samples > 0;
	cJSON_AddStringToObject(object, "figure", row->what);
	cJSON_AddStringToObject(object, "unit", row->unit);
	skep_json_add_number(object, "before", f->before);
	skep_json_add_number(object, "after", fitted ? f->after.value : NAN);
	skep_json_add_number(object, "low", fitted ? f->after.low : NAN);
	skep_json_add_number(object, "high", fitted ? f->after.high : NAN);
	cJSON_AddNumberToObject(object, "samples", f->after.samples);
	skep_json_add_text(object, "kept", fitted || f->kept == NULL ? "" : f->kept);
}

void skep_calibration_print_json(const struct skep_calibration *c, const char *folder, FILE *out)
{
	cJSON *object = cJSON_CreateObject();
	cJSON_AddNumberToObject(object, "run_id", (double)c->run);
	cJSON_AddStringToObject(object, "folder", folder);
	cJSON_AddNumberToObject(object, "rounds", c->rounds);
	cJSON_AddBoolToObject(object, "paced", c->paced);
	cJSON_AddBoolToObject(object, "shaped", c->shaped);
	skep_json_add_number(object, "clocks_apart_s", c->clocks_apart_s);
	struct walk w = {.c = c, .each = add_row, .context = cJSON_AddArrayToObject(object, "figures")};
	walk_all(&w);
	cJSON *gpus = cJSON_AddArrayToObject(object, "gpus");
	for (uint32_t gpu = 0; gpu < c->topology.gpus; gpu++) {
		cJSON *of = skep_json_add_row(gpus);
		cJSON_AddStringToObject(of, "gpu", c->topology.gpu[gpu].name);
		skep_json_add_number(of, "noise", c->gpu[gpu].noise);
		skep_json_add_number(of, "mean_over_median", c->gpu[gpu].mean);
	}
	cJSON_AddNumberToObject(object, "stages_as_before", w.unseen_stages);
	cJSON_AddNumberToObject(object, "links_as_before", w.unused_pairs);
	skep_json_print(object, out);
}
