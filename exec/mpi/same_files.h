/* SPDX-License-Identifier: Apache-2.0
 *
 * same_files.h - do all ranks read the same? The scenario's text alone says little: a corpus, a model or a trace under the
 * same name may be another one on another host.
 */
#pragma once

#include "base/files/files.h"
#include "exec/mpi/startup.h"

/* Collective. False on all ranks if some rank has read another file than rank 0 in its place: the reason names it, the rank
 * and its host. A file that is the very same one, on the same host, is not read again. */
bool skep_together_same_files(struct skep_start *start, const struct skep_files *files, struct skep_diag *reterr);
