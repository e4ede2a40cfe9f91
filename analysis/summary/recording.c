/* SPDX-License-Identifier: Apache-2.0
 *
 * recording.c - see recording.h. Keeps true: whatever has ended the run, every round that was closed is in the database, and
 * its row says that it goes on no more.
 */
#include "analysis/summary/recording.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/options.h"
#include "scenarios/read/groups.h"

#define END_PATIENCE_S 600 /* a run is worth more than the time until its database is free */

/* Workers step before their round is closed and has a row. Where the run was lost between the two, and the states that this one
 * begins with are from behind that step, the round has no row in either. What another database has is not asked. */
static void say_unrecorded(struct skep_recording *r)
{
	uint32_t rounds = 0, first = r->scenario->plan.first_round;
	if (r->scenario->kept_from == 0)
		return;
	bool known = skep_store_rounds_closed(r->options.db, r->scenario->kept_from, &rounds);
	if (!known)
		fprintf(stderr,
			"skep: warning: %s does not know the run that this one goes on with: it has no rows of what was before "
			"round %u, and whether that run had recorded all of it cannot be told\n",
			r->options.db, first);
	if (!known || rounds >= first)
		return;
	skep_tally_unrecorded(r->tally, first - rounds);
	char to[32] = "";
	if (first - rounds > 1)
		snprintf(to, sizeof to, "s %u to %u", rounds, first - 1);
	else
		snprintf(to, sizeof to, " %u", rounds);
	fprintf(stderr,
		"skep: warning: the run that this one goes on with was lost before it had recorded round%s, which its workers "
		"had made: %s has no row of %s\n",
		to, r->options.db, first - rounds > 1 ? "them" : "it");
}

bool skep_recording_begin(struct skep_recording *r, const struct skep_recording_options *options,
	const struct skep_scenario *scenario, struct skep_diag *reterr)
{
	*r = (struct skep_recording){.options = *options, .scenario = scenario};
	r->tally = skep_tally_create(scenario, options->world);
	if (!r->tally)
		return skep_fail(reterr, "not enough memory to record the run");
	r->store = skep_store_open(options->db, true, reterr);
	if (!r->store || !skep_store_begin(r->store, scenario, options->world, options->device, options->pace,
				 options->shape, &r->run, reterr)) {
		skep_store_close(r->store);
		skep_tally_destroy(r->tally);
		return false;
	}
	if (options->details)
		skep_store_keep_details(r->store);
	skep_store_patience(r->store, END_PATIENCE_S, stderr);
	say_unrecorded(r);
	r->results = (struct skep_recorder_pair){skep_store_recorder(r->store), skep_tally_recorder(r->tally)};
	bool terminal = skep_say_draws();
	r->progress = skep_progress_begin(options->world, !options->quiet && !options->json && terminal);
	r->progress.lines = !options->quiet && !terminal;
	r->all = (struct skep_recorder_pair){skep_recorder_both(&r->results), skep_progress_recorder(&r->progress)};
	r->recorder = skep_recorder_both(&r->all);
	r->begin_s = skep_monotonic_s();
	return true;
}

const char *skep_recording_loss(const struct skep_plan *plan)
{
	return plan->on_loss == SKEP_ON_LOSS_WAIT ? "a stage lacked a worker, and no other came in time"
	                                          : "a stage lost its last worker, and no other came in time";
}

static void explain(struct skep_recording *r, const char *stopped, struct skep_summary *summary)
{
	if (stopped != NULL) {
		snprintf(summary->failure, sizeof summary->failure, "%s", stopped);
		const char *s = summary->steps == 1 ? "" : "s", *are = summary->steps == 1 ? "is" : "are";
		snprintf(r->failure, sizeof r->failure,
			"run %" PRId64 " was %s after %" PRIu64 " step%s, which %s in %s", r->run, stopped,
			summary->steps, s, are, r->options.db);
	} else if (summary->failure[0] != '\0') {
		snprintf(r->failure, sizeof r->failure, "the run failed: %.*s", (int)sizeof summary->failure,
			summary->failure);
	} else {
		snprintf(r->failure, sizeof r->failure, "the run failed: %s", skep_recording_loss(&r->scenario->plan));
	}
}

bool skep_recording_end(
	struct skep_recording *r, skep_time end_ns, uint64_t events, enum skep_outcome outcome, const char *stopped)
{
	struct skep_summary summary;
	struct skep_diag error = {0};
	skep_progress_end(&r->progress);
	skep_tally_finish(r->tally, end_ns, events, skep_monotonic_s() - r->begin_s, outcome, &summary);
	summary.run_id = r->run;
	summary.format_hint = strcmp(r->options.world, "sim") == 0 ? skep_number_format_hint(r->scenario) : "";
	skep_number_format_text(
		r->scenario, r->options.world, r->options.device, r->options.pace, summary.number_format);
	skep_traced_left_out(r->scenario, summary.left_out, sizeof summary.left_out);
	if (outcome != SKEP_DONE)
		explain(r, stopped, &summary);
	bool stored = skep_store_end(r->store, &summary, &error);
	skep_tally_destroy(r->tally);
	skep_store_close(r->store);
	if (r->options.json)
		skep_summary_print_json(&summary, stdout);
	else
		skep_summary_print_text(&summary, stdout);
	if (!stored)
		fprintf(stderr, "skep: %s\n", error.message);
	return stored && outcome == SKEP_DONE;
}
