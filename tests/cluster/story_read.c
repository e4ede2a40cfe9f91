/* SPDX-License-Identifier: Apache-2.0
 *
 * story_read.c - takes a text story apart: settings and faults, one a line; README.md lists them.
 */
#include "core/schedule/pipelines.h"
#include "tests/cluster/story.h"

#include <stdlib.h>
#include <string.h>

#define WORDS 40u

struct words {
	char *word[WORDS];
	uint32_t count;
};

static bool complain(const struct story *story, const char *what, const char *word)
{
	fprintf(stderr, "%s:%u: %s '%s'\n", story->path, story->line, what, word);
	return false;
}

static bool read_number(const char *word, uint32_t most, uint32_t *ret)
{
	char *end;
	unsigned long value = strtoul(word, &end, 10);
	*ret = (uint32_t)value;
	return *word >= '0' && *word <= '9' && *end == '\0' && value <= most;
}

static bool read_time(const char *word, skep_time *ret)
{
	char *unit;
	double value = strtod(word, &unit);
	double ns = strcmp(unit, "us") == 0 ? 1e3 : strcmp(unit, "ms") == 0 ? 1e6 : strcmp(unit, "s") == 0 ? 1e9 : 0;
	*ret = (skep_time)(value * ns + 0.5);
	return unit != word && ns > 0 && value >= 0 && value < 1e6;
}

static bool read_machine(const struct story *story, const char *word, uint32_t *ret)
{
	if (strcmp(word, "dir") == 0 || strcmp(word, "any") == 0) {
		*ret = word[0] == 'd' ? story->plan.workers : STORY_ANY;
		return true;
	}
	return word[0] == 'w' && story->plan.workers > 0 && read_number(word + 1, story->plan.workers - 1, ret);
}

static bool read_workers(struct story *story, const struct words *words)
{
	struct skep_plan *plan = &story->plan;
	plan->stands_by = story->stands_by;
	plan->workers = 0;
	for (uint32_t i = 1; i < words->count && plan->workers < CLUSTER_WORKERS; i++) {
		uint32_t stage = SKEP_NO_STAGE;
		story->stands_by[plan->workers] = strcmp(words->word[i], "+") == 0;
		if (strspn(words->word[i], "-+") != 1 && !read_number(words->word[i], CLUSTER_STAGES - 1, &stage))
			return false;
		if (stage != SKEP_NO_STAGE && stage >= plan->stages)
			plan->stages = stage + 1;
		story->first_stage_of[plan->workers++] = stage;
	}
	return plan->stages > 0;
}

/* Of each stage, in one of how many rounds it sums. */
static bool read_sums(struct story *story, const struct words *words)
{
	for (uint32_t s = 0; s + 1 < words->count && s < CLUSTER_STAGES; s++)
		if (!read_number(words->word[s + 1], 4, &story->sum_every[s]) || story->sum_every[s] == 0)
			return false;
	story->plan.inner.sum_every = story->sum_every;
	return words->count == story->plan.stages + 1;
}

static bool read_setting(struct story *story, const struct words *words, bool *ret_known)
{
	struct skep_plan *plan = &story->plan;
	const char *key = words->word[0], *value = words->count == 2 ? words->word[1] : "";
	const struct {
		const char *key;
		uint32_t *number;
		skep_time *time;
	} setting[] = {{"candidates", &plan->candidates.count, NULL},
		{"candidate-rounds", &plan->candidates.rounds, NULL}, {"periodic", &plan->inner.steps, NULL},
		{"cycle", &plan->inner.cycle, NULL}, {"fragments", &plan->inner.fragments, NULL},
		{"overlap", &plan->inner.overlap, NULL}, {"microbatches", &plan->microbatches, NULL},
		{"in-flight", &plan->in_flight, NULL}, {"rounds", &plan->rounds, NULL},
		{"model-chunks", &plan->model_chunks, NULL}, {"accumulate", &plan->accumulate, NULL},
		{"samples", &plan->samples, NULL}, {"chunks", &story->chunks, NULL}, {"buckets", &story->buckets, NULL},
		{"sync-chunks", &plan->reduction.chunks, NULL}, {"group-size", &plan->async.group_size, NULL},
		{"tied", &story->tied, NULL}, {"frozen", &story->frozen, NULL},
		{"wait-for-join", NULL, &plan->liveness.wait_for_join_ns},
		{"checkpoint-every", &plan->checkpoint_every, NULL}, {"validate-every", &plan->validation.every, NULL},
		{"validate", &plan->validation.microbatches, NULL}, {"download", NULL, &story->download_ns},
		{"rebalance", NULL, &plan->rebalance.period_ns}, {"heartbeat", NULL, &plan->liveness.heartbeat_ns},
		{"fence-after", NULL, &plan->liveness.fence_after_ns}, {"latency", NULL, &story->latency_ns},
		{"forward", NULL, &story->forward_ns}, {"backward", NULL, &story->backward_ns},
		{"operation", NULL, &story->operation_ns}, {"reissue-timeout", NULL, &plan->liveness.reissue_after_ns},
		{"until", NULL, &story->until_ns}, {"end-at", NULL, &plan->until.end_ns},
		{"distance", &plan->no_flush.distance, NULL}};
	for (size_t i = 0; i < sizeof(setting) / sizeof(*setting); i++) {
		if (strcmp(key, setting[i].key) != 0)
			continue;
		*ret_known = true;
		return setting[i].number ? read_number(value, 1000, setting[i].number)
		                         : read_time(value, setting[i].time);
	}
	return true;
}

