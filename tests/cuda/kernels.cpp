/* SPDX-License-Identifier: Apache-2.0
 *
 * kernels.cpp - the kernels of models/cuda/ once more, for the CPU: see emulate.hpp.
 */
#include "models/cuda/attention.cu"
#include "models/cuda/attention_back.cu"
#include "models/cuda/runtime.cu"
#undef ROWS
#undef THREADS
#include "models/cuda/norm.cu"
#undef ROWS
#include "models/cuda/codec.cu"
#undef THREADS
#undef EACH
#include "models/cuda/ends.cu"
#undef THREADS
#include "models/cuda/feed.cu"
#undef THREADS
#include "models/cuda/optimizer.cu"
#include "models/cuda/product.cu"
#undef COLUMNS
#include "models/cuda/robust.cu"
