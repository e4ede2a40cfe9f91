/* SPDX-License-Identifier: Apache-2.0
 *
 * sbatch.c - see sbatch.h. What comes from a user stands in the commands in quotes of the shell, and in lines of options only
 * when it needs none. Over MPI rank 0 is the directory, which needs no GPU: with GPUs the job is a heterogeneous one whose first
 * component is the directory's, and each further one the next workers with the same GPU.
 */
#include "scenarios/describe/sbatch.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/units.h"
#include "scenarios/plan/pace.h"
#include "scenarios/shard/shard.h"

#define MARGIN 2.0    /* times what is expected, which knows no churn, ... */
#define START_S 600.0 /* ... and so long for a start */

static uint32_t gpu_of(const struct skep_scenario *s, uint32_t worker)
{
	return s->topology.machine[worker].gpu;
}

static bool same_gpu(const struct skep_scenario *s, uint32_t a, uint32_t b)
{
	return strcmp(s->topology.gpu[gpu_of(s, a)].path, s->topology.gpu[gpu_of(s, b)].path) == 0;
}

/* How many workers from `first` on have the GPU of that one. */
static uint32_t alike(const struct skep_scenario *s, uint32_t first)
{
	uint32_t end = first + 1;
	while (end < s->plan.workers && same_gpu(s, first, end))
		end++;
	return end - first;
}

static uint32_t components(const struct skep_scenario *s)
{
	uint32_t count = 1; /* the directory's */
	for (uint32_t w = 0; w < s->plan.workers; w += alike(s, w))
		count++;
	return count;
}

static struct skep_sbatch_gpu kind_of(const struct skep_scenario *s, uint32_t worker)
{
	const struct skep_gpu *gpu = &s->topology.gpu[gpu_of(s, worker)];
	const char *base = strrchr(gpu->path, '/');
	struct skep_sbatch_gpu ret = {.profile = gpu->name};
	snprintf(ret.type, sizeof ret.type, "%.63s", base ? base + 1 : gpu->path);
	char *ending = strstr(ret.type, ".yaml");
	if (ending)
		*ending = '\0';
	for (uint32_t w = 0; w < s->plan.workers; w++)
		ret.workers += same_gpu(s, worker, w);
	return ret;
}

bool skep_sbatch_gpu(const struct skep_scenario *s, uint32_t i, struct skep_sbatch_gpu *ret)
{
	for (uint32_t w = 0; w < s->plan.workers; w++) {
		uint32_t first = 0;
		while (!same_gpu(s, first, w))
			first++;
		if (first == w && i-- == 0) {
			*ret = kind_of(s, w);
			return true;
		}
	}
	return false;
}

bool skep_sbatch_word_ok(const char *word)
{
	return word[0] != '\0' &&
	       word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.,-")] == '\0';
}

/* ---- may it be ----------------------------------------------------------------------------------------------------------- */

static bool gpus_possible(const struct skep_scenario *s, bool join, const char *wanted, struct skep_diag *reterr)
{
	struct skep_sbatch_gpu gpu, first, second;
	bool found = wanted == NULL;
	for (uint32_t i = 0; skep_sbatch_gpu(s, i, &gpu); i++) {
		if (!skep_sbatch_word_ok(gpu.type))
			return skep_fail(
				reterr, "Slurm takes no type of GPU called '%s': rename that profile", gpu.type);
		found = found || strcmp(wanted, gpu.type) == 0;
	}
	skep_sbatch_gpu(s, 0, &first);
	if (!found)
		return skep_fail(
			reterr, "--gpu %.60s: no worker of the scenario has it; worker 0 has %s", wanted, first.type);
	if (join && wanted == NULL && skep_sbatch_gpu(s, 1, &second))
		return skep_fail(reterr,
			"tasks of an array have the same GPU, and workers have %s and %s: choose one with --gpu, or write "
			"a script for each with -o FOLDER",
			first.type, second.type);
	return true;
}

/* Several processes share the stage of each worker. */
static bool shards_possible(
	const struct skep_scenario *s, bool mpi, const struct skep_sbatch *b, struct skep_diag *reterr)
{
	if (b->cuda)
		return skep_fail(reterr,
			"a stage that %u ranks share trains on CPUs alone: leave out --device cuda, or take --set "
			"cluster.tensor_parallel=1",
			skep_shard_degree(s));
	return mpi || skep_fail(reterr,
			      "only `skep run` starts %u processes for a worker: take --kind run, or --set "
			      "cluster.tensor_parallel=1",
			      skep_shard_degree(s));
}

