/* SPDX-License-Identifier: Apache-2.0
 *
 * describe_training.c - see describe_groups.h: what is trained on what, where its parameters begin, which of them are not
 * trained, how the optimizer steps, and by which law losses go that are not computed.
 */
#include <inttypes.h>
#include <math.h>

#include "base/layout.h"
#include "models/corpus/tokens.h"
#include "models/layers/mixture.h"
#include "models/vision/shape.h"
#include "models/weights/safetensors.h"
#include "scenarios/describe/describe_groups.h"
#include "scenarios/plan/loss.h"
#include "scenarios/plan/plan.h"
#include "scenarios/read/groups.h"

/* ---- experts ----------------------------------------------------------------------------------------------------- */

/* Of all parameters, those that the arithmetic of one token reads: not the other experts'. */
static uint64_t met_by_a_token(const struct skep_model *m, uint64_t *ret_all)
{
	struct skep_cost cost;
	skep_model_cost(m, 1, 0, &cost);
	*ret_all = cost.parameters;
	uint64_t expert = (uint64_t)3 * m->hidden * m->feed_forward, groups = m->layers - 2;
	return cost.parameters - groups * (m->experts.count - m->experts.per_token) * expert;
}

void skep_experts_print(const struct skep_scenario *s, FILE *out)
{
	const struct skep_experts *e = &s->model.experts;
	if (e->count == 0)
		return;
	uint64_t all, met = met_by_a_token(&s->model, &all);
	size_t tokens = (size_t)s->samples * s->model.sequence;
	fprintf(out,
		"  experts   %" PRIu32 " in each block, %" PRIu32 " for each token%s: it meets %" PRIu64 " of %" PRIu64
		" parameters, %.3g %%\n",
		e->count, e->per_token, e->renormalized ? ", whose weights sum to 1" : "", met, all,
		100 * (double)met / (double)all);
	if (e->capacity_factor > 0)
		fprintf(out,
			"            each takes at most %zu of the %zu tokens of a microbatch, others are dropped\n",
			skep_mixture_capacity(e, tokens), tokens);
	if (e->aux_loss > 0 || e->z_loss > 0)
		fprintf(out, "            losses of each router: balance %g, z %g\n", e->aux_loss, e->z_loss);
}

void skep_experts_add_json(const struct skep_scenario *s, cJSON *root)
{
	const struct skep_experts *e = &s->model.experts;
	cJSON *experts = skep_json_add_object(root, "experts", e->count > 0);
	if (experts == NULL)
		return;
	uint64_t all, met = met_by_a_token(&s->model, &all);
	cJSON_AddNumberToObject(experts, "count", e->count);
	cJSON_AddNumberToObject(experts, "per_token", e->per_token);
	cJSON_AddNumberToObject(experts, "parameters_per_token", (double)met);
	cJSON_AddNumberToObject(
		experts, "capacity", (double)skep_mixture_capacity(e, (size_t)s->samples * s->model.sequence));
}

/* ---- masked language models --------------------------------------------------------------------------------------- */

void skep_masking_print(const struct skep_scenario *s, FILE *out)
{
	const struct skep_model *m = &s->model;
	if (m->predicted > 0)
		fprintf(out,
			"  masks     of each sequence of %" PRIu32 " tokens %" PRIu32
			" are predicted; in 8 of 10 cases token %" PRIu32 " stands in their place\n",
			m->sequence, m->predicted, m->mask_token);
}

void skep_masking_add_json(const struct skep_scenario *s, cJSON *root)
{
	cJSON *masking = skep_json_add_object(root, "masking", s->model.predicted > 0);
	if (masking == NULL)
		return;
	cJSON_AddNumberToObject(masking, "predicted", s->model.predicted);
	cJSON_AddNumberToObject(masking, "mask_token", s->model.mask_token);
}

/* A copy of a table that is there already is not counted. */
static uint64_t parameters_of(const struct skep_scenario *s, uint64_t *ret_trained)
{
	uint64_t all = 0;
	*ret_trained = 0;
	for (uint32_t stage = 0; stage < s->plan.stages; stage++) {
		all += s->stage[stage].parameters;
		*ret_trained += skep_plan_trained(&s->plan, stage);
	}
	*ret_trained -= s->plan.tied;
	const uint64_t averages = skep_resnet_averages_of(&s->model, 0, s->model.layers); /* are no parameters */
	*ret_trained -= averages;
	return all - skep_model_copied(&s->model) - averages;
}

