/* SPDX-License-Identifier: Apache-2.0
 *
 * train.c - see groups.h. A corpus of tokens is opened here, so that a file that cannot feed the model is refused before
 * anything starts.
 */
#include "scenarios/read/groups.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "core/names.h"
#include "core/sums.h"
#include "models/corpus/data.h"
#include "models/corpus/images.h"
#include "models/corpus/tokens.h"
#include "models/read/hf_config.h"
#include "models/weights/hf_weights.h"
#include "models/weights/safetensors.h"
#include "scenarios/plan/prices.h"
#include "scenarios/plan/split.h"
#include "scenarios/read/periodic.h"

static const char *const corpora[] = {"quadratic", "text", "tokens", "images", NULL};
static const char *const optimizers[] = {"sgd", "adamw", "nesterov", "lamb", NULL};
static const char *const decays[] = {"constant", "cosine", "linear", NULL};
enum { QUADRATIC, TEXT, TOKENS, IMAGES };
#define POINTS_MAX (INT64_C(1) << 40)
#define UNTIL_S_MAX (10 * 365.25 * SKEP_DAY_S)
#define UNTIL_USD_MAX 1e6
enum { VALIDATED_MOST = 1 << 20 }; /* microbatches of a validation */

const char *skep_optimizer_name(enum skep_optimizer_kind kind)
{
	return optimizers[kind];
}

const char *skep_rate_decay_name(enum skep_rate_decay decay)
{
	return decays[decay];
}

/* ---- the end -------------------------------------------------------------------------------------------------------- */

/* Of a number of samples or tokens, as many steps as it takes; a step has an equal part of a round's samples. */
static uint32_t steps_for(struct skep_reader *r, const struct skep_yaml_node *map, const char *key, double samples,
	const struct skep_scenario *s)
{
	double round = (double)s->plan.microbatches * s->samples;
	double steps = ceil(samples * skep_plan_most_steps(&s->plan) / round);
	if (!r->diag->set && steps > SKEP_STEPS_MAX)
		skep_reader_fail(r, map, key, "train.until.%s: comes to %.3g steps, at most %u are taken", key, steps,
			(unsigned)SKEP_STEPS_MAX);
	return r->diag->set ? 1 : (uint32_t)steps;
}

/* `steps`, or what comes to steps: `samples`, or `tokens` of a model that has a sequence. */
static uint32_t read_steps(struct skep_reader *r, const struct skep_yaml_node *map, const struct skep_scenario *s)
{
	bool samples = skep_read_has(r, map, "samples"), tokens = skep_read_has(r, map, "tokens");
	double count = samples || tokens ? skep_read_count(r, map, samples ? "samples" : "tokens", 1, 1e18) : 0;
	const char *limit = skep_read_has(r, map, "time") ? "time" : skep_read_has(r, map, "usd") ? "usd" : "loss";
	if (!samples && !tokens && !skep_read_has(r, map, "steps") && skep_read_has(r, map, limit))
		skep_reader_fail(r, map, limit,
			"train.until.%s: ends a run before its last step: say how many there are at most, with "
			"`steps`, `samples` or `tokens` beside it",
			limit);
	if (!samples && !tokens)
		return (uint32_t)skep_read_integer(r, map, "steps", 1, SKEP_STEPS_MAX, INT64_MIN);
	if (skep_read_has(r, map, "steps") || (samples && tokens))
		skep_reader_fail(r, map, tokens ? "tokens" : "samples",
			"train.until: steps, samples and tokens all say how long: take one of them, and remove "
			"another with --set train.until.steps=null");
	else if (tokens && s->model.sequence == 0)
		skep_reader_fail(r, map, "tokens",
			"train.until.tokens: a sample of model %s has no tokens: take `samples` or `steps`",
			s->model.name);
	else if (tokens)
		return steps_for(r, map, "tokens", count / s->model.sequence, s);
	return samples ? steps_for(r, map, "samples", count, s) : 1;
}

