/* SPDX-License-Identifier: Apache-2.0
 *
 * outage.c - see outage.h.
 */
#include "scenarios/outage/outage.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "base/json.h"
#include "base/layout.h"
#include "base/units.h"
#include "core/random.h"
#include "topologies/churn/deviate.h"
#include "topologies/read/path.h"

#define BACK_S 3.0 /* another replica takes over within 2 to 4 s (docs/serve-and-join.md) */
#define OUTAGE_S_MAX (10 * 365.25 * SKEP_DAY_S)

static void read_times(struct skep_reader *r, const struct skep_yaml_node *map, struct skep_outages *ret)
{
	const struct skep_yaml_node *list = skep_read_list(r, map, "lost_at", false);
	uint32_t count = skep_yaml_length(list);
	if (count > SKEP_OUTAGES_MAX)
		skep_reader_fail(r, list, NULL, "directory.lost_at: at most %u times, not %u", SKEP_OUTAGES_MAX, count);
	for (uint32_t i = 0; i < count && !r->diag->set; i++) {
		const struct skep_yaml_node *item = skep_yaml_item(list, i);
		double at_s = skep_read_quantity(r, item, NULL, SKEP_TIME, 0, OUTAGE_S_MAX, NAN);
		ret->lost_ns[i] = (skep_time)(SKEP_NS_PER_S * at_s);
		if (!r->diag->set && i > 0 && ret->lost_ns[i] <= ret->lost_ns[i - 1])
			skep_reader_fail(r, item, NULL, "directory.lost_at: expected later times one after the other");
	}
	ret->count = r->diag->set ? 0 : count;
}

/* A Poisson process: times between two losses are exponential. */
static void draw_times(double every_s, uint64_t seed, struct skep_outages *ret)
{
	uint64_t state = skep_mix(seed ^ UINT64_C(0x6f7574616765)); /* "outage" */
	double at_s = 0;
	ret->every_s = every_s;
	while (ret->count < SKEP_OUTAGES_MAX) {
		double uniform = ((double)(skep_random_next(&state) >> 11) + 0.5) / 9007199254740992.0; /* 2^53 */
		at_s -= every_s * skep_deviate_log(uniform);
		if (at_s > OUTAGE_S_MAX)
			return;
		ret->lost_ns[ret->count++] = (skep_time)(SKEP_NS_PER_S * at_s);
	}
}

void skep_outage_read(struct skep_reader *r, const struct skep_yaml_node *map, struct skep_scenario *s)
{
	static const char *const withs[] = {"checkpoints", "workers", NULL};
	bool has_back = skep_read_has(r, map, "back_after");
	bool drawn = skep_read_has(r, map, "lost_every");
	read_times(r, map, &s->outages);
	double every_s = skep_read_quantity(r, map, "lost_every", SKEP_TIME, 1, OUTAGE_S_MAX, OUTAGE_S_MAX);
	if (drawn && skep_read_has(r, map, "lost_at"))
		skep_reader_fail(r, map, "lost_every",
			"directory.lost_every: draws the times by the seed, and `lost_at` says them: leave out either");
	if (drawn && !r->diag->set)
		draw_times(every_s, s->seed, &s->outages);
	double back_s = skep_read_quantity(r, map, "back_after", SKEP_TIME, 0, OUTAGE_S_MAX, BACK_S);
	s->outages.back_ns = (skep_time)(SKEP_NS_PER_S * back_s);
	s->outages.with_workers = skep_read_choice(r, map, "back_with", withs, 0) == 1;
	if (!r->diag->set && has_back && s->outages.count == 0)
		skep_reader_fail(r, map, "back_after",
			"directory.back_after: the directory is not lost: say when, `lost_at: [2 h]` or `lost_every: 8 h`, or "
			"leave this out");
}

void skep_outage_check(struct skep_reader *r, const struct skep_yaml_node *map, struct skep_scenario *s)
{
	const char *key = s->outages.every_s > 0 ? "lost_every" : "lost_at";
	if (!r->diag->set && s->plan.scale != NULL && s->outages.count > 0)
		skep_reader_fail(r, map, key,
			"directory.%s: does not go with `cluster.scale`: the directory that takes the place begins with the "
			"`start` machines again, and how long those take that were given back is not known: leave out either",
			key);
	if (!r->diag->set && s->outages.with_workers && s->plan.checkpoint_every == 0)
		skep_reader_fail(r, map, "back_with",
			"directory.back_with: workers have nowhere to keep what they hold: add `checkpoint: {every: 100, to: "
			"FOLDER}`");
	if (!r->diag->set && s->outages.with_workers && !skep_plan_leaves_states(&s->plan))
		skep_reader_fail(r, map, "back_with",
			"directory.back_with: a worker holds no state of a step by itself with `sync.method: async`: take "
			"`checkpoints`");
	if (!r->diag->set && !skep_read_has(r, map, "back_with"))
		s->outages.with_workers = s->plan.checkpoint_every > 0 && skep_plan_leaves_states(&s->plan);
	s->plan.together = !r->diag->set && s->outages.with_workers && !skep_plan_no_flush(&s->plan);
}

/* ---- how long it lasts -------------------------------------------------------------------------------------------- */

/* Until those who knock find the directory, which is back `back_ns` after its loss. */
static skep_time knocks_ns(skep_time back_ns)
{
	skep_time at_ns = 0;
	for (uint64_t pause_s = SKEP_KNOCK_LEAST_S;;) {
		at_ns += pause_s * SKEP_SECOND_NS;
		if (at_ns >= back_ns)
			return at_ns;
		pause_s = 2 * pause_s < SKEP_KNOCK_MOST_S ? 2 * pause_s : SKEP_KNOCK_MOST_S;
	}
}

