/* SPDX-License-Identifier: Apache-2.0
 *
 * summary_print.c - a result as one line of JSON, or as a short table with units.
 */
#include "analysis/summary/summary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

#define LATE_SHARE 0.1 /* from here on it is worth a word */

/* ---- JSON ------------------------------------------------------------------------------------------------------- */

static void add_digest(cJSON *object, uint64_t digest)
{
	char digits[17];
	snprintf(digits, sizeof digits, "%016llx", (unsigned long long)digest);
	cJSON_AddStringToObject(object, "digest", digits);
}

/* NAN: the samples are no text. */
static double tokens_per_s(const struct skep_summary *s)
{
	return s->tokens > 0 && s->samples > 0 ? s->throughput_samples_per_s * (double)(s->tokens / s->samples) : NAN;
}

void skep_summary_print_json(const struct skep_summary *summary, FILE *out)
{
	cJSON *object = cJSON_CreateObject();
	skep_json_add_count(object, "run_id", (uint64_t)summary->run_id);
	cJSON_AddStringToObject(object, "scenario", summary->scenario);
	cJSON_AddStringToObject(object, "world", summary->world);
	skep_json_add_count(object, "seed", summary->seed);
	add_digest(object, summary->digest);
	cJSON_AddStringToObject(object, "number_format", summary->number_format);
	skep_json_add_count(object, "steps", summary->steps);
	skep_json_add_text(object, "ended_by", summary->ended_by != NULL ? summary->ended_by : "");
	skep_json_add_count(object, "samples", summary->samples);
	skep_json_add_count(object, "tokens", summary->tokens);
	skep_json_add_number(object, "time_s", summary->time_s);
	skep_json_add_number(object, "throughput_samples_per_s", summary->throughput_samples_per_s);
	skep_json_add_number(object, "throughput_tokens_per_s", tokens_per_s(summary));
	skep_json_add_number(object, "utilisation", summary->utilisation);
	skep_json_add_number(object, "passes_s", summary->passes_s);
	skep_json_add_number(object, "reduction_s", summary->reduction_s);
	skep_json_add_number(object, "global_staleness", summary->global_staleness);
	skep_json_add_number(object, "local_staleness", summary->local_staleness);
	skep_json_add_count(object, "bytes_pipeline", summary->bytes_pipeline);
	skep_json_add_count(object, "bytes_sync", summary->bytes_sync);
	skep_json_add_count(object, "issued", summary->issued);
	skep_json_add_count(object, "counted", summary->counted);
	skep_json_add_count(object, "lost", summary->lost);
	skep_json_add_count(object, "preemptions", summary->preemptions);
	skep_json_add_count(object, "joins", summary->joins);
	skep_json_add_count(object, "migrations", summary->migrations);
	skep_json_add_count(object, "scalings", summary->scalings);
	skep_json_add_count(object, "returned", summary->returned);
	skep_json_add_count(object, "checkpoints", summary->checkpoints);
	skep_json_add_count(object, "restarts", summary->restarts);
	skep_json_add_count(object, "outages", summary->outages);
	skep_json_add_count(object, "rounds_again", summary->rounds_again);
	skep_json_add_count(object, "rounds_unrecorded", summary->rounds_unrecorded);
	skep_json_add_count(object, "damaged", summary->damaged);
	skep_json_add_number(object, "expert_imbalance", summary->expert_imbalance);
	skep_json_add_number(object, "expert_dropped", summary->expert_dropped);
	skep_json_add_number(object, "expert_balance", summary->expert_balance);
	skep_json_add_number(object, "final_loss", summary->final_loss);
	skep_json_add_number(object, "final_validation_loss", summary->final_validation_loss);
	skep_json_add_number(object, "time_to_target_s", summary->time_to_target_s);
	skep_json_add_number(object, "cost_to_target_usd", summary->cost_to_target_usd);
	skep_json_add_number(object, "cost_usd", summary->cost_usd);
	skep_json_add_number(object, "egress_usd", summary->egress_usd);
	skep_json_add_count(object, "events", summary->events);
	skep_json_add_number(object, "wall_s", summary->wall_s);
	if (summary->has_law)
		cJSON_AddBoolToObject(object, "extrapolated", summary->extrapolated);
	else
		cJSON_AddNullToObject(object, "extrapolated");
	skep_json_add_text(object, "failure", summary->failure);
	cJSON *kept = skep_json_add_object(object, "candidate", summary->kept_candidate >= 0);
	if (kept != NULL) {
		skep_json_add_count(kept, "kept", (uint64_t)summary->kept_candidate);
		skep_json_add_number(kept, "loss", summary->kept_loss);
		skep_json_add_number(kept, "mean_loss", summary->candidates_loss);
	}
	skep_json_print(object, out);
}