/* What may be used up before the steps are made. */
static void read_limits(struct skep_reader *r, const struct skep_yaml_node *map, struct skep_scenario *s)
{
	bool time = skep_read_has(r, map, "time"), usd = skep_read_has(r, map, "usd");
	s->until_s = time ? skep_read_quantity(r, map, "time", SKEP_TIME, 1e-3, UNTIL_S_MAX, 0) : 0;
	s->until_usd = usd ? skep_read_number(r, map, "usd", 1e-6, UNTIL_USD_MAX, 0) : 0;
	s->plan.until.end_ns = (skep_time)(s->until_s * 1e9 + 0.5);
	s->plan.until.budget_microusd = (uint64_t)(s->until_usd * 1e6 + 0.5);
	uint32_t free_worker = usd && !r->diag->set ? skep_prices_missing(s) : s->plan.workers;
	if (free_worker < s->plan.workers)
		skep_reader_fail(r, map, "usd",
			"train.until.usd: the price of machine %" PRIu32
			" at %s is not known: give its group a `price` or `prices` in "
			"topology %.60s, or leave this out",
			free_worker, s->topology.place_name[s->topology.machine[free_worker].place], s->topology.name);
	uint32_t from, to;
	if (usd && !r->diag->set && skep_prices_egress_missing(s, &from, &to))
		skep_reader_fail(r, map, "usd",
			"train.until.usd: the price of traffic from %s to %s is not known: give the link or the site an "
			"`egress`, 0 USD/GB where it is free, in topology %.60s, or leave this out",
			s->topology.place_name[from], s->topology.place_name[to], s->topology.name);
	if ((time || usd) && s->plan.candidates.count > 0)
		skep_reader_fail(r, map, time ? "time" : "usd",
			"train.until.%s: with train.init.candidates several runs share time and money: leave one of them out",
			time ? "time" : "usd");
}

static void read_end(struct skep_reader *r, const struct skep_yaml_node *train, struct skep_scenario *s)
{
	const struct skep_yaml_node *map = skep_read_map(r, train, "until", true);
	uint32_t steps = read_steps(r, map, s);
	s->until_steps = steps;
	s->plan.rounds = skep_plan_rounds_of(&s->plan, steps);
	uint32_t cycle = skep_plan_cycle(&s->plan);
	if (s->plan.inner.sum_every) /* so that each stage ends with a sum */
		s->plan.rounds = (s->plan.rounds + cycle - 1) / cycle * cycle;
	bool has_loss = skep_read_has(r, map, "loss");
	double loss = skep_read_number(r, map, "loss", 0, 1e9, 0);
	read_limits(r, map, s);
	skep_reader_close_map(r, map);
	if (has_loss && s->arithmetic == SKEP_ARITHMETIC_NONE)
		skep_reader_fail(r, map, "loss",
			"train.until.loss: there is no loss to reach without `arithmetic: real` or `law`: take one of "
			"them, or leave this out (--set train.until.loss=null); a law is a file of `skep fit`: --set "
			"train.arithmetic=law --set train.law.file=FILE");
	s->target_loss = has_loss ? loss : NAN;
	s->plan.until.target_loss_nano = has_loss ? (int64_t)(loss * 1e9 + 0.5) : INT64_MIN;
}

/* A loss whose time is wanted, and that ends nothing. */
static void read_target(struct skep_reader *r, const struct skep_yaml_node *train, struct skep_scenario *s)
{
	bool has_loss = skep_read_has(r, train, "target_loss");
	double loss = skep_read_number(r, train, "target_loss", 0, 1e9, 0);
	if (!has_loss || r->diag->set)
		return;
	if (s->arithmetic == SKEP_ARITHMETIC_NONE)
		skep_reader_fail(r, train, "target_loss",
			"train.target_loss: there is no loss to reach without `arithmetic: real` or `law`: take one of "
			"them, or leave this out (--set train.target_loss=null); a law is a file of `skep fit`: --set "
			"train.arithmetic=law --set train.law.file=FILE");
	else if (!isnan(s->target_loss))
		skep_reader_fail(r, train, "target_loss",
			"train.target_loss: train.until.loss is the target already, and ends the run; take one of them");
	else
		s->target_loss = loss;
}

