/* SPDX-License-Identifier: Apache-2.0
 *
 * plot_legend.c - what a legend calls a run: its number, world, scenario and seed, and the settings that tell it from the
 * other runs of its scenario in the picture.
 */
#include <string.h>

#include "analysis/plot_script.h"
#include "analysis/settings.h"

#define SETTINGS_MAX 3u /* of a run */

/* Adds ", microbatch 32" unless it is there; false when there is no room for more. */
static bool add_setting(char *settings, size_t size, uint32_t *count, const struct skep_difference *d)
{
	char setting[192];
	const char *dot = strrchr(d->key, '.');
	snprintf(setting, sizeof setting, ", %s %s", dot ? dot + 1 : d->key, d->second[0] ? d->second : "not set");
	if (strstr(settings, setting) != NULL || strcmp(d->key, "seed") == 0) /* the legend has the seed anyway */
		return true;
	bool room = (*count)++ < SETTINGS_MAX;
	size_t used = strlen(settings);
	snprintf(settings + used, size - used, "%s", room ? setting : ", ...");
	return room;
}

/* The settings that tell a run from the other runs of its scenario. */
static bool list_settings(struct skep_store *store, const struct skep_plot_run *run, uint32_t runs, uint32_t which,
	char *ret, size_t ret_size, char *reterr, size_t size)
{
	uint32_t count = 0;
	ret[0] = '\0';
	for (uint32_t i = 0; i < runs; i++) {
		struct skep_differences d;
		if (strcmp(run[i].scenario, run[which].scenario) != 0)
			continue;
		if (!skep_settings_compare_runs(store, run[i].id, run[which].id, &d, reterr, size))
			return false;
		for (size_t k = 0; k < d.count && k < SKEP_DIFFERENCES_SHOWN; k++)
			if (!add_setting(ret, ret_size, &count, &d.item[k]))
				return true;
	}
	return true;
}

bool skep_plot_legend(struct skep_store *store, const struct skep_plot_run *run, uint32_t runs, uint32_t which,
	char *ret, size_t ret_size, char *reterr, size_t size)
{
	char settings[640];
	const struct skep_plot_run *r = &run[which];
	bool real = strcmp(r->world, "real") == 0;
	if (!list_settings(store, run, runs, which, settings, sizeof settings, reterr, size))
		return false;
	snprintf(ret, ret_size, "run %lld: %s, %s, seed %s%s%s%s%s%s%s", (long long)r->id, real ? "real" : "simulated",
		r->scenario, r->seed, settings, real ? " (" : "", real ? r->device : "",
		real && r->pace ? ", paced" : "", real && r->shape ? ", shaped" : "", real ? ")" : "");
	return true;
}
