/* SPDX-License-Identifier: Apache-2.0
 *
 * describe.c - see describe.h.
 */
#include "scenarios/describe/describe.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/layout.h"
#include "base/units.h"
#include "core/collective/collective.h"
#include "core/names.h"
#include "core/schedule/pipelines.h"
#include "core/sums.h"
#include "scenarios/describe/describe_groups.h"
#include "scenarios/outage/outage.h"
#include "scenarios/plan/plan.h"
#include "scenarios/plan/split.h"

struct stage_view {                                      /* one row of the table */
	uint32_t first_layer, layers, workers;           /* of several virtual stages: of the first one, and of all */
	uint64_t parameters, pipeline_bytes, sync_bytes; /* bytes per round, headers included ... */
	uint64_t in_bytes, out_bytes;                    /* ... that its workers receive and send in the pipeline */
	uint64_t forward_ns_least, forward_ns_most, backward_ns_least, backward_ns_most;
	double memory_bytes, memory_least_bytes; /* needed, and what the smallest GPU of the stage has */
};

static void time_range(uint64_t value, uint64_t *least, uint64_t *most)
{
	*least = value < *least ? value : *least;
	*most = value > *most ? value : *most;
}

static struct stage_view view_stage(const struct skep_scenario *s, uint32_t stage)
{
	struct stage_view v = {
		.forward_ns_least = UINT64_MAX, .backward_ns_least = UINT64_MAX, .memory_least_bytes = 1e300};
	uint32_t stages = s->plan.stages, vstages = skep_plan_vstages(&s->plan);
	for (uint32_t vstage = vstages - stages + stage; vstage < vstages; vstage -= stages) { /* until it is below 0 */
		uint32_t layers;
		skep_model_cut(&s->model, vstages, vstage, &v.first_layer, &layers);
		v.layers += layers;
	}
	v.parameters = s->stage[stage].parameters;
	v.memory_bytes = s->memory_bytes[stage];
	for (uint32_t i = 0; i < s->plan.workers; i++) {
		if (s->first_stage_of[i] != stage)
			continue;
		uint32_t gpu = s->topology.machine[i].gpu;
		uint64_t forward_ns = 0, backward_ns = 0;
		for (uint32_t vstage = stage; vstage < vstages; vstage += stages) {
			forward_ns += s->op_time[(size_t)gpu * vstages + vstage].forward_ns;
			backward_ns += s->op_time[(size_t)gpu * vstages + vstage].backward_ns;
		}
		time_range(forward_ns, &v.forward_ns_least, &v.forward_ns_most);
		time_range(backward_ns, &v.backward_ns_least, &v.backward_ns_most);
		if (s->topology.gpu[gpu].memory_bytes < v.memory_least_bytes)
			v.memory_least_bytes = s->topology.gpu[gpu].memory_bytes;
		v.workers++;
	}
	v.sync_bytes = skep_round_reduction_bytes(s, stage, v.workers) + skep_split_round_bytes(s, stage, v.workers) +
	               skep_round_tied_bytes(s, stage, v.workers);
	for (uint32_t i = 1; i < vstages; i++) {
		struct skep_round_visit visit = skep_round_visit_bytes(s, i);
		uint32_t sender = s->plan.routing == SKEP_ROUTING_TRAINER ? 0 : (i - 1) % stages;
		if (stage == i % stages) {
			v.in_bytes += visit.in_bytes;
			v.out_bytes += visit.out_bytes;
		} else if (stage == sender) {
			v.in_bytes += visit.out_bytes;
			v.out_bytes += visit.in_bytes;
		}
		if (stage == (i - 1) % stages)
			v.pipeline_bytes += visit.in_bytes + visit.out_bytes;
	}
	return v;
}

