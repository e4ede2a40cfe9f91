/* SPDX-License-Identifier: Apache-2.0
 *
 * pipeline.c - workload P: a step of a pipeline with given wiring, on hosts that may slow down or go away.
 *
 * Host of worker w in stage s is s * workers + w. When a forward ends, its output goes to the microbatch's worker in the next
 * stage; when a backward ends, to the one in the stage before. A host runs one task at a time; to send and to receive cost it
 * nothing. What is kept true
 *   - `left` is the work that remained of the running task at `since`; a task's end is in the queue with the host's
 *     `end_sequence`, and ends with another one are void.
 *   - A host's slots hold what it has to do: in static order all of it, from `first` on, by rising number; else what is ready,
 *     from `first` to `last`. A task that was lost goes back to the slot that it came from.
 *   - Of a host's trace only the next change is in the queue.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "sim/bench/draw.h"
#include "sim/bench/loop.h"
#include "sim/bench/workload.h"

#define NONE UINT32_MAX
#define FORWARD_FLOP 2e13
#define HOST_FLOPS 1e14
#define SLOW 0.05
#define TICK_S 1e-15

enum { OP_END, TRACE };

struct host {
	double flops; /* a tick */
	double left;
	skep_time since;
	uint64_t end_sequence;
	uint32_t running;          /* a task; NONE: idle */
	uint32_t first, last, end; /* slots */
	uint32_t changes;          /* of the trace, so far */
	bool slow, away;
};

struct pipeline {
	struct skep_bench_loop loop;
	const struct skep_pipeline_work *work;
	uint32_t hosts, microbatches;
	uint32_t *host_of; /* [stages][microbatches] */
	struct host *host;
	uint32_t *slot; /* tasks */
	bool *ready;    /* [tasks], static order */
	uint64_t left;  /* tasks */
};

/* Task 2 (s * microbatches + m), and one more for its backward: a visit of the microbatch to a stage, and its way back. */
static bool is_backward(uint32_t task)
{
	return task % 2 != 0;
}

/* ---- wiring --------------------------------------------------------------------------------------------------------- */

static double speed_flops(const struct pipeline *p, uint32_t h)
{
	return p->work->heterogeneous ? HOST_FLOPS * (0.5 + u01(1, h)) : HOST_FLOPS;
}

/* The worker that has the least to do so far, the lowest of equals: load[w] is the sum of HOST_FLOPS / speed. */
static uint32_t least_loaded(const struct pipeline *p, uint32_t stage, double *load)
{
	uint32_t best = 0;
	for (uint32_t w = 1; w < p->work->workers; w++)
		if (load[w] < load[best])
			best = w;
	load[best] += HOST_FLOPS / speed_flops(p, stage * p->work->workers + best);
	return best;
}

static uint32_t choose(const struct pipeline *p, uint32_t stage, uint32_t m, double *load)
{
	assert(stage < p->work->stages && m < p->microbatches);
	switch (p->work->wire) {
	case SKEP_WIRE_PERM:
		return (m * (2 * stage + 1) + stage) % p->work->workers;
	case SKEP_WIRE_RAND:
		return (uint32_t)(rnd(1000 + stage, m) % p->work->workers);
	default:
		return least_loaded(p, stage, load);
	}
}

static bool wire(struct pipeline *p)
{
	double *load = skep_bench_array(&p->loop, p->work->workers, sizeof *load);
	if (!load)
		return false;
	for (uint32_t s = 0; s < p->work->stages; s++) {
		for (uint32_t w = 0; w < p->work->workers; w++)
			load[w] = 0;
		for (uint32_t m = 0; m < p->microbatches; m++) {
			uint32_t host = s * p->work->workers + choose(p, s, m, load);
			p->host_of[s * p->microbatches + m] = host;
			p->host[host].end += 2;
		}
	}
	free(load);
	return true;
}

/* Each host's part of the slots; in static order with all that it has to do. */
static void lay_slots(struct pipeline *p)
{
	uint32_t at = 0, visits = p->work->stages * p->microbatches;
	for (uint32_t h = 0; h < p->hosts; h++) {
		struct host *host = &p->host[h];
		host->first = host->last = at;
		host->end = at += host->end;
	}
	if (p->work->fifo)
		return;
	for (uint32_t backward = 0; backward < 2; backward++)
		for (uint32_t visit = 0; visit < visits; visit++)
			p->slot[p->host[p->host_of[visit]].last++] = 2 * visit + backward;
}

/* ---- work ----------------------------------------------------------------------------------------------------------- */

static void set_end(struct pipeline *p, uint32_t h)
{
	struct host *host = &p->host[h];
	double flops = host->slow ? SLOW * host->flops : host->flops;
	assert(h < p->hosts && p->host[h].running != NONE);
	host->since = p->loop.now;
	host->end_sequence = skep_bench_happen(&p->loop, host->left / flops, OP_END, h);
}

static void begin_next(struct pipeline *p, uint32_t h)
{
	struct host *host = &p->host[h];
	assert(h < p->hosts);
	if (host->running != NONE || host->away || host->first == host->last)
		return;
	uint32_t task = p->slot[host->first];
	if (!p->work->fifo && !p->ready[task])
		return;
	host->first++;
	host->running = task;
	host->left = is_backward(task) ? 2 * FORWARD_FLOP : FORWARD_FLOP;
	set_end(p, h);
}

