/* SPDX-License-Identifier: Apache-2.0
 *
 * wiring.c - the policies of wiring.h. A new policy is one more case in skep_view_choose() and its state in the view.
 */
#include "core/wiring.h"

#include <assert.h>

#include "core/random.h"

uint32_t skep_view_capacity(const struct skep_plan *plan)
{
	return plan->workers < SKEP_VIEW_MAX ? plan->workers : SKEP_VIEW_MAX;
}

void skep_view_clear(struct skep_view *view)
{
	view->count = 0;
	view->heard = 0;
	view->sample = false;
}

static uint32_t find(const struct skep_view *view, uint32_t index)
{
	uint32_t i = 0;
	while (i < view->count && view->peer[i].index != index)
		i++;
	return i;
}

void skep_view_add(struct skep_view *view, uint32_t capacity, struct skep_peer peer, uint64_t *random)
{
	uint32_t i = find(view, peer.index);
	if (i < view->count) {
		if (view->peer[i].epoch < peer.epoch)
			view->peer[i].epoch = peer.epoch;
		return;
	}
	view->heard++;
	if (view->count < capacity) {
		view->peer[view->count++] = peer;
		return;
	}
	view->sample = true;
	uint32_t place = skep_random_below(random, view->heard); /* reservoir sampling */
	if (place < capacity)
		view->peer[place] = peer;
}

bool skep_view_remove(struct skep_view *view, uint32_t capacity, struct skep_peer peer)
{
	uint32_t i = find(view, peer.index);
	if (i < view->count && view->peer[i].epoch > peer.epoch)
		return false;
	if (view->heard > view->count || i < view->count)
		view->heard--;
	if (i < view->count) {
		view->count--;
		for (; i < view->count;
			i++) /* keeps the order, so that the choice depends on nothing but what was heard */
			view->peer[i] = view->peer[i + 1];
	}
	if (!view->sample || view->count > capacity / 2)
		return false;
	view->heard = view->count;
	view->sample = false;
	return true;
}

struct skep_peer skep_view_choose(const struct skep_view *view, enum skep_wiring wiring, uint64_t *random)
{
	assert(wiring == SKEP_WIRING_UNIFORM);
	if (view->count == 0)
		return (struct skep_peer){SKEP_NO_INDEX, 0};
	return view->peer[skep_random_below(random, view->count)];
}
