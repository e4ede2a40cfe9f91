/* SPDX-License-Identifier: Apache-2.0
 *
 * split_read.c - reads the keys that spread a stage over GPUs, hosts and machines, refuses what cannot be, or what nothing here
 * does. See split.h.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "models/corpus/data.h"
#include "scenarios/plan/plan.h"
#include "scenarios/plan/split.h"
#include "scenarios/read/planned.h"
#include "scenarios/shard/shard.h"
#include "topologies/read/parts.h"

/* ---- machines of several workers -------------------------------------------------------------------------------- */

/* Appends the GPUs of each worker of a machine, at most as many workers as it has GPUs. How many there are. */
static uint32_t read_machine(struct skep_reader *r, const struct skep_yaml_node *list, const struct skep_topology *t,
	uint32_t machine, uint32_t *ret_gpus)
{
	uint32_t has = t->gpu[t->machine[machine].gpu].board.gpus, workers = 0, used = 0;
	if (skep_yaml_kind(list) != SKEP_YAML_LIST || skep_yaml_length(list) == 0) {
		skep_reader_fail(r, list, NULL,
			"cluster.worker_gpus: expected the GPUs of each worker of machine %u, as in [2, 2]; it has %u",
			machine, has);
		return 0;
	}
	for (uint32_t k = 0; k < skep_yaml_length(list) && !r->diag->set; k++) {
		uint32_t gpus = (uint32_t)skep_read_integer(
			r, skep_yaml_item(list, k), NULL, 1, SKEP_BOARD_GPUS_MAX, INT64_MIN);
		used += gpus;
		if (!r->diag->set && used > has)
			skep_reader_fail(r, skep_yaml_item(list, k), NULL,
				"cluster.worker_gpus: the workers of machine %u have %u GPUs together, and it has %u",
				machine, used, has);
		else if (!r->diag->set)
			ret_gpus[workers++] = gpus;
	}
	const char *why = !r->diag->set && workers > 1 ? skep_parts_refuse(t, machine) : NULL;
	if (why)
		skep_reader_fail(
			r, list, NULL, "cluster.worker_gpus: machine %u cannot have several workers: %s", machine, why);
	return workers;
}

bool skep_split_read_parts(struct skep_reader *r, const struct skep_yaml_node *cluster, struct skep_topology *t)
{
	const struct skep_yaml_node *list = skep_read_list(r, cluster, "worker_gpus", false);
	uint32_t all = 0;
	if (r->diag->set || !list)
		return !r->diag->set;
	if (skep_yaml_length(list) != t->machines) {
		skep_reader_fail(r, list, NULL,
			"cluster.worker_gpus: %u entries, the topology has %u machines: expected the GPUs of the workers of "
			"each, as in [[2, 2], [4]]",
			skep_yaml_length(list), t->machines);
		return false;
	}
	for (uint32_t i = 0; i < t->machines; i++)
		all += t->gpu[t->machine[i].gpu].board.gpus;
	uint32_t *first = calloc((size_t)t->machines + 1, sizeof *first), *gpus = calloc(all, sizeof *gpus);
	for (uint32_t i = 0; first && gpus && i < t->machines && !r->diag->set; i++)
		first[i + 1] = first[i] + read_machine(r, skep_yaml_item(list, i), t, i, gpus + first[i]);
	if (!r->diag->set && (!first || !gpus || !skep_parts_take(t, first, gpus)))
		skep_reader_fail(r, list, NULL, "not enough memory for so many workers, or too many kinds of them");
	free(first);
	free(gpus);
	return !r->diag->set;
}

/* A trace takes machines away, and so does who scales a run. */
static void check_parts(struct skep_reader *r, const struct skep_yaml_node *cluster, const struct skep_scenario *s)
{
	if (r->diag->set || !skep_read_has(r, cluster, "worker_gpus") || (!s->has_trace && !s->plan.scale))
		return;
	skep_reader_fail(r, cluster, "worker_gpus",
		"cluster.worker_gpus: machines come and go as a whole, and their workers would not: leave out either this or "
		"cluster.%s",
		s->has_trace ? "trace" : "scale");
}

/* ---- cluster ---------------------------------------------------------------------------------------------------- */

/* The first one; as many as there are: all with that GPU are left out. */
static uint32_t worker_with(const struct skep_scenario *s, uint32_t gpu)
{
	uint32_t i = 0;
	while (i < s->topology.machines && s->topology.machine[i].gpu != gpu)
		i++;
	return i;
}

