/* SPDX-License-Identifier: Apache-2.0
 *
 * uncertain.c - see uncertain.h. Reads the key `uncertainty` of links, of a matrix and of machines, and draws.
 *
 * What is kept true: a deviation is from 0 to 1; the table of pairs exists if one of them may be off; a relayed pair, which is
 * put together from two others, has no draw of its own.
 */
#include "topologies/read/uncertain.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/grow.h"
#include "core/random.h"
#include "topologies/churn/deviate.h"
#include "topologies/read/draft.h"
#include "topologies/read/path.h"

enum figure { BANDWIDTH, LATENCY, UP, DOWN, PRICE };

/* ---- reading ------------------------------------------------------------------------------------------------------ */

uint64_t skep_unsure_key(const char *from, const char *to)
{
	uint64_t key = skep_mix(0x6c696e6bu);
	for (const char *c = from; *c != '\0'; c++)
		key = skep_mix(key ^ (uint8_t)*c);
	key = skep_mix(key ^ 0x100u);
	for (const char *c = to; *c != '\0'; c++)
		key = skep_mix(key ^ (uint8_t)*c);
	return key;
}

struct skep_unsure_pair skep_draft_read_unsure(struct skep_draft *d, const struct skep_yaml_node *map)
{
	struct skep_unsure_pair ret = {{0, 0}, {0, 0}};
	const struct skep_yaml_node *node = skep_read_map(&d->r, map, "uncertainty", false);
	if (d->r.diag->set || !node)
		return ret;
	ret.bandwidth.deviation = skep_read_number(&d->r, node, "bandwidth", 0.0, 1.0, 0.0);
	ret.latency.deviation = skep_read_number(&d->r, node, "latency", 0.0, 1.0, 0.0);
	skep_reader_close_map(&d->r, node);
	return ret;
}

void skep_draft_set_unsure(struct skep_draft *d, size_t pair, const struct skep_unsure_pair *unsure)
{
	struct skep_topology *t = d->topology;
	assert(pair < (size_t)t->places * t->places);
	if (!t->unsure && !(unsure->bandwidth.deviation > 0 || unsure->latency.deviation > 0))
		return;
	if (!t->unsure)
		t->unsure = calloc((size_t)t->places * t->places, sizeof *t->unsure);
	if (!t->unsure)
		skep_draft_no_memory(d);
	else
		t->unsure[pair] = *unsure;
}

/* A figure that the group does not state cannot be off. */
static double read_of(
	struct skep_draft *d, const struct skep_yaml_node *node, const struct skep_yaml_node *group, const char *key)
{
	double deviation = skep_read_number(&d->r, node, key, 0.0, 1.0, 0.0);
	if (!d->r.diag->set && skep_read_has(&d->r, node, key) && !skep_read_has(&d->r, group, key))
		skep_reader_fail(
			&d->r, node, key, "how far `%s` may be off, but these machines have no `%s`", key, key);
	return deviation;
}

uint32_t skep_draft_read_unsure_group(struct skep_draft *d, const struct skep_yaml_node *group)
{
	struct skep_topology *t = d->topology;
	const struct skep_yaml_node *node = skep_read_map(&d->r, group, "uncertainty", false);
	if (d->r.diag->set || !node)
		return 0;
	struct skep_unsure_group unsure = {.up = read_of(d, node, group, "up"),
		.down = read_of(d, node, group, "down"),
		.price = read_of(d, node, group, "price")};
	skep_reader_close_map(&d->r, node);
	if (d->r.diag->set)
		return 0;
	if (!skep_grow(&t->unsure_group, t->unsure_groups, sizeof *t->unsure_group)) {
		skep_draft_no_memory(d);
		return 0;
	}
	t->unsure_group[t->unsure_groups++] = unsure;
	return t->unsure_groups;
}

/* ---- drawing ------------------------------------------------------------------------------------------------------ */

static double draw(double deviation, uint64_t seed, uint64_t key, enum figure figure)
{
	assert(deviation >= 0 && deviation <= 1);
	uint64_t state = skep_mix(skep_mix(skep_mix(seed ^ 0x756e73757265u) ^ key) ^ (uint64_t)figure);
	return deviation > 0 ? skep_deviate_exp(deviation * skep_deviate_normal(&state)) : 1;
}

static void draw_pair(struct skep_pair *pair, const struct skep_unsure_pair *unsure, uint64_t seed, double extra_s)
{
	assert(!isnan(pair->capacity_Bps) && pair->latency_s >= 0);
	double factor = draw(unsure->bandwidth.deviation, seed, unsure->bandwidth.key, BANDWIDTH);
	pair->capacity_Bps *= factor;
	pair->shared_Bps *= factor;
	if (unsure->latency.deviation > 0)
		pair->latency_s = extra_s + fmax(0, pair->latency_s - extra_s) *
		                                    draw(unsure->latency.deviation, seed, unsure->latency.key, LATENCY);
}

static void draw_machine(const struct skep_topology *t, struct skep_machine *m, uint64_t seed)
{
	assert(m->unsure > 0 && m->unsure <= t->unsure_groups);
	const struct skep_unsure_group *unsure = &t->unsure_group[m->unsure - 1];
	m->up_Bps *= draw(unsure->up, seed, m->unsure, UP);
	m->down_Bps *= draw(unsure->down, seed, m->unsure, DOWN);
	m->price_usd_per_h *= draw(unsure->price, seed, m->unsure, PRICE);
}

void skep_topology_draw(struct skep_topology *t, uint64_t seed, double extra_latency_s)
{
	size_t pairs = (size_t)t->places * t->places;
	assert(extra_latency_s >= 0);
	for (size_t i = 0; t->unsure != NULL && i < pairs; i++)
		if (skep_topology_is_link(&t->pair[i]))
			draw_pair(&t->pair[i], &t->unsure[i], seed, extra_latency_s);
	for (uint32_t i = 0; i < t->machines; i++)
		if (t->machine[i].unsure > 0)
			draw_machine(t, &t->machine[i], seed);
	skep_path_join_relayed(t);
}

bool skep_topology_uncertain(const struct skep_topology *t)
{
	return t->unsure != NULL || t->unsure_groups > 0;
}
