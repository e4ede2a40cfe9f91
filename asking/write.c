/* SPDX-License-Identifier: Apache-2.0
 *
 * write.c - see write.h.
 */
#include "asking/write.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/outputs.h"
#include "base/files/replace.h"

/* ---- files --------------------------------------------------------------------------------------------------------- */

static bool is_free(const char *path, bool force, struct skep_diag *reterr)
{
	return force || skep_replace_written(path, SKEP_ASK_HEAD, reterr);
}

/* A folder with none of the files of an answer and with something else is not one that an answer has made. */
static bool is_own_folder(const struct skep_ask_files *f, struct skep_diag *reterr)
{
	const char *const file[] = {f->scenario, f->topology, f->model, f->law};
	struct stat st;
	for (uint32_t i = 0; i < sizeof file / sizeof file[0]; i++)
		if (stat(file[i], &st) == 0 && st.st_size > 0) /* is_free() has seen who wrote it */
			return true;
	DIR *dir = opendir(f->folder);
	if (!dir)
		return skep_fail(reterr, "%s: the folder cannot be read: %s", f->folder, strerror(errno));
	char other[64] = "";
	for (const struct dirent *e = readdir(dir); e && !other[0]; e = readdir(dir))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			snprintf(other, sizeof other, "%.60s", e->d_name);
	closedir(dir);
	return !other[0] ||
	       skep_fail(reterr,
		       "%s: has other files (%s), and none that this command has written: take another folder, or --force",
		       f->folder, other);
}

static bool is_file_name(const char *folder)
{
	const char *ending = strrchr(skep_path_base(folder), '.');
	return ending && (strcmp(ending, ".yaml") == 0 || strcmp(ending, ".yml") == 0);
}

bool skep_ask_files_begin(const char *folder, bool force, struct skep_ask_files *ret, struct skep_diag *reterr)
{
	struct stat st;
	if (folder[0] == '\0' || strlen(folder) >= sizeof ret->folder - 1)
		return skep_fail(reterr, "-o: expected the name of a folder, of at most 1000 bytes");
	if (is_file_name(folder))
		return skep_fail(reterr,
			"-o: %s is the name of a file: expected that of a folder, in which the scenario will be "
			"scenario.yaml",
			folder);
	snprintf(ret->folder, sizeof ret->folder, "%s", folder);
	snprintf(ret->topology, sizeof ret->topology, "%s/topology.yaml", folder);
	snprintf(ret->model, sizeof ret->model, "%s/model.yaml", folder);
	snprintf(ret->law, sizeof ret->law, "%s/law.yaml", folder);
	snprintf(ret->scenario, sizeof ret->scenario, "%s/scenario.yaml", folder);
	ret->made = mkdir(folder, 0777) == 0;
	if (!ret->made && errno != EEXIST)
		return skep_fail(reterr, "%s: the folder cannot be made: %s", folder, strerror(errno));
	if (stat(folder, &st) != 0 || !S_ISDIR(st.st_mode))
		return skep_fail(reterr, "%s: is no folder: name another one with -o", folder);
	return is_free(ret->topology, force, reterr) && is_free(ret->model, force, reterr) &&
	       is_free(ret->law, force, reterr) && is_free(ret->scenario, force, reterr) &&
	       (force || ret->made || is_own_folder(ret, reterr));
}

void skep_ask_files_abandon(const struct skep_ask_files *f)
{
	if (!f->made)
		return;
	unlink(f->topology);
	unlink(f->model);
	unlink(f->law);
	unlink(f->scenario);
	rmdir(f->folder);
}

/* Text in memory, which becomes the file as a whole. */
struct sheet {
	FILE *out;
	char *text;
	size_t bytes;
};

static bool begin(struct sheet *sheet, struct skep_diag *reterr)
{
	*sheet = (struct sheet){.text = NULL};
	sheet->out = open_memstream(&sheet->text, &sheet->bytes);
	return sheet->out || skep_fail(reterr, "not enough memory to answer this");
}

static bool finish(struct sheet *sheet, const char *path, struct skep_diag *reterr)
{
	bool ok = fclose(sheet->out) == 0;
	ok = ok ? skep_file_write(path, sheet->text, sheet->bytes, reterr)
	        : skep_fail(reterr, "not enough memory to answer this");
	free(sheet->text);
	return ok;
}

