/* SPDX-License-Identifier: Apache-2.0
 *
 * progress.c - see progress.h. Redraws at most ten times a second.
 */
#include "analysis/summary/progress.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

#define BAR_CELLS 30

struct skep_progress skep_progress_begin(const char *label, bool visible)
{
	double now_s = skep_monotonic_s();
	return (struct skep_progress){.label = label, .visible = visible, .begin_s = now_s, .drawn_s = now_s};
}

/* False: not now. */
static bool draw_bar(struct skep_progress *progress, uint32_t done, uint32_t total)
{
	double now_s = skep_monotonic_s();
	if (!progress->visible || total == 0 || now_s - progress->drawn_s < 0.1)
		return false;
	double share = (double)done / total;
	int cells = (int)(share * BAR_CELLS);
	char bar[BAR_CELLS + 1];
	memset(bar, ' ', BAR_CELLS);
	memset(bar, '=', (size_t)cells);
	bar[BAR_CELLS] = '\0';
	fprintf(stderr, "\r%s [%s] %3.0f %%  ", progress->label, bar, 100 * share);
	progress->drawn_s = now_s;
	return progress->drawn = true;
}

/* `done` of `total` have been done since the bar began. */
static void draw_rest(const struct skep_progress *progress, uint32_t done, uint32_t total)
{
	if (done > 0)
		fprintf(stderr, ", %.0f s left", (progress->drawn_s - progress->begin_s) * (total - done) / done);
	fputs("\033[K", stderr);
	fflush(stderr);
}

/* Notes come more often than rounds end, so that a run whose rounds take minutes says that it lives. */
static void add_line(struct skep_progress *progress, skep_time now)
{
	double now_s = skep_monotonic_s(), at_s = (double)now * 1e-9;
	if (!progress->lines || now_s - progress->drawn_s < SKEP_PROGRESS_LINE_S)
		return;
	if (progress->done == 0) {
		fprintf(stderr, "skep: %s, at %.1f s: no round is done yet\n", progress->label, at_s);
	} else {
		fprintf(stderr, "skep: %s, at %.1f s: round %u of %u", progress->label, at_s, progress->done,
			progress->total);
		if (progress->validated)
			fprintf(stderr, ", validation %.4g", progress->validation_loss);
		fprintf(stderr, ", %.0f s left\n",
			(now_s - progress->begin_s) * (progress->total - progress->done) /
				(progress->done - progress->before));
	}
	fflush(stderr);
	progress->drawn_s = now_s;
}

static void draw(void *context, skep_time now, uint32_t done, uint32_t total)
{
	struct skep_progress *progress = context;
	if (progress->done == 0)
		progress->before = done - 1;
	progress->done = done;
	progress->total = total;
	add_line(progress, now);
	if (!draw_bar(progress, done, total))
		return;
	fprintf(stderr, "round %u of %u, at %.1f s", done, total, (double)now * 1e-9);
	if (progress->validated)
		fprintf(stderr, ", validation %.4g", progress->validation_loss);
	draw_rest(progress, done - progress->before, total - progress->before);
}

void skep_progress_show(
	struct skep_progress *progress, uint32_t done, uint32_t before, uint32_t total, uint32_t running)
{
	if (!draw_bar(progress, done, total))
		return;
	fprintf(stderr, "%u of %u, %u running", done, total, running);
	draw_rest(progress, done - before, total - before);
}

/* Said even when there is no bar: what a stage had learnt is lost. */
static void say(void *context, skep_time now, struct skep_peer who, const struct skep_note *note)
{
	double at_s = (double)now * 1e-9;
	struct skep_progress *progress = context;
	(void)who;
	add_line(progress, now);
	if (note->kind == SKEP_NOTE_VALIDATED && note->loss_nano != 0 && note->loss_nano != INT64_MAX) {
		progress->validated = true;
		progress->validation_loss = (double)note->loss_nano / 1e9;
	}
	if (note->kind == SKEP_NOTE_CANDIDATE_DROPPED) {
		skep_progress_end(context);
		bool gone = note->fault.kind == SKEP_FAULT_NONE;
		fprintf(stderr, "skep: at %.1f s, round %u: candidate %u is out: %s\n", at_s, note->round,
			note->candidate,
			gone ? "a stage of it has lost its last worker" : "its numbers are not finite");
		return;
	}
	if (note->kind == SKEP_NOTE_RESUMED) {
		skep_progress_end(context);
		fprintf(stderr, "skep: at %.1f s: the directory was lost, and is there again; ", at_s);
		if (progress->total > 0 && note->round == progress->total)
			fprintf(stderr, "all steps are kept, and the run is over\n");
		else
			fprintf(stderr, "all go on with round %u\n", note->round);
		return;
	}
	bool failed = note->kind == SKEP_NOTE_STOPPED && !note->ok && note->stage != (uint16_t)SKEP_NO_STAGE;
	bool unkept = note->kind == SKEP_NOTE_CHECKPOINT_FAILED, shard = note->kind == SKEP_NOTE_SHARD_LOST;
	if (!shard && note->kind != SKEP_NOTE_STAGE_EMPTY && note->kind != SKEP_NOTE_STAGE_RESTARTED && !failed &&
		!unkept)
		return;
	skep_progress_end(context);
	if (shard)
		fprintf(stderr,
			"skep: at %.1f s, round %u: worker %u is lost, and with it its shard of the optimizer's state "
			"(sync.zero): the run ends here; with sync.zero 0 it would have gone on\n",
			at_s, note->round, note->peer.index);
	else if (unkept)
		fprintf(stderr, "skep: at %.1f s: the state of stage %u after round %u could not be kept; %s\n", at_s,
			note->stage, note->round, "older checkpoints are still there, and the run goes on");
	else if (failed)
		fprintf(stderr, "skep: at %.1f s: no worker has come to serve stage %u\n", at_s, note->stage);
	else if (note->kind == SKEP_NOTE_STAGE_EMPTY)
		fprintf(stderr, "skep: at %.1f s, round %u: stage %u has lost its last worker, and waits for another\n",
			at_s, note->round, note->stage);
	else if (note->version > 0)
		fprintf(stderr, "skep: at %.1f s, round %u: stage %u goes on from its checkpoint of round %lld; %s\n",
			at_s, note->round, note->stage, (long long)note->version, "what it had learnt since is lost");
	else
		fprintf(stderr, "skep: at %.1f s, round %u: stage %u begins anew, without a checkpoint: %s\n", at_s,
			note->round, note->stage, "all that it had learnt is lost");
}

struct skep_recorder skep_progress_recorder(struct skep_progress *progress)
{
	return (struct skep_recorder){.context = progress, .note = say, .progress = draw};
}

void skep_progress_end(struct skep_progress *progress)
{
	if (progress->drawn)
		fputs("\r\033[K", stderr);
}
