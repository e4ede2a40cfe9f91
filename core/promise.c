/* SPDX-License-Identifier: Apache-2.0
 *
 * promise.c - with fixed pipelines everybody's share of a round is known when it opens, so the directory can send REDUCE then
 * (plan->promise): a worker begins when it has counted its share (promised.c), and no message has to pass between the last
 * gradient and the sum.
 *
 * The promise is made if every pipeline is whole and was granted its share, no more and no less; so the members of each stage
 * are all of its workers. It is off, and the round ends with an ordinary REDUCE of a higher attempt, as soon as
 *   - a worker is fenced (so also before anybody new can be a member),
 *   - a microbatch is given up (so also before anything is granted in its place, or run again).
 * Nothing else changes who is to count what. A notice to leave does not: who leaves goes between two rounds.
 *
 * No stage commits before all that was granted has come back, although its members may have told long before: else a
 * worker that dies late in the round would leave stages that have stepped and stages that have not, and the work that takes the
 * place of its own could not pass through both. When all is back the promised reduction becomes the round's, as if it had begun
 * then; who has not told yet tells, and who dies now is dealt with as ever. Where lost work is run again nobody is asked what
 * was counted: all that was granted has come back, so all of it was.
 */
#include "core/directory.h"

static bool is_due(struct directory *d, const struct skep_plan *plan)
{
	if (!plan->promise || d->whole < d->pipelines || d->issued != plan->microbatches)
		return false;
	for (uint32_t i = 0; i < plan->workers; i++) {
		const struct row *row = directory_row(d, i);
		if (row->stage == 0 && row->outstanding != plan->microbatches / d->pipelines)
			return false;
	}
	return true;
}

void promise_opened(struct directory *d, struct step *step)
{
	/* No two sums of a stage have the same name, be they of two candidates. */
	d->void_attempt = d->tried.on ? d->tried.candidate << 16 : 0;
	d->promised = is_due(d, step->plan);
	if (!d->promised)
		return;
	d->reduced = (struct reduced){.round = d->round, .issued = d->issued};
	for (uint32_t stage = 0; stage < step->plan->stages; stage++) {
		directory_stage(d, stage)->attempt = 0;
		directory_stage(d, stage)->committed = false;
		attempt_begin(d, step, stage, true);
	}
}

void promise_off(struct directory *d)
{
	if (d->promised)
		d->void_attempt = 1;
	d->promised = false;
}

void promise_complete(struct directory *d, struct step *step)
{
	d->promised = false;
	d->phase = PHASE_REDUCING;
	d->reduced.on = true;
	if (rounds_together(step->plan)) {
		rounds_all_told(d, step);
		return;
	}
	for (uint32_t stage = 0; stage < step->plan->stages && d->reduced.on; stage++) {
		if (directory_stage(d, stage)->pending == 0 && !directory_stage(d, stage)->committed)
			rounds_stage_told(d, step, stage);
	}
}
