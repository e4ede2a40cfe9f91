/* SPDX-License-Identifier: Apache-2.0
 *
 * experts.c - see experts.h. Without a word on it the weights of a token's experts are renormalized as soon as there are two,
 * as in Mixtral; of one they cannot be, or no gradient of the loss would reach the router (Switch).
 */
#include "models/read/experts.h"

#define FACTOR_MAX 1e6
#define COEFFICIENT_MAX 1e3

static void read_experts(struct skep_reader *r, const struct skep_yaml_node *map, struct skep_experts *ret)
{
	ret->count = (uint32_t)skep_read_integer(r, map, "count", 1, SKEP_EXPERTS_MAX, INT64_MIN);
	ret->per_token = (uint32_t)skep_read_integer(r, map, "per_token", 1, SKEP_EXPERTS_MAX, INT64_MIN);
	ret->renormalized = skep_read_bool(r, map, "renormalize", ret->per_token > 1);
	ret->capacity_factor = skep_read_number(r, map, "capacity_factor", 1e-3, FACTOR_MAX, 0);
	ret->aux_loss = skep_read_number(r, map, "aux_loss", 0, COEFFICIENT_MAX, 0);
	ret->z_loss = skep_read_number(r, map, "z_loss", 0, COEFFICIENT_MAX, 0);
	skep_reader_close_map(r, map);
	if (r->diag->set)
		return;
	if (ret->per_token > ret->count)
		skep_reader_fail(r, map, "per_token",
			"a token cannot go to %u experts where there are %u: expected 1 to %u", ret->per_token,
			ret->count, ret->count);
	else if (ret->renormalized && ret->per_token == 1)
		skep_reader_fail(r, map, "renormalize",
			"the weight of a token's only expert would always be 1, and the router would not learn from the "
			"loss: leave it out, or take more experts per token");
}

void skep_experts_read(struct skep_reader *r, const struct skep_yaml_node *map, struct skep_model *ret)
{
	const struct skep_yaml_node *experts = skep_read_map(r, map, "experts", false);
	if (!experts || r->diag->set)
		return;
	if (ret->architecture != SKEP_ARCHITECTURE_LLAMA)
		skep_reader_fail(r, map, "experts",
			"experts are SwiGLUs, as in `architecture: llama`: take that, or leave them out");
	else
		read_experts(r, experts, &ret->experts);
}
