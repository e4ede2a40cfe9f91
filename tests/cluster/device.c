/* SPDX-License-Identifier: Apache-2.0
 *
 * device.c - symbolic devices: decides what an operation would have computed, and refuses wrong inputs.
 */
#include "tests/cluster/device.h"
#include "tests/cluster/gathered.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- operations ----------------------------------------------------------------------------------------------- */

struct job { /* one operation on its way */
	struct device *device;
	struct tensors *tensors;
	const struct skep_plan *plan;
	const struct skep_op *op;
	uint32_t who;
	struct effect *effect;
	struct verdict *verdict;
};

void device_reset(struct device *device, const struct skep_plan *plan, uint32_t candidate, uint32_t stage)
{
	memset(device, 0, sizeof(*device));
	device->candidate = candidate;
	device->stage = stage;
	for (uint32_t at = 0; stage != SKEP_NO_STAGE && at < CLUSTER_VERSIONS; at++) {
		device->known[at] = ALL_KNOWN;
		for (uint32_t e = 0; e < CLUSTER_ELEMENTS; e++)
			device->parameter[at][e] = symbol_parameter(plan, candidate, stage, e);
	}
}

static void wrong(const struct job *job, const char *invariant, const char *what)
{
	verdict_break(job->verdict, invariant, job->op->round, job->op->stage, job->op->microbatch,
		"worker %u, %s of round %u, stage %u, microbatch %u: %s", job->who, skep_op_name(job->op->kind),
		job->op->round, job->op->stage, job->op->microbatch, what);
}

/* A copy, because adding a tensor may move the table. */
static struct tensor input(const struct job *job, struct skep_buf buf, uint8_t kind, const char *what)
{
	const struct slot *slot = tensors_use(job->tensors, buf, job->who, job->verdict);
	struct tensor none = {0};
	if (!slot)
		return none;
	if (slot->tensor.kind != kind)
		wrong(job, "I4", what);
	return slot->tensor;
}

uint32_t device_versions(const struct skep_plan *plan, uint32_t stage)
{
	if (plan->pipeline == SKEP_PIPELINE_PIPEDREAM)
		return stream_versions(plan, stage);
	return plan->delayed && plan->inner.steps == 0 ? 2 : 1;
}

uint32_t device_place(const struct skep_plan *plan, uint32_t stage, uint32_t version)
{
	return version % device_versions(plan, stage);
}

static uint32_t place(const struct job *job, uint32_t version)
{
	return device_place(job->plan, job->op->stage, version);
}

/* With waves what BACKWARD reads is kept with the stash, whatever the device has become since. */
static bool reads_copy(const struct job *job)
{
	return skep_plan_waves(job->plan) && job->op->kind == SKEP_OP_BACKWARD;
}

static void check_place(const struct job *job)
{
	struct device *device = job->device;
	if (device->fresh)
		device->newest = device->oldest = device->version[place(job, job->op->version)] = job->op->version;
	device->fresh = false;
	if (job->device->stage != job->op->stage % job->plan->stages)
		wrong(job, "I4", "its device holds another stage");
	else if (job->device->version[place(job, job->op->version)] != job->op->version && !reads_copy(job))
		wrong(job, "I3", "its device does not hold the version of the parameters that it is to read");
}

static void check_whole(const struct job *job)
{
	uint32_t stage = job->op->stage % job->plan->stages;
	uint32_t all = device_chunk_mask(job->plan, stage, 0, 1);
	if ((job->device->known[place(job, job->op->version)] & all) != all)
		wrong(job, "I3", "it has not got all of its parameters yet");
}

static struct tensor activation(const struct job *job)
{
	const struct skep_op *op = job->op;
	struct tensor in = {0};
	if (op->stage == 0) {
		if (!buf_none(op->in))
			wrong(job, "I4", "the first stage has no input tensor");
		return in;
	}
	in = input(job, op->in, TENSOR_ACTIVATION, "the input is no activation");
	if (in.stage + 1u != op->stage || in.round != op->round || in.microbatch != op->microbatch)
		wrong(job, "I4", "the activation is of another stage, round or microbatch");
	if (in.candidate != job->device->candidate)
		wrong(job, "I4", "the activation is of another candidate");
	return in;
}

