/* SPDX-License-Identifier: Apache-2.0
 *
 * outage.h - `directory.lost_at`, `back_after` and `back_with` of a scenario: when the machine with the directory is lost, and
 * when and with what training goes on. The simulator alone plays losses; in a real run `serve` is lost when it is, and `serve
 * --resume` or another replica (exec/replicas/) goes on. In both worlds stages step together with `back_with: workers`, which is
 * the default where workers have a place to keep what they hold, and what they hold is of one version.
 *
 * What follows a loss is what follows it there (docs/serve-and-join.md):
 *   1. No worker does anything more, but that with `back_with: workers` it keeps what it holds between two steps. Its machine
 *      stays, and is paid for; its process knocks at the directory's address, after pauses that double.
 *   2. `back_after` later the directory is there again, and knows of each stage the newest state that was kept. With
 *      `back_with: workers` those who knock next hand over what they hold, as fast as they keep a checkpoint. All are let in,
 *      which takes them as long as any join, and read their stage's state.
 *   3. When the last of them has, all begin again at the newest version that all stages have kept, or hold.
 */
#pragma once

#include <cjson/cJSON.h>

#include "scenarios/read/scenario.h"

/* Pauses of `skep join --stay` between two attempts: the first, and the longest. */
#define SKEP_KNOCK_LEAST_S 1u
#define SKEP_KNOCK_MOST_S 60u

/* The keys in the group `directory`, once the trace has been read; `map` NULL: the file lacks it. */
void skep_outage_read(struct skep_reader *r, const struct skep_yaml_node *map, struct skep_scenario *s);
/* When all is read: what it does not go together with is refused. With workers that keep what they hold, stages step together
 * (core/methods/agreement.c): in a real run as well, whose directory is lost when it is. */
void skep_outage_check(struct skep_reader *r, const struct skep_yaml_node *map, struct skep_scenario *s);

/* For `skep check --json`. */
void skep_outage_add_json(const struct skep_scenario *s, cJSON *root);

/* What a process needs from a socket to a place, with so many files to be fetched, but for their bytes: round trips between its
 * machine and the directory's (exec/tcp/words.h). */
double skep_outage_let_in_s(const struct skep_topology *topology, uint32_t machine, uint32_t files);

/* From the loss of the directory until all begin again at `version`. */
skep_time skep_outage_lasts_ns(const struct skep_scenario *s, uint32_t version);

/* How long a run takes that would take `run_s` for so many rounds, if the directory were not lost; a state is kept `kept_s`
 * behind its round, and workers of all stages hold the same version in all but the share `apart` of moments. *ret_times: how
 * often it is lost. */
double skep_outage_run_s(
	const struct skep_scenario *s, double run_s, uint32_t rounds, double kept_s, double apart, uint32_t *ret_times);

#define SKEP_OUTAGE_LINE 256u
/* One line for `skep check`, without its end; false: the directory is not lost. */
bool skep_outage_describe(const struct skep_scenario *s, char *ret, size_t size);