void skep_train_read_until(struct skep_reader *r, const struct skep_yaml_node *train, struct skep_scenario *s)
{
	read_end(r, train, s);
	read_target(r, train, s);
}

/* ---- data --------------------------------------------------------------------------------------------------------- */

/* The file, or pattern of several, that is for validation alone; NULL: a part of the training's is, *ret_part. What begins with
 * a number is a part, unless there is such a file. */
static const char *read_held_out(
	struct skep_reader *r, const struct skep_yaml_node *map, const struct skep_scenario *s, double *ret_part)
{
	char path[4096];
	const char *word = skep_read_string(r, map, "validation", "");
	bool number = word[0] == '\0' || strchr("+-.0123456789", word[0]) != NULL;
	*ret_part = 0;
	if (r->diag->set || !number || skep_read_find(r, map, "validation", s->path, word, path, sizeof path))
		return word;
	*ret_part = skep_read_quantity(r, map, "validation", SKEP_PART, 0, 0.99, SKEP_TOKENS_VALIDATION);
	return NULL;
}

/* Its path, if it is one file. */
static void find_file(struct skep_reader *r, const struct skep_yaml_node *map, const char *key,
	const struct skep_scenario *s, const char *name, char *ret, size_t size)
{
	if (name == NULL || !skep_read_find(r, map, key, s->path, name, ret, size))
		ret[0] = '\0'; /* a pattern of several */
}

/* Bytes of a text, what the file's name and magic say, or records with an image each. */
static void open_tokens(struct skep_reader *r, const struct skep_yaml_node *map, int corpus, struct skep_scenario *s)
{
	double part;
	const char *name = skep_read_string(r, map, "file", NULL), *held_out = read_held_out(r, map, s, &part);
	if (r->diag->set || s->arithmetic != SKEP_ARITHMETIC_REAL)
		return;
	struct skep_tokens_options options = {.from = s->path,
		.training = &name,
		.trainings = 1,
		.validation = &held_out,
		.validations = held_out != NULL,
		.training_given = skep_read_given(map, "file"),
		.validation_given = skep_read_given(map, "validation"),
		.part = part,
		.format = corpus == TOKENS ? SKEP_TOKENS_DETECT : SKEP_TOKENS_BYTES,
		.records = corpus == IMAGES,
		.vocabulary = corpus == IMAGES ? s->model.resnet.classes : s->model.vocabulary,
		.length = corpus == IMAGES ? skep_image_record(s->model.resnet.image) : s->model.sequence};
	struct skep_diag why = skep_diag_beside(r->diag);
	s->tokens = skep_tokens_open(&options, &why);
	find_file(r, map, "file", s, name, s->data_path, sizeof s->data_path);
	find_file(r, map, "validation", s, held_out, s->validation_path, sizeof s->validation_path);
	bool other = held_out != NULL && (strcmp(why.file, held_out) == 0 || strcmp(why.file, s->validation_path) == 0);
	const char *key = other ? "validation" : "file";
	if (!s->tokens)
		skep_reader_fail(r, map, key, "train.data.%s: %.200s: %.200s", key, why.file, why.message);
}

/* Microbatches that what is held out is enough for; without a file there is no end to them. */
static uint64_t held_out_microbatches(const struct skep_scenario *s)
{
	struct skep_tokens_facts facts;
	if (!s->tokens)
		return VALIDATED_MOST;
	skep_tokens_describe(s->tokens, &facts);
	uint64_t n = facts.windows[SKEP_TOKENS_HELD_OUT] / s->samples;
	return n < VALIDATED_MOST ? n : VALIDATED_MOST;
}