/* What becomes of workers that come late, and of a stage that loses its last one. */
static void print_recovery(const struct skep_scenario *s, FILE *out)
{
	char a[SKEP_TEXT_BYTES], b[SKEP_TEXT_BYTES];
	uint32_t chunks = 0, most = 0;
	for (uint32_t stage = 0; stage < s->plan.stages; stage++) {
		uint32_t n = skep_state_chunks(&s->plan, stage);
		most = n > chunks ? stage : most;
		chunks = n > chunks ? n : chunks;
	}
	fprintf(out,
		"  joins     a newcomer downloads up to %s in %" PRIu32 " chunk%s; a stage without workers waits %s\n",
		skep_bytes_text((double)s->stage[most].state_bytes, a), chunks, skep_plural(chunks),
		skep_time_text(skep_seconds(s->plan.liveness.wait_for_join_ns), b));
	fprintf(out, "            it goes to %s\n",
		skep_plan_fixed(&s->plan)            ? "its own place in its pipeline"
		: s->plan.joins == SKEP_JOINS_RANDOM ? "any stage, needed or not"
		: s->plan.rebalance.period_ns > 0    ? "the most loaded stage"
						     : "the stage with the fewest workers");
	if (s->plan.rebalance.period_ns > 0)
		fprintf(out, "  rebalance every %s one worker may move to the most loaded stage, %s\n",
			skep_time_text(skep_seconds(s->plan.rebalance.period_ns), a),
			s->plan.rebalance.by == SKEP_REBALANCE_BY_QUEUE ? "that with the longest queues"
									: "that with the least rate");
	if (s->plan.checkpoint_every > 0)
		fprintf(out, "            checkpoint every %" PRIu32 " round%s, to %s\n", s->plan.checkpoint_every,
			skep_plural(s->plan.checkpoint_every), s->checkpoint_to);
}

static void print_price(const struct skep_scenario *s, FILE *out)
{
	double usd_per_h;
	if (skep_scenario_price(s, &usd_per_h))
		fprintf(out, "  price     %.6g USD/h %swith %s there%s\n", usd_per_h,
			s->topology.prices > 0 ? "at the start " : "",
			s->plan.scale != NULL ? "the first machines" : "all workers",
			s->topology.prices > 0 ? ", then as the price histories say" : "");
}

static void print_by_stage(const struct skep_plan *plan, uint32_t (*of)(const struct skep_plan *, uint32_t), FILE *out)
{
	for (uint32_t stage = 0; stage < plan->stages; stage++)
		fprintf(out, "%s%" PRIu32, stage > 0 ? ", " : " ", of(plan, stage));
}

/* How many there are, and of which workers. */
static void print_shape(const struct skep_plan *plan, FILE *out)
{
	fprintf(out, "  pipelines %" PRIu32 ", fixed, each of one worker from every stage", skep_plan_pipelines(plan));
	if (!skep_plan_uneven(plan))
		return;
	fprintf(out, "; stages have");
	print_by_stage(plan, skep_plan_replicas, out);
	fprintf(out, " workers,\n            and pipeline p takes worker p mod r of a stage of r");
}

/* What of a round passes while not all of its stages work, if they take equally long. */
static void print_ramp(const struct skep_plan *plan, FILE *out)
{
	uint32_t model_chunks = skep_plan_model_chunks(plan);
	double ramp = (plan->stages - 1.0) / model_chunks;
	if (!skep_plan_uneven(plan))
		fprintf(out, "; of a round of equal %s %.3g %% are fill and drain",
			model_chunks > 1 ? "virtual stages" : "stages",
			100.0 * ramp / (skep_plan_flush_share(plan, 0) + ramp));
	fprintf(out, "\n");
}

static void print_waves(const struct skep_plan *plan, FILE *out)
{
	print_shape(plan, out);
	fprintf(out,
		"\n            pipedream: with wsp each is a virtual worker, a round is a wave of %" PRIu32
		" microbatches of each, and none\n            is flushed; clock distance %" PRIu32 ", up to %" PRIu32
		" rounds are open\n            a worker holds at most",
		skep_plan_wave(plan), plan->no_flush.distance, skep_plan_window(plan));
	print_by_stage(plan, skep_plan_held, out);
	fprintf(out,
		" microbatches by stage, each with a copy of the\n            parameters, which lack at most %" PRIu32
		" microbatches before it of its own virtual worker and\n            %" PRIu32 " of each other one\n",
		skep_plan_local_staleness(plan), skep_plan_global_staleness(plan));
}

