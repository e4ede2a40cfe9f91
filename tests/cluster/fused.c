/* SPDX-License-Identifier: Apache-2.0
 *
 * fused.c - a collective in one piece: decides when the ALLREDUCE of the members of a reduction ends, and with what sum.
 *
 * Kept true: it ends with the sum of all members' accumulators, for all of them at one instant, after the last of them has
 * asked; or alone, without a result, once its worker has cancelled it. A member that dies before all have asked leaves
 * the others waiting, as it does when the hops are messages.
 */
#include "tests/cluster/internal.h"

#include <string.h>

static struct queued *head(struct process *p)
{
	struct lane *lane = &p->lane[SKEP_LANE_REDUCE];
	return lane->count > 0 ? &lane->item[lane->head] : NULL;
}

static bool waits_for(struct process *p, const struct skep_op *op)
{
	const struct queued *q = p->alive ? head(p) : NULL;
	return q && q->op.kind == SKEP_OP_ALLREDUCE && q->whole == WHOLE_WAITS && q->op.stage == op->stage &&
	       q->op.round == op->round && q->op.attempt == op->attempt && q->op.first == op->first;
}

static void end_soon(struct cluster *c, uint32_t index, skep_time after)
{
	head(&c->process[index])->elapsed = after;
	agenda_add(c, c->now + after, EVENT_OP, index)->lane = SKEP_LANE_REDUCE;
}

static void sum_up(struct cluster *c, const struct skep_op *op, uint64_t ret[CLUSTER_ELEMENTS])
{
	bool short_of_one = sabotaged(c, SABOTAGE_WHOLE_SHORT);
	uint64_t ranks = 0;
	memset(ret, 0, CLUSTER_ELEMENTS * sizeof(*ret));
	for (uint32_t m = 0; m < c->setup.plan->workers; m++) {
		struct process *p = &c->process[m];
		if (!waits_for(p, op))
			continue;
		ranks |= UINT64_C(1) << head(p)->op.rank;
		for (uint64_t e = op->first; e < op->first + op->count && !short_of_one; e++)
			ret[e] += p->device.accumulator[op->round][e];
		short_of_one = false;
	}
	if (ranks != (UINT64_C(1) << op->members) - 1)
		verdict_break(c->verdict, "I6", op->round, op->stage, ANY, "the members of a reduction share a rank");
}

void whole_asked(struct cluster *c, uint32_t index)
{
	struct queued *asked = head(&c->process[index]);
	const struct skep_op op = asked->op;
	uint64_t sum[CLUSTER_ELEMENTS];
	uint32_t there = 0;
	if (asked->whole == WHOLE_CANCELLED) {
		end_soon(c, index, 0);
		return;
	}
	asked->whole = WHOLE_WAITS;
	for (uint32_t m = 0; m < c->setup.plan->workers; m++)
		there += waits_for(&c->process[m], &op);
	if (there < op.members)
		return;
	sum_up(c, &op, sum);
	skep_time after = c->setup.op_time(c->setup.context, c->now, index, &op);
	for (uint32_t m = 0; m < c->setup.plan->workers; m++) {
		struct process *p = &c->process[m];
		if (!waits_for(p, &op))
			continue;
		head(p)->whole = WHOLE_SUMMED;
		memcpy(p->sum, sum, sizeof(sum));
		end_soon(c, m, after);
	}
}

void whole_cancel(struct cluster *c, uint32_t index, uint64_t id)
{
	struct lane *lane = &c->process[index].lane[SKEP_LANE_REDUCE];
	for (uint32_t i = 0; i < lane->count; i++) {
		struct queued *q = &lane->item[(lane->head + i) % lane->capacity];
		if (q->op.id != id || q->op.kind != SKEP_OP_ALLREDUCE)
			continue;
		bool waits = q->whole == WHOLE_WAITS;
		if (sabotaged(c, SABOTAGE_CANCEL_DEAF) || q->whole == WHOLE_SUMMED)
			return;
		q->whole = WHOLE_CANCELLED;
		if (waits)
			end_soon(c, index, 0);
		return;
	}
	verdict_break(c->verdict, "I6", ANY, ANY, ANY, "machine %u cancels what it has not asked for", index);
}

void whole_ends(struct cluster *c, const struct queued *job)
{
	struct process *p = &c->process[job->who.index];
	if (job->whole != WHOLE_SUMMED)
		return;
	if (p->device.stage != job->op.stage)
		verdict_break(c->verdict, "I4", job->op.round, job->op.stage, ANY,
			"worker %u reduces for a stage that its device does not hold", job->who.index);
	memcpy(&p->device.result[job->op.round][job->op.first], &p->sum[job->op.first],
		job->op.count * sizeof(*p->sum));
}
