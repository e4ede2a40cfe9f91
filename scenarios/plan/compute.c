/* SPDX-License-Identifier: Apache-2.0
 *
 * compute.c - reads which predictor a scenario wants, and adds up a stage: its layers as they were measured, or as a law of
 * whole layers has them, or as products and the rest that is bound by memory.
 *
 * Backward is what was measured, or a law fitted to backward passes, or twice the forward pass (once where the model's
 * FLOPs say so: the inputs of a first layer want no gradient). A stage that was measured as a whole (stage_table.h) takes that.
 * The first stage of a transformer has the embedding too where one was measured, and a stage with neighbours its edges to
 * them. Tensors of a 2-byte type move half of the bytes that docs/models.md counts in 4.
 */
#include "scenarios/plan/compute.h"

#include <stdlib.h>
#include <string.h>

#include "core/random.h"
#include "scenarios/plan/plan.h"
#include "scenarios/plan/split.h"
#include "scenarios/read/scenario.h"
#include "topologies/gpu/uncertainty.h"

static void add(struct skep_compute_time *time, enum skep_time_origin origin, double seconds)
{
	time->ns[origin] += 1e9 * seconds;
}

static void add_times(struct skep_compute_time *time, const struct skep_compute_time *other, double factor)
{
	for (int i = 0; i < SKEP_TIME_ORIGINS; i++)
		time->ns[i] += factor * other->ns[i];
}

double skep_compute_sum(const struct skep_compute_time *time)
{
	double sum = 0;
	for (int i = 0; i < SKEP_TIME_ORIGINS; i++)
		sum += time->ns[i];
	return sum;
}

bool skep_compute_outside(const struct skep_compute_stage *s)
{
	return s->forward.ns[SKEP_TIME_FITTED] + s->forward.ns[SKEP_TIME_ASSUMED] + s->backward.ns[SKEP_TIME_FITTED] +
	               s->backward.ns[SKEP_TIME_ASSUMED] >
	       0;
}

/* What a layer of a scenario has of the FLOPs that its backward pass has where all is trained, as what is measured or by a law
 * of whole layers has. */
static double part_trained(const struct skep_model *model, uint32_t l)
{
	struct skep_layer_products as_is, whole;
	struct skep_model thawed = *model;
	thawed.frozen = 0;
	if (model->frozen == 0)
		return 1;
	skep_model_products(model, l, 1, &as_is);
	skep_model_products(&thawed, l, 1, &whole);
	return as_is.backward / whole.backward;
}

/* A layer of a measured model, `repeats` times, and `part` of its backward pass. Updates of layers that share parameters are one
 * update. */
static bool add_measured(const struct skep_predictor *p, const struct skep_compute_task *task,
	enum skep_layer_kind kind, uint32_t repeats, double part, struct skep_compute_stage *ret)
{
	enum skep_time_origin origin[SKEP_COLUMNS];
	double seconds[SKEP_COLUMNS];
	for (int c = SKEP_COLUMN_FORWARD; c <= SKEP_COLUMN_BACKWARD; c++)
		if (!skep_predictor_layer(p, task->model->name, kind, 1, task->samples, (enum skep_gpu_column)c,
			    &seconds[c], &origin[c]))
			return false;
	const bool tied = kind == SKEP_LAYER_HEAD && task->model->tied; /* its table is the embedding's */
	add(&ret->forward, origin[0], repeats * seconds[0]);
	add(&ret->backward, origin[1], part * repeats * seconds[1]);
	if (tied || part == 0 || (kind == SKEP_LAYER_HEAD && skep_model_table_is_frozen(task->model)))
		return true;
	if (skep_predictor_layer(
		    p, task->model->name, kind, 1, task->samples, SKEP_COLUMN_UPDATE, &seconds[2], &origin[2]))
		add(&ret->step, origin[2], seconds[2]);
	else
		ret->step_known = false;
	return true;
}

static void add_by_law(const struct skep_predictor *p, const struct skep_layer_products *layer, double part,
	struct skep_compute_stage *ret)
{
	enum skep_time_origin origin;
	double bytes = sizeof(float) * (layer->parameters + layer->numbers + layer->matrix_numbers);
	double forward_s = skep_predictor_model_s(p, SKEP_COLUMN_FORWARD, layer->flop, bytes, &origin);
	add(&ret->forward, origin, layer->repeats * forward_s);
	double backward_s = skep_predictor_model_s(p, SKEP_COLUMN_BACKWARD, layer->flop, bytes, &origin);
	add(&ret->backward, origin, part * layer->repeats * backward_s);
}

