/* SPDX-License-Identifier: Apache-2.0
 *
 * plot_part.h - when each worker took part in a reduction: what the timeline shades. Private to analysis/.
 */
#ifndef SKEP_ANALYSIS_PLOT_PART_H
#define SKEP_ANALYSIS_PLOT_PART_H

#include "analysis/plot_script.h"

struct skep_part { /* of one worker, in the reduction of one round and stage */
	uint32_t worker;
	double begin_s; /* hands in its sum */
	double passed_s; /* end of the last pass beside it, begin_s if there is none: from here on the worker only waits */
	double end_s;    /* steps; if it never did, its last operation of the reduction */
};

struct skep_parts {
	struct skep_part *part; /* by worker, then begin */
	size_t parts, capacity;
	double known_s; /* operations are recorded until then; INFINITY: to the end of the run */
};

bool skep_parts_read(
	struct skep_store *store, const struct skep_plot_run *run, struct skep_parts *ret, char *reterr, size_t size);
void skep_parts_finish(struct skep_parts *parts);

#endif