static struct tensor *output(const struct job *job, uint8_t kind, uint32_t stage, struct skep_buf *ret)
{
	struct tensor *out = tensors_add(job->tensors, job->who, ret);
	out->kind = kind;
	out->stage = (uint16_t)stage;
	out->round = job->op->round;
	out->microbatch = job->op->microbatch;
	out->candidate = job->device->candidate;
	return out;
}

/* With trainer routing a stage in the middle keeps no stash, and with recomputation no stage does: the worker of the
 * backward pass does the forward pass again, and gets the same from the same input. */
static bool keeps_nothing(const struct job *job)
{
	bool middle = job->op->stage > 0 && job->op->stage + 1u < job->plan->stages;
	return job->plan->recompute || (job->plan->routing == SKEP_ROUTING_TRAINER && middle);
}

static uint64_t recomputed(const struct job *job, const struct tensor *in)
{
	uint64_t version = job->device->version[place(job, job->op->version)];
	if (job->plan->inner.steps > 0) /* a step may come between the two passes */
		version = 0;
	return mix64(in->name + mix64(version << 32 | (job->op->stage + 1u)));
}

/* All tries of a microbatch of a validation are the same samples. */
static uint32_t judged_as(const struct job *job)
{
	uint32_t microbatch = job->op->microbatch, trained = skep_round_capacity(job->plan);
	return job->plan->validation.every == 0 || microbatch < trained
	               ? microbatch
	               : trained + (microbatch - trained) % job->plan->validation.microbatches;
}

/* A pass, of a worker that is to wait for its merge. */
static void check_waits(const struct job *job)
{
	if (job->plan->async.waits && job->device->drift.written)
		wrong(job, "I15", "it goes on while its merge is under way, and was to wait");
}

static void forward(const struct job *job)
{
	const struct skep_op *op = job->op;
	check_place(job);
	check_waits(job);
	bool drifts = job->plan->async.on &&
	              !(job->plan->validation.every > 0 && skep_plan_validates(job->plan, op->microbatch));
	job->effect->version = drifts ? job->device->drift.base : job->device->version[place(job, op->version)];
	struct tensor in = activation(job);
	check_whole(job);
	bool last = op->stage + 1u == skep_plan_vstages(job->plan), again = keeps_nothing(job);
	uint64_t name =
		again ? recomputed(job, &in) : mix64(in.name + mix64((uint64_t)job->who << 32 | op->stage) + op->id);
	if (!last)
		output(job, TENSOR_ACTIVATION, op->stage, &job->effect->out)->name = name;
	else
		job->effect->loss_nano = symbol_loss(job->device->candidate, op->round, judged_as(job));
	if (again || !device_goes_back(job->plan, op->stage))
		return;
	struct tensor *stash = output(job, TENSOR_STASH, op->stage, &job->effect->stash);
	stash->answer = last ? 0 : name;
	stash->input = in.name;
	stash->version = op->version;
}

/* The name of the activation that the forward pass made. */
static uint64_t stashed(const struct job *job, const struct tensor *in, uint32_t *ret_version)
{
	const struct skep_op *op = job->op;
	struct tensor stash = input(job, op->stash, TENSOR_STASH, "the stash is none");
	if (stash.stage != op->stage || stash.round != op->round || stash.microbatch != op->microbatch ||
		stash.input != in->name)
		wrong(job, "I4", "the stash is of another forward");
	bool inner = job->plan->inner.steps > 0 && stash.version <= op->version;
	if (stash.version != op->version && !inner && (!stream_moves_on(job->plan) || reads_copy(job)))
		wrong(job, "I11", "forward read another version of the parameters");
	*ret_version = stream_moves_on(job->plan) ? stash.version : *ret_version;
	return stash.answer;
}

