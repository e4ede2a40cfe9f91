/* SPDX-License-Identifier: Apache-2.0
 *
 * lease.h - a server that serves only as long as a majority of its replicas lets it (exec/replicas/replicas.h): its end of the
 * line to the process that speaks with the others.
 *
 *     skep_lease_open()      in the server's process
 *     skep_lease_hand_on()   a state that the run may go on from: waits until a majority has it
 *     skep_lease_begin()     waits until a majority knows which run this is; nothing is served before
 *     skep_lease_keep()      of each state that is whole on this machine
 *     skep_lease_kept()      which of them a majority has by now
 *
 * The lease is renewed several times a second. When it has run out, or the line has ended, a thread of its own ends this process
 * at once, whatever the others are doing: a server that was cut off, or stopped and continued, does not go on.
 */
#pragma once

#include "base/diag.h"
#include "models/checkpoint/checkpoint.h"

#define SKEP_LEASE_LOST 75 /* exit status of a server whose lease has run out: EX_TEMPFAIL of sysexits.h */

enum skep_lease_kind {
	SKEP_LEASE_RENEWED = 1, /* to the server: until_ns */
	SKEP_LEASE_BEGUN,       /* to the server: a majority knows the run */
	SKEP_LEASE_KEPT,        /* to the server: a majority has stage, version */
	SKEP_LEASE_BEGINS,      /* from the server: run, from, from_version */
	SKEP_LEASE_KEEPS        /* from the server: stage, version, bytes */
};

/* What goes over the line, a pair of sockets of one host that keeps messages apart (SOCK_SEQPACKET). */
struct skep_lease_message {
	uint32_t kind;
	uint32_t stage, version;
	uint32_t from_version;
	uint64_t bytes, run, from;
	uint64_t until_ns; /* CLOCK_MONOTONIC */
};

struct skep_lease;

/* Takes over `fd`. The lease holds for `first_ns` without being renewed. NULL: reterr. */
struct skep_lease *skep_lease_open(int fd, uint64_t first_ns, struct skep_diag *reterr);
void skep_lease_close(struct skep_lease *lease); /* NULL is fine */

/* Before skep_lease_begin(): of the run that was agreed on before. */
void skep_lease_hand_on(struct skep_lease *lease, uint32_t stage, uint32_t version, uint64_t bytes);
void skep_lease_begin(struct skep_lease *lease, const struct skep_checkpoint_folder *folder);
void skep_lease_keep(struct skep_lease *lease, uint32_t stage, uint32_t version, uint64_t bytes);
/* The next one that was not heard of yet; false: there is none. */
bool skep_lease_kept(struct skep_lease *lease, uint32_t *ret_stage, uint32_t *ret_version);
