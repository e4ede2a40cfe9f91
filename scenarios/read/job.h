/* SPDX-License-Identifier: Apache-2.0
 *
 * job.h - names what a scenario trains, so that states of another job are not taken for its own.
 */
#pragma once

#include "base/reader.h"

/* A digest of the seed and of all keys but those that do not say what is trained: a name, where and how often states are kept,
 * how long to train, what is validated, how it is simulated, how the directory watches, what a plan is searched for, and the
 * cluster: who computes it. So a run that is made longer, or that goes on with other machines, is the same job. Neither the
 * order of keys nor the way numbers are written counts. */
uint64_t skep_job_digest(struct skep_reader *r, const struct skep_yaml_node *root, uint64_t seed);

/* Is this one of the keys that count, with what is above it: "model.layers", "train.optimizer.lr"? */
bool skep_job_counts(const char *key);
