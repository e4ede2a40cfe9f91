/* SPDX-License-Identifier: Apache-2.0
 *
 * engine_core.h - test_engine.c's core: machines that do what a script says, and want more memory when it says so.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/prefetch.h"
#include "core/skep.h"
#include "models/device/device_cpu.h"

struct skep_node {
	uint32_t index, epoch, count, timers;
	enum skep_outcome outcome;
	skep_time deadline;
	const struct skep_plan *plan;
	size_t wanted, moves;
};

typedef void script_function(struct skep_node *node, const struct skep_event *event, struct skep_actions *actions);

static script_function *script; /* the one of the test that runs */

size_t skep_node_size(const struct skep_plan *plan, uint32_t index)
{
	assert_true(index <= plan->workers);
	return sizeof(struct skep_node);
}

uint32_t skep_actions_limit(const struct skep_plan *plan)
{
	return 8 + plan->workers;
}

struct skep_node *skep_node_init(void *mem, const struct skep_plan *plan, uint32_t index, uint32_t epoch)
{
	struct skep_node *node = mem;
	assert_true((uintptr_t)mem % 16 == 0);
	*node = (struct skep_node){.index = index, .epoch = epoch, .deadline = SKEP_TIME_NEVER, .plan = plan};
	return node;
}

void skep_node_step(struct skep_node *node, const struct skep_plan *plan, const struct skep_event *event,
	struct skep_actions *actions)
{
	assert_true(node->plan == plan);
	actions->count = 0;
	script(node, event, actions);
}

size_t skep_node_wanted(const struct skep_node *node)
{
	return node->wanted;
}

struct skep_node *skep_node_relocate(void *mem, const struct skep_node *node)
{
	struct skep_node *moved = mem;
	assert_true((uintptr_t)mem % 16 == 0 && mem != (const void *)node);
	*moved = *node;
	memset(moved + 1, 0, node->wanted - sizeof *moved); /* all of it is there */
	moved->wanted = 0;
	moved->moves++;
	return moved;
}

void skep_node_prefetch(const struct skep_node *node, bool deep)
{
	(void)node, (void)deep;
}

skep_time skep_node_deadline(const struct skep_node *node)
{
	return node->deadline;
}

uint32_t skep_node_epoch(const struct skep_node *node)
{
	return node->epoch;
}

uint32_t skep_node_stage(const struct skep_node *node)
{
	return node->index % 2;
}

uint64_t skep_node_digest(const struct skep_node *node)
{
	return 100 + node->index;
}

uint32_t skep_node_kept(const struct skep_node *node, const struct skep_plan *plan)
{
	assert(node->index == plan->workers);
	return plan->first_round;
}

uint64_t skep_node_spent(const struct skep_node *node, const struct skep_plan *plan, skep_time now)
{
	assert(node->index == plan->workers);
	(void)now;
	return 0;
}

bool skep_node_keeps(const struct skep_node *node)
{
	(void)node;
	return false;
}

bool skep_node_returned(const struct skep_node *node)
{
	(void)node;
	return false;
}

enum skep_outcome skep_node_outcome(const struct skep_node *node)
{
	return node->outcome;
}

/* There is always memory for products, for there are none. */
bool skep_cpu_reserve(uint32_t threads, struct skep_diag *reterr)
{
	(void)reterr;
	return threads > 0;
}