/* ---- for a person ----------------------------------------------------------------------------------------------- */

static void print_key(FILE *out, const char *key)
{
	fprintf(out, "  %-14s", key);
}

static void put_time(FILE *out, double value_s)
{
	if (value_s >= 7200)
		fprintf(out, "%.2f h", value_s / 3600);
	else if (value_s >= 120)
		fprintf(out, "%.2f min", value_s / 60);
	else if (value_s >= 1)
		fprintf(out, "%.3f s", value_s);
	else
		fprintf(out, "%.3f ms", value_s * 1e3);
}

static void print_time(FILE *out, const char *key, double value_s)
{
	print_key(out, key);
	put_time(out, value_s);
	fputc('\n', out);
}

static void print_of_round(FILE *out, const char *key, double value_s, const char *from)
{
	print_key(out, key);
	put_time(out, value_s);
	fprintf(out, " per round%s\n", from);
}

static void print_target(FILE *out, const struct skep_summary *summary)
{
	if (!isnan(summary->time_to_target_s)) {
		print_key(out, "target after");
		put_time(out, summary->time_to_target_s);
		if (!isnan(summary->cost_to_target_usd))
			fprintf(out, ", %.4f USD", summary->cost_to_target_usd);
		fputc('\n', out);
	} else if (summary->target_loss > 0) {
		print_key(out, "target");
		fprintf(out, "loss %g not reached\n", summary->target_loss);
	}
}

static void print_bytes(FILE *out, const char *key, uint64_t bytes)
{
	static const char *const unit[] = {"B", "kB", "MB", "GB", "TB", "PB"};
	double value = (double)bytes;
	size_t i = 0;
	for (; value >= 1000 && i + 1 < sizeof unit / sizeof unit[0]; i++)
		value /= 1000;
	print_key(out, key);
	fprintf(out, i ? "%.2f %s\n" : "%.0f %s\n", value, unit[i]);
}

static void print_loss(FILE *out, const struct skep_summary *summary)
{
	const char *how = !summary->has_law ? "" : summary->extrapolated ? " (by a law, extrapolated)" : " (by a law)";
	if (summary->kept_candidate >= 0) {
		print_key(out, "candidate");
		fprintf(out, "%d was kept, with a loss of %.6g; the mean of all was %.6g\n", summary->kept_candidate,
			summary->kept_loss, summary->candidates_loss);
	}
	if (!isnan(summary->final_loss)) {
		print_key(out, "final loss");
		if (isfinite(summary->final_loss))
			fprintf(out, "%.6g%s\n", summary->final_loss, how);
		else
			fprintf(out, "diverged%s\n", how);
	}
	if (summary->has_law && summary->lost > 0 && summary->issued > 0) {
		print_key(out, "law");
		fprintf(out,
			"counts the tokens of all steps: that %.2g %% of the gradients were lost is not in its loss\n",
			100 * (double)summary->lost / (double)summary->issued);
	}
	if (!isnan(summary->final_validation_loss)) {
		print_key(out, "validation");
		fprintf(out, isfinite(summary->final_validation_loss) ? "%.6g\n" : "diverged\n",
			summary->final_validation_loss);
	}
	print_target(out, summary);
}

static void print_staleness(FILE *out, const struct skep_summary *summary)
{
	if (isnan(summary->global_staleness))
		return;
	print_key(out, "staleness");
	fprintf(out, "at most %.0f microbatches of each other virtual worker (bound %u), %.0f of its own (bound %u)\n",
		summary->global_staleness, summary->global_bound, summary->local_staleness, summary->local_bound);
}