/* What a part of BACKWARD leaves for the next one, of this very microbatch on this very device. */
static uint64_t between_parts(const struct job *job, uint32_t part)
{
	uint64_t work = mix64((uint64_t)job->op->round << 32 | job->op->microbatch);
	return mix64(work + mix64((uint64_t)job->who << 48 | (uint64_t)job->op->stage << 32 | part));
}

static void check_inner(const struct job *job)
{
	const char *what = job->plan->async.on          ? device_drift(&job->device->drift, job->op)
	                   : job->plan->inner.steps > 0 ? device_inner(job->device, job->plan, job->op)
	                                                : NULL;
	if (what)
		wrong(job, "I15", what);
}

static void inner(const struct job *job)
{
	check_place(job);
	if (job->plan->inner.steps == 0)
		wrong(job, "I15", "no plan asked for periodic sync");
	check_inner(job);
	if (job->plan->gossip)
		device_pair(job->device, job->op);
}

static void backward(const struct job *job)
{
	const struct skep_op *op = job->op;
	check_place(job);
	check_waits(job);
	struct tensor in = activation(job);
	uint32_t version = job->device->version[place(job, op->version)];
	job->effect->version = job->plan->async.on ? job->device->drift.base : reads_copy(job) ? op->version : version;
	bool trains = device_goes_back(job->plan, op->stage); /* else nothing is kept, and no gradient comes */
	uint64_t answer = keeps_nothing(job) ? recomputed(job, &in) : trains ? stashed(job, &in, &version) : 0;
	if (keeps_nothing(job) && !buf_none(op->stash))
		wrong(job, "I4", "nothing is kept between the two passes");
	const struct device *d = job->device;
	if (op->recomputed &&
		(!d->recomputed || d->recomputed_round != op->round || d->recomputed_microbatch != op->microbatch))
		wrong(job, "I4", "what BACKWARD needs was not recomputed for it");
	if (trains && (op->part > 0 || op->stage + 1u < skep_plan_vstages(job->plan))) {
		struct tensor gradient = input(job, op->gradient, TENSOR_GRADIENT, "the gradient is none");
		if (gradient.answer != (op->part > 0 ? between_parts(job, op->part) : answer))
			wrong(job, "I4", "the gradient is for another activation, or of another part");
	} else if (trains && !buf_none(op->gradient)) {
		wrong(job, "I4", "the last stage has no gradient from outside");
	}
	check_inner(job);
	uint32_t vstage = device_vstage_mask(job->plan, op->stage);
	uint64_t first = op->parts > 0 ? op->first : 0, end = op->parts > 0 ? first + op->count : CLUSTER_ELEMENTS;
	for (uint64_t e = first; e < end && !op->uncounted && !job->plan->async.on; e++)
		if (vstage >> e & 1)
			job->device->accumulator[op->round][e] +=
				symbol_gradient(op->round, version, op->stage, op->microbatch, (uint32_t)e);
	const char *what = device_inner_part(job->device, op);
	if (what)
		wrong(job, "I15", what);
	if (op->part + 1 < op->parts)
		output(job, TENSOR_GRADIENT, op->stage, &job->effect->out)->answer = between_parts(job, op->part + 1);
	else if (op->stage > 0 && device_goes_back(job->plan, op->stage - 1u))
		output(job, TENSOR_GRADIENT, op->stage - 1u, &job->effect->out)->answer = in.name;
}

static void recompute(const struct job *job)
{
	check_place(job);
	activation(job);
	check_whole(job);
	if (!job->plan->recompute)
		wrong(job, "I4", "no plan asked for recomputation");
	job->device->recomputed_round = job->op->round;
	job->device->recomputed_microbatch = job->op->microbatch;
}

