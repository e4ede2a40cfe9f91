/* SPDX-License-Identifier: Apache-2.0
 *
 * periodic.h - the parts of periodic sync, for methods that differ from it in some of them alone (periodic.c).
 */
#pragma once

#include "core/methods/method.h"

void skep_periodic_init(struct worker *w, const struct skep_plan *plan);
void skep_periodic_counted(struct worker *w, const struct skep_plan *plan, uint32_t round, uint32_t microbatch);
uint32_t skep_periodic_share(const struct worker *w, const struct skep_plan *plan); /* microbatches of a step, here */
void skep_periodic_do(
	struct worker *w, struct step *step, enum skep_op_kind kind, uint32_t round, uint32_t microbatches);

/* Nothing: no inner step follows on the elements of a part. */
void skep_local_part(const struct worker *w, struct skep_op *op);
