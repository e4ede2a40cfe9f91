/* SPDX-License-Identifier: Apache-2.0
 *
 * agreement.c - which stages make the reductions of a round final together.
 *
 *   alone  each stage commits when all of its members have told.
 *   pair   the two stages that hold tied embeddings commit when the members of both have (tied_embeddings.c has why).
 *   all    no stage commits before all have told: where gradients are clipped by the norm of all of them, where what is lost
 *          is run again, so that no stage has stepped while another one may have to count once more, and with plan->together.
 *
 * plan->together is for runs that outlive their directory with what workers hold. Alone, a stage with few parameters steps while
 * another one still sums. A worker holds one version, so a directory that is lost then leaves one stage behind its step and
 * another one before it, which no worker can make any more: the divisors are the directory's. All COMMITs of a round leave the
 * directory in one step instead, and who has got one makes its step before it keeps what it holds. What is left is a loss while
 * these messages are on their way, of which some are lost: then all others have their sums, and presume the word where nothing of
 * the round was lost (worker/orphan.c).
 *
 * That costs no message and no memory. The next round opens when all have committed in any case; at worst a round is longer by
 * one STEP, which an early stage used to make while others still summed. To keep the version before a step as well would take
 * twice the memory of a stage and a copy in each round; a second word that all have got the first one, a way there and back.
 */
#include "core/directory/directory.h"

#include <assert.h>

static void nothing(struct directory *d, struct step *step)
{
	(void)d, (void)step;
}

static void ignore(struct directory *d, struct step *step, uint32_t stage)
{
	(void)d, (void)step, (void)stage;
}

static void pair_told(struct directory *d, struct step *step, uint32_t stage)
{
	assert(!directory_stage(d, stage)->committed);
	assert(directory_stage(d, stage)->attempt > 0);
	uint32_t tied_peer =
		skep_plan_is_tied(step->plan, stage) ? skep_plan_tied_peer(step->plan, stage) : SKEP_NO_STAGE;
	if (tied_peer != SKEP_NO_STAGE && directory_stage(d, tied_peer)->pending > 0)
		return;
	for (uint32_t i = 0; tied_peer != SKEP_NO_STAGE && i < step->how.features; i++)
		step->how.feature[i]->resolve(d, step->plan);
	skep_rounds_commit(d, step, stage);
	if (tied_peer != SKEP_NO_STAGE)
		skep_rounds_commit(d, step, tied_peer);
}

static void all_told(struct directory *d, struct step *step, uint32_t stage)
{
	assert(!directory_stage(d, stage)->committed);
	(void)stage;
	skep_rounds_all_told(d, step);
}

/* All of it is lost in a stage without members, and the round goes on. */
const struct skep_agreement skep_agreement_alone = {
	.told = skep_rounds_commit,
	.deserted = skep_rounds_commit,
	.begun = nothing,
};

const struct skep_agreement skep_agreement_pair = {
	.told = pair_told,
	.deserted = skep_rounds_commit,
	.begun = nothing,
};

const struct skep_agreement skep_agreement_all = {
	.told = all_told,
	.deserted = ignore,
	.begun = skep_rounds_all_told,
};
