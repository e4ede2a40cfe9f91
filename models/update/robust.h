/* SPDX-License-Identifier: Apache-2.0
 *
 * robust.h - how a stage aggregates its members' gradients when some of them may be wrong: in place of the mean it
 * takes an aggregate that a few attackers cannot move far.
 *
 * Member i brings the sum s_i of the gradients of c_i microbatches. It has a vote if c_i > 0: a newcomer that has counted nothing
 * has none. What is compared is g_i = s_i / c_i, member by member, however much each has counted; what is kept is averaged with
 * the weights c_i, as the mean is. Of m votes b = trim + floor(share m) are thought to be wrong, but no more than
 * (m - 1) / 2: among so few a majority is all that can be told. With D = c_1 + .. + c_n the result is
 *
 *     D (sum of s_i kept) / (sum of c_i kept),
 *
 * so that it stands in for the sum whose divisor is D; if all are kept the factor is exactly 1.
 *
 *   trimmed mean  of each element by itself the b smallest and the b largest g_i are left out; of equal ones those of the lowest
 *                 ranks. Yin et al. 2018, Definition 2; there members have equal weights, and b is the same fraction of all.
 *                 What is not finite gives itself away: with q such votes these are left out and b - q more at each end (none,
 *                 if q > b), so that NaNs do not take the least or the largest of the right ones with them. If all are
 *                 such, so is the result.
 *   zeno          of each range that is made at once (the whole vector, or the chunk that a butterfly's member owns) the b
 *                 members with the lowest scores are left out, <z, g_i> - rho |g_i|^2, the lower ranks stay among equals.
 *                 Xie et al. 2019 score by how much a step along g_i lowers the loss of a sample of the server's own,
 *                 f(x) - f(x - gamma g_i) - rho |g_i|^2. Here no worker has such a sample, least of all in the middle
 *                 of a pipeline. To first order that fall is gamma <gradient, g_i>, and the gradient is taken to be z,
 *                 the element-wise median of the votes. With rho = 1/2 the best are those nearest to the median. A
 *                 score that is no number is the lowest.
 *
 * What it does not do: with b wrong among m > 2b votes the trimmed mean lies, in each element, between the least and the largest
 * of the right ones; more than b are not held off. Members who have counted much weigh much, also wrong ones.
 *
 * All in fp32 and written order (scores: double), so equal everywhere.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum skep_robust_method { SKEP_ROBUST_MEAN, SKEP_ROBUST_TRIMMED_MEAN, SKEP_ROBUST_ZENO };

struct skep_robust {
	enum skep_robust_method method; /* of MEAN nothing else is looked at */
	uint32_t trim;
	double share; /* in [0, 1/2] */
	double rho;   /* zeno */
};

/* How many of the `votes` are left out; for trimmed means, at each end. */
uint32_t skep_robust_left_out(const struct skep_robust *robust, uint32_t votes);

/* Scores are summed over so many elements at a time, in sixteen sums side by side, and then added: an order that can be shared
 * out. */
enum { SKEP_ROBUST_SPAN = 4096 };
/* Numbers that a device may need for them beside the parts: a double for each member and span, and a word for each member. */
static inline size_t skep_robust_scratch(uint32_t members, size_t n)
{
	return members * (2 * ((n + SKEP_ROBUST_SPAN - 1) / SKEP_ROBUST_SPAN) + 1);
}

/* ret[n] of part[members][n], rank by rank, which hold sums of weight[members] microbatches' gradients. At most SKEP_ROSTER_MAX
 * members. The result is 0 if no member has counted any. */
void skep_robust_aggregate(const struct skep_robust *robust, uint32_t members, size_t n, const float *part,
	const uint32_t *weight, float *ret);
