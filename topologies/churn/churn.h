/* SPDX-License-Identifier: Apache-2.0
 *
 * churn.h - a trace played on the machines of a topology: which worker is there, from when to when.
 *
 * Both worlds take this one list: at each event's time the worker joins or leaves. What is kept true: events are sorted by
 * time; per worker they alternate, beginning with a leave if the worker is in present[] and with a join if not; workers
 * are machines of the topology. A worker may leave and join again in the same instant, in this order.
 */
#pragma once

#include "topologies/churn/lifetime_fit.h"
#include "topologies/churn/trace.h"
#include "topologies/read/topology.h"

struct skep_churn_event {
	skep_time at_ns;
	uint32_t worker;
	bool join;
};

struct skep_churn {
	struct skep_churn_event *event;
	size_t events;
	uint32_t *present; /* workers that are there at 0, rising */
	uint32_t presents;
	skep_time end_ns;       /* of the trace or of the last event, in the run's time; nothing is known behind it */
	uint64_t joins, leaves; /* in event[] */
	/* Joins, at 0 or later, that found no free machine of their type: left out, with their leave. */
	uint64_t unplaced;
	uint64_t unsuited;       /* of these: their type suits no machine of the topology, free or not */
	char unsuited_type[128]; /* the first such type; "": there is none */
	uint64_t unadmitted; /* joins whose machine was taken away before it was let in: left out, with their leave */
	uint64_t refused;    /* requests that the trace itself says were refused, in the time that is played */
	uint32_t most;       /* at once */
	bool unbound;        /* its names and zones are none of the topology's places, of which there are several */
	struct skep_trace_report trace;
	struct skep_lifetime_fit drawn_from; /* of a drawn trace: the law of its lives; scale_s 0: it was recorded */
};

struct skep_churn_options {
	struct skep_trace_options trace;
	double scale;       /* 0.1 plays the trace ten times as fast; above 0 */
	skep_time start_ns; /* trace time, from its first event, that becomes 0 of the run */
	skep_time end_ns;   /* trace time, from its first event, at which playing stops; SKEP_TIME_NEVER: its end */
	double copies;      /* each name stands for so many machines; 0: as many as fill the topology */
	/* Trace time; each event happens up to so much later. 0 none; a minute for polled traces. */
	skep_time jitter_ns;
	bool any_gpu;        /* types in the trace do not matter */
	bool random_machine; /* a join takes any free machine that suits, drawn; else the one with the lowest index */
	uint64_t seed;       /* jitter and machines */
};
#define SKEP_CHURN_JITTER_MAX_NS 86400000000000u /* a day */
#define SKEP_CHURN_DEFAULTS                                                                                            \
	{                                                                                                              \
		.scale = 1, .end_ns = SKEP_TIME_NEVER, .copies = 1                                                     \
	}

/* Does a GPU type as a trace names it suit a profile's name? The parts of the type between dashes must occur in the
 * profile's, in order, the first as the first; case does not matter: v100 suits V100-SXM2-16, v100-32 V100-SXM2-32. */
bool skep_churn_suits(const char *type, const char *profile);

bool skep_churn_read(const char *path, const struct skep_topology *topology, const struct skep_churn_options *options,
	struct skep_churn *ret, struct skep_diag *reterr);

/* A trace of its own for each seed: as many machines as the topology has, all there at 0, with the lives, bursts,
 * refusals and waits of the recording at `path` (trace_generate.h), for duration_ns, 0: for as long as that. Of a
 * drawn machine the type does not matter, and each name is one machine. */
bool skep_churn_draw(const char *path, skep_time duration_ns, const struct skep_topology *topology,
	const struct skep_churn_options *options, struct skep_churn *ret, struct skep_diag *reterr);
void skep_churn_finish(struct skep_churn *churn);

/* Processes begin so long after their machines have joined: first_ns[worker] on a machine that has not been there,
 * again_ns[worker] on one that has. False: no memory. */
bool skep_churn_admit(struct skep_churn *churn, uint32_t workers, const skep_time *first_ns, const skep_time *again_ns);

struct skep_notice { /* to a worker that it will be taken away */
	skep_time at_ns, leave_at_ns;
	uint32_t worker;
};

/* The notices of all leaves, each `notice_ns` before its leave or right after the join before it if that is later,
 * by time and worker; to be freed. A life that ends when it begins gets none; with `notice_ns` 0 there are none at
 * all. False: no memory. */
bool skep_churn_notices(const struct skep_churn *churn, uint32_t workers, skep_time notice_ns, struct skep_notice **ret,
	uint32_t *ret_count);

/* When the directory is told of the loss that this event is; SKEP_TIME_NEVER: the event is no loss, or the directory
 * has to detect it. */
skep_time skep_churn_heard_at(const struct skep_churn_event *event, skep_time detection_delay_ns);
