/* SPDX-License-Identifier: Apache-2.0
 *
 * gpus.c - see groups.h. A kind of GPU is named as the topology names it, by the file of its profile; all that are made from that
 * profile, whatever their own `speed`, are so many times as fast as the topology says.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "scenarios/read/groups.h"

#define SPEED_LEAST 0.001 /* as in topologies */
#define SPEED_MOST 1000.0

/* "t4" of "topologies/gpus/t4.yaml": its begin, and how long it is. */
static const char *profile_of(const struct skep_gpu *gpu, size_t *ret_length)
{
	const char *slash = strrchr(gpu->path, '/'), *begin = slash ? slash + 1 : gpu->path, *dot = strrchr(begin, '.');
	*ret_length = dot ? (size_t)(dot - begin) : strlen(begin);
	return begin;
}

static bool is_made_from(const struct skep_gpu *gpu, const char *name)
{
	size_t length;
	const char *profile = profile_of(gpu, &length);
	return strlen(name) == length && memcmp(profile, name, length) == 0;
}

static void fail_unknown(
	struct skep_reader *r, const struct skep_yaml_node *map, const char *name, const struct skep_topology *t)
{
	char known[200] = "";
	for (uint32_t i = 0; i < t->gpus; i++) {
		size_t length, used = strlen(known);
		const char *profile = profile_of(&t->gpu[i], &length);
		bool before = false;
		for (uint32_t j = 0; j < i; j++) {
			size_t other;
			const char *earlier = profile_of(&t->gpu[j], &other);
			before = before || (other == length && memcmp(earlier, profile, length) == 0);
		}
		if (!before && used + length + 3 < sizeof known)
			snprintf(known + used, sizeof known - used, "%s%.*s", used ? ", " : "", (int)length, profile);
	}
	skep_reader_fail(r, map, NULL, "cluster.gpus: no machine of topology %.60s has a `%.40s`; there are: %s",
		t->name, name, known);
}

static void read_gpu(struct skep_reader *r, const struct skep_yaml_node *map, const char *name, struct skep_topology *t)
{
	double speed = skep_read_number(r, map, "speed", SPEED_LEAST, SPEED_MOST, NAN);
	bool found = false;
	skep_reader_close_map(r, map);
	for (uint32_t i = 0; !r->diag->set && i < t->gpus; i++) {
		if (!is_made_from(&t->gpu[i], name))
			continue;
		found = true;
		if (speed < 1 || speed > 1)
			skep_gpu_scale(&t->gpu[i], speed);
	}
	if (!r->diag->set && !found)
		fail_unknown(r, map, name, t);
}

void skep_gpus_read(struct skep_reader *r, const struct skep_yaml_node *cluster, const struct skep_model *model,
	struct skep_topology *t)
{
	const struct skep_yaml_node *map = skep_read_map(r, cluster, "gpus", false), *gpu;
	const char *name;
	if (!r->diag->set && map && model->kind == SKEP_MODEL_GIVEN)
		skep_reader_fail(r, cluster, "gpus",
			"cluster.gpus: the file of %.60s gives the times of its passes, on any GPU: leave it out",
			model->name);
	for (uint32_t i = 0; !r->diag->set && (gpu = skep_read_entry(r, map, i, &name)) != NULL; i++)
		read_gpu(r, skep_read_map(r, gpu, NULL, true), name, t);
	skep_reader_close_map(r, map);
}
