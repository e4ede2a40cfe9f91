/* SPDX-License-Identifier: Apache-2.0
 *
 * order.h - numbers in rising order: the comparison for qsort(), and what lies between two of them.
 */
#pragma once

#include <math.h>
#include <stddef.h>

static inline int skep_order_reals(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Which `share` of the sorted values does not exceed, on the line between the two nearest; NAN: there are no values. */
static inline double skep_order_quantile(const double *sorted, size_t count, double share)
{
	if (count == 0)
		return NAN;
	double at = share * (double)(count - 1);
	size_t low = (size_t)at, high = low + 1 < count ? low + 1 : low;
	return sorted[low] + (at - (double)low) * (sorted[high] - sorted[low]);
}
