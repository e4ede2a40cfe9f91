/* SPDX-License-Identifier: Apache-2.0
 *
 * one_f_one_b.c - 1F1B (PipeDream-flush, Narayanan et al. 2021): one forwards, one backwards. After a BACKWARD a FORWARD is
 * preferred, else a BACKWARD; stage s of K holds at most K - s microbatches. (Backwards whenever that is possible would hold
 * no more, but gradients that come together would be done together, and the stages behind would wait meanwhile.) The last
 * stage can always go backwards with what it went forwards with, so the one before gets its gradient and has room again, and
 * so on: no stage waits for ever.
 */
#include "core/schedule/order.h"

#include "core/worker/worker.h"
#include <assert.h>

static void forward(struct worker *w, struct step *step)
{
	assert(w->state == WORKER_SERVING);
	if (skep_order_has_room(w))
		skep_schedule_forward(w, step);
}

static void pick(struct worker *w, struct step *step)
{
	assert(w->state == WORKER_SERVING);
	bool forward_first = w->compute_kind == SKEP_OP_BACKWARD;
	if (forward_first)
		forward(w, step);
	if (w->compute_op == 0)
		skep_schedule_backward(w, step);
	if (w->compute_op == 0 && !forward_first)
		forward(w, step);
}

const struct skep_order skep_order_1f1b = {.pick = pick, .passed = skep_order_no_barrier, .turns = SKEP_TURNS_NONE};
