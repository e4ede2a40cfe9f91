/* SPDX-License-Identifier: Apache-2.0
 *
 * transcript.c - decides how a message, a note, an operation or a fault reads.
 */
#include "tests/cluster/transcript.h"

#include "core/collective/collective.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

uint8_t transcript_message_kind(const char *name)
{
	for (uint8_t kind = 1; kind < SKEP_MESSAGE_KINDS; kind++)
		if (strcmp(skep_message_name(kind), name) == 0)
			return kind;
	return 0;
}

struct text {
	char *to;
	size_t room;
};

__attribute__((format(printf, 2, 3))) static void put(struct text *text, const char *format, ...)
{
	va_list list;
	va_start(list, format);
	int length = vsnprintf(text->to, text->room, format, list);
	va_end(list);
	size_t used = length < 0 ? 0 : (size_t)length >= text->room ? text->room - 1 : (size_t)length;
	text->to += used;
	text->room -= used;
}

struct name {
	char text[24];
};

static struct name peer_name(const struct skep_plan *plan, struct skep_peer peer)
{
	struct name name;
	if (peer.index == plan->workers)
		snprintf(name.text, sizeof(name.text), "dir");
	else if (peer.epoch == 1)
		snprintf(name.text, sizeof(name.text), "w%u", peer.index);
	else
		snprintf(name.text, sizeof(name.text), "w%u#%u", peer.index, peer.epoch);
	return name;
}

#define NAME(peer) peer_name(plan, peer).text

static void put_roster(struct text *text, const struct skep_plan *plan, const struct skep_message *m)
{
	put(text, "members");
	for (uint32_t i = 0; i < SKEP_ROSTER_PART && m->u.roster.first + i < m->u.roster.size; i++)
		put(text, " %s", NAME(m->u.roster.peer[i]));
	put(text, " from %u on, of %u", m->u.roster.first + 1, m->u.roster.size);
}

/* The end of a round: what is asked of its members, and what passes between them. */
static void put_reduction(struct text *text, const struct skep_plan *plan, const struct skep_message *m)
{
	put(text, " round %u.%u, ", m->round, m->attempt);
	if (m->kind == SKEP_MESSAGE_CHUNK && m->u.chunk.hop == SKEP_HOP_TIED)
		put(text, "what stage %u has of the table", m->stage);
	else if (m->kind == SKEP_MESSAGE_CHUNK || m->kind == SKEP_MESSAGE_CHUNK_ACK)
		put(text, "chunk %u, hop %u", m->u.chunk.chunk, m->u.chunk.hop);
	else if (m->kind == SKEP_MESSAGE_ROSTER)
		put_roster(text, plan, m);
	else if (m->kind == SKEP_MESSAGE_TALLY)
		put(text, "counted %u", m->u.tally.count);
	else if (m->kind == SKEP_MESSAGE_COMMIT) {
		put(text, "%u microbatches%s", m->u.commit.microbatches,
			m->u.commit.checkpoint ? ", then keep the state" : "");
		if (plan->model_chunks > 1)
			put(text, ", virtual stage %u", m->stage);
	} else if (m->u.reduce.size == 0)
		put(text, m->u.reduce.discard ? "no sum: throw away what you have counted"
					      : "no sum: what have you counted");
	else
		put(text, "member %u of %u, next is %s%s%s%s", m->u.reduce.rank + 1, m->u.reduce.size,
			NAME(m->u.reduce.next), m->u.reduce.eager ? ", when your share is counted" : "",
			skep_plan_no_flush(plan) && m->u.reduce.share == 0 ? ", with nothing" : "",
			m->u.reduce.checkpoint ? ", then keep the state" : "");
}

/* Asynchronous sync: what is told, and what is asked for. */
static void put_merge(struct text *text, const struct skep_message *m)
{
	if (m->kind == SKEP_MESSAGE_CLOSE_ROUND)
		put(text, " round %u is complete%s", m->round,
			m->u.close_round.now ? ", merge what you have of it" : "");
	else if (m->kind != SKEP_MESSAGE_OUTER_UPDATE)
		return;
	else if (m->u.tally.count == 0)
		put(text, " nothing of rounds below %u is left, after merge %u", m->open_round, m->update);
	else
		put(text, " number %u, of %u microbatches, %u of round %u among them", m->update, m->u.tally.count,
			m->u.tally.used, m->round);
}