static void print_workers(FILE *out, const struct skep_summary *summary)
{
	print_key(out, "workers");
	fprintf(out, "%llu lost", (unsigned long long)summary->preemptions);
	if (summary->preemptions > 0)
		fprintf(out, " (%llu fenced)", (unsigned long long)summary->fenced);
	fprintf(out, ", %llu joined, %llu migrated", (unsigned long long)summary->joins,
		(unsigned long long)summary->migrations);
	if (summary->scalings > 0)
		fprintf(out, "; %llu given back, another number was wanted %llu time%s",
			(unsigned long long)summary->returned, (unsigned long long)summary->scalings,
			summary->scalings == 1 ? "" : "s");
	fputc('\n', out);
}

static void print_damaged(FILE *out, const struct skep_summary *summary)
{
	if (summary->unequal > 0) {
		print_key(out, "unequal");
		fprintf(out,
			"%llu time%s a worker had other parameters than the rest of its stage, and was given theirs: look at its "
			"memory\n",
			(unsigned long long)summary->unequal, summary->unequal == 1 ? "" : "s");
	}
	if (summary->damaged == 0)
		return;
	print_key(out, "damaged");
	fprintf(out, "%llu tensor%s came with a wrong sum and %s sent again: look at memory and network\n",
		(unsigned long long)summary->damaged, summary->damaged == 1 ? "" : "s",
		summary->damaged == 1 ? "was" : "were");
}

static void print_experts(FILE *out, const struct skep_summary *summary)
{
	if (isnan(summary->expert_imbalance))
		return;
	print_key(out, "experts");
	fprintf(out, "the fullest has %.3g times the tokens of the mean, load balance %.4g", summary->expert_imbalance,
		summary->expert_balance);
	if (summary->expert_dropped > 0)
		fprintf(out, ", %.3g %% dropped", 100 * summary->expert_dropped);
	fputc('\n', out);
}

static void print_directory(FILE *out, const struct skep_summary *summary)
{
	if (summary->outages + summary->rounds_unrecorded == 0)
		return;
	print_key(out, "directory");
	if (summary->outages > 0)
		fprintf(out, "lost %llu time%s, %llu round%s made again%s", (unsigned long long)summary->outages,
			summary->outages == 1 ? "" : "s", (unsigned long long)summary->rounds_again,
			summary->rounds_again == 1 ? " was" : "s were", summary->rounds_unrecorded > 0 ? "; " : "");
	if (summary->rounds_unrecorded > 0)
		fprintf(out, "of %llu%s, which workers had made, there are no books",
			(unsigned long long)summary->rounds_unrecorded,
			summary->outages > 0             ? " more"
			: summary->rounds_unrecorded > 1 ? " rounds"
							 : " round");
	fputc('\n', out);
}

/* A real run takes as long as its own clock says, which `time` has told. */
static void print_events(FILE *out, const struct skep_summary *summary)
{
	bool sim = strcmp(summary->world, "sim") == 0;
	print_key(out, sim ? "simulated" : "handled");
	if (sim)
		fprintf(out, summary->wall_s < 1 ? "in %.3f s: " : "in %.1f s: ", summary->wall_s);
	fprintf(out, "%llu events\n", (unsigned long long)summary->events);
}

static void print_steps(FILE *out, const struct skep_summary *summary)
{
	static const struct {
		const char *key, *what;
	} ends[] = {{"loss", "train.until.loss is reached"}, {"time", "train.until.time is up"},
		{"usd", "train.until.usd is spent"}};
	print_key(out, "steps");
	fprintf(out, "%llu", (unsigned long long)summary->steps);
	for (size_t i = 0; summary->ended_by != NULL && i < sizeof ends / sizeof ends[0]; i++)
		if (strcmp(summary->ended_by, ends[i].key) == 0)
			fprintf(out, " of %llu, as %s", (unsigned long long)summary->steps_asked, ends[i].what);
	fprintf(out, " (%llu samples)\n", (unsigned long long)summary->samples);
}

