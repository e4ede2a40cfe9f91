/* SPDX-License-Identifier: Apache-2.0
 *
 * log.c - see log.h. Keeps true: entries are whole, and once one has found no room in the machine's share none follows.
 */
#include "exec/log.h"

uint64_t skep_log_share(const struct skep_plan *plan, uint32_t machine)
{
	uint64_t directory = SKEP_LOG_RUN_BYTES / 4;
	return machine == plan->workers ? directory : (SKEP_LOG_RUN_BYTES - directory) / plan->workers;
}

static void entry(struct skep_wire *wire, struct skep_event *event, uint16_t *mark)
{
	skep_wire_event(wire, event);
	skep_wire_u16(wire, mark);
}

bool skep_log_add(struct skep_log *log, const struct skep_event *event, uint64_t digest)
{
	if (log->left < SKEP_LOG_ENTRY_MAX) {
		log->left = 0;
		return true;
	}
	struct skep_event copy = *event;
	uint16_t mark = (uint16_t)digest;
	struct skep_wire wire = skep_wire_writer(log->bytes + log->count, sizeof log->bytes - log->count);
	entry(&wire, &copy, &mark);
	if (!wire.ok)
		return false;
	if (log->count == 0)
		log->oldest = event->now;
	uint32_t count = (uint32_t)(wire.at - log->bytes);
	log->left -= count - log->count;
	log->count = count;
	return true;
}

void skep_log_read(struct skep_wire *wire, struct skep_event *ret, uint16_t *ret_mark)
{
	entry(wire, ret, ret_mark);
}