/* Control characters would end the comment. */
static void say(const char *option, const char *text, FILE *out)
{
	fprintf(out, " %s ", option);
	for (; *text; text++)
		fputc((unsigned char)*text < ' ' ? '?' : *text, out);
}

void skep_ask_write_head(const struct skep_ask_question *q, FILE *out)
{
	const struct skep_ask_request *r = q->request;
	fputs("# Written by: skep ask", out);
	say("--gpus", r->gpus, out);
	say("--model", r->model, out);
	if (r->tokens)
		say("--tokens", r->tokens, out);
	if (r->batch)
		say("--batch", r->batch, out);
	if (r->spot)
		fputs(" --spot", out);
	if (r->line)
		say("--line", r->line, out);
	for (uint32_t i = 0; i < r->sites; i++)
		say("--site", r->site[i], out);
	for (uint32_t i = 0; i < r->links; i++)
		say("--link", r->link[i], out);
	for (uint32_t i = 0; i < r->prices; i++)
		say("--price", r->price[i], out);
	for (uint32_t i = 0; i < r->what_ifs; i++)
		say("--what-if", r->what_if[i], out);
	if (r->trace)
		say("--trace", r->trace, out);
	if (r->pipeline)
		say("--pipeline", r->pipeline, out);
	if (r->stages > 0)
		fprintf(out, " --stages %" PRIu32, r->stages);
	if (r->every > 0)
		fprintf(out, " --every %" PRIu32, r->every);
	if (r->objective == SKEP_ASK_MONEY)
		fputs(" --cheapest", out);
	fprintf(out, " --seed %" PRIu64 " --combinations %" PRIu32 "\n", r->seed, r->combinations);
}

/* ---- the topology ---------------------------------------------------------------------------------------------------- */

static void write_rate(const char *key, double Bps, FILE *out)
{
	if (isfinite(Bps))
		fprintf(out, ", %s: %.6g Mbit/s", key, Bps * 8e-6);
}

static void write_site(const struct skep_ask_question *q, uint32_t site, FILE *out)
{
	const struct skep_ask_site *s = &q->site[site];
	fprintf(out, "  \"%s\":", s->name);
	fprintf(out, s->kind == SKEP_ASK_OWN ? "\n    machines:\n" : " # %s\n    machines:\n", s->region);
	for (uint32_t i = 0; i < q->groups; i++) {
		const struct skep_ask_group *g = &q->group[i];
		double price = g->price[q->request->spot];
		if (g->site != site || g->count == 0)
			continue;
		fprintf(out, "      - {count: %u, gpu: ", g->count);
		if (g->speed < 1 || g->speed > 1)
			fprintf(out, "{base: %s, speed: %.6g}", g->base, g->speed);
		else
			fputs(g->base, out);
		write_rate("up", s->up_Bps, out);
		write_rate("down", s->down_Bps, out);
		if (price > 0)
			fprintf(out, ", price: %.6g USD/h", price);
		fputs("}\n", out);
	}
	fprintf(out, "    inside: {bandwidth: %.6g Mbit/s, latency: %.6g ms}\n", s->inside_Bps * 8e-6,
		1e3 * s->inside_s);
}

static bool is_used(const struct skep_ask_question *q, uint32_t site)
{
	for (uint32_t i = 0; i < q->groups; i++)
		if (q->group[i].site == site && q->group[i].count > 0)
			return true;
	return false;
}

/* Where the directory runs: in a data centre if there is one. */
static uint32_t directory_of(const struct skep_ask_question *q)
{
	uint32_t first = UINT32_MAX;
	for (uint32_t i = 0; i < q->sites; i++) {
		if (is_used(q, i) && q->site[i].kind != SKEP_ASK_HOME)
			return i;
		if (is_used(q, i) && first == UINT32_MAX)
			first = i;
	}
	return first;
}

static void write_links(const struct skep_ask_question *q, FILE *out)
{
	bool any = false;
	for (uint32_t i = 0; i < q->sites; i++)
		for (uint32_t j = 0; j < q->sites; j++) {
			const struct skep_ask_link *l = &q->link[i][j];
			if (i == j || !is_used(q, i) || !is_used(q, j))
				continue;
			if (!any)
				fputs("links:\n", out);
			any = true;
			fprintf(out, "  - {from: \"%s\", to: \"%s\", bandwidth: %.6g Mbit/s, latency: %.6g ms%s",
				q->site[i].name, q->site[j].name, l->Bps * 8e-6, 1e3 * l->latency_s,
				l->shared ? ", shared: true" : "");
			if (!isnan(l->usd_per_byte))
				fprintf(out, ", egress: %.6g USD/GB", 1e9 * l->usd_per_byte);
			fputs("}\n", out);
		}
}

