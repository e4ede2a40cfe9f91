/* SPDX-License-Identifier: Apache-2.0
 *
 * sync.c - reads how the workers of a stage agree, and how tensors are encoded on their way: see groups.h. It refuses what the
 * core cannot do: a reduction with more members than a member can know, or one whose members would end with other bits.
 */
#include "scenarios/read/groups.h"

#include <stdlib.h>
#include <string.h>

#include "core/collective/collective.h"
#include "core/names.h"
#include "topologies/ring/ring.h"

static const enum skep_collective OFFERED[] = {SKEP_COLLECTIVE_RING, SKEP_COLLECTIVE_PARAMETER_SERVER,
	SKEP_COLLECTIVE_REDUCE_BROADCAST, SKEP_COLLECTIVE_ALL_TO_ALL, SKEP_COLLECTIVE_HALVING_DOUBLING,
	SKEP_COLLECTIVE_TREE, SKEP_COLLECTIVE_HIERARCHICAL, SKEP_COLLECTIVE_BUTTERFLY, SKEP_COLLECTIVE_CHAIN};
enum { OFFERS = sizeof OFFERED / sizeof OFFERED[0] };

static uint32_t read_block(struct skep_reader *r, const struct skep_yaml_node *map, const char *name)
{
	const char *text = skep_read_string(r, map, "compression_block", NULL);
	char *end = NULL;
	if (r->diag->set)
		return 0;
	if (strcmp(text, "tensor") == 0)
		return SKEP_CODEC_TENSOR;
	long long block = strtoll(text, &end, 10);
	if (end == text || *end != '\0' || block < SKEP_CODEC_BLOCK_STEP || block > SKEP_CODEC_BLOCK_MAX ||
		block % SKEP_CODEC_BLOCK_STEP != 0)
		skep_reader_fail(r, map, "compression_block",
			"%s.compression_block: expected a multiple of %u from %u to %u, or `tensor` for one scale in each "
			"message",
			name, SKEP_CODEC_BLOCK_STEP, SKEP_CODEC_BLOCK_STEP, SKEP_CODEC_BLOCK_MAX);
	return r->diag->set ? 0 : (uint32_t)block;
}

/* By enum skep_codec. Activations are wanted with more than 4 bits. */
static const char *const summed[] = {"none", "fp16", "int8", "e3m0", NULL}, *const passed[] = {
										    "none", "fp16", "int8", NULL};

/* After the codec, which has scales if `blocks`. */
static uint32_t read_block_of(
	struct skep_reader *r, const struct skep_yaml_node *map, const char *name, bool blocks, const char *codec)
{
	bool reduced = strcmp(name, "sync") == 0;
	if (r->diag->set || !skep_read_has(r, map, "compression_block"))
		return SKEP_CODEC_BLOCK;
	uint32_t block = read_block(r, map, name);
	if (!r->diag->set && !blocks)
		skep_reader_fail(r, map, "compression_block",
			"%s.compression_block: says how many numbers share a scale, and with `compression: %s` there is none; "
			"take `int8`%s, or leave it out",
			name, codec, reduced ? " or `e3m0`" : "");
	return block;
}

void skep_sync_read_codec(struct skep_reader *reader, const struct skep_yaml_node *map, const char *name, bool reduced,
	enum skep_codec *ret_codec, uint32_t *ret_block)
{
	const char *const *codecs = reduced ? summed : passed;
	*ret_codec = (enum skep_codec)skep_read_choice(reader, map, "compression", codecs, SKEP_CODEC_NONE);
	*ret_block = read_block_of(reader, map, name, skep_codec_blocks(*ret_codec), codecs[*ret_codec]);
}

/* One for each stage. What is the same in all of them is said so once. */
static void read_each_codec(struct skep_reader *r, const struct skep_yaml_node *map, const struct skep_yaml_node *list,
	struct skep_scenario *s)
{
	uint32_t stages = s->plan.stages, length = skep_yaml_length(list);
	bool blocks = false;
	if (length != stages) {
		skep_reader_fail(r, map, "compression",
			"sync.compression: a list has one codec for each stage, %u of them, and here are %u; or take one for "
			"all, such as `int8`",
			stages, length);
		return;
	}
	s->codecs = calloc(2 * (size_t)stages, sizeof *s->codecs);
	for (uint32_t stage = 0; stage < stages && s->codecs && !r->diag->set; stage++) {
		int codec = skep_read_choice(r, skep_yaml_item(list, stage), NULL, summed, -1);
		s->codecs[stage] = s->codecs[stages + stage] = (uint8_t)codec;
		blocks = blocks || skep_codec_blocks((enum skep_codec)codec);
	}
	if (!s->codecs)
		skep_reader_fail(r, NULL, NULL, "not enough memory for this scenario");
	s->plan.reduction.codec = SKEP_CODEC_NONE;
	s->plan.reduction.codecs = s->codecs;
	s->plan.reduction.block = read_block_of(r, map, "sync", blocks, "[none, ..]");
}