bool skep_sbatch_possible(const struct skep_scenario *s, enum skep_sbatch_kind kind, const struct skep_sbatch *b,
	struct skep_diag *reterr)
{
	bool mpi = kind == SKEP_SBATCH_RUN || kind == SKEP_SBATCH_REQUEUE;
	if (kind == SKEP_SBATCH_REQUEUE && s->plan.checkpoint_every == 0) {
		skep_diag_set(reterr, s->path, 0, 0, NULL,
			"a job that goes on needs states that were kept: add `checkpoint: {every: 100, to: FOLDER}`");
		return false;
	}
	if (skep_shard_degree(s) > 1 && !shards_possible(s, mpi, b, reterr))
		return false;
	if (mpi && b->cuda && components(s) > SKEP_SBATCH_COMPONENTS_MAX)
		return skep_fail(reterr,
			"a job over MPI would have %u components, since neighbouring workers have different GPUs: list "
			"machines of a kind one after the other, or take --kind serve and join",
			components(s));
	return kind == SKEP_SBATCH_SERVE || !(b->cuda || b->gpu) ||
	       gpus_possible(s, kind == SKEP_SBATCH_JOIN, b->gpu, reterr);
}

/* ---- lines of options ---------------------------------------------------------------------------------------------------- */

static void put_name(const struct skep_scenario *s, const char *kind, FILE *out)
{
	fputs("#SBATCH --job-name=skep-", out);
	for (const char *c = s->name; *c && c - s->name < 40; c++)
		fputc(isalnum((unsigned char)*c) ? *c : '-', out);
	fprintf(out, "-%s\n", kind);
}

static double limit_of(const struct skep_sbatch *b, bool mpi)
{
	if (b->limit_s > 0)
		return b->limit_s;
	return mpi && b->cuda && b->expected_s > 0 ? START_S + MARGIN * b->expected_s : SKEP_DAY_S;
}

static void put_limit(double limit_s, FILE *out)
{
	unsigned long minutes = (unsigned long)ceil(limit_s / 60);
	fprintf(out, "#SBATCH --time=%lu-%02lu:%02lu:00\n", minutes / 1440, minutes / 60 % 24, minutes % 60);
}

static void put_partition(const char *partition, FILE *out)
{
	if (partition)
		fprintf(out, "#SBATCH --partition=%s\n", partition);
}

static void put_tasks(const struct skep_scenario *s, const struct skep_sbatch *b, uint32_t tasks, FILE *out)
{
	if (b->per_node > 0 && b->per_node < tasks)
		fprintf(out, "#SBATCH --nodes=%u --ntasks-per-node=%u\n", (tasks + b->per_node - 1) / b->per_node,
			b->per_node);
	fprintf(out, "#SBATCH --ntasks=%u\n", tasks);
	if (s->threads > 1)
		fprintf(out, "#SBATCH --cpus-per-task=%u\n", s->threads);
}

/* Limit and partition hold for one component. */
static void put_components(const struct skep_scenario *s, const struct skep_sbatch *b, FILE *out)
{
	fputs("#SBATCH --ntasks=1\n", out);
	for (uint32_t w = 0; w < s->plan.workers; w += alike(s, w)) {
		fputs("#SBATCH hetjob\n", out);
		put_limit(limit_of(b, true), out);
		put_partition(b->partition, out);
		put_tasks(s, b, alike(s, w), out);
		fprintf(out, "#SBATCH --gpus-per-task=%s:1\n", kind_of(s, w).type);
	}
}

/* ---- commands ------------------------------------------------------------------------------------------------------------- */

static void put_quoted(const char *text, FILE *out)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.,-/=:+@%";
	if (text[0] != '\0' && text[strspn(text, plain)] == '\0') {
		fputs(text, out);
		return;
	}
	fputc('\'', out);
	for (; *text; text++)
		fputs(*text == '\'' ? "'\\''" : (char[]){*text, '\0'}, out);
	fputc('\'', out);
}

static void put_scenario(const struct skep_sbatch *b, FILE *out)
{
	put_quoted(b->path, out);
	for (uint32_t i = 0; i < b->sets; i++) {
		fputs(" --set ", out);
		put_quoted(b->set[i], out);
	}
	if (b->has_seed)
		fprintf(out, " --seed %llu", (unsigned long long)b->seed);
	if (b->db) {
		fputs(" --db ", out);
		put_quoted(b->db, out);
	}
}

static void put_start(const struct skep_scenario *s, bool requeue, const struct skep_sbatch *b, FILE *out)
{
	fprintf(out, "\n%ssrun --mpi=pmix", requeue ? "" : "exec ");
	if (b->cuda)
		fprintf(out, " --het-group=0-%u", components(s) - 1);
	if (s->threads > 1) /* which srun does not take over from sbatch */
		fprintf(out, " --cpus-per-task=%u", s->threads);
	fputs(" skep run ", out);
	put_scenario(b, out);
	fprintf(out, "%s%s", requeue ? " --resume=auto" : "", b->cuda ? " --device cuda" : "");
	fputs(requeue ? " && exit\n" : "\n", out);
	/* In the time of grace srun ends by SIGTERM, and Slurm would requeue only a job that still waits. */
	if (requeue)
		fputs("code=$? # what a preemption with GraceTime has ended goes back into the queue at once\n"
		      "scontrol show job \"$SLURM_JOB_ID\" | grep -q ' PreemptTime=[0-9]' && scontrol requeue \"$SLURM_JOB_ID\"\n"
		      "exit $code\n",
			out);
}

