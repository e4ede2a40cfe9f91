/* SPDX-License-Identifier: Apache-2.0
 *
 * story.c - runs text stories: a small swarm, a few faults at given times, and what must come of it.
 *
 *     story FILE...              exit status 0 if every transcript is as expected
 *     story --rewrite FILE...    write the transcripts into the files (and read the difference before you commit it)
 *
 * A story is prose (lines that begin with #), settings and faults, a line of four dashes, and the transcript; README.md.
 */
#include "tests/cluster/transcript.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS 40u
#define RULES 16u
#define FAULTS 32u
#define ANYBODY (SKEP_NO_INDEX - 1u)

struct rule { /* about the first message that fits */
	uint8_t kind;
	uint32_t from, to;
	enum { RULE_DUPLICATE, RULE_DELAY, RULE_RETURN } what;
	skep_time time;
	bool used;
};

struct blow { /* a fault at a given time */
	enum { BLOW_KILL, BLOW_RESTART, BLOW_SUSPECT, BLOW_PAUSE, BLOW_NOTICE, BLOW_START } what;
	uint32_t who, by;
	skep_time at, until;
};

struct story {
	const char *path;
	unsigned line;
	struct skep_plan plan;
	struct skep_stage_plan stage[CLUSTER_STAGES];
	uint32_t first_stage_of[CLUSTER_WORKERS];
	bool stands_by[CLUSTER_WORKERS];
	skep_time download_ns; /* a STATE takes so much longer than other messages */
	uint32_t chunks, buckets, tied;
	uint32_t site_of[CLUSTER_WORKERS];
	uint64_t link_Bps[CLUSTER_WORKERS];
	uint64_t bucket_first[CLUSTER_ELEMENTS]; /* of every stage */
	skep_time latency_ns, forward_ns, backward_ns, operation_ns, until_ns;
	uint32_t slowness[CLUSTER_WORKERS];
	struct rule rule[RULES];
	struct blow blow[FAULTS];
	uint32_t rules, blows;
	bool hidden[SKEP_MESSAGE_KINDS], operations;
	FILE *out;
};

struct words {
	char *word[WORDS];
	uint32_t count;
};

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static bool complain(const struct story *story, const char *what, const char *word)
{
	fprintf(stderr, "%s:%u: %s '%s'\n", story->path, story->line, what, word);
	return false;
}

static bool read_number(const char *word, uint32_t most, uint32_t *ret)
{
	char *end;
	unsigned long value = strtoul(word, &end, 10);
	return *ret = (uint32_t)value, *word >= '0' && *word <= '9' && *end == '\0' && value <= most;
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
		*ret = word[0] == 'd' ? story->plan.workers : ANYBODY;
		return true;
	}
	return word[0] == 'w' && story->plan.workers > 0 && read_number(word + 1, story->plan.workers - 1, ret);
}

