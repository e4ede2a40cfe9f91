/* SPDX-License-Identifier: Apache-2.0
 *
 * fault_mix_scale.c - decides how a seed's run asks for machines (plan->scale): kinds, prices, policy and limits. Drawn after all
 * else and from a draw of its own, in seeds that are asked to have it (chaos --scaled).
 */
#include "tests/cluster/fault_mix.h"

#define SCALE_SALT UINT64_C(0x7363616c65)
#define NS_PER_MS UINT64_C(1000000)

static uint64_t draw(uint64_t *random, uint64_t most)
{
	return mix64(++*random) % (most + 1);
}

/* Up to three kinds; all machines are there at the start. */
static void draw_kinds(struct weather *w, uint64_t *random)
{
	const struct skep_plan *plan = &w->plan;
	uint32_t most = plan->workers < WEATHER_KINDS ? plan->workers : WEATHER_KINDS;
	w->scale.kinds = 1 + (uint32_t)draw(random, most - 1);
	for (uint32_t i = 0; i < plan->workers; i++) {
		uint32_t k = i < w->scale.kinds ? i : (uint32_t)draw(random, w->scale.kinds - 1);
		w->kind_of[i] = k;
		w->kind[k].workers++;
		w->kind[k].start++;
		w->kind[k].example = i;
	}
	for (uint32_t k = 0; k < w->scale.kinds; k++)
		w->kind[k].speed = 1 + (uint32_t)draw(random, 3);
	w->scale.kind = w->kind;
	w->scale.kind_of = w->kind_of;
}

/* In half: a price for each kind, which changes once. */
static void draw_prices(struct weather *w, uint64_t *random)
{
	if (draw(random, 1))
		return;
	for (uint32_t k = 0; k < w->scale.kinds; k++) {
		w->price_first[k] = 2 * k;
		w->price_step[2 * k] = (struct skep_price_at){0, 1 + draw(random, 3)};
		w->price_step[2 * k + 1] = (struct skep_price_at){
			1 + draw(random, w->plan.rounds * w->round_ns / NS_PER_MS), 1 + draw(random, 3)};
	}
	w->price_first[w->scale.kinds] = 2 * w->scale.kinds;
	w->plan.price.of = w->kind_of;
	w->plan.price.first = w->price_first;
	w->plan.price.step = w->price_step;
}

void weather_scale(struct weather *w)
{
	struct skep_plan *plan = &w->plan;
	uint64_t random = mix64(w->seed ^ SCALE_SALT);
	if (skep_plan_fixed(plan) || plan->on_loss == SKEP_ON_LOSS_WAIT || plan->candidates.count > 1)
		return;
	plan->stands_by = NULL;
	draw_kinds(w, &random);
	draw_prices(w, &random);
	w->scale.policy = draw(&random, 1) ? SKEP_SCALE_DEADLINE : SKEP_SCALE_PRICE;
	w->scale.min = 1 + (uint32_t)draw(&random, plan->workers - 1);
	w->scale.max = w->scale.min + (uint32_t)draw(&random, plan->workers - w->scale.min);
	w->scale.deadline_ns = 1 + draw(&random, (UINT64_C(1) << draw(&random, 5)) * plan->rounds * w->round_ns);
	w->scale.period_ns = 1 + draw(&random, w->round_ns);
	w->scale.cool_down_ns = draw(&random, 3 * w->round_ns);
	w->scale.budget_microusd_per_h = draw(&random, 1) ? 1 + draw(&random, 3 * plan->workers) : 0;
	w->scale.machine_microusd_per_h = draw(&random, 3) == 0 ? 1 + draw(&random, 3) : 0;
	w->scale.margin_ppm = (uint32_t)draw(&random, 500000);
	w->scale.share_ppm = (uint32_t)draw(&random, 1000000);
	plan->scale = &w->scale;
}