/* Merges are numbered beyond rounds. */
static uint32_t row(const struct skep_op *op)
{
	return op->round % CLUSTER_ROUNDS;
}

/* What a member brings to a reduction. */
static const uint64_t *own_part(const struct job *job)
{
	static const uint64_t nothing[CLUSTER_ELEMENTS]; /* of who has told nothing that is in the merge */
	if (job->plan->async.on && job->plan->reduction.gather && job->op->kind != SKEP_OP_STEP &&
		job->op->microbatches == 0)
		return nothing;
	return job->plan->async.on ? job->device->drift.part : job->device->accumulator[row(job->op)];
}

static void step(const struct job *job)
{
	const struct skep_op *op = job->op;
	struct device *device = job->device;
	check_place(job);
	check_inner(job);
	if (job->plan->sharded) /* of the step before all others have given it theirs */
		check_whole(job);
	const uint64_t *sum = op->members > 1 ? device->result[row(op)] : own_part(job);
	bool trains = device_trained_mask(job->plan, op->stage % job->plan->stages) &
	              device_chunk_mask(job->plan, op->stage % job->plan->stages, 0, 1) &
	              device_fragment_mask(job->plan, op); /* else no part is brought */
	if (job->plan->reduction.gather && trains && op->members > 1 && op->microbatches != device->weight[row(op)])
		wrong(job, "I1b", "the parts say that there are other numbers of microbatches in them");
	memcpy(job->effect->applied, sum, sizeof(job->effect->applied));
	uint32_t to = place(job, op->round + 1);
	memcpy(device->parameter[to], device->parameter[place(job, op->round)], sizeof(device->parameter[to]));
	uint32_t vstage = device_vstage_mask(job->plan, op->stage),
		 fragment = device_fragment_mask(job->plan, op) & device_shard_mask(job->plan, op, op->rank);
	bool ties = skep_plan_is_tied_vstage(job->plan, op->stage);
	for (uint32_t e = 0; e < CLUSTER_ELEMENTS; e++) {
		if (!(vstage >> e & 1))
			continue;
		uint64_t gradient = mix64(op->microbatches > 0 ? sum[e] : 0) + op->microbatches;
		if (ties)
			gradient = tied_gradient(device, job->plan, op, e, gradient, job->effect);
		if ((op->microbatches > 0 || (ties && op->tied > 0)) && fragment >> e & 1)
			device->parameter[to][e] = mix64(device->parameter[to][e] + gradient);
		device->accumulator[row(op)][e] = 0;
	}
	if (op->stage + job->plan->stages < skep_plan_vstages(job->plan)) /* not the last one of its stage */
		return;
	device->newest = device->version[to] = op->round + 1;
	device->known[to] = device_known_after_step(job->plan, op, device->known[place(job, op->round)]);
	memcpy(job->effect->parameter, device->parameter[to], sizeof(device->parameter[to]));
	job->effect->known = device->known[to];
}

static void discard(const struct job *job)
{
	if (job->device->stage != job->op->stage)
		wrong(job, "I4", "its device holds another stage");
	memset(job->device->accumulator[row(job->op)], 0, sizeof(job->device->accumulator[0]));
}

static void norm(const struct job *job)
{
	const struct skep_op *op = job->op;
	const uint64_t *sum = op->members > 1 ? job->device->result[op->round] : job->device->accumulator[op->round];
	uint32_t of = job->plan->sharded ? ((1u << op->count) - 1) << op->first : ALL_KNOWN;
	if (job->device->stage != op->stage % job->plan->stages)
		wrong(job, "I4", "its device holds another stage");
	job->effect->square =
		symbol_square(op->term != SKEP_NORM_SQUARES ? tied_norm(job->device, job->plan, op)
							    : symbol_squares(job->plan, op->stage, of, sum));
}