static bool read_workers(struct story *story, const struct words *words)
{
	struct skep_plan *plan = &story->plan;
	plan->stands_by = story->stands_by;
	for (uint32_t i = plan->workers = 0; ++i < words->count && plan->workers < CLUSTER_WORKERS;) {
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

static bool read_setting(struct story *story, const struct words *words, bool *ret_known)
{
	struct skep_plan *plan = &story->plan;
	const char *key = words->word[0], *value = words->count == 2 ? words->word[1] : "";
	const struct {
		const char *key;
		uint32_t *number;
		skep_time *time;
	} setting[] = {{"candidates", &plan->candidates, NULL}, {"trial", &plan->trial_rounds, NULL},
		{"periodic", &plan->inner_steps, NULL}, {"fragments", &plan->fragments, NULL},
		{"overlap", &plan->inner_overlap, NULL}, {"microbatches", &plan->microbatches, NULL},
		{"in-flight", &plan->in_flight, NULL}, {"rounds", &plan->rounds, NULL}, {"slices", &plan->laps, NULL},
		{"samples", &plan->samples, NULL}, {"chunks", &story->chunks, NULL}, {"buckets", &story->buckets, NULL},
		{"sync-chunks", &plan->sync_chunks, NULL}, {"parts", &plan->merge_parts, NULL},
		{"tied", &story->tied, NULL}, {"wait-for-join", NULL, &plan->wait_for_join_ns},
		{"checkpoint-every", &plan->checkpoint_every, NULL}, {"validate-every", &plan->validate_every, NULL},
		{"validate", &plan->validate_microbatches, NULL}, {"download", NULL, &story->download_ns},
		{"rebalance", NULL, &plan->rebalance_ns}, {"heartbeat", NULL, &plan->heartbeat_ns},
		{"fence-after", NULL, &plan->fence_after_ns}, {"latency", NULL, &story->latency_ns},
		{"forward", NULL, &story->forward_ns}, {"backward", NULL, &story->backward_ns},
		{"operation", NULL, &story->operation_ns}, {"patience", NULL, &plan->patience_ns},
		{"until", NULL, &story->until_ns}};
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

static bool read_collective(struct story *story, const struct words *words)
{
	for (uint8_t kind = 0; kind < SKEP_COLLECTIVES && words->count == 2; kind++)
		if (strcmp(words->word[1], skep_collective_name(kind)) == 0)
			return story->plan.collective = (enum skep_collective)kind, true;
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
	story->plan.site_of = sites ? story->site_of : story->plan.site_of;
	story->plan.link_Bps = sites ? story->plan.link_Bps : story->link_Bps;
	return true;
}

static bool read_pipeline(struct story *story, const struct words *words)
{
	static const char *const name[] = {"swarm", "gpipe", "1f1b", "interleaved", "pipedream"};
	for (uint32_t i = 0; i < sizeof(name) / sizeof(*name) && words->count == 2; i++)
		if (strcmp(words->word[1], name[i]) == 0)
			return story->plan.pipeline = (enum skep_pipeline)i, true;
	return false;
}

/* slow X by N */
static bool read_slowness(struct story *story, const struct words *words)
{
	uint32_t who;
	return words->count == 4 && strcmp(words->word[2], "by") == 0 && read_machine(story, words->word[1], &who) &&
	       who < story->plan.workers && read_number(words->word[3], 1000, &story->slowness[who]);
}

/* WHAT KIND from X to Y WORD TIME */
static bool read_rule(struct story *story, const struct words *words, uint32_t what)
{
	struct rule *rule = &story->rule[story->rules];
	if (words->count != 8 || story->rules == RULES)
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
	if (story->blows == FAULTS || words->count < 4 || (pair && words->count != 6))
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
		{"gather", &plan->gather}, {"promise", &plan->promise}, {"by-share", &plan->inner_by_share},
		{"waits", &plan->merge_waits}};
	for (size_t i = 0; i < sizeof flag / sizeof *flag; i++)
		if (strcmp(key, flag[i].key) == 0)
			return *flag[i].flag = true;
	return false;
}

static bool read_line(struct story *story, const struct words *words)
{
	static const char *const rule[] = {"duplicate", "delay", "return"};
	static const char *const blow[] = {"kill", "restart", "suspect", "pause", "notice", "start"};
	static const struct {
		const char *key;
		bool (*read)(struct story *story, const struct words *words);
	} reader[] = {{"workers", read_workers}, {"hide", read_visibility}, {"show", read_visibility},
		{"wiring", read_wiring}, {"routing", read_routing}, {"collective", read_collective},
		{"pipeline", read_pipeline}, {"slow", read_slowness}};
	const char *key = words->word[0];
	bool known = read_flag(&story->plan, key), good = known && words->count == 1;
	if (strcmp(key, "delayed") == 0)
		known = true, good = story->plan.delayed = words->count == 1;
	else if (strcmp(key, "async") == 0)
		known = true, good = story->plan.async = story->plan.delayed = words->count == 1,
		story->plan.collective = SKEP_COLLECTIVE_CHAIN;
	else if (strcmp(key, "rerun") == 0)
		known = true, good = words->count == 1, story->plan.on_loss = SKEP_ON_LOSS_RERUN;
	else if (strcmp(key, "sites") == 0 || strcmp(key, "links") == 0)
		known = true, good = read_each(story, words, key[0] == 's');
	for (size_t i = 0; i < sizeof reader / sizeof *reader; i++)
		if (strcmp(key, reader[i].key) == 0)
			known = true, good = reader[i].read(story, words);
	for (uint32_t i = 0; i < 3; i++)
		if (strcmp(key, rule[i]) == 0)
			known = true, good = read_rule(story, words, i);
	for (uint32_t i = 0; i < 6; i++)
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

/* Fixed pipelines: as many workers in each stage, as many microbatches for each of them; the rest follows. */
static bool fix_pipelines(struct story *story)
{
	struct skep_plan *plan = &story->plan;
	uint32_t pipelines = skep_plan_pipelines(plan);
	for (uint32_t s = 0; s < plan->stages; s++)
		if (skep_plan_place(plan, pipelines - 1, s) == SKEP_NO_INDEX)
			return false;
	plan->wiring = SKEP_WIRING_FIXED;
	plan->in_flight = skep_plan_fixed_in_flight(plan);
	bool laps = plan->pipeline == SKEP_PIPELINE_INTERLEAVED;
	if (laps != (plan->laps > 1) || (laps && (plan->stages < 2 || skep_plan_share(plan) % plan->stages > 0)) ||
		skep_plan_slices(plan) > CLUSTER_SLICES || plan->laps > plan->stage[0].parameters)
		return false;
	return plan->workers == pipelines * plan->stages && plan->microbatches % pipelines == 0 && !plan->delayed &&
	       (!skep_plan_streams(plan) || plan->microbatches == pipelines) &&
	       (!plan->barrier || plan->pipeline == SKEP_PIPELINE_GPIPE) &&
	       (!plan->recompute || plan->pipeline == SKEP_PIPELINE_GPIPE) && plan->rebalance_ns == 0 &&
	       plan->patience_ns == 0 && plan->routing == SKEP_ROUTING_PEER;
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

static bool read_story(struct story *story, char *text)
{
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
		plan->fence_after_ns < 2 * plan->heartbeat_ns)
		return complain(
			story, "the story lacks a usable plan", "a worker for each stage, rounds, microbatches");
	if (skep_plan_fixed(plan) && !fix_pipelines(story))
		return complain(story, "fixed pipelines need", "equal stages, equal shares, and nothing of a swarm");
	return true;
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
		.heartbeat_ns = 100000000,
		.fence_after_ns = 300000000,
		.target_loss_nano = INT64_MIN,
		.stage = story->stage,
		.first_stage_of = story->first_stage_of};
	story->latency_ns = 1000000;
	story->forward_ns = 2000000;
	story->backward_ns = 4000000;
	story->operation_ns = 500000;
	story->until_ns = UINT64_C(60000000000);
	story->hidden[SKEP_MESSAGE_HEARTBEAT] = story->hidden[SKEP_MESSAGE_LOAD] = true;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static struct fate fate_of(void *context, skep_time now, const struct skep_message *m)
{
	struct story *story = context;
	struct fate fate = {.delay_ns = story->latency_ns, .dead = DEAD_LOSES};
	if (m->kind == SKEP_MESSAGE_STATE)
		fate.delay_ns += story->download_ns;
	(void)now;
	for (uint32_t i = 0; i < story->rules; i++) {
		struct rule *rule = &story->rule[i];
		bool fits = rule->kind == m->kind && (rule->from == ANYBODY || rule->from == m->from.index) &&
		            (rule->to == ANYBODY || rule->to == m->to.index);
		if (rule->used || !fits)
			continue;
		rule->used = true;
		if (rule->what == RULE_DUPLICATE) {
			fate.copies = 1;
			fate.copy_delay_ns[0] = fate.delay_ns + rule->time;
		} else if (rule->what == RULE_DELAY) {
			fate.delay_ns += rule->time;
		} else {
			fate.failed = true;
			fate.delay_ns = rule->time;
		}
		break;
	}
	return fate;
}

static skep_time op_time(void *context, skep_time now, uint32_t worker, const struct skep_op *op)
{
	const struct story *story = context;
	(void)now;
	bool forward = op->kind == SKEP_OP_FORWARD || op->kind == SKEP_OP_RECOMPUTE;
	skep_time time_ns = forward                        ? story->forward_ns
	                    : op->kind == SKEP_OP_BACKWARD ? story->backward_ns
	                                                   : story->operation_ns;
	if (op->kind == SKEP_OP_BACKWARD && story->plan.recompute && !op->recomputed)
		time_ns += story->forward_ns;
	return time_ns * story->slowness[worker];
}

static void tell(void *context, const struct trace *trace)
{
	struct story *story = context;
	char line[TRANSCRIPT_LINE];
	if (trace->what == TRACE_SEND || trace->what == TRACE_RUN || (trace->what == TRACE_DONE && !story->operations))
		return;
	if (trace->message && story->hidden[trace->message->kind])
		return;
	transcript_line(&story->plan, trace, line);
	fprintf(story->out, "%s\n", line);
}

static void strike(struct cluster *cluster, const struct blow *blow)
{
	switch (blow->what) {
	case BLOW_KILL:
		cluster_kill(cluster, blow->who, blow->at, false);
		return;
	case BLOW_RESTART:
		cluster_restart(cluster, blow->who, blow->at);
		return;
	case BLOW_SUSPECT:
		cluster_suspect(cluster, blow->by, blow->who, blow->at, false);
		return;
	case BLOW_PAUSE:
		cluster_pause(cluster, blow->who, blow->at, blow->until);
		return;
	case BLOW_NOTICE:
		cluster_notice(cluster, blow->who, blow->at, blow->until, false);
		return;
	case BLOW_START:
		cluster_start_at(cluster, blow->who, blow->at);
		return;
	}
}

static void run_story(struct story *story, struct cluster *cluster)
{
	struct verdict verdict;
	struct setup setup = {.machine = &machine_skep,
		.plan = &story->plan,
		.context = story,
		.fate = fate_of,
		.op_time = op_time,
		.trace = tell,
		.trace_context = story,
		.end_ns = story->until_ns,
		.events_limit = 100000};
	cluster_begin(cluster, &setup, &verdict);
	for (uint32_t i = 0; i < story->blows; i++)
		strike(cluster, &story->blow[i]);
	struct result result = cluster_run(cluster);
	if (verdict.broken)
		fprintf(story->out, "BROKEN %s: %s\n", verdict.invariant, verdict.text);
	else
		fprintf(story->out,
			"%s: %llu rounds, %llu microbatches issued; in the stages %llu counted, %llu lost\n",
			result.outcome == SKEP_DONE ? "done" : "failed", (unsigned long long)result.totals.rounds,
			(unsigned long long)result.totals.issued, (unsigned long long)result.totals.counted,
			(unsigned long long)result.totals.lost);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static char *read_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	char *text = NULL;
	size_t size = 0, used = 0;
	if (!file) {
		perror(path);
		return NULL;
	}
	do {
		size = size * 2 + 4096;
		text = realloc(text, size);
		assert(text);
		used += fread(text + used, 1, size - 1 - used, file);
	} while (used == size - 1);
	text[used] = '\0';
	fclose(file);
	return text;
}

static bool compare(const char *path, const char *expected, const char *got)
{
	unsigned line = 1;
	if (strcmp(expected, got) == 0)
		return true;
	while (*expected && *expected == *got) {
		const char *end = strchr(expected, '\n');
		size_t length = end ? (size_t)(end - expected) + 1 : strlen(expected);
		if (strncmp(expected, got, length) != 0)
			break;
		expected += length;
		got += length;
		line++;
	}
	fprintf(stderr, "%s: the transcript differs from line %u on\n  expected: %.*s\n  got:      %.*s\n", path, line,
		(int)strcspn(expected, "\n"), expected, (int)strcspn(got, "\n"), got);
	return false;
}

static bool rewrite(const char *path, const char *head, size_t head_length, const char *transcript)
{
	FILE *file = fopen(path, "wb");
	bool good = file && fwrite(head, 1, head_length, file) == head_length && fputs(transcript, file) >= 0;
	if (file && fclose(file) != 0)
		good = false;
	if (!good)
		perror(path);
	return good;
}

static bool do_story(struct cluster *cluster, const char *path, bool write)
{
	static const char ruler[] = "\n----\n";
	struct story story;
	char *text = read_file(path), *transcript = NULL;
	size_t length = 0;
	char *end = text ? strstr(text, ruler) : NULL;
	if (!end) {
		fprintf(stderr, "%s: no line of four dashes\n", path);
		free(text);
		return false;
	}
	size_t head_length = (size_t)(end - text) + strlen(ruler);
	char *head = strndup(text, head_length);
	assert(head);
	end[1] = '\0';
	set_defaults(&story, path);
	bool good = read_story(&story, text);
	if (good) {
		story.out = open_memstream(&transcript, &length);
		assert(story.out);
		run_story(&story, cluster);
		fclose(story.out);
		good = write ? rewrite(path, head, head_length, transcript)
		             : compare(path, text + head_length, transcript);
	}
	free(transcript);
	free(head);
	free(text);
	return good;
}

int main(int argc, char **argv)
{
	bool write = argc > 1 && strcmp(argv[1], "--rewrite") == 0;
	int passed = 0, stories = 0;
	struct cluster *cluster = cluster_create();
	for (int i = write ? 2 : 1; i < argc; i++, stories++)
		passed += do_story(cluster, argv[i], write);
	cluster_destroy(cluster);
	printf("%d of %d stories %s\n", passed, stories, write ? "written" : "as expected");
	return stories == 0 ? 2 : passed == stories ? 0 : 1;
}