static void check_split(struct skep_reader *r, const struct skep_yaml_node *cluster, const char *key,
	struct skep_scenario *s, uint32_t gpu)
{
	const struct skep_gpu *type = &s->topology.gpu[gpu];
	uint32_t has = type->board.gpus, worker = worker_with(s, gpu);
	struct skep_split split = skep_split_of(s, gpu);
	const char *why = skep_model_refuses(&s->model, &split);
	if (worker == s->topology.machines)
		return;
	if (s->tensor_parallel > has)
		skep_reader_fail(r, cluster, "tensor_parallel",
			"cluster.tensor_parallel: %u GPUs for each worker, the machine of worker %u has %u: give it "
			"`gpus: %u` in the topology",
			s->tensor_parallel, worker, has, s->tensor_parallel);
	else if (why)
		skep_reader_fail(r, cluster, key,
			"cluster.%s: worker %u would split its stage over %u GPUs, but model %.60s %s", key, worker,
			split.gpus, s->model.name, why);
}

void skep_split_read_cluster(struct skep_reader *r, const struct skep_yaml_node *cluster, struct skep_scenario *s)
{
	bool has = skep_read_has(r, cluster, "tensor_parallel");
	check_parts(r, cluster, s);
	s->tensor_parallel = (uint32_t)skep_read_integer(r, cluster, "tensor_parallel", 0, SKEP_BOARD_GPUS_MAX, 0);
	s->sequence_parallel = skep_read_bool(r, cluster, "sequence_parallel", false);
	uint32_t most = 1;
	for (uint32_t gpu = 0; !r->diag->set && gpu < s->topology.gpus; gpu++) {
		uint32_t gpus = skep_split_of(s, gpu).gpus;
		most = gpus > most ? gpus : most;
		check_split(r, cluster, has ? "tensor_parallel" : "topology", s, gpu);
	}
	if (!r->diag->set && s->sequence_parallel && most == 1)
		skep_reader_fail(r, cluster, "sequence_parallel",
			"cluster.sequence_parallel: no worker has more than one GPU to split a sequence over (`gpus` of "
			"the topology's machines)");
}

/* ---- sync ------------------------------------------------------------------------------------------------------- */

static uint32_t stage_size(const struct skep_scenario *s, bool most)
{
	uint32_t found = skep_plan_serving(s, 0);
	for (uint32_t stage = 1; stage < s->plan.stages; stage++) {
		uint32_t size = skep_plan_serving(s, stage);
		found = (most ? size > found : size < found) ? size : found;
	}
	return found;
}

/* What is reduced microbatch by microbatch is so many times as much. In a swarm stages share a round out as they can, so of
 * several of them stage 1, which reduces once, asks for nothing; and fixed pipelines ask by themselves. */
static void check_shares(struct skep_reader *r, const struct skep_yaml_node *sync, const struct skep_scenario *s)
{
	if (s->zero < 2 && s->plan.stages > 1)
		return;
	for (uint32_t stage = 0; stage < s->plan.stages && !r->diag->set; stage++) {
		uint32_t workers = skep_plan_serving(s, stage);
		uint64_t unit = (uint64_t)workers * s->samples;
		char where[40] = "";
		if (s->plan.stages > 1)
			snprintf(where, sizeof where, " of stage %u", stage);
		if (s->batch % unit != 0)
			skep_reader_fail(r, sync, "zero",
				"sync.zero: all workers%s do as many microbatches, so schedule.global_batch has to be a multiple "
				"of %llu (%u workers, microbatch %u); the next is %llu",
				where, (unsigned long long)unit, workers, s->samples, (s->batch / unit + 1ull) * unit);
	}
}

