/* SPDX-License-Identifier: Apache-2.0
 *
 * ends.c - see ends.h.
 */
#include "core/directory/ends.h"

#define NS_PER_MS UINT64_C(1000000)
#define MS_PER_H UINT64_C(3600000)

/* The step that holds at that time: the last one that begins then or before. */
static uint32_t step_at(const struct skep_plan *plan, uint32_t series, uint64_t at_ms)
{
	uint32_t low = plan->price.first[series], high = plan->price.first[series + 1];
	assert(low < high && plan->price.step[low].from_ms == 0);
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		if (plan->price.step[middle].from_ms <= at_ms)
			low = middle;
		else
			high = middle;
	}
	return low;
}

uint64_t skep_ends_price(const struct skep_plan *plan, uint32_t worker, skep_time at_ns)
{
	assert(worker < plan->workers);
	if (plan->price.of == NULL)
		return 1;
	return plan->price.step[step_at(plan, plan->price.of[worker], at_ns / NS_PER_MS)].microusd_per_h;
}

static uint64_t cost(const struct skep_plan *plan, uint32_t worker, uint64_t from_ms, uint64_t to_ms)
{
	assert(from_ms <= to_ms);
	uint32_t series = plan->price.of[worker], end = plan->price.first[series + 1];
	uint64_t sum = 0;
	for (uint32_t i = step_at(plan, series, from_ms); i < end && from_ms < to_ms; i++) {
		uint64_t until_ms = i + 1 < end && plan->price.step[i + 1].from_ms < to_ms
		                            ? plan->price.step[i + 1].from_ms
		                            : to_ms;
		sum += plan->price.step[i].microusd_per_h * (until_ms - from_ms);
		from_ms = until_ms;
	}
	return sum;
}

void skep_ends_pay(struct directory *d, const struct skep_plan *plan, uint32_t worker)
{
	assert(worker < plan->workers);
	struct row *row = directory_row(d, worker);
	uint64_t now_ms = d->node.now / NS_PER_MS;
	if (plan->until.budget_microusd == 0 || row->standing == STANDING_ABSENT || now_ms <= row->paid_ms)
		return;
	d->spent += cost(plan, worker, row->paid_ms, now_ms);
	row->paid_ms = now_ms;
}

/* What its own machines were is in memory, and with it what they cost until now. */
uint64_t skep_directory_spent(const struct skep_node *node, const struct skep_plan *plan, skep_time now)
{
	struct directory *d = (struct directory *)node;
	uint64_t sum = d->spent, now_ms = now / NS_PER_MS;
	assert(now >= node->now);
	for (uint32_t i = 0; plan->until.budget_microusd > 0 && i < plan->workers; i++) {
		const struct row *row = directory_row(d, i);
		if (row->standing != STANDING_ABSENT && now_ms > row->paid_ms)
			sum += cost(plan, i, row->paid_ms, now_ms);
	}
	return sum / MS_PER_H;
}

void skep_ends_resume(struct directory *d, const struct skep_plan *plan)
{
	assert(d->spent == 0);
	for (uint32_t i = 0; i < plan->workers; i++)
		directory_row(d, i)->paid_ms = d->node.now / NS_PER_MS;
}

/* One that was fenced and lives has been paid for until then. */
void skep_ends_joined(struct directory *d, const struct skep_plan *plan, uint32_t worker, skep_time started_ns)
{
	assert(worker < plan->workers);
	struct row *row = directory_row(d, worker);
	uint64_t started_ms = started_ns / NS_PER_MS;
	assert(row->standing == STANDING_ABSENT);
	row->paid_ms = row->paid_ms > started_ms ? row->paid_ms : started_ms;
}

static bool is_spent(struct directory *d, const struct skep_plan *plan)
{
	if (plan->until.budget_microusd == 0)
		return false;
	for (uint32_t i = 0; i < plan->workers; i++)
		skep_ends_pay(d, plan, i);
	uint64_t left =
		plan->until.budget_microusd -
		(d->egress_microusd < plan->until.budget_microusd ? d->egress_microusd : plan->until.budget_microusd);
	return d->spent / MS_PER_H >= left;
}

bool skep_ends_reached(struct directory *d, const struct skep_plan *plan)
{
	assert(d->closed <= plan->rounds);
	return d->closed == plan->rounds || d->loss_nano <= plan->until.target_loss_nano ||
	       (plan->until.end_ns > 0 && d->node.now >= plan->until.end_ns) || is_spent(d, plan);
}
