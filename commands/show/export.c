/* SPDX-License-Identifier: Apache-2.0
 *
 * export.c - `skep export`: weights of a checkpoint in the format of Hugging Face, and what the database holds in forms that
 * other programs read: a timeline into a file, tables there or to standard output.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/export/export.h"
#include "base/files/outputs.h"
#include "base/text.h"
#include "commands/arguments.h"
#include "commands/commands.h"
#include "commands/output.h"
#include "models/checkpoint/checkpoint_folder.h"
#include "models/read/hf_config.h"
#include "models/stage/stage_weights.h"
#include "scenarios/resume/resume.h"
#include "scenarios/shard/shard.h"

#define SHARD_BYTES (UINT64_C(5) << 30) /* larger files are cut, as others cut them */

/* ---- what the database holds ------------------------------------------------------------------------------------- */

static bool is(const struct arguments *a, const char *kind)
{
	return strcmp(a->positional[0], kind) == 0;
}

/* Is the first operand one of the kinds that write what the database holds: timeline, runs, rounds? */
static bool is_database(const struct arguments *a)
{
	return a->positionals > 0 && (is(a, "timeline") || is(a, "runs") || is(a, "rounds") || is(a, "scenario"));
}

static bool write_kind(const struct arguments *a, struct skep_store *store, const int64_t *runs, uint32_t count,
	FILE *out, struct skep_diag *reterr)
{
	if (is(a, "scenario"))
		return skep_export_scenario(store, count > 0 ? runs[0] : 0, out, reterr);
	if (is(a, "timeline"))
		return skep_export_timeline(store, count > 0 ? runs[0] : 0, out, reterr);
	return skep_export_csv(store, is(a, "runs") ? SKEP_EXPORT_RUNS : SKEP_EXPORT_ROUNDS, runs, count, out, reterr);
}

/* A database may be another's, with anything in its texts: a terminal gets no control characters, a file or pipe gets all. */
static void print_table(const char *text, size_t length)
{
	char shown[4];
	uint32_t bytes;
	if (!isatty(STDOUT_FILENO)) {
		fwrite(text, 1, length, stdout);
		return;
	}
	for (size_t at = 0; at < length;) {
		if (text[at] == '\n') {
			putchar(text[at++]);
			continue;
		}
		at += skep_text_shown(text + at, length - at, shown, &bytes);
		fwrite(shown, 1, bytes, stdout);
	}
}

/* Made whole before anything is written. */
static enum status export_runs(const struct arguments *a, const int64_t *runs, uint32_t count)
{
	char *text = NULL;
	size_t length = 0;
	struct skep_diag error = {0};
	struct skep_store *store = skep_store_open(a->db, false, &error);
	FILE *out = store ? open_memstream(&text, &length) : NULL;
	bool done = out && write_kind(a, store, runs, count, out, &error);
	bool whole = out && fclose(out) == 0;
	if (store && !whole)
		skep_fail(&error, "not enough memory to export this");
	done = done && whole && (!a->output || skep_file_write(a->output, text, length, &error));
	if (done && !a->output)
		print_table(text, length);
	skep_store_close(store);
	free(text);
	if (!done)
		return skep_report_diag(STATUS_BAD_INPUT, &error);
	if (a->output && a->json)
		printf("{\"exported\":\"%s\"}\n", a->positional[0]);
	else if (a->output && !a->quiet)
		skep_say("wrote %s\n", a->output);
	return STATUS_DONE;
}

static enum status export_database(const struct arguments *a)
{
	int64_t runs[RUNS_MAX];
	uint32_t count;
	bool timeline = is(a, "timeline"), scenario = is(a, "scenario");
	if (a->scenario.sets > 0 || a->scenario.has_seed)
		return skep_report_error(STATUS_BAD_INPUT, "--set and --seed are for the weights of a scenario");
	if (!skep_arguments_run_ranges(a, 1, runs, &count))
		return STATUS_BAD_INPUT;
	if (timeline && count > 1)
		return skep_report_error(STATUS_BAD_INPUT, "export timeline takes one run, or none for the newest");
	if (scenario && count > 1)
		return skep_report_error(STATUS_BAD_INPUT, "export scenario takes one run, or none for the newest");
	if (timeline && !a->output)
		return skep_report_error(
			STATUS_BAD_INPUT, "export timeline needs -o FILE, for example -o timeline.json");
	if (a->json && !a->output)
		return skep_report_error(STATUS_BAD_INPUT, "--json with a table needs -o FILE for the table");
	size_t length = a->output ? strlen(a->output) : 0;
	const char *ending = timeline ? ".json" : scenario ? ".yaml" : ".csv";
	if (a->output && (length <= strlen(ending) || strcmp(a->output + length - strlen(ending), ending) != 0))
		return skep_report_error(STATUS_BAD_INPUT, timeline   ? "-o: the name of a timeline ends in .json"
							   : scenario ? "-o: the name of a scenario ends in .yaml"
								      : "-o: the name of a table ends in .csv");
	return a->output && !skep_output_ready(a, NULL) ? STATUS_BAD_INPUT : export_runs(a, runs, count);
}