void skep_train_read_validation(struct skep_reader *r, const struct skep_yaml_node *train, struct skep_scenario *s)
{
	const struct skep_yaml_node *map = skep_read_map(r, train, "validate", false);
	if (!map || r->diag->set)
		return;
	uint32_t batch = s->plan.microbatches / skep_plan_most_steps(&s->plan);
	uint64_t most = held_out_microbatches(s), usual = batch < most ? batch : most;
	uint32_t every = (uint32_t)skep_read_integer(r, map, "every", 1, INT32_MAX, INT64_MIN);
	s->plan.validation.every = skep_plan_rounds_of(&s->plan, every);
	s->plan.validation.microbatches =
		(uint32_t)skep_read_integer(r, map, "microbatches", 1, VALIDATED_MOST, (int64_t)usual);
	skep_reader_close_map(r, map);
	if (r->diag->set)
		return;
	if (skep_plan_no_flush(&s->plan))
		skep_reader_fail(r, train, "validate",
			"train.validate: `pipedream` has no edge between two rounds at which all stages are at one "
			"version; take another schedule.pipeline, or leave it out");
	else if (most == 0)
		skep_reader_fail(r, train, "validate",
			"train.validate: nothing is held out, or less than a microbatch of %u samples: raise "
			"train.data.validation",
			s->samples);
	else if (s->plan.validation.microbatches > most)
		skep_reader_fail(r, map, "microbatches",
			"train.validate.microbatches: what is held out is enough for %llu of %u samples",
			(unsigned long long)most, s->samples);
}

/* The group `model` if a --set named another file and none the arithmetic: then that file is what does not fit; NULL: else. */
static const struct skep_yaml_node *given_model(struct skep_reader *r, const struct skep_yaml_node *train)
{
	const struct skep_yaml_node *model = skep_read_map(r, skep_yaml_root(r->yaml), "model", false);
	return !skep_read_given(train, "arithmetic") && skep_read_given(model, "file") ? model : NULL;
}

void skep_train_check_computes(struct skep_reader *r, const struct skep_yaml_node *train, const struct skep_scenario *s)
{
	if (r->diag->set || s->arithmetic != SKEP_ARITHMETIC_REAL)
		return;
	const struct skep_yaml_node *model = given_model(r, train);
	const struct skep_yaml_node *at = model ? model : train;
	const char *key = model ? "file" : skep_read_has(r, train, "arithmetic") ? "arithmetic" : NULL;
	if (s->model.kind == SKEP_MODEL_GIVEN)
		skep_reader_fail(r, at, key,
			"train.arithmetic: %.60s is known by the figures of its layers alone; take `arithmetic: none`",
			s->model.name);
	else if (s->model.kind == SKEP_MODEL_TRANSFORMER && s->model.architecture == SKEP_ARCHITECTURE_NONE)
		skep_reader_fail(r, at, key,
			"train.arithmetic: %.60s is a transformer without an architecture, known by its cost alone; take "
			"`arithmetic: none`, or add `architecture` to its file",
			s->model.name);
	else if (s->model.kind == SKEP_MODEL_RESNET && s->samples < 2)
		skep_reader_fail(r, skep_read_map(r, skep_yaml_root(r->yaml), "schedule", false), "microbatch",
			"schedule.microbatch: the batch norms of %.60s take means over the samples of a microbatch, and one is "
			"none: expected at least 2",
			s->model.name);
}

/* At the --set that brought the two together, if one did. */
static void fail_corpus(struct skep_reader *r, const struct skep_yaml_node *train, const struct skep_yaml_node *data,
	const char *corpus, const char *expected, const struct skep_scenario *s)
{
	const struct skep_yaml_node *model = given_model(r, train), *at = data ? data : train;
	bool arithmetic = skep_read_given(train, "arithmetic");
	const char *key = data ? "corpus" : NULL;
	if (!skep_read_given(data, "corpus") && (arithmetic || model)) {
		at = arithmetic ? train : model;
		key = arithmetic ? "arithmetic" : "file";
	}
	if (s->model.kind == SKEP_MODEL_TRANSFORMER)
		skep_reader_fail(r, at, key,
			"train.data.corpus: `%s` needs %s, and %.60s is a transformer, which learns from tokens: add `data: "
			"{corpus: text, file: models/text/tinyshakespeare.txt}`, or %s, with which it is timed and not trained",
			corpus, expected, s->model.name,
			arithmetic ? "take `--set train.arithmetic=none`" : "`arithmetic: none`");
	else if (s->model.kind == SKEP_MODEL_RESNET)
		skep_reader_fail(r, at, key,
			"train.data.corpus: `%s` needs %s, and %.60s is a ResNet, which learns from images: add `data: {corpus: "
			"images}`",
			corpus, expected, s->model.name);
	else
		skep_reader_fail(r, at, key, "train.data.corpus: `%s` needs %s, %.60s has %u inputs and %u outputs",
			corpus, expected, s->model.name, s->model.width[0], s->model.width[s->model.layers]);
}

