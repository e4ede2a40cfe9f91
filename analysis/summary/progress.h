/* SPDX-License-Identifier: Apache-2.0
 *
 * progress.h - a recorder that shows on stderr how far a run has come, with the time left: a bar that is drawn anew where a
 * terminal shows it, else (a log, a pipe) a line now and then.
 */
#pragma once

#include "core/record.h"

#define SKEP_PROGRESS_LINE_S 30 /* between two lines */

struct skep_progress {
	const char *label;
	bool visible, drawn; /* the bar */
	bool lines;          /* instead of it; not for skep_progress_show */
	double begin_s, drawn_s;
	uint32_t done, total; /* rounds; 0 before the first one is done */
	uint32_t before;      /* that were done when the run began: it goes on with another */
	bool validated;       /* the last validation's: */
	double validation_loss;
};

struct skep_progress skep_progress_begin(const char *label, bool visible);
/* `progress` must outlive the recorder and stay where it is. */
struct skep_recorder skep_progress_recorder(struct skep_progress *progress);
/* Of things that are not rounds: `before` of them were there when the bar began. */
void skep_progress_show(
	struct skep_progress *progress, uint32_t done, uint32_t before, uint32_t total, uint32_t running);
void skep_progress_end(struct skep_progress *progress); /* wipes the bar */