struct export_arguments {
	struct arguments common;
	uint32_t step; /* of the checkpoint; 0: the newest */
	bool bf16, csv;
};

/* ---- weights ---------------------------------------------------------------------------------------------------- */

/* Are the states those of shards, as of a run in which several ranks share each stage? */
static bool kept_in_shards(const struct skep_scenario *scenario)
{
	struct skep_checkpoints list;
	uint32_t degree = skep_shard_degree(scenario), parts = degree * skep_plan_parts(&scenario->plan);
	if (degree == 1 || skep_model_refuses_shard(&scenario->model, degree) != NULL ||
		!skep_checkpoints_find(scenario->checkpoint_to, scenario->job, parts, &list))
		return false;
	bool all = list.versions > 0;
	skep_checkpoints_finish(&list);
	return all;
}

/* Of states in shards what the training is to each of them; *ret_shard and *ret_training have `degree` places each. */
static bool make_shards(const struct skep_scenario *scenario, uint32_t degree, struct skep_shard **ret_shard,
	const struct skep_training **ret_training)
{
	for (uint32_t rank = 0; rank < degree; rank++) {
		ret_shard[rank] = skep_shard_create(scenario, rank, degree, NULL);
		if (ret_shard[rank] == NULL)
			return false;
		ret_training[rank] = &ret_shard[rank]->scenario.training;
	}
	return true;
}

static bool write_weights(const struct skep_scenario *scenario, struct skep_export *options,
	struct skep_export_facts *ret_facts, struct skep_diag *reterr)
{
	if (!kept_in_shards(scenario))
		return skep_export_weights(&scenario->training, options, ret_facts, reterr);
	uint32_t degree = skep_shard_degree(scenario);
	struct skep_shard **shard = calloc(degree, sizeof *shard);
	const struct skep_training **training = calloc(degree, sizeof *training);
	options->shards = degree;
	options->shard = training;
	bool good = (shard && training && make_shards(scenario, degree, shard, training)) ||
	            skep_fail(reterr, "not enough memory for the shards of the stages");
	good = good && skep_export_weights(&scenario->training, options, ret_facts, reterr);
	for (uint32_t rank = 0; shard && rank < degree; rank++)
		skep_shard_destroy(shard[rank]);
	free(shard);
	free((void *)training);
	return good;
}

static enum status export_weights(const struct export_arguments *a, const struct skep_scenario *scenario)
{
	struct skep_export_facts facts;
	struct skep_diag diag = {0};
	char differs[SKEP_RESUME_DIFFERS_BYTES];
	skep_resume_differs(scenario, &diag, differs);
	struct skep_export options = {.from = scenario->checkpoint_to,
		.job = scenario->job,
		.step = a->step,
		.to = a->common.output,
		.dtype = a->bf16 ? SKEP_DTYPE_BF16 : SKEP_DTYPE_F32,
		.shard_bytes = SHARD_BYTES,
		.name = scenario->name,
		.differs = differs};
	if (scenario->model.architecture == SKEP_ARCHITECTURE_NONE)
		skep_diag_set(
			&diag, scenario->path, 0, 0, NULL, "the model has no architecture that files of weights know");
	else if (skep_hf_config_lacks(&scenario->model) != NULL)
		skep_diag_set(&diag, scenario->path, 0, 0, NULL, "model %s %s", scenario->model.name,
			skep_hf_config_lacks(&scenario->model));
	else if (scenario->checkpoint_to[0] == '\0')
		skep_diag_set(&diag, scenario->path, 0, 0, NULL,
			"keeps no checkpoints to take weights from: add `checkpoint: {every: 100, to: FOLDER}` and run "
			"it");
	if (diag.set || !write_weights(scenario, &options, &facts, &diag))
		return skep_report_diag(STATUS_BAD_INPUT, &diag);
	if (a->common.json)
		printf("{\"step\":%" PRIu64 ",\"weights\":%" PRIu32 ",\"parameters\":%" PRIu64 "}\n", facts.step,
			facts.weights, facts.parameters);
	else if (!a->common.quiet)
		skep_say("wrote %" PRIu32 " weights with %" PRIu64 " parameters of step %" PRIu64 " into %s\n",
			facts.weights, facts.parameters, facts.step, a->common.output);
	return STATUS_DONE;
}

