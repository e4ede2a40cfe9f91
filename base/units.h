/* SPDX-License-Identifier: Apache-2.0
 *
 * units.h - how many of a small unit of time are in a larger one. Times are ns where they are whole numbers (skep_time), and
 * seconds where they are real ones.
 */
#pragma once

#include <stdint.h>

#define SKEP_SECOND_NS UINT64_C(1000000000)
#define SKEP_NS_PER_S 1e9 /* the same, to multiply and divide real numbers by */
#define SKEP_DAY_S 86400.0
#define SKEP_NS_MOST                                                                                                   \
	UINT64_C(1000000000000000000) /* some 30 years: sums of a few such times stay far below UINT64_MAX */

static inline double skep_seconds(uint64_t ns)
{
	return 1e-9 * (double)ns;
}

/* To whole ns, from 1 to SKEP_NS_MOST. */
static inline uint64_t skep_ns_clamp(double ns)
{
	return ns < 1 ? 1 : ns < (double)SKEP_NS_MOST ? (uint64_t)(ns + 0.5) : SKEP_NS_MOST;
}
