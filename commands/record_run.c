/* SPDX-License-Identifier: Apache-2.0
 *
 * record_run.c - see record_run.h.
 */
#include "commands/record_run.h"

#include "analysis/summary/recording.h"

enum status skep_record_run(const struct arguments *arguments, const struct record_run *how,
	const struct skep_scenario *scenario, struct skep_exec_result *ret)
{
	struct skep_recording recording;
	struct skep_diag error = {0};
	const struct skep_recording_options options = {.db = arguments->db,
		.world = "real",
		.device = how->device == SKEP_DEVICE_CUDA ? "cuda" : "cpu",
		.pace = how->pace,
		.shape = how->shape,
		.json = arguments->json,
		.quiet = arguments->quiet};
	if (!skep_recording_begin(&recording, &options, scenario, &error)) {
		enum status status = skep_report_diag(STATUS_BAD_INPUT, &error);
		if (how->refused != NULL)
			how->refused(how->context);
		return status;
	}
	bool ran = how->run(how->context, scenario, &recording.recorder, ret, &error);
	enum skep_outcome outcome = ran ? ret->outcome : SKEP_FAILED;
	bool done = skep_recording_end(
		&recording, ret->end_ns, ret->events, outcome, ret->signal != 0 ? error.message : NULL);
	if (outcome != SKEP_DONE)
		skep_report_error(STATUS_FAILED, !ran && ret->signal == 0 ? error.message : recording.failure);
	return done ? STATUS_DONE : STATUS_FAILED;
}