static bool read_wiring(struct story *story, const struct words *words)
{
	static const char *const name[] = {"uniform", "throughput", "latency"};
	for (uint32_t i = 0; i < 3 && words->count == 2; i++)
		if (strcmp(words->word[1], name[i]) == 0)
			return story->plan.wiring = (enum skep_wiring)i, true;
	return false;
}

static bool read_routing(struct story *story, const struct words *words)
{
	bool trainer = words->count == 2 && strcmp(words->word[1], "trainer") == 0;
	story->plan.routing = trainer ? SKEP_ROUTING_TRAINER : SKEP_ROUTING_PEER;
	return trainer || (words->count == 2 && strcmp(words->word[1], "peer") == 0);
}

static bool read_rebalance_by(struct story *story, const struct words *words)
{
	bool queue = words->count == 2 && strcmp(words->word[1], "queue") == 0;
	story->plan.rebalance.by = queue ? SKEP_REBALANCE_BY_QUEUE : SKEP_REBALANCE_BY_RATE;
	return queue || (words->count == 2 && strcmp(words->word[1], "rate") == 0);
}

static bool read_ban(struct story *story, const struct words *words)
{
	bool at_once = words->count == 2 && strcmp(words->word[1], "at-once") == 0;
	story->plan.liveness.ban = at_once ? SKEP_BAN_AT_ONCE : SKEP_BAN_DIRECTORY;
	return at_once || (words->count == 2 && strcmp(words->word[1], "directory") == 0);
}

static bool read_collective(struct story *story, const struct words *words)
{
	for (uint8_t kind = 0; kind < SKEP_COLLECTIVES && words->count == 2; kind++)
		if (strcmp(words->word[1], skep_collective_name(kind)) == 0)
			return story->plan.reduction.collective = (enum skep_collective)kind, true;
	return false;
}

/* A number for each worker: the site that it is at, or how fast its link is. */
static bool read_each(struct story *story, const struct words *words, bool sites)
{
	uint32_t number;
	if (words->count != story->plan.workers + 1)
		return false;
	for (uint32_t w = 0; w < story->plan.workers; w++) {
		if (!read_number(words->word[w + 1], 1000, &number))
			return false;
		if (sites)
			story->site_of[w] = number;
		else
			story->link_Bps[w] = number;
	}
	story->plan.reduction.site_of = sites ? story->site_of : story->plan.reduction.site_of;
	story->plan.reduction.link_Bps = sites ? story->plan.reduction.link_Bps : story->link_Bps;
	return true;
}

/* ring W .. : in which order workers follow each other, in every stage. */
static bool read_ring(struct story *story, const struct words *words)
{
	uint32_t workers = story->plan.workers, worker;
	uint64_t named = 0;
	if (words->count != workers + 1)
		return false;
	for (uint32_t i = 0; i < workers; i++) {
		if (!read_machine(story, words->word[i + 1], &worker) || worker >= workers)
			return false;
		named |= UINT64_C(1) << worker;
		for (uint32_t s = 0; s < story->plan.stages; s++)
			story->ring_order[s * workers + i] = worker;
	}
	story->plan.reduction.order = story->ring_order;
	return named == (UINT64_C(1) << workers) - 1;
}

static bool read_pipeline(struct story *story, const struct words *words)
{
	static const char *const name[] = {"swarm", "gpipe", "1f1b", "interleaved", "pipedream"};
	for (uint32_t i = 0; i < sizeof(name) / sizeof(*name) && words->count == 2; i++)
		if (strcmp(words->word[1], name[i]) == 0)
			return story->plan.pipeline = (enum skep_pipeline)i, true;
	return false;
}

