/* SPDX-License-Identifier: Apache-2.0
 *
 * story.c - runs text stories: a small swarm, a few faults at given times, and what must come of it.
 *
 *     story FILE...              exit status 0 if every transcript is as expected
 *     story --rewrite FILE...    write the transcripts into the files (and read the difference before you commit it)
 *
 * A story is prose (lines that begin with #), settings and faults, a line of four dashes, and the transcript; README.md.
 */
#include "tests/cluster/story.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static struct fate fate_of(void *context, skep_time now, const struct skep_message *m)
{
	struct story *story = context;
	struct fate fate = {.delay_ns = story->latency_ns, .dead = DEAD_LOSES};
	if (m->kind == SKEP_MESSAGE_STATE)
		fate.delay_ns += story->download_ns;
	(void)now;
	for (uint32_t i = 0; i < story->rules; i++) {
		struct rule *rule = &story->rule[i];
		bool fits = rule->kind == m->kind && (rule->from == STORY_ANY || rule->from == m->from.index) &&
		            (rule->to == STORY_ANY || rule->to == m->to.index);
		if (rule->used || !fits)
			continue;
		rule->used = true;
		if (rule->what == RULE_DUPLICATE) {
			fate.copies = 1;
			fate.copy_delay_ns[0] = fate.delay_ns + rule->time;
		} else if (rule->what == RULE_DELAY) {
			fate.delay_ns += rule->time;
		} else {
			fate.failed = true;
			fate.delay_ns = rule->time;
		}
		break;
	}
	return fate;
}

static skep_time op_time(void *context, skep_time now, uint32_t worker, const struct skep_op *op)
{
	const struct story *story = context;
	(void)now;
	bool forward = op->kind == SKEP_OP_FORWARD || op->kind == SKEP_OP_RECOMPUTE;
	skep_time time_ns = forward                        ? story->forward_ns
	                    : op->kind == SKEP_OP_BACKWARD ? story->backward_ns
	                                                   : story->operation_ns;
	if (op->kind == SKEP_OP_BACKWARD && story->plan.recompute && !op->recomputed)
		time_ns += story->forward_ns;
	return time_ns * story->slowness[worker];
}

static void tell(void *context, const struct trace *trace)
{
	struct story *story = context;
	char line[TRANSCRIPT_LINE];
	if (trace->what == TRACE_SEND || trace->what == TRACE_RUN || (trace->what == TRACE_DONE && !story->operations))
		return;
	if (trace->message && story->hidden[trace->message->kind])
		return;
	transcript_line(&story->plan, trace, line);
	fprintf(story->out, "%s\n", line);
}

static void strike(struct cluster *cluster, const struct blow *blow)
{
	switch (blow->what) {
	case BLOW_KILL:
		cluster_kill(cluster, blow->who, blow->at, false);
		return;
	case BLOW_RESTART:
		cluster_restart(cluster, blow->who, blow->at);
		return;
	case BLOW_SUSPECT:
		cluster_suspect(cluster, blow->by, blow->who, blow->at, false);
		return;
	case BLOW_PAUSE:
		cluster_pause(cluster, blow->who, blow->at, blow->until);
		return;
	case BLOW_NOTICE:
		cluster_notice(cluster, blow->who, blow->at, blow->until, false);
		return;
	case BLOW_START:
		cluster_start_at(cluster, blow->who, blow->at);
		return;
	case BLOW_FLIP:
		cluster_flip(cluster, blow->who, blow->at);
		return;
	}
}

static void run_story(struct story *story, struct cluster *cluster)
{
	struct verdict verdict;
	struct setup setup = {.machine = &machine_skep,
		.plan = &story->plan,
		.context = story,
		.fate = fate_of,
		.op_time = op_time,
		.trace = tell,
		.trace_context = story,
		.other = story->other,
		.end_ns = story->until_ns,
		.events_limit = 100000};
	cluster_begin(cluster, &setup, &verdict);
	for (uint32_t i = 0; i < story->blows; i++)
		strike(cluster, &story->blow[i]);
	struct result result = cluster_run(cluster);
	if (verdict.broken)
		fprintf(story->out, "BROKEN %s: %s\n", verdict.invariant, verdict.text);
	else
		fprintf(story->out,
			"%s: %llu rounds, %llu microbatches issued; in the stages %llu counted, %llu lost\n",
			result.outcome == SKEP_DONE ? "done" : "failed", (unsigned long long)result.totals.rounds,
			(unsigned long long)result.totals.issued, (unsigned long long)result.totals.counted,
			(unsigned long long)result.totals.lost);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static char *read_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	char *text = NULL;
	size_t size = 0, used = 0;
	if (!file) {
		perror(path);
		return NULL;
	}
	do {
		size = size * 2 + 4096;
		text = realloc(text, size);
		assert(text);
		used += fread(text + used, 1, size - 1 - used, file);
	} while (used == size - 1);
	text[used] = '\0';
	fclose(file);
	return text;
}

static bool compare(const char *path, const char *expected, const char *got)
{
	unsigned line = 1;
	if (strcmp(expected, got) == 0)
		return true;
	while (*expected && *expected == *got) {
		const char *end = strchr(expected, '\n');
		size_t length = end ? (size_t)(end - expected) + 1 : strlen(expected);
		if (strncmp(expected, got, length) != 0)
			break;
		expected += length;
		got += length;
		line++;
	}
	fprintf(stderr, "%s: the transcript differs from line %u on\n  expected: %.*s\n  got:      %.*s\n", path, line,
		(int)strcspn(expected, "\n"), expected, (int)strcspn(got, "\n"), got);
	return false;
}

static bool rewrite(const char *path, const char *head, size_t head_length, const char *transcript)
{
	FILE *file = fopen(path, "wb");
	bool good = file && fwrite(head, 1, head_length, file) == head_length && fputs(transcript, file) >= 0;
	if (file && fclose(file) != 0)
		good = false;
	if (!good)
		perror(path);
	return good;
}

static bool do_story(struct cluster *cluster, const char *path, bool write)
{
	static const char ruler[] = "\n----\n";
	struct story story;
	char *text = read_file(path), *transcript = NULL;
	size_t length = 0;
	char *end = text ? strstr(text, ruler) : NULL;
	if (!end) {
		fprintf(stderr, "%s: no line of four dashes\n", path);
		free(text);
		return false;
	}
	size_t head_length = (size_t)(end - text) + strlen(ruler);
	char *head = strndup(text, head_length);
	assert(head);
	end[1] = '\0';
	bool good = story_read(&story, path, text);
	if (good) {
		story.out = open_memstream(&transcript, &length);
		assert(story.out);
		run_story(&story, cluster);
		fclose(story.out);
		good = write ? rewrite(path, head, head_length, transcript)
		             : compare(path, text + head_length, transcript);
	}
	free(transcript);
	free(head);
	free(text);
	return good;
}

int main(int argc, char **argv)
{
	bool write = argc > 1 && strcmp(argv[1], "--rewrite") == 0;
	int passed = 0, stories = 0;
	struct cluster *cluster = cluster_create();
	for (int i = write ? 2 : 1; i < argc; i++, stories++)
		passed += do_story(cluster, argv[i], write);
	cluster_destroy(cluster);
	printf("%d of %d stories %s\n", passed, stories, write ? "written" : "as expected");
	return stories == 0 ? 2 : passed == stories ? 0 : 1;
}
