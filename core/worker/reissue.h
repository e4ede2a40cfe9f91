/* SPDX-License-Identifier: Apache-2.0
 *
 * reissue.h - a time-out chooses again, with a ban or without.
 *
 * A microbatch that has been with another worker for longer than the plan's reissue timeout is asked back (CANCEL). One
 * that has not begun it drops it and says so; then it may go to another worker, and it goes to this one never again:
 * whatever copy of it still comes there is ignored as a duplicate. One that has begun it, or passed it on, keeps it,
 * and the sender waits. A silent one does not answer: then only its fencing frees the microbatch (skep.h, rule 1).
 * Either way the wiring charges the time that was waited, so that others are chosen meanwhile.
 *
 * With the plan's `ban` at once the sender also bans the silent one, as in Algorithm 1 of SWARM: it is out of the view, as it is
 * when a message to it comes back, or when the world says that its process is dead. What came back was never there, so it goes to
 * another worker without being asked for. A peer of the paper is banned until it announces itself in the DHT; here until
 * the directory, asked when the ban is a heartbeat old, still counts it among those that serve.
 *
 * A microbatch is asked back only on its way forwards (a gradient is worked on before all activations, so it seldom
 * waits), only if another worker could do it, and is taken back once in a stage: the second worker is waited for.
 */
#pragma once

#include "core/skep.h"

struct worker;
struct step;
struct skep_work;

/* The work has just been sent to work->down, to wait there in this state (enum skep_work_state). */
void skep_reissue_begin(struct worker *w, struct step *step, struct skep_work *work, uint8_t state);
/* Picks the worker that gets the microbatch next, none that it was taken back from. Index SKEP_NO_INDEX: there is none;
 * if there is one that may not have it again, then none may come either: *ret_hopeless. */
struct skep_peer skep_reissue_choose(
	struct worker *w, struct step *step, struct skep_work *work, uint32_t stage, bool *ret_hopeless);
void skep_reissue_pass(struct worker *w, struct step *step); /* a timer: looks for what has waited too long */
void skep_reissue_on_cancel(struct worker *w, struct step *step, const struct skep_message *message);
void skep_reissue_on_cancelled(struct worker *w, struct step *step, const struct skep_message *message);
/* Is a CANCEL that could not be delivered of use still? */
bool skep_reissue_wants(struct worker *w, const struct skep_message *cancel);
/* Nothing without such bans. */
void skep_reissue_ban(struct worker *w, const struct skep_plan *plan, struct skep_peer who);
/* A FORWARD that is still of use came back. True: its receiver is banned, and the work goes to another one. */
bool skep_reissue_elsewhere(struct worker *w, struct step *step, const struct skep_message *forward);
/* With each heartbeat: is the directory to be asked about bans now? A heartbeat later its answer is taken as here. */
bool skep_reissue_ban_is_old(struct worker *w, struct step *step);