/* machines MIN..MAX by TIME: as few as finish by then, decided when a round closes, with a margin of a tenth. */
static bool read_machines(struct story *story, const struct words *words)
{
	struct skep_scale *scale = &story->scale;
	char *to = words->count == 4 ? strstr(words->word[1], "..") : NULL;
	if (!to || strcmp(words->word[2], "by") != 0)
		return false;
	*to = '\0';
	*scale = (struct skep_scale){.policy = SKEP_SCALE_DEADLINE,
		.kinds = 1,
		.kind = &story->kind,
		.kind_of = story->kind_of,
		.period_ns = 1,
		.margin_ppm = 100000};
	story->kind =
		(struct skep_scale_kind){.workers = story->plan.workers, .speed = 1, .start = story->plan.workers};
	story->plan.scale = scale;
	story->plan.stands_by = NULL;
	return read_number(words->word[1], story->plan.workers, &scale->min) &&
	       read_number(to + 2, story->plan.workers, &scale->max) && scale->min > 0 && scale->min <= scale->max &&
	       read_time(words->word[3], &scale->deadline_ns);
}

/* slow X by N */
static bool read_slowness(struct story *story, const struct words *words)
{
	uint32_t who;
	return words->count == 4 && strcmp(words->word[2], "by") == 0 && read_machine(story, words->word[1], &who) &&
	       who < story->plan.workers && read_number(words->word[3], 1000, &story->slowness[who]);
}

/* other-arithmetic X ... */
static bool read_other(struct story *story, const struct words *words)
{
	for (uint32_t i = 1; i < words->count; i++) {
		uint32_t who;
		if (!read_machine(story, words->word[i], &who) || who >= story->plan.workers)
			return false;
		story->other |= 1u << who;
	}
	return words->count > 1;
}

/* WHAT KIND from X to Y WORD TIME */
static bool read_rule(struct story *story, const struct words *words, uint32_t what)
{
	struct rule *rule = &story->rule[story->rules];
	if (words->count != 8 || story->rules == STORY_RULES)
		return false;
	*rule = (struct rule){.kind = transcript_message_kind(words->word[1]), .what = what};
	story->rules++;
	return rule->kind != 0 && strcmp(words->word[2], "from") == 0 && strcmp(words->word[4], "to") == 0 &&
	       read_machine(story, words->word[3], &rule->from) && read_machine(story, words->word[5], &rule->to) &&
	       read_time(words->word[7], &rule->time);
}

/* WHAT X at TIME [by Y | until TIME] */
static bool read_blow(struct story *story, const struct words *words, uint32_t what)
{
	struct blow *blow = &story->blow[story->blows];
	bool pair = what == BLOW_PAUSE || what == BLOW_NOTICE;
	if (story->blows == STORY_FAULTS || words->count < 4 || (pair && words->count != 6))
		return false;
	*blow = (struct blow){.what = what, .by = story->plan.workers};
	story->blows++;
	if (!read_machine(story, words->word[1], &blow->who) || strcmp(words->word[2], "at") != 0 ||
		!read_time(words->word[3], &blow->at) || (blow->who >= story->plan.workers && what != BLOW_PAUSE))
		return false;
	if (words->count == 4)
		return true;
	if (what == BLOW_SUSPECT)
		return words->count == 6 && read_machine(story, words->word[5], &blow->by);
	return pair && strcmp(words->word[4], "until") == 0 && read_time(words->word[5], &blow->until);
}

static bool read_visibility(struct story *story, const struct words *words)
{
	bool hide = strcmp(words->word[0], "hide") == 0;
	for (uint32_t i = 1; i < words->count; i++) {
		uint8_t kind = transcript_message_kind(words->word[i]);
		if (strcmp(words->word[i], "operations") == 0)
			story->operations = !hide;
		else if (kind == 0)
			return false;
		story->hidden[kind] = hide;
	}
	return words->count > 1;
}

static bool read_flag(struct skep_plan *plan, const char *key)
{
	const struct {
		const char *key;
		bool *flag;
	} flag[] = {{"clip", &plan->clip}, {"recompute", &plan->recompute}, {"barrier", &plan->barrier},
		{"gather", &plan->reduction.gather}, {"eager", &plan->eager}, {"by-share", &plan->inner.by_share},
		{"deadline", &plan->inner.deadline}, {"fixed-steps", &plan->inner.fixed}, {"waits", &plan->async.waits},
		{"gossip", &plan->gossip}, {"sharded", &plan->sharded}};
	for (size_t i = 0; i < sizeof flag / sizeof *flag; i++)
		if (strcmp(key, flag[i].key) == 0)
			return *flag[i].flag = true;
	return false;
}

