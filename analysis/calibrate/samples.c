/* SPDX-License-Identifier: Apache-2.0
 *
 * samples.c - see samples.h.
 */
#include "analysis/calibrate/samples.h"

#include <math.h>
#include <stdlib.h>

#include "base/grow.h"

static double seconds_of(skep_time time)
{
	return 1e-9 * (double)time;
}

void skep_samples_message(void *samples, const struct skep_message *message, skep_time sent, skep_time received)
{
	struct skep_samples *s = samples;
	if (s->no_memory || !skep_grow(&s->transfer, s->transfers, sizeof *s->transfer)) {
		s->no_memory = true;
		return;
	}
	s->transfer[s->transfers++] = (struct skep_transfer){.from = message->from.index,
		.to = message->to.index,
		.bytes = skep_message_bytes(message),
		.sent_s = seconds_of(sent),
		.received_s = seconds_of(received)};
}

void skep_samples_op(void *samples, uint32_t machine, const struct skep_op *op, skep_time begin, skep_time end)
{
	struct skep_samples *s = samples;
	if (s->no_memory || !skep_grow(&s->executed, s->executions, sizeof *s->executed)) {
		s->no_memory = true;
		return;
	}
	s->executed[s->executions++] =
		(struct skep_executed){.worker = machine, .op = *op, .seconds = seconds_of(end - begin)};
}

/* ---- clocks ------------------------------------------------------------------------------------------------------ */

static double latency_s(const struct skep_topology *t, uint32_t from, uint32_t to)
{
	return skep_topology_pair(t, from, to).latency_s;
}

/* there[i]: the quickest message from machine i to the directory, back[i]: of the other direction; INFINITY: none. */
static void find_quickest(const struct skep_samples *s, uint32_t machines, double *there, double *back)
{
	for (uint32_t i = 0; i < machines; i++)
		there[i] = back[i] = INFINITY;
	for (size_t i = 0; i < s->transfers; i++) {
		const struct skep_transfer *t = &s->transfer[i];
		double took_s = t->received_s - t->sent_s;
		if (t->to == machines)
			there[t->from] = fmin(there[t->from], took_s);
		else if (t->from == machines)
			back[t->to] = fmin(back[t->to], took_s);
	}
}

bool skep_samples_align(struct skep_samples *s, const struct skep_topology *t)
{
	uint32_t machines = t->machines;
	double *there = calloc(machines + 1u, sizeof *there), *back = calloc(machines + 1u, sizeof *back);
	double *ahead = calloc(machines + 1u, sizeof *ahead);
	bool fine = there && back && ahead;
	if (fine)
		find_quickest(s, machines, there, back);
	for (uint32_t i = 0; fine && i < machines; i++) {
		if (isinf(there[i]) || isinf(back[i]))
			continue;
		ahead[i] = (back[i] - there[i] - latency_s(t, machines, i) + latency_s(t, i, machines)) / 2;
		s->clocks_apart_s = fmax(s->clocks_apart_s, fabs(ahead[i]));
	}
	for (size_t i = 0; fine && i < s->transfers; i++) {
		s->transfer[i].sent_s -= ahead[s->transfer[i].from];
		s->transfer[i].received_s -= ahead[s->transfer[i].to];
	}
	free(there);
	free(back);
	free(ahead);
	return fine;
}

void skep_samples_finish(struct skep_samples *s)
{
	free(s->transfer);
	free(s->executed);
	*s = (struct skep_samples){0};
}