/* Room for a stage, filled with numbers that no other worker has. */
static void enter(const struct job *job)
{
	struct device *device = job->device;
	device_reset(device, job->plan, 0, job->op->stage);
	device->fresh = true;
	for (uint32_t at = 0; at < CLUSTER_VERSIONS; at++) {
		device->known[at] = 0;
		for (uint32_t e = 0; e < CLUSTER_ELEMENTS; e++)
			device->parameter[at][e] = mix64(mix64(job->op->id << 32 | job->who) + e);
	}
}

static void save(const struct job *job)
{
	const struct skep_op *op = job->op;
	check_place(job);
	check_whole(job);
	struct tensor *out = output(job, TENSOR_STATE, op->stage, &job->effect->out);
	out->round = job->device->newest;
	out->microbatch = 0;
	out->chunk = op->chunk;
	out->size = op->chunks;
	uint32_t mask = device_chunk_mask(job->plan, op->stage, op->chunk, op->chunks);
	for (uint32_t e = 0; e < CLUSTER_ELEMENTS; e++)
		out->value[e] = mask >> e & 1 ? job->device->parameter[place(job, op->version)][e] : 0;
}

static void load(const struct job *job)
{
	const struct skep_op *op = job->op;
	struct device *device = job->device;
	struct tensor in = input(job, op->in, TENSOR_STATE, "the input is no state");
	uint32_t to = place(job, op->version);
	check_place(job);
	if (in.stage != op->stage || in.chunk != op->chunk || in.size != op->chunks)
		wrong(job, "I4", "the state is of another stage or chunk");
	else if (in.round != op->version)
		wrong(job, "I3", "the chunk of the state is of another version");
	uint32_t mask = device_chunk_mask(job->plan, op->stage, op->chunk, op->chunks);
	for (uint32_t e = 0; e < CLUSTER_ELEMENTS; e++)
		if (mask >> e & 1)
			device->parameter[to][e] = in.value[e];
	device->known[to] |= mask;
	device->candidate = in.candidate;
	memcpy(job->effect->parameter, device->parameter[to], sizeof(device->parameter[to]));
	job->effect->known = device->known[to];
	job->effect->version = op->version;
	device->drift.base = op->version;
}

static void checkpoint(const struct job *job)
{
	uint32_t at = place(job, job->op->version);
	struct kept *kept = &job->tensors->kept[job->op->stage][job->op->round];
	check_place(job);
	check_whole(job);
	kept->is = true;
	memcpy(kept->parameter, job->device->parameter[at], sizeof(kept->parameter));
	memcpy(job->effect->parameter, kept->parameter, sizeof(kept->parameter));
	job->effect->known = job->device->known[at];
}

/* With delayed updates it takes both places: a restorer works on the open round at once. */
static void restore(const struct job *job)
{
	const struct skep_op *op = job->op;
	struct device *device = job->device;
	const struct kept *kept = &job->tensors->kept[op->stage][op->checkpoint];
	uint32_t to = place(job, op->version);
	check_place(job);
	device->candidate = op->candidate;
	if (op->checkpoint > 0 && !kept->is)
		wrong(job, "I13", "it restores what was never kept");
	for (uint32_t e = 0; e < CLUSTER_ELEMENTS; e++)
		device->parameter[to][e] = op->checkpoint > 0
		                                   ? kept->parameter[e]
		                                   : symbol_parameter(job->plan, op->candidate, op->stage, e);
	device->known[to] = ALL_KNOWN;
	if (job->plan->delayed) {
		memcpy(device->parameter[1 - to], device->parameter[to], sizeof(device->parameter[to]));
		device->version[1 - to] = op->version - (op->version > 0);
		device->known[1 - to] = ALL_KNOWN;
	}
	memcpy(job->effect->parameter, device->parameter[to], sizeof(device->parameter[to]));
	job->effect->known = ALL_KNOWN;
	device->drift.base = op->version;
}

/* All but CHECKPOINT, ADD_TO_RESULT, UNPACK_PART and AGGREGATE put out a tensor; all but CHECKPOINT, COPY_GRAD,
 * COPY_RESULT, PACK_PART, AGGREGATE and the UNPACK_PART of one's own part take one in. Elements beyond the range stay zero
 * in it. */
