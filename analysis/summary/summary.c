/* SPDX-License-Identifier: Apache-2.0
 *
 * summary.c - adds up what a recorder hears into the result of a run.
 *
 * Decides what each figure means. Keeps true: only closed rounds count, so issued = counted + lost whenever the core
 * kept its promise; figures that are not known are NAN, never 0.
 */
#include "analysis/summary/summary.h"

#include "analysis/store/candidates.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash.h"
#include "scenarios/plan/loss.h"

#define LATE_NS 200000u /* a machine that is free wakes a thread earlier than that */

struct open_round { /* what becomes part of the sums when the round closes */
	uint32_t round;
	uint64_t counted, lost, last_stage;
};

struct span { /* of one round */
	/* When its first operation began and the last ones ended; 0: none did. made: inner steps and pseudo-gradients, which a
	 * reduction comes behind. */
	skep_time begun_ns, passed_ns, made_ns, reduced_ns;
	uint64_t counted, last_stage; /* gradients, and of these in the last stage; once it has closed */
	bool closed;
};

struct skep_tally {
	const struct skep_scenario *scenario;
	struct skep_summary sum;     /* the counters, while they grow */
	uint32_t heard;              /* skep_plan_heard() */
	struct open_round *open;     /* [heard], by round modulo that */
	struct skep_worker_use *use; /* [workers + 1], the directory last */
	double cost_usd;             /* of the lives that have ended */
	double egress_usd;           /* so far, 0 without prices of traffic; NAN: not known ... */
	double target_egress_usd;    /* ... and when the target was reached */
	double cost_to_target_usd;   /* of these, what was before the target was reached */
	skep_time target_ns;         /* when that was; SKEP_TIME_NEVER: not yet */
	uint64_t paced, late;        /* operations */
	double late_ns;              /* of the late ones: longer than paced, together */
	uint64_t died;               /* processes of workers */
	bool *moving;                /* [workers]: when it joins, that is the end of a migration */
	bool *returned;              /* [workers]: when it leaves, its machine was given back */
	struct span *span;           /* [spans] by round */
	size_t spans;
	bool lacking;               /* memory, for them: then the figures are not known */
	uint32_t warm_up;           /* rounds that throughput leaves out */
	uint32_t unrecorded_before; /* the first round: without books in the run that this one goes on with */
	uint64_t warm_samples, closed_samples;
	skep_time warm_ns, closed_ns; /* of the last of these rounds, and of the last of all */
	struct skep_candidates candidates;
};

struct skep_tally *skep_tally_create(const struct skep_scenario *scenario, const char *world)
{
	struct skep_tally *tally = calloc(1, sizeof *tally);
	if (tally == NULL)
		return NULL;
	tally->scenario = scenario;
	tally->use = calloc((size_t)scenario->plan.workers + 1, sizeof *tally->use);
	tally->heard = skep_plan_heard(&scenario->plan);
	tally->open = calloc(tally->heard, sizeof *tally->open);
	tally->moving = calloc((size_t)scenario->plan.workers + 1, sizeof *tally->moving);
	bool room = skep_candidates_init(&tally->candidates, &scenario->plan);
	tally->returned = calloc((size_t)scenario->plan.workers + 1, sizeof *tally->returned);
	if (tally->use == NULL || tally->moving == NULL || tally->returned == NULL || tally->open == NULL || !room) {
		skep_tally_destroy(tally);
		return NULL;
	}
	struct skep_summary *sum = &tally->sum;
	sum->kept_candidate = -1;
	snprintf(sum->scenario, sizeof sum->scenario, "%s", scenario->name);
	sum->world = world;
	sum->seed = scenario->seed;
	sum->target_loss = scenario->target_loss;
	sum->final_loss = sum->final_validation_loss = sum->time_to_target_s = sum->cost_usd = sum->egress_usd = NAN;
	sum->global_staleness = sum->local_staleness = NAN;
	if (skep_plan_waves(&scenario->plan)) {
		sum->global_bound = skep_plan_global_staleness(&scenario->plan);
		sum->local_bound = skep_plan_local_staleness(&scenario->plan);
	}
	tally->target_ns = SKEP_TIME_NEVER;
	for (uint32_t round = 0; round < tally->heard; round++)
		tally->open[round].round = round;
	return tally;
}

