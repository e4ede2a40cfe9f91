/* SPDX-License-Identifier: Apache-2.0
 *
 * note.c - notes as two numbers.
 */
#include <assert.h>

#include "core/skep.h"

static int64_t pack_fault(struct skep_fault_at fault)
{
	return (int64_t)fault.kind << 16 | fault.layer;
}

static struct skep_fault_at unpack_fault(int64_t value)
{
	return (struct skep_fault_at){.kind = (uint8_t)(value >> 16), .layer = (uint16_t)value};
}

static bool names_candidate(uint8_t kind)
{
	return kind >= SKEP_NOTE_CANDIDATE_LOSS && kind <= SKEP_NOTE_CANDIDATE_CHOSEN;
}

uint32_t skep_note_number(const struct skep_note *note)
{
	return names_candidate(note->kind) ? note->candidate : note->number;
}

int64_t skep_note_value(const struct skep_note *note)
{
	switch (note->kind) {
	case SKEP_NOTE_RERUN:
		return (int64_t)((uint64_t)note->rerun.attempt << 32 | (uint64_t)note->rerun.span.first << 16 |
				 note->rerun.span.last);
	case SKEP_NOTE_DIVERGED:
	case SKEP_NOTE_CANDIDATE_DROPPED:
		return pack_fault(note->fault);
	default:
		return note->value;
	}
}

void skep_note_set(struct skep_note *note, uint32_t number, int64_t value)
{
	assert(note->kind > 0 && note->kind < SKEP_NOTE_KINDS);
	if (names_candidate(note->kind))
		note->candidate = (uint8_t)number;
	else
		note->number = number;
	switch (note->kind) {
	case SKEP_NOTE_RERUN:
		note->rerun.attempt = (uint32_t)((uint64_t)value >> 32);
		note->rerun.span = (struct skep_span){(uint16_t)(value >> 16), (uint16_t)value};
		break;
	case SKEP_NOTE_DIVERGED:
	case SKEP_NOTE_CANDIDATE_DROPPED:
		note->fault = unpack_fault(value);
		break;
	default:
		note->value = value;
	}
}
