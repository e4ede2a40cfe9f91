/* SPDX-License-Identifier: Apache-2.0
 *
 * process.c - processes: the memory that a machine lives in, the device behind it, the operations in its two lanes.
 *
 * Kept true: a machine's memory has guards on both sides and may change its address between two steps; each lane is a
 * FIFO with one operation at a time; a tensor that a queued operation needs is pinned.
 */
#include "tests/cluster/internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define GUARD_BYTE 0xc3

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static void make_blocks(struct process *p, size_t size)
{
	size_t needed = (GUARD + size + GUARD + 63) / 64 * 64;
	for (unsigned half = 0; half < 2 && needed > p->block_size; half++) {
		free(p->block[half]);
		p->block[half] = aligned_alloc(64, needed);
		assert(p->block[half]);
	}
	if (needed > p->block_size)
		p->block_size = needed;
	p->size = size;
}

static void lay_guards(struct process *p, unsigned half)
{
	memset(p->block[half], GUARD_BYTE, GUARD);
	memset(p->block[half] + GUARD + p->size, GUARD_BYTE, GUARD);
}

static bool all_guard(const unsigned char *byte)
{
	return byte[0] == GUARD_BYTE && memcmp(byte, byte + 1, GUARD - 1) == 0;
}

bool process_guards_whole(const struct process *p)
{
	const unsigned char *block = p->block[p->half];
	return all_guard(block) && all_guard(block + GUARD + p->size);
}

void process_init(struct cluster *c, uint32_t index, uint32_t epoch)
{
	struct process *p = &c->process[index];
	const struct skep_plan *plan = c->setup.plan;
	make_blocks(p, c->setup.machine->size(plan, index));
	p->half = 0;
	memset(p->block[0] + GUARD, c->setup.padding, p->size);
	make_undefined(p->block[0] + GUARD, p->size);
	lay_guards(p, 0);
	p->node = c->setup.machine->init(p->block[0] + GUARD, plan, index, epoch);
	p->alive = true;
	p->started = false;
	p->life++;
	p->epoch = epoch;
	p->op_id = 0;
	p->paused_until = 0;
	p->timer_at = SKEP_TIME_NEVER;
	p->spins = 0;
	p->noticed = p->left = false;
	held_forget(p);
	p->seated = epoch > 0;
	p->moving = false;
	p->out_since = c->now;
	p->out_rounds = 0;
	for (uint32_t l = 0; l < SKEP_LANES; l++)
		p->lane[l].head = p->lane[l].count = 0;
	bool holds = index < plan->workers && epoch > 0;
	uint32_t candidate = holds ? referee_candidate(plan, index) : 0;
	device_reset(&p->device, plan, candidate, holds ? plan->first_stage_of[index] : SKEP_NO_STAGE);
	if (holds)
		resumed_device(&p->device, plan);
	if (holds)
		outage_device(c, &p->device);
}

/* No pointer into itself: a machine may wake up at another address. */
void process_move(struct process *p)
{
	unsigned other = p->half ^ 1;
	ptrdiff_t offset = (unsigned char *)p->node - p->block[p->half];
	memcpy(p->block[other] + GUARD, p->block[p->half] + GUARD, p->size);
	memset(p->block[p->half], 0xdd, p->block_size);
	make_undefined(p->block[p->half], p->block_size);
	p->half = other;
	lay_guards(p, other);
	p->node = (struct skep_node *)(void *)(p->block[other] + offset);
}

void process_give_room(struct cluster *c, struct process *p)
{
	const struct machine *machine = c->setup.machine;
	size_t wanted = machine->wanted ? machine->wanted(p->node) : 0;
	if (wanted == 0)
		return;
	struct process larger = {.size = 0};
	make_blocks(&larger, wanted);
	memset(larger.block[0] + GUARD, c->setup.padding, wanted);
	make_undefined(larger.block[0] + GUARD, wanted);
	p->node = machine->move(larger.block[0] + GUARD, p->node);
	for (unsigned half = 0; half < 2; half++) {
		free(p->block[half]);
		p->block[half] = larger.block[half];
	}
	p->size = larger.size;
	p->block_size = larger.block_size;
	p->half = 0;
	lay_guards(p, 0);
}

