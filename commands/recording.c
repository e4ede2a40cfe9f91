/* SPDX-License-Identifier: Apache-2.0
 *
 * recording.c - see recording.h. Keeps true: whatever has ended the run, every round that was closed is in the database, and
 * its row says that it goes on no more.
 */
#include "commands/recording.h"

#include <inttypes.h>
#include <time.h>
#include <unistd.h>

#define ERROR_BYTES 1024
#define END_PATIENCE_S 600 /* a run is worth more than the time until its database is free */

static double seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

bool skep_recording_begin(struct recording *r, const struct arguments *arguments, const struct skep_scenario *scenario,
	const char *world, char *reterr, size_t size)
{
	const struct skep_exec_options *exec = &arguments->exec;
	const char *device = exec->device == SKEP_DEVICE_CUDA ? "cuda" : "cpu";
	*r = (struct recording){0};
	r->store = skep_store_open(arguments->db, true, reterr, size);
	if (!r->store ||
		!skep_store_begin(r->store, scenario, world, device, exec->pace, exec->shape, &r->run, reterr, size)) {
		skep_store_close(r->store);
		return false;
	}
	skep_store_patience(r->store, END_PATIENCE_S, stderr);
	r->tally = skep_tally_create(scenario, world);
	r->results = (struct skep_recorder_pair){skep_store_recorder(r->store), skep_tally_recorder(r->tally)};
	bool terminal = isatty(STDERR_FILENO);
	r->progress = skep_progress_begin(world, !arguments->quiet && !arguments->json && terminal);
	r->progress.lines = !arguments->quiet && !terminal;
	r->all = (struct skep_recorder_pair){skep_recorder_both(&r->results), skep_progress_recorder(&r->progress)};
	r->recorder = skep_recorder_both(&r->all);
	r->begin_s = seconds();
	return true;
}

static const char failed_run[] = "the run failed: a stage lost its last worker, and no other came in time";

static void explain(
	struct recording *r, const struct arguments *arguments, const char *stopped, struct skep_summary *summary)
{
	if (stopped != NULL) {
		snprintf(summary->failure, sizeof summary->failure, "%s", stopped);
		const char *s = summary->steps == 1 ? "" : "s", *are = summary->steps == 1 ? "is" : "are";
		snprintf(r->failure, sizeof r->failure,
			"run %" PRId64 " was %s after %" PRIu64 " step%s, which %s in %s", r->run, stopped,
			summary->steps, s, are, arguments->db);
	} else if (summary->failure[0] != '\0') {
		snprintf(r->failure, sizeof r->failure, "the run failed: %.*s", (int)sizeof summary->failure,
			summary->failure);
	} else {
		snprintf(r->failure, sizeof r->failure, "%s", failed_run);
	}
}

enum status skep_recording_end(struct recording *r, const struct arguments *arguments, skep_time end_ns,
	uint64_t events, enum skep_outcome outcome, const char *stopped)
{
	struct skep_summary summary;
	char error[ERROR_BYTES];
	skep_progress_end(&r->progress);
	skep_tally_finish(r->tally, end_ns, events, seconds() - r->begin_s, outcome, &summary);
	summary.run_id = r->run;
	if (outcome != SKEP_DONE)
		explain(r, arguments, stopped, &summary);
	bool stored = skep_store_end(r->store, &summary, error, sizeof error);
	skep_tally_destroy(r->tally);
	skep_store_close(r->store);
	if (arguments->json)
		skep_summary_print_json(&summary, stdout);
	else
		skep_summary_print_text(&summary, stdout);
	if (stored)
		return outcome == SKEP_DONE ? STATUS_DONE : STATUS_FAILED;
	fprintf(stderr, "skep: %s\n", error);
	return STATUS_FAILED;
}