static bool puts_out(uint8_t kind)
{
	return kind != SKEP_OP_INIT_RESULT && kind != SKEP_OP_ADD_TO_RESULT && kind != SKEP_OP_UNPACK_PART &&
	       kind != SKEP_OP_AGGREGATE;
}

static bool takes_in(const struct skep_op *op)
{
	return op->kind != SKEP_OP_INIT_RESULT && op->kind != SKEP_OP_COPY_GRAD && op->kind != SKEP_OP_COPY_RESULT &&
	       op->kind != SKEP_OP_PACK_PART && op->kind != SKEP_OP_AGGREGATE &&
	       (op->kind != SKEP_OP_UNPACK_PART || !buf_none(op->in));
}

static uint64_t reduced(const struct job *job, const struct tensor *in, uint64_t e)
{
	uint64_t own = own_part(job)[e], *result = &job->device->result[row(job->op)][e];
	switch (job->op->kind) {
	case SKEP_OP_COPY_GRAD:
	case SKEP_OP_PACK_PART:
		return own;
	case SKEP_OP_ADD:
		return in->value[e] + own;
	case SKEP_OP_ADD_STORE:
		return *result = in->value[e] + own;
	case SKEP_OP_STORE:
		return *result = in->value[e];
	case SKEP_OP_INIT_RESULT:
		return *result = own;
	case SKEP_OP_ADD_TO_RESULT:
		return *result += in->value[e];
	default:
		return *result;
	}
}

static void reduce(const struct job *job)
{
	const struct skep_op *op = job->op;
	struct tensor in = {0}, sum = {0};
	if (job->device->stage != op->stage)
		wrong(job, "I4", "its device holds another stage");
	check_inner(job);
	if (takes_in(op)) {
		in = input(job, op->in, TENSOR_CHUNK, "the input is no chunk");
		if (in.stage != op->stage || in.round != op->round || in.first != op->first || in.count != op->count)
			wrong(job, "I1b", "the chunk is of another reduction");
		if (in.part != (op->kind == SKEP_OP_UNPACK_PART))
			wrong(job, "I4", "what one member brings is taken for a sum, or a sum for that");
	}
	uint64_t all = job->plan->stage[op->stage].parameters;
	if (op->first > all || op->count > all - op->first) {
		wrong(job, "I1b", "the chunk ends beyond the parameters");
		return;
	}
	for (uint64_t e = op->first; e < op->first + op->count; e++)
		sum.value[e] = reduced(job, &in, e);
	const char *odd = gathered_run(job->device, op, &in, job->plan->reduction.gather ? own_part(job) : NULL);
	if (odd)
		wrong(job, "I1b", odd);
	if (takes_in(op) && !job->verdict->broken)
		tensors_free(job->tensors, op->in);
	if (!puts_out(op->kind))
		return;
	struct tensor *out = output(job, TENSOR_CHUNK, op->stage, &job->effect->out);
	out->first = op->first;
	out->count = op->count;
	out->size = op->members;
	out->part = op->kind == SKEP_OP_PACK_PART;
	out->weight = out->part ? op->microbatches : job->device->weight[row(op)];
	memcpy(out->value, sum.value, sizeof(out->value));
}

/* What one of the two stages that hold a copy of a tied table has summed of it, as it goes to the other. */
static void tie_give(const struct job *job)
{
	const struct skep_op *op = job->op;
	uint64_t *result = job->device->result[op->round];
	if (job->device->stage != op->stage || !skep_plan_is_tied(job->plan, op->stage) ||
		op->count != job->plan->tied || op->first != skep_plan_tied_first(job->plan, op->stage)) {
		wrong(job, "I21", "its device holds no copy of the table there");
		return;
	}
	if (op->members == 1)
		memcpy(result + op->first, own_part(job) + op->first, op->count * sizeof(*result));
	struct tensor *out = output(job, TENSOR_TIED, op->stage, &job->effect->out);
	out->count = op->count;
	memcpy(out->value, result + op->first, op->count * sizeof(*result));
}