/* TCP, TLS, HELLO, the list of files, READY, PREPARED. A file takes another one. */
#define ROUND_TRIPS 6u

double skep_outage_let_in_s(const struct skep_topology *t, uint32_t machine, uint32_t files)
{
	uint32_t here = t->machine[machine].place, there = t->machine[t->machines].place;
	return (ROUND_TRIPS + files) * (skep_path_mean_s(t, here, there) + skep_path_mean_s(t, there, here));
}

static skep_time state_ns(const struct skep_scenario *s, uint32_t worker, enum skep_op_kind kind, uint32_t version)
{
	const struct skep_op op = {.kind = (uint8_t)kind,
		.lane = SKEP_LANE_COMPUTE,
		.stage = (uint16_t)s->plan.first_stage_of[worker],
		.checkpoint = version};
	return version > 0 && s->plan.first_stage_of[worker] != SKEP_NO_STAGE ? skep_scenario_op_ns(s, worker, &op) : 0;
}

/* The slowest worker's: it is let in, and reads its stage's state, or hands it over. */
static skep_time visit_ns(const struct skep_scenario *s, enum skep_op_kind kind, uint32_t version)
{
	skep_time longest_ns = 0;
	for (uint32_t i = 0; i < s->plan.workers; i++) {
		double let_in_s = skep_outage_let_in_s(&s->topology, skep_scenario_machine(s, i), 0);
		skep_time takes_ns = (skep_time)(SKEP_NS_PER_S * let_in_s) + state_ns(s, i, kind, version);
		longest_ns = takes_ns > longest_ns ? takes_ns : longest_ns;
	}
	return longest_ns;
}

skep_time skep_outage_lasts_ns(const struct skep_scenario *s, uint32_t version)
{
	assert(s->outages.count > 0);
	skep_time lasts_ns = knocks_ns(s->outages.back_ns);
	if (s->outages.with_workers)
		lasts_ns += visit_ns(s, SKEP_OP_CHECKPOINT, 1);
	return lasts_ns + visit_ns(s, SKEP_OP_RESTORE, s->outages.with_workers ? 1 : version);
}

/* What so many seconds of a run have left to go on from, in seconds of it, on the mean. */
static double left_s(const struct skep_scenario *s, double done_s, double round_s, double kept_s, double apart)
{
	double share = s->outages.with_workers ? 1 - apart : 0, held_s = floor(done_s / round_s) * round_s;
	double every_s = s->plan.checkpoint_every * round_s;
	double there_s = every_s > 0 ? fmax(floor((done_s - kept_s) / every_s), 0) * every_s : 0;
	return share * held_s + (1 - share) * there_s;
}

double skep_outage_run_s(
	const struct skep_scenario *s, double run_s, uint32_t rounds, double kept_s, double apart, uint32_t *ret_times)
{
	const struct skep_outages *o = &s->outages;
	double round_s = run_s / fmax(rounds, 1), from_s = 0, at_s = 0;
	assert(run_s >= 0 && kept_s >= 0 && apart >= 0 && apart <= 1);
	*ret_times = 0;
	for (uint32_t i = 0; i < o->count && round_s > 0; i++) {
		double lost_s = (double)o->lost_ns[i] / SKEP_NS_PER_S, done_s = from_s + lost_s - at_s;
		if (lost_s < at_s)
			continue; /* it is lost already */
		if (done_s >= run_s)
			break;
		from_s = fmax(from_s, left_s(s, done_s, round_s, kept_s, apart));
		at_s = lost_s + (double)skep_outage_lasts_ns(s, (uint32_t)lround(from_s / round_s)) / SKEP_NS_PER_S;
		++*ret_times;
	}
	return at_s + run_s - from_s;
}

bool skep_outage_describe(const struct skep_scenario *s, char *ret, size_t size)
{
	char at[SKEP_TEXT_BYTES], back[SKEP_TEXT_BYTES], gone[SKEP_TEXT_BYTES];
	const struct skep_outages *o = &s->outages;
	if (o->count == 0)
		return false;
	skep_time_text((double)o->lost_ns[0] * 1e-9, at);
	skep_time_text((double)o->back_ns * 1e-9, back);
	skep_time_text((double)skep_outage_lasts_ns(s, s->plan.checkpoint_every) * 1e-9, gone);
	size_t used = (size_t)snprintf(ret, size, "lost at %s", at);
	if (o->every_s > 0 && used < size)
		used += (size_t)snprintf(
			ret + used, size - used, " and so on, every %s on the mean", skep_time_text(o->every_s, at));
	else if (o->count > 1 && used < size)
		used += (size_t)snprintf(
			ret + used, size - used, " and %u more time%s", o->count - 1, o->count == 2 ? "" : "s");
	if (used < size)
		snprintf(ret + used, size - used, ", back after %s; all begin again %s after the loss, with %s", back,
			gone,
			o->with_workers                ? "what workers hold"
			: s->plan.checkpoint_every > 0 ? "the newest state that all stages have kept"
						       : "the first step: nothing is kept (checkpoint)");
	return true;
}

void skep_outage_add_json(const struct skep_scenario *s, cJSON *root)
{
	const struct skep_outages *o = &s->outages;
	cJSON *list = cJSON_AddArrayToObject(root, "directory_lost_at_s");
	for (uint32_t i = 0; i < o->count && o->every_s == 0; i++)
		cJSON_AddItemToArray(list, cJSON_CreateNumber((double)o->lost_ns[i] * 1e-9));
	skep_json_add_number(root, "directory_lost_every_s", o->every_s > 0 ? o->every_s : (double)NAN);
	double lasts_s = o->count > 0 ? (double)skep_outage_lasts_ns(s, s->plan.checkpoint_every) * 1e-9 : (double)NAN;
	skep_json_add_number(root, "directory_lost_for_s", lasts_s);
}
