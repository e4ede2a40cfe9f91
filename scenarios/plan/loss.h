/* SPDX-License-Identifier: Apache-2.0
 *
 * loss.h - what a law says of the losses of a scenario (`arithmetic: law`): under which conditions a microbatch is computed, and
 * whether they are outside of what the law was fitted in.
 */
#pragma once

#include "scenarios/plan/law.h"
#include "scenarios/read/scenario.h"

/* train.law; refused without `arithmetic: law`, required with it. */
void skep_loss_read(struct skep_reader *r, const struct skep_yaml_node *train, struct skep_scenario *s);

/* Of a pass of the last stage; ret is [SKEP_LAW_AXES]. Tokens are those that the rounds before were to have: what a round lost
 * and did not replace is not taken off. Replicas are the workers that the stage with the most of them begins with. */
void skep_loss_at(const struct skep_scenario *s, uint32_t round, uint32_t microbatch, double *ret);

/* What the law says, in 1e-9 units. */
int64_t skep_loss_nano(const struct skep_scenario *s, uint32_t round, uint32_t microbatch);

/* With which round the law has the target, as the mean over it: the loss never rises with rounds, but for staleness at the very
 * beginning. 0: not within the rounds of the run. */
uint32_t skep_loss_rounds_to(const struct skep_scenario *s, double target);

/* Does a run of so many rounds leave what its law was fitted in? Then says how. */
bool skep_loss_extrapolates(const struct skep_scenario *s, uint32_t rounds, char *ret, size_t size);

/* In which quantities a run of all rounds leaves its law: bits of enum skep_law_axis, and SKEP_LAW_AXES for the model; 0: in
 * none, or there is no law. ret_at: [SKEP_LAW_AXES] what is asked, the tokens those of the end. */
uint32_t skep_loss_leaves(const struct skep_scenario *s, double *ret_at);
