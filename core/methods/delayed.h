/* SPDX-License-Identifier: Apache-2.0
 *
 * delayed.h - what all methods have in common in which a round is open while the one before is reduced (delayed.c).
 */
#pragma once

#include "core/methods/method.h"

void skep_delayed_committed(struct directory *d, struct step *step);
bool skep_delayed_serves_late(struct directory *d, uint32_t worker);
void skep_delayed_carry_on(struct directory *d, struct step *step, uint32_t worker);
bool skep_delayed_none_can(struct directory *d, const struct skep_plan *plan);
size_t skep_delayed_worker_lay_out(struct worker *w, const struct skep_plan *plan, size_t at); /* two tallies */
