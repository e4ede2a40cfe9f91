/* SPDX-License-Identifier: Apache-2.0
 *
 * transport_mpi.h - the transport over MPI_COMM_WORLD, between MPI_Init and MPI_Finalize.
 */
#pragma once

#include <mpi.h>

#include "exec/mpi/mpi_bytes.h"
#include "exec/transport/rejects.h"
#include "exec/transport/transport.h"

/* All ranks together. `run` must be the same on all. False: MPI refused or no memory. */
bool skep_transport_mpi_create(struct skep_transport *ret, uint64_t run, struct skep_rejects *rejects);

/* All ranks together if `clean`, and nothing may be pending; else everything is left to the end of the process. */
void skep_transport_mpi_destroy(struct skep_transport *transport, bool clean);