static void print_stream(const struct skep_plan *plan, FILE *out)
{
	if (skep_plan_waves(plan)) {
		print_waves(plan, out);
		return;
	}
	print_shape(plan, out);
	fprintf(out,
		"\n            pipedream: a round is "
		"one microbatch of each, and the next ones do not wait for its step;\n            up to %" PRIu32
		" rounds are open\n            a worker holds at most",
		skep_plan_window(plan));
	print_by_stage(plan, skep_plan_held, out);
	fprintf(out, " microbatches by stage, and");
	print_by_stage(plan, skep_plan_versions, out);
	fprintf(out, "\n            versions of its parameters, which lack at most");
	print_by_stage(plan, skep_plan_staleness, out);
	fprintf(out, " steps%s\n", plan->no_flush.weights == SKEP_WEIGHTS_STASHED ? "" : " forwards");
	if (plan->no_flush.weights != SKEP_WEIGHTS_STASHED)
		fprintf(out, "            weights: %s\n", skep_weights_name((uint8_t)plan->no_flush.weights));
	if (plan->no_flush.synchronous > 0)
		fprintf(out,
			"            the first %" PRIu32
			" steps lack none: each microbatch waits for the step before\n",
			plan->no_flush.synchronous);
}

/* Who works with whom, in which order, and what that makes each worker hold. */
static void print_pipelines(const struct skep_scenario *s, FILE *out)
{
	const struct skep_plan *plan = &s->plan;
	uint32_t pipelines = skep_plan_pipelines(plan), share = plan->microbatches / pipelines;
	uint32_t model_chunks = skep_plan_model_chunks(plan);
	static const char *const order[SKEP_PIPELINES] = {
		[SKEP_PIPELINE_GPIPE] = "gpipe: all forwards, then all backwards, then a step",
		[SKEP_PIPELINE_1F1B] = "1f1b: backwards as soon as possible, then a step",
		[SKEP_PIPELINE_INTERLEAVED] =
			"interleaved: 1f1b in virtual stages of the model, which every microbatch passes "
			"one model chunk after the other, then a step"};
	char flushes[64] = "";
	if (skep_plan_no_flush(plan)) {
		print_stream(plan, out);
		return;
	}
	if (skep_plan_flushes(plan) > 1)
		snprintf(flushes, sizeof flushes, ", in %" PRIu32 " flushes of %" PRIu32, skep_plan_flushes(plan),
			share / skep_plan_flushes(plan));
	print_shape(plan, out);
	fprintf(out, "%s with %" PRIu32 " microbatch%s a round%s\n            %s%s\n            a worker holds at most",
		skep_plan_uneven(plan) ? "; each" : " and", share, share == 1 ? "" : "es", flushes,
		order[plan->pipeline],
		plan->barrier ? "; a barrier between all pipelines before any goes backwards" : "");
	for (uint32_t stage = 0; stage < plan->stages; stage++)
		fprintf(out, "%s%" PRIu32, stage > 0 ? ", " : " ", skep_plan_held(plan, stage));
	fprintf(out, " microbatch%s%s by stage", plan->stages == 1 && skep_plan_held(plan, 0) == 1 ? "" : "es",
		model_chunks > 1 ? " in one virtual stage each" : "");
	print_ramp(plan, out);
}

