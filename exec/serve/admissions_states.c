/* SPDX-License-Identifier: Apache-2.0
 *
 * admissions_states.c - see admissions.h: states that processes hand over, and ask for. The guest waits until its state is on the
 * disk (saver.h), and trains on while replicas fetch it (lease.h).
 *
 * Kept true: of each part of the state one version at most is on its way to a majority. A guest that brings the next one waits
 * until that is there, so that a line that is slower than states are made holds them up, and each comes to a majority in its
 * turn.
 */
#include "exec/serve/admissions_internal.h"

#include <assert.h>
#include <time.h>

#define SETTLE_REST_NS 5000000

static void answer_state(struct skep_admissions *a, uint32_t number, uint64_t bytes)
{
	admissions_tell(a, number, SKEP_RECORD_STATE, &(union skep_words){.state = {.bytes = bytes}});
}

/* Its state is whole on this machine. */
static void is_here_now(struct skep_admissions *a, uint32_t number)
{
	assert(number < SKEP_GUESTS_MAX);
	struct guest *guest = &a->guest[number];
	uint32_t *agreeing = a->setup.lease != NULL ? &a->agreeing[guest->word.stage] : NULL;
	if (agreeing != NULL && *agreeing != 0 && *agreeing != guest->word.version) {
		guest->state = KEEPING;
		return;
	}
	if (agreeing != NULL) {
		*agreeing = guest->word.version;
		skep_lease_keep(a->setup.lease, guest->word.stage, guest->word.version, guest->word.bytes);
	}
	answer_state(a, number, 0);
}

static void hear_replicas(struct skep_admissions *a)
{
	uint32_t stage, version;
	while (skep_lease_kept(a->setup.lease, &stage, &version))
		if (a->agreeing[stage] == version)
			a->agreeing[stage] = 0;
}

void skep_admissions_settle(struct skep_admissions *a)
{
	const struct timespec rest = {.tv_nsec = SETTLE_REST_NS};
	assert(a->setup.lease == NULL || a->setup.states != NULL);
	for (uint32_t part = 0; a->setup.lease != NULL && part < skep_plan_parts(&a->setup.scenario->plan);) {
		hear_replicas(a);
		if (a->agreeing[part] == 0)
			part++;
		else
			nanosleep(&rest, NULL); /* the lease's thread ends this process if no majority is there */
	}
}

/* What is on the disk by now, or cannot be kept. */
static void hear_saver(struct skep_admissions *a)
{
	uint32_t number;
	struct skep_state_word word;
	struct skep_diag why;
	while (skep_saver_take(a->saver, &number, &word, &why)) {
		if (number != SKEP_SAVER_NO_ONE && why.set) {
			a->guest[number].state = BRINGING;
			skep_admissions_refuse(a, number, false, "%s", why.message);
		} else if (number != SKEP_SAVER_NO_ONE) {
			a->guest[number].state = BRINGING;
			is_here_now(a, number);
		} else if (!why.set && a->setup.lease != NULL) {
			skep_lease_keep(a->setup.lease, word.stage, word.version, word.bytes);
		}
	}
}

void skep_admissions_on_turn(void *self)
{
	struct skep_admissions *a = self;
	if (a->saver != NULL)
		hear_saver(a);
	if (a->setup.lease == NULL)
		return;
	hear_replicas(a);
	for (uint32_t i = 0; i < SKEP_GUESTS_MAX; i++) {
		struct guest *guest = &a->guest[i];
		if (guest->state != KEEPING || a->agreeing[guest->word.stage] != 0)
			continue;
		guest->state = BRINGING;
		is_here_now(a, i);
	}
}

/* It has kept a state, or lacks one. */
void skep_admissions_on_state(struct skep_admissions *a, uint32_t number, const struct skep_state_word *word)
{
	assert(number < SKEP_GUESTS_MAX);
	struct guest *guest = &a->guest[number];
	struct skep_diag why = {0};
	if (!skep_tickets_know(a->setup.tickets, word->secret) || a->setup.states == NULL ||
		word->stage >= skep_plan_parts(&a->setup.scenario->plan)) {
		skep_mesh_guest_close(a->mesh, number);
		return;
	}
	skep_mesh_guest_trust(a->mesh, number);
	guest->state = word->keep ? BRINGING : ASKING;
	guest->word = *word;
	if (word->keep && skep_arrival_needless(a->setup.states, word)) {
		is_here_now(a, number);
	} else if (word->keep) {
		guest->arrival = skep_arrival_begin(a->setup.states, word, &why);
		if (guest->arrival != NULL)
			answer_state(a, number, word->bytes);
	} else {
		guest->fd = skep_departure_open(a->setup.states, word, &guest->end, &why);
		guest->fetching = guest->fd >= 0;
		guest->at = 0;
		if (guest->fetching)
			answer_state(a, number, guest->end);
	}
	if (why.set)
		skep_admissions_refuse(a, number, false, "%s", why.message);
}

void skep_admissions_on_piece(struct skep_admissions *a, uint32_t number, const struct skep_piece *piece)
{
	assert(number < SKEP_GUESTS_MAX);
	struct guest *guest = &a->guest[number];
	struct skep_diag why = {0};
	bool whole = false;
	bool fine = guest->arrival != NULL && skep_arrival_add(guest->arrival, piece, &whole, &why);
	if (fine && whole) {
		fine = skep_saver_give(a->saver, guest->arrival, number) || skep_fail(&why, "no memory for a state");
		guest->arrival = NULL;
		if (fine)
			guest->state = SAVING;
	}
	if (!fine)
		skep_admissions_refuse(
			a, number, false, "%s", why.set ? why.message : "it sends a state that nothing asked for");
}
