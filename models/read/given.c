/* SPDX-License-Identifier: Apache-2.0
 *
 * given.c - reads a model that is a list of layers with the figures of one microbatch: what leaves a layer, what it keeps for the
 * backward pass, and how long its passes and its optimizer step take.
 *
 * Keeps true: figures are of microbatches of given_samples samples; what leaves a layer is a whole number of fp32 elements a
 * sample, so that width[] holds it; all layers say how long a step takes, or none does.
 */
#include "models/read/given.h"

#include <math.h>
#include <stdlib.h>

#include "base/units.h"

#define LAYERS_MAX 4096u
#define SECONDS_MAX SKEP_DAY_S

static uint64_t read_ns(struct skep_reader *r, const struct skep_yaml_node *map, const char *key, double usual_s)
{
	double seconds = skep_read_quantity(r, map, key, SKEP_TIME, 1e-9, SECONDS_MAX, usual_s);
	return r->diag->set ? 0 : (uint64_t)(1e9 * seconds + 0.5);
}

/* Elements of fp32 for each sample. */
static uint32_t read_leaving(struct skep_reader *r, const struct skep_yaml_node *map, uint32_t samples, bool last)
{
	double unit = (double)(sizeof(float) * samples);
	double bytes =
		skep_read_quantity(r, map, "activations", SKEP_BYTES, unit, unit * UINT32_MAX, last ? unit : NAN);
	if (!r->diag->set && fmod(bytes, unit) > 0)
		skep_reader_fail(r, map, "activations",
			"%.0f bytes are no whole number of fp32 elements for each of %u samples: expected a multiple of %.0f",
			bytes, samples, unit);
	return r->diag->set ? 0 : (uint32_t)(bytes / unit);
}

static struct skep_given read_layer(struct skep_reader *r, const struct skep_yaml_node *map, uint32_t samples)
{
	struct skep_given given = {
		.parameters = (uint64_t)skep_read_integer(r, map, "parameters", 1, INT64_C(1) << 44, INT64_MIN)};
	given.kept_bytes = (uint64_t)ceil(skep_read_quantity(r, map, "kept", SKEP_BYTES, 0, 1e15, 0) / samples);
	given.forward_ns = read_ns(r, map, "forward", NAN);
	given.backward_ns = read_ns(r, map, "backward", 2e-9 * (double)given.forward_ns);
	given.step_ns = skep_read_has(r, map, "step") ? read_ns(r, map, "step", NAN) : 0;
	return given;
}

/* One entry of the list: `count` equal layers. */
static void add_layers(struct skep_reader *r, const struct skep_yaml_node *map, bool last, struct skep_model *ret)
{
	uint32_t count = (uint32_t)skep_read_integer(r, map, "count", 1, LAYERS_MAX, 1);
	struct skep_given given = read_layer(r, map, ret->given_samples);
	uint32_t leaving = read_leaving(r, map, ret->given_samples, last && count == 1);
	skep_reader_close_map(r, map);
	if (!r->diag->set && ret->layers > 0 && (given.step_ns > 0) != (ret->given[0].step_ns > 0))
		skep_reader_fail(r, map, "step", "either each layer has a `step`, or none");
	if (!r->diag->set && count > LAYERS_MAX - ret->layers)
		skep_reader_fail(r, map, "count", "more than %u layers", LAYERS_MAX);
	for (uint32_t i = 0; i < count && !r->diag->set; i++) {
		ret->given[ret->layers++] = given;
		ret->width[ret->layers] = leaving;
	}
}

void skep_given_read(struct skep_reader *r, const struct skep_yaml_node *root, struct skep_model *ret)
{
	const struct skep_yaml_node *map = skep_read_map(r, root, "given", true);
	ret->given_samples = (uint32_t)skep_read_integer(r, map, "microbatch", 1, 1 << 20, 1);
	const struct skep_yaml_node *list = skep_read_list(r, map, "layers", true);
	skep_reader_close_map(r, map);
	if (r->diag->set)
		return;
	uint32_t entries = skep_yaml_length(list);
	ret->given = calloc(LAYERS_MAX, sizeof *ret->given);
	ret->width = calloc(LAYERS_MAX + 1, sizeof *ret->width);
	if (!ret->given || !ret->width)
		skep_reader_fail(r, map, "layers", "not enough memory for %u layers", LAYERS_MAX);
	else if (entries == 0)
		skep_reader_fail(r, map, "layers", "expected a list of at least one layer");
	if (!r->diag->set)
		ret->width[0] = 1;
	for (uint32_t i = 0; i < entries && !r->diag->set; i++) {
		const struct skep_yaml_node *layer = skep_yaml_item(list, i);
		if (skep_yaml_kind(layer) == SKEP_YAML_MAP)
			add_layers(r, layer, i + 1 == entries, ret);
		else
			skep_reader_fail(
				r, layer, NULL, "expected a layer as {parameters, activations, forward, backward}");
	}
}

void skep_given_check(
	struct skep_reader *r, const struct skep_yaml_node *map, const struct skep_model *model, uint32_t samples)
{
	if (!r->diag->set && model->kind == SKEP_MODEL_GIVEN && samples != model->given_samples)
		skep_reader_fail(r, map, "microbatch",
			"schedule.microbatch: the figures of %.60s are of microbatches of %u: take that, or give those of %u "
			"(given.microbatch of its file)",
			model->name, model->given_samples, samples);
}
