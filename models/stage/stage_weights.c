/* SPDX-License-Identifier: Apache-2.0
 *
 * stage_weights.c - see stage_weights.h. A stage is filled from whole files of weights, and whole files are made of all
 * stages, whatever the cut: so a model that was trained in four stages can be trained further in two.
 */
#include "models/stage/stage_weights.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files/outputs.h"
#include "models/checkpoint/checkpoint_folder.h"
#include "models/read/hf_config.h"
#include "models/tensor/runs.h"
#include "models/weights/hf_weights.h"

enum { PATH_BYTES = 4096 };

#define fail(file, ...) (skep_diag_set(reterr, file, 0, 0, NULL, __VA_ARGS__), false)

/* ---- in ----------------------------------------------------------------------------------------------------- */

struct skep_safetensors *skep_model_weights_open(
	const struct skep_model *model, const char *path, char **ret_list, struct skep_diag *reterr)
{
	struct skep_weight *weight = NULL;
	struct skep_weight_names names = skep_hf_names(model);
	struct skep_safetensors *set = skep_safetensors_open(path, reterr);
	uint32_t weights = set != NULL ? skep_hf_model_weights(model, &weight) : 0;
	*ret_list = NULL;
	if (set != NULL && weights == 0)
		skep_diag_set(reterr, path, 0, 0, NULL, "not enough memory");
	if (weights > 0)
		skep_weights_match(set, weight, weights, &names, ret_list, reterr);
	free(weight);
	if (!reterr->set)
		return set;
	skep_safetensors_close(set);
	return NULL;
}

/* The newest parameters of the stage, as files name them; ret NULL: only how many. */
static uint32_t list_weights(const struct skep_stage *stage, struct skep_weight *ret)
{
	uint32_t count = 0;
	for (uint32_t l = 0; l < stage->layers; l++) {
		const struct skep_layer *layer = &stage->layer[l];
		count += skep_hf_layer_weights(layer->model, layer->number,
			skep_stage_parameters(stage, stage->version) + layer->parameter,
			ret != NULL ? ret + count : NULL);
	}
	return count;
}

bool skep_stage_load_weights(const struct skep_training *training, struct skep_stage *stage)
{
	if (training->weights == NULL)
		return true;
	struct skep_weight_names names = skep_hf_names(training->model);
	uint32_t weights = list_weights(stage, NULL);
	struct skep_weight *weight = calloc(weights, sizeof *weight);
	if (weight == NULL)
		return false;
	list_weights(stage, weight);
	skep_weights_read(training->weights, weight, weights, &names);
	free(weight);
	if (stage->inner)
		skep_stage_follow(stage, 0, 0, stage->parameters);
	return true;
}

bool skep_stage_begin(const struct skep_training *training, struct skep_thread_pool *thread_pool, uint32_t index,
	struct skep_stage *ret)
{
	if (!skep_stage_init_for(training, thread_pool, index, ret))
		return false;
	if (skep_stage_load_weights(training, ret))
		return true;
	skep_stage_finish(ret);
	return false;
}

/* ---- out ---------------------------------------------------------------------------------------------------- */

/* The stage as part `part` of the checkpoint has it. */
static bool load_part(const struct skep_training *training, struct skep_checkpoint_folder *kept, uint32_t version,
	uint32_t index, uint32_t part, struct skep_stage *ret, struct skep_diag *reterr)
{
	struct skep_keeper keeper = skep_checkpoint_keeper(kept);
	const char *folder = kept->path;
	if (!skep_stage_init(training, index, ret))
		return fail(folder, "not enough memory for stage %u", index);
	skep_stage_name_shard(ret, training->plan, 0, skep_plan_shards(training->plan, index));
	uint64_t bytes = skep_stage_kept_bytes(ret);
	void *state = malloc(bytes);
	bool good = state != NULL;
	if (!good)
		skep_diag_set(reterr, folder, 0, 0, NULL, "not enough memory for stage %u", index);
	good = good && keeper.read(keeper.context, part, version, state, bytes, reterr);
	good = good && (skep_stage_take_up(ret, version, state, bytes) ||
			       fail(folder, "the checkpoint of stage %u is of another model or optimizer", index));
	free(state);
	return good;
}

/* Puts the layers of the shard of rank `nth` into those of the whole stage. */
static bool put_shard(const struct skep_export *options, struct skep_checkpoint_folder *kept, uint32_t version,
	uint32_t nth, struct skep_stage *stage, struct skep_diag *reterr)
{
	const struct skep_training *training = options->shard[nth];
	uint32_t part = skep_plan_part(training->plan, stage->index, 0) * options->shards + nth;
	struct skep_stage shard = {0};
	bool good = load_part(training, kept, version, stage->index, part, &shard, reterr);
	for (uint32_t l = 0; good && l < stage->layers; l++)
		skep_layer_put_shard(&shard.layer[l], skep_stage_parameters(&shard, version) + shard.layer[l].parameter,
			skep_stage_parameters(stage, version) + stage->layer[l].parameter);
	stage->version = version;
	skep_stage_finish(&shard);
	return good;
}

/* The stage as the checkpoint has it. */
static bool load_stage(const struct skep_training *training, const struct skep_export *options,
	struct skep_checkpoint_folder *kept, uint32_t version, uint32_t index, struct skep_stage *ret,
	struct skep_diag *reterr)
{
	if (options->shards == 0)
		return load_part(training, kept, version, index, skep_plan_part(training->plan, index, 0), ret, reterr);
	if (!skep_stage_init(training, index, ret))
		return fail(kept->path, "not enough memory for stage %u", index);
	bool good = true;
	for (uint32_t nth = 0; good && nth < options->shards; nth++)
		good = put_shard(options, kept, version, nth, ret, reterr);
	return good;
}

