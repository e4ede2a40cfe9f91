/* SPDX-License-Identifier: Apache-2.0
 *
 * calibrate.c - `skep calibrate`: the figures that predict a run, from a real one.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/calibrate/calibration.h"
#include "analysis/store/store.h"
#include "analysis/store/store_log.h"
#include "commands/arguments.h"
#include "commands/commands.h"
#include "exec/replay/replay.h"
#include "scenarios/resume/resume.h"
#include "scenarios/shard/shard.h"

struct calibrate_arguments {
	struct arguments common;
	const char *topology;
};

/* ---- the run ----------------------------------------------------------------------------------------------------- */

static enum status fail(const struct skep_diag *diag)
{
	return skep_report_diag(STATUS_BAD_INPUT, diag);
}

/* The scenario as the run had it; the files that it names must be as they were. */
static bool read_scenario(
	const struct skep_run_log *log, int64_t run, struct skep_scenario *ret, struct skep_diag *reterr)
{
	const struct skep_scenario_options options = {.split = !log->paced};
	bool read = skep_scenario_read_text(log->path, log->text, strlen(log->text), &options, ret, reterr);
	const char *changed = skep_run_sources_changed(&log->sources, read ? ret : NULL);
	if (changed) {
		*reterr = (struct skep_diag){0};
		skep_fail(reterr,
			"%s is not as run %" PRId64
			" read it: put it back (the column text of the table sources has it up to "
			"64 KiB), and name another topology with --topology",
			changed, run);
	} else if (read && ret->plan.workers + 1 != log->machines) {
		skep_fail(reterr, "the run had %" PRIu32 " workers, now its scenario gives %" PRIu32, log->machines - 1,
			ret->plan.workers);
	}
	if (read && !reterr->set && skep_shard_ranks(ret) > 1)
		skep_fail(reterr,
			"several ranks shared each stage of run %" PRId64
			", and its times are those of shards: calibrate a run with cluster.tensor_parallel: 1",
			run);
	if (read && reterr->set)
		skep_scenario_finish(ret);
	return !reterr->set;
}

/* The same machines at the same places? */
static bool same_machines(const struct skep_topology *a, const struct skep_topology *b)
{
	bool same = a->machines == b->machines && a->places == b->places && a->gpus == b->gpus;
	for (uint32_t i = 0; same && i < a->places; i++)
		same = strcmp(a->place_name[i], b->place_name[i]) == 0;
	for (uint32_t i = 0; same && i <= a->machines; i++)
		same = a->machine[i].place == b->machine[i].place && a->machine[i].gpu == b->machine[i].gpu;
	return same;
}

/* The scenario with the topology whose figures are to be put right. */
static bool read_other(const struct skep_run_log *log, const struct skep_scenario *of_run, const char *topology,
	struct skep_scenario *ret, struct skep_diag *reterr)
{
	char set[4096 + 32];
	const char *const sets[] = {set};
	struct skep_scenario_options options = {.set = sets, .sets = 1, .any_memory = true};
	snprintf(set, sizeof set, "cluster.topology=%s", topology);
	if (!skep_scenario_read_text(log->path, log->text, strlen(log->text), &options, ret, reterr))
		return false;
	if (same_machines(&of_run->topology, &ret->topology))
		return true;
	skep_fail(reterr,
		"%s is the topology of another cluster: the run had %" PRIu32 " machines at %" PRIu32
		" places, and it has to have the same, in the same order and with the same names of places",
		topology, of_run->topology.machines, of_run->topology.places);
	skep_scenario_finish(ret);
	return false;
}

