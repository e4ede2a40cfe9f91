/* SPDX-License-Identifier: Apache-2.0
 *
 * none.c - takes the place of the CUDA back end in builds without CUDA: it has no devices, and its error says why.
 */

#include "models/device/backend.h"

static uint32_t count(struct skep_diag *reterr)
{
	skep_fail(reterr, "this skep was built without CUDA; install the CUDA toolkit 12 or newer and rebuild with "
			  "-Dcuda=enabled, or use --device cpu");
	return 0;
}

const struct skep_backend skep_backend_cuda = {.name = "CUDA", .count = count};