void skep_sync_read_codecs(struct skep_reader *reader, const struct skep_yaml_node *map, struct skep_scenario *s)
{
	const struct skep_yaml_node *node = skep_read_any(reader, map, "compression");
	if (skep_yaml_kind(node) == SKEP_YAML_LIST)
		read_each_codec(reader, map, node, s);
	else
		skep_sync_read_codec(reader, map, "sync", true, &s->plan.reduction.codec, &s->plan.reduction.block);
}

/* After the codec. */
static void refuse_one_scale(struct skep_reader *r, const struct skep_yaml_node *map, const struct skep_plan *plan)
{
	if (!r->diag->set && plan->reduction.block == SKEP_CODEC_TENSOR &&
		skep_collective_encodes_again(plan->reduction.collective))
		skep_reader_fail(r, map, "compression_block",
			"sync.compression_block: `%s` encodes sums that came in parts once more as one, and with one scale in "
			"each message workers would end with different parameters; take a number, or another collective",
			skep_collective_name((uint8_t)plan->reduction.collective));
}

void skep_sync_read_collective(struct skep_reader *reader, const struct skep_yaml_node *map, struct skep_plan *plan)
{
	const char *name[OFFERS + 1] = {NULL};
	for (uint32_t i = 0; i < OFFERS; i++)
		name[i] = skep_collective_name((uint8_t)OFFERED[i]);
	plan->reduction.collective = OFFERED[skep_read_choice(reader, map, "collective", name, 0)];
	bool ring = plan->reduction.collective == SKEP_COLLECTIVE_RING; /* whose default is a rule of the core */
	if (ring || plan->reduction.collective == SKEP_COLLECTIVE_TREE ||
		plan->reduction.collective == SKEP_COLLECTIVE_BUTTERFLY ||
		plan->reduction.collective == SKEP_COLLECTIVE_CHAIN)
		plan->reduction.chunks = (uint32_t)skep_read_integer(
			reader, map, "chunks", 1, SKEP_SYNC_CHUNKS_MAX, ring ? 0 : SKEP_SYNC_CHUNKS);
	else if (skep_read_has(reader, map, "chunks"))
		skep_reader_fail(reader, map, "chunks",
			"sync.chunks: `%s` sends what it sends in one piece: take `ring`, `chain`, `tree` or "
			"`butterfly`, or leave it out",
			skep_collective_name((uint8_t)plan->reduction.collective));
	refuse_one_scale(reader, map, plan);
}

void skep_sync_read_ring_order(struct skep_reader *reader, const struct skep_yaml_node *map, struct skep_scenario *s)
{
	static const char *const orders[] = {"roster", "links", NULL};
	const struct skep_plan *plan = &s->plan;
	s->ring_by_links = skep_read_choice(reader, map, "ring_order", orders, 0) == 1;
	if (reader->diag->set || !skep_read_has(reader, map, "ring_order"))
		return;
	const char *without =
		plan->async.on ? "with `method: async` each merge goes from its worker to the others as they are listed"
		: plan->gossip ? "with `method: gossip` workers meet in pairs, which are drawn"
		: s->zero > 0  ? "what sync.zero gathers takes as long whatever the order"
			       : NULL;
	if (without)
		skep_reader_fail(reader, map, "ring_order", "sync.ring_order: %s; leave this out", without);
	else if (plan->reduction.collective != SKEP_COLLECTIVE_RING)
		skep_reader_fail(reader, map, "ring_order",
			"sync.ring_order: members of a ring follow each other, and sync.collective is `%s`; take `ring`, or "
			"leave this out",
			skep_collective_name((uint8_t)plan->reduction.collective));
	else if (s->ring_by_links && plan->workers > SKEP_RING_MEMBERS_MAX)
		skep_reader_fail(reader, map, "ring_order",
			"sync.ring_order: `links` compares the links of at most %u workers, and here are %u; take `roster`, and "
			"list machines of one site together",
			SKEP_RING_MEMBERS_MAX, plan->workers);
}

void skep_sync_check_members(struct skep_reader *reader, const struct skep_yaml_node *map, const struct skep_plan *plan)
{
	uint32_t most = skep_stage_size_max(plan), last = plan->stages - 1;
	if (!reader->diag->set && plan->tied > 0 && skep_plan_codec(plan, 0) != skep_plan_codec(plan, last))
		skep_reader_fail(reader, map, "compression",
			"sync.compression: the head of the model is tied to its embedding, so the first stage and the last one "
			"sum one table and have to have the same codec; or take one for all stages");
	if (!reader->diag->set && skep_collective_has_roster(plan->reduction.collective) && most > SKEP_ROSTER_MAX)
		skep_reader_fail(reader, map, "collective",
			"sync.collective: `%s` is for at most %u workers in a stage, and here one may have %u; take "
			"`ring`, or more stages whose workers stay there",
			skep_collective_name((uint8_t)plan->reduction.collective), SKEP_ROSTER_MAX, most);
}

void skep_sync_check_flows(struct skep_reader *reader, const struct skep_yaml_node *map, const struct skep_plan *plan)
{
	if (!reader->diag->set && plan->reduction.collective != SKEP_COLLECTIVE_RING)
		skep_reader_fail(reader, map, "collectives",
			"simulate.collectives: flows stand in for the messages of a ring, and sync.collective is `%s`; "
			"take `messages`",
			skep_collective_name((uint8_t)plan->reduction.collective));
}