static bool replay(const struct skep_run_log *log, const struct skep_scenario *scenario, int64_t run,
	struct skep_samples *ret, struct skep_diag *reterr)
{
	struct skep_replay_witness witness = {ret, skep_samples_message, skep_samples_op};
	struct skep_replay_result result;
	bool ran = skep_replay_witnessed(&scenario->plan, log->machine, &witness, &result);
	if (!ran || ret->no_memory)
		return skep_fail(reterr, "not enough memory to replay this run");
	if (result.verdict == SKEP_REPLAY_AGREES)
		return true;
	return skep_fail(reterr,
		"the log of run %" PRId64 " does not replay (%s): `skep replay %" PRId64 "` says where", run,
		result.why, run);
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

/* Also when quiet: who takes such figures for those of the machine is wrong by any factor. */
static void warn(const struct skep_calibration *c)
{
	if (!c->paced && !c->shaped)
		return;
	skep_say("skep: warning: run %" PRId64
		 " was %s: its %s are those that were imposed, not those of this machine, and are written as assumed\n",
		c->run,
		!c->shaped  ? "paced"
		: !c->paced ? "shaped"
			    : "paced and shaped",
		!c->shaped  ? "times"
		: !c->paced ? "links"
			    : "times and links");
}

static bool write_and_print(
	struct skep_calibration *calibration, const struct calibrate_arguments *a, struct skep_diag *reterr)
{
	const char *folder = a->common.output;
	if (!skep_calibration_write(calibration, folder, a->common.force, reterr))
		return false;
	if (a->common.json)
		skep_calibration_print_json(calibration, folder, stdout);
	else
		skep_calibration_print(calibration, stdout);
	warn(calibration);
	if (!a->common.json && !a->common.quiet)
		skep_say("wrote %s: simulate %s/scenario.yaml\n", folder, folder);
	return true;
}

static bool calibrate(
	const struct skep_run_log *log, int64_t run, const struct calibrate_arguments *a, struct skep_diag *reterr)
{
	struct skep_scenario scenario, other = {0};
	struct skep_samples samples = {0};
	struct skep_calibration calibration = {0};
	if (!read_scenario(log, run, &scenario, reterr))
		return false;
	skep_resume_from(&scenario, &(struct skep_resume){.version = log->first_round});
	bool fine = replay(log, &scenario, run, &samples, reterr) &&
	            (a->topology == NULL || read_other(log, &scenario, a->topology, &other, reterr));
	if (fine) {
		const struct skep_scenario *with = a->topology ? &other : &scenario;
		fine = skep_calibration_make(with, &samples, log->shaped, &calibration, reterr);
		calibration.run = run;
		calibration.paced = log->paced;
		calibration.shaped = log->shaped;
		fine = fine && write_and_print(&calibration, a, reterr);
		skep_calibration_finish(&calibration);
	}
	skep_samples_finish(&samples);
	if (a->topology != NULL && fine)
		skep_scenario_finish(&other);
	skep_scenario_finish(&scenario);
	return fine;
}

static enum status run(struct skep_command_line *line)
{
	struct calibrate_arguments a = {0};
	int64_t number;
	uint32_t count;
	struct skep_diag error = {0};
	struct skep_run_log log;
	enum status status;
	if (!skep_arguments_read(line, &a.common, &status))
		return status;
	if (!skep_arguments_runs(&a.common, 0, &number, &count))
		return STATUS_BAD_INPUT;
	if (a.common.output == NULL)
		return skep_report_error(
			STATUS_BAD_INPUT, "calibrate: -o FOLDER: where to write topology, profiles and scenario");
	struct skep_store *store = skep_store_open(a.common.db, false, &error);
	if (!store)
		return fail(&error);
	bool found = skep_run_log_read(store, number, &log, &error);
	skep_store_close(store);
	if (!found)
		return fail(&error);
	bool done = calibrate(&log, number, &a, &error);
	skep_run_log_finish(&log);
	return done ? STATUS_DONE : fail(&error);
}

static const struct skep_option rows[] = {
	{"output", 'o', SKEP_OPTION_PATH, offsetof(struct calibrate_arguments, common.output), "FOLDER",
		.help = "write topology.yaml, gpus/ and scenario.yaml into it; needed"},
	{"topology", 0, SKEP_OPTION_PATH, offsetof(struct calibrate_arguments, topology), "FILE",
		.help = "the topology of the same machines to begin from", .usual = "the run's own"},
};

static const struct skep_option_group groups[] = {
	SKEP_OWN_OPTIONS("Output", rows), SKEP_FORCE_OPTION, SKEP_DATABASE_OPTIONS, {0}};
static const struct skep_example examples[] = {
	{"skep calibrate 7 -o measured", "fit profiles and links to run 7, a real one"},
	{"skep sim measured/scenario.yaml", "and predict the next run with them"},
	{0},
};

const struct skep_command skep_command_calibrate = {
	.name = "calibrate",
	.operands = "RUN -o FOLDER",
	.summary = "fit profiles and links to a real run",
	.text = "Measures, in the log of a real run, each pass and step of each stage on each kind of GPU, what operations of "
		"reductions cost, and latency and bandwidth of each link, and writes them as a topology, GPU profiles with "
		"tables of stages, and a scenario that names them. Each figure comes with its 95 % interval and its number "
		"of samples; what the run does not show stays as it was, and it is said why.\n"
		"The run needs three rounds or more. Messages of several sizes and links that are idle between them show "
		"the most.",
	.least = 1,
	.most = 1,
	.group = groups,
	.example = examples,
	.run = run,
};
