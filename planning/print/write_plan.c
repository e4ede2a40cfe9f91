/* SPDX-License-Identifier: Apache-2.0
 *
 * write_plan.c - see print.h. Keeps true: the file appears whole or not at all, and only if it reads as a scenario from where it
 * lies; the scenario that it came from, whose comments it has not, and the files that this one names are never overwritten.
 */
#include "planning/print/print.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/outputs.h"
#include "base/layout.h"
#include "planning/plan/free_settings.h"

/* A name may hold what would end a comment. */
static void say(FILE *out, const char *text)
{
	for (; *text; text++)
		fputc((unsigned char)*text < ' ' ? ' ' : *text, out);
}

/* As a shell takes it for one word. */
static void quote(FILE *out, const char *text)
{
	fputc('\'', out);
	for (; *text; text++)
		if (*text == '\'')
			fputs("'\\''", out);
		else
			fputc((unsigned char)*text < ' ' ? ' ' : *text, out);
	fputc('\'', out);
}

static void say_word(FILE *out, const char *text)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./,:=@%+";
	if (text[0] != '\0' && text[strspn(text, plain)] == '\0')
		say(out, text);
	else
		quote(out, text);
}

/* As --explain has them, each line a comment. */
static void write_stages(const struct skep_planner *w, const struct skep_scenario *planned, FILE *out)
{
	char *text = NULL;
	size_t bytes;
	FILE *table = open_memstream(&text, &bytes);
	if (!table) {
		fputs("# Not enough memory for what is expected of each stage.\n", out);
		return;
	}
	skep_planner_print_stages(w, planned, table);
	fprintf(out,
		"# Expected of a microbatch (forward and backward: on the worker that sets the pace; * the bottleneck):\n");
	for (char *line = fclose(table) == 0 ? strtok(text, "\n") : NULL; line; line = strtok(NULL, "\n")) {
		fprintf(out, "#   ");
		say(out, line);
		fprintf(out, "\n");
	}
	free(text);
}

/* Where another cut was found: "layers 0-3: ". */
static void write_layers(const struct skep_planner *w, uint32_t stage, FILE *out)
{
	uint32_t vstages = skep_plan_vstages(&w->scenario.plan), first, layers;
	for (uint32_t vstage = stage; w->recut && vstage < vstages; vstage += w->planning.stages) {
		skep_model_cut(&w->scenario.model, vstages, vstage, &first, &layers);
		fprintf(out, "%s%" PRIu32 "-%" PRIu32 "%s", vstage == stage ? "layers " : ", ", first,
			first + layers - 1, vstage + w->planning.stages < vstages ? "" : ": ");
	}
}

static void write_settings(const struct skep_free_settings *j, FILE *out)
{
	char name[1024], text[SKEP_TEXT_BYTES];
	const struct skep_point *p = &j->point[j->chosen];
	skep_choices_name(&j->choices, p->number, name, sizeof name);
	fprintf(out, "# Settings chosen for %s: %s\n", skep_aim_words[j->aim], name);
	if (isfinite(skep_point_time_s(p)))
		fprintf(out, "#   until the target loss %s", skep_time_text(skep_point_time_s(p), text));
	if (isfinite(skep_point_time_s(p)) && isfinite(skep_point_usd(p)))
		fprintf(out, ", %.4g USD", skep_point_usd(p));
	if (isfinite(skep_point_time_s(p)))
		fprintf(out, "%s\n", skep_point_extrapolates(p) ? " (extrapolated: the law was fitted elsewhere)" : "");
}

static void write_head(const struct skep_planner *w, const struct skep_scenario *planned, FILE *out)
{
	const struct skep_candidate *c = &w->candidate[w->chosen], *start = &w->candidate[0];
	char stage_workers[600], rate[SKEP_TEXT_BYTES];
	fprintf(out, SKEP_PLAN_HEAD);
	say_word(out, w->options->path);
	for (uint32_t i = 0; i < (w->recut ? w->before_cut : w->with.sets); i++) {
		fprintf(out, " --set ");
		quote(out, w->with.set[i]);
	}
	fprintf(out, " --seed %" PRIu64 "\n", w->scenario.seed);
	fprintf(out, "# Found by %s. Expected of it, simulated over %" PRIu32 " steps: %.6g samples/s", c->name,
		w->rounds, c->samples_per_s);
	if (start->tried && !w->published)
		fprintf(out, "; the allocation before: %.6g", start->samples_per_s);
	if (w->random_rate.count > 1)
		fprintf(out, "; random ones: %s", skep_mean_text(w->random_rate.mean, w->random_rate.half, rate));
	fprintf(out, "\n");
	skep_planner_print_stated(w, "#   ", out);
	if (w->settings)
		write_settings(w->settings, out);
	for (uint32_t i = 0; i < w->planning.stages; i++) {
		skep_planner_members(w, c->stage_of, i, stage_workers, sizeof stage_workers);
		fprintf(out, "#   stage %" PRIu32 ": ", i);
		write_layers(w, i, out);
		say(out, stage_workers);
		fprintf(out, "\n");
	}
	if (skep_planner_left_out(w, c->stage_of) > 0) {
		skep_planner_members(w, c->stage_of, SKEP_SPARE, stage_workers, sizeof stage_workers);
		fprintf(out, "#   left out: ");
		say(out, stage_workers);
		fprintf(out, "\n");
	}
	write_stages(w, planned, out);
}

/* The caller frees it; NULL: no memory. */
static char *compose(const struct skep_planner *w, const struct skep_scenario *planned)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	if (!out)
		return NULL;
	write_head(w, planned, out);
	fputs(planned->text, out);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

static bool fail(struct skep_planner *w, const char *path, const char *what)
{
	skep_planner_fail(w, STATUS_BAD_INPUT, "%s: %s", path, what);
	return false;
}

static bool reads(struct skep_planner *w, const char *path, const char *text, const struct skep_scenario_options *how)
{
	struct skep_scenario again;
	struct skep_diag diag = {0};
	if (skep_scenario_read_text(path, text, strlen(text), how, &again, &diag)) {
		skep_scenario_finish(&again);
		return true;
	}
	size_t used = strlen(diag.message);
	snprintf(diag.message + used, sizeof diag.message - used,
		"; it was not written, since it would not read from there: take a folder from which the files that it names "
		"are found");
	w->error = diag;
	return false;
}

static bool store(struct skep_planner *w, const char *path, const char *text)
{
	struct skep_diag diag = {0};
	return skep_file_write(path, text, strlen(text), &diag) || fail(w, path, diag.message);
}

/* What is searched for may yet make room in memory, but moves no file. */
bool skep_planner_may_write(struct skep_planner *w, const char *path)
{
	static const struct skep_scenario_options how = {.any_memory = true};
	return reads(w, path, w->scenario.text, &how);
}

bool skep_planner_write(struct skep_planner *w, const char *path)
{
	struct skep_scenario planned;
	struct skep_diag diag = {0};
	if (!skep_planner_read(w, w->candidate[w->chosen].stage_of, NULL, NULL, &planned, &diag))
		return fail(w, path, "not enough memory to write it");
	char *text = compose(w, &planned);
	bool done = text ? reads(w, path, text, NULL) && store(w, path, text)
	                 : fail(w, path, "not enough memory to write it");
	free(text);
	skep_scenario_finish(&planned);
	return done;
}