void skep_images_print(const struct skep_scenario *s, FILE *out)
{
	const struct skep_resnet *n = &s->model.resnet;
	uint64_t trained;
	if (s->model.kind != SKEP_MODEL_RESNET)
		return;
	fprintf(out,
		"  images    of %" PRIu32 " x %" PRIu32 " pixels and %" PRIu32 " classes; %" PRIu64 " parameters\n"
		"            each batch norm takes the %" PRIu32 " sample%s of a microbatch; running averages: %" PRIu64
		" numbers of the stages\n",
		n->image, n->image, n->classes, parameters_of(s, &trained), s->samples, skep_plural(s->samples),
		skep_resnet_averages_of(&s->model, 0, s->model.layers));
}

void skep_images_add_json(const struct skep_scenario *s, cJSON *root)
{
	cJSON *images = skep_json_add_object(root, "images", s->model.kind == SKEP_MODEL_RESNET);
	if (images == NULL)
		return;
	cJSON_AddNumberToObject(images, "side", s->model.resnet.image);
	cJSON_AddNumberToObject(images, "classes", s->model.resnet.classes);
	cJSON_AddNumberToObject(
		images, "running_averages", (double)skep_resnet_averages_of(&s->model, 0, s->model.layers));
}

/* ---- first parameters --------------------------------------------------------------------------------------------- */

static void print_candidates(const struct skep_scenario *s, FILE *out)
{
	const struct skep_plan *plan = &s->plan;
	if (skep_plan_has_candidates(plan))
		fprintf(out,
			"  tries     %u candidates for the first parameters, each with a part of every stage's workers and all "
			"microbatches of %u steps; the one whose last %u losses promise most is kept\n",
			plan->candidates.count, (uint32_t)skep_plan_steps_before(plan, plan->candidates.rounds),
			skep_candidate_window(plan->candidates.rounds));
}

static void add_candidates(const struct skep_scenario *s, cJSON *root)
{
	cJSON *trial = skep_json_add_object(root, "candidates", skep_plan_has_candidates(&s->plan));
	if (trial == NULL)
		return;
	cJSON_AddNumberToObject(trial, "number", s->plan.candidates.count);
	cJSON_AddNumberToObject(trial, "steps", (double)skep_plan_steps_before(&s->plan, s->plan.candidates.rounds));
	cJSON_AddNumberToObject(trial, "compared_by", skep_candidate_window(s->plan.candidates.rounds));
}

static void print_weights(const struct skep_scenario *s, FILE *out)
{
	const char *head = skep_train_head_from(s);
	fprintf(out, "  begins    with the %u weights of %.400s", skep_safetensors_count(s->weights), s->weights_path);
	if (head)
		fprintf(out, "\n            and a copy of %.80s as lm_head.weight, which is not there", head);
	fputc('\n', out);
}

static void print_init(const struct skep_scenario *s, FILE *out)
{
	print_candidates(s, out);
	if (s->weights)
		print_weights(s, out);
	if (s->model.init == SKEP_INIT_NORMAL)
		fprintf(out, "  begins    with matrices of deviation %g, biases 0\n", (double)s->model.init_deviation);
	else if (s->model.init != SKEP_INIT_DEFAULT)
		fprintf(out, "  begins    with matrices drawn as by %s, biases 0\n", skep_init_name(s->model.init));
}

static void add_init(const struct skep_scenario *s, cJSON *root)
{
	skep_json_add_text(root, "weights", s->weights ? s->weights_path : "");
	cJSON_AddStringToObject(root, "init", s->weights ? "weights" : skep_init_name(s->model.init));
	add_candidates(s, root);
}

/* ---- data and steps ----------------------------------------------------------------------------------------------- */

/* How often the run sees each sample, on the mean. */
static double epochs(const struct skep_scenario *s, const struct skep_tokens_facts *facts)
{
	return (double)skep_plan_all_steps(s) * s->batch / skep_plan_most_steps(&s->plan) /
	       (double)facts->windows[SKEP_TOKENS_TRAINING];
}

