/* SPDX-License-Identifier: Apache-2.0
 *
 * rank.c - which of what was tried is better, and what the seeds do not tell.
 */
#include <math.h>

#include "asking/answer.h"

/* How many seeds came to no end; none, where that is one in eight, which the answer itself may have (stated.c). */
static uint32_t lost_too_often(const struct skep_ask_figures *f)
{
	return 8 * f->lost > f->lost + f->stretches ? f->lost : 0;
}

uint32_t skep_ask_rank(const struct skep_ask_tried *tried, uint32_t count, bool money, uint32_t *ret)
{
	uint32_t ranked = 0;
	for (uint32_t i = 1; i < count; i++) {
		const struct skep_ask_figures *f = &tried[i].figures;
		double value = money ? skep_ask_usd(f) : f->time_s;
		uint32_t at = ranked;
		if (!f->ok)
			continue;
		for (; at > 0; at--) {
			const struct skep_ask_figures *before = &tried[ret[at - 1]].figures;
			bool worse = (money ? skep_ask_usd(before) : before->time_s) > value;
			uint32_t its = lost_too_often(before), own = lost_too_often(f);
			if (its != own ? its < own : !worse) /* what comes to its end is better */
				break;
			ret[at] = ret[at - 1];
		}
		ret[at] = i;
		ranked++;
	}
	return ranked;
}

bool skep_ask_gain(const struct skep_ask_answer *a, uint32_t help, struct skep_interval *ret)
{
	bool money = a->question.request->objective == SKEP_ASK_MONEY;
	*ret = skep_ask_times(&a->help[0].figures, &a->help[help].figures, money);
	return (ret->low > 1 || ret->high < 1) && fabs(ret->mean - 1) >= SKEP_ASK_NOTHING;
}

/* Slower with all of its machines than without those that are added, so one would not use them. */
static bool is_better_unused(const struct skep_ask_tried *as_it_is, const struct skep_ask_tried *with)
{
	return with->variation.more && skep_ask_times(&as_it_is->figures, &with->figures, false).high < 1;
}

uint32_t skep_ask_rank_helps(const struct skep_ask_answer *a, uint32_t *ret, uint32_t *ret_told)
{
	uint32_t all[SKEP_ASK_VARIATIONS_MAX], at = 0;
	uint32_t ranked = skep_ask_rank(a->help, a->helps, a->question.request->objective == SKEP_ASK_MONEY, all);
	struct skep_interval gain;
	for (uint32_t told = 2; told-- > 0;) {
		for (uint32_t i = 0; i < ranked; i++)
			if (skep_ask_gain(a, all[i], &gain) == (told == 1) &&
				!is_better_unused(&a->help[0], &a->help[all[i]]))
				ret[at++] = all[i];
		*ret_told = told == 1 ? at : *ret_told;
	}
	return at;
}
