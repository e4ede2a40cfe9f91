/* SPDX-License-Identifier: Apache-2.0
 *
 * mixture.h - the feed-forward part of a block as a mixture of experts (Shazeer et al. 2017, arXiv 1701.06538; Fedus et al. 2022,
 * arXiv 2101.03961, Switch; Jiang et al. 2024, arXiv 2401.04088, Mixtral). A router, p = softmax(x R), chooses the `per_token`
 * experts of the largest p for each token, and the output is the sum of w_j E_j(x) over those, where E_j is a SwiGLU of its own
 * and w is p, or p over the sum of the chosen ones where weights are renormalized.
 *
 * Capacity. With a capacity factor c an expert takes ceil(c k T / E) of the T tokens of a microbatch at most: first choices
 * before second ones, earlier tokens before later ones (Lepikhin et al. 2021, arXiv 2006.16668, algorithm 1). What comes after
 * is dropped: that expert adds nothing to the token, whose residual passes, and the weights of the others stay what they are.
 *
 * Losses, of each block over the T tokens of a microbatch. Load balance: aux_loss E sum_i f_i P_i, with f_i the tokens that
 * choose expert i, before any is dropped, over T, and P_i the mean of p_i (Switch, equation 4, which is for k = 1; with more
 * choices the f_i sum to k, as in load_balancing_loss_func of transformers for one block). Router z loss: z_loss / T times the
 * sum of (log sum exp of a token's scores)^2 (Zoph et al. 2022, arXiv 2202.08906, equation 5). Their gradients enter at the
 * scores; they are no part of the loss that the model's last layer returns.
 *
 * Arithmetic. Tokens are gathered, expert behind expert, and each expert's products are those of its rows. A token's sum is
 * made in the order of its choices. So nothing depends on the number of threads.
 */
#pragma once

#include "base/process/thread_pool.h"
#include "core/record.h"
#include "models/layers/real.h"
#include "models/read/model.h"

struct skep_mixture { /* of one pass */
	const struct skep_experts *experts;
	size_t tokens, hidden, feed;         /* T; widths */
	const skep_real *router, *up, *down; /* [hidden][count], [count][hidden][2 feed], [count][feed][hidden] */
	skep_real *router_gradient, *up_gradient, *down_gradient; /* backwards, added to; NULL: not counted */
	skep_real *kept, *work;                                   /* of the sizes below */
	struct skep_thread_pool *thread_pool;
	struct skep_expert_use *use; /* a forward pass adds what it has made of the tokens; NULL: nothing counts it */
};

/* Numbers for each token, from forward to backward. */
size_t skep_mixture_kept(const struct skep_experts *experts, size_t feed);
/* Numbers of all tokens, during a pass. */
size_t skep_mixture_work(const struct skep_experts *experts, size_t tokens, size_t hidden, size_t feed);

/* The most tokens of so many that one expert takes. */
size_t skep_mixture_capacity(const struct skep_experts *experts, size_t tokens);

/* ret[tokens][hidden] = residual + the mixture of x[tokens][hidden]. Fills `kept`. */
void skep_mixture_forward(
	const struct skep_mixture *mixture, const skep_real *x, const skep_real *residual, skep_real *ret);

/* ret[tokens][hidden]: the gradient at x, given that at the output. x is read only where gradients are counted, and may be
 * ret. */
void skep_mixture_backward(
	const struct skep_mixture *mixture, const skep_real *x, const skep_real *gradient, skep_real *ret);
