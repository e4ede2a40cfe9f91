/* SPDX-License-Identifier: Apache-2.0
 *
 * ulfm_none.c - stands in for ulfm.c where MPI ends a run whose process dies.
 */
#include "exec/mpi/mpi_bytes.h"

bool skep_ulfm_built(void)
{
	return false;
}

bool skep_ulfm_active(void)
{
	return false;
}

bool skep_ulfm_is_death(int rc)
{
	(void)rc;
	return false;
}

void skep_ulfm_failed(MPI_Comm comm, bool *gone)
{
	(void)comm;
	(void)gone;
}
