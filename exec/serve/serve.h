/* SPDX-License-Identifier: Apache-2.0
 *
 * serve.h - a run that machines join and leave: the directory and the recorder in this process, each worker in a process that
 * has come over the network (join.h).
 *
 * The run begins when every worker of the scenario has a process, as a run over MPI does, or as many as were asked for; the
 * places of the others are those of workers that were lost before the first step. From then on the loop is the same. Who comes
 * later stands by for a place that is free.
 */
#pragma once

#include "exec/exec.h"
#include "exec/files/manifest.h"
#include "exec/keeping/lease.h"
#include "exec/scaling/scaler.h"
#include "exec/serve/status.h"
#include "exec/tcp/ticket.h"

#define SKEP_SILENCE_S 10.0
#define SKEP_SILENCE_LEAST_S 1.0
#define SKEP_SILENCE_MOST_S 3600.0

struct skep_serve_options {
	int listener;        /* of a socket that takes connections in (exec/tcp/endpoint.h), on ... */
	uint16_t port;       /* ... this port. It is closed with the run */
	const char *host;    /* that is printed for those who join; NULL: this machine's name */
	const char *version; /* of this program */
	bool pace;
	enum skep_device_kind device;
	double silence_s;           /* a process that is not heard for so long is gone */
	uint32_t least;             /* workers that the run begins with, one of each stage at least; 0: all */
	uint32_t admissions;        /* that the ticket is good for; 0: as many as come */
	bool has_seed, quiet;       /* has_seed: the scenario's seed was given, and its file has another */
	struct skep_status *status; /* hears what the recorder hears */
	const char *allocation;     /* that was found for the scenario, as --set takes it; NULL: it has its own */
	/* The file of the run's authority and tickets, for a later process of it; the caller removes it when the run is done. */
	const char *keys;
	const char *servers;        /* all that may serve this run, for those who join; NULL: this one alone */
	struct skep_scaler *scaler; /* of a scenario with cluster.scale; else NULL */
	struct skep_lease *lease;   /* of a server that has replicas; NULL: it has none */
	bool takes_keys;            /* those of the file; else it is written anew */
	bool announced;             /* the line for those who join has been printed */
	bool new_ticket;            /* takes_keys: the tickets in it are revoked, and there is another */
};

/* Prints the line that machines join with. */
void skep_serve_say_ticket(const struct skep_scenario *scenario, const struct skep_serve_options *options,
	const struct skep_ticket *ticket);

/* False: it cannot begin, or it could not go on, for the reason in reterr. */
bool skep_serve_run(const struct skep_scenario *scenario, const struct skep_manifest *manifest,
	const struct skep_serve_options *options, const struct skep_recorder *recorder, struct skep_exec_result *ret,
	struct skep_diag *reterr);
