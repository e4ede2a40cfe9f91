/* SPDX-License-Identifier: Apache-2.0
 *
 * varied.h - in which settings listed runs of the same scenario differ, as --set writes them. Private to this folder.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SKEP_VARIED_BYTES 320u

struct skep_varied {
	struct skep_varied_scenario
		*scenario; /* [scenarios], each with its first run's text and the keys that differ */
	uint32_t scenarios;
};

/* Takes in a run by its scenario's name and text. False: no memory. */
bool skep_varied_add(struct skep_varied *v, const char *scenario, const char *text);
/* When all are taken in: "sync.every=10 seed=2", or "" where nothing differs. Returns `ret`. */
const char *skep_varied_text(
	const struct skep_varied *v, const char *scenario, const char *text, char ret[SKEP_VARIED_BYTES]);
void skep_varied_finish(struct skep_varied *v);