void skep_tally_destroy(struct skep_tally *tally)
{
	if (tally == NULL)
		return;
	skep_candidates_finish(&tally->candidates);
	free(tally->use);
	free(tally->moving);
	free(tally->returned);
	free(tally->open);
	free(tally->span);
	free(tally);
}

/* ---- what is heard ---------------------------------------------------------------------------------------------- */

static void hear_stage(struct skep_tally *tally, const struct skep_note *note)
{
	struct open_round *open = &tally->open[note->round % tally->heard];
	if (open->round != note->round)
		*open = (struct open_round){.round = note->round};
	open->counted += note->counted;
	open->lost += (uint64_t)note->lost;
	if (note->stage + 1u == skep_plan_vstages(&tally->scenario->plan))
		open->last_stage += note->counted; /* of each candidate */
}

/* With waves: NAN before the first, so it is compared the other way round. */
static void hear_counted(struct skep_tally *tally, const struct skep_note *note)
{
	struct skep_summary *sum = &tally->sum;
	const double lacked = skep_note_lacked(note->staleness), own = skep_note_lacked_own(note->staleness);
	if (!skep_plan_waves(&tally->scenario->plan))
		return;
	if (!(lacked <= sum->global_staleness))
		sum->global_staleness = lacked;
	if (!(own <= sum->local_staleness))
		sum->local_staleness = own;
}

static bool make_room(struct skep_tally *tally, uint32_t round)
{
	if (round < tally->spans || tally->lacking)
		return !tally->lacking;
	size_t wanted = 2 * (size_t)round + 64;
	struct span *grown = realloc(tally->span, wanted * sizeof *grown);
	tally->lacking = grown == NULL;
	if (grown == NULL)
		return false;
	memset(grown + tally->spans, 0, (wanted - tally->spans) * sizeof *grown);
	tally->span = grown;
	tally->spans = wanted;
	return true;
}

/* Of so many microbatches more that were counted in the last stage, or fewer. */
static void add_samples(struct skep_tally *tally, int64_t microbatches)
{
	uint64_t samples = (uint64_t)microbatches * tally->scenario->samples;
	tally->sum.samples += samples;
	tally->sum.tokens += samples * tally->scenario->model.sequence;
}

static void hear_close(struct skep_tally *tally, const struct skep_note *note)
{
	struct open_round *open = &tally->open[note->round % tally->heard];
	tally->sum.steps++;
	tally->sum.issued += (uint64_t)note->issued * skep_plan_vstages(&tally->scenario->plan);
	if (open->round != note->round)
		return;
	tally->sum.counted += open->counted;
	tally->sum.lost += open->lost;
	add_samples(tally, (int64_t)open->last_stage);
	if (note->round < tally->scenario->plan.rounds && make_room(tally, note->round)) {
		struct span *span = &tally->span[note->round];
		span->counted = open->counted;
		span->last_stage = open->last_stage;
		span->closed = true;
	}
	*open = (struct open_round){.round = note->round};
}

/* Where nothing is flushed a worker alone in its stage steps before the directory has heard of it: all may hold what the
 * directory that is lost had not closed. A run that begins behind other rounds has spans of its own ones alone. */
static uint64_t unrecorded(const struct skep_tally *tally, uint32_t round)
{
	uint32_t from = tally->scenario->plan.first_round;
	uint64_t count = 0;
	for (uint32_t i = from; i < round && i < tally->scenario->plan.rounds; i++)
		count += i >= tally->spans || !tally->span[i].closed;
	return count;
}

/* What had been counted of rounds that are made again is lost, and their steps are not made. */
static void hear_resumed(struct skep_tally *tally, const struct skep_note *note)
{
	tally->sum.outages++;
	tally->sum.rounds_unrecorded = tally->unrecorded_before + unrecorded(tally, note->round);
	for (size_t i = note->round; i < tally->spans; i++) {
		struct span *span = &tally->span[i];
		tally->sum.steps -= span->closed;
		tally->sum.rounds_again += span->closed;
		tally->sum.counted -= span->counted;
		tally->sum.lost += span->counted;
		add_samples(tally, -(int64_t)span->last_stage);
		*span = (struct span){0};
	}
	for (uint32_t i = 0; i < tally->heard; i++)
		tally->open[i] = (struct open_round){.round = UINT32_MAX};
}