/* Of every virtual stage; times are those of the stage's first worker. */
static void print_vstages(const struct skep_scenario *s, FILE *out)
{
	static const char *const head[] = {"vstage", "stage", "layers", "parameters", "forward", "backward", "to next"};
	const struct skep_plan *plan = &s->plan;
	uint32_t vstages = skep_plan_vstages(plan), first, layers;
	char text[SKEP_TEXT_BYTES];
	struct skep_layout layout;
	fprintf(out, "\n");
	skep_layout_begin(&layout, "rrrrrrr", head);
	for (uint32_t vstage = 0; vstage < vstages; vstage++) {
		uint32_t worker = skep_plan_place(plan, 0, vstage % plan->stages);
		const struct skep_op_time *time =
			&s->op_time[(size_t)s->topology.machine[worker].gpu * vstages + vstage];
		struct skep_round_visit visit = {0};
		if (vstage + 1 < vstages)
			visit = skep_round_visit_bytes(s, vstage + 1);
		skep_model_cut(&s->model, vstages, vstage, &first, &layers);
		skep_layout_cell(&layout, "%" PRIu32, vstage);
		skep_layout_cell(&layout, "%" PRIu32, vstage % plan->stages);
		skep_layout_cell(&layout, "%" PRIu32 "-%" PRIu32, first, first + layers - 1);
		skep_layout_cell(&layout, "%" PRIu64, s->cost[vstage].parameters);
		skep_layout_cell(&layout, "%s", skep_time_text(skep_seconds(time->forward_ns), text));
		skep_layout_cell(&layout, "%s", skep_time_text(skep_seconds(time->backward_ns), text));
		skep_layout_cell(&layout, "%s", skep_bytes_text((double)(visit.in_bytes + visit.out_bytes), text));
	}
	skep_layout_end(&layout, out);
}

static void print_json_vstages(const struct skep_scenario *s, cJSON *root)
{
	uint32_t vstages = skep_plan_vstages(&s->plan), first, layers;
	cJSON *rows = cJSON_AddArrayToObject(root, "vstages");
	for (uint32_t vstage = 0; vstage < vstages; vstage++) {
		cJSON *row = skep_json_add_row(rows);
		skep_model_cut(&s->model, vstages, vstage, &first, &layers);
		cJSON_AddNumberToObject(row, "vstage", vstage);
		cJSON_AddNumberToObject(row, "stage", vstage % s->plan.stages);
		cJSON_AddNumberToObject(row, "first_layer", first);
		cJSON_AddNumberToObject(row, "layers", layers);
		cJSON_AddNumberToObject(row, "parameters", (double)s->cost[vstage].parameters);
	}
}

/* Adds up what moves in a round. */
static void print_stages(const struct skep_scenario *s, FILE *out, uint64_t *pipeline, uint64_t *sync)
{
	static const char *const head[] = {
		"stage", "layers", "workers", "parameters", "forward", "backward", "to next", "reduction"};
	static const char *const head_trainer[] = {
		"stage", "layers", "workers", "parameters", "forward", "backward", "next, owners", "reduction"};
	char text[SKEP_TEXT_BYTES];
	struct skep_layout layout;
	fprintf(out, "\n");
	skep_layout_begin(&layout, "rrrrrrrr", s->plan.routing == SKEP_ROUTING_TRAINER ? head_trainer : head);
	for (uint32_t stage = 0; stage < s->plan.stages; stage++) {
		struct stage_view v = view_stage(s, stage);
		skep_layout_cell(&layout, "%" PRIu32, stage);
		if (skep_plan_model_chunks(&s->plan) > 1)
			skep_layout_cell(&layout, "%" PRIu32 " in %" PRIu32, v.layers, s->plan.model_chunks);
		else
			skep_layout_cell(&layout, "%" PRIu32 "-%" PRIu32, v.first_layer, v.first_layer + v.layers - 1);
		skep_layout_cell(&layout, "%" PRIu32, v.workers);
		skep_layout_cell(&layout, "%" PRIu64, v.parameters);
		skep_layout_cell(&layout, "%s",
			skep_time_range_text(skep_seconds(v.forward_ns_least), skep_seconds(v.forward_ns_most), text));
		skep_layout_cell(&layout, "%s",
			skep_time_range_text(
				skep_seconds(v.backward_ns_least), skep_seconds(v.backward_ns_most), text));
		skep_layout_cell(&layout, "%s", skep_bytes_text((double)v.pipeline_bytes, text));
		skep_layout_cell(&layout, "%s", skep_bytes_text((double)v.sync_bytes, text));
		*pipeline += v.pipeline_bytes;
		*sync += v.sync_bytes;
	}
	skep_layout_end(&layout, out);
}

