/* SPDX-License-Identifier: Apache-2.0
 *
 * device_cpu.h - forward and backward pass of a stage, or of one of its virtual stages (skep_stage_vstage), in the
 * host's memory, layer by layer.
 */
#pragma once

#include "models/stage/stage.h"

/* Makes OpenBLAS use one thread for each product: the device's thread pool shares the products out. */
void skep_cpu_init(void);
/* Where OpenBLAS gets no memory for a product it tries again for ever (0.3.21). So under a limit of the process's
 * memory (ulimit -v) it is asked for here, before anything else takes it, for so many threads that multiply at the same
 * time. */
bool skep_cpu_reserve(uint32_t threads, struct skep_diag *reterr);

/* in[samples][first width], NULL in the first stage, which draws its samples. out[samples][last width], NULL in the last stage,
 * which brings its loss, a mean over the samples. stash: stage->stash_bytes. False, with a diagnosis, if the samples cannot
 * be drawn. */
bool skep_cpu_forward(const struct skep_stage *stage, const struct skep_training *training, const struct skep_op *op,
	const skep_real *in, skep_real *ret_out, skep_real *ret_stash, double *ret_loss, struct skep_diag *reterr);

/* Makes ret_stash as forward did, from the same `in` and parameters. */
bool skep_cpu_recompute(const struct skep_stage *stage, const struct skep_training *training, const struct skep_op *op,
	const skep_real *in, skep_real *ret_stash, struct skep_diag *reterr);

/* The backward pass of layers first .. end - 1 of the stage. `in` and `stash` as forward had and left them; stage->scratch[0]
 * holds the gradient [samples][width where these layers end], except where the model ends. Returns where the gradient
 * [samples][width where they begin] is: in ret_out or, where that is NULL, in a scratch; NULL where the model begins.
 * Adds to the round's accumulator: several calls, each with what the one for the layers above has left, add to the bit
 * what one adds. */
const skep_real *skep_cpu_backward(struct skep_stage *stage, const struct skep_training *training,
	const struct skep_op *op, const struct skep_layers *layers, const skep_real *in, const skep_real *stash,
	skep_real *ret_out);
