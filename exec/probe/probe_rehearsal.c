/* SPDX-License-Identifier: Apache-2.0
 *
 * probe_rehearsal.c - what a pass costs a worker besides its arithmetic.
 *
 * In a run a worker's main thread decides and handles messages, and a thread beside it computes (exec/loop/lanes.h). Each pass
 * is handed over and its end is heard of, and each payload takes the main thread's time, often on the cores that compute. Passes
 * that follow each other in one thread (models/device/stage_bench.h) have none of that. So every rank does here what a worker
 * does, all at once: it has passes made by another thread, by themselves, then with a payload sent to a partner and one received
 * from it for each of them. What the period of passes then is longer than in one thread is what it costs.
 *
 * The parts of a round follow each other at once and are compared within it, so that what a machine is busy with besides
 * is in all of them. What the rounds bear is said by estimate.h.
 */
#include <assert.h>
#include <math.h>

#include "base/process/sched.h"
#include "base/process/threads.h"
#include "exec/probe/estimate.h"
#include "exec/probe/probe_rank_internal.h"

#define PART_NS UINT64_C(100000000)
#define SMALL 4096u  /* bytes of a payload that costs little but itself */
#define UNDER_WAY 2u /* payloads: a slow line gets fewer than one for each pass */
#define OFTEN 0.25   /* of the passes that have a payload, or it is not known what one costs */

struct performer {
	struct probe_rank *p;
	void *passes;
	struct skep_threads threads; /* the one that computes; its lock guards what follows */
	bool asked, ended, failed;
	struct skep_diag why; /* once failed */
};

static bool perform(void *context, uint32_t number)
{
	struct performer *o = context;
	struct skep_transport *transport = o->p->transport;
	assert(number == 1);
	if (!o->asked)
		return false;
	o->asked = false;
	pthread_mutex_unlock(&o->threads.lock);
	skep_sched_exact_timers();
	const bool done = o->p->setup->passes->next(o->passes, &o->why);
	pthread_mutex_lock(&o->threads.lock);
	o->failed = o->failed || !done;
	o->ended = true;
	pthread_mutex_unlock(&o->threads.lock); /* whom this wakes wants it at once */
	transport->wake(transport->self);
	pthread_mutex_lock(&o->threads.lock);
	return true;
}

static bool has_ended(struct performer *o)
{
	pthread_mutex_lock(&o->threads.lock);
	const bool ended = o->ended, failed = o->failed;
	o->ended = false;
	pthread_mutex_unlock(&o->threads.lock);
	if (failed)
		skep_probe_rank_fail(o->p, o->why.message);
	return ended;
}

static void hand_over(struct performer *o)
{
	pthread_mutex_lock(&o->threads.lock);
	assert(!o->asked && !o->ended); /* one pass at a time */
	o->asked = true;
	skep_threads_offer(&o->threads, false);
	pthread_mutex_unlock(&o->threads.lock);
}

/* ---- parts of a round -------------------------------------------------------------------------------------------- */

/* A backward pass follows each forward pass, so a part has as many of either. */
static bool goes_on(const struct probe_rank *p, skep_time begin_ns, uint32_t passes)
{
	return !p->over && (passes == 0 || passes % 2 != 0 || probe_rank_now(p) < begin_ns + PART_NS);
}

static double bare_s(struct performer *o)
{
	struct probe_rank *p = o->p;
	struct skep_diag why = {0};
	const skep_time begin_ns = probe_rank_now(p);
	uint32_t passes = 0;
	for (; goes_on(p, begin_ns, passes); passes++)
		if (!p->setup->passes->next(o->passes, &why))
			skep_probe_rank_fail(p, why.message);
	return 1e-9 * (double)(probe_rank_now(p) - begin_ns) / passes;
}

/* With payloads of so many bytes to a rank, UINT32_MAX: to none. *ret_often: how many payloads a pass. */
static double handed_s(struct performer *o, uint32_t to, uint64_t bytes, double *ret_often)
{
	struct probe_rank *p = o->p;
	const skep_time begin_ns = probe_rank_now(p);
	uint32_t passes = 0, payloads = 0;
	for (; goes_on(p, begin_ns, passes); passes++) {
		hand_over(o);
		while (!has_ended(o) && !p->over)
			skep_probe_rank_poll(p);
		if (to == UINT32_MAX || p->unsent >= UNDER_WAY || p->over)
			continue;
		skep_probe_rank_hand(p, to, bytes);
		payloads++;
	}
	*ret_often = (double)payloads / passes;
	return 1e-9 * (double)(probe_rank_now(p) - begin_ns) / passes;
}

/* A pass has a payload out and one in, which is two. */
static struct skep_rehearsed play(struct performer *o, uint32_t to, uint64_t bytes)
{
	double often;
	assert(bytes > SMALL);
	const double bare = bare_s(o), handed = handed_s(o, UINT32_MAX, 0, &often);
	struct skep_rehearsed ret = {bare, handed - bare, NAN, NAN};
	const double small = handed_s(o, to, SMALL, &often);
	if (often >= OFTEN)
		ret.small_s = (small - handed) / (2 * often);
	const double large = handed_s(o, to, bytes, &often);
	if (often >= OFTEN)
		ret.large_s = (large - handed) / (2 * often);
	return ret;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static bool begin(struct performer *o, uint64_t *ret_bytes)
{
	struct skep_diag why = {0};
	o->passes = o->p->setup->passes->begin(o->p->setup->microbench_context, ret_bytes, &why);
	if (o->passes == NULL)
		return skep_probe_rank_fail(o->p, why.message), false;
	if (skep_probe_rank_grow(&o->p->out, &o->p->out_room, *ret_bytes) &&
		skep_probe_rank_grow(&o->p->in, &o->p->in_room, *ret_bytes) &&
		skep_threads_start(&o->threads, 1, 0, perform, o))
		return true;
	skep_probe_rank_fail(o->p, "no memory for a thread that computes");
	o->p->setup->passes->finish(o->passes);
	return false;
}

static void finish(struct performer *o)
{
	skep_threads_stop(&o->threads);
	o->p->setup->passes->finish(o->passes);
}

struct skep_probed_costs skep_probe_rank_rehearse(struct probe_rank *p, uint32_t to)
{
	struct performer o = {.p = p};
	struct skep_rehearsed round[SKEP_REHEARSED_ROUNDS];
	uint64_t bytes;
	if (!begin(&o, &bytes))
		return (struct skep_probed_costs){NAN, NAN, NAN};
	for (uint32_t i = 0; i < SKEP_REHEARSED_ROUNDS; i++)
		round[i] = play(&o, to, bytes);
	while (!p->over && p->unsent > 0)
		skep_probe_rank_poll(p);
	finish(&o);
	return skep_costs_estimate(round, SMALL, bytes);
}
