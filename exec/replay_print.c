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

/* None of the texts holds a character that JSON would have to escape. */
static void print_json(const struct skep_replay_result *result, int64_t run, FILE *out)
{
	fprintf(out, "{\"run_id\":%" PRId64 ",\"verdict\":\"%s\",\"machines\":%" PRIu32 ",\"events\":%" PRIu64, run,
		verdict(result), result->machines, result->events);
	if (result->run_events > 0)
		fprintf(out, ",\"run_events\":%" PRIu64, result->run_events);
	else
		fputs(",\"run_events\":null", out);
	fprintf(out, ",\"log_bytes\":%" PRIu64 ",\"whole\":%s,\"first\":", result->bytes,
		result->whole ? "true" : "false");
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

static void print_text(const struct skep_replay_result *result, int64_t run, FILE *out)
{
	fprintf(out, "run %" PRId64 " %s: %" PRIu64 " events of %" PRIu32 " machines replayed", run, verdict(result),
		result->events, result->machines);
	if (result->verdict == SKEP_REPLAY_AGREES && result->whole)
		fputs(", each with the digest of the run\n", out);
	else if (result->run_events > 0)
		fprintf(out, ", the run had %" PRIu64 "\n", result->run_events);
	else
		fputs(", the run did not come to its end\n", out);
	if (result->verdict != SKEP_REPLAY_AGREES)
		print_first(result, out);
}

void skep_replay_print(const struct skep_replay_result *result, int64_t run, bool json, FILE *out)
{
	if (json)
		print_json(result, run, out);
	else
		print_text(result, run, out);
}