static bool read_line(struct story *story, const struct words *words)
{
	static const char *const rule[] = {"duplicate", "delay", "return"};
	static const char *const blow[] = {"kill", "restart", "suspect", "pause", "notice", "start", "flip"};
	static const struct {
		const char *key;
		bool (*read)(struct story *story, const struct words *words);
	} reader[] = {{"workers", read_workers}, {"sums", read_sums}, {"hide", read_visibility},
		{"show", read_visibility}, {"wiring", read_wiring}, {"routing", read_routing},
		{"collective", read_collective}, {"pipeline", read_pipeline}, {"ring", read_ring},
		{"slow", read_slowness}, {"machines", read_machines}, {"rebalance-by", read_rebalance_by},
		{"ban", read_ban}, {"other-arithmetic", read_other}};
	const char *key = words->word[0];
	bool known = read_flag(&story->plan, key), good = known && words->count == 1;
	if (strcmp(key, "delayed") == 0)
		known = true, good = story->plan.delayed = words->count == 1;
	else if (strcmp(key, "async") == 0)
		known = true, good = story->plan.async.on = story->plan.delayed = words->count == 1,
		story->plan.reduction.collective = SKEP_COLLECTIVE_BROADCAST;
	else if (strcmp(key, "waves") == 0)
		known = true, good = words->count == 1, story->plan.no_flush.weights = SKEP_WEIGHTS_WAVES;
	else if (strcmp(key, "rerun") == 0)
		known = true, good = words->count == 1, story->plan.on_loss = SKEP_ON_LOSS_RERUN;
	else if (strcmp(key, "void") == 0)
		known = true, good = words->count == 1, story->plan.on_loss = SKEP_ON_LOSS_VOID;
	else if (strcmp(key, "wait") == 0)
		known = true, good = words->count == 1, story->plan.on_loss = SKEP_ON_LOSS_WAIT;
	else if (strcmp(key, "sites") == 0 || strcmp(key, "links") == 0)
		known = true, good = read_each(story, words, key[0] == 's');
	for (size_t i = 0; i < sizeof reader / sizeof *reader; i++)
		if (strcmp(key, reader[i].key) == 0)
			known = true, good = reader[i].read(story, words);
	for (uint32_t i = 0; i < 3; i++)
		if (strcmp(key, rule[i]) == 0)
			known = true, good = read_rule(story, words, i);
	for (uint32_t i = 0; i < sizeof blow / sizeof *blow; i++)
		if (strcmp(key, blow[i]) == 0)
			known = true, good = read_blow(story, words, i);
	if (!known)
		good = read_setting(story, words, &known);
	if (!known)
		return complain(story, "no such word:", key);
	return good || complain(story, "cannot be used here:", key);
}

static struct words split(char *line)
{
	struct words words = {.count = 0};
	for (char *word = strtok(line, " \t\n"); word && words.count < WORDS; word = strtok(NULL, " \t\n"))
		words.word[words.count++] = word;
	return words;
}

/* Fixed pipelines: as many workers in each stage, but with 1F1B and PipeDream, and as many microbatches for each pipeline; the
 * rest follows. */
static bool fix_pipelines(struct story *story)
{
	struct skep_plan *plan = &story->plan;
	uint32_t pipelines = skep_plan_pipelines(plan);
	if (pipelines == 0 || (skep_plan_uneven(plan) && !skep_pipeline_may_be_uneven(plan->pipeline)))
		return false;
	plan->wiring = SKEP_WIRING_FIXED;
	plan->in_flight = skep_plan_fixed_in_flight(plan);
	bool model_chunks = plan->pipeline == SKEP_PIPELINE_INTERLEAVED;
	if (skep_plan_flushes(plan) > 1 &&
		(skep_plan_share(plan, 0) % plan->accumulate > 0 || plan->barrier || skep_plan_no_flush(plan)))
		return false;
	if (model_chunks != (plan->model_chunks > 1) ||
		(model_chunks && (plan->stages < 2 || skep_plan_flush_share(plan, 0) % plan->stages > 0)) ||
		skep_plan_vstages(plan) > CLUSTER_VSTAGES || plan->model_chunks > plan->stage[0].parameters)
		return false;
	uint32_t placed = 0;
	for (uint32_t s = 0; s < plan->stages; s++)
		placed += skep_plan_replicas(plan, s);
	return plan->workers == placed && plan->microbatches % pipelines == 0 && !plan->delayed &&
	       (!skep_plan_no_flush(plan) || (plan->microbatches == pipelines) != skep_plan_waves(plan)) &&
	       (!skep_plan_waves(plan) || (skep_plan_no_flush(plan) && !skep_plan_uneven(plan))) &&
	       (!plan->barrier || plan->pipeline == SKEP_PIPELINE_GPIPE) &&
	       (!plan->recompute || plan->pipeline == SKEP_PIPELINE_GPIPE) && plan->rebalance.period_ns == 0 &&
	       plan->liveness.reissue_after_ns == 0 && plan->routing == SKEP_ROUTING_PEER;
}

