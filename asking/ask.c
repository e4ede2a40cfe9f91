/* SPDX-License-Identifier: Apache-2.0
 *
 * ask.c - see ask.h.
 */
#include "asking/ask.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "asking/answer.h"
#include "asking/loss.h"
#include "base/clock.h"
#include "base/files/outputs.h"
#include "base/options.h"
#include "planning/plan/free_settings.h"
#include "planning/plan/make_plan.h"
#include "topologies/gpu/gpu.h"

#define COMPARED_EVENTS 1.2e5 /* of a stretch, to compare */
#define COMPARED_SEEDS 2u
#define STATED_EVENTS 1e6  /* to state what is expected ... */
#define CHURN_EVENTS 2.5e6 /* ... where machines come and go: whole runs, unless they are long */
#define STATED_SEEDS 8u
#define COMPARISONS 6u
#define COMPARE_S 18.0 /* of processor time; later than that nothing takes the place of the choice any more */
#define OWN_SEED 1000u /* stretches have seeds behind those of the planner */
#define AS_FAST 1.005  /* of the time: then what is cheaper by this much is better */
#define CHEAPER 0.97
#define ADAM_BYTES 20.0 /* of a parameter in mixed precision (docs/costs.md) */

/* ---- progress -------------------------------------------------------------------------------------------------------- */

struct phases {
	bool visible;
	uint32_t phase;
};

static void begin_phase(struct phases *p, const char *what)
{
	p->phase++;
	if (p->visible)
		fprintf(stderr, "\rskep: %u of 4: %s\033[K", p->phase, what);
}