static void add_products(
	const struct skep_predictor *p, const struct skep_layer_products *layer, struct skep_compute_stage *ret)
{
	struct skep_compute_time products = {0}, other = {0};
	for (uint32_t i = 0; i < layer->products; i++) {
		struct skep_product product = {
			layer->product[i].batch, layer->product[i].m, layer->product[i].k, layer->product[i].n};
		enum skep_time_origin origin;
		double seconds = skep_predictor_product_s(p, &product, &origin);
		add(&products, origin, layer->repeats * seconds);
	}
	add(&other, SKEP_TIME_MEMORY,
		layer->repeats * layer->other_numbers * skep_type_bytes(p->type) / p->gpu->memory_Bps);
	add_times(&ret->forward, &products, 1);
	add_times(&ret->forward, &other, 1);
	add_times(&ret->backward, &products, layer->backward);
	add_times(&ret->backward, &other, layer->backward > 0 ? 2 : 0);
}

static enum skep_layer_kind kind_of(const struct skep_model *model, uint32_t layer)
{
	const bool embeds = model->architecture != SKEP_ARCHITECTURE_NONE; /* the embedding is a layer of its own */
	return layer + 1 == model->layers ? SKEP_LAYER_HEAD
	       : embeds && layer == 0     ? SKEP_LAYER_EMBEDDING
	                                  : SKEP_LAYER_BLOCK;
}

/* Launches and framework are in measured layers already, and in laws fitted to such. Both are of one GPU: what several share is
 * its products, of the shapes that each has. */
static void add_layer(const struct skep_predictor *p, const struct skep_compute_task *task, uint32_t l,
	struct skep_compute_stage *ret, double *ret_overhead_s)
{
	struct skep_layer_products layer;
	bool transformer = task->model->kind == SKEP_MODEL_TRANSFORMER;
	enum skep_layer_kind kind = kind_of(task->model, l);
	const double part = part_trained(task->model, l);
	skep_model_share_products(task->model, l, task->samples, &task->split, &layer);
	if (transformer && task->split.gpus == 1 && add_measured(p, task, kind, layer.repeats, part, ret)) {
		if (l == 0 && kind != SKEP_LAYER_EMBEDDING)
			add_measured(p, task, SKEP_LAYER_EMBEDDING, 1, part, ret);
		return;
	}
	ret->backward_measured = ret->step_known = false;
	if (task->split.gpus == 1 && skep_predictor_by_layer(p, task->model->name)) {
		add_by_law(p, &layer, part, ret);
	} else {
		add_products(p, &layer, ret);
		*ret_overhead_s = p->gpu->overhead_s;
	}
}

/* What the stage receives from the one before it and sends to the one behind it, where that was measured with its layers. */
static void add_edges(
	const struct skep_predictor *p, const struct skep_compute_task *task, struct skep_compute_stage *ret)
{
	const uint32_t edges = (task->first_layer > 0) + (task->first_layer + task->layers < task->model->layers);
	struct skep_compute_time *const time[] = {&ret->forward, &ret->backward, &ret->step};
	for (int c = SKEP_COLUMN_FORWARD; c < SKEP_COLUMNS; c++) {
		enum skep_time_origin origin;
		double seconds;
		if (task->split.gpus == 1 && skep_predictor_layer(p, task->model->name, SKEP_LAYER_EDGE, 1,
						     task->samples, (enum skep_gpu_column)c, &seconds, &origin))
			add(time[c], origin, edges * seconds);
	}
}

void skep_compute_time(
	const struct skep_predictor *p, const struct skep_compute_task *task, struct skep_compute_stage *ret)
{
	struct skep_compute_stage once = {.backward_measured = true, .step_known = true};
	double overhead_s = 0;
	for (uint32_t l = task->first_layer; l < task->first_layer + task->layers; l++)
		add_layer(p, task, l, &once, &overhead_s);
	if (task->recompute)
		add_times(&once.backward, &once.forward, 1);
	add_edges(p, task, &once); /* what is recomputed is received once, and sent nowhere */
	add(&once.forward, SKEP_TIME_MEMORY, task->extra_forward_bytes / p->gpu->memory_Bps);
	add(&once.backward, SKEP_TIME_MEMORY, task->extra_backward_bytes / p->gpu->memory_Bps);
	*ret = (struct skep_compute_stage){.backward_measured = once.backward_measured, .step_known = once.step_known};
	add_times(&ret->forward, &once.forward, task->scale);
	add_times(&ret->backward, &once.backward, task->scale);
	if (ret->step_known)
		add_times(&ret->step, &once.step, task->scale);
	add(&ret->forward, SKEP_TIME_MEMORY, overhead_s);
	add(&ret->backward, SKEP_TIME_MEMORY, overhead_s);
}

