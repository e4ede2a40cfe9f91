/* SPDX-License-Identifier: Apache-2.0
 *
 * gathering.h - what `serve --resume` does before it knows with which states the run goes on: it takes from the machines that
 * knock what they have made since the last checkpoint (exec/joining/states.h), and lets all of them begin anew, or it tells them
 * that the run has reached its end.
 *
 *     skep_gathering_open()        listens
 *     skep_gathering_wait()        prints the ticket, and waits until no newer state is to be expected; not where nothing is left
 *                                  to do
 *     (the caller looks into the folder of checkpoints)
 *     skep_gathering_tell_over()   if the run has reached its end: to all who knock for a time
 *     skep_gathering_close()       those who wait come again at once, to the server of the run
 *
 * A state is taken if it is of the run that was begun last, of the same job, and whole; nothing that was kept before is removed
 * for it. Which run that was stands beside the ticket, or the replicas have agreed on it; with replicas a majority has what was
 * brought before the run goes on from it. For how long it waits: until all stages have a version of all closed rounds, if it is
 * known how many that were; or until as many machines have come as the run begins with, and no stage has something newer than
 * the newest version of all; at most SKEP_GATHERING_S, within which each that knocks has come, and beyond that while a state
 * comes. With replicas at most twice the silence by which those that knock have lost the server before, since they knock soon
 * again.
 */
#pragma once

#include "exec/serve/serve.h"

#define SKEP_GATHERING_S 65u /* the longest pause of `join --stay`, and what a connection takes */

struct skep_gathering;

/* Without replicas: the number of the run that was begun last with the keys of options->keys, in folders of checkpoints; 0: there
 * is none, or no ticket of it that is valid. */
uint64_t skep_gathering_run(const struct skep_serve_options *options);
/* `run`: whose states are taken; 0: none are. The listener stays the caller's. NULL: reterr says why. */
struct skep_gathering *skep_gathering_open(const struct skep_scenario *scenario,
	const struct skep_serve_options *options, uint64_t run, struct skep_diag *reterr);
/* `rounds`: so many that run is known to have closed; 0: that is not known. The number of a signal that came first; 0: none
 * did. */
int skep_gathering_wait(struct skep_gathering *gathering, uint32_t rounds);
/* Until as many were told as the scenario has workers, or SKEP_GATHERING_S are over. */
int skep_gathering_tell_over(struct skep_gathering *gathering);
void skep_gathering_close(struct skep_gathering *gathering); /* NULL is fine */
