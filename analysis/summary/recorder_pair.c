/* SPDX-License-Identifier: Apache-2.0
 *
 * recorder_pair.c - two recorders that hear the same, one after the other.
 */
#include "analysis/summary/summary.h"

static void both_note(void *context, skep_time now, struct skep_peer who, const struct skep_note *note)
{
	const struct skep_recorder_pair *pair = context;
	if (pair->first.note)
		pair->first.note(pair->first.context, now, who, note);
	if (pair->second.note)
		pair->second.note(pair->second.context, now, who, note);
}

static void both_op(void *context, const struct skep_op_span *span)
{
	const struct skep_recorder_pair *pair = context;
	if (pair->first.op)
		pair->first.op(pair->first.context, span);
	if (pair->second.op)
		pair->second.op(pair->second.context, span);
}

static void both_link(void *context, const struct skep_link_use *use)
{
	const struct skep_recorder_pair *pair = context;
	if (pair->first.link)
		pair->first.link(pair->first.context, use);
	if (pair->second.link)
		pair->second.link(pair->second.context, use);
}

static void both_worker(void *context, const struct skep_worker_use *use)
{
	const struct skep_recorder_pair *pair = context;
	if (pair->first.worker)
		pair->first.worker(pair->first.context, use);
	if (pair->second.worker)
		pair->second.worker(pair->second.context, use);
}

static void both_life(void *context, uint32_t machine, skep_time started_ns, skep_time ended_ns)
{
	const struct skep_recorder_pair *pair = context;
	if (pair->first.life)
		pair->first.life(pair->first.context, machine, started_ns, ended_ns);
	if (pair->second.life)
		pair->second.life(pair->second.context, machine, started_ns, ended_ns);
}

static void both_died(void *context, uint32_t machine)
{
	const struct skep_recorder_pair *pair = context;
	if (pair->first.died)
		pair->first.died(pair->first.context, machine);
	if (pair->second.died)
		pair->second.died(pair->second.context, machine);
}

static void both_progress(void *context, skep_time now, uint32_t rounds_done, uint32_t rounds_total)
{
	const struct skep_recorder_pair *pair = context;
	if (pair->first.progress)
		pair->first.progress(pair->first.context, now, rounds_done, rounds_total);
	if (pair->second.progress)
		pair->second.progress(pair->second.context, now, rounds_done, rounds_total);
}

static void both_sent(void *context, const struct skep_sent *sent)
{
	const struct skep_recorder_pair *pair = context;
	if (pair->first.sent)
		pair->first.sent(pair->first.context, sent);
	if (pair->second.sent)
		pair->second.sent(pair->second.context, sent);
}

static void both_log(void *context, uint32_t machine, const uint8_t *bytes, uint32_t count)
{
	const struct skep_recorder_pair *pair = context;
	if (pair->first.log)
		pair->first.log(pair->first.context, machine, bytes, count);
	if (pair->second.log)
		pair->second.log(pair->second.context, machine, bytes, count);
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
