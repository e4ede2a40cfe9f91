/* SPDX-License-Identifier: Apache-2.0
 *
 * recorder_pair.c - two recorders that hear the same, one after the other.
 */
#include "analysis/summary/summary.h"

/* Calls what has the name `hears` in each recorder that has it. */
#define TELL_BOTH(context, hears, ...)                                                                                 \
	do {                                                                                                           \
		const struct skep_recorder_pair *pair = context;                                                       \
		if (pair->first.hears)                                                                                 \
			pair->first.hears(pair->first.context, __VA_ARGS__);                                           \
		if (pair->second.hears)                                                                                \
			pair->second.hears(pair->second.context, __VA_ARGS__);                                         \
	} while (0)

static void both_note(void *context, skep_time now, struct skep_peer who, const struct skep_note *note)
{
	TELL_BOTH(context, note, now, who, note);
}

static void both_op(void *context, const struct skep_op_span *span)
{
	TELL_BOTH(context, op, span);
}

static void both_link(void *context, const struct skep_link_use *use)
{
	TELL_BOTH(context, link, use);
}

static void both_worker(void *context, const struct skep_worker_use *use)
{
	TELL_BOTH(context, worker, use);
}

static void both_life(void *context, uint32_t machine, skep_time started_ns, skep_time ended_ns)
{
	TELL_BOTH(context, life, machine, started_ns, ended_ns);
}

static void both_died(void *context, uint32_t machine)
{
	TELL_BOTH(context, died, machine);
}

static void both_progress(void *context, skep_time now, uint32_t rounds_done, uint32_t rounds_total)
{
	TELL_BOTH(context, progress, now, rounds_done, rounds_total);
}

static void both_sent(void *context, const struct skep_sent *sent)
{
	TELL_BOTH(context, sent, sent);
}

static void both_log(void *context, uint32_t machine, const uint8_t *bytes, uint32_t count)
{
	TELL_BOTH(context, log, machine, bytes, count);
}

struct skep_recorder skep_recorder_both(struct skep_recorder_pair *pair)
{
	return (struct skep_recorder){.context = pair,
		.note = both_note,
		.op = both_op,
		.link = both_link,
		.worker = both_worker,
		.life = both_life,
		.died = both_died,
		.progress = both_progress,
		.sent = both_sent,
		.log = both_log};
}
