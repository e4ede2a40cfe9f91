/* SPDX-License-Identifier: Apache-2.0
 *
 * held.c - what workers hold while the directory is lost (`directory.back_with: workers`): each does what it has begun, hears
 * nothing of others, and keeps its stage's state as soon as it is between two steps, and maybe what its next step makes; then it
 * waits. All begin again at the newest version that the waiting ones hold of all stages, if that is newer than what was kept. The
 * world, and the referee on it (I27).
 *
 * Kept true: what a process holds dies with it, and who comes meanwhile holds nothing.
 */
#include "tests/cluster/internal.h"
#include "tests/cluster/ledger_internal.h"

/* ---- the referee ------------------------------------------------------------------------------------------------- */

/* Has the worker come in, as far as all know? */
static bool serves(const struct ledger *ledger, struct skep_peer who)
{
	const struct membership *membership = &ledger->membership[who.index];
	return membership->in && membership->peer.epoch == who.epoch;
}

/* What a worker has loaded it holds only when it has heard that it serves: that is not known here. */
void held_changed(struct ledger *ledger, struct skep_peer who, const struct skep_op *op, const struct effect *effect)
{
	struct holding *holding = &ledger->holding[who.index];
	if (holding->epoch != who.epoch)
		*holding = (struct holding){.epoch = who.epoch};
	holding->stage = op->stage % ledger->plan->stages;
	if (ledger->plan->sharded && (op->kind == SKEP_OP_STEP || op->kind == SKEP_OP_STORE_SHARD)) {
		uint32_t all = device_chunk_mask(ledger->plan, holding->stage, 0, 1);
		holding->newest = (effect->known & all) == all ? op->round + 1 : 0;
		holding->version = 0; /* that it has all of it only it knows, and says so when it keeps it */
		return;
	}
	holding->restored |= op->kind == SKEP_OP_RESTORE;
	if (op->kind != SKEP_OP_STEP) {
		holding->newest = op->kind == SKEP_OP_LOAD ? effect->version : op->version;
		return;
	}
	if (holding->round != op->round)
		holding->steps = 0;
	holding->round = op->round;
	holding->steps++;
	holding->late = ledger->lost ? op->round + 1 : 0;
	bool whole = holding->steps == skep_plan_model_chunks(ledger->plan);
	holding->newest = whole ? op->round + 1 : 0;
	holding->version = serves(ledger, who) && !holding->restored ? holding->newest : 0;
}

/* What of a stage was lost is written when the worker hears that it is there. */
void held_arrived(struct ledger *ledger, struct skep_peer who, const struct skep_message *m)
{
	struct holding *holding = &ledger->holding[who.index];
	bool own = m->u.peer.who.index == who.index && m->u.peer.who.epoch == who.epoch;
	if (own && m->u.peer.alive && holding->epoch == who.epoch)
		holding->restored = false;
}

/* Who has kept something holds no more than that, whatever it has made since. */
static bool has(const struct holding *holding, uint32_t version)
{
	return holding->kept > 0 ? (holding->kept >> version & 1) > 0 : holding->newest == version;
}

bool held_by_all(const struct ledger *ledger, uint64_t stayed, uint32_t version)
{
	uint32_t stages = 0, lacking = 0;
	for (uint32_t w = 0; w < ledger->plan->workers; w++) {
		if (stayed >> w & 1 && has(&ledger->holding[w], version))
			stages |= 1u << ledger->holding[w].stage;
		else if (ledger->plan->sharded && ledger->plan->first_stage_of[w] != SKEP_NO_STAGE)
			lacking++; /* its part, which no other worker has */
	}
	return stages + 1 == 1u << ledger->plan->stages && lacking == 0;
}

uint32_t held_of_all(const struct ledger *ledger, uint64_t stayed)
{
	uint32_t newest = 0;
	for (uint32_t w = 0; w < ledger->plan->workers; w++)
		if (ledger->holding[w].version == 0 || !serves(ledger, (struct skep_peer){w, ledger->holding[w].epoch}))
			stayed &= ~(UINT64_C(1) << w);
	for (uint32_t version = 1; version <= ledger->plan->rounds; version++)
		newest = held_by_all(ledger, stayed, version) ? version : newest;
	return newest;
}

