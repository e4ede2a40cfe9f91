/* SPDX-License-Identifier: Apache-2.0
 *
 * describe_uncertain.c - see describe_groups.h. Which figures of links and machines may be off, how many of each, and by how
 * much.
 */
#include "scenarios/describe/describe_groups.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>

#include "base/layout.h"
#include "topologies/read/uncertain.h"

enum figure { BANDWIDTH, LATENCY, UP, DOWN, PRICE, FIGURES };

static const struct {
	const char *name, *of;
} figures[FIGURES] = {
	{"bandwidth", "link"}, {"latency", "link"}, {"up", "machine"}, {"down", "machine"}, {"price", "machine"}};

struct off { /* links are ordered pairs of places */
	uint32_t count;
	double least, most; /* deviations */
};

static void add(struct off *off, double deviation)
{
	assert(deviation >= 0 && deviation <= 1);
	if (deviation <= 0)
		return;
	off->least = off->count > 0 ? fmin(off->least, deviation) : deviation;
	off->most = fmax(off->most, deviation);
	off->count++;
}

static void sum_up(const struct skep_topology *t, struct off ret[FIGURES])
{
	for (size_t i = 0; t->unsure != NULL && i < (size_t)t->places * t->places; i++) {
		add(&ret[BANDWIDTH], t->unsure[i].bandwidth.deviation);
		add(&ret[LATENCY], t->unsure[i].latency.deviation);
	}
	for (uint32_t i = 0; i < t->machines; i++) {
		assert(t->machine[i].unsure <= t->unsure_groups);
		if (t->machine[i].unsure == 0)
			continue;
		const struct skep_unsure_group *unsure = &t->unsure_group[t->machine[i].unsure - 1];
		add(&ret[UP], unsure->up);
		add(&ret[DOWN], unsure->down);
		add(&ret[PRICE], unsure->price);
	}
}

void skep_uncertain_describe(const struct skep_scenario *s, FILE *out)
{
	struct off off[FIGURES] = {{0}};
	const char *lead = "";
	if (!s->draws_links && !skep_topology_uncertain(&s->topology))
		return;
	sum_up(&s->topology, off);
	fprintf(out, "  uncertain ");
	for (int i = 0; i < FIGURES; i++) {
		if (off[i].count == 0)
			continue;
		fprintf(out, "%s%s of %" PRIu32 " %s%s, ", lead, figures[i].name, off[i].count, figures[i].of,
			skep_plural(off[i].count));
		if (off[i].most > off[i].least)
			fprintf(out, "%.3g to ", 100 * off[i].least);
		fprintf(out, "%.3g %%", 100 * off[i].most);
		lead = "; ";
	}
	if (lead[0] == '\0')
		fprintf(out, "nothing that the topology says");
	fprintf(out, "\n            here all figures are as stated; %s\n",
		s->draws_links ? "the seed of a simulated run draws them"
			       : "with `cluster.uncertainty: drawn` the seed of a simulated run draws them");
}

void skep_uncertain_describe_json(const struct skep_scenario *s, cJSON *root)
{
	struct off off[FIGURES] = {{0}};
	bool any = s->draws_links || skep_topology_uncertain(&s->topology);
	cJSON *object = skep_json_add_object(root, "uncertain_figures", any);
	if (!any)
		return;
	sum_up(&s->topology, off);
	cJSON_AddBoolToObject(object, "drawn", s->draws_links);
	for (int i = 0; i < FIGURES; i++) {
		if (off[i].count == 0)
			continue;
		cJSON *figure = cJSON_AddObjectToObject(object, figures[i].name);
		cJSON_AddNumberToObject(figure, "count", off[i].count);
		cJSON_AddNumberToObject(figure, "deviation_least", off[i].least);
		cJSON_AddNumberToObject(figure, "deviation_most", off[i].most);
	}
}
