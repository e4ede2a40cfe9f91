/* SPDX-License-Identifier: Apache-2.0
 *
 * status.c - see status.h.
 */
#include "exec/serve/status.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"

struct skep_status {
	const struct skep_scenario *scenario;
	uint32_t rounds, total;          /* that are over, of all; total 0: none is */
	uint32_t begun_at;               /* rounds that were over when the run began */
	skep_time first_ns, newest_ns;   /* the ends of the first and of the newest round */
	uint64_t samples, first_samples; /* counted in the last stage: all, and when the first round ended */
	double loss, validation_loss;    /* NAN: none yet */
	uint32_t lost;                   /* workers, so far */
	double cost_usd;                 /* of lives that are over, and of traffic; NAN: a price is not known */
	uint32_t *stage;                 /* [workers] that each serves, SKEP_NO_STAGE: none */
	skep_time *since_ns;             /* [workers] SKEP_TIME_NEVER: the place has no process */
	bool *taken;                     /* [workers] by a process, until the run knows that it is gone */
};

struct skep_status *skep_status_create(const struct skep_scenario *scenario)
{
	uint32_t workers = scenario->plan.workers;
	struct skep_status *status = calloc(1, sizeof *status);
	if (status == NULL)
		return NULL;
	*status = (struct skep_status){.scenario = scenario, .loss = NAN, .validation_loss = NAN};
	status->rounds = status->begun_at = scenario->plan.first_round;
	status->stage = calloc(workers, sizeof *status->stage);
	status->since_ns = calloc(workers, sizeof *status->since_ns);
	status->taken = calloc(workers, sizeof *status->taken);
	if (status->stage == NULL || status->since_ns == NULL || status->taken == NULL) {
		skep_status_destroy(status);
		return NULL;
	}
	for (uint32_t i = 0; i < workers; i++) {
		status->stage[i] = scenario->first_stage_of[i];
		status->since_ns[i] = SKEP_TIME_NEVER;
	}
	return status;
}

void skep_status_destroy(struct skep_status *status)
{
	if (status == NULL)
		return;
	free(status->stage);
	free(status->since_ns);
	free(status->taken);
	free(status);
}

/* ---- what the run says ---------------------------------------------------------------------------------------------- */

static void hear_close(struct skep_status *status, skep_time now)
{
	if (status->first_ns == 0) {
		status->first_ns = now;
		status->first_samples = status->samples;
	}
	status->newest_ns = now;
}

static void hear_note(void *context, skep_time now, struct skep_peer who, const struct skep_note *note)
{
	struct skep_status *status = context;
	const struct skep_plan *plan = &status->scenario->plan;
	uint32_t worker = note->peer.index;
	(void)who;
	switch (note->kind) {
	case SKEP_NOTE_STAGE_COMMITTED:
		if (note->stage + 1u == skep_plan_vstages(plan))
			status->samples += (uint64_t)note->counted * status->scenario->samples;
		break;
	case SKEP_NOTE_ROUND_CLOSED:
		hear_close(status, now);
		break;
	case SKEP_NOTE_LOSS:
		status->loss = note->loss_nano == INT64_MAX ? (double)NAN : (double)note->loss_nano * 1e-9;
		break;
	case SKEP_NOTE_VALIDATED:
		status->validation_loss = (double)note->loss_nano * 1e-9;
		break;
	case SKEP_NOTE_JOINED:
	case SKEP_NOTE_MIGRATED:
		status->stage[worker] = note->stage;
		break;
	case SKEP_NOTE_FENCED:
	case SKEP_NOTE_LEFT:
		status->stage[worker] = SKEP_NO_STAGE;
		status->lost += status->taken[worker]; /* a place that was never taken is fenced as well */
		status->taken[worker] = false;
		break;
	default:
		break;
	}
}

static void hear_life(void *context, uint32_t machine, skep_time started_ns, skep_time ended_ns)
{
	struct skep_status *status = context;
	assert(machine < status->scenario->plan.workers);
	status->cost_usd += skep_topology_cost_usd(&status->scenario->topology, machine, started_ns, ended_ns);
	status->since_ns[machine] = SKEP_TIME_NEVER;
}

static void hear_sent(void *context, const struct skep_sent *sent)
{
	struct skep_status *status = context;
	status->cost_usd += sent->egress_usd;
}

static void hear_progress(void *context, skep_time now, uint32_t rounds_done, uint32_t rounds_total)
{
	struct skep_status *status = context;
	(void)now;
	status->rounds = rounds_done;
	status->total = rounds_total;
}

struct skep_recorder skep_status_recorder(struct skep_status *status)
{
	return (struct skep_recorder){
		.context = status, .note = hear_note, .life = hear_life, .progress = hear_progress, .sent = hear_sent};
}

