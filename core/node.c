/* SPDX-License-Identifier: Apache-2.0
 *
 * node.c - the face of a machine: set-up, the step that hands an event to the worker or the directory, and the digest.
 */
#include <assert.h>
#include <string.h>

#include "core/machine.h"
#include "core/prefetch.h"
#include "core/random.h"

size_t skep_node_size(const struct skep_plan *plan, uint32_t index)
{
	assert(index <= plan->workers);
	bool worker = index < plan->workers;
	uint8_t method = skep_method_of(plan);
	struct skep_methods how =
		worker ? skep_methods_of_worker(plan, method) : skep_methods_of_directory(plan, method);
	if (worker)
		return skep_worker_size(plan, &how);
	return skep_plan_has_candidates(plan) ? skep_candidates_size(plan) : skep_directory_size(plan, &how);
}

uint32_t skep_actions_limit(const struct skep_plan *plan)
{
	uint8_t method = skep_method_of(plan);
	struct skep_methods how = skep_methods_of_worker(plan, method);
	uint32_t worker = skep_worker_actions_limit(plan, &how);
	how = skep_methods_of_directory(plan, method);
	uint32_t directory = skep_plan_has_candidates(plan) ? skep_candidates_actions_limit(plan)
	                                                    : skep_directory_actions_limit(plan, &how);
	return worker > directory ? worker : directory;
}

struct skep_node *skep_node_init(void *mem, const struct skep_plan *plan, uint32_t index, uint32_t epoch)
{
	assert(index <= plan->workers);
	struct skep_node *node = mem;
	bool worker = index < plan->workers;
	uint8_t method = skep_method_of(plan);
	struct skep_methods how =
		worker ? skep_methods_of_worker(plan, method) : skep_methods_of_directory(plan, method);
	skep_methods_check(plan);
	memset(mem, 0, skep_node_size(plan, index));
	node->is_directory = index == plan->workers;
	node->method = method;
	node->stage = SKEP_NO_STAGE;
	node->self = (struct skep_peer){index, node->is_directory ? 1 : epoch};
	node->deadline = SKEP_TIME_NEVER;
	node->random = skep_mix(skep_mix(plan->seed) ^ skep_mix((uint64_t)index << 32 | epoch));
	node->next_op = 1;
	if (node->is_directory && skep_plan_has_candidates(plan))
		skep_candidates_init_node(mem, plan);
	else if (node->is_directory)
		skep_directory_init(mem, plan, &how);
	else
		skep_worker_init(mem, plan, &how);
	return node;
}

void skep_node_step(struct skep_node *node, const struct skep_plan *plan, const struct skep_event *event,
	struct skep_actions *actions)
{
	assert(event->now >= node->now);
	actions->count = 0;
	node->now = event->now;
	assert(skep_event_legal(plan, event));
	skep_digest_fold(&node->digest, event->now << 4 ^ event->kind);
	if (!node->is_directory) {
		struct step step = {plan, actions, skep_methods_of_worker(plan, node->method)};
		skep_worker_step(node, &step, event);
		return;
	}
	struct step step = {plan, actions, skep_methods_of_directory(plan, node->method)};
	if (skep_plan_has_candidates(plan))
		skep_candidates_step(node, &step, event);
	else
		skep_directory_step(node, &step, event);
}

bool skep_plan_leaves_states(const struct skep_plan *plan)
{
	struct skep_methods how = skep_methods_of_worker(plan, skep_method_of(plan));
	return skep_methods_leave_states(&how, plan);
}

size_t skep_node_wanted(const struct skep_node *node)
{
	return node->wanted;
}

struct skep_node *skep_node_relocate(void *mem, const struct skep_node *node)
{
	assert(node->wanted > 0 && !node->is_directory);
	skep_worker_relocate(mem, node);
	return mem;
}

void skep_node_prefetch(const struct skep_node *node, bool deep)
{
	if (!deep || !node->is_directory)
		skep_worker_fetch(node, deep);
}

skep_time skep_node_deadline(const struct skep_node *node)
{
	return node->deadline;
}

uint32_t skep_node_epoch(const struct skep_node *node)
{
	return node->self.epoch;
}

uint32_t skep_node_stage(const struct skep_node *node)
{
	return node->stage;
}

uint64_t skep_node_digest(const struct skep_node *node)
{
	return node->digest;
}

bool skep_node_returned(const struct skep_node *node)
{
	return !node->is_directory && node->outcome != SKEP_RUNNING && skep_worker_returned(node);
}

bool skep_node_keeps(const struct skep_node *node)
{
	return !node->is_directory && skep_worker_keeps(node);
}

uint32_t skep_node_kept(const struct skep_node *node, const struct skep_plan *plan)
{
	assert(node->is_directory);
	return skep_plan_has_candidates(plan) ? skep_candidates_kept(node, plan) : skep_directory_kept(node, plan);
}

uint64_t skep_node_spent(const struct skep_node *node, const struct skep_plan *plan, skep_time now)
{
	assert(node->is_directory && !skep_plan_has_candidates(plan));
	return skep_directory_spent(node, plan, now);
}

enum skep_outcome skep_node_outcome(const struct skep_node *node)
{
	return (enum skep_outcome)node->outcome;
}