static void end_phases(struct phases *p)
{
	if (p->visible && p->phase > 0)
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

static bool fill_job(struct skep_ask_answer *a, struct skep_diag *reterr)
{
	struct skep_ask_question *q = &a->question;
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
		skep_ask_note(q, "the law of losses is asked below its data, which begin at %.3g tokens",
			a->law.least[SKEP_LAW_TOKENS]);
	if (q->tokens <= 0)
		skep_ask_note(q, "--tokens: 20 for each parameter (Hoffmann et al. 2022)");
	if (q->batch_tokens <= 0)
		skep_ask_note(q, "a step has %.4g tokens, as GPT-3's models of this size; --batch is another", batch);
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
	return skep_ask_model_measure(&a->model, own ? a->model.file : a->files.model, reterr) && fill_job(a, reterr) &&
	       skep_ask_write_law(&a->law, a->files.law, reterr) &&
	       skep_ask_write_topology(&a->question, a->files.topology, reterr) &&
	       skep_ask_write_scenario(&a->job, &a->files, reterr);
}

/* ---- the choice -------------------------------------------------------------------------------------------------------- */

static enum status plan(struct skep_ask_answer *a, struct skep_diag *reterr)
{
	const struct skep_planner_options options = {.path = a->files.scenario,
		.budget_s = a->question.request->budget_s,
		.processes = a->question.request->processes,
		.unstated = true};
	struct skep_planner *w = malloc(sizeof *w);
	if (!w) {
		skep_fail(reterr, "not enough memory to plan this");
		return STATUS_FAILED;
	}
	enum status status = skep_plan_begin(w, &options);
	if (status == STATUS_DONE)
		status = skep_plan_choose(w);
	if (status == STATUS_DONE) {
		char *allocation = skep_planning_assignment(&w->planning, w->candidate[w->chosen].stage_of);
		uint32_t simulated = 0;
		for (uint32_t i = 0; w->settings && i < w->settings->points; i++)
			simulated += w->settings->point[i].rung >= SKEP_RUNG_TRIAL;
		a->looked_at = w->settings ? w->settings->points - 1 : 1;
		a->simulated = simulated;
		if (!allocation || !skep_assignments_copy(&w->with, &a->base) ||
			!skep_assignments_add(&a->base, "plan=null") || !skep_assignments_add(&a->base, allocation)) {
			skep_fail(reterr, "not enough memory to plan this");
			status = STATUS_FAILED;
		}
		free(allocation);
	}
	if (status != STATUS_DONE && !reterr->set)
		*reterr = w->error;
	skep_plan_end(w);
	free(w);
	return status;
}

static bool read_chosen(struct skep_ask_answer *a, struct skep_diag *reterr)
{
	if (a->has_chosen)
		skep_scenario_finish(&a->chosen);
	a->has_chosen = skep_assignments_read(&a->base, &a->chosen, reterr);
	return a->has_chosen;
}

/* How long stretches are, and where in the run. */
static void stretch(struct skep_ask_answer *a, struct skep_ask_variation *v, double events, uint32_t seeds)
{
	v->events = events;
	v->seeds = seeds;
	if (!a->question.request->spot || v->stays)
		return;
	double run_s = a->figures.time_s > 0 ? a->figures.time_s : 4 * 3600;
	v->spread_s = fmin(run_s, 20 * 86400.0);
}

static bool evaluate(struct skep_ask_answer *a, struct skep_ask_tried *tried, uint32_t count, int *ret_signal)
{
	struct skep_ask_variation *variation = calloc(count, sizeof *variation);
	struct skep_ask_figures *figures = calloc(count, sizeof *figures);
	bool ok = variation && figures;
	for (uint32_t i = 0; ok && i < count; i++)
		variation[i] = tried[i].variation;
	ok = ok && skep_ask_evaluate(&a->base, variation, count, a->question.request->processes, figures, ret_signal);
	for (uint32_t i = 0; ok && i < count; i++)
		tried[i].figures = figures[i];
	free(variation);
	free(figures);
	return ok;
}

/* What is as fast is better if it is cheaper; what is hardly faster is not if it is dear. */
static bool takes_its_place(const struct skep_ask_figures *own, const struct skep_ask_figures *f, bool money)
{
	double mine = skep_ask_usd(own), theirs = skep_ask_usd(f);
	if (!own->ok || (own->lost > 0 && f->lost == 0)) /* it may come to no end, and the other one does */
		return true;
	if (f->lost > 0)
		return false;
	if (money)
		return theirs < SKEP_ASK_BETTER * mine;
	if (f->time_s < SKEP_ASK_BETTER * own->time_s)
		return f->time_s < SKEP_ASK_MUCH_BETTER * own->time_s || !(theirs > SKEP_ASK_DEAR * mine);
	return f->time_s < AS_FAST * own->time_s && theirs < CHEAPER * mine;
}

static bool adopt_one(struct skep_ask_answer *a, const struct skep_ask_tried *best, bool *ret_adopted)
{
	bool ok = true;
	*ret_adopted = !best->figures.searched || best->figures.allocation[0] != '\0';
	if (!*ret_adopted)
		return true;
	for (uint32_t i = 0; ok && i < best->variation.sets; i++)
		ok = skep_assignments_add(&a->base, best->variation.set[i]);
	for (uint32_t i = 0; ok && i < best->figures.fits; i++)
		ok = skep_assignments_add(&a->base, best->figures.fit[i]);
	if (ok && best->figures.searched)
		ok = skep_assignments_add(&a->base, best->figures.allocation);
	return ok;
}

/* One key of a method that all of the two have, which says nothing of the others: "" if it is not that. */
static void lone_key(const struct skep_ask_tried *t, char *ret, size_t size)
{
	const char *set = t->variation.set[0];
	bool lone = t->variation.sets == 1 && t->figures.fits == 0 && !t->figures.searched;
	bool apart = strncmp(set, "sync.", 5) == 0 || strncmp(set, "schedule.", 9) == 0;
	snprintf(ret, size, "%.*s", lone && apart ? (int)strcspn(set, "=") : 0, set);
}

/* Beside the best, ranked first, what is better than the choice in another key: were each to wait for a comparison of its own,
 * time would not do for all. What does not go together, for want of memory, is left to the next comparison. */
static bool adopt_more(struct skep_ask_answer *a, const uint32_t *rank, uint32_t ranked, bool money)
{
	char key[SKEP_ASK_VARIATIONS_MAX][64];
	uint32_t before = a->base.sets, keys = 0;
	lone_key(&a->other[rank[0]], key[keys++], sizeof key[0]);
	for (uint32_t i = 1; key[0][0] != '\0' && i < ranked; i++) {
		const struct skep_ask_tried *t = &a->other[rank[i]];
		lone_key(t, key[keys], sizeof key[0]);
		bool other = key[keys][0] != '\0' && takes_its_place(&a->other[0].figures, &t->figures, money);
		for (uint32_t k = 0; k < keys; k++)
			other = other && strcmp(key[k], key[keys]) != 0;
		if (other && !skep_assignments_add(&a->base, t->variation.set[0]))
			return false;
		keys += other;
	}
	struct skep_scenario together;
	struct skep_diag ignored = {0};
	if (skep_assignments_read(&a->base, &together, &ignored))
		skep_scenario_finish(&together);
	else
		skep_assignments_cut(&a->base, before);
	return true;
}

/* What is better than the choice by more than a little takes its place. */
static bool adopt(struct skep_ask_answer *a, bool *ret_adopted)
{
	uint32_t rank[SKEP_ASK_VARIATIONS_MAX];
	bool money = a->question.request->objective == SKEP_ASK_MONEY;
	uint32_t ranked = skep_ask_rank(a->other, a->others, money, rank);
	const struct skep_ask_figures *own = &a->other[0].figures;
	*ret_adopted = false;
	if (ranked == 0)
		return true;
	uint32_t first = 0;
	while (first < ranked && !takes_its_place(own, &a->other[rank[first]].figures, money))
		first++;
	if (first == ranked)
		return true;
	*ret_adopted = true;
	if (!adopt_one(a, &a->other[rank[first]], ret_adopted))
		return false;
	return !*ret_adopted || adopt_more(a, rank + first, ranked - first, money);
}

static enum status fail(enum status status, struct skep_diag *reterr, const char *what)
{
	skep_fail(reterr, "%s", what);
	return status;
}

/* Processor time of this process and of those that it has ended: what is compared shall not depend on what else the machine
 * does. */
static double used_s(void)
{
	double sum = 0;
	for (int who = 0; who < 2; who++) {
		struct rusage usage;
		if (getrusage(who == 0 ? RUSAGE_SELF : RUSAGE_CHILDREN, &usage) == 0)
			sum += (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
			       1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
	}
	return sum;
}

/* Compares other settings, and again where one of them takes the place of the choice. */
static enum status compare(struct skep_ask_answer *a, struct skep_diag *reterr)
{
	bool adopted = true;
	double begin_s = used_s();
	for (uint32_t pass = 0; adopted && pass < COMPARISONS; pass++) {
		int by = 0;
		if (!read_chosen(a, reterr))
			return STATUS_FAILED;
		if (pass == 0)
			skep_ask_list_first(a);
		else
			skep_ask_list_others(a, &a->chosen);
		for (uint32_t i = 0; i < a->others; i++)
			stretch(a, &a->other[i].variation, COMPARED_EVENTS, COMPARED_SEEDS);
		if (!evaluate(a, a->other, a->others, &by))
			return by != 0 ? (enum status)(STATUS_SIGNAL + by)
			               : fail(STATUS_FAILED, reterr, "a process that simulated has died");
		a->figures = a->other[0].figures;
		bool late =
			pass > 1 && used_s() - begin_s > COMPARE_S; /* the first is of who takes part, and how often */
		if (late || pass + 1 == COMPARISONS)
			break;
		if (!adopt(a, &adopted))
			return fail(STATUS_FAILED, reterr, "not enough memory to compare settings");
		adopted = adopted || pass == 0;
	}
	return a->figures.ok ? STATUS_DONE : fail(STATUS_FAILED, reterr, a->figures.why);
}

/* ---- what is expected --------------------------------------------------------------------------------------------------- */

static enum status help(struct skep_ask_answer *a, struct skep_diag *reterr)
{
	int by = 0;
	bool ok = skep_ask_list_helps(a, &a->chosen, reterr);
	for (uint32_t i = 0; i < a->helps; i++)
		stretch(a, &a->help[i].variation, COMPARED_EVENTS, COMPARED_SEEDS);
	ok = ok && evaluate(a, a->help, a->helps, &by);
	skep_ask_finish_helps(a);
	if (ok)
		return STATUS_DONE;
	return by != 0 ? (enum status)(STATUS_SIGNAL + by)
	               : fail(STATUS_FAILED, reterr, "a process that simulated has died");
}

/* Each seed is a job of its own, so that they are done side by side; each in a part of the run of its own. */
static void list_seeds(struct skep_ask_answer *a, struct skep_ask_variation v[STATED_SEEDS])
{
	for (uint32_t i = 0; i < STATED_SEEDS; i++) {
		v[i] = (struct skep_ask_variation){.question = &a->question, .keeps = true, .from_start = true};
		stretch(a, &v[i], a->question.request->spot ? CHURN_EVENTS : STATED_EVENTS, 1);
		v[i].spread_s /= STATED_SEEDS;
		v[i].start_s = v[i].spread_s * i;
		snprintf(v[i].set[v[i].sets++], sizeof v[i].set[0], "seed=%llu",
			(unsigned long long)(a->question.request->seed + OWN_SEED + i));
	}
}

/* What crosses between sites, as the mean of those that came to an end. */
static void take_traffic(struct skep_ask_figures *to, const struct skep_ask_figures f[STATED_SEEDS], uint32_t count)
{
	for (uint32_t from = 0; from < SKEP_ASK_SITES_MAX; from++)
		for (uint32_t there = 0; there < SKEP_ASK_SITES_MAX; there++) {
			double sum = 0;
			for (uint32_t i = 0; i < STATED_SEEDS; i++)
				sum += f[i].ok ? f[i].bytes[from][there] : 0;
			to->bytes[from][there] = sum / count;
		}
	to->state_bytes = 0;
	for (uint32_t i = 0; i < STATED_SEEDS; i++)
		to->state_bytes += f[i].ok ? f[i].state_bytes / count : 0;
}

/* The means of those that came to an end become those of the choice. */
static uint32_t take_seeds(struct skep_ask_answer *a, const struct skep_ask_figures f[STATED_SEEDS])
{
	double time_s[STATED_SEEDS], usd[STATED_SEEDS], egress = 0;
	uint32_t count = 0, last = 0;
	for (uint32_t i = 0; i < STATED_SEEDS; i++) {
		if (!f[i].ok)
			continue;
		time_s[count] = f[i].time_s;
		usd[count++] = skep_ask_usd(&f[i]);
		egress += f[i].usd_egress;
		last = i;
	}
	if (count == 0)
		return 0;
	a->figures = f[last];
	a->time_s = skep_interval_of_one_more(time_s, count); /* it is one run that is paid for, not the mean of many */
	a->usd = skep_interval_of_one_more(usd, count);
	a->figures.time_s = a->time_s.mean;
	a->figures.step_s = a->time_s.mean / a->figures.steps;
	a->figures.usd_egress = egress / count;
	take_traffic(&a->figures, f, count);
	a->figures.usd_machines = a->usd.mean - a->figures.usd_egress;
	a->figures.stretches = count;
	a->figures.lost = STATED_SEEDS - count;
	return count;
}

static enum status state(struct skep_ask_answer *a, struct skep_diag *reterr)
{
	struct skep_ask_variation v[STATED_SEEDS];
	struct skep_ask_figures *f = calloc(STATED_SEEDS, sizeof *f);
	int by = 0;
	list_seeds(a, v);
	bool ok = f && skep_ask_evaluate(&a->base, v, STATED_SEEDS, a->question.request->processes, f, &by);
	enum status status = STATUS_DONE;
	if (!ok)
		status = by != 0 ? (enum status)(STATUS_SIGNAL + by)
		                 : fail(STATUS_FAILED, reterr, "a process that simulated has died");
	else if (take_seeds(a, f) == 0)
		status = fail(STATUS_FAILED, reterr, f[0].why);
	free(f);
	return status;
}

/* What was compared was so with fewer events than the choice was stated with: the ratios are theirs, what they are ratios of is
 * that of the choice. */
static void scale(struct skep_ask_answer *a, struct skep_ask_tried *tried, uint32_t count)
{
	double times = a->time_s.mean / tried[0].figures.time_s, usd = a->usd.mean / skep_ask_usd(&tried[0].figures);
	for (uint32_t i = 0; i < count; i++) {
		struct skep_ask_figures *f = &tried[i].figures;
		f->time_s *= times;
		f->step_s *= times;
		f->usd_machines *= usd;
		f->usd_egress *= usd;
	}
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
	struct phases phases = {.visible = !r->quiet && !r->json && isatty(STDERR_FILENO)};
	if (!write_question(a, folder, reterr)) {
		skep_ask_files_abandon(&a->files);
		return STATUS_BAD_INPUT;
	}
	begin_phase(&phases, "looks for settings and who serves what");
	enum status status = plan(a, reterr);
	if (status == STATUS_DONE) {
		begin_phase(&phases, "compares it with other settings");
		status = compare(a, reterr);
	}
	if (status == STATUS_DONE) {
		begin_phase(&phases, "tries what would help");
		status = help(a, reterr);
	}
	if (status == STATUS_DONE) {
		begin_phase(&phases, "simulates what was chosen");
		status = state(a, reterr);
	}
	if (status == STATUS_DONE) {
		scale(a, a->other, a->others);
		scale(a, a->help, a->helps);
	}
	end_phases(&phases);
	return status == STATUS_DONE && !write_chosen(a, reterr) ? STATUS_FAILED : status;
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