/* Behind its head. */
static void put_run(const struct skep_scenario *s, bool requeue, const struct skep_sbatch *b, FILE *out)
{
	put_name(s, requeue ? "requeue" : "run", out);
	if (requeue)
		fputs("#SBATCH --requeue --open-mode=append\n", out);
	put_limit(limit_of(b, true), out);
	put_partition(b->partition, out);
	if (b->limit_s <= 0 && b->cuda && b->expected_s > 0 && skep_pace_is_least(s))
		fputs("# The limit has not in it what waits while a state is kept, which is not known.\n", out);
	if (b->cuda)
		put_components(s, b, out);
	else
		put_tasks(s, b, (s->plan.workers + 1) * skep_shard_degree(s), out);
	put_start(s, requeue, b, out);
}

static void put_serve(const struct skep_scenario *s, const struct skep_sbatch *b, FILE *out)
{
	bool kept = s->plan.checkpoint_every > 0;
	put_name(s, "serve", out);
	put_limit(limit_of(b, false), out);
	put_partition(b->partition, out);
	fprintf(out, "#SBATCH --ntasks=1 --output=serve-%%j.log --open-mode=append --%s\n",
		kept ? "requeue" : "no-requeue");
	fputs("\nexec skep serve ", out);
	put_scenario(b, out);
	fputs(kept ? " --resume=auto" : "", out);
	fputs(b->cuda ? " --device cuda" : "", out);
	if (!s->has_trace && !skep_plan_has_candidates(&s->plan) && s->plan.stages < s->plan.workers)
		fprintf(out, " --at-least %u", s->plan.stages);
	fputc('\n', out);
}

static void put_join(const struct skep_scenario *s, const struct skep_sbatch *b, FILE *out)
{
	struct skep_sbatch_gpu gpu = {.workers = s->plan.workers};
	bool one = b->cuda || b->gpu;
	for (uint32_t i = 0; one && skep_sbatch_gpu(s, i, &gpu); i++)
		if (b->gpu == NULL || strcmp(b->gpu, gpu.type) == 0)
			break;
	put_name(s, "join", out);
	put_limit(limit_of(b, false), out);
	put_partition(b->spot, out);
	fprintf(out, "#SBATCH --array=1-%u --ntasks=1 --output=join-%%A-%%a.log --open-mode=append --requeue\n",
		gpu.workers);
	if (s->threads > 1)
		fprintf(out, "#SBATCH --cpus-per-task=%u\n", s->threads);
	if (b->cuda)
		fprintf(out, "#SBATCH --gpus-per-task=%s:1\n", gpu.type);
	fputs("\nserver= log=serve-${1:?the number of the job that serves}.log\n"
	      "case $(squeue -h -j \"$1\" 2>&1) in # a task that is requeued when that job is done has nothing to wait for\n"
	      "'' | *'Invalid job id'*) echo \"job $1 is done\"; exit ;;\n"
	      "esac\n"
	      "until [ \"$server\" ]; do\n"
	      "\tread -r _ _ server _ SKEP_TICKET < <(grep -so 'skep join [^ ]* --ticket skep1-[0-9a-z]*' \"$log\" | tail -n 1)\n"
	      "\t[ \"$server\" ] || sleep 1\n"
	      "done\n"
	      "export SKEP_TICKET\n"
	      "exec skep join \"$server\" --stay --farewell '5 s'",
		out);
	if (one) {
		fputs(" --gpu ", out);
		put_quoted(gpu.profile, out);
	}
	fputc('\n', out);
}

void skep_sbatch_write(
	const struct skep_scenario *s, enum skep_sbatch_kind kind, const struct skep_sbatch *b, FILE *out)
{
	static const char *const says[SKEP_SBATCH_KINDS] = {
		[SKEP_SBATCH_RUN] = "over MPI: a task for each worker, and the first for the directory",
		[SKEP_SBATCH_REQUEUE] = "the same job again, requeued, goes on from its newest checkpoint",
		[SKEP_SBATCH_SERVE] = "the directory; workers are those of join.sbatch, which reads this job's log",
		[SKEP_SBATCH_JOIN] = "workers that may be taken away: sbatch FILE NUMBER-OF-THE-JOB-THAT-SERVES"};
	fprintf(out, "#!/bin/bash\n" SKEP_SBATCH_HEAD ", %s\n", says[kind]);
	fputs("# Submit it from the folder in which the paths below hold; all nodes see it.\n", out);
	switch (kind) {
	case SKEP_SBATCH_RUN:
	case SKEP_SBATCH_REQUEUE:
		put_run(s, kind == SKEP_SBATCH_REQUEUE, b, out);
		break;
	case SKEP_SBATCH_SERVE:
		put_serve(s, b, out);
		break;
	default:
		put_join(s, b, out);
	}
}