/* After hear_close(). */
static void hear_pace(struct skep_tally *tally, skep_time now)
{
	tally->closed_ns = now;
	tally->closed_samples = tally->sum.samples;
	if (tally->target_ns == now) /* its loss is told before what was sent */
		tally->target_egress_usd = tally->egress_usd;
	if (tally->sum.steps != tally->warm_up)
		return;
	tally->warm_ns = now;
	tally->warm_samples = tally->sum.samples;
}

static void hear_loss(struct skep_tally *tally, skep_time now, const struct skep_note *note)
{
	struct skep_summary *sum = &tally->sum;
	bool validated = note->kind == SKEP_NOTE_VALIDATED, counts = tally->scenario->plan.validation.every == 0;
	if (tally->scenario->arithmetic == SKEP_ARITHMETIC_NONE || (validated && note->judged == 0))
		return;
	double loss = note->loss_nano == INT64_MAX ? INFINITY : (double)note->loss_nano / 1e9;
	*(validated ? &sum->final_validation_loss : &sum->final_loss) = loss;
	if ((validated || counts) && isnan(sum->time_to_target_s) && loss <= tally->scenario->target_loss) {
		sum->time_to_target_s = (double)now / 1e9;
		tally->target_ns = now;
		tally->target_egress_usd = tally->egress_usd;
	}
}

/* Movers join too, but that is told as a migration. */
static void hear_join(struct skep_tally *tally, const struct skep_note *note)
{
	if (note->peer.index >= tally->scenario->plan.workers)
		return;
	bool *moving = &tally->moving[note->peer.index];
	tally->sum.joins += note->kind == SKEP_NOTE_JOINED && !*moving;
	*moving = note->kind == SKEP_NOTE_MIGRATED;
}

/* One that was given back is not lost. One that is lost before it has left is, all the same. */
static void hear_leave(struct skep_tally *tally, const struct skep_note *note)
{
	if (note->peer.index >= tally->scenario->plan.workers)
		return;
	bool *returned = &tally->returned[note->peer.index];
	if (note->kind == SKEP_NOTE_LEFT) {
		tally->sum.returned += *returned;
		tally->sum.preemptions += !*returned;
	}
	*returned = note->kind == SKEP_NOTE_RETURNED;
}

/* What stopped the run, in one sentence. */
static void hear_fault(struct skep_tally *tally, skep_time now, const struct skep_note *note)
{
	static const char *const what[SKEP_FAULTS] = {[SKEP_FAULT_ACTIVATIONS] = "activations",
		[SKEP_FAULT_LOSS] = "the loss",
		[SKEP_FAULT_GRADIENT] = "gradients",
		[SKEP_FAULT_STATE] = "parameters or optimizer state"};
	const uint32_t kind = note->fault.kind, layer = note->fault.layer;
	char where[32] = "";
	const char *help = "nothing was learnt yet: look at what it begins with and learns from";
	if (note->round > 0)
		help = skep_plan_no_flush(&tally->scenario->plan)
		               ? "a smaller learning rate may help"
		               : "a smaller learning rate, or train.optimizer.clip_norm, may help";
	if (layer > 0)
		snprintf(where, sizeof where, ", layer %u of %u", layer, tally->scenario->model.layers);
	snprintf(tally->sum.failure, sizeof tally->sum.failure,
		"%s became infinite or no number in round %u, first in worker %u (stage %u%s) after %.1f s; %s",
		kind < SKEP_FAULTS && what[kind] ? what[kind] : "numbers", note->round, note->peer.index,
		note->stage % tally->scenario->plan.stages, where, (double)now * 1e-9, help);
}

/* The trial is over: its newest loss is the run's. */
static void hear_kept(struct skep_tally *tally, skep_time now, const struct skep_note *note)
{
	struct skep_summary *sum = &tally->sum;
	const struct skep_candidates *c = &tally->candidates;
	if (tally->scenario->arithmetic == SKEP_ARITHMETIC_NONE || c->candidates == 0)
		return;
	sum->kept_candidate = (int32_t)c->kept;
	sum->kept_loss = skep_candidates_last(c, c->kept);
	sum->candidates_loss = skep_candidates_mean(c);
	int64_t nano = isfinite(sum->kept_loss) ? llround(sum->kept_loss * 1e9) : INT64_MAX;
	hear_loss(tally, now, &(struct skep_note){.kind = SKEP_NOTE_LOSS, .round = note->round, .loss_nano = nano});
}

