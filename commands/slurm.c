/* SPDX-License-Identifier: Apache-2.0
 *
 * slurm.c - `skep slurm`: job scripts of a scenario (scenarios/describe/sbatch.h), one to stdout or all into a folder.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/outputs.h"
#include "base/files/replace.h"
#include "commands/arguments.h"
#include "commands/commands.h"
#include "planning/expected/expected.h"
#include "scenarios/describe/sbatch.h"
#include "scenarios/plan/plan.h"
#include "scenarios/shard/shard.h"

struct slurm_arguments {
	struct arguments common;
	enum skep_sbatch_kind kind;
	bool has_kind;
	int device;
	const char *partition, *spot, *gpu;
	uint32_t per_node;
	double limit_s;
};

static const char *const kinds[] = {"run", "requeue", "serve", "join", NULL};

/* ---- into a folder -------------------------------------------------------------------------------------------------------- */

/* The sets of files are written as a whole, so that a folder never has scripts of two scenarios. */
static bool put_file(struct skep_outputs *outputs, const struct slurm_arguments *a, const char *name,
	const struct skep_scenario *s, enum skep_sbatch_kind kind, const struct skep_sbatch *sbatch)
{
	char path[SKEP_PATH_BYTES];
	if (!skep_sbatch_possible(s, kind, sbatch, outputs->diag))
		return false;
	if (snprintf(path, sizeof path, "%s/%s.sbatch", a->common.output, name) >= (int)sizeof path)
		return skep_fail(outputs->diag, "-o: the name of the folder is too long");
	if (!a->common.force && !skep_replace_written(path, SKEP_SBATCH_HEAD, outputs->diag))
		return false;
	FILE *out = skep_outputs_begin(outputs, path);
	if (out)
		skep_sbatch_write(s, kind, sbatch, out);
	return out != NULL;
}

/* An array for each kind of GPU, or one of all workers where nothing depends on it. */
static bool put_joins(struct skep_outputs *outputs, const struct slurm_arguments *a, const struct skep_scenario *s,
	struct skep_sbatch sbatch)
{
	char name[80];
	struct skep_sbatch_gpu gpu;
	if (!sbatch.cuda || sbatch.gpu || !skep_sbatch_gpu(s, 1, &gpu))
		return put_file(outputs, a, "join", s, SKEP_SBATCH_JOIN, &sbatch);
	for (uint32_t i = 0; skep_sbatch_gpu(s, i, &gpu); i++) {
		sbatch.gpu = gpu.type;
		snprintf(name, sizeof name, "join-%s", sbatch.gpu);
		if (!put_file(outputs, a, name, s, SKEP_SBATCH_JOIN, &sbatch))
			return false;
	}
	return true;
}

static enum status put_folder(
	const struct slurm_arguments *a, const struct skep_scenario *s, const struct skep_sbatch *sbatch)
{
	struct skep_diag diag = {0};
	struct skep_outputs outputs = {.diag = &diag};
	bool fine = true, made = mkdir(a->common.output, 0777) == 0;
	if (!made && errno != EEXIST)
		skep_fail(&diag, "%s: the folder cannot be made: %s", a->common.output, strerror(errno));
	for (int kind = 0; !diag.set && fine && kind < SKEP_SBATCH_KINDS; kind++) {
		bool asked = a->has_kind && (int)a->kind == kind;
		bool kept = s->plan.checkpoint_every > 0, joins = skep_shard_degree(s) == 1;
		if (!asked && (a->has_kind || (kind == SKEP_SBATCH_REQUEUE && !kept) ||
				      ((kind == SKEP_SBATCH_SERVE || kind == SKEP_SBATCH_JOIN) && !joins)))
			continue;
		fine = kind == SKEP_SBATCH_JOIN
		               ? put_joins(&outputs, a, s, *sbatch)
		               : put_file(&outputs, a, kinds[kind], s, (enum skep_sbatch_kind)kind, sbatch);
	}
	char written[1024] = "";
	for (uint32_t i = 0, at = 0; i < outputs.count && at < sizeof written; i++)
		at += (uint32_t)snprintf(written + at, sizeof written - at, "%s %.80s", i > 0 ? "," : "",
			skep_path_base(outputs.output[i].path));
	if (skep_outputs_commit(&outputs)) {
		skep_say("wrote into %s:%s\n", a->common.output, written);
		return STATUS_DONE;
	}
	if (made)
		rmdir(a->common.output);
	return skep_report_diag(STATUS_BAD_INPUT, &diag);
}

/* ---- the command ---------------------------------------------------------------------------------------------------------- */

static bool check_words(const struct slurm_arguments *a, struct skep_diag *reterr)
{
	const char *const word[] = {a->partition, a->spot};
	for (uint32_t i = 0; i < 2; i++)
		if (word[i] && !skep_sbatch_word_ok(word[i]))
			return skep_fail(reterr,
				"--%s: expected names of partitions, as in 'gpu,long'; `sinfo` lists them",
				i == 0 ? "partition" : "spot-partition");
	if (a->common.output && (a->common.output[0] == '\0' || strlen(a->common.output) > SKEP_PATH_BYTES - 128))
		return skep_fail(reterr, "-o: expected the name of a folder");
	return true;
}