static void make_ready(struct pipeline *p, uint32_t task)
{
	uint32_t h = p->host_of[task / 2];
	assert(task / 2 < p->work->stages * p->microbatches);
	if (p->work->fifo)
		p->slot[p->host[h].last++] = task;
	else
		p->ready[task] = true;
	begin_next(p, h);
}

/* What the end of a task on host h brings about elsewhere. */
static void pass_on(struct pipeline *p, uint32_t h, uint32_t task)
{
	uint32_t stage = h / p->work->workers, next = task;
	if (!is_backward(task) && stage == p->work->stages - 1) {
		make_ready(p, task + 1);
		return;
	}
	if (is_backward(task) && stage == 0)
		return;
	next = is_backward(task) ? task - 2 * p->microbatches : task + 2 * p->microbatches;
	skep_bench_send(&p->loop, h, p->host_of[next / 2], p->work->bytes, next);
}

static void on_end(struct pipeline *p, uint32_t h, uint64_t sequence)
{
	struct host *host = &p->host[h];
	uint32_t task = host->running;
	assert(p->left > 0);
	if (task == NONE || sequence != host->end_sequence)
		return;
	host->running = NONE;
	p->left--;
	pass_on(p, h, task);
	begin_next(p, h);
}

/* ---- traces --------------------------------------------------------------------------------------------------------- */

/* When change n of host h comes: the even ones begin an interval, the odd ones end it. */
static double change_s(const struct pipeline *p, uint32_t h, uint32_t n)
{
	double period = p->work->trace_period_s;
	uint64_t k = n / 2, i = (uint64_t)h * (p->work->slow + p->work->preempt) + k;
	double begin = period * ((double)k + 0.5 * u01(21, i));
	return n % 2 == 0 ? begin : begin + period * (0.05 + 0.4 * u01(22, i));
}

static void await_change(struct pipeline *p, uint32_t h)
{
	struct host *host = &p->host[h];
	assert(p->host[h].changes <= 2 * (p->work->slow + p->work->preempt));
	if (host->changes == 2 * (p->work->slow + p->work->preempt))
		return;
	double at = change_s(p, h, host->changes++) / p->loop.tick_s;
	skep_bench_happen(&p->loop, at - (double)p->loop.now, TRACE, h);
}

static void change_speed(struct pipeline *p, uint32_t h)
{
	struct host *host = &p->host[h];
	double flops = host->slow ? SLOW * host->flops : host->flops;
	if (host->running != NONE)
		host->left = fmax(host->left - flops * (double)(p->loop.now - host->since), 0);
	host->slow = !host->slow;
	if (host->running != NONE)
		set_end(p, h);
}

static void go_or_return(struct pipeline *p, uint32_t h)
{
	struct host *host = &p->host[h];
	host->away = !host->away;
	if (host->away && host->running != NONE) {
		host->first--;
		host->running = NONE;
	}
	begin_next(p, h);
}

/* ---- the loop ------------------------------------------------------------------------------------------------------- */

static void on_event(void *context, const struct skep_queue_entry *entry)
{
	struct pipeline *p = context;
	if (entry->kind == OP_END) {
		on_end(p, entry->index, entry->sequence);
		return;
	}
	if (p->work->slow > 0)
		change_speed(p, entry->index);
	else
		go_or_return(p, entry->index);
	await_change(p, entry->index);
}

static void on_arrival(void *context, uint64_t task)
{
	make_ready(context, (uint32_t)task);
}

static bool make_hosts(struct pipeline *p)
{
	uint32_t visits = p->work->stages * p->microbatches;
	p->host = skep_bench_array(&p->loop, p->hosts, sizeof *p->host);
	p->host_of = skep_bench_array(&p->loop, visits, sizeof *p->host_of);
	p->slot = skep_bench_array(&p->loop, 2 * visits, sizeof *p->slot);
	p->ready = skep_bench_array(&p->loop, 2 * visits, sizeof *p->ready);
	if (p->loop.no_memory)
		return false;
	for (uint32_t h = 0; h < p->hosts; h++) {
		p->host[h].flops = speed_flops(p, h) * p->loop.tick_s;
		p->host[h].running = NONE;
	}
	if (!wire(p))
		return false;
	lay_slots(p);
	return true;
}

bool skep_bench_pipeline(const struct skep_pipeline_work *work, struct skep_bench_result *ret)
{
	const struct skep_bench_hearer hearer = {on_event, on_arrival};
	struct pipeline p = {.work = work, .hosts = work->stages * work->workers, .microbatches = 8 * work->workers};
	uint64_t visits = (uint64_t)work->stages * p.microbatches;
	assert(work->stages > 0 && work->workers > 0);
	p.left = 2 * visits;
	bool good = skep_bench_star(&p.loop, p.hosts, work->heterogeneous, 1.25e8, 0.005, TICK_S) && make_hosts(&p);
	if (good) {
		for (uint32_t h = 0; h < p.hosts; h++)
			await_change(&p, h);
		for (uint32_t m = 0; m < p.microbatches; m++)
			make_ready(&p, 2 * m);
		good = skep_bench_loop_run(&p.loop, &hearer, &p, &p.left);
	}
	ret->makespan_s = p.loop.tick_s * (double)p.loop.now;
	ret->done = p.left == 0 ? 4 * visits - 2 * p.microbatches : 0;
	free(p.host);
	free(p.host_of);
	free(p.slot);
	free(p.ready);
	skep_bench_loop_finish(&p.loop);
	return good;
}