uint64_t skep_compute_noisy_ns(double noise, uint64_t seed, uint32_t worker, const struct skep_op *op, uint64_t ns)
{
	if (noise <= 0)
		return ns;
	uint64_t state = skep_mix(seed ^ 0x6e6f697365u);
	state = skep_mix(state ^ ((uint64_t)worker << 32 | (uint64_t)op->kind << 16 | op->stage));
	state = skep_mix(state ^ ((uint64_t)op->round << 32 | op->number));
	uint64_t sum = 0; /* of twelve numbers below 2^32: mean 6, deviation 1, in units of 2^32 */
	for (int i = 0; i < 12; i++)
		sum += skep_random_next(&state) >> 32;
	double deviations = (double)sum * 0x1p-32 - 6;
	double noisy = (double)ns * (1 + noise * deviations);
	return noisy < 1 ? 1 : (uint64_t)(noisy + 0.5);
}

/* ---- for a scenario ---------------------------------------------------------------------------------------------- */

void skep_compute_read(struct skep_reader *r, const struct skep_yaml_node *cluster, struct skep_compute *ret)
{
	static const char *const outsides[] = {"fit", "refuse", NULL}, *const uncertain[] = {"ignored", "drawn", NULL};
	const struct skep_yaml_node *map = skep_read_map(r, cluster, "compute", false);
	*ret = (struct skep_compute){.mixed = true};
	if (!map)
		return;
	ret->predictor = (enum skep_predictor_kind)skep_read_choice(
		r, map, "predictor", skep_predictor_names, SKEP_PREDICTOR_ROOFLINE);
	ret->noise = skep_read_number(r, map, "noise", 0, SKEP_COMPUTE_NOISE_MAX, 0);
	ret->uncertain = skep_read_choice(r, map, "uncertainty", uncertain, 0) == 1;
	ret->type_said = skep_read_has(r, map, "type");
	ret->type = (enum skep_type)skep_read_choice(r, map, "type", skep_type_names, SKEP_TYPE_FP32);
	ret->mixed = skep_read_bool(r, map, "mixed", !ret->type_said);
	if (ret->predictor == SKEP_PREDICTOR_TABLE)
		ret->refuse_outside = skep_read_choice(r, map, "outside", outsides, 0) == 1;
	else if (skep_read_has(r, map, "outside"))
		skep_reader_fail(r, map, "outside",
			"cluster.compute.outside: asks what to do outside of a table: take `predictor: table`, or "
			"leave it out");
	skep_reader_close_map(r, map);
}

/* A type that a GPU does not have is a fault of the scenario; a wrong table is shown where it is wrong. */
static void fail_predictor(
	struct skep_reader *r, const struct skep_yaml_node *map, const struct skep_gpu *gpu, struct skep_diag *diag)
{
	bool has_type = skep_read_has(r, map, "type");
	if (diag->line == 0 && strcmp(diag->file, gpu->path) == 0)
		skep_reader_fail(r, map, has_type ? "type" : NULL, "cluster.compute.type: %s", diag->message);
	else
		*r->diag = *diag;
}

static bool is_half(enum skep_type type)
{
	return type == SKEP_TYPE_FP16 || type == SKEP_TYPE_BF16;
}

/* Tensors that no codec makes smaller have the 2 bytes that they are computed in. What periodic sync sums is the difference of
 * master copies, in fp32. */
static void travel_in_halves(struct skep_scenario *s)
{
	s->model.halves = true;
	s->native_activations = s->activation_codec == SKEP_CODEC_NONE && s->model.kind != SKEP_MODEL_GIVEN;
	s->native_gradients = s->plan.reduction.codec == SKEP_CODEC_NONE && !skep_plan_periodic(&s->plan);
	if (s->native_activations)
		s->activation_codec = SKEP_CODEC_FP16;
	for (uint32_t stage = 0; s->codecs && s->native_gradients && stage < s->plan.stages; stage++)
		if (s->codecs[stage] == SKEP_CODEC_NONE)
			s->codecs[stage] = SKEP_CODEC_FP16;
	if (s->native_gradients)
		s->plan.reduction.codec = SKEP_CODEC_FP16;
}

