/* SPDX-License-Identifier: Apache-2.0
 *
 * join.h - a process that joins a run which another machine serves. It needs the address and a ticket and nothing else: what the
 * run is comes with the offer, into a cache of this machine's.
 *
 *     skep_joining_begin()   says who it is, and fetches the files that it lacks
 *     (the caller reads the scenario: planning stands above this folder)
 *     skep_joining_run()     takes a process, waits until the run begins, and trains
 *     skep_joining_finish()
 */
#pragma once

#include "exec/exec.h"
#include "exec/files/cache.h"
#include "exec/tcp/words.h"
#include "models/checkpoint/checkpoint.h"

/* What a process that has lost `serve` leaves for the one that comes after it: states of a stage in a folder of checkpoints. */
struct skep_left {
	char folder[SKEP_CHECKPOINT_PATH_BYTES];
	uint64_t job, run;
	uint32_t stage, version; /* 0: nothing */
	uint32_t presumed;       /* the version of the step that it waited to be told; 0: nothing */
};

struct skep_join_options {
	const char *server; /* HOST:PORT, or several with commas between, of which one answers */
	const char *ticket;
	const char *cache;   /* a folder; NULL: the usual one */
	const char *listen;  /* ADDR:PORT for others to connect to; NULL: any free port */
	const char *version; /* of this program */
	const char *gpu;     /* the name of a profile; NULL: not said */
	double memory_bytes; /* of the device; 0: not known */
	uint32_t worker;     /* that it wants to be; SKEP_NO_INDEX: any */
	double farewell_s;   /* from SIGTERM to its end: the time in which others take over what it has */
	struct skep_left
		*left; /* of processes of this machine that come one after the other; NULL: none comes after this one */
	bool quiet;
};

struct skep_joining;

/* Has the user given addresses of servers, and a ticket (NULL: none) that may be one? Neither network nor file is asked. */
bool skep_joining_check(const char *server, const char *ticket, struct skep_diag *reterr);

/* What the scenario is read with. */
struct skep_joined {
	char scenario[SKEP_CACHE_PATH], root[SKEP_CACHE_PATH];
	const struct skep_manifest *manifest;
	bool over;              /* the run has reached its end: there is nothing to join */
	const char *allocation; /* that `serve` has found; NULL: the scenario has its own */
	struct skep_offer offer;
};

/* NULL: reterr says why, unless ret->over. *ret_for_good: trying again is of no use. */
struct skep_joining *skep_joining_begin(
	const struct skep_join_options *options, struct skep_joined *ret, bool *ret_for_good, struct skep_diag *reterr);
/* To the end of the run, or of this process's part in it. */
bool skep_joining_run(struct skep_joining *joining, const struct skep_scenario *scenario, struct skep_exec_result *ret,
	bool *ret_for_good, struct skep_diag *reterr);
/* Says to the server why this process cannot take part; it then tries nothing more. */
void skep_joining_decline(struct skep_joining *joining, const char *reason);
void skep_joining_finish(struct skep_joining *joining); /* NULL is fine */

/* What status.h says of the run, as JSON that the caller frees. NULL: reterr says why. */
char *skep_status_ask(const char *server, const char *ticket, const char *version, struct skep_diag *reterr);
