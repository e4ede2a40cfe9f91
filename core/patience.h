/* SPDX-License-Identifier: Apache-2.0
 *
 * patience.h - a time-out chooses again without a ban.
 *
 * A microbatch that has been with another worker for longer than the plan's patience is asked back (CANCEL). One that has not
 * begun it drops it and says so; then it may go to another worker, and it goes to this one never again: whatever copy of it
 * still comes there is ignored as a duplicate. One that has begun it, or passed it on, keeps it, and the sender waits.
 * A silent one does not answer: then only its fencing frees the microbatch (skep.h, rule 1). Either way the wiring charges the
 * time that was waited, so that others are chosen meanwhile; nobody is banned.
 *
 * A microbatch is asked back only on its way forwards (a gradient is worked on before all activations, so it seldom waits), only
 * if somebody else could do it, and is taken back once in a stage: the second worker is waited for.
 */
#ifndef SKEP_CORE_PATIENCE_H
#define SKEP_CORE_PATIENCE_H

#include "core/skep.h"

struct worker;
struct step;
struct skep_work;

/* The work has just been sent to work->down, to wait there in this state (enum skep_work_state). */
void patience_begin(struct worker *w, struct step *step, struct skep_work *work, uint8_t state);
/* Who gets it next: nobody that it was taken back from. index SKEP_NO_INDEX: nobody is there. Then, if there is one that may
 * not have it again, nobody may come either: *ret_hopeless. */
struct skep_peer patience_choose(
	struct worker *w, struct step *step, struct skep_work *work, uint32_t stage, bool *ret_hopeless);
void patience_pass(struct worker *w, struct step *step); /* a timer: looks for what has waited too long */
void patience_on_cancel(struct worker *w, struct step *step, const struct skep_message *message);
void patience_on_cancelled(struct worker *w, struct step *step, const struct skep_message *message);
/* Is a CANCEL that could not be delivered of use still? */
bool patience_wants(struct worker *w, const struct skep_message *cancel);

#endif