/* Segments of a worker's part of the stage, or of its first bucket or fragment, in a ring of those that serve it at the start. */
static uint32_t segments_of(const struct skep_scenario *s, uint32_t stage)
{
	uint64_t first, elements;
	uint32_t workers = 0;
	for (uint32_t i = 0; i < s->plan.workers; i++)
		workers += s->first_stage_of[i] == stage;
	skep_plan_range(&s->plan, stage, skep_plan_first_sum(&s->plan, stage), 0, &first, &elements);
	return skep_ring_segments(&s->plan, stage, elements, s->plan.gossip ? 2 : workers);
}

static void print_segments(const struct skep_scenario *s, FILE *out)
{
	uint32_t most = 0;
	for (uint32_t stage = 0; stage < s->plan.stages; stage++)
		most = segments_of(s, stage) > most ? segments_of(s, stage) : most;
	if (most < 2)
		return;
	fprintf(out, "  sync      each worker's part goes round the ring in segments, by stage:");
	for (uint32_t stage = 0; stage < s->plan.stages; stage++)
		fprintf(out, "%s%" PRIu32, stage > 0 ? ", " : " ", segments_of(s, stage));
	fprintf(out, "\n");
}

/* How gradients are summed, and what a plan may make of all this. */
static void print_sums(const struct skep_scenario *s, FILE *out)
{
	const struct skep_plan *plan = &s->plan;
	if (plan->reduction.collective == SKEP_COLLECTIVE_BROADCAST)
		fprintf(out, "  sync      each merge goes from worker to worker of its stage, in %" PRIu32 " chunks\n",
			plan->reduction.chunks);
	else if (plan->reduction.collective != SKEP_COLLECTIVE_RING)
		fprintf(out, "  sync      gradients are summed by %s\n",
			skep_collective_name((uint8_t)plan->reduction.collective));
	else
		print_segments(s, out);
	skep_ring_print(s, out);
	if (plan->reduction.collective == SKEP_COLLECTIVE_TREE ||
		plan->reduction.collective == SKEP_COLLECTIVE_BUTTERFLY ||
		plan->reduction.collective == SKEP_COLLECTIVE_CHAIN)
		fprintf(out, "            in %" PRIu32 " chunks that follow each other\n", plan->reduction.chunks);
	skep_robust_print(s, out);
	if (skep_allocation_searched(s->allocation))
		fprintf(out, "  found     who serves which stage, by the search `%s`\n",
			skep_allocation_name(s->allocation));
	skep_planned_print(s, out);
	if (s->collectives_as_flows)
		fprintf(out, "  sync      simulated with one flow per link for the messages of a reduction\n");
}

/* Both stages' members are each told once. */
static void print_tied(const struct skep_scenario *s, FILE *out)
{
	char bytes[SKEP_TEXT_BYTES];
	uint32_t last = s->plan.stages - 1;
	if (s->plan.tied == 0)
		return;
	uint64_t all = skep_round_tied_bytes(s, 0, skep_plan_serving(s, 0)) +
	               skep_round_tied_bytes(s, last, skep_plan_serving(s, last));
	fprintf(out,
		"  tied      stages 0 and %" PRIu32 " each hold a copy of the embedding's table, %" PRIu64
		" parameters, which is the head too\n"
		"            and tell each other their gradients of it, %s a round; the run fails if either loses its last "
		"worker\n",
		last, s->plan.tied, skep_bytes_text((double)all, bytes));
}

/* Beside what trainer routing recomputes. */
static void print_checkpointing(const struct skep_scenario *s, FILE *out)
{
	uint32_t last = skep_plan_vstages(&s->plan) - 1;
	if (s->checkpoint_activations == SKEP_CHECKPOINTING_NONE)
		return;
	fprintf(out, "            activations are recomputed %s%s\n",
		s->plan.recompute ? "while a stage waits for its gradients" : "in the backward pass",
		skep_plan_recomputes(&s->plan, s->checkpoint_activations, last)
			? ""
			: ", but in the last stage, where it follows the forward pass at once");
}