/* The run is then no measure of what the scenario describes. */
static void print_late(FILE *out, const struct skep_summary *summary)
{
	fprintf(out, "hint: %.0f %% of the operations took longer than their profile says, by ",
		100 * summary->late_share);
	put_time(out, summary->late_s);
	fprintf(out, " in the mean: this machine is too slow or too busy for this run\n");
}

/* One gradient for each microbatch and stage: all of these in one number, and what it is made of. */
static void print_gradients(FILE *out, const struct skep_summary *s)
{
	print_key(out, "gradients");
	fprintf(out, "%llu issued", (unsigned long long)s->issued);
	if (s->vstages > 1)
		fprintf(out, " (%llu microbatches in %u stages)", (unsigned long long)(s->issued / s->vstages),
			s->vstages);
	fprintf(out, ", %llu counted, %llu lost\n", (unsigned long long)s->counted, (unsigned long long)s->lost);
}

void skep_summary_print_text(const struct skep_summary *summary, FILE *out)
{
	fprintf(out, "run %lld: %s, %s world, seed %llu: %s\n", (long long)summary->run_id, summary->scenario,
		summary->world, (unsigned long long)summary->seed, summary->ok ? "done" : "FAILED");
	print_steps(out, summary);
	print_key(out, "number format");
	fprintf(out, "%s%s\n", summary->number_format, summary->format_hint ? summary->format_hint : "");
	print_time(out, "time", summary->time_s);
	if (isfinite(summary->throughput_samples_per_s)) {
		print_key(out, "throughput");
		fprintf(out, "%.6g samples/s", summary->throughput_samples_per_s);
		if (isfinite(tokens_per_s(summary)))
			fprintf(out, ", %.6g tokens/s", tokens_per_s(summary));
		fputc('\n', out);
	}
	if (isfinite(summary->utilisation)) {
		print_key(out, "utilisation");
		fprintf(out, "%.1f %%\n", 100 * summary->utilisation);
	}
	if (isfinite(summary->passes_s))
		print_of_round(out, "passes", summary->passes_s, "");
	if (isfinite(summary->reduction_s))
		print_of_round(out, "reduction", summary->reduction_s, ", from the end of passes and inner steps on");
	print_bytes(out, "pipeline", summary->bytes_pipeline);
	print_bytes(out, "sync", summary->bytes_sync);
	print_gradients(out, summary);
	print_staleness(out, summary);
	print_workers(out, summary);
	if (summary->left_out[0] != '\0') {
		print_key(out, "trace");
		fprintf(out, "%s\n", summary->left_out);
	}
	print_damaged(out, summary);
	print_experts(out, summary);
	if (summary->checkpoints + summary->restarts + summary->unkept > 0) {
		print_key(out, "stages");
		fprintf(out, "%llu checkpoint%s", (unsigned long long)summary->checkpoints,
			summary->checkpoints == 1 ? "" : "s");
		if (summary->unkept > 0)
			fprintf(out, " (%llu more could not be written)", (unsigned long long)summary->unkept);
		fprintf(out, ", %llu restored\n", (unsigned long long)summary->restarts);
	}
	print_directory(out, summary);
	print_loss(out, summary);
	if (!isnan(summary->cost_usd)) {
		print_key(out, "cost");
		fprintf(out, "%.4f USD", summary->cost_usd);
		if (!isnan(summary->egress_usd))
			fprintf(out, ", of that %.4f USD for egress", summary->egress_usd);
		fputc('\n', out);
	} else if (summary->unpriced[0]) {
		print_key(out, "cost");
		fprintf(out, "not known: no `egress` from %s\n", summary->unpriced);
	} else if (!isnan(summary->egress_usd)) {
		print_key(out, "egress");
		fprintf(out, "%.4f USD\n", summary->egress_usd);
	}
	print_key(out, "digest");
	fprintf(out, "%016llx\n", (unsigned long long)summary->digest);
	print_events(out, summary);
	if (summary->late_share > LATE_SHARE)
		print_late(out, summary);
	if (summary->unprovoked)
		fprintf(out, "hint: workers were fenced though nothing in this scenario kills them: "
			     "raise directory.timeout\n");
}