/* A type that a GPU has not is refused where there is a peak for it to miss: predictors say it for theirs. */
static void refuse_unknown_type(struct skep_scenario *s, struct skep_reader *r, const struct skep_yaml_node *map)
{
	for (uint32_t i = 0; i < s->topology.gpus && !r->diag->set; i++)
		if (s->compute.predictor == SKEP_PREDICTOR_ROOFLINE &&
			!skep_gpu_has_type(&s->topology.gpu[i], s->compute.type))
			skep_reader_fail(r, map, "type",
				"cluster.compute.type: the profile of %s has no peak of %s; take `type: %s`, or add it to "
				"`peaks` of %.200s",
				s->topology.gpu[i].name, skep_type_names[s->compute.type],
				skep_type_names[skep_gpu_training_type(&s->topology.gpu[i])], s->topology.gpu[i].path);
}

/* The arithmetic of `real` is done in fp32, in both worlds; what is only timed is timed as such GPUs train. With real arithmetic
 * a type that the file asks for is that of the factors of products alone, as of a CUDA device: memory and messages stay in
 * fp32, as they do where one GPU of the pool has no type of 2 bytes. A model whose figures are given is in fp32 unless the file
 * says otherwise, and what leaves its layers has the bytes that are given either way. */
void skep_compute_choose_types(struct skep_scenario *s, struct skep_reader *r, const struct skep_yaml_node *cluster)
{
	bool real = s->arithmetic == SKEP_ARITHMETIC_REAL, given = s->model.kind == SKEP_MODEL_GIVEN,
	     halves = !real && s->compute.mixed;
	if (r->diag->set)
		return;
	if (s->compute.type_said)
		refuse_unknown_type(s, r, skep_read_map(r, cluster, "compute", true));
	for (uint32_t i = 0; i < s->topology.gpus; i++) {
		struct skep_gpu *gpu = &s->topology.gpu[i];
		gpu->type = s->compute.type_said ? s->compute.type
		            : real || given      ? SKEP_TYPE_FP32
		                                 : skep_gpu_training_type(gpu);
		halves = halves && is_half(gpu->type);
	}
	if (halves)
		travel_in_halves(s);
}

static void make_predictors(struct skep_scenario *s, struct skep_reader *r, const struct skep_yaml_node *map)
{
	struct skep_topology *t = &s->topology;
	s->predictor = calloc(t->gpus, sizeof *s->predictor);
	if (!s->predictor) {
		skep_reader_fail(r, map, NULL, "not enough memory for the times of %u stages", s->plan.stages);
		return;
	}
	for (uint32_t i = 0; i < t->gpus && !r->diag->set; i++) {
		struct skep_diag diag = skep_diag_beside(r->diag);
		if (!skep_predictor_make(&t->gpu[i], s->compute.predictor, t->gpu[i].type, &s->predictor[i], &diag))
			fail_predictor(r, map, &t->gpu[i], &diag);
	}
}

static void draw(struct skep_scenario *s, struct skep_reader *r, const struct skep_yaml_node *map)
{
	const struct skep_topology *t = &s->topology;
	struct skep_diag diag = skep_diag_beside(r->diag);
	s->draw = calloc(t->gpus, sizeof *s->draw);
	if (!s->draw)
		skep_fail(&diag, "not enough memory for %u kinds of GPU", t->gpus);
	for (uint32_t i = 0; i < t->gpus && !diag.set; i++) {
		const struct skep_predictor *p = s->predictor ? &s->predictor[i] : NULL;
		if (skep_uncertainty_find(&t->gpu[i], p, s->model.name, s->draw[i].deviation, &diag))
			skep_uncertainty_draw(&t->gpu[i], s->draw[i].deviation, s->seed, s->draw[i].factor);
	}
	if (diag.set)
		skep_reader_fail(r, map, "uncertainty", "%s", diag.message);
}

void skep_compute_prepare(struct skep_scenario *s, struct skep_reader *r, const struct skep_yaml_node *cluster)
{
	const bool predicts = s->compute.predictor != SKEP_PREDICTOR_ROOFLINE;
	if (r->diag->set || (!predicts && !s->compute.uncertain))
		return;
	const struct skep_yaml_node *map = skep_read_map(r, cluster, "compute", true);
	if (s->model.kind == SKEP_MODEL_GIVEN) {
		const char *key = predicts ? "predictor" : "uncertainty";
		skep_reader_fail(r, map, key,
			"cluster.compute.%s: the file of %.60s gives the times of its layers: leave it out", key,
			s->model.name);
		return;
	}
	if (predicts)
		make_predictors(s, r, map);
	if (s->compute.uncertain && !r->diag->set)
		draw(s, r, map);
}

