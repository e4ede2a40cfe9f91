/* SPDX-License-Identifier: Apache-2.0
 *
 * replay_print.c - what a replay has found, for a person and as JSON.
 */
#include <assert.h>
#include <inttypes.h>
#include <math.h>

#include "base/json.h"
#include "exec/replay/replay.h"

static const char *verdict(const struct skep_replay_result *result)
{
	static const char *const name[] = {
		[SKEP_REPLAY_AGREES] = "agrees", [SKEP_REPLAY_DIFFERS] = "differs", [SKEP_REPLAY_DAMAGED] = "damaged"};
	assert(result->verdict < sizeof name / sizeof *name);
	return name[result->verdict];
}

static uint32_t named(const struct skep_replay_result *result)
{
	return result->unfinished < SKEP_REPLAY_INCARNATIONS_MAX ? result->unfinished : SKEP_REPLAY_INCARNATIONS_MAX;
}

static cJSON *first_json(const struct skep_replay_result *result)
{
	cJSON *first = cJSON_CreateObject();
	cJSON_AddNumberToObject(first, "machine", result->machine);
	skep_json_add_count(first, "event", result->event);
	cJSON_AddNumberToObject(first, "time_s", (double)result->now * 1e-9);
	cJSON_AddStringToObject(first, "what", result->what);
	cJSON_AddStringToObject(first, "why", result->why);
	cJSON_AddStringToObject(first, "recorded", result->recorded);
	cJSON_AddStringToObject(first, "replayed", result->replayed);
	return first;
}

static void print_json(const struct skep_replay_result *result, int64_t run, FILE *out)
{
	cJSON *root = cJSON_CreateObject();
	cJSON_AddNumberToObject(root, "run_id", (double)run);
	cJSON_AddStringToObject(root, "verdict", verdict(result));
	cJSON_AddNumberToObject(root, "machines", result->machines);
	skep_json_add_count(root, "events", result->events);
	skep_json_add_number(root, "run_events", result->run_events > 0 ? (double)result->run_events : NAN);
	cJSON_AddNumberToObject(root, "lives", result->lives);
	skep_json_add_count(root, "log_bytes", result->bytes);
	skep_json_add_count(root, "believed", result->believed);
	cJSON_AddBoolToObject(root, "whole", result->whole);
	cJSON *unfinished = cJSON_AddArrayToObject(root, "unfinished");
	for (uint32_t i = 0; i < named(result); i++) {
		cJSON *life = skep_json_add_row(unfinished);
		cJSON_AddNumberToObject(life, "machine", result->life[i].machine);
		cJSON_AddNumberToObject(life, "life", result->life[i].life);
		skep_json_add_count(life, "events", result->life[i].events);
		cJSON_AddBoolToObject(life, "waits", result->life[i].waits);
	}
	bool agrees = result->verdict == SKEP_REPLAY_AGREES;
	cJSON_AddItemToObject(root, "first", agrees ? cJSON_CreateNull() : first_json(result));
	skep_json_print(root, out);
}

static void print_first(const struct skep_replay_result *result, FILE *out)
{
	bool directory = result->machine + 1 == result->machines;
	fprintf(out, "  first at  machine %" PRIu32 "%s, event %" PRIu64 ", %.9f s\n", result->machine,
		directory ? " (the directory)" : "", result->event, (double)result->now * 1e-9);
	if (result->what[0] != '\0')
		fprintf(out, "  event     %s\n", result->what);
	fprintf(out, "  because   %s\n", result->why);
	if (result->recorded[0] != '\0')
		fprintf(out, "  digests   recorded %s, replayed %s\n", result->recorded, result->replayed);
}

static void print_unfinished(const struct skep_replay_result *result, FILE *out)
{
	if (result->unfinished > 0)
		fprintf(out, "  not to their end, and so not known to agree: %" PRIu32 " of %" PRIu32 " lives\n",
			result->unfinished, result->lives);
	for (uint32_t i = 0; i < named(result); i++)
		fprintf(out, "    machine %" PRIu32 ", life %" PRIu32 ", after %" PRIu64 " events: %s\n",
			result->life[i].machine, result->life[i].life, result->life[i].events,
			result->life[i].waits ? "waits for what a log without an end does not have"
					      : "its log has no end");
	if (result->unfinished > named(result))
		fputs("    ...\n", out);
	if (result->believed > 0)
		fprintf(out, "  of what they sent beyond that, %" PRIu64 " messages are known from their receivers\n",
			result->believed);
}

static void print_text(const struct skep_replay_result *result, int64_t run, FILE *out)
{
	bool agrees = result->verdict == SKEP_REPLAY_AGREES;
	fprintf(out, "run %" PRId64 " %s%s: %" PRIu64 " events of %" PRIu32 " machines", run, verdict(result),
		agrees && !result->whole ? " as far as its logs go" : "", result->events, result->machines);
	if (result->lives > result->machines)
		fprintf(out, " in %" PRIu32 " lives", result->lives);
	fputs(" replayed", out);
	if (agrees && result->whole)
		fputs(", each with the digest of the run\n", out);
	else if (result->run_events > 0)
		fprintf(out, ", the run had %" PRIu64 "\n", result->run_events);
	else
		fputs(", the logs do not reach the end of the run\n", out);
	print_unfinished(result, out);
	if (!agrees)
		print_first(result, out);
}

void skep_replay_print(const struct skep_replay_result *result, int64_t run, bool json, FILE *out)
{
	if (json)
		print_json(result, run, out);
	else
		print_text(result, run, out);
}