/* A line break in a name would end a comment or a word in a script. */
static bool check_lines(const struct slurm_arguments *a, struct skep_diag *reterr)
{
	bool broken = strpbrk(a->common.positional[0], "\r\n") || (a->common.has_db && strpbrk(a->common.db, "\r\n"));
	for (uint32_t i = 0; i < a->common.scenario.sets; i++)
		broken = broken || strpbrk(a->common.scenario.set[i], "\r\n");
	return !broken || skep_fail(reterr, "a script has no room for a name or value with a line break in it");
}

/* 0: it is not known. */
static double expected_s(const struct skep_scenario *s)
{
	struct skep_expected e;
	char bound[160];
	bool known = skep_expected_at_start(s, &e, bound, sizeof bound);
	const struct skep_pace pace = skep_expected_pace(&e);
	return known ? skep_pace_time_s(s, &pace, (double)skep_plan_all_steps(s)) : 0;
}

static enum status run(struct skep_command_line *line)
{
	struct slurm_arguments a = {0};
	struct skep_scenario scenario;
	struct skep_diag diag = {0};
	enum status status;
	if (!skep_arguments_read(line, &a.common, &status))
		return status;
	if (!check_words(&a, &diag) || !check_lines(&a, &diag))
		return skep_report_diag(STATUS_BAD_INPUT, &diag);
	if (!skep_arguments_scenario_for(&a.common, true, false, &scenario))
		return STATUS_BAD_INPUT;
	const struct skep_sbatch sbatch = {.path = a.common.positional[0],
		.set = a.common.scenario.set,
		.sets = a.common.scenario.sets,
		.has_seed = a.common.scenario.has_seed,
		.seed = a.common.scenario.seed,
		.cuda = a.device > 0,
		.db = a.common.has_db ? a.common.db : NULL,
		.partition = a.partition,
		.spot = a.spot,
		.gpu = a.gpu,
		.per_node = a.per_node,
		.limit_s = a.limit_s,
		.expected_s = expected_s(&scenario)};
	if (a.common.output)
		status = put_folder(&a, &scenario, &sbatch);
	else if (skep_sbatch_possible(&scenario, a.kind, &sbatch, &diag))
		skep_sbatch_write(&scenario, a.kind, &sbatch, stdout);
	else
		status = skep_report_diag(STATUS_BAD_INPUT, &diag);
	skep_scenario_finish(&scenario);
	return status;
}

#define AT(member) offsetof(struct slurm_arguments, member)
static const struct skep_option rows[] = {
	{"kind", 0, SKEP_OPTION_CHOICE, AT(kind), "run|requeue|serve|join",
		.help = "which script: run, over MPI; requeue, the same from its newest checkpoint; serve, the directory, and "
			"join, an array of machines that come and go",
		.choice = kinds, .usual = "run; with -o all", .given_at = AT(has_kind)},
	{"partition", 0, SKEP_OPTION_TEXT, AT(partition), "NAME", .help = "of all scripts but join",
		.usual = "the cluster's", .example = "gpu"},
	{"spot-partition", 0, SKEP_OPTION_TEXT, AT(spot), "NAME", .help = "of join: preemptible",
		.usual = "the cluster's", .example = "spot"},
	{"time", 0, SKEP_OPTION_QUANTITY, AT(limit_s), "TIME", .help = "limit of each job",
		.usual = "with cuda, over MPI: 10 min and twice what `skep check` expects; else a day",
		.dimension = SKEP_TIME, .low = 60, .high = 31536000, .example = "12 h",
		.expected = "a time with its unit, from 1 min to 365 d, as in '12 h'"},
	{"device", 0, SKEP_OPTION_CHOICE, AT(device), "cpu|cuda", .help = "cuda: each worker's task asks for its GPU",
		.choice = skep_device_words, .usual = "cpu"},
	{"gpu", 0, SKEP_OPTION_TEXT, AT(gpu), "NAME", .help = "of join: the machines with this GPU profile alone",
		.usual = "with cuda a script for each kind, else one for all", .example = "t4"},
	{"per-node", 0, SKEP_OPTION_U32, AT(per_node), "N", .help = "workers on a node",
		.usual = "as Slurm places them", .least = 1, .most = 1024},
};
static const struct skep_option output_rows[] = {
	{"output", 'o', SKEP_OPTION_PATH, offsetof(struct slurm_arguments, common.output), "FOLDER",
		.help = "write NAME.sbatch of each kind there", .usual = "one script to stdout"},
};

static const struct skep_option_group groups[] = {SKEP_SCENARIO_OPTIONS, SKEP_OWN_OPTIONS("Jobs", rows),
	SKEP_OWN_OPTIONS("Output", output_rows), SKEP_FORCE_OPTION,
	{.title = "Output", .row = skep_result_rows, .rows = 1}, {0}};
static const struct skep_example examples[] = {
	{"skep slurm scenarios/three-spot.yaml | sbatch", "a run over MPI"},
	{"skep slurm scenarios/three-spot.yaml --spot-partition spot -o out",
		"all scripts into out/; `sbatch out/join.sbatch 1234` joins what job 1234 serves"},
	{0},
};

const struct skep_command skep_command_slurm = {
	.name = "slurm",
	.operands = "SCENARIO",
	.summary = "job scripts for Slurm: a run, a requeued one, serve and join",
	.text = "Prints a script for sbatch that trains the scenario on a cluster: its number of tasks, their GPUs, a limit of "
		"time. Nothing is submitted. Names of GPU profiles stand for types of GRES: where the cluster calls them "
		"otherwise, change the lines.",
	.least = 1,
	.most = 1,
	.group = groups,
	.example = examples,
	.run = run,
};