bool skep_ask_write_topology(const struct skep_ask_question *q, const char *path, struct skep_diag *reterr)
{
	struct sheet sheet;
	if (!begin(&sheet, reterr))
		return false;
	skep_ask_write_head(q, sheet.out);
	fputs("# Bandwidth, latency and egress between regions: Skyplane, 2022 "
	      "(topologies/regions/cloud-links.csv). Homes: SimBlock, "
	      "2019.\n# Measure your own with `skep probe` before you rely on it.\nname: asked\nsource: >-\n"
	      "  Assumed: inside of sites, windows and what the question says. Measured by Skyplane, 2022: links "
	      "between regions. Published: prices.\n",
		sheet.out);
	fprintf(sheet.out, "directory: \"%s\"\nwindow: %.6g KiB\nstreams: %u\nsites:\n", q->site[directory_of(q)].name,
		q->window_bytes / 1024, q->streams);
	for (uint32_t i = 0; i < q->sites; i++)
		if (is_used(q, i))
			write_site(q, i, sheet.out);
	write_links(q, sheet.out);
	return finish(&sheet, path, reterr);
}

/* ---- model and law --------------------------------------------------------------------------------------------------- */

bool skep_ask_write_model(const struct skep_ask_model *model, const char *path, struct skep_diag *reterr)
{
	struct sheet sheet;
	if (!begin(&sheet, reterr))
		return false;
	fprintf(sheet.out, "# Written by: skep ask --model %s\n%s", model->name, model->text);
	return finish(&sheet, path, reterr);
}

bool skep_ask_write_law(const struct skep_law *law, const char *path, struct skep_diag *reterr)
{
	struct sheet sheet;
	if (!begin(&sheet, reterr))
		return false;
	fprintf(sheet.out, "# Written by: skep ask\n# How the loss of a model of this size is taken to fall "
			   "(docs/ask.md): with tokens as in Hoffmann et al. 2022 (arXiv\n# 2203.15556), with the loss "
			   "behind 20 tokens a parameter, and with DiLoCo's replicas, as in Charles et al. 2025 "
			   "(arXiv\n# 2503.09799, table 4, H = 30); in between by the logarithm of H. Published, of "
			   "another corpus: `skep fit` makes one of your runs.\n");
	skep_law_write(law, sheet.out);
	return finish(&sheet, path, reterr);
}

/* ---- the scenario ---------------------------------------------------------------------------------------------------- */

static void write_trace(const struct skep_ask_question *q, FILE *out)
{
	const char *given = q->request->trace,
		   *usual = skep_ask_is_gcp(q) ? "topologies/traces/gcp-2020-03.csv" : "topologies/traces/aws-p3.csv";
	fprintf(out,
		"  # each seed draws losses and joins of its own from the lifetimes of this recording\n"
		"  trace: {like: \"%s\", duration: 30 d, machine: random}\n",
		given ? given : usual);
}

static const char *pipeline_of(const struct skep_ask_job *job)
{
	const char *given = job->question->request->pipeline;
	return given ? given : "swarm";
}

/* Fixed pipelines that are asked for go with as many stages as deal the batch out evenly to all machines. */
static bool can_be_stages(const struct skep_ask_job *job, uint32_t stages)
{
	const uint32_t machines = job->question->machines;
	if (stages < job->stages_least || stages > machines || stages > job->model->layers)
		return false;
	return strcmp(pipeline_of(job), "swarm") == 0 ||
	       (machines % stages == 0 && job->samples % (machines / stages) == 0);
}

/* The fewest that can be: one pipeline of all machines always can, if the model has that many layers. 0: none can. */
static uint32_t fewest_stages(const struct skep_ask_job *job)
{
	uint32_t stages = job->stages_least;
	while (stages <= job->question->machines && !can_be_stages(job, stages))
		stages++;
	return stages <= job->question->machines ? stages : 0;
}

