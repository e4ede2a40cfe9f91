/* SPDX-License-Identifier: Apache-2.0
 *
 * plot_timeline.h - what the two forms of the timeline share: operations one by one (plot_timeline.c), and the whole run in
 * bins of time (plot_overview.c). Private to analysis/.
 */
#pragma once

#include "analysis/plot/plot_presence.h"
#include "base/diag.h"

/* ---- when each worker took part in a reduction -----------: what the timeline shades --------------------------------- */

struct skep_part { /* of one worker, in the reduction of one round and stage */
	uint32_t worker;
	double begin_s; /* hands in its sum */
	double passed_s; /* end of the last pass beside it, begin_s if there is none: from here on the worker only waits */
	double end_s;    /* steps; if it never did, its last operation of the reduction */
};

struct skep_parts {
	struct skep_part *part; /* by worker, then begin */
	size_t parts;
	double known_s; /* operations are recorded until then; INFINITY: to the end of the run */
};

/* ---- the picture ---------------------------------------------------------------------------------------------- */

enum skep_timeline_colour {
	SKEP_TIMELINE_FORWARD,
	SKEP_TIMELINE_BACKWARD,
	SKEP_TIMELINE_STEP,
	SKEP_TIMELINE_REDUCE,
	SKEP_TIMELINE_STATE,
	SKEP_TIMELINE_WAIT,
	SKEP_TIMELINE_IDLE,
	SKEP_TIMELINE_AWAY,
	SKEP_TIMELINE_COLOURS
};

struct skep_timeline_key {
	const char *title;
	uint32_t rgb;
};
extern const struct skep_timeline_key skep_timeline_key[SKEP_TIMELINE_COLOURS];

struct skep_timeline {
	struct skep_store *store;
	struct skep_plot_run run;
	struct skep_presence presence;
	struct skep_parts parts;
	uint32_t *position; /* [workers]: row of the picture, by first stage and number */
	double begin_s, end_s;
	double unit; /* of the time axis, per second */
	const char *unit_name;
	bool present[SKEP_TIMELINE_COLOURS]; /* what the legend has to name */
	struct skep_picture *picture;
	FILE *script;
	struct skep_diag *reterr;
};

bool skep_timeline_workers(struct skep_timeline *timeline, double margin_pixels);
/* The same for rows of that height: which row each worker has, with the numbers and the stages on the axis. */
bool skep_timeline_rows(struct skep_timeline *timeline, double row_pixels);
void skep_timeline_legend(struct skep_timeline *timeline, bool pale);
void skep_timeline_title(struct skep_timeline *timeline, const char *part);

/* The whole run; fails without rows of `activity`. */
bool skep_timeline_overview(struct skep_timeline *timeline);
