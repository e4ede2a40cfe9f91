/* SPDX-License-Identifier: Apache-2.0
 *
 * split.c - what each part of a stage costs that is spread over GPUs, hosts or machines. See split.h.
 *
 * Inside a machine: each all-reduce of a pass (models/read/layer_cost.c counts them) is a ring over the inner link, 2 (g - 1)
 * hops of V / g bytes: 2 ((g - 1) latency + (g - 1) / g V / B); a gather or a scatter half of that. Nothing else uses that
 * link, and no product hides it.
 *
 * Offload. `optimizer`: the step brings the gradient down, makes it on the host, which is bound by the host's memory, and
 * brings the parameters up, one after the other. `gradients` (Ren et al. 2021, ZeRO-Offload): each backward pass sends its
 * gradients down while it computes, the host adds them; the step is the host's, and parameters go up tile by tile beside it.
 *
 * ZeRO (Rajbhandari et al. 2020), of a stage of n workers, V bytes of parameters, m microbatches for each worker and round (in
 * a swarm on the mean). Who shares is who serves the stage, as in Megatron-LM's distributed optimizer: each stage by itself, with
 * its own n. The ring of the core moves 2 V (n - 1) / n on each link: one reduce-scatter and one gather. Stage 1 of ZeRO needs no
 * more. Stage 2 reduces the gradients of every microbatch, since no worker holds the sum of them all: m - 1 more. Stage 3 gathers
 * the parameters in each pass besides: 3 m - 2 more, which for m = 1 are the 3 V of the paper; of one stage alone. What is more
 * than the ring is no message of the core, but time of the pass, hidden behind its arithmetic as far as that lasts, and bytes:
 * both are exact for an idle ring.
 *
 * Keeps true: without any of it every time is, to the last bit, what it is without this file.
 */
#include "scenarios/plan/split.h"

#include <assert.h>
#include <math.h>

#include "base/units.h"
#include "scenarios/plan/plan.h"
#include "topologies/read/path.h"

static const struct skep_gpu *gpu_of(const struct skep_scenario *s, uint32_t gpu)
{
	return &s->topology.gpu[gpu];
}

static uint64_t to_ns(double seconds)
{
	double ns = 1e9 * seconds;
	return ns < 0.5 ? 0 : skep_ns_clamp(ns);
}