static void print_losses(const struct skep_plan *plan, FILE *out)
{
	static const char *const text[SKEP_ON_LOSSES] = {
		[SKEP_ON_LOSS_RERUN] = "what a lost worker had computed is computed again: every microbatch counts",
		[SKEP_ON_LOSS_VOID] = "a lost worker voids the step: all throw its gradients away, and begin it again",
		[SKEP_ON_LOSS_WAIT] = "while a stage has fewer workers than at the start all wait for another",
	};
	if (text[plan->on_loss])
		fprintf(out, "  losses    %s\n", text[plan->on_loss]);
}

static void print_schedule(const struct skep_scenario *s, FILE *out)
{
	const struct skep_plan *plan = &s->plan;
	char a[SKEP_TEXT_BYTES];
	fprintf(out,
		"  schedule  %" PRIu32 " sample%s a round in %" PRIu32 " microbatch%s of %" PRIu32 ", %" PRIu32
		" in flight per first-stage worker, %" PRIu32 " round%s\n%s",
		s->batch, skep_plural(s->batch), plan->microbatches, plan->microbatches == 1 ? "" : "es", s->samples,
		plan->in_flight, plan->rounds, skep_plural(plan->rounds),
		plan->routing == SKEP_ROUTING_TRAINER
			? "            all tensors of a microbatch pass through the first-stage worker that issued it\n"
			: "");
	if (s->points > 0)
		fprintf(out, "            of %" PRIu64 " points, which are gone through in %.4g rounds\n", s->points,
			(double)s->points / s->batch);
	if (plan->in_flight_limit)
		fprintf(out, "            so many on the mean of them, by speed; at most %" PRIu32 "\n",
			skep_plan_in_flight_most(plan));
	if (skep_plan_fixed(plan))
		print_pipelines(s, out);
	print_checkpointing(s, out);
	if (plan->liveness.reissue_after_ns > 0)
		fprintf(out, "            asked back and sent to another worker if not begun after %s\n",
			skep_time_text(skep_seconds(plan->liveness.reissue_after_ns), a));
	if (plan->liveness.ban == SKEP_BAN_AT_ONCE)
		fprintf(out, "            and no other microbatch goes to that one for a heartbeat\n");
	print_losses(plan, out);
}

static void print_updates(const struct skep_plan *plan, FILE *out)
{
	if (plan->delayed && !plan->async.on)
		fprintf(out,
			"  updates   delayed: a round works on parameters one %s old while the round before is "
			"reduced%s\n",
			skep_plan_periodic(plan) ? "outer step" : "step",
			skep_plan_periodic(plan) ? "" : "; they are held twice");
	if (plan->async.on && !plan->async.waits)
		fprintf(out,
			"  updates   delayed: a worker goes on while its merge is under way, and keeps what it did "
			"meanwhile\n");
}

/* "int8", or with another block than the usual one "int8 with a scale for 128 numbers". */
static const char *codec_text(enum skep_codec codec, uint32_t block, bool native, char text[SKEP_TEXT_BYTES])
{
	static const char *const codecs[] = {"fp32", "fp16", "int8", "e3m0"};
	if (native)
		return "computed, in 2 bytes";
	if (!skep_codec_blocks(codec) || block == SKEP_CODEC_BLOCK)
		return codecs[codec];
	if (block == SKEP_CODEC_TENSOR)
		snprintf(text, SKEP_TEXT_BYTES, "%s with a scale for each message", codecs[codec]);
	else
		snprintf(text, SKEP_TEXT_BYTES, "%s with a scale for %" PRIu32 " numbers", codecs[codec], block);
	return text;
}

