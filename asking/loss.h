/* SPDX-License-Identifier: Apache-2.0
 *
 * loss.h - the law by which losses of the model are taken to fall, from published tables, and the loss that is aimed at.
 *
 *     L(D, H, M) = E + A (D' / D1)^-alpha,    D' = D / (H^gamma M^(mu ln H)),    D1 = 20 N
 *
 * alpha = 0.28 and A = 410.7 D1^-0.28 are those of Hoffmann et al. 2022 (arXiv 2203.15556, eq. 10): how the loss
 * falls with tokens. E is such that data parallel training has after 20 N tokens the loss that Charles et al. 2025
 * (arXiv 2503.09799, table 4) measured, between their sizes by the logarithm of N. gamma and mu are fitted to the
 * same table: how much more data DiLoCo takes with 1, 2, 4 and 8 replicas of H = 30. That it takes the logarithm
 * of H from there is the law's form and no measurement; what they show for H up to 300 rises with H. So `--tokens`
 * are tokens of synchronous training: a method that learns less from a token is given more of them, until the loss
 * is the same, and methods are compared by what they take until then.
 */
#pragma once

#include "scenarios/plan/law.h"

struct skep_ask_model;

/* `outside`: the model is smaller or larger than any of the table, whose nearest row stands for it. */
bool skep_ask_loss_make(const struct skep_ask_model *model, double batch_tokens, struct skep_law *ret,
	bool *ret_outside, struct skep_diag *reterr);

/* Of synchronous training after so many tokens. */
double skep_ask_loss_target(const struct skep_law *law, double tokens);