static void put_peer(struct text *text, const struct skep_plan *plan, const struct skep_message *m)
{
	if (m->u.peer.alive)
		put(text, " %s serves stage %u%s", NAME(m->u.peer.who), m->stage,
			m->u.peer.leaving ? ", but will leave" : "");
	else
		put(text, " %s is out", NAME(m->u.peer.who));
}

static void put_admit(struct text *text, const struct skep_plan *plan, const struct skep_message *m)
{
	if (m->kind == SKEP_MESSAGE_ASSIGN) {
		put(text, " stage %u", m->stage);
		return;
	}
	put(text, " from round %u on, ", m->round);
	if (m->u.admit.source.index != SKEP_NO_INDEX)
		put(text, "state from %s", NAME(m->u.admit.source));
	else
		put(text, "found the stage anew from version %u", m->u.admit.checkpoint);
}

/* When the last worker of a fixed pipeline goes backwards. */
static void put_gate(struct text *text, const struct skep_plan *plan, const struct skep_message *m)
{
	if (m->kind == SKEP_MESSAGE_DRAIN && skep_plan_no_flush(plan)) {
		put(text, " give up all up to round %u", m->round);
		return;
	}
	put(text, " round %u, %s", m->round,
		m->kind == SKEP_MESSAGE_DRAIN           ? "do not wait for all of the share"
		: m->kind == SKEP_MESSAGE_FORWARDS_DONE ? "all of the share has gone forwards"
							: "the barrier is open");
}

static void put_load(struct text *text, const struct skep_message *m)
{
	put(text, " %llu.%03llu ready on the mean", (unsigned long long)m->u.load.queue_milli / 1000,
		(unsigned long long)m->u.load.queue_milli % 1000);
	if (m->u.load.needed_ns > 0)
		put(text, ", %.3f ms each", (double)m->u.load.needed_ns * 1e-6);
}

static void put_round(struct text *text, const struct skep_message *m)
{
	put(text, " round %u", m->round);
	if (m->kind == SKEP_MESSAGE_NORM)
		put(text, ".%u, of virtual stage %u", m->attempt, m->stage);
	else if (m->kind == SKEP_MESSAGE_FETCH || m->kind == SKEP_MESSAGE_STATE)
		put(text, ", chunk %u", m->u.state.chunk);
	else if (m->kind == SKEP_MESSAGE_FAULT)
		put(text, ", microbatch %u", m->microbatch);
}

static void put_message(struct text *text, const struct skep_plan *plan, const struct skep_message *m)
{
	put(text, "%-9s", skep_message_name(m->kind));
	switch (m->kind) {
	case SKEP_MESSAGE_FORWARD:
	case SKEP_MESSAGE_BACKWARD:
	case SKEP_MESSAGE_ABANDON:
	case SKEP_MESSAGE_OUTPUT:
	case SKEP_MESSAGE_INPUT:
	case SKEP_MESSAGE_CANCEL:
	case SKEP_MESSAGE_VALIDATED:
		put(text, " round %u, microbatch %u", m->round, m->microbatch);
		if (plan->model_chunks > 1)
			put(text, ", virtual stage %u", m->stage);
		return;
	case SKEP_MESSAGE_CANCELLED:
		put(text, " round %u, microbatch %u %s", m->round, m->microbatch,
			m->u.cancelled.dropped ? "was dropped" : "is kept");
		return;
	case SKEP_MESSAGE_GRANT:
		put(text, " round %u, microbatches %u..%u", m->round, m->microbatch,
			m->microbatch + m->u.grant.count - 1);
		return;
	case SKEP_MESSAGE_CHUNK:
	case SKEP_MESSAGE_CHUNK_ACK:
	case SKEP_MESSAGE_ROSTER:
	case SKEP_MESSAGE_REDUCE:
	case SKEP_MESSAGE_COMMIT:
	case SKEP_MESSAGE_TALLY:
		put_reduction(text, plan, m);
		return;
	case SKEP_MESSAGE_PEER:
		put_peer(text, plan, m);
		return;
	case SKEP_MESSAGE_ASSIGN:
	case SKEP_MESSAGE_ADMIT:
		put_admit(text, plan, m);
		return;
	case SKEP_MESSAGE_STOP:
		put(text, " %s", m->u.stop.ok ? "done" : "failed");
		return;
	case SKEP_MESSAGE_FINISHED:
		put(text, " round %u, microbatch %u %s", m->round, m->microbatch,
			m->u.finished.ok ? "came back" : "was abandoned");
		return;
	case SKEP_MESSAGE_LOAD:
		put_load(text, m);
		return;
	case SKEP_MESSAGE_SUSPECT:
		put(text, " %s", NAME(m->u.peer.who));
		return;
	case SKEP_MESSAGE_DRAIN:
	case SKEP_MESSAGE_FORWARDS_DONE:
	case SKEP_MESSAGE_BARRIER_LIFTED:
		put_gate(text, plan, m);
		return;
	case SKEP_MESSAGE_FETCH:
	case SKEP_MESSAGE_STATE:
	case SKEP_MESSAGE_NORM:
	case SKEP_MESSAGE_FAULT:
	case SKEP_MESSAGE_CHECKPOINTED:
	case SKEP_MESSAGE_CHECKPOINT_FAILED:
	case SKEP_MESSAGE_CHECKPOINT:
	case SKEP_MESSAGE_READY:
		put_round(text, m);
		return;
	default:
		put_merge(text, m);
	}
}

