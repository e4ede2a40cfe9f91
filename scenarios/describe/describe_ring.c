/* SPDX-License-Identifier: Apache-2.0
 *
 * describe_ring.c - see describe_groups.h. Of those that serve a stage at the start.
 */
#include "scenarios/describe/describe_groups.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/layout.h"
#include "base/units.h"
#include "scenarios/plan/links.h"
#include "topologies/ring/ring.h"

enum { STAGES_MAX = 8, MEMBERS_MAX = 16 }; /* in the text; JSON has all */

struct ring {
	uint32_t *worker; /* [members] */
	uint32_t members;
	bool lacks_memory;                    /* there may be one, and it could not be looked at */
	struct skep_ring_pace pace, by_index; /* as they follow each other, and as they would by their indices */
};

static int by_index(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

/* False: there is no ring, or no memory. */
static bool view(const struct skep_scenario *s, uint32_t stage, struct ring *ret)
{
	bool ring = s->plan.reduction.collective == SKEP_COLLECTIVE_RING && !s->plan.gossip;
	*ret = (struct ring){.worker = ring ? malloc(2 * (size_t)s->plan.workers * sizeof *ret->worker) : NULL};
	ret->lacks_memory = ring && !ret->worker;
	if (!ret->worker)
		return false;
	ret->members = skep_ring_order_members(s, stage, ret->worker);
	uint32_t n = ret->members, *sorted = ret->worker + s->plan.workers;
	if (n < 2)
		return false;
	for (uint32_t i = 0; i < n; i++)
		sorted[i] = ret->worker[i];
	qsort(sorted, n, sizeof *sorted, by_index);
	double bytes = skep_ring_order_bytes(s, stage, n);
	return skep_ring_pace(&s->topology, ret->worker, n, bytes, &ret->pace) &&
	       skep_ring_pace(&s->topology, sorted, n, bytes, &ret->by_index);
}

static const char *place_name(const struct skep_scenario *s, uint32_t worker)
{
	return s->topology.place_name[s->topology.machine[worker].place];
}

static void print_hop(const struct skep_scenario *s, const struct skep_ring_hop *hop, FILE *out)
{
	char a[SKEP_TEXT_BYTES], b[SKEP_TEXT_BYTES];
	fprintf(out, "slowest hop %" PRIu32 " to %" PRIu32 " (%s to %s), %s", hop->from, hop->to,
		place_name(s, hop->from), place_name(s, hop->to),
		isfinite(hop->rate_Bps) ? skep_rate_text(hop->rate_Bps, a) : "no limit");
	if (hop->crossings > 1)
		fprintf(out, " of a line for %" PRIu32 " hops", hop->crossings);
	fprintf(out, ", %s", skep_time_text(hop->latency_s, b));
}

void skep_ring_print(const struct skep_scenario *s, FILE *out)
{
	char a[SKEP_TEXT_BYTES], b[SKEP_TEXT_BYTES];
	for (uint32_t stage = 0; s->plan.reduction.order && stage < s->plan.stages && stage < STAGES_MAX; stage++) {
		struct ring ring;
		if (view(s, stage, &ring)) {
			fprintf(out, "  %-9s stage %" PRIu32 ":", stage == 0 ? "ring" : "", stage);
			for (uint32_t i = 0; i < ring.members && i < MEMBERS_MAX; i++)
				fprintf(out, " %" PRIu32, ring.worker[i]);
			fprintf(out, "%s (%s); ", ring.members > MEMBERS_MAX ? " ..." : "",
				s->ring_exact[stage] ? "exact" : "local search");
			print_hop(s, &ring.pace.slowest, out);
			fprintf(out, ": a step takes %s, in the roster's order %s\n",
				skep_time_text(skep_seconds(ring.pace.slowest.ns), a),
				skep_time_text(skep_seconds(ring.by_index.slowest.ns), b));
		} else if (ring.lacks_memory) {
			fprintf(out, "  %-9s stage %" PRIu32 ": not enough memory to look at it\n",
				stage == 0 ? "ring" : "", stage);
		}
		free(ring.worker);
	}
	if (s->plan.reduction.order && s->plan.stages > STAGES_MAX)
		fprintf(out, "            and %" PRIu32 " more stages\n", s->plan.stages - STAGES_MAX);
}

void skep_ring_add_json(const struct skep_scenario *s, uint32_t stage, cJSON *object)
{
	struct ring ring;
	if (!view(s, stage, &ring)) {
		if (ring.lacks_memory)
			cJSON_AddStringToObject(object, "ring", "not enough memory to look at it");
		else
			cJSON_AddNullToObject(object, "ring");
		free(ring.worker);
		return;
	}
	cJSON *json = cJSON_AddObjectToObject(object, "ring"), *order = cJSON_AddArrayToObject(json, "order");
	for (uint32_t i = 0; i < ring.members; i++)
		cJSON_AddItemToArray(order, cJSON_CreateNumber(ring.worker[i]));
	cJSON_AddStringToObject(json, "by", s->plan.reduction.order ? "links" : "roster");
	cJSON_AddBoolToObject(json, "exact", s->plan.reduction.order && s->ring_exact[stage]);
	cJSON_AddNumberToObject(json, "chunk_bytes", skep_ring_order_bytes(s, stage, ring.members));
	const struct skep_ring_hop *hop = &ring.pace.slowest;
	cJSON *slowest = cJSON_AddObjectToObject(json, "slowest");
	cJSON_AddNumberToObject(slowest, "from", hop->from);
	cJSON_AddNumberToObject(slowest, "to", hop->to);
	cJSON_AddStringToObject(slowest, "from_place", place_name(s, hop->from));
	cJSON_AddStringToObject(slowest, "to_place", place_name(s, hop->to));
	if (isfinite(hop->rate_Bps))
		cJSON_AddNumberToObject(slowest, "rate_Bps", hop->rate_Bps);
	cJSON_AddNumberToObject(slowest, "crossings", hop->crossings);
	cJSON_AddNumberToObject(slowest, "latency_s", hop->latency_s);
	cJSON_AddNumberToObject(slowest, "step_s", skep_seconds(hop->ns));
	cJSON_AddNumberToObject(json, "round_s", skep_seconds(ring.pace.round_ns));
	cJSON_AddNumberToObject(json, "roster_step_s", skep_seconds(ring.by_index.slowest.ns));
	free(ring.worker);
}
