/* SPDX-License-Identifier: Apache-2.0
 *
 * candidates.c - see candidates.h.
 */
#include "analysis/store/candidates.h"

#include <math.h>
#include <stdlib.h>

static void begin(struct skep_candidates *c)
{
	for (size_t i = 0; i < (size_t)c->candidates * c->rounds; i++)
		c->loss_nano[i] = INT64_MIN;
	for (uint32_t w = 0; w < c->workers; w++)
		c->home[(size_t)w * SKEP_CANDIDATE_LIVES + 1] = (uint8_t)skep_plan_candidate_of(c->plan, w);
	c->over = false;
}

bool skep_candidates_init(struct skep_candidates *c, const struct skep_plan *plan)
{
	*c = (struct skep_candidates){0};
	if (!skep_plan_has_candidates(plan))
		return true;
	c->candidates = plan->candidates.count;
	c->rounds = plan->candidates.rounds;
	c->capacity = skep_round_capacity(plan);
	c->loss_nano = malloc((size_t)c->candidates * c->rounds * sizeof *c->loss_nano);
	c->plan = plan;
	c->workers = plan->workers;
	c->home = calloc((size_t)c->workers * SKEP_CANDIDATE_LIVES, 1);
	if (c->loss_nano == NULL || c->home == NULL)
		return false;
	begin(c);
	return true;
}

void skep_candidates_finish(struct skep_candidates *c)
{
	free(c->loss_nano);
	free(c->home);
	c->loss_nano = NULL;
	c->home = NULL;
}

static void keep(struct skep_candidates *c, const struct skep_note *note)
{
	bool known = note->candidate < c->candidates && note->round < c->rounds;
	if (note->kind == SKEP_NOTE_CANDIDATE_LOSS && known)
		c->loss_nano[(size_t)note->candidate * c->rounds + note->round] = note->loss_nano;
	if (note->kind != SKEP_NOTE_CANDIDATE_CHOSEN)
		return;
	c->over = true;
	c->kept = note->candidate;
	c->end = note->round + 1;
}

static uint8_t *home(struct skep_candidates *c, struct skep_peer peer)
{
	return &c->home[(size_t)peer.index * SKEP_CANDIDATE_LIVES + peer.epoch % SKEP_CANDIDATE_LIVES];
}

struct skep_note skep_candidates_hear(struct skep_candidates *c, const struct skep_note *note)
{
	struct skep_note heard = *note;
	if (c->candidates == 0)
		return heard;
	keep(c, note);
	if (note->kind == SKEP_NOTE_RESUMED && (!c->over || note->round < c->end)) /* the trial begins again */
		begin(c);
	if (note->kind == SKEP_NOTE_ADMITTED && note->peer.index < c->workers)
		*home(c, note->peer) = (uint8_t)(c->over ? c->kept : note->candidate);
	bool worker = note->kind == SKEP_NOTE_COUNTED && note->peer.index < c->workers; /* it does not know which */
	uint32_t of = worker ? *home(c, note->peer) : c->over ? c->kept : note->candidate;
	bool numbered = worker || note->kind == SKEP_NOTE_ISSUED || note->kind == SKEP_NOTE_LOST ||
	                note->kind == SKEP_NOTE_RERUN;
	if (numbered && (!c->over || note->round < c->end))
		heard.microbatch += of * c->capacity;
	return heard;
}

double skep_candidates_loss(const struct skep_candidates *c, uint32_t candidate, uint32_t round)
{
	if (candidate >= c->candidates || round >= c->rounds)
		return NAN;
	int64_t loss_nano = c->loss_nano[(size_t)candidate * c->rounds + round];
	return loss_nano == INT64_MIN ? NAN : loss_nano == INT64_MAX ? INFINITY : (double)loss_nano / 1e9;
}

double skep_candidates_last(const struct skep_candidates *c, uint32_t candidate)
{
	double last = NAN;
	for (uint32_t round = c->rounds; round > 0 && isnan(last); round--)
		last = skep_candidates_loss(c, candidate, round - 1);
	return last;
}

double skep_candidates_mean(const struct skep_candidates *c)
{
	double sum = 0;
	uint32_t count = 0;
	for (uint32_t k = 0; k < c->candidates; k++) {
		double last = skep_candidates_last(c, k);
		sum += isnan(last) ? 0 : last;
		count += !isnan(last);
	}
	return count > 0 ? sum / count : NAN;
}