/* What counts microbatches. */
static const char *part(const struct skep_plan *plan)
{
	return plan->model_chunks > 1 ? "virtual stage" : "stage";
}

static void put_lost(struct text *text, const struct skep_plan *plan, const struct skep_note *note)
{
	if (note->kind == SKEP_NOTE_OUTER_UPDATED)
		put(text, "%s has merged in stage %u, of round %u:", NAME(note->peer), note->stage, note->round);
	else
		put(text, "lost in %s %u of round %u:", part(plan), note->stage, note->round);
	for (uint32_t i = 0; i < 64; i++)
		if (note->bits >> i & 1)
			put(text, " %u", note->microbatch + i);
}

/* Who serves which stage, and what a stage holds. */
static void put_membership(struct text *text, const struct skep_plan *plan, const struct skep_note *note)
{
	switch (note->kind) {
	case SKEP_NOTE_FENCED:
		put(text, "%s is fenced", NAME(note->peer));
		return;
	case SKEP_NOTE_UNEQUAL:
		put(text, "%s has other parameters than the rest of stage %u in round %u", NAME(note->peer),
			note->stage, note->round);
		return;
	case SKEP_NOTE_ROUND_VOIDED:
		put(text, "round %u is void, and begins again: %u were issued", note->round, note->issued);
		return;
	case SKEP_NOTE_ADMITTED:
		put(text, "%s steps along in stage %u from round %u on", NAME(note->peer), note->stage, note->round);
		return;
	case SKEP_NOTE_JOINED:
		put(text, "%s joins stage %u in round %u", NAME(note->peer), note->stage, note->round);
		return;
	case SKEP_NOTE_RESUMED:
		put(text, "the directory was lost; all begin again with round %u", note->round);
		return;
	case SKEP_NOTE_SHARD_LOST:
		put(text, "%s is lost with its shard of stage %u", NAME(note->peer), note->stage);
		return;
	case SKEP_NOTE_LEFT:
		put(text, "%s has left stage %u", NAME(note->peer), note->stage);
		return;
	case SKEP_NOTE_MIGRATED:
		put(text, "%s moves to stage %u", NAME(note->peer), note->stage);
		return;
	case SKEP_NOTE_STAGE_EMPTY:
		put(text, "stage %u has no worker left", note->stage);
		return;
	case SKEP_NOTE_STAGE_RESTARTED:
		put(text, "%s founds stage %u anew in round %u, from version %lld", NAME(note->peer), note->stage,
			note->round, (long long)note->version);
		return;
	case SKEP_NOTE_CHECKPOINTED:
		put(text, "version %u of stage %u is kept by %s", note->round, note->stage, NAME(note->peer));
		return;
	case SKEP_NOTE_CHECKPOINT_FAILED:
		put(text, "version %u of stage %u could not be kept by %s", note->round, note->stage, NAME(note->peer));
		return;
	case SKEP_NOTE_DIVERGED:
		put(text, "%s has seen what is not finite in round %u, virtual stage %u", NAME(note->peer), note->round,
			note->stage);
		return;
	case SKEP_NOTE_SCALED:
		put(text, "%u machines of kind %u are wanted, %u are there", (unsigned)note->wanted, note->stage,
			(unsigned)note->there);
		return;
	case SKEP_NOTE_RETURNED:
		put(text, "%s of stage %u is told to leave", NAME(note->peer), note->stage);
		return;
	default:
		put(text, "note of kind %u", note->kind);
	}
}