static uint64_t rounded_ns(double ns)
{
	const double most = 1e18; /* as in topologies/gpu/gpu.c */
	return ns < 1 ? 1 : ns < most ? (uint64_t)(ns + 0.5) : (uint64_t)most;
}

/* With what the seed draws for each origin. */
static uint64_t whole_ns(const struct skep_scenario *s, uint32_t gpu, const struct skep_compute_time *time)
{
	double sum = 0;
	for (int i = 0; i < SKEP_TIME_ORIGINS; i++)
		sum += (s->draw ? s->draw[gpu].factor[i] : 1) * time->ns[i];
	return rounded_ns(sum);
}

/* The roofline's times: passes are assumed, and updates move memory. The halves of a pass that computes anew follow. */
static void draw_roofline(const struct skep_compute_draw *draw, struct skep_op_time *time)
{
	uint64_t *const assumed[] = {&time->forward_ns, &time->backward_ns}, *const memory[] = {&time->step_ns,
										     &time->inner_ns, &time->pseudo_ns};
	for (size_t i = 0; i < sizeof assumed / sizeof assumed[0]; i++)
		*assumed[i] = rounded_ns(draw->factor[SKEP_TIME_ASSUMED] * (double)*assumed[i]);
	for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++)
		*memory[i] = rounded_ns(draw->factor[SKEP_TIME_MEMORY] * (double)*memory[i]);
}

/* What was measured is an update of all parameters of the stage, where the optimizer was on the host or was not: with periodic
 * sync that of an inner step, with ZeRO each worker has a part of it to do, and an optimizer elsewhere another time. */
static void take_update(struct skep_scenario *s, uint32_t gpu, uint32_t vstage, enum skep_offload offload,
	struct skep_compute_stage *timing, struct skep_op_time *time)
{
	const struct skep_compute_time none = {0};
	const bool known = timing->step_known && s->offload == offload;
	const uint32_t owners = skep_split_owners(s, vstage % s->plan.stages);
	if (known && skep_plan_periodic(&s->plan)) {
		time->inner_ns = whole_ns(s, gpu, &timing->step);
		timing->inner = timing->step;
		timing->inner_known = true;
	} else if (known) {
		time->step_ns = (whole_ns(s, gpu, &timing->step) + owners - 1) / owners;
	}
	timing->step_known = known && !timing->inner_known;
	timing->step = timing->step_known ? timing->step : none;
}

void skep_compute_predict(struct skep_scenario *s, uint32_t gpu, uint32_t vstage)
{
	struct skep_compute_task task = {.model = &s->model,
		.samples = s->samples,
		.split = skep_split_of(s, gpu),
		.recompute = skep_plan_recomputes(&s->plan, s->checkpoint_activations, vstage),
		.scale = s->compute_scale};
	size_t at = (size_t)gpu * skep_plan_vstages(&s->plan) + vstage;
	if (s->draw)
		draw_roofline(&s->draw[gpu], &s->op_time[at]);
	if (!s->predictor)
		return;
	if (skep_scenario_encodes(s)) {
		double in = vstage > 0 ? (double)skep_plan_vstage_bytes(&s->plan, vstage - 1) : 0;
		double out = (double)skep_plan_vstage_bytes(&s->plan, vstage);
		task.extra_forward_bytes = in + out;
		task.extra_backward_bytes = 2 * in + out;
	}
	skep_model_cut(&s->model, skep_plan_vstages(&s->plan), vstage, &task.first_layer, &task.layers);
	skep_compute_time(&s->predictor[gpu], &task, &s->timing[at]);
	s->op_time[at].forward_ns = whole_ns(s, gpu, &s->timing[at].forward);
	s->op_time[at].backward_ns = whole_ns(s, gpu, &s->timing[at].backward);
	take_update(s, gpu, vstage, SKEP_OFFLOAD_NONE, &s->timing[at], &s->op_time[at]);
}

/* Where the time of a pass is kept, and where what `skep check` says of it; NULL: it says nothing. */
static uint64_t *time_of(struct skep_op_time *time, enum skep_stage_column column)
{
	uint64_t *const of[SKEP_STAGE_COLUMNS] = {&time->forward_ns, &time->backward_ns, &time->recompute_ns,
		&time->recomputed_ns, &time->step_ns, &time->inner_ns, &time->pseudo_ns};
	return of[column];
}

