/* SPDX-License-Identifier: Apache-2.0
 *
 * check.c - `skep check`: reads a scenario and prints what would run.
 */
#include "commands/arguments.h"
#include "commands/commands.h"
#include "planning/expected/expected.h"
#include "scenarios/describe/describe.h"

static bool expect_step(const struct skep_scenario *s, struct skep_described_step *ret, bool *ret_lacking)
{
	struct skep_expected e;
	bool known = skep_expected_at_start(s, &e, ret->bound, sizeof ret->bound);
	*ret_lacking = e.lacking;
	ret->pace = skep_expected_pace(&e);
	ret->passes_s = e.flow_s;
	ret->reduction_s = e.reduction_s;
	ret->update_s = e.update_s;
	ret->turn_s = e.turn_s;
	ret->busy = e.busy;
	ret->starved = e.starved;
	return known;
}

static enum status run(struct skep_command_line *line)
{
	struct arguments a = {0};
	struct skep_scenario scenario;
	enum status status;
	if (!skep_arguments_read(line, &a, &status))
		return status;
	if (!skep_arguments_scenario(&a, &scenario))
		return STATUS_BAD_INPUT;
	struct skep_described_step expected = {0};
	bool lacking, known = expect_step(&scenario, &expected, &lacking);
	if (!lacking)
		skep_scenario_describe(&scenario, known ? &expected : NULL, a.json, stdout);
	skep_scenario_finish(&scenario);
	return lacking ? skep_report_error(STATUS_FAILED, "not enough memory to expect anything of this scenario")
	               : STATUS_DONE;
}

static const struct skep_option_group groups[] = {SKEP_SCENARIO_AND_TRACE_OPTIONS, SKEP_OUTPUT_OPTIONS, {0}};
static const struct skep_example examples[] = {
	{"skep check scenarios/two-datacentres.yaml", "stages, workers, memory and traffic of one training step"},
	{"skep check scenarios/two-datacentres.yaml --set model.stages=2", "the same model in two pipeline stages"},
	{0},
};

const struct skep_command skep_command_check = {
	.name = "check",
	.operands = "SCENARIO",
	.summary = "validate a scenario; print stages, memory and traffic",
	.text = "Reads a scenario and every file it names, and prints what would run: stages, workers, memory of each "
		"GPU, bytes per step. An error is printed with its file, line and column. Nothing is simulated or "
		"stored.",
	.least = 1,
	.most = 1,
	.group = groups,
	.example = examples,
	.run = run,
};