void skep_train_read_data(struct skep_reader *r, const struct skep_yaml_node *train, struct skep_scenario *s)
{
	const struct skep_yaml_node *map = skep_read_map(r, train, "data", false);
	int corpus = skep_read_choice(r, map, "corpus", corpora, QUADRATIC);
	const char *expected;
	s->corpus = corpus == QUADRATIC ? SKEP_CORPUS_QUADRATIC
	            : corpus == IMAGES  ? SKEP_CORPUS_IMAGES
	                                : SKEP_CORPUS_TOKENS;
	if (!r->diag->set && s->arithmetic == SKEP_ARITHMETIC_REAL &&
		!skep_corpus_fits(s->corpus, &s->model, &expected))
		fail_corpus(r, train, map, corpora[corpus], expected, s);
	const bool files = corpus == IMAGES ? skep_read_has(r, map, "file") : corpus != QUADRATIC;
	if (!r->diag->set && files)
		open_tokens(r, map, corpus, s);
	else if (corpus == QUADRATIC && skep_read_has(r, map, "points"))
		s->points = (uint64_t)skep_read_integer(r, map, "points", 1, POINTS_MAX, 0);
	skep_reader_close_map(r, map);
}

/* ---- first parameters ------------------------------------------------------------------------------------------- */

void skep_train_set_sequence(
	struct skep_reader *r, const struct skep_yaml_node *model, uint32_t sequence, struct skep_scenario *s)
{
	if (s->model.architecture == SKEP_ARCHITECTURE_NONE)
		skep_reader_fail(
			r, model, "sequence", "model.sequence: %.60s has no architecture that has one", s->model.name);
	else if (sequence > s->model.context)
		skep_reader_fail(r, model, "sequence",
			"model.sequence: %u tokens are longer than the context of %.60s: expected at most %u", sequence,
			s->model.name, s->model.context);
	else
		skep_model_set_sequence(&s->model, sequence);
}

/* ---- optimizer ---------------------------------------------------------------------------------------------------- */

static float read_float(struct skep_reader *r, const struct skep_yaml_node *map, const char *key, double low,
	double high, double fallback)
{
	return (float)skep_read_number(r, map, key, low, high, fallback);
}

void skep_train_read_optimizer(struct skep_reader *r, const struct skep_yaml_node *train, struct skep_scenario *s)
{
	const double below_1 = 0.999999;
	const struct skep_yaml_node *map = skep_read_map(r, train, "optimizer", false);
	struct skep_optimizer o = {0};
	o.kind = (enum skep_optimizer_kind)skep_read_choice(r, map, "name", optimizers, SKEP_OPTIMIZER_ADAMW);
	bool adam = o.kind == SKEP_OPTIMIZER_ADAMW || o.kind == SKEP_OPTIMIZER_LAMB;
	o.learning_rate = read_float(r, map, "lr", 1e-12, 1e3, adam ? 1e-3 : 1e-2);
	if (adam) {
		o.beta1 = read_float(r, map, "beta1", 0, below_1, 0.9);
		o.beta2 = read_float(r, map, "beta2", 0, below_1, 0.999);
		o.epsilon = read_float(r, map, "eps", 1e-12, 1, o.kind == SKEP_OPTIMIZER_LAMB ? 1e-6 : 1e-8);
	} else {
		o.momentum = read_float(r, map, "momentum", 0, below_1, o.kind == SKEP_OPTIMIZER_NESTEROV ? 0.9 : 0);
	}
	o.weight_decay = read_float(r, map, "weight_decay", 0, 1, adam ? 0.01 : 0);
	o.clip_norm = read_float(r, map, "clip_norm", 0, 1e9, 0);
	s->optimizer = o;
	s->plan.clip = o.clip_norm > 0 && !skep_plan_periodic(&s->plan);
	if (!r->diag->set && o.clip_norm > 0 && skep_plan_periodic(&s->plan) && s->plan.eager)
		skep_reader_fail(r, map, "clip_norm",
			"train.optimizer.clip_norm: not with `sync.method: diloco` and `sync.overlap`: layers make their inner "
			"step before the norm of all gradients is known; leave out either");
	skep_split_read_optimizer(r, map, s);
	if (s->offload != SKEP_OFFLOAD_NONE)
		skep_periodic_refuse(r, map, "train.optimizer", "offload",
			"the state of two optimizers and two sets of parameters are on the device; leave out either",
			s);
	skep_reader_close_map(r, map);
}

