/* SPDX-License-Identifier: Apache-2.0
 *
 * replicas.h - three or five machines of which one serves a run, and another one goes on when that one is lost.
 *
 * Each machine has a process that never serves itself: it speaks with its like (links.c), keeps what a majority has agreed on
 * (kept.h), and holds states of the run for the case that it comes to lead. They elect one by Raft, for which the library is
 * libraft (cowsql/raft, in Debian 12 and 13): log, terms and votes are on the disk of each before they are told. It is in C,
 * does its own writing to the disk, and takes a transport of ours, so that TLS is; willemt/raft leaves disk and messages to its
 * user, braft brings a transport and C++ of its own, those of etcd and HashiCorp are in Go. The elected one starts a process that
 * serves as `skep serve --resume=auto` does, and renews its lease (exec/keeping/lease.h) while a majority takes it for leader.
 *
 * What is agreed on, in the order of events:
 *     BEGIN   the server has chosen what it goes on from; it lets no worker in before
 *     STATE   a majority has a state on its disks; its worker hears only now that it is kept. Before BEGIN: one that workers have
 *             brought when they had lost the last server (exec/gathering/gathering.h), of the run of the BEGIN before
 *     OVER    the server has ended well: all replicas end
 *
 * What is kept true:
 *   - A version that a worker was told is kept is not lost while a majority of the disks is there: the next one that leads has
 *     it, or fetches it from another replica before it serves.
 *   - A server that was cut off, or stopped and continued, keeps nothing more, for that takes a majority; its process ends when
 *     the lease does. For at most two of the elections' time-outs it may still speak to workers that reach it alone.
 *   - A minority serves no one, and says so.
 *   - Replicas that have read different files do not work together; one that has read others than most ends, and names one.
 *   - Replicas hear each other over TLS 1.3 alone, with certificates of the run's authority that name them. Its key is in the
 *     file that all of them have been given.
 * Who the replicas are is fixed. One that comes back with its folder takes part again; one whose folder was lost must not come
 * back, for it has forgotten whom it voted for.
 */
#pragma once

#include "base/diag.h"
#include "models/checkpoint/checkpoint.h"

#define SKEP_REPLICAS_MAX 5u

/* Are there three or five in the list, HOST:PORT with commas between? If so their number, else 0 and reterr. */
uint32_t skep_replicas_count(const char *list, struct skep_diag *reterr);
/* Can this build do it? If not, reterr says what it lacks. */
bool skep_replicas_ready(struct skep_diag *reterr);

/* Something that a replica has read for its run: all have to have read the same. */
struct skep_replica_source {
	char name[64]; /* of a file, without its folder, or of an override */
	uint64_t bytes;
	uint8_t digest[32]; /* SHA-256 */
};

struct skep_replicas_setup {
	const char *list;   /* where each of them serves; among each other they use the port after it */
	uint32_t own;       /* this one's number, from 1 */
	const char *keys;   /* the file of the run's authority */
	const char *folder; /* where this one remembers; it is removed when the run is over */
	struct skep_checkpoint_folder states;     /* of the job; which run it is the entries say */
	const struct skep_replica_source *source; /* [sources] */
	uint32_t stages, sources;
	uint64_t election_ns; /* without a leader for so long a replica asks to be elected */
	bool quiet;
	/* Serves, in a process of its own, with the other end of a lease; returns its exit status. `agreed_run`: the
	 * one that was agreed on last, which this one goes on with; its own number is greater. 0: it is the first. */
	int (*serve)(void *context, int lease, uint64_t agreed_run);
	void *context;
};

/* Until the run is over, this replica fails, or a signal comes. Returns the exit status; -1: it cannot begin, and reterr says
 * why. *ret_over: all rounds are done. */
int skep_replicas_run(const struct skep_replicas_setup *setup, bool *ret_over, struct skep_diag *reterr);
