/* SPDX-License-Identifier: Apache-2.0
 *
 * replicas_none.c - replicas.h in a build without libraft.
 */
#include "exec/replicas/replicas.h"

bool skep_replicas_ready(struct skep_diag *reterr)
{
	return skep_fail(reterr,
		"--replicas: this skep was built without libraft and libuv; install libraft-dev and libuv1-dev, "
		"and build it again");
}

uint32_t skep_replicas_count(const char *list, struct skep_diag *reterr)
{
	(void)list;
	skep_replicas_ready(reterr);
	return 0;
}

int skep_replicas_run(const struct skep_replicas_setup *setup, bool *ret_over, struct skep_diag *reterr)
{
	(void)setup;
	*ret_over = false;
	skep_replicas_ready(reterr);
	return -1;
}
