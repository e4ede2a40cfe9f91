/* SPDX-License-Identifier: Apache-2.0
 *
 * deadline.c - as few machines as finish in time: a machine more is wanted while the rate is below what is left over the time
 * that is left, with the margin on top; it may stay until the rate is above that with twice the margin. Behind the deadline all
 * that there may be are wanted, so that the run ends soon.
 */
#include "core/scale/scale.h"

static bool wants(const struct skep_scale *scale, const struct skep_scale_now *now,
	const struct skep_scale_offer *offer, bool keep)
{
	if (now->now_ns >= scale->deadline_ns)
		return true;
	double needed = (double)now->left / (double)(scale->deadline_ns - now->now_ns);
	double margin = (keep ? 2 : 1) * (double)scale->margin_ppm / SKEP_SCALE_MILLION;
	return offer->rate < needed * (1 + margin);
}

const struct skep_scale_rule skep_scale_deadline = {.wants = wants};
