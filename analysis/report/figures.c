/* SPDX-License-Identifier: Apache-2.0
 *
 * figures.c - the sections that gnuplot draws: losses, timelines, utilisation.
 */
#include "analysis/report/page.h"

#define UTILISATION_RUNS 4u /* that fit into one picture */

bool skep_page_losses(struct skep_page *page)
{
	static const struct skep_plot_axes by_cost = {.x = "cost"};
	static const struct skep_plot_choice against_cost = {.axes = &by_cost};
	skep_page_open(page, "loss", "Loss against time and price");
	skep_page_picture_of_all(page, "accuracy", NULL, "Training loss against the time of the run.");
	skep_page_picture_of_all(page, "accuracy", &against_cost, "Training loss against what all machines have cost.");
	skep_page_close(page);
	return true;
}

static void write_timeline(struct skep_page *page, uint32_t which)
{
	static const struct skep_plot_rounds whole = {.all = true};
	static const struct skep_plot_choice all = {.rounds = &whole};
	char caption[2 * SKEP_PAGE_NAME_BYTES], name[SKEP_PAGE_NAME_BYTES];
	snprintf(caption, sizeof caption, "The whole of %s: what each worker did, in bins of time.",
		skep_page_run_name(&page->run[which], name));
	skep_page_picture(page, "timeline", &page->run[which].id, 1, &all, caption);
}

bool skep_page_times(struct skep_page *page)
{
	int64_t run[UTILISATION_RUNS];
	uint32_t runs = page->runs < UTILISATION_RUNS ? page->runs : UTILISATION_RUNS;
	skep_page_open(page, "timeline", "Timeline");
	for (uint32_t i = 0; i < page->runs; i++)
		write_timeline(page, i);
	skep_page_close(page);
	skep_page_open(page, "utilisation", "Utilisation");
	for (uint32_t i = 0; i < runs; i++)
		run[i] = page->run[i].id;
	skep_page_picture(page, "utilisation", run, runs, NULL,
		"Compute time over time alive of each worker, over the time of the run.");
	if (page->runs > runs)
		skep_page_note(page, "The picture has room for the first four runs.");
	skep_page_close(page);
	return true;
}
