/* SPDX-License-Identifier: Apache-2.0
 *
 * log.c - see log.h. Keeps true: entries are whole, and once one has found no room in the machine's share none follows.
 */
#include "exec/loop/log.h"

#include <assert.h>

#define END 255u /* in place of an event's kind */

uint64_t skep_log_share(const struct skep_plan *plan, uint32_t machine)
{
	assert(machine <= plan->workers);
	uint64_t directory = SKEP_LOG_RUN_BYTES / 4;
	return machine == plan->workers ? directory : (SKEP_LOG_RUN_BYTES - directory) / plan->workers;
}

static void entry(struct skep_wire *wire, struct skep_event *event, uint16_t *mark)
{
	skep_wire_event(wire, event);
	skep_wire_u16(wire, mark);
}

/* Room in the share for one more entry? */
static bool room(struct skep_log *log)
{
	log->entry = 0;
	if (log->left >= SKEP_LOG_ENTRY_MAX)
		return true;
	log->left = 0;
	return false;
}

static bool keep(struct skep_log *log, const struct skep_wire *wire, skep_time now)
{
	assert(log->count <= sizeof log->bytes);
	if (!wire->ok)
		return false;
	if (log->count == 0)
		log->oldest = now;
	uint32_t count = (uint32_t)(wire->at - log->bytes);
	log->entry = count - log->count;
	log->left -= log->entry;
	log->count = count;
	return true;
}

bool skep_log_add(struct skep_log *log, const struct skep_event *event, uint64_t digest)
{
	if (!room(log))
		return true;
	struct skep_event copy = *event;
	uint16_t mark = (uint16_t)digest;
	struct skep_wire wire = skep_wire_writer(log->bytes + log->count, sizeof log->bytes - log->count);
	entry(&wire, &copy, &mark);
	return keep(log, &wire, event->now);
}

bool skep_log_end(struct skep_log *log, skep_time now, uint64_t events, uint64_t digest)
{
	if (!room(log))
		return true;
	uint8_t kind = END;
	struct skep_wire wire = skep_wire_writer(log->bytes + log->count, sizeof log->bytes - log->count);
	skep_wire_u8(&wire, &kind);
	skep_wire_u64(&wire, &events);
	skep_wire_u64(&wire, &digest);
	return keep(log, &wire, now);
}

bool skep_log_read_end(struct skep_wire *wire, uint64_t *ret_events, uint64_t *ret_digest)
{
	uint8_t kind = 0;
	struct skep_wire ahead = *wire;
	skep_wire_u8(&ahead, &kind);
	if (kind != END)
		return false;
	skep_wire_u64(&ahead, ret_events);
	skep_wire_u64(&ahead, ret_digest);
	*wire = ahead;
	return true;
}

void skep_log_read(struct skep_wire *wire, struct skep_event *ret, uint16_t *ret_mark)
{
	entry(wire, ret, ret_mark);
}
