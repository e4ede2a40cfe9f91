/* SPDX-License-Identifier: Apache-2.0
 *
 * ties.c - the directory's part in a tied table (plan->tied, tie.c): the first stage and the last one step on each other's sums,
 * so what is true of one reduction elsewhere is true of both of these together.
 *
 *   begun     in one step of the directory, with the same attempt, whose number is the same in both since no attempt of the one
 *             is begun without one of the other;
 *   void      when a member of either is fenced before the commit: both sum anew, since some member of the other may have the
 *             sum that the fenced one was in, and some may not;
 *   final     at once, when all members of both have told. A tally says here that its sender has both sums.
 *
 * So there is no state in which one of the two has stepped and the other may still have to sum: nothing needs to be undone.
 *
 * A stage that holds a copy and has lost its last worker is not founded anew: a checkpoint is older than the other copy, and the
 * two would be different tables from there on. The run fails then, as one whose stages do not wait.
 */
#include "core/directory.h"
#include "core/rebalance.h"

/* Who is fenced voids the sums of two stages. */
uint32_t ties_actions(const struct skep_plan *plan, uint32_t fences)
{
	return plan->tied > 0 ? fences + (fences + 1) * (skep_stage_size_max(plan) / SKEP_ROSTER_PART + 1) : 0;
}

uint32_t ties_twin(const struct skep_plan *plan, uint32_t stage)
{
	return skep_plan_ties(plan, stage) ? skep_plan_twin(plan, stage) : SKEP_NO_STAGE;
}

void ties_name(struct directory *d, const uint32_t *order, uint32_t size, uint32_t others, struct skep_message *reduce)
{
	const struct skep_peer nobody = {SKEP_NO_INDEX, 0};
	uint32_t rank = reduce->u.reduce.rank, further = rank + others;
	reduce->u.reduce.across = rank < others ? directory_worker(d, order[size + rank]) : nobody;
	reduce->u.reduce.along = further < size ? directory_worker(d, order[further]) : nobody;
}

void ties_count(struct directory *d, const struct skep_plan *plan)
{
	if (plan->tied == 0)
		return;
	d->tied[0] = norms_counted(d, plan, 0);
	d->tied[1] = norms_counted(d, plan, skep_plan_slices(plan) - 1);
}

uint32_t ties_counted(struct directory *d, const struct skep_plan *plan, uint32_t slice)
{
	return skep_plan_ties_slice(plan, slice) ? d->tied[slice == 0] : 0;
}

void ties_commit(struct directory *d, struct step *step, uint32_t stage)
{
	uint32_t twin = skep_plan_twin(step->plan, stage);
	if (directory_stage(d, twin)->pending > 0)
		return;
	ties_count(d, step->plan);
	rounds_commit(d, step, stage);
	rounds_commit(d, step, twin);
}
