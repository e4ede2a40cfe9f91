/* SPDX-License-Identifier: Apache-2.0
 *
 * import.h - turns measurements and platform files of other programs into topology files of skep.
 *
 * The written file names what was measured, what was filled by which rule and what is assumed, in `source` and in the
 * comments on top. A file that has its final name is complete: matrices are renamed into place first, the topology
 * last.
 */
#pragma once

#include "topologies/import/survey.h"

enum skep_import_format {
	SKEP_IMPORT_SKYPLANE,
	SKEP_IMPORT_CITY_PAIRS,
	SKEP_IMPORT_RTT,
	SKEP_IMPORT_GCP_PING,
	SKEP_IMPORT_REGIONS,
	SKEP_IMPORT_NCCL,
	SKEP_IMPORT_OSU,
	SKEP_IMPORT_IPERF3,
	SKEP_IMPORT_SIMGRID,
	SKEP_IMPORT_FORMATS
};
extern const char *const skep_import_format_names[]; /* as they stand on the command line; NULL ends */

enum skep_import_tier { SKEP_TIER_PREMIUM, SKEP_TIER_STANDARD, SKEP_TIER_ANY };
extern const char *const skep_import_tier_names[];

struct skep_import_options {
	enum skep_import_format format;
	char *const *file; /* [files]; FROM,TO=FILE where a file does not say between whom it was measured */
	uint32_t files;
	const char *output;                                               /* NAME.yaml, or a folder */
	const char *name, *source, *gpu, *directory, *between, *provider; /* NULL: not given */
	enum skep_import_tier tier;                                       /* skyplane */
	double unit_s;                                                    /* rtt: 1 or 1e-3; 0: to be recognised */
	bool force;   /* files that no import has written may be replaced */
	bool one_way; /* delays are not halved */
	struct skep_survey_rules rules;
	double up_Bps, down_Bps, inside_Bps, inside_s; /* NAN: not given */
	uint32_t machines;                             /* at each place; 0: as the importer says, else 1 */
	uint32_t count;                                /* regions: peers to draw */
	uint64_t seed;
};

/* The options of a user who names only a format, files and an output. */
struct skep_import_options skep_import_defaults(void);

struct skep_import_report {
	char path[512];   /* of the topology that was written */
	char notes[2048]; /* what a user should know, one a line */
};

bool skep_import(const struct skep_import_options *options, struct skep_import_report *ret, struct skep_diag *reterr);
