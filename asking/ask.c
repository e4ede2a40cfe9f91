/* SPDX-License-Identifier: Apache-2.0
 *
 * ask.c - see ask.h.
 */
#include "asking/ask.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "asking/answer.h"
#include "asking/loss.h"
#include "base/clock.h"
#include "base/files/outputs.h"
#include "base/layout.h"
#include "base/options.h"
#include "topologies/gpu/gpu.h"

#define HELP_SEEDS 8u      /* where machines come and go; the paired gain of what helps by 5 % is told then */
#define HELP_SEEDS_STAY 4u /* where they stay, seeds differ little */
#define ADAM_BYTES 20.0    /* of a parameter in mixed precision (docs/costs.md) */

/* ---- progress -------------------------------------------------------------------------------------------------------- */

struct phases {
	bool visible, drawn; /* a line that is drawn anew, else one behind the other */
	uint32_t phase;
};

static void begin_phase(struct phases *p, const char *what)
{
	p->phase++;
	if (p->visible)
		fprintf(stderr, p->drawn ? "\rskep: %u of 5: %s\033[K" : "skep: %u of 5: %s\n", p->phase, what);
}

static void end_phases(struct phases *p)
{
	if (p->visible && p->drawn && p->phase > 0)
		fputs("\r\033[K", stderr);
	p->visible = false;
}

/* ---- the question as files --------------------------------------------------------------------------------------------- */