void skep_train_read_schedule(struct skep_reader *r, const struct skep_yaml_node *train, struct skep_scenario *s)
{
	const struct skep_yaml_node *map = skep_read_map(r, train, "schedule", false);
	struct skep_rates *rates = &s->optimizer.rates;
	rates->decay = (enum skep_rate_decay)skep_read_choice(r, map, "decay", decays, SKEP_RATE_CONSTANT);
	rates->warmup = (uint32_t)skep_read_integer(r, map, "warmup", 0, INT32_MAX, 0);
	const uint64_t all = skep_plan_steps_before(&s->plan, s->plan.rounds);
	const uint32_t steps = all < INT32_MAX ? (uint32_t)all : INT32_MAX;
	rates->steps = steps;
	if (rates->decay != SKEP_RATE_CONSTANT) {
		rates->steps = (uint32_t)skep_read_integer(r, map, "steps", 1, INT32_MAX, steps);
		rates->least = read_float(r, map, "min_ratio", 0, 1, 0.1);
	}
	rates->by_staleness = (uint32_t)skep_read_integer(r, map, "by_staleness", 0, INT32_MAX, 0);
	skep_reader_close_map(r, map);
	if (!r->diag->set && rates->by_staleness > 0 && !skep_plan_no_flush(&s->plan))
		skep_reader_fail(r, map, "by_staleness",
			"train.schedule.by_staleness: with `schedule.pipeline: %s` no stage is staler than another; leave this "
			"out, or take `pipedream`",
			skep_pipeline_name((uint8_t)s->plan.pipeline));
	if (!r->diag->set && rates->decay != SKEP_RATE_CONSTANT && rates->warmup >= rates->steps)
		skep_reader_fail(r, map, skep_read_has(r, map, "warmup") ? "warmup" : "decay",
			"train.schedule: a warm-up of %u steps leaves nothing of %u steps for the decay; take fewer, such "
			"as train.schedule.warmup=%u, or raise train.until.steps",
			rates->warmup, rates->steps, rates->steps / 10);
}

/* ---- all together ------------------------------------------------------------------------------------------------- */

/* What lets a stage step by itself, or on a part of its vector. */
static void check_tied(struct skep_reader *r, const struct skep_yaml_node *model, const struct skep_scenario *s)
{
	const char *why = skep_plan_no_flush(&s->plan) ? "`schedule.pipeline: pipedream` steps each by itself"
	                  : s->plan.async.on           ? "`sync.method: async` steps each by itself"
	                  : s->plan.gossip             ? "`sync.method: gossip` lets each worker meet another partner"
	                  : skep_plan_fragments(&s->plan) > 1 ? "`sync.fragments` are other parts of each"
	                  : s->plan.sharded                   ? "with `sync.zero` a worker has the sum of a part of it"
	                                                      : NULL;
	if (s->plan.tied > 0 && why)
		skep_reader_fail(r, model, "stages",
			"model.stages: the head of %.60s is tied to its embedding, so the first stage and the last one have to "
			"make the same steps on their copies of the table, and %s; take another one, `stages: 1`, or `%s` in the "
			"model's file",
			s->model.name, why,
			skep_hf_config_is(s->model.path) ? "\"tie_word_embeddings\": false" : "tied: false");
}

