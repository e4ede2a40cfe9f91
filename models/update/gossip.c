/* SPDX-License-Identifier: Apache-2.0
 *
 * gossip.c - the outer step of periodic sync in pairs on a device: NoLoCo (Kolehmainen et al. 2025, arXiv 2506.10911, equation
 * 2, in the form of the authors' code).
 *
 * With outer parameters w_i and inner ones v_i of member i of a group, D_i = v_i - w_i is how far it has come. The outer step is
 *
 *     delta_i = alpha delta_i + beta mean(D) + gamma (mean(w) - w_i),    w_i = w_i + delta_i,    v_i = w_i.
 *
 * In the paper's equation 2 the second term has a minus, with which members would go back where they came from; the code has a
 * plus, and gamma = beta. Then the means of D and of w are needed together alone,
 *
 *     delta_i = alpha delta_i + beta (mean(v) - w_i),
 *
 * so members exchange v and nothing else, half of what D and w would be. That is heavy-ball descent, not Nesterov's: with
 * the gradient g = w_i - mean(v) and m = alpha m + g, it is w_i = w_i - beta m, `sgd` in optimizer.c with learning rate beta and
 * momentum alpha.
 *
 * The mean is weighted by what each has counted, as in DiLoCo here: PSEUDO_GRAD writes c_i v_i into the accumulator, and STEP
 * divides the sum by c, the sum of the group's c_i. Who has counted nothing weighs nothing, and still moves towards the other. If
 * neither has counted anything nothing is changed.
 */
#include "models/stage/stage.h"

static void pseudo(struct skep_stage *stage, const struct skep_op *op)
{
	const struct skep_range t = stage->trained;
	skep_real *own = skep_stage_own(stage, op->round) + t.first;
	stage->arrays->clear(stage->queue, own, t.count * sizeof *own);
	stage->arrays->weigh(
		stage->queue, t.count, stage->inner + t.first, own, (skep_real)op->microbatches, own); /* minus 0 */
}

void skep_stage_gossip(
	struct skep_stage *stage, const struct skep_training *training, const struct skep_op *op, const skep_real *sum)
{
	skep_real *gradient = skep_stage_own(stage, op->round);
	struct skep_op descent = *op;
	if (op->kind == SKEP_OP_PSEUDO_GRAD) {
		pseudo(stage, op);
		return;
	}
	if (op->microbatches > 0) {
		const struct skep_range t = stage->trained;
		const skep_real *w = skep_stage_parameters(stage, stage->version) + t.first;
		skep_real *g = gradient + t.first;
		stage->arrays->blend(stage->queue, t.count, sum + t.first, op->microbatches, sum + t.first, 0, g);
		stage->arrays->weigh(stage->queue, t.count, w, g, 1, g);
		descent.microbatches = 1;
	}
	skep_stage_outer(stage, training, &descent, gradient);
}
