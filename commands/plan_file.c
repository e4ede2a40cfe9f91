/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_file.c - `skep plan -o FILE`: the scenario as it was read, with the allocation in it that was chosen, and above it what
 * that is and what is expected of it.
 *
 * Keeps true: the file appears whole or not at all, and only if it reads as a scenario from where it lies; the scenario that it
 * came from, whose comments it has not, and the files that this one names are never overwritten.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commands/output.h"
#include "commands/plan_confirm.h"
#include "commands/plan_joint.h"
#include "commands/plan_out.h"
#include "scenarios/layout.h"
#include "scenarios/reader/replace.h"

#define HEAD "# Who serves which stage, from: skep plan "

static bool fail(const char *path, const char *what)
{
	fprintf(stderr, "skep: %s: %s\n", path, what);
	return false;
}

/* A name may hold what would end a comment. */
static void say(FILE *out, const char *text)
{
	for (; *text; text++)
		fputc((unsigned char)*text < ' ' ? ' ' : *text, out);
}

/* As --explain has them, each line a comment. */
static void write_stages(const struct plan_work *w, const struct skep_scenario *planned, FILE *out)
{
	char *text = NULL;
	size_t bytes;
	FILE *table = open_memstream(&text, &bytes);
	if (!table)
		return;
	plan_print_stages(w, planned, table);
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
static void write_layers(const struct plan_work *w, uint32_t stage, FILE *out)
{
	uint32_t slices = skep_plan_slices(&w->scenario.plan), first, layers;
	for (uint32_t slice = stage; w->cut && slice < slices; slice += w->planning.stages) {
		skep_model_cut(&w->scenario.model, slices, slice, &first, &layers);
		fprintf(out, "%s%" PRIu32 "-%" PRIu32 "%s", slice == stage ? "layers " : ", ", first,
			first + layers - 1, slice + w->planning.stages < slices ? "" : ": ");
	}
}

static void write_head(const struct plan_work *w, const struct skep_scenario *planned, FILE *out)
{
	const struct plan_candidate *c = &w->candidate[w->chosen], *start = &w->candidate[0];
	char crew[600], rate[SKEP_TEXT_BYTES];
	fprintf(out, HEAD);
	say(out, w->arguments->positional[0]);
	for (uint32_t i = 0; i < (w->cut ? w->given_sets : w->arguments->scenario.sets); i++) {
		fprintf(out, " --set '");
		say(out, w->arguments->scenario.set[i]);
		fprintf(out, "'");
	}
	fprintf(out, " --seed %" PRIu64 "\n", w->scenario.seed);
	fprintf(out, "# Found by %s. Expected of it, simulated over %" PRIu32 " steps: %.6g samples/s", c->name,
		w->rounds, c->samples_per_s);
	if (start->tried)
		fprintf(out, "; the allocation before: %.6g", start->samples_per_s);
	if (w->random_rate.count > 1)
		fprintf(out, "; random ones: %s", skep_mean_text(w->random_rate.mean, w->random_rate.half, rate));
	fprintf(out, "\n");
	plan_confirm_print_stated(w, "#   ", out);
	if (w->joint)
		plan_joint_write(w->joint, out);
	for (uint32_t i = 0; i < w->planning.stages; i++) {
		plan_crew(w, c->stage_of, i, crew, sizeof crew);
		fprintf(out, "#   stage %" PRIu32 ": ", i);
		write_layers(w, i, out);
		say(out, crew);
		fprintf(out, "\n");
	}
	plan_out_write(w, out);
	write_stages(w, planned, out);
}

/* The caller frees it; NULL: no memory. */
static char *compose(const struct plan_work *w, const struct skep_scenario *planned)
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

/* What can be known before anything is searched for. */
bool plan_writable(const struct arguments *a)
{
	struct stat st;
	char folder[PATH_MAX + 64];
	const char *path = a->output, *slash = strrchr(path, '/');
	if (path[0] == '\0')
		return fail("-o", "expected the name of a file");
	if (strlen(path) >= PATH_MAX)
		return fail("-o", "the name of the file is too long");
	if (skep_replace_same(path, a->positional[0]))
		return fail(path, "is the scenario itself, whose comments would be lost: take another name");
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
		return fail(path, S_ISDIR(st.st_mode) ? "is a folder: name a file in it" : "is no regular file");
	snprintf(folder, sizeof folder, "%.*s",
		slash == path ? 1
		: slash       ? (int)(slash - path)
			      : 1,
		slash ? path : ".");
	if (stat(folder, &st) != 0 || !S_ISDIR(st.st_mode))
		return fail(path, "the folder that it is to be in is not there: make it first");
	if (euidaccess(folder, W_OK | X_OK) == 0)
		return skep_output_ready(a, HEAD);
	snprintf(folder, sizeof folder, "its folder cannot be written to: %s", strerror(errno));
	return fail(path, folder);
}

static bool reads(const char *path, const char *text)
{
	struct skep_scenario again;
	struct skep_diag diag = {0};
	char said[2048];
	if (skep_scenario_read_text(path, text, strlen(text), NULL, &again, &diag)) {
		skep_scenario_finish(&again);
		return true;
	}
	skep_diag_print(&diag, said, sizeof said);
	fputs(said, stderr);
	return fail(path,
		"not written, since it would not read from there: take a folder from which the files that it names are found");
}

static bool store(const char *path, const char *text)
{
	char *part = NULL;
	if (asprintf(&part, "%s.part", path) < 0)
		return fail(path, "not enough memory to write it");
	FILE *out = fopen(part, "w");
	bool wrote = out && fputs(text, out) >= 0;
	wrote = out && fclose(out) == 0 && wrote;
	wrote = wrote && rename(part, path) == 0;
	int error = errno;
	if (!wrote && out)
		unlink(part);
	free(part);
	return wrote || fail(path, strerror(error));
}

bool plan_write(const struct plan_work *w)
{
	const char *path = w->arguments->output;
	struct skep_scenario planned;
	struct skep_diag diag = {0};
	if (!plan_trial_read(w, w->candidate[w->chosen].stage_of, &planned, &diag))
		return fail(path, "not enough memory to write it");
	char *text = compose(w, &planned);
	bool done = text ? reads(path, text) && store(path, text) : fail(path, "not enough memory to write it");
	free(text);
	skep_scenario_finish(&planned);
	return done;
}