static void put_staleness(struct text *text, const struct skep_plan *plan, long long value)
{
	if (skep_plan_waves(plan))
		put(text, ", lacking %u before it of each other pipeline and %u of its own", skep_note_lacked(value),
			skep_note_lacked_own(value));
	else if (value != 0)
		put(text, ", on parameters %lld step%s old", value, value == 1 ? "" : "s");
}

static void put_note(struct text *text, const struct skep_plan *plan, const struct skep_note *note)
{
	long long value = skep_note_value(note);
	switch (note->kind) {
	case SKEP_NOTE_ROUND_OPENED:
		put(text, "round %u opens", note->round);
		return;
	case SKEP_NOTE_ISSUED:
		put(text, "%s may issue microbatches %u..%lld of round %u", NAME(note->peer), note->microbatch,
			note->microbatch + value - 1, note->round);
		return;
	case SKEP_NOTE_RERUN:
		put(text, "%s may issue microbatch %u of round %u again, for %ss %u..%u", NAME(note->peer),
			note->microbatch, note->round, part(plan), note->rerun.span.first, note->rerun.span.last);
		return;
	case SKEP_NOTE_MEMBER:
		put(text, "%s counted %lld in %s %u of round %u", NAME(note->peer), value, part(plan), note->stage,
			note->round);
		return;
	case SKEP_NOTE_LOST:
	case SKEP_NOTE_OUTER_UPDATED:
		put_lost(text, plan, note);
		return;
	case SKEP_NOTE_STAGE_COMMITTED:
		put(text, "%s %u of round %u is committed: %u counted, %lld lost", part(plan), note->stage, note->round,
			note->counted, value);
		return;
	case SKEP_NOTE_LOSS:
		put(text, "mean loss of round %u: %lld.%09lld", note->round, value / 1000000000, value % 1000000000);
		return;
	case SKEP_NOTE_CANDIDATE_LOSS:
		put(text, "mean loss of candidate %u in round %u: %lld.%09lld", note->candidate, note->round,
			value / 1000000000, value % 1000000000);
		return;
	case SKEP_NOTE_CANDIDATE_DROPPED:
		put(text, "candidate %u is out in round %u, for stage %u", note->candidate, note->round, note->stage);
		return;
	case SKEP_NOTE_CANDIDATE_CHOSEN:
		put(text, "candidate %u is kept after round %u, with %lld e-9 to come", note->candidate, note->round,
			value);
		return;
	case SKEP_NOTE_VALIDATING:
		put(text, "validation after %u rounds, of %u microbatches", note->round, note->asked);
		return;
	case SKEP_NOTE_VALIDATED:
		put(text, "mean loss of %u microbatches: %lld.%09lld", note->judged, value / 1000000000,
			value % 1000000000);
		return;
	case SKEP_NOTE_ROUND_CLOSED:
		put(text, "round %u closes: %u issued", note->round, note->issued);
		return;
	case SKEP_NOTE_STOPPED:
		put(text, "the run stops after %u rounds: %s", note->round, value ? "done" : "failed");
		return;
	case SKEP_NOTE_COUNTED:
		put(text, "counts microbatch %u of round %u", note->microbatch, note->round);
		if (plan->model_chunks > 1)
			put(text, " in virtual stage %u", note->stage);
		put_staleness(text, plan, value);
		return;
	case SKEP_NOTE_OVERFLOW:
		put(text, "has no room for microbatch %u of round %u", note->microbatch, note->round);
		return;
	default:
		put_membership(text, plan, note);
	}
}