/* Equal ones, from the end. */
static void cut_buckets(struct story *story)
{
	uint64_t parameters = story->stage[0].parameters, count;
	uint32_t buckets = story->buckets < parameters ? story->buckets : (uint32_t)parameters;
	for (uint32_t b = 0; b < buckets; b++)
		skep_chunk_range(parameters, buckets - 1 - b, buckets, &story->bucket_first[b], &count);
	for (uint32_t s = 0; s < CLUSTER_STAGES; s++) {
		story->stage[s].buckets = buckets;
		story->stage[s].bucket_first = story->bucket_first;
	}
}

/* Of the first `frozen` stages nothing is trained. False: none would be. */
static bool freeze(struct story *story)
{
	story->plan.frozen_vstages = story->frozen;
	for (uint32_t s = 0; s < story->frozen && s < story->plan.stages; s++)
		story->stage[s].frozen = story->stage[s].parameters;
	return story->frozen == 0 || (story->frozen < story->plan.stages && story->plan.model_chunks < 2 &&
					     story->plan.routing == SKEP_ROUTING_PEER);
}

static void set_defaults(struct story *story, const char *path)
{
	memset(story, 0, sizeof(*story));
	story->path = path;
	for (uint32_t s = 0; s < CLUSTER_STAGES; s++)
		story->stage[s] =
			(struct skep_stage_plan){.parameters = 4, .activation_bytes = 400, .state_bytes = 1000};
	for (uint32_t w = 0; w < CLUSTER_WORKERS; w++)
		story->slowness[w] = 1;
	story->plan = (struct skep_plan){.microbatches = 2,
		.in_flight = 1,
		.samples = 1,
		.rounds = 1,
		.seed = 1,
		.liveness.heartbeat_ns = 100000000,
		.liveness.fence_after_ns = 300000000,
		.until.target_loss_nano = INT64_MIN,
		.stage = story->stage,
		.first_stage_of = story->first_stage_of};
	story->latency_ns = 1000000;
	story->forward_ns = 2000000;
	story->backward_ns = 4000000;
	story->operation_ns = 500000;
	story->until_ns = UINT64_C(60000000000);
	story->hidden[SKEP_MESSAGE_HEARTBEAT] = story->hidden[SKEP_MESSAGE_LOAD] = true;
}

bool story_read(struct story *story, const char *path, char *text)
{
	set_defaults(story, path);
	for (char *line = text; *line;) {
		char *end = strchr(line, '\n');
		char *next = end ? end + 1 : line + strlen(line);
		if (end)
			*end = '\0';
		story->line++;
		struct words words = split(line);
		if (words.count > 0 && words.word[0][0] != '#' && !read_line(story, &words))
			return false;
		line = next;
	}
	const struct skep_plan *plan = &story->plan;
	uint32_t served = 0;
	cut_buckets(story);
	story->plan.tied = story->tied;
	for (uint32_t s = 0; s < plan->stages && story->chunks > 0; s++) {
		story->stage[s].state_chunks = story->chunks;
		story->stage[s].state_bytes = story->chunks * SKEP_STATE_HEADER_BYTES + 12 * story->stage[s].parameters;
	}
	for (uint32_t w = 0; w < plan->workers; w++)
		if (story->first_stage_of[w] != SKEP_NO_STAGE)
			served |= 1u << story->first_stage_of[w];
	if (plan->stages == 0 || served != (1u << plan->stages) - 1 || plan->rounds == 0 ||
		plan->rounds >= CLUSTER_ROUNDS || plan->microbatches == 0 || plan->in_flight == 0 ||
		plan->samples == 0 || story->chunks > story->stage[0].parameters ||
		plan->liveness.fence_after_ns < 2 * plan->liveness.heartbeat_ns)
		return complain(
			story, "the story lacks a usable plan", "a worker for each stage, rounds, microbatches");
	if (!freeze(story) || (plan->scale && skep_plan_fixed(plan)))
		return complain(story, "cannot be, in this plan:", "frozen stages, or machines that it asks for");
	if (skep_plan_fixed(plan) && !fix_pipelines(story))
		return complain(story, "fixed pipelines need", "equal stages, equal shares, and nothing of a swarm");
	return true;
}
