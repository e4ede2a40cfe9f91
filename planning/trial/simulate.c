/* SPDX-License-Identifier: Apache-2.0
 *
 * simulate.c - see simulate.h.
 */
#include "planning/trial/simulate.h"

#include "base/clock.h"
#include "sim/sim.h"

#define OPS_KEPT 16 /* of each worker: the time that an operation takes, for `plot throughput` */

/* To the tally, and to the store and the other one where they are. */
static bool play(const struct skep_scenario *scenario, struct skep_tally *tally,
	const struct skep_simulate_options *options, struct skep_sim_result *ret)
{
	struct skep_recorder recorder = skep_tally_recorder(tally);
	struct skep_recorder_pair kept, heard;
	if (options->store) {
		kept = (struct skep_recorder_pair){skep_store_recorder(options->store), recorder};
		recorder = skep_recorder_both(&kept);
	}
	if (options->also) {
		heard = (struct skep_recorder_pair){*options->also, recorder};
		recorder = skep_recorder_both(&heard);
	}
	return skep_sim_run(scenario, &recorder, ret);
}

bool skep_simulate(const struct skep_scenario *scenario, const struct skep_simulate_options *options,
	struct skep_summary *ret, struct skep_diag *reterr)
{
	int64_t run = 0;
	double begin_s = skep_monotonic_s();
	struct skep_sim_result result;
	struct skep_store *store = options->store;
	struct skep_tally *tally = skep_tally_create(scenario, "sim");
	*ret = (struct skep_summary){.ok = false};
	if (!tally)
		return false;
	skep_tally_warm_up(tally, options->warm_up);
	bool ran = !store || skep_store_begin(store, scenario, "sim", "cpu", false, false, &run, reterr);
	if (ran && store && !options->details)
		skep_store_keep_little(store, OPS_KEPT);
	if (ran && !play(scenario, tally, options, &result)) {
		*reterr = result.error;
		ran = false;
	}
	if (ran) {
		skep_tally_finish(
			tally, result.end_ns, result.events, skep_monotonic_s() - begin_s, result.outcome, ret);
		ret->run_id = run;
		ran = !store || skep_store_end(store, ret, reterr);
	}
	skep_tally_destroy(tally);
	return ran;
}