static void put_op(struct text *text, const struct skep_plan *plan, const struct skep_op *op)
{
	put(text, "%s, %s %u, round %u", skep_op_name(op->kind), skep_op_sliced(op->kind) ? part(plan) : "stage",
		op->stage, op->round);
	if (skep_op_passes(op->kind))
		put(text, ", microbatch %u%s%s", op->microbatch,
			op->version == op->round       ? ""
			: op->version + 1 == op->round ? ", on the version before"
						       : ", on an older version",
			op->recomputed ? ", recomputed" : "");
	else if (op->kind == SKEP_OP_COPY_TIED || op->kind == SKEP_OP_STORE_TIED)
		put(text, ", elements %u..%u", (unsigned)op->first, (unsigned)(op->first + op->count));
	else if (skep_op_reduces(op->kind) &&
		 (skep_collective_has_roster(plan->reduction.collective) ||
			 plan->reduction.collective == SKEP_COLLECTIVE_CHAIN ||
			 (plan->reduction.collective == SKEP_COLLECTIVE_RING && plan->reduction.chunks > 1) ||
			 skep_plan_buckets(plan, op->stage) > 1 || plan->inner.fragments > 1))
		put(text, ", elements %u..%u", (unsigned)op->first, (unsigned)(op->first + op->count));
	else if (skep_op_reduces(op->kind))
		put(text, ", chunk %u of %u", op->chunk, op->members);
	else if (op->kind == SKEP_OP_SAVE || op->kind == SKEP_OP_LOAD)
		put(text, ", chunk %u of %u", op->chunk, op->chunks);
	else if (op->kind == SKEP_OP_INNER_STEP)
		put(text, ", step %u: %u microbatches", op->nth, op->microbatches);
	else if (op->kind == SKEP_OP_PSEUDO_GRAD)
		put(text, ": %u microbatches", op->microbatches);
	else if (op->kind == SKEP_OP_CHECKPOINT && op->presumed)
		put(text, ", presumed");
	else if (op->kind == SKEP_OP_STEP)
		put(text, ": %u members, %u microbatches", op->members, op->microbatches);
	if (op->kind == SKEP_OP_STEP && skep_plan_is_tied_vstage(plan, op->stage))
		put(text, ", %u in the other stage", op->tied);
	if (plan->inner.fragments > 1 && (op->kind == SKEP_OP_STEP || op->kind == SKEP_OP_PSEUDO_GRAD))
		put(text, ", elements %u..%u", (unsigned)op->first, (unsigned)(op->first + op->count));
	if (op->kind == SKEP_OP_BACKWARD && op->parts > 0)
		put(text, ", part %u of %u", op->part + 1, op->parts);
	if (op->kind == SKEP_OP_PACK_PART || (op->kind == SKEP_OP_UNPACK_PART && buf_none(op->in)))
		put(text, ", its own part, of %u", op->microbatches);
	else if (op->kind == SKEP_OP_UNPACK_PART)
		put(text, ", the part of member %u", op->member + 1);
}

void transcript_line(const struct skep_plan *plan, const struct trace *trace, char ret[TRANSCRIPT_LINE])
{
	struct text text = {ret, TRANSCRIPT_LINE};
	const struct skep_message *m = trace->message;
	struct skep_note note = trace->what == TRACE_NOTE ? *trace->note : (struct skep_note){0};
	unsigned long long us = trace->now / 1000;
	if (note.stage != (uint16_t)SKEP_NO_STAGE) /* stages of all candidates are numbered through */
		note.stage += (uint16_t)(note.candidate * plan->stages);
	put(&text, "%6llu.%03llu ms  ", us / 1000, us % 1000);
	switch (trace->what) {
	case TRACE_SEND:
	case TRACE_ARRIVE:
	case TRACE_FAIL:
	case TRACE_LOST:
		put(&text, "%-5s %s ", NAME(m->from), trace->what == TRACE_SEND ? ".." : "->");
		put(&text, "%-5s ", NAME(m->to));
		put_message(&text, plan, m);
		if (trace->what == TRACE_FAIL || trace->what == TRACE_LOST)
			put(&text, trace->what == TRACE_FAIL ? " (comes back)" : " (lost)");
		return;
	case TRACE_RUN:
	case TRACE_DONE:
		put(&text, "%-5s %s ", NAME(trace->who), trace->what == TRACE_RUN ? "asks for" : "has done");
		put_op(&text, plan, trace->op);
		return;
	case TRACE_NOTE:
		put(&text, "%-5s : ", NAME(trace->who));
		put_note(&text, plan, &note);
		return;
	case TRACE_FAULT:
		put(&text, "      * %s %s", NAME(trace->who), trace->fault);
		return;
	}
}
