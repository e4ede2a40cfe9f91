/* SPDX-License-Identifier: Apache-2.0
 *
 * published.h - experiments that others published, simulated and shown beside their figures.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

#define SKEP_PUBLISHED_FOLDER "scenarios/papers/tables"
#define SKEP_PUBLISHED_HEAD "# Published figures and ours" /* the first line of what -o writes */

struct skep_published_request {
	const char *folder; /* of the tables */
	char *const *
		name; /* [names] of experiments, their beginnings, or table files that end in .yaml; none: all but slow ones */
	uint32_t names;
	bool all;  /* slow ones too */
	bool list; /* name them, and run nothing */
	bool json, quiet;
	const char *output; /* a page in Markdown; NULL: none */
	uint32_t jobs;      /* processes; 0: one for each core */
};

/* Says itself what is wrong, and prints. */
enum status skep_published(const struct skep_published_request *request);
