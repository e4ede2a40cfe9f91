/* SPDX-License-Identifier: Apache-2.0
 *
 * deviate.h - random numbers of a distribution, with the same bits everywhere.
 *
 * The C library's log and exp may differ in the last bit from one library to the next, and one seed would then give two
 * runs. These functions use sums, products, quotients, square roots and powers of two alone, which IEEE 754 defines
 * exactly (the build forbids fused products). Their error is some 1e-15, far below anything that is drawn with them.
 */
#pragma once

#include <stdint.h>

double skep_deviate_log(double x); /* x > 0, finite */
double skep_deviate_exp(double x); /* |x| <= 700 */

/* From the normal law with mean 0 and deviation 1; *state as of skep_random_next(). */
double skep_deviate_normal(uint64_t *state);
