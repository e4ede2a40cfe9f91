/* SPDX-License-Identifier: Apache-2.0
 *
 * probe_rank.c - what every rank of a measurement does: it answers messages, and measures (probe_way.c) when the coordinator
 * (probe_coordinator.c) tells it to. See probe_rank.h.
 *
 * A rank that waits sleeps as the loop of a run does, so that a measured latency is what a run will see: it includes
 * the time that a sleeping process needs to wake up.
 */
#include "exec/probe/probe_rank_internal.h"

#include <assert.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/process/sched.h"
#include "core/record.h"

#define YIELDS 4u
#define REST_NS 10000000u
#define GRACE_NS UINT64_C(1500000000)

/* ---- failing ----------------------------------------------------------------------------------------------------- */

static void send_all(struct probe_rank *p, enum skep_frame_type type)
{
	struct skep_frame frame = {.type = (uint8_t)type};
	for (uint32_t to = 0; to < p->transport->ranks; to++)
		if (to != p->transport->rank)
			p->transport->send(p->transport->self, to, &frame, NULL);
}

void skep_probe_rank_fail(struct probe_rank *p, const char *reason)
{
	if (p->over)
		return;
	p->over = p->failed = true;
	snprintf(p->reason, sizeof p->reason, "%s", reason);
	struct skep_frame frame = {.type = SKEP_FRAME_FAULT};
	frame.u.text.bytes = (const uint8_t *)p->reason;
	frame.u.text.count = (uint32_t)strlen(p->reason);
	if (p->broken)
		return;
	if (p->transport->rank == 0)
		send_all(p, SKEP_FRAME_HALT);
	else
		p->transport->send(p->transport->self, 0, &frame, NULL);
}

/* ---- letters to and from rank 0 ---------------------------------------------------------------------------------- */

void skep_probe_rank_write(struct probe_rank *p, uint32_t to, const struct probe_message *probe_message)
{
	assert(to < p->transport->ranks && to != p->transport->rank);
	assert(probe_message->words > 0 && probe_message->words <= PROBE_MESSAGE_WORDS);
	uint8_t bytes[SKEP_FRAME_CONTENT];
	struct skep_wire wire = skep_wire_writer(bytes, sizeof bytes);
	for (uint32_t i = 0; i < probe_message->words; i++) {
		uint64_t word = probe_message->word[i];
		skep_wire_u64(&wire, &word);
	}
	struct skep_frame frame = {.type = SKEP_FRAME_PROBE};
	frame.u.text.bytes = bytes;
	frame.u.text.count = (uint32_t)(wire.at - bytes);
	p->transport->send(p->transport->self, to, &frame, NULL);
}

static bool read_probe_message(const struct skep_frame *frame, struct probe_message *ret)
{
	struct skep_wire wire = skep_wire_reader(frame->u.text.bytes, frame->u.text.count);
	*ret = (struct probe_message){0};
	while (wire.ok && wire.at < wire.end && ret->words < PROBE_MESSAGE_WORDS)
		skep_wire_u64(&wire, &ret->word[ret->words++]);
	return wire.ok && wire.at == wire.end && ret->words > 0;
}