static bool write_config(const struct skep_model *model, const char *folder, struct skep_diag *reterr)
{
	char path[PATH_BYTES];
	struct skep_outputs outputs = {.diag = reterr};
	struct skep_hf_config config = skep_hf_config_of(model);
	char *text = skep_hf_config_print(&config);
	snprintf(path, sizeof path, "%s/config.json", folder);
	FILE *file = text != NULL ? skep_outputs_begin(&outputs, path) : NULL;
	if (file != NULL)
		fprintf(file, "%s\n", text);
	else
		skep_diag_set(reterr, path, 0, 0, NULL, "cannot be written: not enough memory");
	free(text);
	return skep_outputs_commit(&outputs);
}

/* If there are many, the last ones. */
static void list_steps(const struct skep_checkpoints *list, const struct skep_plan *plan, char *ret, size_t size)
{
	enum { MOST = 10 };
	uint32_t first = list->versions > MOST ? list->versions - MOST : 0;
	int at = snprintf(ret, size, "step%s%s", list->versions == 1 ? "" : "s", first > 0 ? " ..." : "");
	for (uint32_t v = first; v < list->versions; v++)
		at += snprintf(ret + at, size - (size_t)at, "%s %" PRIu64, v > first ? "," : "",
			skep_plan_steps_before(plan, list->version[v]));
}

/* The place in the list of the version that is asked for. */
static bool choose_version(const struct skep_checkpoints *list, const struct skep_plan *plan,
	const struct skep_export *options, uint32_t *ret, struct skep_diag *reterr)
{
	char there[512];
	uint32_t stages = plan->stages;
	if (options->step == 0 && list->damaged[0] != '\0')
		return fail(list->damaged, "no checkpoint: it is damaged; remove it");
	if (list->versions == 0) {
		skep_checkpoints_say_none(list, stages, there, sizeof there);
		return fail(options->from, "%s%s", there,
			list->foreign > 0 && options->differs != NULL ? options->differs : "");
	}
	*ret = list->versions - 1;
	while (options->step > 0 && skep_plan_steps_before(plan, list->version[*ret]) != options->step)
		if ((*ret)-- == 0) {
			list_steps(list, plan, there, sizeof there);
			return fail(options->from, "has no checkpoint of all %u stages of step %" PRIu64 ", but of %s",
				stages, options->step, there);
		}
	return true;
}

static bool choose(const struct skep_export *options, const struct skep_plan *plan,
	struct skep_checkpoint_folder *ret_from, uint32_t *ret_version, struct skep_diag *reterr)
{
	struct skep_checkpoints list;
	uint32_t at = 0;
	uint32_t parts = skep_plan_parts(plan) * (options->shards > 0 ? options->shards : 1);
	if (!skep_checkpoints_find(options->from, options->job, parts, &list))
		return fail(options->from, "not enough memory");
	bool good = choose_version(&list, plan, options, &at, reterr);
	*ret_from = (struct skep_checkpoint_folder){.path = options->from, .job = options->job, .run = list.run};
	*ret_version = good ? list.version[at] : 0;
	skep_checkpoints_finish(&list);
	return good;
}

static bool write_stages(const struct skep_stage *stage, uint32_t stages, const struct skep_export *options,
	struct skep_export_facts *ret, struct skep_diag *reterr)
{
	char path[PATH_BYTES], steps[32];
	for (uint32_t s = 0; s < stages; s++) {
		ret->weights += list_weights(&stage[s], NULL);
		ret->parameters += stage[s].parameters;
	}
	struct skep_weight *weight = calloc(ret->weights, sizeof *weight);
	if (weight == NULL)
		return fail(options->to, "not enough memory");
	uint32_t at = 0;
	for (uint32_t s = 0; s < stages; s++)
		at += list_weights(&stage[s], weight + at);
	uint64_t copied = skep_model_copied(stage[0].layer[0].model);
	at -= copied > 0; /* the last one is the first once more */
	ret->weights = at;
	ret->parameters -= copied;
	snprintf(path, sizeof path, "%s/model.safetensors", options->to);
	snprintf(steps, sizeof steps, "%" PRIu64, ret->step);
	const char *const text[] = {"scenario", options->name, "steps", steps};
	struct skep_safetensors_target target = {
		.path = path, .dtype = options->dtype, .shard_bytes = options->shard_bytes, .text = text, .texts = 2};
	bool good = skep_safetensors_write(&target, weight, at, reterr) &&
	            write_config(stage[0].layer[0].model, options->to, reterr);
	free(weight);
	return good;
}

bool skep_export_weights(const struct skep_training *training, const struct skep_export *options,
	struct skep_export_facts *ret, struct skep_diag *reterr)
{
	uint32_t stages = training->plan->stages, made = 0, version = 0;
	struct skep_checkpoint_folder from;
	*ret = (struct skep_export_facts){0};
	assert(training->model->architecture != SKEP_ARCHITECTURE_NONE);
	if (strlen(options->to) + 64 > PATH_BYTES)
		return fail("", "the name of the folder is too long");
	if (!choose(options, training->plan, &from, &version, reterr))
		return false;
	ret->step = skep_plan_steps_before(training->plan, version);
	if (mkdir(options->to, 0777) != 0 && errno != EEXIST)
		return fail(options->to, "cannot be made: %s", strerror(errno));
	struct skep_stage *stage = calloc(stages, sizeof *stage);
	if (stage == NULL)
		return fail(options->to, "not enough memory");
	bool good = true;
	while (good && made < stages) {
		good = load_stage(training, options, &from, version, made, &stage[made], reterr);
		made++;
	}
	good = good && write_stages(stage, stages, options, ret, reterr);
	while (made > 0)
		skep_stage_finish(&stage[--made]);
	free(stage);
	return good;
}
