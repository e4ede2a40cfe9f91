/* SPDX-License-Identifier: Apache-2.0
 *
 * price.c - throughput per price: a machine more is wanted while what it adds to the rate, over its price, is at least a share of
 * the rate so far over its price. It may stay until that is less than the share by the margin. With one kind and n machines the
 * next one brings a / (a + b (n + 1)) of the mean (scale.h): a share of 0.5 stops where b (n + 1) exceeds a, and half of the
 * time of each machine would be spent on what does not shrink.
 */
#include "core/scale/scale.h"

static bool wants(const struct skep_scale *scale, const struct skep_scale_now *now,
	const struct skep_scale_offer *offer, bool keep)
{
	(void)now;
	double share = (double)scale->share_ppm / SKEP_SCALE_MILLION;
	if (keep)
		share = share * (1 - (double)scale->margin_ppm / SKEP_SCALE_MILLION);
	return offer->rate <= 0 ||
	       (offer->next_rate - offer->rate) * offer->price >= share * offer->rate * offer->next_price;
}

const struct skep_scale_rule skep_scale_price = {.wants = wants};
