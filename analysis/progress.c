/* SPDX-License-Identifier: Apache-2.0
 *
 * progress.c - see progress.h. Redraws at most ten times a second.
 */
#include "analysis/progress.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define BAR_CELLS 30

static double seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

struct skep_progress skep_progress_begin(const char *label, bool visible)
{
	double now_s = seconds();
	return (struct skep_progress){.label = label, .visible = visible, .begin_s = now_s, .drawn_s = now_s};
}

static void draw(void *context, skep_time now, uint32_t done, uint32_t total)
{
	struct skep_progress *progress = context;
	double now_s = seconds();
	if (!progress->visible || total == 0 || now_s - progress->drawn_s < 0.1)
		return;
	double share = (double)done / total, spent_s = now_s - progress->begin_s;
	int cells = (int)(share * BAR_CELLS);
	char bar[BAR_CELLS + 1];
	memset(bar, ' ', BAR_CELLS);
	memset(bar, '=', (size_t)cells);
	bar[BAR_CELLS] = '\0';
	fprintf(stderr, "\r%s [%s] %3.0f %%  round %u of %u, at %.1f s", progress->label, bar, 100 * share, done, total,
		(double)now * 1e-9);
	if (done > 0)
		fprintf(stderr, ", %.0f s left", spent_s * (total - done) / done);
	fputs("\033[K", stderr);
	fflush(stderr);
	progress->drawn_s = now_s;
	progress->drawn = true;
}

struct skep_recorder skep_progress_recorder(struct skep_progress *progress)
{
	return (struct skep_recorder){.context = progress, .progress = draw};
}

void skep_progress_end(struct skep_progress *progress)
{
	if (progress->drawn)
		fputs("\r\033[K", stderr);
}
