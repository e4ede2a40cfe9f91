/* SPDX-License-Identifier: Apache-2.0
 *
 * story.h - a text story, read: the plan, the times of its world, and its faults.
 */
#pragma once

#include <stdio.h>

#include "core/scale/policy.h"
#include "tests/cluster/transcript.h"

#define STORY_RULES 16u
#define STORY_FAULTS 32u
#define STORY_ANY (SKEP_NO_INDEX - 1u)

struct rule { /* about the first message that fits */
	uint8_t kind;
	uint32_t from, to;
	enum { RULE_DUPLICATE, RULE_DELAY, RULE_RETURN } what;
	skep_time time;
	bool used;
};

struct blow { /* a fault at a given time */
	enum { BLOW_KILL, BLOW_RESTART, BLOW_SUSPECT, BLOW_PAUSE, BLOW_NOTICE, BLOW_START, BLOW_FLIP } what;
	uint32_t who, by;
	skep_time at, until;
};

struct story {
	const char *path;
	unsigned line;
	struct skep_plan plan;
	struct skep_stage_plan stage[CLUSTER_STAGES];
	uint32_t first_stage_of[CLUSTER_WORKERS];
	bool stands_by[CLUSTER_WORKERS];
	skep_time download_ns; /* a STATE takes so much longer than other messages */
	uint32_t chunks, buckets, tied, frozen, sum_every[CLUSTER_STAGES];
	struct skep_scale scale; /* of one kind, all of whose machines are there at the start */
	struct skep_scale_kind kind;
	uint32_t kind_of[CLUSTER_WORKERS];
	uint32_t site_of[CLUSTER_WORKERS];
	uint64_t link_Bps[CLUSTER_WORKERS];
	uint32_t ring_order[CLUSTER_STAGES * CLUSTER_WORKERS];
	uint64_t bucket_first[CLUSTER_ELEMENTS]; /* of every stage */
	skep_time latency_ns, forward_ns, backward_ns, operation_ns, until_ns;
	uint32_t slowness[CLUSTER_WORKERS];
	uint32_t other; /* bits: workers of another arithmetic */
	struct rule rule[STORY_RULES];
	struct blow blow[STORY_FAULTS];
	uint32_t rules, blows;
	bool hidden[SKEP_MESSAGE_KINDS], operations;
	FILE *out;
};

/* Begins with the defaults. Writes into `text`, which is the part before the four dashes, and keeps nothing of it. False: it
 * has said on stderr what is wrong, with `path` and the line. */
bool story_read(struct story *story, const char *path, char *text);
