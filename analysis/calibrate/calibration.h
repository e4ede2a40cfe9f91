/* SPDX-License-Identifier: Apache-2.0
 *
 * calibration.h - what a real run bears of the figures that predict it: times of passes on each kind of GPU, latency and
 * bandwidth of links, what an operation costs beside its bytes.
 *
 * Keeps true: a figure is what the run's own log shows, with its interval and the number of its samples, or it is the one of
 * the topology or profile, with the reason.
 */
#pragma once

#include "analysis/calibrate/links.h"
#include "scenarios/read/scenario.h"
#include "topologies/gpu/stage_table.h"

#define SKEP_CALIBRATE_ROUNDS_LEAST 3u
#define SKEP_CALIBRATE_FIGURES_LEAST 4u /* of which a deviation is made */
#define SKEP_CALIBRATE_BUSY 1.05        /* mean over median: above it other work has delayed operations */

struct skep_pass_figures { /* of a stage (or virtual stage) on a kind of GPU; in seconds of a microbatch */
	struct skep_figure column[SKEP_STAGE_COLUMNS];
	bool used; /* some operation of it was executed */
};

struct skep_gpu_figures {
	struct skep_figure overhead, memory_Bps; /* of an operation that moves bytes: reductions */
	double noise; /* deviation of passes and steps, as a part of their median; NAN: none was seen */
	double mean;  /* their mean over their median; NAN: the same */
};

struct skep_calibration {
	int64_t run;
	bool paced,
		shaped; /* times, links were imposed on the run by profiles, by a topology: it shows these, not the machine */
	const struct skep_scenario *scenario; /* borrowed: with the figures from before ... */
	/* ... and its topology as the file has it: no machine left out, no latency added, but cluster.bandwidth_scale */
	struct skep_topology topology;
	uint32_t rounds;
	double clocks_apart_s;
	struct skep_pass_figures *pass; /* [gpus * vstages] */
	struct skep_gpu_figures *gpu;   /* [gpus] */
	struct skep_link_figures *link; /* [places * places] */
};

/* `samples` are of a run of this scenario; they are aligned if the run was not `shaped`. */
bool skep_calibration_make(const struct skep_scenario *scenario, struct skep_samples *samples, bool shaped,
	struct skep_calibration *ret, struct skep_diag *reterr);
void skep_calibration_finish(struct skep_calibration *calibration);

/* passes.c: fills pass[] and gpu[]. False: no memory. */
bool skep_passes_fit(const struct skep_samples *samples, struct skep_calibration *calibration);

static inline struct skep_pass_figures *skep_calibration_pass(
	const struct skep_calibration *calibration, uint32_t gpu, uint32_t vstage)
{
	return &calibration->pass[(size_t)gpu * skep_plan_vstages(&calibration->scenario->plan) + vstage];
}

/* For a person, and as one JSON object. */
void skep_calibration_print(const struct skep_calibration *calibration, FILE *out);
void skep_calibration_print_json(const struct skep_calibration *calibration, const char *folder, FILE *out);

/*
 * FOLDER with topology.yaml, gpus/NAME.yaml and their tables, and scenario.yaml, which names them. All of it or nothing: it is
 * made beside the folder and read back first. A folder that is there must have nothing in it that was not written so, unless
 * `force`.
 */
bool skep_calibration_write(
	const struct skep_calibration *calibration, const char *folder, bool force, struct skep_diag *reterr);

/* The first line of each file, up to what it says of the run. */
#define SKEP_CALIBRATION_HEAD "# Calibrated by skep"

/* write_topology.c and write_profile.c: one file each, with comments that say what each figure comes from. */
void skep_calibration_put_topology(const struct skep_calibration *calibration, FILE *file);
void skep_calibration_put_profile(
	const struct skep_calibration *calibration, uint32_t gpu, const char *name, FILE *file);
void skep_calibration_put_stages(const struct skep_calibration *calibration, uint32_t gpu, FILE *file);
/* With cluster.extra_latency where that is added: the scenario that is written has none. So a pair that was no link, inside of
 * one machine, is written as one that is hardly limited and has none added. */
double skep_calibration_latency_s(const struct skep_calibration *calibration, const struct skep_link_figures *link);
/* "# Calibrated by skep from run 3: ..." */
void skep_calibration_put_head(const struct skep_calibration *calibration, FILE *file);
/* The name of a profile's file without its ending: that of the file it was read from, and a number if another has it. */
#define SKEP_CALIBRATION_NAME_BYTES 96u
void skep_calibration_gpu_name(
	const struct skep_calibration *calibration, uint32_t gpu, char ret[SKEP_CALIBRATION_NAME_BYTES]);