static void name_folder(const struct skep_ask_request *r, char *ret, size_t size)
{
	if (r->folder) {
		snprintf(ret, size, "%s", r->folder);
		return;
	}
	char base[64];
	snprintf(base, sizeof base, "%.60s", skep_path_base(r->model));
	base[strcspn(base, ".")] = '\0';
	snprintf(ret, size, "ask-%s", base);
	for (char *c = ret; *c; c++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_", *c))
			*c = '-';
}

/* The batch of GPT-3's models of about this size (Brown et al. 2020, table 2.1). */
static double usual_batch(double parameters)
{
	return parameters < 1e9 ? 0.5 * (1 << 20) : parameters < 5e9 ? 1 << 20 : 2 << 20;
}

/* How many stages the memory of the largest cards asks for; false: all cards together have too little. */
static bool ask_memory(struct skep_ask_answer *a, struct skep_diag *reterr)
{
	const struct skep_ask_question *q = &a->question;
	double largest = 0, all = 0, need = ADAM_BYTES * a->model.parameters;
	for (uint32_t i = 0; i < q->groups; i++) {
		struct skep_gpu gpu;
		if (!skep_gpu_read(a->files.topology, q->group[i].base, &gpu, reterr))
			return false;
		largest = fmax(largest, gpu.memory_bytes);
		all += q->group[i].count * gpu.memory_bytes;
		skep_gpu_finish(&gpu);
	}
	if (need > all)
		return skep_fail(reterr,
			"%s does not fit: %.3g parameters take %.4g GB with AdamW in mixed precision (%.0f bytes each), "
			"and all machines together have %.4g GB: ask for a smaller model, more machines or larger ones",
			a->model.name, a->model.parameters, need * 1e-9, ADAM_BYTES, all * 1e-9);
	a->job.stages_least = 1;
	while (need / a->job.stages_least > 0.85 * largest && 2 * a->job.stages_least <= q->machines &&
		2 * a->job.stages_least <= a->model.layers)
		a->job.stages_least *= 2;
	return true;
}

/* As many as there are layers and machines; one sentence of the option, not of a file that the user has not written. */
static bool stages_fit(const struct skep_ask_answer *a, struct skep_diag *reterr)
{
	uint32_t stages = a->question.request->stages, layers = a->model.layers, machines = a->question.machines;
	char text[16];
	snprintf(text, sizeof text, "%u", stages);
	if (stages > layers)
		skep_diag_set(reterr, "--stages", 0, 1, text, "%s has %u layers: expected at most as many stages",
			a->model.name, layers);
	else if (stages > machines)
		skep_diag_set(reterr, "--stages", 0, 1, text,
			"--gpus has %u machine%s, and each stage needs one: expected at most as many stages", machines,
			skep_plural(machines));
	return !reterr->set;
}

static bool fill_job(struct skep_ask_answer *a, struct skep_diag *reterr)
{
	struct skep_ask_question *q = &a->question;
	char text[SKEP_TEXT_BYTES];
	double batch = q->batch_tokens > 0 ? q->batch_tokens : usual_batch(a->model.parameters);
	a->job = (struct skep_ask_job){.question = q, .model = &a->model, .law = &a->law};
	a->job.tokens = q->tokens > 0 ? q->tokens : 20 * a->model.parameters;
	double samples = fmax(1, round(batch / a->model.sequence / 16)) * 16;
	a->job.samples = (uint32_t)samples;
	batch = samples * a->model.sequence;
	if (!skep_ask_loss_make(&a->model, batch, &a->law, &a->law_outside, reterr) || !ask_memory(a, reterr))
		return false;
	a->job.target_loss = skep_ask_loss_target(&a->law, a->job.tokens);
	double steps = ceil(a->job.tokens / batch);
	a->job.steps_most = (uint32_t)fmin(4 * steps + 2000, 1e9);
	if (steps > 2e8)
		return skep_fail(reterr, "--tokens: these are more than 200 million steps");
	if (steps < 20)
		return skep_fail(reterr,
			"--tokens: %.4g tokens are %.0f steps of %.4g tokens, too few to say anything: ask for more, or "
			"for smaller steps with --batch",
			a->job.tokens, steps, batch);
	if (a->job.tokens < a->law.least[SKEP_LAW_TOKENS])
		skep_ask_note(q, "the law of losses is asked below its data, which begin at %s tokens",
			skep_count_text(a->law.least[SKEP_LAW_TOKENS], text));
	if (q->tokens <= 0)
		skep_ask_note(q, "--tokens: 20 for each parameter (Hoffmann et al. 2022)");
	if (q->batch_tokens <= 0)
		skep_ask_note(q, "a step has %s tokens, as GPT-3's models of this size; --batch is another",
			skep_count_text(batch, text));
	return true;
}

static bool write_question(struct skep_ask_answer *a, const char *folder, struct skep_diag *reterr)
{
	const struct skep_ask_request *r = a->question.request;
	if (!skep_ask_files_begin(folder, r->force, &a->files, reterr))
		return false;
	bool own = a->model.file[0] != '\0';
	if (!own && !skep_ask_write_model(&a->model, a->files.model, reterr))
		return false;
	return skep_ask_model_measure(&a->model, own ? a->model.file : a->files.model, reterr) &&
	       stages_fit(a, reterr) && fill_job(a, reterr) && skep_ask_write_law(&a->law, a->files.law, reterr) &&
	       skep_ask_write_topology(&a->question, a->files.topology, reterr) &&
	       skep_ask_write_scenario(&a->job, &a->files, reterr);
}

/* ---- what is expected --------------------------------------------------------------------------------------------------- */

static enum status help(struct skep_ask_answer *a, struct skep_diag *reterr)
{
	int by = 0;
	bool ok = skep_ask_list_helps(a, &a->chosen, reterr);
	a->help_seeds = a->question.request->spot ? HELP_SEEDS : HELP_SEEDS_STAY;
	for (uint32_t i = 0; i < a->helps; i++)
		skep_ask_stretch(a, &a->help[i].variation, SKEP_ASK_COMPARED_EVENTS, a->help_seeds);
	ok = ok && skep_ask_try(a, a->help, a->helps, &by);
	skep_ask_finish_helps(a);
	return ok ? STATUS_DONE : skep_ask_died(by, reterr);
}

/* Of one stage nothing travels that could be compressed. */
static bool drop_compression(struct skep_ask_answer *a, struct skep_diag *reterr)
{
	if (a->chosen.plan.stages > 1)
		return true;
	if (!skep_assignments_add(&a->base, "schedule.compression=null"))
		return skep_fail(reterr, "not enough memory to write the scenario");
	skep_scenario_finish(&a->chosen);
	a->has_chosen = skep_assignments_read(&a->base, &a->chosen, reterr);
	return a->has_chosen;
}

static bool write_chosen(struct skep_ask_answer *a, struct skep_diag *reterr)
{
	char *text = NULL, method[400];
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	if (!out)
		return skep_fail(reterr, "not enough memory to write the scenario");
	skep_ask_method(&a->chosen, method, sizeof method);
	skep_ask_write_head(&a->question, out);
	fprintf(out, "# %s. Expected: %.3g h (95 %% of runs: %.3g to %.3g)", method, a->time_s.mean / 3600,
		a->time_s.low / 3600, a->time_s.high / 3600);
	if (!isnan(a->usd.mean))
		fprintf(out, ", %.4g USD", a->usd.mean);
	fputs(".\n# To train for real: --set train.arithmetic=real --set 'train.data={corpus: tokens, "
	      "file: \"YOURS*.bin\"}'.\n",
		out);
	fputs(a->chosen.text, out);
	bool ok = fclose(out) == 0;
	ok = ok ? skep_file_write(a->files.scenario, text, bytes, reterr) : skep_fail(reterr, "not enough memory");
	free(text);
	return ok;
}

/* ---- all of it --------------------------------------------------------------------------------------------------------- */

static enum status find_out(struct skep_ask_answer *a, const char *folder, struct skep_diag *reterr)
{
	const struct skep_ask_request *r = a->question.request;
	struct phases phases = {.visible = !r->quiet && !r->json && isatty(STDERR_FILENO), .drawn = skep_say_draws()};
	if (!write_question(a, folder, reterr)) {
		skep_ask_files_abandon(&a->files);
		return STATUS_BAD_INPUT;
	}
	begin_phase(&phases, "looks for settings and who serves what");
	enum status status = skep_ask_plan(a, reterr);
	if (status == STATUS_DONE) {
		begin_phase(&phases, "compares it with other settings");
		status = skep_ask_compare(a, reterr);
	}
	if (status == STATUS_DONE) {
		begin_phase(&phases, "simulates what was chosen");
		status = skep_ask_state(a, reterr);
	}
	if (status == STATUS_DONE) {
		begin_phase(&phases, "looks for what the other aim would choose");
		status = skep_ask_find_other_aim(a, reterr);
	}
	if (status == STATUS_DONE) {
		begin_phase(&phases, "tries what would help");
		status = help(a, reterr);
	}
	if (status == STATUS_DONE)
		status = skep_ask_find_uncertain(a, reterr);
	if (status == STATUS_DONE) {
		skep_ask_scale(a->other, a->others, &a->figures);
		skep_ask_scale(a->help, a->helps, &a->figures);
	}
	end_phases(&phases);
	if (status == STATUS_DONE && !(drop_compression(a, reterr) && write_chosen(a, reterr)))
		status = STATUS_FAILED;
	if (status != STATUS_DONE)
		skep_ask_files_abandon(&a->files);
	return status;
}

enum status skep_ask(const struct skep_ask_request *request)
{
	struct skep_ask_answer *a = calloc(1, sizeof *a);
	struct skep_diag error = {0};
	char folder[1000], topology[1100];
	enum status status = STATUS_BAD_INPUT;
	if (!a) {
		fputs("skep: not enough memory to answer this\n", stderr);
		return STATUS_FAILED;
	}
	a->begin_s = skep_monotonic_s();
	name_folder(request, folder, sizeof folder);
	snprintf(topology, sizeof topology, "%s/topology.yaml", folder);
	if (skep_ask_model_find(request->model, &a->model, &error) &&
		skep_ask_read(request, topology, &a->question, &error))
		status = find_out(a, folder, &error);
	a->wall_s = skep_monotonic_s() - a->begin_s;
	if (error.set)
		skep_report_diag(status, &error);
	if (status == STATUS_DONE && request->json)
		skep_ask_print_json(a, stdout);
	else if (status == STATUS_DONE)
		skep_ask_print(a, stdout);
	if (a->has_chosen)
		skep_scenario_finish(&a->chosen);
	skep_assignments_finish(&a->base);
	free(a);
	return status;
}