/* A life that ends, and a machine that stops, leave nothing behind but what their devices are using. */
void process_check_empty_hands(struct cluster *c, uint32_t index)
{
	uint32_t idle = tensors_idle(&c->tensors, index);
	if (idle > 0)
		verdict_break(c->verdict, "I5", ANY, ANY, ANY,
			"machine %u begins a new life, or stops, with %u tensors of the old one", index, idle);
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

static void lane_start(struct cluster *c, uint32_t index, uint8_t lane_index)
{
	struct lane *lane = &c->process[index].lane[lane_index];
	struct queued *head = &lane->item[lane->head];
	if (head->op.kind == SKEP_OP_ALLREDUCE) {
		whole_asked(c, index);
		return;
	}
	head->elapsed = c->setup.op_time(c->setup.context, c->now, index, &head->op);
	agenda_add(c, c->now + head->elapsed, EVENT_OP, index)->lane = lane_index;
}

static void lane_push(struct lane *lane, const struct queued *queued)
{
	if (lane->count == lane->capacity) {
		uint32_t old = lane->capacity;
		lane->item = grown(lane->item, &lane->capacity, old + 8, sizeof(*lane->item));
		/* unroll the ring: what lies before the head goes behind the old end */
		assert(lane->capacity >= 2 * old);
		memcpy(&lane->item[old], lane->item, lane->head * sizeof(*lane->item));
	}
	lane->item[(lane->head + lane->count++) % lane->capacity] = *queued;
}

static void pin(struct cluster *c, uint32_t index, struct skep_buf buf)
{
	if (buf_none(buf))
		return;
	struct slot *slot = tensors_use(&c->tensors, buf, index, c->verdict);
	if (slot)
		slot->pins++;
}

static void unpin(struct cluster *c, struct skep_buf buf)
{
	if (!buf_none(buf))
		c->tensors.slot[buf.slot].pins--;
}

/* 1F1B, and the same without a flush, and where a round has several flushes GPipe's first stage: so many stashes and no more,
 * whatever became of the microbatches that they are of.
 * Interleaved: of virtual stages, and in a round in which something happens to the pipeline one more for each virtual stage but
 * one. Without a flush FORWARD reads the newest parameters, or those of the first stage. */
static void check_held(struct cluster *c, uint32_t index, const struct skep_op *op)
{
	const struct skep_plan *plan = c->setup.plan;
	uint32_t held = 0, behind = plan->stages - 1 - op->stage % plan->stages, bound = behind + 1;
	bool no_flush = plan->pipeline == SKEP_PIPELINE_PIPEDREAM;
	if (plan->pipeline == SKEP_PIPELINE_1F1B || no_flush)
		bound = pipes_held(plan, op->stage);
	if (plan->pipeline == SKEP_PIPELINE_INTERLEAVED)
		bound = 2 * behind + (plan->model_chunks - 1) * (plan->stages + 1) + 1;
	bool bounded = plan->pipeline == SKEP_PIPELINE_1F1B || plan->pipeline == SKEP_PIPELINE_INTERLEAVED || no_flush;
	uint32_t flush = plan->accumulate > 1 ? pipes_own_share(plan, op->stage % plan->stages) / plan->accumulate : 0;
	if (flush > 0 && plan->pipeline == SKEP_PIPELINE_GPIPE && behind + 1 == plan->stages)
		bounded = true, bound = flush;
	else if (flush > 0 && plan->pipeline == SKEP_PIPELINE_1F1B && flush < bound)
		bound = flush;
	if (op->kind != SKEP_OP_FORWARD || !bounded)
		return;
	uint32_t reads = no_flush ? stream_forward(plan, &c->process[index].device, op) : op->version;
	if (!c->process[index].device.fresh && op->version != reads)
		verdict_break(c->verdict, "I11", op->round, op->stage, op->microbatch,
			"worker %u goes forwards on version %u of the parameters, but has %u for it", index,
			op->version, reads);
	for (uint32_t i = 1; i < c->tensors.count; i++) {
		const struct slot *slot = &c->tensors.slot[i];
		held += slot->live && slot->owner == index && slot->tensor.kind == TENSOR_STASH;
	}
	if (held >= bound)
		verdict_break(c->verdict, "I14", op->round, op->stage, op->microbatch,
			"worker %u begins another microbatch and holds %u, stage %u of %u may hold %u", index, held,
			op->stage, plan->stages, bound);
}

void process_run(struct cluster *c, uint32_t index, const struct skep_op *op)
{
	struct process *p = &c->process[index];
	uint32_t stages = skep_op_sliced(op->kind) ? skep_plan_vstages(c->setup.plan) : c->setup.plan->stages;
	if (op->kind == 0 || op->kind >= SKEP_OP_KINDS || op->lane >= SKEP_LANES || op->id <= p->op_id ||
		(op->round > c->setup.plan->rounds && !c->setup.plan->async.on) || op->stage >= stages ||
		index == c->setup.plan->workers) {
		verdict_break(c->verdict, "I6", op->round, op->stage, op->microbatch,
			"machine %u asks for a bad operation: kind %u, lane %u, number %llu after %llu, round %u, "
			"stage %u",
			index, op->kind, op->lane, (unsigned long long)op->id, (unsigned long long)p->op_id, op->round,
			op->stage);
		return;
	}
	p->op_id = op->id;
	check_held(c, index, op);
	pin(c, index, op->in);
	pin(c, index, op->stash);
	pin(c, index, op->gradient);
	if (op->kind == SKEP_OP_FORWARD && c->setup.plan->stages > 1 && sabotaged(c, SABOTAGE_STAGE_WRONG))
		p->device.stage = (p->device.stage + 1) % c->setup.plan->stages;
	trace(c, (struct trace){.what = TRACE_RUN, .who = {index, p->epoch}, .op = op});
	struct lane *lane = &p->lane[op->lane];
	lane_push(lane, &(struct queued){.op = *op, .who = {index, p->epoch}});
	if (lane->count == 1)
		lane_start(c, index, op->lane);
}

/* Would these two, running side by side in the two lanes, touch the same numbers? */
static bool clash(bool async, const struct skep_op *a, const struct skep_op *b)
{
	if (async && a->kind == SKEP_OP_PSEUDO_GRAD)
		return b->kind == SKEP_OP_COPY_GRAD ||
		       ((b->kind == SKEP_OP_PACK_PART || b->kind == SKEP_OP_UNPACK_PART) && b->microbatches > 0);
	if (async &&
		(a->kind <= SKEP_OP_BACKWARD || a->kind == SKEP_OP_INNER_STEP)) /* merges have places of their own */
		return false;
	bool same_round = a->round == b->round;
	bool reduces = skep_op_reduces(b->kind), state = a->kind == SKEP_OP_SAVE || a->kind == SKEP_OP_LOAD ||
	                                                 a->kind == SKEP_OP_CHECKPOINT || a->kind == SKEP_OP_RESTORE;
	if (a->kind == SKEP_OP_ENTER || (state && (b->kind == SKEP_OP_STEP || b->kind == SKEP_OP_STORE_SHARD)))
		return true;
	if (a->kind <= SKEP_OP_BACKWARD &&
		(b->kind == SKEP_OP_STEP ||
			b->kind == SKEP_OP_STORE_SHARD)) /* it reads its version, and replaces an older one */
		return a->version != b->round || same_round;
	if (a->kind == SKEP_OP_BACKWARD && a->size > 0 && reduces &&
		(a->first >= b->first + b->count || b->first >= a->first + a->count)) /* of other elements */
		return false;
	if (a->kind == SKEP_OP_BACKWARD || a->kind == SKEP_OP_INNER_STEP || a->kind == SKEP_OP_PSEUDO_GRAD ||
		a->kind == SKEP_OP_DISCARD) /* these leave the accumulator alone */
		return same_round && reduces && b->kind != SKEP_OP_STORE && b->kind != SKEP_OP_ADD_TO_RESULT &&
		       b->kind != SKEP_OP_COPY_RESULT && b->kind != SKEP_OP_AGGREGATE &&
		       b->kind != SKEP_OP_STORE_TIED && (b->kind != SKEP_OP_UNPACK_PART || buf_none(b->in));
	return a->kind == SKEP_OP_STEP && b->kind > SKEP_OP_BACKWARD && (!reduces || same_round);
}

static void check_lanes(struct cluster *c, const struct process *p, const struct queued *job)
{
	const struct lane *other = &p->lane[job->op.lane == SKEP_LANE_COMPUTE ? SKEP_LANE_REDUCE : SKEP_LANE_COMPUTE];
	const struct skep_op *op = &job->op, *beside = other->count > 0 ? &other->item[other->head].op : NULL;
	bool async = c->setup.plan->async.on;
	if (beside && (clash(async, op, beside) || clash(async, beside, op)))
		verdict_break(c->verdict, "I4", op->round, op->stage, ANY,
			"worker %u runs %s and %s side by side, on the same numbers", job->who.index,
			skep_op_name(op->kind), skep_op_name(beside->kind));
}

/* The sums of a round as they were before an operation, once more what it added, or nothing of it. */
static void spoil_fold(struct cluster *c, uint64_t *result, const uint64_t *before)
{
	bool eaten = sabotaged(c, SABOTAGE_FOLD_EATEN), twice = sabotaged(c, SABOTAGE_FOLD_TWICE);
	for (uint32_t e = 0; e < CLUSTER_ELEMENTS && (eaten || twice); e++)
		result[e] = eaten ? before[e] : 2 * result[e] - before[e];
}

/* The first element that is not trained, of those that the device knows. */
static void spoil_frozen(struct cluster *c, struct device *device, const struct skep_op *op, struct effect *effect)
{
	uint32_t frozen = effect->known & ~device_trained_mask(c->setup.plan, op->stage % c->setup.plan->stages);
	uint32_t at = device_place(c->setup.plan, op->stage, op->round + 1);
	for (uint32_t e = 0; e < CLUSTER_ELEMENTS && op->kind == SKEP_OP_STEP; e++)
		if (frozen >> e & 1 && sabotaged(c, SABOTAGE_FROZEN_STEPPED))
			effect->parameter[e] = device->parameter[at][e] ^= 1;
}

/* Of what a member has stored of another one's step. */
static void spoil_shard(struct cluster *c, struct device *device, const struct skep_op *op, struct effect *effect)
{
	if (op->kind != SKEP_OP_STORE_SHARD || op->count == 0)
		return;
	uint32_t at = device_place(c->setup.plan, op->stage, op->round + 1);
	if (sabotaged(c, SABOTAGE_SHARD_STALE))
		effect->parameter[op->first] = device->parameter[at][op->first] ^= 1;
	if (sabotaged(c, SABOTAGE_SHARD_EATEN))
		effect->known = device->known[at] &= ~(1u << op->first);
}

/* One that is to step the shard of the member behind it. */
static void spoil_rank(struct cluster *c, struct skep_op *op)
{
	bool shard = op->kind == SKEP_OP_STEP && c->setup.plan->sharded && op->members > 1;
	if (shard && sabotaged(c, SABOTAGE_SHARD_SWAPPED))
		op->rank = (op->rank + 1) % op->members;
}

/* Of a tied table, and of parts that are gathered: what one of these has done. */
static void spoil_others(struct cluster *c, struct device *device, const struct skep_op *op, struct effect *effect)
{
	const struct skep_plan *plan = c->setup.plan;
	if (op->kind == SKEP_OP_STORE_TIED && sabotaged(c, SABOTAGE_TIE_EATEN))
		memset(device->tied_peer[op->round], 0, sizeof(device->tied_peer[0]));
	if (op->kind == SKEP_OP_STEP && skep_plan_is_tied_vstage(plan, op->stage) && sabotaged(c, SABOTAGE_TIE_PARTED))
		effect->parameter[skep_plan_tied_first(plan, op->stage % plan->stages)] ^= 1;
	if (op->kind == SKEP_OP_PACK_PART && sabotaged(c, SABOTAGE_PART_MISCOUNTED))
		c->tensors.slot[effect->out.slot].tensor.weight++;
	if (op->kind == SKEP_OP_UNPACK_PART && sabotaged(c, SABOTAGE_COLLECT_EATEN))
		device->gathered.member &= ~(UINT64_C(1) << op->member);
}

static void run_on_device(struct cluster *c, const struct queued *job, struct effect *effect)
{
	struct process *p = &c->process[job->who.index];
	const struct skep_op *op = &job->op;
	*effect = (struct effect){.version = p->device.newest};
	if (op->kind == SKEP_OP_ALLREDUCE)
		whole_ends(c, job);
	if (op->kind == SKEP_OP_ALLREDUCE || (op->kind == SKEP_OP_DISCARD && sabotaged(c, SABOTAGE_DISCARD_EATEN)))
		return;
	struct skep_op astray = *op;
	if (op->kind == SKEP_OP_PSEUDO_GRAD && sabotaged(c, SABOTAGE_WEIGHT_WRONG))
		astray.microbatches++;
	spoil_rank(c, &astray);
	bool spared = op->kind == SKEP_OP_BACKWARD && c->setup.plan->recompute && !op->recomputed;
	if (spared && sabotaged(c, SABOTAGE_RECOMPUTE_SPARED))
		astray.recomputed = true;
	bool newer = op->kind == SKEP_OP_BACKWARD && op->version != p->device.newest;
	if (newer && sabotaged(c, SABOTAGE_NEWEST_READ)) { /* and its memory knows nothing of FORWARD's version */
		astray.version = p->device.newest;
		if (!buf_none(op->stash))
			c->tensors.slot[op->stash.slot].tensor.version = astray.version;
	}
	if (op->kind == SKEP_OP_BACKWARD && op->part > 0 && sabotaged(c, SABOTAGE_PART_EATEN))
		astray.uncounted = true;
	bool judges = op->kind == SKEP_OP_FORWARD && skep_plan_validates(c->setup.plan, op->microbatch);
	if (judges && c->setup.plan->delayed && !c->setup.plan->async.on && sabotaged(c, SABOTAGE_VALIDATED_OLD))
		astray.version--;
	if (judges && sabotaged(c, SABOTAGE_VALIDATED_COUNTED)) {
		struct skep_op counted = *op;
		counted.kind = SKEP_OP_BACKWARD;
		referee_op_done(c->referee, job->who, &counted, effect);
	}
	uint64_t *result = p->device.result[op->round % CLUSTER_ROUNDS], before[CLUSTER_ELEMENTS];
	memcpy(before, result, sizeof(before));
	device_run(&p->device, &c->tensors, c->setup.plan, job->who.index, &astray, effect, c->verdict);
	bool drifted = judges && c->setup.plan->async.on && p->device.drift.base != effect->version;
	if (drifted && sabotaged(c, SABOTAGE_VALIDATED_INNER))
		effect->version = p->device.drift.base;
	if (op->kind == SKEP_OP_ADD_TO_RESULT)
		spoil_fold(c, result, before);
	if (op->kind == SKEP_OP_INNER_STEP && op->microbatches > 0 && sabotaged(c, SABOTAGE_INNER_EATEN))
		*(c->setup.plan->async.on ? p->device.drift.drift : p->device.inner[op->round]) ^= 1;
	if (op->kind == SKEP_OP_PSEUDO_GRAD && sabotaged(c, SABOTAGE_PSEUDO_EATEN))
		memset(c->setup.plan->async.on ? p->device.drift.part : p->device.accumulator[op->round], 0,
			sizeof(p->device.drift.part));
	spoil_others(c, &p->device, op, effect);
	spoil_frozen(c, &p->device, op, effect);
	spoil_shard(c, &p->device, op, effect);
	if (op->kind == SKEP_OP_BACKWARD && sabotaged(c, SABOTAGE_ADD_FLIPPED))
		*(c->setup.plan->async.on ? p->device.drift.added : p->device.accumulator[op->round]) ^= 1;
	if (op->kind == SKEP_OP_BACKWARD && sabotaged(c, SABOTAGE_ADD_TWICE))
		referee_op_done(c->referee, job->who, op, effect);
	if (op->kind == SKEP_OP_STEP && sabotaged(c, SABOTAGE_STEP_TWICE))
		device_run(&p->device, &c->tensors, c->setup.plan, job->who.index, op, effect, c->verdict);
	bool keeps = op->kind == SKEP_OP_STEP && op->round > 0 && skep_plan_no_flush(c->setup.plan) &&
	             device_versions(c->setup.plan, op->stage) > 1;
	if (keeps && sabotaged(c, SABOTAGE_VERSION_LOST)) /* where the next step will be */
		p->device.version[device_place(c->setup.plan, op->stage, op->round + 2)] = op->round + 1;
	uint32_t at = device_place(c->setup.plan, op->stage, op->version);
	if (op->kind == SKEP_OP_RESTORE && sabotaged(c, SABOTAGE_RESTORE_CORRUPT))
		effect->parameter[0] ^= p->device.parameter[at][0] ^= 1;
	if (op->kind == SKEP_OP_LOAD && sabotaged(c, SABOTAGE_STATE_CORRUPT))
		effect->parameter[0] ^= p->device.parameter[at][0] ^= 1;
}

void cluster_flip(struct cluster *c, uint32_t worker, skep_time at)
{
	agenda_add(c, at, EVENT_FLIP, worker);
}

void process_flips(struct cluster *c, const struct event *event)
{
	struct process *p = &c->process[event->machine];
	p->flipped = true;
	trace(c, (struct trace){.what = TRACE_FAULT, .who = {event->machine, p->epoch}, .fault = "has a flipped bit"});
}

void process_unequal(struct cluster *c, const struct skep_note *note)
{
	if (!c->process[note->peer.index].flipped)
		verdict_break(c->verdict, "I23", note->round, note->stage, ANY,
			"worker %u is said to have other parameters than the rest, and has not", note->peer.index);
}

/* What a STEP tells of the parameters that it has made: if they are the same everywhere, the same. */
static uint64_t made(struct cluster *c, const struct process *p, const struct skep_op *op, const struct effect *effect)
{
	const struct skep_plan *plan = c->setup.plan;
	size_t index = (size_t)(p - c->process);
	uint64_t other = index < 32 ? c->setup.other >> index & 1 : 0, sum = p->flipped + 2 * other;
	if (op->stage + plan->stages < skep_plan_vstages(plan) || effect->known != ALL_KNOWN)
		return 0;
	for (uint32_t e = 0; e < CLUSTER_ELEMENTS; e++)
		sum = mix64(sum ^ effect->parameter[e]);
	sum = sabotaged(c, SABOTAGE_PARAMETER_FLIPPED) ? ~mix64(sum) : sum;
	return (sum & ~UINT64_C(1)) | other;
}

void process_op_ends(struct cluster *c, const struct event *event)
{
	struct process *p = &c->process[event->machine];
	struct lane *lane = &p->lane[event->lane];
	struct queued job = lane->item[lane->head];
	struct effect effect;
	lane->head = (lane->head + 1) % lane->capacity;
	lane->count--;
	unpin(c, job.op.in);
	unpin(c, job.op.stash);
	unpin(c, job.op.gradient);
	check_lanes(c, p, &job);
	uint8_t ails = c->setup.ails ? c->setup.ails(c->setup.context, c->now, &job.op) : SKEP_FAULT_NONE;
	if (ails)
		referee_ailed(c->referee, job.who, &job.op, ails);
	if (ails && job.op.kind == SKEP_OP_CHECKPOINT)
		effect = (struct effect){0};
	else
		run_on_device(c, &job, &effect);
	if (job.op.kind == SKEP_OP_FORWARD && job.op.stage + 1u == skep_plan_vstages(c->setup.plan))
		effect.loss_nano += c->setup.loss_bias_nano;
	if (!ails || job.op.kind != SKEP_OP_CHECKPOINT)
		referee_op_done(c->referee, job.who, &job.op, &effect);
	trace(c, (struct trace){.what = TRACE_DONE, .who = job.who, .op = &job.op});
	if (lane->count > 0)
		lane_start(c, event->machine, event->lane);
	struct skep_event out = {.kind = SKEP_EVENT_OP_DONE,
		.fault = ails,
		.u.done = {job.op, effect.out, effect.stash, {effect.loss_nano}, job.elapsed}};
	if (job.op.kind == SKEP_OP_NORM)
		out.u.done.square = effect.square;
	if (job.op.kind == SKEP_OP_ENTER)
		p->flipped = false;
	if (job.op.kind == SKEP_OP_STEP)
		out.u.done.parameters = made(c, p, &job.op, &effect);
	if (ails && job.op.kind == SKEP_OP_FORWARD && sabotaged(c, SABOTAGE_FAULT_HIDDEN))
		out.fault = SKEP_FAULT_NONE;
	deliver(c, event->machine, &out);
	if (c->is_lost)
		held_op_ended(c, event->machine, &job.op, !ails);
}