static enum status run(struct skep_command_line *line)
{
	struct export_arguments a = {0};
	struct skep_scenario scenario;
	enum status status;
	if (!skep_arguments_read(line, &a.common, &status))
		return status;
	if (is_database(&a.common)) {
		if (a.step > 0 || a.bf16 || (a.csv && strcmp(a.common.positional[0], "timeline") == 0))
			return skep_report_error(STATUS_BAD_INPUT,
				"--step and --bf16 are for weights, --csv is for the tables runs and rounds");
		return export_database(&a.common);
	}
	const char *first = a.common.positionals > 0 ? a.common.positional[0] : "";
	if (first[0] != '\0' && strspn(first, "0123456789.") == strlen(first) && access(first, F_OK) != 0)
		return skep_report_error(STATUS_BAD_INPUT,
			"export what of that run? `skep export runs RUN`, rounds, timeline or scenario; weights are exported "
			"of a scenario");
	if (strcmp(first, "weights") == 0 && access(first, F_OK) != 0)
		return skep_report_error(STATUS_BAD_INPUT,
			"export: weights are those that a scenario has kept, and need no word before it: skep export SCENARIO "
			"-o FOLDER");
	if (a.csv || a.common.has_db || a.common.positionals > 1) {
		skep_say(
			"skep: export: '%.80s' is not timeline, runs, rounds or scenario, which take runs of the database; "
			"export of weights takes one scenario, without --csv and --db\n",
			first);
		return STATUS_BAD_INPUT;
	}
	if (a.common.output == NULL)
		return skep_report_error(STATUS_BAD_INPUT, "export needs -o FOLDER");
	if (!skep_output_folder_ready(&a.common) || !skep_arguments_scenario(&a.common, &scenario))
		return STATUS_BAD_INPUT;
	status = STATUS_BAD_INPUT;
	if (skep_output_no_source(&a.common, &scenario))
		status = export_weights(&a, &scenario);
	skep_scenario_finish(&scenario);
	return status;
}

static const struct skep_option weights_rows[] = {
	{"step", 0, SKEP_OPTION_U32, offsetof(struct export_arguments, step), "N",
		.help = "the checkpoint of this training step", .least = 1, .most = UINT32_MAX, .usual = "the newest",
		.expected = "the number of a step, from 1"},
	{"bf16", 0, SKEP_OPTION_FLAG, offsetof(struct export_arguments, bf16), .help = "round the weights to bfloat16",
		.usual = "float32"},
};

static const struct skep_option table_rows[] = {
	{"csv", 0, SKEP_OPTION_FLAG, offsetof(struct export_arguments, csv),
		.help = "runs and rounds: comma-separated values, which is the only form that there is"},
};

static const struct skep_option output_rows[] = {
	{"output", 'o', SKEP_OPTION_PATH, offsetof(struct export_arguments, common.output), "PATH",
		.help = "folder for config.json and model.safetensors, required; or the file of a timeline (.json), "
			"required, of a table (.csv), or of a scenario (.yaml)",
		.usual = "for tables and scenarios: standard output"},
};

static const struct skep_option_group groups[] = {SKEP_SCENARIO_OPTIONS, SKEP_OWN_OPTIONS("Weights", weights_rows),
	SKEP_OWN_OPTIONS("Tables", table_rows), SKEP_OWN_OPTIONS("Output", output_rows), SKEP_FORCE_OPTION,
	SKEP_DATABASE_OPTIONS, {0}};
static const struct skep_example examples[] = {
	{"skep export mine.yaml -o weights", "the newest checkpoint of a run of this scenario"},
	{"skep export timeline 3 -o timeline.json", "run 3 for ui.perfetto.dev or chrome://tracing"},
	{"skep export runs --csv -o runs.csv", "all runs as a table"},
	{0},
};
static const struct skep_word kinds[] = {
	{"SCENARIO", "weights of its newest checkpoint, into a folder; a file of one of the names below is ./timeline"},
	{"timeline", "a run as trace events for Perfetto and Chrome; without a run the newest"},
	{"runs", "a table with a row for each run, or for those that are named"},
	{"rounds", "a table with a row for each closed round of these runs"},
	{"scenario", "the scenario of a run as it had read it, with what --set changed; without a run of the newest"},
	{0},
};

const struct skep_command skep_command_export = {
	.name = "export",
	.operands = "SCENARIO|KIND [RUN|RUN..RUN|@TAG ...] [-o PATH]",
	.summary = "write weights or runs for other programs",
	.text = "Writes config.json and model.safetensors with the names and layouts of Hugging Face, from the newest "
		"checkpoint in the folder that the scenario's checkpoint.to names, or from that of --step. Or writes "
		"runs of the database as trace events or tables." SKEP_RUN_WORDS,
	.words = "What",
	.word = kinds,
	.least = 1,
	.most = 1 + RUNS_MAX,
	.group = groups,
	.example = examples,
	.run = run,
};