static void print_codecs(const struct skep_scenario *s, FILE *out)
{
	char a[SKEP_TEXT_BYTES], b[SKEP_TEXT_BYTES];
	const struct skep_plan *plan = &s->plan;
	bool encodes = skep_scenario_encodes(s);
	for (uint32_t stage = 0; stage < plan->stages; stage++)
		encodes = encodes || skep_scenario_encodes_sums(s, stage);
	if (!encodes)
		return;
	fprintf(out, "  codecs    activations and their gradients travel as %s, what is reduced as ",
		codec_text(s->activation_codec, s->activation_block, s->native_activations, a));
	for (uint32_t stage = 0; stage < (s->codecs ? plan->stages : 1); stage++) {
		bool native = s->native_gradients && !skep_scenario_encodes_sums(s, stage);
		fprintf(out, "%s%s", stage > 0 ? ", " : "",
			codec_text(skep_plan_codec(plan, stage), plan->reduction.block, native, b));
	}
	fprintf(out, "%s\n", s->codecs ? ", by stage" : "");
}

static void print_text(const struct skep_scenario *s, FILE *out)
{
	char a[SKEP_TEXT_BYTES], b[SKEP_TEXT_BYTES];
	const struct skep_plan *plan = &s->plan;
	char line[SKEP_OUTAGE_LINE];
	uint64_t pipeline = 0, sync = 0;
	fprintf(out, "%s\n", s->name);
	fprintf(out, "  model     %s, %" PRIu32 " layer%s in %" PRIu32 " stage%s\n", s->model.name, s->model.layers,
		skep_plural(s->model.layers), plan->stages, skep_plural(plan->stages));
	fprintf(out, "  cluster   %s, %" PRIu32 " worker%s and the directory\n", s->topology.name, plan->workers,
		skep_plural(plan->workers));
	fprintf(out, "            source: %s\n", s->topology.source);
	skep_network_describe(&s->topology, out);
	skep_uncertain_describe(s, out);
	if (s->extra_latency_s > 0)
		fprintf(out, "            every link is %g ms longer than that\n", 1e3 * s->extra_latency_s);
	if (s->bandwidth_scale != 1)
		fprintf(out, "            every line carries %g times what its file says\n", s->bandwidth_scale);
	if (s->threads > 1)
		fprintf(out, "            skep run gives each worker's CPU %" PRIu32 " threads\n", s->threads);
	skep_compute_print_type(s, out);
	skep_pool_print(s, out);
	skep_traced_print(s, out);
	skep_scaled_print(s, out);
	if (skep_outage_describe(s, line, sizeof line))
		fprintf(out, "  directory %s\n", line);
	if (s->zero == 0)
		print_recovery(s, out);
	print_price(s, out);
	skep_egress_describe(&s->topology, out);
	skep_experts_print(s, out);
	skep_masking_print(s, out);
	skep_images_print(s, out);
	skep_freeze_print(s, out);
	print_schedule(s, out);
	print_updates(plan, out);
	skep_periodic_print(s, out);
	skep_train_print(s, out);
	skep_loss_print(s, out);
	skep_split_print(s, out);
	print_codecs(s, out);
	skep_overlap_print(s, out);
	print_sums(s, out);
	print_tied(s, out);
	print_stages(s, out, &pipeline, &sync);
	if (skep_plan_model_chunks(plan) > 1)
		print_vstages(s, out);
	skep_memory_print(s, out);
	fprintf(out, "\nper round: %s between stages (activations and gradients), %s in reductions\n",
		pipeline > 0 ? skep_bytes_text((double)pipeline, a) : "nothing",
		sync > 0 ? skep_bytes_text((double)sync, b) : "nothing");
	if (skep_plan_periodic(plan))
		fprintf(out, "per step: %s between stages, %s in reductions\n",
			pipeline > 0 ? skep_bytes_text((double)pipeline / skep_plan_mean_steps(plan), a) : "nothing",
			sync > 0 ? skep_bytes_text((double)sync / skep_plan_mean_steps(plan), b) : "nothing");
	skep_compute_print(s, out);
}