void held_kept(struct ledger *ledger, struct skep_peer who, const struct skep_op *op, bool well)
{
	struct holding *holding = &ledger->holding[who.index];
	assert(op->kind == SKEP_OP_CHECKPOINT && op->round < 64);
	bool here = ledger->lost && holding->epoch == who.epoch;
	bool presumed = here && holding->presumed == op->round, late = here && holding->late == op->round;
	if (op->presumed ? !late : presumed) /* one that was told and has not heard it presumes as well */
		verdict_break(ledger->verdict, "I27", op->round, op->stage, ANY,
			"worker %u keeps a state that is %spresumed, and says that it is%s", who.index,
			presumed ? "" : "not ", op->presumed ? "" : " not");
	if (!ledger->lost || holding->epoch != who.epoch)
		return;
	if (holding->restored && well)
		verdict_break(ledger->verdict, "I27", op->round, op->stage, ANY,
			"worker %u keeps a stage that it has restored, and does not know that this is written",
			who.index);
	if (well && ledger->plan->sharded)
		holding->version = op->round;
	if (well)
		holding->kept |= UINT64_C(1) << op->round;
	else if (holding->kept > 0) /* what the step has made is nowhere else */
		holding->newest = holding->version = 63 - (uint32_t)__builtin_clzll(holding->kept);
}

/* While the directory is lost a worker steps without having been told, with what it would have been told of a round of which
 * nothing was lost. True if that is what this step is; what is in its sum only the commit would say. */
bool held_presumes(struct ledger *ledger, struct skep_peer who, const struct skep_op *op, const struct effect *effect)
{
	const struct round *round = &ledger->round[op->round];
	if (!ledger->lost || !ledger->plan->together || round->cell[op->stage].committed)
		return false;
	if (op->microbatches != round->issued_count || ledger->plan->clip)
		verdict_break(ledger->verdict, "I27", op->round, op->stage, ANY,
			"worker %u presumes that %u microbatches are in its sum, of %u that were issued", who.index,
			op->microbatches, round->issued_count);
	ledger->holding[who.index].presumed = op->round + 1;
	if (op->stage + ledger->plan->stages >= skep_plan_vstages(ledger->plan))
		books_check_parameters(ledger, who, op->round + 1, op->stage % ledger->plan->stages, effect);
	return true;
}

/* ---- the world --------------------------------------------------------------------------------------------------- */

/* Before its START a worker has nothing but what the run began with. */
void held_begin(struct cluster *c, uint32_t worker)
{
	struct process *p = &c->process[worker];
	struct skep_event event = {.kind = SKEP_EVENT_SUSPECT, .u.peer = {c->setup.plan->workers, 1}};
	if (!p->alive || p->left || !p->started)
		return;
	p->keeping = true;
	p->stayed = c->setup.machine->epoch(p->node) > 0; /* one that has begun anew holds nothing */
	deliver(c, worker, &event);
	p->keeping = c->setup.machine->keeps(p->node);
}

void held_op_ended(struct cluster *c, uint32_t worker, const struct skep_op *op, bool well)
{
	struct process *p = &c->process[worker];
	if (op->kind == SKEP_OP_CHECKPOINT && op->round > c->setup.plan->first_round && well) {
		p->held_before = p->held;
		p->held = op->round;
		p->held_of = op->stage;
	}
	p->keeping = p->keeping && c->setup.machine->keeps(p->node);
	if (op->kind == SKEP_OP_CHECKPOINT)
		p->stayed = well || p->held > 0;
}

void held_forget(struct process *p)
{
	p->held = p->held_before = 0;
	p->keeping = p->stayed = false;
}

uint32_t held_newest(struct cluster *c)
{
	const struct skep_plan *plan = c->setup.plan;
	uint32_t newest = 0;
	for (uint32_t version = 1; version <= plan->rounds; version++) {
		uint32_t stages = 0, lacking = 0;
		for (uint32_t w = 0; w < plan->workers; w++) {
			const struct process *p = &c->process[w];
			if (p->alive && (p->held == version || p->held_before == version))
				stages |= 1u << p->held_of;
			else if (plan->sharded && plan->first_stage_of[w] != SKEP_NO_STAGE)
				lacking++;
		}
		newest = stages + 1 == 1u << plan->stages && lacking == 0 ? version : newest;
	}
	return newest > 0 && sabotaged(c, SABOTAGE_HELD_FORGOTTEN) ? 0 : newest;
}

uint64_t held_stayed(const struct cluster *c)
{
	uint64_t stayed = 0;
	for (uint32_t w = 0; w < c->setup.plan->workers; w++)
		if (c->process[w].stayed && (!c->process[w].keeping || c->process[w].held > 0))
			stayed |= UINT64_C(1) << w;
	return stayed;
}