/* A virtual worker makes steps by itself, and the sum of these is the step of all: that holds for plain descent. */
static void check_waves(struct skep_reader *r, const struct skep_yaml_node *train, const struct skep_scenario *s)
{
	const struct skep_optimizer *o = &s->optimizer;
	const struct skep_yaml_node *optimizer = skep_read_map(r, train, "optimizer", false),
				    *rates = skep_read_map(r, train, "schedule", false);
	const struct {
		bool asked;
		const struct skep_yaml_node *map;
		const char *key, *why;
	} never[] = {
		{o->kind != SKEP_OPTIMIZER_SGD, optimizer, "name",
			"train.optimizer.name: `sync.method: wsp` adds up the steps of all virtual workers, and they are one "
			"step of the sum with plain descent alone: take `sgd`, or `method: step`"},
		{o->momentum > 0, optimizer, "momentum",
			"train.optimizer.momentum: with `sync.method: wsp` it has to be 0: steps of several virtual workers add "
			"up, and velocities do not; or take `method: step`"},
		{o->weight_decay > 0, optimizer, "weight_decay",
			"train.optimizer.weight_decay: with `sync.method: wsp` it has to be 0: each virtual worker would decay "
			"the parameters for all; or take `method: step`"},
		{o->rates.by_staleness > 0, rates, "by_staleness",
			"train.schedule.by_staleness: with `sync.method: wsp` all stages are as stale; leave this out"},
		{s->arithmetic == SKEP_ARITHMETIC_SCALING_LAW, train, "arithmetic",
			"train.arithmetic: a law knows one staleness, and `sync.method: wsp` has two; take `real` or `none`, or "
			"`method: step`"}};
	for (size_t i = 0; i < sizeof never / sizeof never[0] && !r->diag->set; i++)
		if (never[i].asked)
			skep_reader_fail(r, never[i].map, never[i].key, "%s", never[i].why);
}

void skep_train_check(struct skep_reader *r, const struct skep_yaml_node *model, const struct skep_yaml_node *train,
	const struct skep_scenario *s)
{
	check_tied(r, model, s);
	if (s->plan.clip && skep_plan_no_flush(&s->plan))
		skep_reader_fail(r, skep_read_map(r, train, "optimizer", false), "clip_norm",
			"train.optimizer.clip_norm: with `pipedream` a stage steps as soon as its own gradients are there, so "
			"no worker knows the norm of all of them: leave it out, or take another schedule.pipeline");
	const enum skep_optimizer_kind kind = s->optimizer.kind;
	if (s->plan.no_flush.weights == SKEP_WEIGHTS_PREDICTED && kind != SKEP_OPTIMIZER_SGD &&
		kind != SKEP_OPTIMIZER_ADAMW)
		skep_reader_fail(r, skep_read_map(r, train, "optimizer", false), "name",
			"train.optimizer.name: `schedule.weights: predicted` goes by the velocity of `sgd` or the moments of "
			"`adamw`, not by those of `%s`: take one of the two, or other weights",
			optimizers[kind]);
	if (skep_plan_waves(&s->plan))
		check_waves(r, train, s);
	uint64_t most = 0;
	bool cut = false;
	for (uint32_t stage = 0; stage < s->plan.stages; stage++) {
		most = s->stage[stage].state_bytes > most ? s->stage[stage].state_bytes : most;
		cut = cut || s->stage[stage].state_chunks > 1;
	}
	if (cut && skep_periodic_stepper(s)->kind == SKEP_OPTIMIZER_LAMB)
		skep_reader_fail(r, skep_read_map(r, train, "optimizer", false), "name",
			"train.optimizer.name: `lamb` measures whole tensors, so a newcomer cannot step along on parts "
			"of a stage's state: set sync.state_chunk to %llu MiB or more",
			(unsigned long long)((most >> 20) + 1));
}

const char *skep_train_head_from(const struct skep_scenario *s)
{
	struct skep_weight_names names = {0};
	if (s->weights)
		names = skep_hf_names(&s->model);
	const struct skep_safetensor *tensor = s->weights ? skep_weights_stand_in(s->weights, &names) : NULL;
	return tensor ? tensor->name : NULL;
}
