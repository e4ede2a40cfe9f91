/* SPDX-License-Identifier: Apache-2.0
 *
 * orphan.h - a worker that has lost the directory (orphan.c).
 */
#pragma once

#include "core/skep.h"

struct step;
struct worker;

enum orphan {         /* the directory is dead, and the worker */
	ORPHAN_NO,    /* (it is not, or the worker has nothing to keep) */
	ORPHAN_KEEPS, /* is to keep what it holds, */
	ORPHAN_KEPT,  /* does, or has; */
	ORPHAN_STEPS, /* presumes a COMMIT, and makes its step; */
	ORPHAN_LAST,  /* keeps what that has made; */
	ORPHAN_DONE   /* does nothing more */
};

void skep_orphan_begin(struct worker *w, const struct step *step);   /* the directory is dead */
void skep_orphan_failed(struct worker *w, const struct skep_op *op); /* this operation has */
/* It has kept what it holds, and knows what it would be told. */
bool skep_orphan_presumes(const struct worker *w, const struct skep_plan *plan);
struct skep_message skep_orphan_commit(const struct worker *w, const struct skep_plan *plan, uint32_t vstage);