static void print_json(const struct skep_scenario *s, const struct skep_described_step *expected, FILE *out)
{
	cJSON *root = cJSON_CreateObject(), *stages = cJSON_AddArrayToObject(root, "stages");
	uint64_t pipeline = 0, sync = 0;
	cJSON_AddStringToObject(root, "scenario", s->name);
	cJSON_AddNumberToObject(root, "seed", (double)s->seed);
	cJSON_AddNumberToObject(root, "workers", s->plan.workers);
	cJSON_AddNumberToObject(root, "rounds", s->plan.rounds);
	cJSON_AddNumberToObject(root, "microbatches", s->plan.microbatches);
	cJSON_AddNumberToObject(root, "samples_per_microbatch", s->samples);
	cJSON_AddBoolToObject(root, "delayed", s->plan.delayed && !s->plan.async.waits);
	cJSON_AddNumberToObject(root, "tied_parameters", (double)s->plan.tied);
	skep_experts_add_json(s, root);
	skep_masking_add_json(s, root);
	skep_images_add_json(s, root);
	skep_freeze_add_json(s, root);
	cJSON_AddStringToObject(root, "collective", skep_collective_name((uint8_t)s->plan.reduction.collective));
	cJSON_AddStringToObject(root, "on_loss", skep_on_loss_name((uint8_t)s->plan.on_loss));
	skep_describe_choices_json(s, root);
	skep_network_describe_json(&s->topology, root);
	skep_uncertain_describe_json(s, root);
	for (uint32_t i = 0; i < s->plan.stages; i++) {
		struct stage_view v = view_stage(s, i);
		cJSON *stage = skep_json_add_row(stages);
		cJSON_AddNumberToObject(stage, "stage", i);
		cJSON_AddNumberToObject(stage, "first_layer", v.first_layer);
		cJSON_AddNumberToObject(stage, "layers", v.layers);
		cJSON_AddNumberToObject(stage, "workers", v.workers);
		cJSON_AddNumberToObject(stage, "parameters", (double)v.parameters);
		cJSON_AddNumberToObject(stage, "trained_parameters", (double)skep_plan_trained(&s->plan, i));
		cJSON_AddNumberToObject(stage, "memory_bytes", v.memory_bytes);
		cJSON_AddNumberToObject(stage, "gpu_memory_bytes", v.memory_least_bytes);
		cJSON_AddNumberToObject(stage, "forward_least_s", (double)v.forward_ns_least * 1e-9);
		cJSON_AddNumberToObject(stage, "backward_least_s", (double)v.backward_ns_least * 1e-9);
		cJSON_AddNumberToObject(stage, "forward_s", (double)v.forward_ns_most * 1e-9);
		cJSON_AddNumberToObject(stage, "backward_s", (double)v.backward_ns_most * 1e-9);
		cJSON_AddNumberToObject(stage, "pipeline_bytes", (double)v.pipeline_bytes);
		cJSON_AddNumberToObject(stage, "pipeline_in_bytes", (double)v.in_bytes);
		cJSON_AddNumberToObject(stage, "pipeline_out_bytes", (double)v.out_bytes);
		cJSON_AddNumberToObject(stage, "sync_bytes", (double)v.sync_bytes);
		cJSON_AddNumberToObject(stage, "ring_segments",
			s->plan.reduction.collective == SKEP_COLLECTIVE_RING ? segments_of(s, i) : 0);
		skep_ring_add_json(s, i, stage);
		pipeline += v.pipeline_bytes;
		sync += v.sync_bytes;
	}
	if (skep_plan_model_chunks(&s->plan) > 1)
		print_json_vstages(s, root);
	skep_memory_add_json(s, root);
	cJSON_AddNumberToObject(root, "bytes_pipeline_per_round", (double)pipeline);
	cJSON_AddNumberToObject(root, "bytes_sync_per_round", (double)sync);
	skep_compute_add_json(s, root);
	skep_describe_step_json(s, expected, root);
	skep_json_print(root, out);
}

void skep_scenario_describe(
	const struct skep_scenario *scenario, const struct skep_described_step *expected, bool json, FILE *out)
{
	if (json) {
		print_json(scenario, expected, out);
		return;
	}
	print_text(scenario, out);
	if (expected)
		skep_describe_step(scenario, expected, out);
}