static void write_stages(const struct skep_ask_job *job, FILE *out)
{
	const struct skep_ask_question *q = job->question;
	const uint32_t fewest = fewest_stages(job);
	uint32_t count = 0;
	if (q->request->stages > 0) {
		fprintf(out, "    model.stages: [%u]\n", q->request->stages);
		return;
	}
	for (uint32_t s = 1; s <= q->machines && count < 3; s *= 2)
		if (can_be_stages(job, s))
			fprintf(out, "%s%u", count++ == 0 ? "    model.stages: [" : ", ", s);
	if (count > 0)
		fputs("]\n", out);
	else
		fprintf(out, "    model.stages: [%u]\n", fewest > 0 ? fewest : 1);
}

static void write_schedule(const struct skep_ask_job *job, const char *pipeline, uint32_t microbatch, FILE *out)
{
	fprintf(out, "{pipeline: %s%s, global_batch: %u, microbatch: %u, compression: int8}\n", pipeline,
		strcmp(pipeline, "swarm") == 0 ? ", wiring: throughput" : "", job->samples, microbatch);
}

/* One value for each pipeline and microbatch, so that both change at once where that is better. */
static void write_schedules(const struct skep_ask_job *job, FILE *out)
{
	static const char *const all[] = {"swarm", "1f1b"};
	const char *given = job->question->request->pipeline;
	fputs("    schedule:\n", out);
	for (uint32_t i = 0; i < (given ? 1u : 2u); i++)
		for (uint32_t m = 32; m >= 2;
			m /= 2) { /* of equal ones the first, whose passes are fewest, is chosen */
			if (job->samples % m != 0)
				continue;
			fputs("      - ", out);
			write_schedule(job, given ? given : all[i], m, out);
		}
	fputs("    schedule.checkpoint_activations: [false, true]\n", out);
}

static void write_sync(uint32_t every, FILE *out)
{
	if (every <= 1)
		fputs("{method: step}\n", out);
	else
		fprintf(out,
			"{method: diloco, every: %u, compression: int8, outer: {optimizer: nesterov, lr: 0.7, momentum: 0.9}}\n",
			every);
}

static void write_syncs(const struct skep_ask_job *job, FILE *out)
{
	static const uint32_t every[] = {1, 10, 30, 100, 300};
	const uint32_t given = job->question->request->every;
	fputs("    sync:\n", out);
	for (uint32_t i = 0; i < (given > 0 ? 1 : sizeof every / sizeof every[0]); i++) {
		fputs("      - ", out);
		write_sync(given > 0 ? given : every[i], out);
	}
}

/* The search compares the scenario's own values with those that it lists, so these too are what was asked for. */
bool skep_ask_write_scenario(
	const struct skep_ask_job *job, const struct skep_ask_files *files, struct skep_diag *reterr)
{
	const struct skep_ask_question *q = job->question;
	const uint32_t stages = q->request->stages > 0 ? q->request->stages : fewest_stages(job);
	struct sheet sheet;
	if (!begin(&sheet, reterr))
		return false;
	skep_ask_write_head(q, sheet.out);
	fprintf(sheet.out, "name: ask %s\nseed: %llu\nmodel: {file: \"%s\", stages: %u}\n", job->model->name,
		(unsigned long long)q->request->seed, job->model->file[0] ? job->model->file : "model.yaml",
		stages > 0 ? stages : job->stages_least);
	fputs("cluster:\n  topology: topology.yaml\n", sheet.out);
	if (q->request->spot)
		write_trace(q, sheet.out);
	fputs("schedule: ", sheet.out);
	write_schedule(job, stages > 0 ? pipeline_of(job) : "swarm", 1, sheet.out);
	fputs("sync: ", sheet.out);
	write_sync(q->request->every, sheet.out);
	fputs("directory: {heartbeat: 10 s, timeout: 30 s}\n", sheet.out);
	fprintf(sheet.out,
		"train:\n  arithmetic: law\n  law: {file: law.yaml}\n  until: {steps: %u, loss: %.9g}\n"
		"plan:\n  objective: %s\n  search:\n",
		job->steps_most, job->target_loss,
		q->request->objective == SKEP_ASK_MONEY ? "cost-to-loss" : "time-to-loss");
	write_stages(job, sheet.out);
	write_schedules(job, sheet.out);
	write_syncs(job, sheet.out);
	return finish(&sheet, files->scenario, reterr);
}
