/* SPDX-License-Identifier: Apache-2.0
 *
 * survey.h - what was measured between named places, before it is a topology.
 *
 * An importer adds places and samples: bandwidth and one-way latency of ordered pairs. Settling makes one value of each ordered
 * pair (the median of its samples), fills the holes by rules that the user has named, in their order, and refuses the rest:
 *
 *   reverse  what was measured in the other direction
 *   worst    the least bandwidth, or the longest latency, among the measured pairs that leave the source or reach the destination
 *   median   the median of all measured pairs
 *
 * and after the rules a constant that the user gave. Every rule looks at what was measured, never at what another rule filled.
 */
#pragma once

#include "base/reader.h"

#define SKEP_SURVEY_PLACES_MAX 2048u /* two matrices of 32 MiB */
#define SKEP_SURVEY_SAMPLES_MAX (1u << 24)
#define SKEP_NO_PLACE UINT32_MAX

enum skep_survey_kind { SKEP_BANDWIDTH_SAMPLE, SKEP_LATENCY_SAMPLE, SKEP_SURVEY_KINDS };
enum skep_fill { SKEP_FILL_REVERSE, SKEP_FILL_WORST, SKEP_FILL_MEDIAN, SKEP_FILL_CONSTANT, SKEP_FILLS };
extern const char *const skep_survey_kind_names[]; /* bandwidth, latency */
extern const char *const skep_fill_names[];        /* NULL ends; as they stand in an option */

struct skep_survey_place {
	char name[32];
	uint32_t machines;       /* 1 unless an importer knows better */
	bool cluster;            /* of a platform file: no host */
	bool shared;             /* its machines share what is measured inside of it */
	bool seen;               /* named again after the survey was closed */
	double up_Bps, down_Bps; /* INFINITY: not limited */
};

struct skep_survey_sample {
	uint32_t kind, from, to; /* from == to: inside a place */
	double value;            /* B/s or s */
};

struct skep_survey {
	struct skep_survey_place *place;
	struct skep_survey_sample *sample;
	uint32_t places, last_found;
	size_t samples;
	bool closed; /* only the places that are there already are wanted */
	/* after settling */
	double *cell[SKEP_SURVEY_KINDS]; /* [places * places], row = source; the diagonal may hold NAN */
	size_t measured[SKEP_SURVEY_KINDS],
		several[SKEP_SURVEY_KINDS]; /* ordered pairs off the diagonal; of these with several samples */
	size_t filled[SKEP_SURVEY_KINDS][SKEP_FILLS];
};

struct skep_survey_rules {
	enum skep_fill fill[SKEP_FILLS]; /* [fills] in order */
	uint32_t fills;
	double constant[SKEP_SURVEY_KINDS]; /* NAN: none */
};

/* The place of that name, which is added unless the survey is closed (then SKEP_NO_PLACE). *reterr (NULL: nothing to say): why a
 * name cannot be taken. */
uint32_t skep_survey_place(struct skep_survey *survey, const char *name, size_t length, const char **reterr);
/* False: no memory, or more samples than are taken. */
bool skep_survey_add(struct skep_survey *survey, enum skep_survey_kind kind, uint32_t from, uint32_t to, double value);

/* `path` is what errors name: no single line is at fault. */
bool skep_survey_settle(
	struct skep_survey *survey, const struct skep_survey_rules *rules, const char *path, struct skep_diag *reterr);
void skep_survey_finish(struct skep_survey *survey);
