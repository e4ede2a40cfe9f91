/* SPDX-License-Identifier: Apache-2.0
 *
 * fresh.h - one diagnosis for many calls of a test: the first error counts, so each call is given a clear one.
 */
#pragma once

#include "base/diag.h"

static inline struct skep_diag *fresh(struct skep_diag *diag)
{
	*diag = (struct skep_diag){0};
	return diag;
}
