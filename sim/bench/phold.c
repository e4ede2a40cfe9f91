/* SPDX-License-Identifier: Apache-2.0
 *
 * phold.c - workload PHOLD (after Fujimoto 1990): the bare loop of events. A constant number of events is pending; each that
 * happens at a place causes one at a place drawn at random, a uniform 1 to 2000 ticks later. Draws are integers, so that the
 * time of the last event is the same for every program.
 */
#include <stdlib.h>

#include "core/random.h"
#include "sim/bench/loop.h"
#include "sim/bench/workload.h"

#define MEAN_TICKS 1000u

struct phold {
	struct skep_bench_loop loop;
	uint32_t places;
	uint64_t *random; /* [places] */
	uint64_t left;
};

static void cause(struct phold *phold, uint32_t place)
{
	uint64_t *random = &phold->random[place];
	uint32_t to = skep_random_below(random, phold->places);
	skep_bench_happen(&phold->loop, 1 + skep_random_below(random, 2 * MEAN_TICKS), 0, to);
}

static void on_event(void *context, const struct skep_queue_entry *entry)
{
	struct phold *phold = context;
	phold->left--;
	cause(phold, entry->index);
}

bool skep_bench_phold(const struct skep_phold_work *work, struct skep_bench_result *ret)
{
	const struct skep_bench_hearer hearer = {on_event, NULL};
	struct phold phold = {.places = work->pending, .left = work->events};
	bool good = skep_bench_star(&phold.loop, 1, false, 1, 0, 1e-9) &&
	            (phold.random = skep_bench_array(&phold.loop, work->pending, sizeof *phold.random));
	if (good) {
		for (uint32_t i = 0; i < work->pending; i++) {
			phold.random[i] = skep_mix(i);
			cause(&phold, i);
		}
		good = skep_bench_loop_run(&phold.loop, &hearer, &phold, &phold.left);
	}
	ret->makespan_s = phold.loop.tick_s * (double)phold.loop.now;
	ret->done = work->events - phold.left;
	free(phold.random);
	skep_bench_loop_finish(&phold.loop);
	return good;
}
