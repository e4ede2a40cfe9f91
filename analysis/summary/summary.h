/* SPDX-License-Identifier: Apache-2.0
 *
 * summary.h - the result of a run, computed in one place for both worlds from what a recorder hears.
 */
#pragma once

#include <stdio.h>

#include "analysis/store/number_format.h"
#include "core/record.h"
#include "scenarios/read/scenario.h"

struct skep_summary { /* the keys of --json in this order, then what only the text says */
	int64_t run_id;
	char scenario[64];
	const char *world; /* "sim" or "real" */
	uint64_t seed, digest;
	char number_format[SKEP_NUMBER_FORMAT_BYTES];
	uint64_t steps, samples, tokens; /* rounds closed; samples counted in the last stage */
	const char *
		ended_by; /* the key of train.until that has ended it: "steps", "loss", "time" or "usd"; NULL: it failed */
	double time_s, throughput_samples_per_s, utilisation;
	/* Means over the closed rounds: from the begin of the first forward pass to the end of the last backward pass, and, where
	 * more than one reduced, from there, or from the end of the last inner step and pseudo-gradient where there are any, to
	 * the end of the last operation of the reduction. No optimizer steps. NAN: none. */
	double passes_s, reduction_s;
	/* As rounds have it in the database: with waves the most microbatches that a FORWARD lacked, of each other virtual
	 * worker and of its own, and in the text the bounds of these. No waves: NAN. */
	double global_staleness, local_staleness;
	uint32_t global_bound, local_bound; /* not in --json */
	uint64_t bytes_pipeline, bytes_sync;
	uint64_t issued, counted, lost; /* gradients, one per microbatch and stage, of the rounds closed */
	uint64_t preemptions, joins, migrations;
	uint64_t scalings,
		returned; /* times that another number of machines was wanted; machines that were given back */
	uint64_t checkpoints, restarts; /* states of stages that were kept; stages that were restored */
	uint64_t outages,
		rounds_again; /* losses of the directory that all went on behind; rounds that were made again then */
	/* Rounds that workers had made and the directory that was lost, or the run that this one goes on with, had not closed, of
	 * which there are no books. No steps. */
	uint64_t rounds_unrecorded;
	uint64_t unequal; /* workers whose parameters were not those of the others of their stage */
	uint64_t damaged; /* real runs: tensors that came with a wrong sum, and were sent again */
	/* Of blocks with experts, over all their forward passes: how many times the tokens of the mean expert the fullest one
	 * has had, the part of the choices that were dropped, and the load balance, which is `per_token` where all have the
	 * same. NAN: none. */
	double expert_imbalance, expert_dropped, expert_balance;
	uint64_t unkept;              /* not in --json: states that could not be kept */
	double final_loss;            /* NAN: none (null in JSON) */
	double final_validation_loss; /* of the last one; NAN: none */
	double time_to_target_s;      /* NAN: no target, or not reached. Where there are validations, by one of these */
	double cost_to_target_usd; /* of all workers and of traffic, until then; NAN: not reached, or prices unknown */
	/* Of machines, and of traffic where the topology has prices of it; of this the part of traffic. NAN: prices unknown, or
	 * none. */
	double cost_usd, egress_usd;
	uint64_t events;
	double wall_s;
	uint64_t steps_asked; /* not in --json: that there were to be */
	uint32_t vstages;     /* not in --json: of `issued`, so many for each microbatch */
	bool has_law,
		extrapolated; /* `arithmetic: law`, and the law was asked outside of what it was fitted in; no law: null */
	char failure[200];    /* why it stopped before its time; "": it did not, or a stage was empty (null in JSON) */
	bool ok;
	int32_t kept_candidate;            /* of a trial; -1: there was none, or it is not over (null in JSON) */
	double kept_loss, candidates_loss; /* at the end of the trial, of that one, and the mean of all; NAN: none */

	/* Not in --json. */
	const char *format_hint; /* skep_number_format_hint(); NULL: none */
	double target_loss;      /* what was to be reached; NAN or 0: nothing */
	double round_s;          /* of a closed round, after those of skep_tally_warm_up(); NAN: there is none */
	double late_share; /* of the operations that were paced: took longer by more than a twentieth; NAN: none was paced */
	double late_s;   /* by so much, in the mean of these */
	uint64_t fenced; /* of the preemptions: the directory declared them dead */
	/* A link that has carried bytes and whose price is not known, as "west to east"; "": none, or no link has a price. */
	char unpriced[80];
	char left_out[320]; /* of the trace, as no machine plays it: skep_traced_left_out(); "": nothing */
	bool unprovoked;    /* more workers were fenced than the scenario takes away, or died */
};

/* expert_balance.c. Fills what a summary says of experts. */
void skep_summary_add_experts(struct skep_summary *summary, const struct skep_expert_use *use);

struct skep_tally; /* a recorder that adds up */
struct skep_tally *skep_tally_create(const struct skep_scenario *scenario, const char *world);
void skep_tally_destroy(struct skep_tally *tally);
struct skep_recorder skep_tally_recorder(struct skep_tally *tally);
/* Before the run: throughput is then that from the close of so many rounds to that of the last one, if there are more. */
void skep_tally_warm_up(struct skep_tally *tally, uint32_t rounds);
/* Before the run: so many rounds before its first one have no books in the run that it goes on with. */
void skep_tally_unrecorded(struct skep_tally *tally, uint32_t rounds);
void skep_tally_finish(struct skep_tally *tally, skep_time end_ns, uint64_t events, double wall_s,
	enum skep_outcome outcome, struct skep_summary *ret);

/* Both get every call, in this order. `pair` holds the two and must outlive the recorder. */
struct skep_recorder_pair {
	struct skep_recorder first, second;
};
struct skep_recorder skep_recorder_both(struct skep_recorder_pair *pair);

void skep_summary_print_json(const struct skep_summary *summary, FILE *out); /* one object, one line */
void skep_summary_print_text(const struct skep_summary *summary, FILE *out); /* for a person, with units */