static void hear_note(void *context, skep_time now, struct skep_peer who, const struct skep_note *said)
{
	struct skep_tally *tally = context;
	const struct skep_note heard = skep_candidates_hear(&tally->candidates, said), *note = &heard;
	(void)who;
	switch (note->kind) {
	case SKEP_NOTE_STAGE_COMMITTED:
		hear_stage(tally, note);
		break;
	case SKEP_NOTE_ROUND_CLOSED:
		hear_close(tally, note);
		hear_pace(tally, now);
		break;
	case SKEP_NOTE_LOSS:
	case SKEP_NOTE_VALIDATED:
		hear_loss(tally, now, note);
		break;
	case SKEP_NOTE_CANDIDATE_CHOSEN:
		hear_kept(tally, now, note);
		break;
	case SKEP_NOTE_UNEQUAL:
		tally->sum.unequal++;
		break;
	case SKEP_NOTE_FENCED:
		hear_leave(tally, note);
		hear_join(tally, note);
		tally->sum.fenced++;
		tally->sum.preemptions++;
		break;
	case SKEP_NOTE_COUNTED:
		hear_counted(tally, note);
		break;
	case SKEP_NOTE_CHECKPOINTED:
		tally->sum.checkpoints++;
		break;
	case SKEP_NOTE_CHECKPOINT_FAILED:
		tally->sum.unkept++;
		break;
	case SKEP_NOTE_DIVERGED:
		hear_fault(tally, now, note);
		break;
	case SKEP_NOTE_STAGE_RESTARTED:
		tally->sum.restarts++;
		break;
	case SKEP_NOTE_RESUMED:
		hear_resumed(tally, note);
		break;
	case SKEP_NOTE_SCALED:
		tally->sum.scalings++;
		break;
	case SKEP_NOTE_RETURNED:
	case SKEP_NOTE_LEFT:
		hear_leave(tally, note);
		break;
	case SKEP_NOTE_MIGRATED:
		hear_join(tally, note);
		tally->sum.migrations++;
		break;
	case SKEP_NOTE_JOINED:
		hear_join(tally, note);
		break;
	default:
		break;
	}
}

/* A wake-up some 50 us late is no overrun of an operation of more than a millisecond. */
static void hear_overrun(struct skep_tally *tally, const struct skep_op_span *op)
{
	if (op->paced_ns == 0)
		return;
	tally->paced++;
	skep_time over_ns = op->end_ns - op->begin_ns > op->paced_ns ? op->end_ns - op->begin_ns - op->paced_ns : 0;
	if (over_ns <= op->paced_ns / 20 || over_ns <= LATE_NS)
		return;
	tally->late++;
	tally->late_ns += (double)over_ns;
}

/* Operations of other processes come late, so a round's are put together at the end of the run. */
static void hear_op(void *context, const struct skep_op_span *op)
{
	struct skep_tally *tally = context;
	hear_overrun(tally, op);
	bool pass = op->kind == SKEP_OP_FORWARD || op->kind == SKEP_OP_BACKWARD;
	if (pass && skep_plan_validates(&tally->scenario->plan, op->number)) /* before the round */
		return;
	bool makes = op->kind == SKEP_OP_INNER_STEP || op->kind == SKEP_OP_PSEUDO_GRAD;
	if ((!pass && !makes && !skep_op_reduces(op->kind)) || op->round >= tally->scenario->plan.rounds ||
		!make_room(tally, op->round))
		return;
	struct span *span = &tally->span[op->round];
	skep_time *last = pass ? &span->passed_ns : makes ? &span->made_ns : &span->reduced_ns;
	if (pass && (span->passed_ns == 0 || op->begin_ns < span->begun_ns))
		span->begun_ns = op->begin_ns;
	*last = op->end_ns > *last ? op->end_ns : *last;
}

/* In step with the rounds, as links are not: they are told of at the end. */
static void hear_sent(void *context, const struct skep_sent *sent)
{
	struct skep_tally *tally = context;
	tally->sum.bytes_pipeline += sent->bytes[SKEP_TRAFFIC_PIPELINE];
	tally->sum.bytes_sync += sent->bytes[SKEP_TRAFFIC_SYNC];
	tally->egress_usd += sent->egress_usd;
}