void skep_split_read_sync(struct skep_reader *r, const struct skep_yaml_node *sync, struct skep_scenario *s)
{
	const struct skep_plan *plan = &s->plan;
	s->zero = (uint32_t)skep_read_integer(r, sync, "zero", 0, 3, 0);
	if (r->diag->set || s->zero == 0)
		return;
	if (skep_plan_no_flush(plan))
		skep_reader_fail(r, sync, "zero",
			"sync.zero: with `pipeline: pipedream` a worker keeps versions of whole parameters; leave out "
			"either");
	else if (s->zero == 3 && plan->stages > 1)
		skep_reader_fail(r, sync, "zero",
			"sync.zero: stage 3 shares all of the model among all workers, so it needs `model.stages: 1`, not %u; 1 "
			"and 2 share each stage among its own workers",
			plan->stages);
	else if (plan->eager)
		skep_reader_fail(r, sync, "overlap",
			"sync.overlap: what sync.zero moves beside the backward pass is in its time already; leave out "
			"either");
	else if (s->has_trace)
		skep_reader_fail(r, sync, "zero",
			"sync.zero: a worker that is lost takes a part of the optimizer's state along that no other worker "
			"has: leave out either this or cluster.trace");
	else if (plan->reduction.collective != SKEP_COLLECTIVE_RING)
		skep_reader_fail(r, sync, "collective",
			"sync.collective: sync.zero needs `ring`, whose halves are the scatter and the gather that it "
			"is made of");
	else if (skep_plan_compresses(plan))
		skep_reader_fail(r, sync, "compression",
			"sync.compression: with sync.zero half of what a reduction moves are parameters, which must not "
			"be rounded");
	else
		check_shares(r, sync, s);
	s->plan.sharded = s->zero < 3;
}

void skep_split_check_zero(struct skep_reader *r, const struct skep_yaml_node *sync, const struct skep_scenario *s)
{
	const struct skep_plan *plan = &s->plan;
	const struct {
		bool on;
		const char *why;
	} not_with[] = {
		{plan->scale != NULL,
			"a machine that is given back takes its part of the optimizer's state along; leave out `cluster.scale`"},
		{skep_plan_serving(s, SKEP_NO_STAGE) > 0,
			"a spare could take over no part of the optimizer's state; give all workers a stage in "
			"`cluster.allocation`"},
		{plan->on_loss != SKEP_ON_LOSS_REPORT,
			"with a worker that is lost its part of the optimizer's state is, and the run ends; leave out "
			"`schedule.on_loss`"},
		{plan->rebalance.period_ns > 0, "no worker can move; leave out `schedule.rebalance`"},
		{skep_plan_model_chunks(plan) > 1,
			"a worker steps one range of its stage, and an interleaved one has several; take `pipeline: 1f1b`"},
		{s->optimizer.kind == SKEP_OPTIMIZER_LAMB,
			"`lamb` scales its steps by the norms of whole tensors, of which a worker steps parts; take `adamw`"},
	};
	for (uint32_t i = 0; plan->sharded && i < sizeof not_with / sizeof not_with[0] && !r->diag->set; i++)
		if (not_with[i].on)
			skep_reader_fail(r, sync, "zero", "sync.zero: %s", not_with[i].why);
}

/* ---- optimizer -------------------------------------------------------------------------------------------------- */

void skep_split_read_optimizer(struct skep_reader *r, const struct skep_yaml_node *optimizer, struct skep_scenario *s)
{
	s->offload =
		(enum skep_offload)skep_read_choice(r, optimizer, "offload", skep_offload_names, SKEP_OFFLOAD_NONE);
	if (!r->diag->set && s->offload != SKEP_OFFLOAD_NONE && skep_plan_no_flush(&s->plan))
		skep_reader_fail(r, optimizer, "offload",
			"train.optimizer.offload: with `pipeline: pipedream` a step follows each microbatch, and the "
			"versions that are kept lie on the device; leave out either");
	for (uint32_t gpu = 0; s->offload != SKEP_OFFLOAD_NONE && !r->diag->set && gpu < s->topology.gpus; gpu++)
		if (!(s->topology.gpu[gpu].board.host_Bps > 0))
			skep_reader_fail(r, optimizer, "offload",
				"train.optimizer.offload: the machine of worker %u does not say what its host has: add "
				"`host: {memory: 256 GB, bandwidth: 100 GB/s}` to it in the topology (and `pcie`, which "
				"is else %g GB/s)",
				worker_with(s, gpu), SKEP_PCIE_BPS / 1e9);
}

/* ---- real runs -------------------------------------------------------------------------------------------------- */

/* What there is to set without the law: keys that mean nothing then are errors. */
static void refuse_law(const struct skep_scenario *s, struct skep_diag *reterr)
{
	bool asks = s->planned && s->planned->aim != SKEP_AIM_THROUGHPUT;
	const char *loss = isnan(s->target_loss)                         ? ""
	                   : s->plan.until.target_loss_nano != INT64_MIN ? " --set train.until.loss=null"
	                                                                 : " --set train.target_loss=null";
	skep_fail(reterr,
		"train.arithmetic: a law stands in for arithmetic in `skep sim` alone; without any: --set "
		"train.arithmetic=none --set "
		"train.law=null%s%s; or --set train.arithmetic=real --set train.law=null%s, with `train.data`",
		loss, asks ? " --set plan=null" : "", asks ? " --set plan=null" : "");
}

