/* SPDX-License-Identifier: Apache-2.0
 *
 * importer.h - what the importers share; private to import.c, import_*.c.
 *
 * An importer fills the survey, says in `measured` what the numbers are (it becomes part of `source`, so a few words) and leaves
 * notes. After an error (diag is set) nothing else counts.
 */
#pragma once

#include "base/files/lines.h"
#include "topologies/import/import.h"

/* As topologies are read (draft.h). */
#define SKEP_IMPORT_BPS_MAX 1e15
#define SKEP_IMPORT_S_MAX 3600.0
#define SKEP_IMPORT_BPS_MIN 1.0

/* A comment on top of every file that an import writes begins like this; by it the next one may replace the file. */
#define SKEP_IMPORT_HEAD "# Imported by `skep topology import "

struct skep_importer {
	const struct skep_import_options *options;
	struct skep_survey survey;
	struct skep_import_report *report;
	struct skep_diag *diag;
	char measured[160];
	char known[200]; /* some places that are in the files and not wanted */
	bool shared;     /* the bandwidth of a pair of places is what all machines there share */
};

void skep_import_note(struct skep_importer *importer, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The place that a cell names; SKEP_NO_PLACE: not wanted, or an error. */
uint32_t skep_import_place(struct skep_importer *importer, struct skep_lines *lines, struct skep_cell cell);
void skep_import_add(
	struct skep_importer *importer, enum skep_survey_kind kind, uint32_t from, uint32_t to, double value);
/* A line that a launcher has put a tag before, such as [1,0]<stdout>: the text behind it. */
const char *skep_import_untagged(const char *line);

/* An operand FROM,TO=FILE in its parts, or FILE alone (false); names is where the two places are, SKEP_NO_PLACE without. */
const char *skep_import_operand(struct skep_importer *importer, const char *operand, uint32_t ret_place[2]);

bool skep_import_skyplane(struct skep_importer *importer);
bool skep_import_city_pairs(struct skep_importer *importer);
bool skep_import_rtt(struct skep_importer *importer);
bool skep_import_gcp_ping(struct skep_importer *importer);
bool skep_import_nccl(struct skep_importer *importer);
bool skep_import_osu(struct skep_importer *importer);
bool skep_import_iperf3(struct skep_importer *importer);
bool skep_import_simgrid(struct skep_importer *importer);

/* Writes the topology: from the settled survey, or of peers from a region table. */
bool skep_import_write(struct skep_importer *importer, const char *path);
bool skep_import_write_peers(struct skep_importer *importer, const char *path);