static void tie_take(const struct job *job)
{
	const struct skep_op *op = job->op;
	struct tensor in = input(job, op->in, TENSOR_TIED, "the input is not what a stage has summed of a table");
	if (job->device->stage != op->stage || in.stage != skep_plan_tied_peer(job->plan, op->stage) ||
		in.round != op->round)
		wrong(job, "I21", "it is of another stage or round");
	memcpy(job->device->tied_peer[op->round], in.value, sizeof(in.value));
	if (!job->verdict->broken)
		tensors_free(job->tensors, op->in);
}

/* Parameters of the step, from one member to all others. */
static void gather(const struct job *job)
{
	const struct skep_op *op = job->op;
	struct tensor shard = {0};
	const char *odd;
	if (op->kind == SKEP_OP_COPY_SHARD) {
		odd = device_give_shard(job->device, job->plan, op, shard.value);
	} else {
		shard = input(job, op->in, TENSOR_SHARD, "the input is no shard of the parameters");
		odd = device_take_shard(job->device, job->plan, op, &shard, job->effect);
		if (!job->verdict->broken)
			tensors_free(job->tensors, op->in);
	}
	if (odd)
		wrong(job, "I26", odd);
	struct tensor *out = output(job, TENSOR_SHARD, op->stage, &job->effect->out);
	out->first = op->first;
	out->count = op->count;
	memcpy(out->value, shard.value, sizeof(out->value));
}

void device_run(struct device *device, struct tensors *tensors, const struct skep_plan *plan, uint32_t who,
	const struct skep_op *op, struct effect *ret, struct verdict *verdict)
{
	static void (*const run[SKEP_OP_KINDS])(const struct job *) = {[SKEP_OP_FORWARD] = forward,
		[SKEP_OP_BACKWARD] = backward,
		[SKEP_OP_STEP] = step,
		[SKEP_OP_RECOMPUTE] = recompute,
		[SKEP_OP_INNER_STEP] = inner,
		[SKEP_OP_PSEUDO_GRAD] = inner,
		[SKEP_OP_NORM] = norm,
		[SKEP_OP_DISCARD] = discard,
		[SKEP_OP_ENTER] = enter,
		[SKEP_OP_CHECKPOINT] = checkpoint,
		[SKEP_OP_RESTORE] = restore,
		[SKEP_OP_SAVE] = save,
		[SKEP_OP_LOAD] = load,
		[SKEP_OP_COPY_GRAD] = reduce,
		[SKEP_OP_ADD] = reduce,
		[SKEP_OP_ADD_STORE] = reduce,
		[SKEP_OP_STORE] = reduce,
		[SKEP_OP_INIT_RESULT] = reduce,
		[SKEP_OP_ADD_TO_RESULT] = reduce,
		[SKEP_OP_COPY_RESULT] = reduce,
		[SKEP_OP_PACK_PART] = reduce,
		[SKEP_OP_UNPACK_PART] = reduce,
		[SKEP_OP_AGGREGATE] = reduce,
		[SKEP_OP_COPY_TIED] = tie_give,
		[SKEP_OP_STORE_TIED] = tie_take,
		[SKEP_OP_COPY_SHARD] = gather,
		[SKEP_OP_STORE_SHARD] = gather};
	struct job job = {device, tensors, plan, op, who, ret, verdict};
	memset(ret, 0, sizeof(*ret));
	ret->version = device->newest;
	assert(op->kind > 0 && op->kind < SKEP_OP_KINDS && run[op->kind]);
	run[op->kind](&job);
	if (op->lane == SKEP_LANE_COMPUTE)
		device->recomputed = op->kind == SKEP_OP_RECOMPUTE;
}