static void print_files(const struct skep_scenario *s, FILE *out)
{
	struct skep_tokens_facts facts;
	skep_tokens_describe(s->tokens, &facts);
	const unsigned long long training = facts.windows[SKEP_TOKENS_TRAINING],
				 held_out = facts.windows[SKEP_TOKENS_HELD_OUT];
	fprintf(out, "  data      %.200s%s", s->data_path, s->data_path[0] ? ": " : "");
	if (s->corpus == SKEP_CORPUS_IMAGES)
		fprintf(out, "%llu images to train on, %llu held out, in %u file%s", training, held_out, facts.files,
			facts.files == 1 ? "" : "s");
	else
		fprintf(out, "%llu tokens in %u file%s: %llu samples of %u to train on, %llu held out",
			(unsigned long long)facts.tokens, facts.files, facts.files == 1 ? "" : "s", training,
			s->model.sequence, held_out);
	fprintf(out, "; a round takes %u,\n            so what there is to train on is seen %.4g times over\n",
		s->batch, epochs(s, &facts));
}

void skep_train_print(const struct skep_scenario *s, FILE *out)
{
	const struct skep_rates *rates = &s->optimizer.rates;
	if (s->tokens)
		print_files(s, out);
	const uint32_t every = s->plan.validation.every, judged = s->plan.validation.microbatches;
	if (every > 0) {
		fprintf(out, "  judged    after every ");
		if (every > 1)
			fprintf(out, "%u rounds and the last", every);
		else
			fprintf(out, "round");
		fprintf(out, ", on %u microbatch%s that nothing is trained on%s\n", judged, judged == 1 ? "" : "es",
			s->plan.async.on ? ", while the next round is trained" : "");
	}
	print_init(s, out);
	const bool varies = rates->decay != SKEP_RATE_CONSTANT || rates->warmup > 0 || rates->by_staleness > 0;
	const bool clips = s->optimizer.clip_norm > 0;
	if (varies || clips)
		fprintf(out, "  steps     %s, learning rate %g", skep_optimizer_name(s->optimizer.kind),
			(double)s->optimizer.learning_rate);
	if (rates->warmup > 0)
		fprintf(out, ", reached after %u steps", rates->warmup);
	if (rates->decay != SKEP_RATE_CONSTANT)
		fprintf(out, ", then falling by a %s to %g %% of that at step %u",
			rates->decay == SKEP_RATE_COSINE ? "cosine" : "straight line", 100 * (double)rates->least,
			rates->steps);
	if (rates->by_staleness > 0)
		fprintf(out, ", by staleness in the first %u steps%s", rates->by_staleness,
			s->plan.no_flush.synchronous > 0 ? " that are not synchronous" : "");
	if (clips)
		fprintf(out, ", gradients clipped to a norm of %g over %s", (double)s->optimizer.clip_norm,
			s->plan.clip ? "all stages" : "the worker's stage");
	if (varies || clips)
		fprintf(out, "\n");
}

void skep_train_add_json(const struct skep_scenario *s, cJSON *root)
{
	const struct skep_rates *rates = &s->optimizer.rates;
	if (s->tokens) {
		struct skep_tokens_facts facts;
		cJSON *data = cJSON_AddObjectToObject(root, "data");
		skep_tokens_describe(s->tokens, &facts);
		cJSON_AddStringToObject(data, "path", s->data_path);
		cJSON_AddNumberToObject(data, "files", facts.files);
		cJSON_AddNumberToObject(data, "tokens", (double)facts.tokens);
		cJSON_AddNumberToObject(data, "training_samples", (double)facts.windows[SKEP_TOKENS_TRAINING]);
		cJSON_AddNumberToObject(data, "times_seen", epochs(s, &facts));
		cJSON_AddNumberToObject(data, "held_out_samples", (double)facts.windows[SKEP_TOKENS_HELD_OUT]);
	} else {
		cJSON_AddNullToObject(root, "data");
	}
	cJSON *judged = cJSON_AddObjectToObject(root, "validate");
	cJSON_AddNumberToObject(judged, "every", s->plan.validation.every);
	cJSON_AddNumberToObject(judged, "microbatches", s->plan.validation.microbatches);
	cJSON_AddBoolToObject(judged, "beside", s->plan.async.on && s->plan.validation.every > 0);
	if (s->validation_path[0])
		cJSON_AddStringToObject(judged, "path", s->validation_path);
	skep_json_add_number(root, "target_loss", s->target_loss);
	cJSON_AddBoolToObject(root, "stops_at_target", s->plan.until.target_loss_nano != INT64_MIN);
	add_init(s, root);
	cJSON *steps = cJSON_AddObjectToObject(root, "optimizer");
	cJSON_AddStringToObject(steps, "name", skep_optimizer_name(s->optimizer.kind));
	cJSON_AddNumberToObject(steps, "learning_rate", (double)s->optimizer.learning_rate);
	cJSON_AddNumberToObject(steps, "warmup", rates->warmup);
	cJSON_AddNumberToObject(steps, "by_staleness", rates->by_staleness);
	skep_json_add_number(steps, "clip_norm", s->optimizer.clip_norm > 0 ? (double)s->optimizer.clip_norm : NAN);
	cJSON_AddStringToObject(steps, "decay", skep_rate_decay_name(rates->decay));
}

