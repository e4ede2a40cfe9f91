/* SPDX-License-Identifier: Apache-2.0
 *
 * replay_print.c - what a replay has found, for a person and as JSON.
 */
#include <inttypes.h>

#include "exec/replay.h"

static const char *verdict(const struct skep_replay_result *result)
{
	static const char *const name[] = {
		[SKEP_REPLAY_AGREES] = "agrees", [SKEP_REPLAY_DIFFERS] = "differs", [SKEP_REPLAY_DAMAGED] = "damaged"};
	return name[result->verdict];
}

static uint32_t named(const struct skep_replay_result *result)
{
	return result->unfinished < SKEP_REPLAY_LIVES_MAX ? result->unfinished : SKEP_REPLAY_LIVES_MAX;
}

/* None of the texts holds a character that JSON would have to escape. */
static void print_json(const struct skep_replay_result *result, int64_t run, FILE *out)
{
	fprintf(out, "{\"run_id\":%" PRId64 ",\"verdict\":\"%s\",\"machines\":%" PRIu32 ",\"events\":%" PRIu64, run,
		verdict(result), result->machines, result->events);
	if (result->run_events > 0)
		fprintf(out, ",\"run_events\":%" PRIu64, result->run_events);
	else
		fputs(",\"run_events\":null", out);
	fprintf(out, ",\"lives\":%" PRIu32 ",\"log_bytes\":%" PRIu64 ",\"whole\":%s,\"unfinished\":[", result->lives,
		result->bytes, result->whole ? "true" : "false");
	for (uint32_t i = 0; i < named(result); i++)
		fprintf(out, "%s{\"machine\":%" PRIu32 ",\"life\":%" PRIu32 ",\"events\":%" PRIu64 ",\"waits\":%s}",
			i > 0 ? "," : "", result->life[i].machine, result->life[i].life, result->life[i].events,
			result->life[i].waits ? "true" : "false");
	fputs("],\"first\":", out);
	if (result->verdict == SKEP_REPLAY_AGREES) {
		fputs("null}\n", out);
		return;
	}
	fprintf(out,
		"{\"machine\":%" PRIu32 ",\"event\":%" PRIu64
		",\"time_s\":%.9f,\"what\":\"%s\",\"why\":\"%s\",\"recorded\":\"%s\",\"replayed\":\"%s\"}}\n",
		result->machine, result->event, (double)result->now * 1e-9, result->what, result->why, result->recorded,
		result->replayed);
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