/* Looks for a link without a price. */
static void hear_link(void *context, const struct skep_link_use *use)
{
	struct skep_tally *tally = context;
	const struct skep_scenario *s = tally->scenario;
	const struct skep_topology *t = &s->topology;
	if (tally->sum.unpriced[0] || !isnan(skep_scenario_egress_usd(s, use->source, use->destination, use->bytes)))
		return;
	uint32_t from = t->machine[skep_scenario_machine(s, use->source)].place,
		 to = t->machine[skep_scenario_machine(s, use->destination)].place;
	snprintf(tally->sum.unpriced, sizeof tally->sum.unpriced, "%s to %s", t->place_name[from], t->place_name[to]);
}

static void hear_worker(void *context, const struct skep_worker_use *use)
{
	struct skep_tally *tally = context;
	assert(use->index <= tally->scenario->plan.workers);
	tally->use[use->index] = *use;
}

static void hear_life(void *context, uint32_t machine, skep_time started_ns, skep_time ended_ns)
{
	struct skep_tally *tally = context;
	assert(machine < tally->scenario->plan.workers && started_ns <= ended_ns);
	const struct skep_topology *topology = &tally->scenario->topology;
	skep_time until_ns = ended_ns < tally->target_ns ? ended_ns : tally->target_ns;
	tally->cost_usd += skep_topology_cost_usd(topology, machine, started_ns, ended_ns);
	if (until_ns > started_ns)
		tally->cost_to_target_usd += skep_topology_cost_usd(topology, machine, started_ns, until_ns);
}

static void hear_death(void *context, uint32_t machine)
{
	struct skep_tally *tally = context;
	assert(machine < tally->scenario->plan.workers);
	tally->died++;
}

struct skep_recorder skep_tally_recorder(struct skep_tally *tally)
{
	return (struct skep_recorder){.context = tally,
		.note = hear_note,
		.op = hear_op,
		.sent = hear_sent,
		.link = hear_link,
		.worker = hear_worker,
		.life = hear_life,
		.died = hear_death};
}

/* ---- the end ---------------------------------------------------------------------------------------------------- */

/* Folds the digests in the order of the machine index, whatever the order in which they were heard; with a final mix, so that
 * the high bits of a word reach the low ones. */
static uint64_t fold_digests(const struct skep_tally *tally)
{
	uint64_t hash = SKEP_HASH_EMPTY;
	for (uint32_t i = 0; i <= tally->scenario->plan.workers; i++) {
		hash = skep_hash_word(hash, tally->use[i].digest);
		hash ^= hash >> 29;
	}
	return hash;
}

static double utilisation(const struct skep_tally *tally)
{
	double compute = 0, alive = 0;
	for (uint32_t i = 0; i < tally->scenario->plan.workers; i++) {
		compute += (double)tally->use[i].compute_ns;
		alive += (double)tally->use[i].alive_ns;
	}
	return alive > 0 ? compute / alive : NAN;
}

/* A backward pass may end after the reduction: of a microbatch that was no longer waited for. */
static void add_spans(const struct skep_tally *tally, struct skep_summary *ret)
{
	double passes_ns = 0, reduction_ns = 0;
	uint32_t passes = 0, reductions = 0;
	for (size_t i = 0; i < tally->spans && i < tally->scenario->plan.first_round + tally->sum.steps; i++) {
		const struct span *span = &tally->span[i];
		if (span->passed_ns == 0)
			continue;
		passes_ns += (double)(span->passed_ns - span->begun_ns);
		passes++;
		if (span->reduced_ns == 0)
			continue;
		reduction_ns +=
			fmax(0, (double)span->reduced_ns - fmax((double)span->passed_ns, (double)span->made_ns));
		reductions++;
	}
	ret->passes_s = passes > 0 && !tally->lacking ? passes_ns / 1e9 / passes : NAN;
	ret->reduction_s = reductions > 0 && !tally->lacking ? reduction_ns / 1e9 / reductions : NAN;
}

/* Of machines; NAN as soon as the price of one worker is not known, though it may never have been there. */
static double cost_usd(const struct skep_tally *tally)
{
	const struct skep_topology *topology = &tally->scenario->topology;
	for (uint32_t i = 0; i < tally->scenario->plan.workers; i++)
		if (isnan(skep_topology_cost_usd(topology, i, 0, 0)))
			return NAN;
	return tally->cost_usd;
}

