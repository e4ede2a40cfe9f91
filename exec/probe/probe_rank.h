/* SPDX-License-Identifier: Apache-2.0
 *
 * probe_rank.h - measures what lies between the processes of a run, with the transport and the frames of a run.
 *
 * Rank 0 conducts: it tells a rank to measure its way to another one, or its device, and hears what came out. All ranks answer
 * messages at any time. A measurement is many small round trips, then rounds of messages with payloads of several sizes, which
 * grow until they bear a bandwidth (estimate.h); a payload is answered when all of it is there. A way whose bandwidth is not
 * known in the end ends the measurement, with its name. With a topology to be imposed, messages are handed over no
 * earlier than it says, by the shaper, as in a run with --shape.
 */
#pragma once

#include "base/diag.h"
#include "exec/loop/clock.h"
#include "exec/transport/transport.h"
#include "topologies/import/probed.h"
#include "topologies/read/topology.h"

#define SKEP_PROBE_RANK_BYTES_MAX (UINT64_C(1) << 30)

struct skep_probe_passes { /* of a device, one at a time */
	/* `context` is that of the setup. NULL with the reason: there are none. *ret_bytes: of a payload, above 4 KiB. */
	void *(*begin)(void *context, uint64_t *ret_bytes, struct skep_diag *reterr);
	/* A forward pass, or the backward pass of the one before, in any thread. False: it failed. */
	bool (*next)(void *passes, struct skep_diag *reterr);
	void (*finish)(void *passes);
};

struct skep_probe_rank_setup {
	struct skep_transport *transport;
	const struct skep_clock *clock;
	const struct skep_topology *shape; /* machine r is rank r; NULL: none. Of rank 0 alone it is used */
	bool shaped;                       /* the same on all ranks */
	const uint32_t *host_of;           /* [ranks] a number for each host; NULL: no two are on one */
	uint64_t pair_ns;                  /* that one way may take, about */
	uint64_t bytes;                    /* of a payload that bandwidth is measured with; 0: as long as it takes */
	int signal_fd;                     /* rank 0: a signal that ends it; -1: none */

	/* How fast this rank's device is, `alone` while no other rank of its host computes, of which the rates alone are wanted;
	 * false with the reason. NULL: devices are not asked for. */
	bool (*microbench)(void *context, bool alone, struct skep_probed_device *ret, struct skep_diag *reterr);
	const struct skep_probe_passes *passes; /* to rehearse a run with; NULL: none is rehearsed */
	void *microbench_context;
	/* Progress at rank 0: how many of all measurements are done. NULL: not reported. */
	void (*tell)(void *context, uint32_t done, uint32_t all);
	void *tell_context;

	/* rank 0 */
	struct skep_probed *probed; /* with its places and who is where; the rest is filled */
};

/* Does this rank's part of the measurement, to its end. False: it failed on all ranks, with the reason.
 * *ret_clean: no transfer is under way any more. */
bool skep_probe_rank_run(const struct skep_probe_rank_setup *setup, bool *ret_clean, struct skep_diag *reterr);

/* Measurements of ways that rank 0 will ask for, and how many of them follow each other. */
void skep_probe_rank_count(const struct skep_probed *probed, uint32_t *ret_ways, uint32_t *ret_turns);
