/* SPDX-License-Identifier: Apache-2.0
 *
 * engine_scenario.h - what test_engine.c puts in the place of scenarios/: how long an operation takes, that it sends nothing
 * besides, that traffic is free, and that no state is kept in files.
 */
#pragma once

#include <assert.h>

#include "base/diag.h"
#include "scenarios/outage/outage.h"
#include "scenarios/plan/prices.h"
#include "scenarios/read/scenario.h"

uint64_t skep_scenario_op_ns(const struct skep_scenario *scenario, uint32_t worker, const struct skep_op *op)
{
	assert(worker < scenario->plan.workers);
	return (worker + 1) * 10000000u + op->microbatch;
}

uint64_t skep_scenario_op_bytes(
	const struct skep_scenario *scenario, uint32_t worker, const struct skep_op *op, uint32_t *ret_to)
{
	(void)scenario, (void)worker, (void)op, (void)ret_to;
	return 0;
}

double skep_scenario_egress_usd(
	const struct skep_scenario *scenario, uint32_t source, uint32_t destination, uint64_t bytes)
{
	assert(source <= scenario->plan.workers && destination <= scenario->plan.workers);
	(void)bytes;
	return 0;
}

void skep_egress_bill_add(struct skep_egress_bill *bill, double usd)
{
	bill->usd += usd;
}

bool skep_egress_bill_due(struct skep_egress_bill *bill, const struct skep_scenario *s, struct skep_event *ret_event)
{
	(void)bill, (void)s, (void)ret_event;
	return false;
}

/* ---- the directory is never lost ------------------------------------------------------------------------------- */

skep_time skep_outage_lasts_ns(const struct skep_scenario *s, uint32_t version)
{
	(void)version;
	assert(s->outages.count > 0);
	return 0;
}

/* ---- states that are kept: no worker begins with any, nor writes files ----------------------------------------- */

void skep_device_set_keeper(struct skep_device *device, const struct skep_keeper *keeper)
{
	assert(device && keeper->write);
}

bool skep_device_take_up(struct skep_device *device, uint32_t version, uint32_t rank, struct skep_diag *reterr)
{
	(void)version, (void)rank, (void)reterr;
	return device != NULL;
}

struct skep_keeper skep_checkpoint_keeper(struct skep_checkpoint_folder *folder)
{
	assert(folder->run == 0 && folder->from_version == 0);
	return (struct skep_keeper){0};
}

struct skep_checkpoint_folder skep_scenario_folder(const struct skep_scenario *scenario)
{
	(void)scenario;
	return (struct skep_checkpoint_folder){0};
}
