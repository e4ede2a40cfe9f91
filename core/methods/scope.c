/* SPDX-License-Identifier: Apache-2.0
 *
 * scope.c - what a directory directs: the run, or one of several candidates (candidates.c), whose losses are those of one of
 * many, whose rounds end when those of all have, and which is out where a run would fail.
 */
#include <assert.h>

#include "core/directory/directory.h"

static bool run_began_here(const struct directory *d, const struct skep_plan *plan, uint32_t worker)
{
	assert(worker < plan->workers);
	(void)d, (void)plan, (void)worker;
	return true;
}

static uint32_t run_first_attempt(const struct directory *d)
{
	assert(d->phase == PHASE_OPEN);
	(void)d;
	return 0;
}

/* With validations it is the newest one's that counts. */
static void run_loss(struct directory *d, const struct skep_plan *plan, int64_t mean_nano)
{
	assert(d->reduced.on);
	if (plan->validation.every == 0)
		d->loss_nano = mean_nano;
}

static bool run_stage_empty(struct directory *d, struct step *step, uint32_t stage)
{
	assert(stage < step->plan->stages);
	(void)d, (void)step, (void)stage;
	return false;
}

static bool run_fault(struct directory *d, struct step *step, struct skep_fault_at what)
{
	(void)d, (void)step, (void)what;
	return false;
}

static bool run_falls(struct directory *d)
{
	assert(d->phase == PHASE_STOPPED);
	(void)d;
	return false;
}

const struct skep_scope skep_scope_run = {
	.keeps = true,
	.began_here = run_began_here,
	.first_attempt = run_first_attempt,
	.loss = run_loss,
	.round_closed = skep_rounds_closed,
	.stage_empty = run_stage_empty,
	.fault = run_fault,
	.falls = run_falls,
};

static bool began_here(const struct directory *d, const struct skep_plan *plan, uint32_t worker)
{
	return skep_plan_candidate_of(plan, worker) == d->candidacy.candidate;
}

static uint32_t first_attempt(const struct directory *d)
{
	return d->candidacy.candidate << 16;
}

static void loss(struct directory *d, const struct skep_plan *plan, int64_t mean_nano)
{
	(void)plan;
	d->candidacy.points.last_nano = mean_nano;
	d->candidacy.heard = d->reduced.round + 1;
}

/* It goes on when all candidates have come to this. */
static void round_closed(struct directory *d, struct step *step)
{
	(void)step;
	assert(!d->candidacy.held);
	d->candidacy.held = true;
}

static bool stage_empty(struct directory *d, struct step *step, uint32_t stage)
{
	assert(stage < step->plan->stages);
	d->candidacy.stage = stage;
	skep_directory_stop(d, step, false);
	return true;
}

static bool fault(struct directory *d, struct step *step, struct skep_fault_at what)
{
	d->candidacy.fault = what;
	skep_directory_stop(d, step, false);
	return true;
}

static bool falls(struct directory *d)
{
	d->candidacy.fell = true;
	return true;
}

const struct skep_scope skep_scope_candidate = {
	.keeps = false,
	.began_here = began_here,
	.first_attempt = first_attempt,
	.loss = loss,
	.round_closed = round_closed,
	.stage_empty = stage_empty,
	.fault = fault,
	.falls = falls,
};