/* One for each worker, and no more: then the sum of a round is that of a microbatch. */
static void refuse_stage_2(const struct skep_scenario *s, struct skep_diag *reterr)
{
	uint32_t most = s->plan.microbatches / stage_size(s, false), workers = stage_size(s, true);
	bool equal = workers == stage_size(s, false);
	if (s->plan.stages > 1 && !skep_plan_fixed(&s->plan))
		skep_fail(reterr,
			"sync.zero: stage 2 reduces the gradients of each microbatch by itself, and a real worker of a swarm "
			"adds up as many as come to it; run with --set sync.zero=1");
	else if (most > 1 && equal)
		skep_fail(reterr,
			"sync.zero: stage 2 reduces the gradients of each microbatch by itself, and a real worker adds up "
			"its %u of a round first; run with --set sync.zero=1, or schedule.global_batch=%u, one for each",
			most, workers * s->samples);
	else if (most > 1)
		skep_fail(reterr,
			"sync.zero: stage 2 reduces the gradients of each microbatch by itself, and a real worker adds up "
			"those of a round first, %u in the stage with the fewest workers; run with --set sync.zero=1",
			most);
}

/* A real run computes in any case, so that `arithmetic: none` is no way round a corpus that the model cannot learn from. */
static void refuse_corpus(const struct skep_scenario *s, const char *expected, struct skep_diag *reterr)
{
	if (s->model.kind == SKEP_MODEL_RESNET)
		skep_fail(reterr,
			"train.data: a real run trains, and %.60s is a ResNet, which learns from images; run with --set "
			"train.arithmetic=real --set train.data='{corpus: images}'",
			s->model.name);
	else if (s->model.kind == SKEP_MODEL_TRANSFORMER)
		skep_fail(reterr,
			"train.data: a real run trains, and %.60s is a transformer, which learns from tokens; run with --set "
			"train.arithmetic=real --set train.data='{corpus: text, file: models/text/tinyshakespeare.txt}'",
			s->model.name);
	else
		skep_fail(reterr,
			"train.data: a real run trains on `quadratic`, which needs %s; %.60s has %u inputs and %u outputs: "
			"simulate it with `skep sim`",
			expected, s->model.name, s->model.width[0], s->model.width[s->model.layers]);
}

bool skep_scenario_runs(const struct skep_scenario *s, bool pace, const char *ret_key[2], struct skep_diag *reterr)
{
	static const char *const keys[][2] = {{"model", "file"}, {"train", "arithmetic"}, {"sync", "zero"}};
	uint32_t which = 0;
	const char *expected;
	if (!skep_model_computes(&s->model)) {
		skep_fail(reterr,
			"model %s is known by its cost alone, so there is nothing to compute: simulate it with `skep sim`, or "
			"run a model with an architecture, such as models/tiny-gpt2.yaml with `train.data: {corpus: text}`",
			s->model.name);
	} else if (s->arithmetic == SKEP_ARITHMETIC_SCALING_LAW) {
		which = 1;
		refuse_law(s, reterr);
	} else if (s->arithmetic == SKEP_ARITHMETIC_NONE && s->corpus != SKEP_CORPUS_QUADRATIC) {
		which = 1;
		skep_fail(reterr,
			"train.arithmetic: without arithmetic no %s, and a real run has nothing to learn "
			"from; run with --set train.arithmetic=real",
			s->corpus == SKEP_CORPUS_TOKENS ? "text is read" : "images are read or made");
	} else if (!skep_corpus_fits(s->corpus, &s->model, &expected)) {
		which = 1;
		refuse_corpus(s, expected, reterr);
	} else if (s->zero == 3) {
		which = 2;
		skep_fail(reterr,
			"sync.zero: stage 3 is simulated alone: a real worker has all parameters during its passes; run with "
			"--set sync.zero=1, which shards the optimizer's state");
	} else if (s->zero == 2) {
		which = 2;
		refuse_stage_2(s, reterr);
	}
	if (!pace && !reterr->set && !skep_shard_runs(s, ret_key, reterr))
		return false;
	ret_key[0] = keys[which][0];
	ret_key[1] = keys[which][1];
	return !reterr->set;
}