static uint64_t longer(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Of a parameter or a gradient as passes have it; moments and, in mixed precision, master copies are of 4 bytes. */
static uint64_t number_bytes(const struct skep_scenario *s)
{
	return skep_model_number_bytes(&s->model);
}

struct skep_split skep_split_of(const struct skep_scenario *s, uint32_t gpu)
{
	uint32_t gpus = s->tensor_parallel > 0 ? s->tensor_parallel : gpu_of(s, gpu)->board.gpus;
	return (struct skep_split){.gpus = gpus > 1 ? gpus : 1, .sequence = gpus > 1 && s->sequence_parallel};
}

/* A plan that is searched may have stages that no worker serves yet: one has all of such a stage's state. */
uint32_t skep_split_owners(const struct skep_scenario *s, uint32_t stage)
{
	uint32_t serving = s->zero > 0 ? skep_plan_serving(s, stage) : 1;
	return serving > 0 ? serving : 1;
}

void skep_split_share(const struct skep_scenario *s, uint32_t gpu, uint32_t vstage, struct skep_cost *ret)
{
	struct skep_split split = skep_split_of(s, gpu);
	skep_model_share(&s->model, skep_plan_vstages(&s->plan), vstage, &split, ret);
	if (skep_plan_recomputes(&s->plan, s->checkpoint_activations, vstage))
		skep_cost_checkpoint(ret);
}

/* ---- inside a machine ------------------------------------------------------------------------------------------- */

static double gathers_s(const struct skep_scenario *s, uint32_t gpu, uint32_t gathers, uint64_t sample_bytes)
{
	const struct skep_board *board = &gpu_of(s, gpu)->board;
	double g = skep_split_of(s, gpu).gpus, bytes = (double)sample_bytes * s->samples * s->compute_scale;
	return gathers > 0 ? (g - 1) * (gathers * board->inner_latency_s + bytes / g / board->inner_Bps) : 0;
}

double skep_split_inner_s(const struct skep_scenario *s, uint32_t gpu, uint32_t vstage)
{
	struct skep_cost share;
	skep_split_share(s, gpu, vstage, &share);
	return gathers_s(s, gpu, share.forward_gathers, share.forward_gathered_bytes) +
	       gathers_s(s, gpu, share.backward_gathers, share.backward_gathered_bytes);
}

void skep_split_inner_bytes(
	const struct skep_scenario *s, uint32_t gpu, uint32_t vstage, double *ret_forward, double *ret_backward)
{
	struct skep_cost share;
	double g = skep_split_of(s, gpu).gpus, sent = (g - 1) / g * s->samples;
	skep_split_share(s, gpu, vstage, &share);
	*ret_forward = sent * (double)share.forward_gathered_bytes;
	*ret_backward = sent * (double)share.backward_gathered_bytes;
}

double skep_scenario_crowding(const struct skep_scenario *s, uint32_t worker)
{
	const struct skep_machine *m = &s->topology.machine[worker];
	uint32_t together = 0;
	for (uint32_t i = 0; m->host > 0 && i < s->plan.workers; i++)
		together += s->topology.machine[i].host == m->host;
	return m->host > 0 ? fmax(1, (double)together * s->threads / gpu_of(s, m->gpu)->board.cores) : 1;
}

/* ---- the host --------------------------------------------------------------------------------------------------- */

/* By all GPUs of a machine together: they share its memory. */
static double host_s(const struct skep_scenario *s, uint32_t gpu, double bytes)
{
	return bytes * s->compute_scale / gpu_of(s, gpu)->board.host_Bps;
}

/* One GPU's; each has a link of its own. */
static double pcie_s(const struct skep_scenario *s, uint32_t gpu, double bytes)
{
	return bytes * s->compute_scale / gpu_of(s, gpu)->board.pcie_Bps;
}

static uint64_t plain_ns(const struct skep_scenario *s, uint32_t gpu, double bytes)
{
	return skep_gpu_time_ns(gpu_of(s, gpu), 0, bytes * s->compute_scale);
}

/* Reads the sum, reads and writes parameters and moments, and clears the accumulator, where that lies on the same side.
 * `device_ns` is what a worker's part of it takes where nothing is offloaded. */
static uint64_t step_ns(
	const struct skep_scenario *s, uint32_t gpu, uint32_t vstage, const struct skep_cost *share, uint64_t device_ns)
{
	double g = skep_split_of(s, gpu).gpus, n = skep_split_owners(s, vstage % s->plan.stages);
	double parameters = (double)(number_bytes(s) * share->parameters) / n;
	double state = skep_plan_state_bytes(s, vstage) / g / n, overhead_s = gpu_of(s, gpu)->overhead_s;
	double up_s = 0, host = 0;
	switch (s->offload) {
	case SKEP_OFFLOAD_NONE:
		return device_ns;
	case SKEP_OFFLOAD_OPTIMIZER:
		up_s = pcie_s(s, gpu, parameters);
		host = host_s(s, gpu, g * (parameters + 2 * state));
		return to_ns(overhead_s + up_s + host + up_s);
	case SKEP_OFFLOAD_GRADIENTS:
		break;
	}
	up_s = pcie_s(s, gpu, parameters);
	host = host_s(s, gpu, g * (2 * parameters + 2 * state));
	return to_ns(overhead_s + fmax(up_s, host));
}

/* With the accumulator on the host: the gradients of one microbatch go down and are added to it. With stage 2 and 3 of ZeRO a
 * worker has a part of them only. */
static uint64_t gradients_down_ns(
	const struct skep_scenario *s, uint32_t gpu, uint32_t vstage, const struct skep_cost *share)
{
	double n = s->zero >= 2 ? skep_split_owners(s, vstage % s->plan.stages) : 1;
	double bytes = (double)(number_bytes(s) * share->parameters) / n;
	double host = host_s(s, gpu, 3 * bytes * skep_split_of(s, gpu).gpus);
	return s->offload == SKEP_OFFLOAD_GRADIENTS ? to_ns(fmax(pcie_s(s, gpu, bytes), host)) : 0;
}

uint64_t skep_split_migrate_ns(const struct skep_scenario *s, uint32_t gpu, enum skep_split_part part, double bytes)
{
	bool host =
		s->offload == SKEP_OFFLOAD_GRADIENTS || (s->offload != SKEP_OFFLOAD_NONE && part == SKEP_PART_STATE);
	if (host)
		return to_ns(gpu_of(s, gpu)->overhead_s + host_s(s, gpu, bytes));
	return plain_ns(s, gpu, bytes / skep_split_of(s, gpu).gpus);
}

/* ---- ZeRO ------------------------------------------------------------------------------------------------------- */

/* Microbatches of a round for each worker of a stage that has so many; in a swarm on the mean. */
static uint32_t each(const struct skep_scenario *s, uint32_t workers)
{
	assert(workers > 0);
	uint32_t m = s->plan.microbatches / workers;
	return m > 0 ? m : 1;
}

/* Gathers (or scatters) of all parameters of a stage on top of the ring's, in all microbatches of one worker together. */
static uint32_t more_gathers(const struct skep_scenario *s, uint32_t workers, uint8_t kind)
{
	uint32_t m = each(s, workers);
	if (s->zero == 2)
		return kind == SKEP_OP_BACKWARD ? m - 1 : 0;
	if (s->zero == 3)
		return kind == SKEP_OP_BACKWARD ? 2 * m - 1 : m - 1;
	return 0;
}

/* Of the workers of a stage, in the order of their numbers and round again. */
static uint32_t next_of_stage(const struct skep_scenario *s, uint32_t stage, uint32_t worker)
{
	do
		worker = (worker + 1) % s->plan.workers;
	while (s->first_stage_of[worker] != stage);
	return worker;
}

/* One of them, by a ring over its thinnest link. */
static double machines_gather_s(const struct skep_scenario *s, uint32_t stage)
{
	const struct skep_topology *t = &s->topology;
	uint32_t n = skep_plan_serving(s, stage);
	double least_Bps = INFINITY, latency_s = 0, bytes = (double)(number_bytes(s) * s->stage[stage].parameters);
	for (uint32_t i = 0; i < s->plan.workers; i++) {
		if (s->first_stage_of[i] != stage)
			continue;
		uint32_t next = next_of_stage(s, stage, i);
		least_Bps = fmin(least_Bps, skep_path_lone_Bps(t, i, next));
		latency_s = fmax(latency_s, skep_path_mean_s(t, t->machine[i].place, t->machine[next].place));
	}
	return (n - 1) * (latency_s + bytes / n / least_Bps);
}

static uint64_t machines_ns(const struct skep_scenario *s, uint32_t stage, uint8_t kind)
{
	uint32_t n = skep_plan_serving(s, stage), more = s->zero >= 2 ? more_gathers(s, n, kind) : 0;
	return more > 0 ? to_ns(machines_gather_s(s, stage) * more / each(s, n)) : 0;
}

static uint64_t bytes_of(const struct skep_scenario *s, uint32_t stage, uint32_t workers, uint8_t kind)
{
	return number_bytes(s) * s->stage[stage].parameters * (workers - 1) * more_gathers(s, workers, kind);
}

uint64_t skep_split_round_bytes(const struct skep_scenario *s, uint32_t stage, uint32_t workers)
{
	if (s->zero < 2 || workers == 0)
		return 0;
	return bytes_of(s, stage, workers, SKEP_OP_FORWARD) + bytes_of(s, stage, workers, SKEP_OP_BACKWARD);
}

/* The bytes of a round, dealt out to its microbatches so that nothing is lost by rounding. */
uint64_t skep_scenario_op_bytes(
	const struct skep_scenario *s, uint32_t worker, const struct skep_op *op, uint32_t *ret_to)
{
	if (s->zero < 2 || (op->kind != SKEP_OP_FORWARD && op->kind != SKEP_OP_BACKWARD))
		return 0;
	uint64_t count = s->plan.microbatches, k = op->microbatch % count, all;
	all = bytes_of(s, op->stage, skep_plan_serving(s, op->stage), op->kind);
	*ret_to = next_of_stage(s, op->stage, worker);
	return all / count + ((k + 1) * (all % count) / count - k * (all % count) / count);
}

/* ---- all of it -------------------------------------------------------------------------------------------------- */

void skep_split_time(const struct skep_scenario *s, uint32_t gpu, uint32_t vstage, struct skep_op_time *time)
{
	struct skep_cost share;
	skep_split_share(s, gpu, vstage, &share);
	time->forward_ns += to_ns(gathers_s(s, gpu, share.forward_gathers, share.forward_gathered_bytes));
	time->backward_ns += to_ns(gathers_s(s, gpu, share.backward_gathers, share.backward_gathered_bytes));
	time->forward_ns = longer(time->forward_ns, machines_ns(s, vstage % s->plan.stages, SKEP_OP_FORWARD));
	time->backward_ns = longer(time->backward_ns, machines_ns(s, vstage % s->plan.stages, SKEP_OP_BACKWARD));
	time->backward_ns = longer(time->backward_ns, gradients_down_ns(s, gpu, vstage, &share));
	time->step_ns = step_ns(s, gpu, vstage, &share, time->step_ns);
}