void skep_status_begins(struct skep_status *status, uint32_t worker, skep_time now)
{
	assert(worker < status->scenario->plan.workers);
	status->since_ns[worker] = now;
	status->taken[worker] = true;
}

/* ---- what is told --------------------------------------------------------------------------------------------------- */

static double cost_until(const struct skep_status *status, skep_time now)
{
	double cost = status->cost_usd;
	for (uint32_t i = 0; i < status->scenario->plan.workers; i++) {
		if (status->since_ns[i] != SKEP_TIME_NEVER)
			cost += skep_topology_cost_usd(&status->scenario->topology, i, status->since_ns[i], now);
	}
	return cost;
}

/* By the rounds since the first one, which has the start in it. NAN: not known yet. */
static double left_by_rounds_s(const struct skep_status *status)
{
	uint32_t since = status->rounds - status->begun_at;
	if (since < 2 || status->total <= status->rounds)
		return since < 2 ? (double)NAN : 0;
	double round_s = (double)(status->newest_ns - status->first_ns) * 1e-9 / (since - 1);
	return round_s * (status->total - status->rounds);
}

/* Until the last round, or the time at which the run ends. NAN: not known yet. */
static double left_s(const struct skep_status *status, skep_time now)
{
	skep_time end_ns = status->scenario->plan.until.end_ns;
	double rounds_s = left_by_rounds_s(status), time_s = end_ns > now ? (double)(end_ns - now) * 1e-9 : 0;
	return end_ns > 0 && !(rounds_s < time_s) ? time_s : rounds_s;
}

static double samples_per_s(const struct skep_status *status)
{
	if (status->newest_ns == status->first_ns)
		return NAN;
	return (double)(status->samples - status->first_samples) /
	       ((double)(status->newest_ns - status->first_ns) * 1e-9);
}

static void add_member(cJSON *to, const struct skep_status *status, const struct skep_status_member *member)
{
	assert(member->worker == SKEP_NO_INDEX || member->worker < status->scenario->plan.workers);
	cJSON *one = skep_json_add_row(to);
	bool works = member->worker != SKEP_NO_INDEX;
	uint32_t stage = works ? status->stage[member->worker] : SKEP_NO_STAGE;
	skep_time since = works ? status->since_ns[member->worker] : SKEP_TIME_NEVER;
	cJSON_AddNumberToObject(one, "rank", member->rank);
	skep_json_add_text(one, "host", member->host);
	skep_json_add_text(one, "gpu", member->gpu);
	skep_json_add_text(one, "address", member->address);
	skep_json_add_number(one, "worker", works ? member->worker : (double)NAN);
	skep_json_add_number(one, "stage", stage != SKEP_NO_STAGE ? stage : (double)NAN);
	skep_json_add_count(one, "relayed", member->relayed);
	skep_json_add_number(one, "since_s", since != SKEP_TIME_NEVER ? (double)since * 1e-9 : (double)NAN);
}

char *skep_status_json(const struct skep_status *status, bool running, skep_time now,
	const struct skep_status_member *member, uint32_t members, const struct skep_relays *relays)
{
	const struct skep_scenario *scenario = status->scenario;
	cJSON *root = cJSON_CreateObject();
	cJSON_AddStringToObject(root, "scenario", scenario->name);
	cJSON_AddStringToObject(root, "state", running ? "running" : "waiting");
	skep_json_add_number(root, "time_s", running ? (double)now * 1e-9 : 0);
	skep_json_add_count(root, "steps", skep_plan_steps_before(&scenario->plan, status->rounds));
	skep_json_add_count(root, "steps_total", skep_plan_steps_before(&scenario->plan, scenario->plan.rounds));
	skep_json_add_number(root, "left_s", left_s(status, now));
	skep_json_add_number(root, "throughput_samples_per_s", samples_per_s(status));
	skep_json_add_number(root, "loss", status->loss);
	skep_json_add_number(root, "validation_loss", status->validation_loss);
	skep_json_add_number(root, "cost_usd", running ? cost_until(status, now) : 0);
	skep_json_add_count(root, "workers", scenario->plan.workers);
	skep_json_add_count(root, "preemptions", status->lost);
	cJSON *list = cJSON_AddArrayToObject(root, "members");
	for (uint32_t i = 0; i < members; i++)
		add_member(list, status, &member[i]);
	list = cJSON_AddArrayToObject(root, "relayed");
	for (uint32_t i = 0; i < relays->pairs; i++) {
		cJSON *pair = cJSON_CreateArray();
		for (int end = 0; end < 2; end++)
			cJSON_AddItemToArray(pair, cJSON_CreateNumber(relays->pair[i][end]));
		cJSON_AddItemToArray(list, pair);
	}
	char *text = cJSON_PrintUnformatted(root);
	cJSON_Delete(root);
	return text;
}
