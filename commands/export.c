/* SPDX-License-Identifier: Apache-2.0
 *
 * export.c - see export.h.
 */
#include "commands/export.h"

#include <inttypes.h>
#include <stdio.h>

#include "models/stage_weights.h"
#include "scenarios/periodic.h"

#define SHARD_BYTES (UINT64_C(5) << 30) /* larger files are cut, as others cut them */

enum status skep_export_command(const struct arguments *arguments)
{
	struct skep_scenario scenario;
	struct skep_export_facts facts;
	struct skep_diag diag = {0};
	char text[2048];
	if (arguments->output == NULL) {
		fputs("skep: export needs -o FOLDER\n", stderr);
		return STATUS_BAD_INPUT;
	}
	if (!skep_arguments_scenario(arguments, &scenario))
		return STATUS_BAD_INPUT;
	const struct skep_export options = {.from = scenario.checkpoint_to,
		.job = scenario.job,
		.step = arguments->step,
		.steps_per_round = skep_periodic_steps(&scenario.plan),
		.to = arguments->output,
		.dtype = arguments->bf16 ? SKEP_DTYPE_BF16 : SKEP_DTYPE_F32,
		.shard_bytes = SHARD_BYTES,
		.name = scenario.name};
	if (scenario.model.architecture == SKEP_ARCHITECTURE_NONE)
		skep_diag_set(
			&diag, scenario.path, 0, 0, NULL, "the model has no architecture that files of weights know");
	else if (scenario.checkpoint_to[0] == '\0')
		skep_diag_set(&diag, scenario.path, 0, 0, NULL,
			"keeps no checkpoints to take weights from: add `checkpoint: {every: 100, to: FOLDER}` and run "
			"it");
	bool done = !diag.set && skep_export_weights(&scenario.training, &options, &facts, &diag);
	if (!done) {
		skep_diag_print(&diag, text, sizeof text);
		fputs(text, stderr);
	} else if (arguments->json) {
		printf("{\"step\":%" PRIu64 ",\"weights\":%" PRIu32 ",\"parameters\":%" PRIu64 "}\n", facts.step,
			facts.weights, facts.parameters);
	} else if (!arguments->quiet) {
		fprintf(stderr, "wrote %" PRIu32 " weights with %" PRIu64 " parameters of step %" PRIu64 " into %s\n",
			facts.weights, facts.parameters, facts.step, arguments->output);
	}
	skep_scenario_finish(&scenario);
	return done ? STATUS_DONE : STATUS_BAD_INPUT;
}
