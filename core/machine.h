/* SPDX-License-Identifier: Apache-2.0
 *
 * machine.h - what the worker and the directory have in common: the head of a machine, and how a step emits its actions.
 *
 * Every emitted action is folded into the machine's digest. Buffer handles and losses are left out: they belong to the
 * world. Only a target loss lets a decision depend on them, and then the digest shows it.
 */
#pragma once

#include "core/methods/method.h"
#include "core/skep.h"

struct skep_node { /* head of struct worker and struct directory */
	bool is_directory;
	uint8_t outcome; /* enum skep_outcome */
	uint8_t method;  /* skep_method_of() the plan */
	uint32_t stage;
	struct skep_peer self;
	skep_time now, deadline;
	uint64_t digest, random, next_op;
	size_t wanted; /* bytes for the next step, more than there are; 0: there is room */
};

struct step { /* one call of skep_node_step */
	const struct skep_plan *plan;
	struct skep_actions *actions;
	struct skep_methods how;
};

static inline size_t skep_align(size_t size)
{
	return (size + 15) & ~(size_t)15;
}

/* An array behind the machine's struct, named by its offset: a machine has no pointers. */
static inline void *skep_at(void *machine, size_t offset)
{
	return (char *)machine + offset;
}

static inline bool skep_peer_same(struct skep_peer a, struct skep_peer b)
{
	return a.index == b.index && a.epoch == b.epoch;
}

/* `peer` is the process that `fenced` names, or an earlier incarnation of it. */
static inline bool skep_peer_covers(struct skep_peer fenced, struct skep_peer peer)
{
	return fenced.index == peer.index && fenced.epoch >= peer.epoch;
}

static inline struct skep_peer skep_directory_peer(const struct skep_plan *plan)
{
	return (struct skep_peer){plan->workers, 1};
}

static inline bool skep_buf_none(struct skep_buf buf)
{
	return buf.slot == 0 && buf.generation == 0;
}

static inline void skep_digest_fold(uint64_t *digest, uint64_t value)
{
	*digest = (*digest ^ value) * 0x9fb21c651e98df25u;
	*digest ^= *digest >> 32;
}

/* A message from this machine, empty but for its addresses. */
struct skep_message skep_message_to(const struct skep_node *node, enum skep_message_kind kind, struct skep_peer to);

void skep_emit_send(struct step *step, struct skep_node *node, const struct skep_message *message);
/* The payload's buffer stays this machine's. */
void skep_emit_send_copy(struct step *step, struct skep_node *node, const struct skep_message *message);
/* Fills id and lane; returns the id. */
uint64_t skep_emit_run(struct step *step, struct skep_node *node, struct skep_op *op);
void skep_emit_release(struct step *step, struct skep_buf buf); /* none is fine */
void skep_emit_cancel(struct step *step, struct skep_node *node, uint64_t op);
void skep_emit_note(struct step *step, struct skep_node *node, struct skep_note note);
void skep_emit_scale(struct step *step, uint32_t kind, uint32_t machines);

size_t skep_worker_size(const struct skep_plan *plan, const struct skep_methods *how);
void skep_worker_init(void *mem, const struct skep_plan *plan, const struct skep_methods *how);
void skep_worker_step(struct skep_node *node, struct step *step, const struct skep_event *event);
uint32_t skep_worker_actions_limit(const struct skep_plan *plan, const struct skep_methods *how);
bool skep_worker_returned(const struct skep_node *node);
bool skep_worker_keeps(const struct skep_node *node);
void skep_worker_fetch(const struct skep_node *node, bool deep);
void skep_worker_relocate(void *mem, const struct skep_node *node); /* to memory of the size that it wants */

size_t skep_directory_size(const struct skep_plan *plan, const struct skep_methods *how);
void skep_directory_init(void *mem, const struct skep_plan *plan, const struct skep_methods *how);
void skep_directory_step(struct skep_node *node, struct step *step, const struct skep_event *event);
uint32_t skep_directory_actions_limit(const struct skep_plan *plan, const struct skep_methods *how);
uint32_t skep_directory_kept(const struct skep_node *node, const struct skep_plan *plan);
uint64_t skep_directory_spent(const struct skep_node *node, const struct skep_plan *plan, skep_time now);

/* candidates.c: in the directory's place, where several candidates for the first parameters are tried */
uint32_t skep_candidates_kept(const struct skep_node *node, const struct skep_plan *plan);
size_t skep_candidates_size(const struct skep_plan *plan);
void skep_candidates_init_node(void *mem, const struct skep_plan *plan);
void skep_candidates_step(struct skep_node *node, struct step *step, const struct skep_event *event);
uint32_t skep_candidates_actions_limit(const struct skep_plan *plan);