static void on_probe_message(struct probe_rank *p, uint32_t peer, const struct skep_frame *frame)
{
	struct probe_message probe_message;
	bool fine = read_probe_message(frame, &probe_message);
	if (fine && p->transport->rank == 0)
		fine = skep_probe_coordinator_receive(p, peer, &probe_message);
	else if (fine)
		p->order = probe_message, fine = peer == 0;
	if (!fine)
		skep_probe_rank_fail(p, "a letter between the ranks cannot be read: are they all of one version?");
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static void announce(struct probe_rank *p, const struct skep_message *message, uint64_t number)
{
	struct skep_frame frame = {.type = SKEP_FRAME_FLOW, .number = number};
	assert(p->setup->shaped);
	frame.u.flow.source = message->from.index;
	frame.u.flow.destination = message->to.index;
	frame.u.flow.bytes = skep_message_bytes(message);
	frame.u.flow.sent = probe_rank_now(p);
	struct skep_shaper_flow flow = {message->from.index, message->to.index, number};
	if (p->transport->rank != 0)
		p->transport->send(p->transport->self, 0, &frame, NULL);
	else if (!skep_shaper_start(p->shaper, &flow, frame.u.flow.bytes, frame.u.flow.sent))
		skep_probe_rank_fail(p, "no memory for the network that is imposed");
}

/* Forwards goes what is measured, backwards the answer. */
static void send_message(struct probe_rank *p, uint32_t to, uint8_t kind, uint32_t sequence, uint64_t bytes)
{
	assert(to < p->transport->ranks && to != p->transport->rank);
	struct skep_frame frame = {.type = SKEP_FRAME_MESSAGE, .number = ++p->sent, .body = bytes};
	frame.u.message = (struct skep_message){.kind = kind,
		.from = {p->transport->rank, 1},
		.to = {to, 1},
		.microbatch = sequence,
		.payload_bytes = bytes};
	if (p->setup->shaped)
		announce(p, &frame.u.message, frame.number);
	p->unsent += bytes > 0;
	p->transport->send(p->transport->self, to, &frame, bytes > 0 ? p->out : NULL);
}

void skep_probe_rank_send(struct probe_rank *p, uint32_t to, uint64_t bytes)
{
	send_message(p, to, SKEP_MESSAGE_FORWARD, p->sequence, bytes);
}

void skep_probe_rank_hand(struct probe_rank *p, uint32_t to, uint64_t bytes)
{
	send_message(p, to, SKEP_MESSAGE_BACKWARD, UINT32_MAX, bytes);
}

static void deliver(struct probe_rank *p, const struct skep_message *message)
{
	if (message->kind == SKEP_MESSAGE_FORWARD) {
		send_message(p, message->from.index, SKEP_MESSAGE_BACKWARD, message->microbatch, 0);
		return;
	}
	p->answers++;
	if (message->microbatch == p->sequence && !p->answered) {
		p->answered_ns = probe_rank_now(p);
		p->answered = true;
	}
}

static void on_message(struct probe_rank *p, uint32_t peer, const struct skep_frame *frame)
{
	struct skep_message message = frame->u.message;
	bool kind = message.kind == SKEP_MESSAGE_FORWARD || message.kind == SKEP_MESSAGE_BACKWARD;
	if (!kind || message.from.index != peer || message.to.index != p->transport->rank)
		skep_probe_rank_fail(p, "a message between the ranks cannot be read: are they all of one version?");
	else if (!p->setup->shaped || skep_delay_queue_arrive(&p->held, frame->number, &message))
		deliver(p, &message);
}

static void on_release(struct probe_rank *p, uint32_t source, uint64_t number)
{
	struct skep_message message;
	assert(p->setup->shaped);
	if (skep_delay_queue_release(&p->held, source, number, &message))
		deliver(p, &message);
}

static void on_flow(struct probe_rank *p, uint32_t peer, const struct skep_frame *frame)
{
	struct skep_shaper_flow flow = {frame->u.flow.source, frame->u.flow.destination, frame->number};
	if (p->shaper == NULL || flow.source != peer || flow.destination >= p->transport->ranks ||
		flow.destination == flow.source ||
		!skep_shaper_start(p->shaper, &flow, frame->u.flow.bytes, frame->u.flow.sent))
		skep_probe_rank_fail(p, "the network that is imposed cannot take a message");
}

static bool take_arrivals(struct probe_rank *p)
{
	struct skep_shaper_flow flow;
	bool any = false;
	while (p->shaper != NULL && skep_shaper_arrived(p->shaper, probe_rank_now(p), &flow)) {
		struct skep_frame frame = {.type = SKEP_FRAME_RELEASE, .number = flow.number};
		frame.u.release.source = flow.source;
		any = true;
		if (flow.destination == 0)
			on_release(p, flow.source, flow.number);
		else
			p->transport->send(p->transport->self, flow.destination, &frame, NULL);
	}
	return any;
}

/* ---- turns ------------------------------------------------------------------------------------------------------- */

static void on_fault(struct probe_rank *p, const struct skep_frame *frame)
{
	char text[sizeof p->reason];
	snprintf(text, sizeof text, "%.*s", (int)frame->u.text.count, (const char *)frame->u.text.bytes);
	skep_probe_rank_fail(p, text);
}

static void on_frame(struct probe_rank *p, uint32_t peer, const struct skep_frame *frame)
{
	bool root = p->transport->rank == 0;
	if (frame->type == SKEP_FRAME_MESSAGE)
		on_message(p, peer, frame);
	else if (frame->type == SKEP_FRAME_FLOW && root)
		on_flow(p, peer, frame);
	else if (frame->type == SKEP_FRAME_RELEASE && peer == 0 && p->setup->shaped)
		on_release(p, frame->u.release.source, frame->number);
	else if (frame->type == SKEP_FRAME_PROBE)
		on_probe_message(p, peer, frame);
	else if (frame->type == SKEP_FRAME_FAULT && root)
		on_fault(p, frame);
	else if (frame->type == SKEP_FRAME_HALT || frame->type == SKEP_FRAME_END)
		p->over = true, p->failed = p->failed || frame->type == SKEP_FRAME_HALT;
}

bool skep_probe_rank_grow(void **memory, uint64_t *room, uint64_t bytes)
{
	if (bytes <= *room)
		return true;
	void *bigger = realloc(*memory, bytes);
	if (bigger == NULL)
		return false;
	memset((char *)bigger + *room, 1, bytes - *room); /* pages are there before they are timed */
	*memory = bigger;
	*room = bytes;
	return true;
}

static void *landing(void *context, uint32_t peer, const struct skep_frame *frame, struct skep_buf *ret)
{
	struct probe_rank *p = context;
	(void)peer;
	*ret = (struct skep_buf){1, 1};
	if (frame->body <= SKEP_PROBE_RANK_BYTES_MAX && skep_probe_rank_grow(&p->in, &p->in_room, frame->body))
		return p->in;
	skep_probe_rank_fail(p, "no memory for a message to measure with");
	return NULL;
}

static void on_event(struct probe_rank *p, const struct skep_transport_event *event)
{
	char text[96];
	switch (event->kind) {
	case SKEP_TRANSPORT_ARRIVED:
		on_frame(p, event->peer, &event->frame);
		break;
	case SKEP_TRANSPORT_SENT:
		p->unsent--;
		break;
	case SKEP_TRANSPORT_BROKEN:
		p->broken = true;
		skep_probe_rank_fail(p, event->reason);
		break;
	case SKEP_TRANSPORT_NEW:
		break;
	default: /* GONE, LOST, SPOILT */
		snprintf(text, sizeof text, "rank %" PRIu32 " has died, or what it sent is not whole", event->peer);
		skep_probe_rank_fail(p, text);
	}
}

static void take_signal(struct probe_rank *p)
{
	struct signalfd_siginfo info;
	if (p->setup->signal_fd >= 0 && read(p->setup->signal_fd, &info, sizeof info) == (ssize_t)sizeof info)
		skep_probe_rank_fail(p, "told to end by a signal");
}

static void rest(struct probe_rank *p)
{
	if (p->idle++ < YIELDS) {
		sched_yield();
		return;
	}
	uint64_t most_ns = REST_NS;
	skep_time next = p->shaper != NULL ? skep_shaper_next(p->shaper) : SKEP_TIME_NEVER, at = probe_rank_now(p);
	if (p->alarm_ns > 0 && p->alarm_ns < next)
		next = p->alarm_ns;
	if (next <= at)
		return;
	if (next - at < most_ns)
		most_ns = next - at;
	p->transport->wait(p->transport->self, most_ns);
	take_signal(p);
}

void skep_probe_rank_poll(struct probe_rank *p)
{
	const struct skep_landing place = {.context = p, .memory = landing};
	struct skep_transport_event event;
	bool any = false;
	for (uint32_t i = 0; i < SKEP_TRANSPORT_FRAMES_A_TURN && !p->broken &&
			     p->transport->poll(p->transport->self, &place, &event);
		i++) {
		on_event(p, &event);
		any = true;
	}
	any = take_arrivals(p) || any;
	if (p->held.no_memory)
		skep_probe_rank_fail(p, "no memory for a message that waits for its time");
	if (any)
		p->idle = 0;
	else
		rest(p);
}

/* ---- orders ------------------------------------------------------------------------------------------------------ */

static uint64_t bits(double value)
{
	uint64_t word;
	memcpy(&word, &value, sizeof word);
	return word;
}

static void do_measure(struct probe_rank *p, uint32_t to)
{
	struct skep_probed_link way;
	assert(to < p->transport->ranks);
	skep_probe_rank_measure(p, to, &way);
	struct probe_message probe_message = {.words = PROBE_MEASURED_WORDS,
		.word = {PROBE_MESSAGE_MEASURED, to, bits(way.latency_s), bits(way.least_s), bits(way.deviation_s),
			bits(way.Bps), bits(way.latency_spread), bits(way.Bps_spread), way.pings, way.transfers,
			way.bytes, way.falling}};
	if (!p->over)
		skep_probe_rank_write(p, 0, &probe_message);
}

static void do_flood(struct probe_rank *p, const struct probe_message *order)
{
	double Bps = skep_probe_rank_flood(p, (uint32_t)order->word[1], order->word[2], order->word[3]);
	struct probe_message flooded = {.words = 2, .word = {PROBE_MESSAGE_FLOODED, bits(Bps)}};
	assert(order->words > 3 && order->word[1] < p->transport->ranks);
	if (!p->over)
		skep_probe_rank_write(p, 0, &flooded);
}

static void do_microbench(struct probe_rank *p, bool alone)
{
	struct probe_message probe_message = {.word = {PROBE_MESSAGE_BENCHED}};
	struct skep_probed_device device = {0};
	char text[256];
	struct skep_diag error = {0};
	assert(p->setup->microbench != NULL);
	static_assert(sizeof device <= sizeof probe_message.word - sizeof probe_message.word[0],
		"a device fits into a letter");
	if (!p->setup->microbench(p->setup->microbench_context, alone, &device, &error)) {
		snprintf(text, sizeof text, "rank %" PRIu32 ": %.200s", p->transport->rank, error.message);
		skep_probe_rank_fail(p, text);
		return;
	}
	memcpy(probe_message.word + 1, &device, sizeof device); /* between processes of one program */
	probe_message.words = 1 + (uint32_t)((sizeof device + 7) / 8);
	skep_probe_rank_write(p, 0, &probe_message);
}

static void do_rehearse(struct probe_rank *p, uint32_t to)
{
	const struct skep_probed_costs costs = skep_probe_rank_rehearse(p, to);
	struct probe_message rehearsed = {.words = 4,
		.word = {PROBE_MESSAGE_REHEARSED, bits(costs.handover_s), bits(costs.payload_s), bits(costs.byte_s)}};
	if (!p->over)
		skep_probe_rank_write(p, 0, &rehearsed);
}

static void serve(struct probe_rank *p)
{
	assert(p->transport->rank != 0);
	while (!p->over) {
		skep_probe_rank_poll(p);
		struct probe_message order = p->order;
		p->order.words = 0;
		if (order.words > 1 && order.word[0] == PROBE_MESSAGE_MEASURE && order.word[1] < p->transport->ranks)
			do_measure(p, (uint32_t)order.word[1]);
		else if (order.words > 3 && order.word[0] == PROBE_MESSAGE_FLOOD && order.word[1] < p->transport->ranks)
			do_flood(p, &order);
		else if (order.words > 1 && order.word[0] == PROBE_MESSAGE_BENCH && p->setup->microbench != NULL)
			do_microbench(p, order.word[1] != 0);
		else if (order.words > 1 && order.word[0] == PROBE_MESSAGE_REHEARSE && p->setup->passes != NULL &&
			 (order.word[1] == UINT32_MAX || order.word[1] < p->transport->ranks))
			do_rehearse(p, (uint32_t)order.word[1]);
	}
}

/* Until nothing is under way; not for ever. */
static bool drain(struct probe_rank *p)
{
	skep_time end_ns = probe_rank_now(p) + GRACE_NS;
	p->idle = 0;
	while (!p->broken && p->transport->pending(p->transport->self) > 0 && probe_rank_now(p) < end_ns)
		skep_probe_rank_poll(p);
	return !p->broken && p->transport->pending(p->transport->self) == 0;
}

bool skep_probe_rank_run(const struct skep_probe_rank_setup *setup, bool *ret_clean, struct skep_diag *reterr)
{
	struct probe_rank p = {.setup = setup, .transport = setup->transport};
	bool root = p.transport->rank == 0;
	skep_sched_wake_soon();
	if (setup->shaped && root && (p.shaper = skep_shaper_create(setup->shape)) == NULL)
		skep_probe_rank_fail(&p, "no memory for the network that is imposed");
	if (root)
		skep_probe_coordinator_run(&p);
	else
		serve(&p);
	if (root && !p.failed)
		send_all(&p, SKEP_FRAME_END);
	*ret_clean = drain(&p);
	if (p.reason[0] != '\0')
		skep_fail(reterr, "%s", p.reason);
	skep_shaper_destroy(p.shaper);
	skep_delay_queue_finish(&p.held);
	free(p.in);
	if (*ret_clean) /* a transfer may still read it */
		free(p.out);
	return !p.failed;
}