static bool extrapolated(const struct skep_tally *tally)
{
	char how[256];
	uint32_t rounds = tally->scenario->plan.first_round + (uint32_t)tally->sum.steps;
	return skep_loss_extrapolates(tally->scenario, rounds, how, sizeof how);
}

void skep_tally_warm_up(struct skep_tally *tally, uint32_t rounds)
{
	tally->warm_up = rounds;
}

void skep_tally_unrecorded(struct skep_tally *tally, uint32_t rounds)
{
	tally->unrecorded_before = rounds;
	tally->sum.rounds_unrecorded = rounds;
}

/* Here steps are still rounds. */
static void add_pace(const struct skep_tally *tally, struct skep_summary *ret)
{
	uint32_t warm = tally->sum.steps > tally->warm_up ? tally->warm_up : 0;
	double begun_ns = warm > 0 ? (double)tally->warm_ns : 0, seconds = ((double)tally->closed_ns - begun_ns) / 1e9;
	ret->round_s = ret->steps > 0 ? seconds / (double)(ret->steps - warm) : NAN;
	if (warm > 0 && seconds > 0)
		ret->throughput_samples_per_s = (double)(tally->closed_samples - tally->warm_samples) / seconds;
}

static uint64_t steps_of(const struct skep_plan *plan, uint64_t rounds)
{
	uint32_t first = plan->first_round;
	return skep_plan_steps_before(plan, first + (uint32_t)rounds) - skep_plan_steps_before(plan, first);
}

/* Rounds, of a run that is done. */
static const char *ended_by(const struct skep_tally *tally, uint64_t rounds)
{
	const struct skep_plan *plan = &tally->scenario->plan;
	if (rounds >= plan->rounds - plan->first_round)
		return "steps";
	if (plan->until.target_loss_nano != INT64_MIN && tally->target_ns != SKEP_TIME_NEVER)
		return "loss";
	return plan->until.end_ns > 0 && tally->closed_ns >= plan->until.end_ns ? "time" : "usd";
}

void skep_tally_finish(struct skep_tally *tally, skep_time end_ns, uint64_t events, double wall_s,
	enum skep_outcome outcome, struct skep_summary *ret)
{
	*ret = tally->sum;
	ret->digest = fold_digests(tally);
	ret->vstages = skep_plan_vstages(&tally->scenario->plan);
	ret->time_s = (double)end_ns / 1e9;
	ret->throughput_samples_per_s = end_ns > 0 ? (double)ret->samples / ret->time_s : NAN;
	ret->utilisation = utilisation(tally);
	struct skep_expert_use experts = {0};
	for (uint32_t i = 0; i < tally->scenario->plan.workers; i++) {
		ret->damaged += tally->use[i].damaged;
		skep_expert_use_add(&experts, &tally->use[i].experts);
	}
	skep_summary_add_experts(ret, &experts);
	add_spans(tally, ret);
	add_pace(tally, ret);
	ret->ended_by = outcome == SKEP_DONE ? ended_by(tally, ret->steps) : NULL;
	ret->steps = steps_of(&tally->scenario->plan, ret->steps);
	ret->steps_asked =
		steps_of(&tally->scenario->plan, tally->scenario->plan.rounds - tally->scenario->plan.first_round);
	ret->egress_usd = tally->scenario->topology.egress_usd_per_B ? tally->egress_usd : (double)NAN;
	ret->cost_usd = cost_usd(tally) + tally->egress_usd;
	bool priced = !isnan(ret->cost_usd) && tally->target_ns != SKEP_TIME_NEVER;
	ret->cost_to_target_usd = priced ? tally->cost_to_target_usd + tally->target_egress_usd : NAN;
	ret->events = events;
	ret->wall_s = wall_s;
	ret->ok = outcome == SKEP_DONE;
	ret->has_law = tally->scenario->arithmetic == SKEP_ARITHMETIC_SCALING_LAW;
	ret->extrapolated = extrapolated(tally);
	ret->late_share = tally->paced > 0 ? (double)tally->late / (double)tally->paced : NAN;
	ret->late_s = tally->late > 0 ? tally->late_ns / 1e9 / (double)tally->late : NAN;
	ret->unprovoked = ret->fenced > tally->died + ret->unequal && !tally->scenario->has_trace;
}
