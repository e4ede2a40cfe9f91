/* SPDX-License-Identifier: Apache-2.0
 *
 * peers.c - the peers form of a topology: machines at home, each in a region that is drawn by the shares of a table.
 *
 * A place is a region. A peer's up and down are its region's; between two peers only these bind, and a message takes what the
 * table says from region to region. What is kept true: the same seed gives the same peers on every machine; a peer's region
 * depends neither on the kinds of GPUs nor on how many peers come after it; memory grows with peers + regions^2.
 */
#include "topologies/read/draft.h"

#include <stdio.h>
#include <string.h>

#include "core/random.h"
#include "topologies/read/regions.h"

#define PEERS_MAX SKEP_MACHINES_MAX

struct kinds { /* of GPUs */
	uint32_t gpu[SKEP_GPU_TYPES_MAX], count;
	double share[SKEP_GPU_TYPES_MAX];
};

/* `gpu: NAME`, or `gpus: [{gpu: NAME, share: 2}, ...]`. */
static void read_kinds(struct skep_draft *d, const struct skep_yaml_node *map, struct kinds *ret)
{
	const struct skep_yaml_node *list = skep_read_list(&d->r, map, "gpus", false);
	*ret = (struct kinds){.count = 1, .share[0] = 1};
	if (!list) {
		ret->gpu[0] = skep_draft_gpu(d, map);
		return;
	}
	if (skep_read_has(&d->r, map, "gpu"))
		skep_reader_fail(&d->r, map, "gpu", "either `gpu` or `gpus`, not both");
	ret->count = skep_yaml_length(list);
	if (ret->count == 0 || ret->count > SKEP_GPU_TYPES_MAX)
		skep_reader_fail(&d->r, list, NULL, "expected 1 to %u kinds of GPUs", SKEP_GPU_TYPES_MAX);
	for (uint32_t i = 0; i < ret->count && !d->r.diag->set; i++) {
		const struct skep_yaml_node *item = skep_read_map(&d->r, skep_yaml_item(list, i), NULL, true);
		ret->gpu[i] = skep_draft_gpu(d, item);
		ret->share[i] = skep_read_number(&d->r, item, "share", 1e-9, 1e9, 1);
		skep_reader_close_map(&d->r, item);
	}
}

static uint32_t draw(uint64_t *random, const double *weight, size_t stride, uint32_t count)
{
	double sum = 0, at = 0;
	for (uint32_t i = 0; i < count; i++)
		sum += weight[i * stride];
	double target = skep_random_unit(random) * sum;
	uint32_t last = 0;
	for (uint32_t i = 0; i < count; i++) {
		at += weight[i * stride];
		if (weight[i * stride] > 0)
			last = i;
		if (target < at)
			return last;
	}
	return last;
}

static void add_peers(struct skep_draft *d, const struct skep_regions *regions, const struct kinds *kinds,
	uint32_t count, uint64_t seed, double price_usd_per_h)
{
	struct skep_topology *t = d->topology;
	uint64_t random = skep_mix(seed);
	if (!skep_draft_reserve(d, count))
		return;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t region = draw(
			&random, &regions->region->share, sizeof *regions->region / sizeof(double), regions->count);
		uint32_t kind =
			draw(&random, kinds->share, 1, kinds->count); /* always, so that regions stay as they are */
		t->machine[t->machines++] = (struct skep_machine){.place = region,
			.gpu = kinds->gpu[kind],
			.up_Bps = regions->region[region].up_Bps,
			.down_Bps = regions->region[region].down_Bps,
			.host = t->gpu[kinds->gpu[kind]].board.cores > 0 ? ++t->hosts : 0,
			.price_usd_per_h = price_usd_per_h};
	}
}

static void add_regions(struct skep_draft *d, const struct skep_yaml_node *map, const struct skep_regions *regions)
{
	struct skep_topology *t = d->topology;
	skep_draft_add_places(d, regions->count);
	for (uint32_t i = 0; i < regions->count && !d->r.diag->set; i++)
		skep_draft_name_place(d, map, "regions", i, regions->region[i].name);
	for (size_t i = 0; i < (size_t)regions->count * regions->count && !d->r.diag->set; i++) {
		t->pair[i] = skep_pair_unlimited();
		t->pair[i].latency_s = regions->latency_s[i];
	}
}

static void find_directory(struct skep_draft *d, const struct skep_yaml_node *root, const struct skep_regions *regions)
{
	char known[200] = "";
	const char *name = skep_read_string(&d->r, root, "directory", NULL);
	if (d->r.diag->set)
		return;
	for (uint32_t i = 0; i < regions->count; i++) {
		size_t used = strlen(known);
		if (strcmp(regions->region[i].name, name) == 0) {
			d->directory_place = i;
			return;
		}
		if (used + strlen(regions->region[i].name) + 3 < sizeof known)
			snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", regions->region[i].name);
	}
	skep_reader_fail(&d->r, root, "directory", "no region '%.40s'; there are: %s", name, known);
}

void skep_draft_read_peers(struct skep_draft *d, const struct skep_yaml_node *root)
{
	struct kinds kinds;
	struct skep_regions regions = {0};
	struct skep_topology *t = d->topology;
	const struct skep_yaml_node *map = skep_read_map(&d->r, root, "peers", true);
	int64_t count = skep_read_integer(&d->r, map, "count", 1, PEERS_MAX, INT64_MIN);
	int64_t seed = skep_read_integer(&d->r, map, "seed", 0, INT64_MAX, 0);
	double price = skep_read_quantity(&d->r, map, "price", SKEP_PRICE, 0, 1e6, 0);
	const char *name = skep_read_string(&d->r, map, "regions", NULL);
	if (!d->r.diag->set)
		read_kinds(d, map, &kinds);
	skep_reader_close_map(&d->r, map);
	if (!d->r.diag->set &&
		!skep_read_find(&d->r, map, "regions", d->path, name, t->matrix_path[0], sizeof t->matrix_path[0]))
		skep_reader_fail(&d->r, map, "regions",
			"no file '%.200s' in the folder of this topology, here, or in a folder above that", name);
	if (!d->r.diag->set && skep_regions_read(t->matrix_path[0], &regions, d->r.diag)) {
		add_regions(d, map, &regions);
		find_directory(d, root, &regions);
	}
	if (!d->r.diag->set)
		add_peers(d, &regions, &kinds, (uint32_t)count, (uint64_t)seed, price);
	skep_regions_finish(&regions);
}