/* ---- frozen layers ------------------------------------------------------------------------------------------------ */

static void print_first(FILE *out, uint32_t count, const char *what)
{
	if (count == 1)
		fprintf(out, "the first %s", what);
	else
		fprintf(out, "the first %" PRIu32 " %ss", count, what);
}

void skep_freeze_print(const struct skep_scenario *s, FILE *out)
{
	const struct skep_model *m = &s->model;
	const bool embeds = m->architecture != SKEP_ARCHITECTURE_NONE, blocks = m->kind == SKEP_MODEL_TRANSFORMER;
	const uint32_t rest = m->frozen - embeds;
	uint64_t trained, all;
	if (m->frozen == 0)
		return;
	all = parameters_of(s, &trained);
	fprintf(out, "  freezes   %s%s", embeds ? "the embedding" : "", embeds && rest > 0 ? " and " : "");
	if (rest > 0)
		print_first(out, blocks ? rest * m->shared : rest, blocks ? "block" : "layer");
	fprintf(out, "%s: of %" PRIu64 " parameters %" PRIu64 " are trained, %.3g %%\n",
		skep_model_table_is_frozen(m) ? ", and the head's table with it" : "", all, trained,
		100 * (double)trained / (double)all);
	if (s->plan.frozen_vstages == 0)
		return;
	fprintf(out, "            no backward pass in ");
	print_first(out, s->plan.frozen_vstages, skep_plan_model_chunks(&s->plan) > 1 ? "virtual stage" : "stage");
	fprintf(out, ", and no gradient is sent there\n");
}

void skep_freeze_add_json(const struct skep_scenario *s, cJSON *root)
{
	uint64_t trained, all = parameters_of(s, &trained);
	cJSON_AddNumberToObject(root, "frozen_layers", s->model.frozen);
	cJSON_AddNumberToObject(root, "frozen_stages", s->plan.frozen_vstages);
	cJSON_AddNumberToObject(root, "parameters", (double)all);
	cJSON_AddNumberToObject(root, "trained_parameters", (double)trained);
}

/* ---- the law that stands for arithmetic --------------------------------------------------------------------------- */

void skep_loss_print(const struct skep_scenario *s, FILE *out)
{
	char how[512];
	double at[SKEP_LAW_AXES];
	if (!s->law)
		return;
	skep_loss_at(s, s->plan.rounds, 0, at);
	fprintf(out,
		"  law       of %.200s instead of arithmetic: loss %.4g at first, %.4g after %u rounds; misfit %.2g %%\n",
		s->law->path, (double)skep_loss_nano(s, 0, 0) / 1e9, skep_law_loss(s->law, at), s->plan.rounds,
		100 * s->law->misfit);
	if (s->law->source[0] != '\0')
		fprintf(out, "            source: %s\n", s->law->source);
	if (skep_loss_extrapolates(s, s->plan.rounds, how, sizeof how))
		fprintf(out, "            extrapolated: %s\n", how);
	if (s->has_trace)
		fprintf(out, "            counts the tokens of all steps: what churn loses is not in its loss\n");
}

void skep_loss_add_json(const struct skep_scenario *s, cJSON *root)
{
	char how[512];
	cJSON *law = skep_json_add_object(root, "law", s->law != NULL);
	if (law == NULL)
		return;
	cJSON_AddStringToObject(law, "path", s->law->path);
	cJSON_AddNumberToObject(law, "misfit", s->law->misfit);
	cJSON_AddBoolToObject(law, "extrapolated", skep_loss_extrapolates(s, s->plan.rounds, how, sizeof how));
}