static struct skep_compute_time *origin_of(struct skep_compute_stage *timing, enum skep_stage_column column)
{
	if (column == SKEP_STAGE_STEP)
		timing->step_known = true;
	if (column == SKEP_STAGE_BACKWARD)
		timing->backward_measured = true;
	return column == SKEP_STAGE_FORWARD    ? &timing->forward
	       : column == SKEP_STAGE_BACKWARD ? &timing->backward
	       : column == SKEP_STAGE_STEP     ? &timing->step
	                                       : NULL;
}

/* Stages were measured with all of their layers trained. */
static bool as_measured(const struct skep_scenario *s, uint32_t vstage, enum skep_stage_column column)
{
	return s->cost[vstage].trained == s->cost[vstage].parameters || column == SKEP_STAGE_FORWARD ||
	       column == SKEP_STAGE_RECOMPUTE;
}

struct measured { /* of one stage */
	bool has[SKEP_STAGE_COLUMNS];
	struct skep_compute_time time[SKEP_STAGE_COLUMNS];
};

static struct measured look_up(const struct skep_scenario *s, const struct skep_stage_table *table, uint32_t vstage)
{
	struct skep_measured_stage query = {.microbatch = s->samples};
	struct measured ret = {0};
	skep_model_cut(&s->model, skep_plan_vstages(&s->plan), vstage, &query.first_layer, &query.layers);
	for (int c = 0; c < SKEP_STAGE_COLUMNS; c++) {
		double seconds;
		bool exact;
		ret.has[c] = as_measured(s, vstage, (enum skep_stage_column)c) &&
		             skep_stage_table_look(table, &query, (enum skep_stage_column)c, &seconds, &exact);
		if (ret.has[c])
			add(&ret.time[c], exact ? SKEP_TIME_MEASURED : SKEP_TIME_INTERPOLATED,
				s->compute_scale * seconds);
	}
	return ret;
}

void skep_compute_take_measured(struct skep_scenario *s, uint32_t gpu, uint32_t vstage)
{
	const struct skep_stage_table *table = s->predictor ? s->predictor[gpu].stages : NULL;
	size_t at = (size_t)gpu * skep_plan_vstages(&s->plan) + vstage;
	if (!table || strcmp(table->model, s->model.name) != 0 || skep_split_of(s, gpu).gpus > 1)
		return;
	struct skep_compute_stage *timing = &s->timing[at];
	const struct measured m = look_up(s, table, vstage);
	const bool outer = m.has[SKEP_STAGE_INNER]; /* the step that was measured is behind local ones */
	const int update = outer ? SKEP_STAGE_INNER : SKEP_STAGE_STEP;
	if (m.has[update] && table->offload == s->offload) {
		timing->step = m.time[update];
		timing->step_known = true;
		take_update(s, gpu, vstage, s->offload, timing, &s->op_time[at]);
	}
	for (int c = 0; c < SKEP_STAGE_COLUMNS; c++) {
		const bool here = c != SKEP_STAGE_STEP || (outer && skep_plan_periodic(&s->plan));
		if (!m.has[c] || !here || c == SKEP_STAGE_INNER)
			continue;
		*time_of(&s->op_time[at], (enum skep_stage_column)c) = whole_ns(s, gpu, &m.time[c]);
		struct skep_compute_time *origin = origin_of(timing, (enum skep_stage_column)c);
		if (origin)
			*origin = m.time[c];
	}
}

void skep_compute_check(const struct skep_scenario *s, struct skep_reader *r, const struct skep_yaml_node *cluster)
{
	if (r->diag->set || !s->compute.refuse_outside)
		return;
	const struct skep_yaml_node *map = skep_read_map(r, cluster, "compute", true);
	for (uint32_t gpu = 0; gpu < s->topology.gpus; gpu++)
		for (uint32_t vstage = 0; vstage < skep_plan_vstages(&s->plan) && !r->diag->set; vstage++)
			if (skep_compute_outside(&s->timing[(size_t)gpu * skep_plan_vstages(&s->plan) + vstage]))
				skep_reader_fail(r, map, "outside",
					"cluster.compute.outside: the tables of %s in %s do not have all of stage %u "
					"with a microbatch of %u; take `outside: fit`, or a model and a microbatch that "
					"were measured",
					s->topology.gpu[gpu].name, skep_type_names[s->topology.gpu[gpu].type],
					vstage % s->plan.stages, s->samples);
}
