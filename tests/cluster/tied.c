/* SPDX-License-Identifier: Apache-2.0
 *
 * tied.c - a tied table here: the device's step on it, and the referee, who wants both copies stepped by what both stages have
 * counted, with the numbers of both, and equal after each step. What an element is stepped on is a hash of both sums and both
 * numbers, in an order that does not depend on who steps: so copies that were equal stay equal exactly when the sums are.
 */
#include "tests/cluster/ledger_internal.h"

#include <string.h>

double symbol_products(uint64_t tied, const uint64_t *first, const uint64_t *last, uint32_t part)
{
	uint64_t hash = part;
	for (uint64_t e = 0; e < tied; e++)
		hash = mix64(hash + first[e] + mix64(last[e]));
	/* what is below 0 is never as much as the squares are, which are 1 and more */
	return part == 1 ? (double)(1 + hash % (1u << 20)) : (double)(1 + hash % 1000) / 1001;
}

uint64_t books_drawn(const struct ledger *ledger, uint32_t stage, uint32_t element)
{
	return ledger->resumed ? ledger->begun[stage][element]
	                       : symbol_parameter(ledger->plan, ledger->candidate, stage, element);
}

static uint64_t half(uint64_t sum, uint32_t counted)
{
	return mix64((counted > 0 ? sum : 0) + counted);
}

uint64_t tied_gradient(const struct device *device, const struct skep_plan *plan, const struct skep_op *op,
	uint32_t element, uint64_t own, struct effect *ret)
{
	uint64_t begins = skep_plan_tied_first(plan, device->stage);
	if (element < begins || element >= begins + plan->tied)
		return own;
	const uint64_t *tied_peer = device->tied_peer[op->round];
	memcpy(ret->tied_peer, tied_peer, sizeof(ret->tied_peer));
	ret->applied[element] = device->result[op->round][element];
	uint64_t mine = half(device->result[op->round][element], op->microbatches);
	uint64_t theirs = half(tied_peer[element - begins], op->tied);
	bool first = op->stage == 0;
	return mix64(first ? mine : theirs) + (first ? theirs : mine);
}

double tied_norm(const struct device *device, const struct skep_plan *plan, const struct skep_op *op)
{
	return symbol_products(plan->tied, device->result[op->round], device->tied_peer[op->round], op->term);
}

static uint32_t other_vstage(const struct skep_plan *plan, uint32_t vstage)
{
	return skep_plan_vstages(plan) - 1 - vstage;
}

void tied_step(struct ledger *ledger, struct skep_peer who, const struct skep_op *op, const struct effect *effect)
{
	const struct skep_plan *plan = ledger->plan;
	uint64_t sum[CLUSTER_ELEMENTS];
	if (!skep_plan_is_tied_vstage(plan, op->stage))
		return;
	uint32_t other = other_vstage(plan, op->stage);
	const struct cell *cell = &ledger->round[op->round].cell[other];
	if (!cell->committed || op->tied != books_counted(ledger, cell)) {
		verdict_break(ledger->verdict, "I21", op->round, op->stage, ANY,
			"worker %u steps on what %u microbatches of virtual stage %u say of the table, %u were counted there%s",
			who.index, op->tied, other, books_counted(ledger, cell), cell->committed ? "" : ", so far");
		return;
	}
	books_expected_sum(ledger, op->round, other, sum);
	uint64_t begins = skep_plan_tied_first(plan, other % plan->stages);
	if (op->tied > 0 && memcmp(sum + begins, effect->tied_peer, plan->tied * sizeof(sum[0])) != 0)
		verdict_break(ledger->verdict, "I21", op->round, op->stage, ANY,
			"worker %u applies another sum of the table than virtual stage %u has counted", who.index,
			other);
}

void tied_compare(
	struct ledger *ledger, struct skep_peer who, uint32_t version, uint32_t stage, const struct effect *effect)
{
	const struct skep_plan *plan = ledger->plan;
	if (!skep_plan_is_tied(plan, stage) || version == 0)
		return;
	uint32_t tied_peer = skep_plan_tied_peer(plan, stage);
	const struct cell *cell = &ledger->round[version - 1].cell[tied_peer];
	uint64_t mine = skep_plan_tied_first(plan, stage), theirs = skep_plan_tied_first(plan, tied_peer);
	for (uint64_t e = 0; e < plan->tied; e++) {
		bool both = effect->known >> (mine + e) & 1 && cell->known >> (theirs + e) & 1;
		if (both && effect->parameter[mine + e] != cell->parameter[theirs + e])
			verdict_break(ledger->verdict, "I21", version, stage, ANY,
				"worker %u of stage %u holds another element %u of the table, version %u, than stage %u",
				who.index, stage, (unsigned)e, version, tied_peer);
	}
}

/* Twice the products of the two means, those below 0 taken off. */
double tied_products(struct ledger *ledger, uint32_t round)
{
	const struct skep_plan *plan = ledger->plan;
	uint32_t vstage = skep_plan_vstages(plan) - 1;
	if (plan->tied == 0)
		return 0;
	uint64_t sum[2][CLUSTER_ELEMENTS];
	double first = books_counted(ledger, &ledger->round[round].cell[0]);
	double last = books_counted(ledger, &ledger->round[round].cell[vstage]);
	if (first <= 0 || last <= 0)
		return 0;
	books_expected_sum(ledger, round, 0, sum[0]);
	books_expected_sum(ledger, round, vstage, sum[1]);
	const uint64_t *of_last = sum[1] + skep_plan_tied_first(plan, plan->stages - 1);
	return 2 / (first * last) *
	       (symbol_products(plan->tied, sum[0], of_last, 1) - symbol_products(plan->tied, sum[0], of_last, 2));
}
