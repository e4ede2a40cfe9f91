/* SPDX-License-Identifier: Apache-2.0
 *
 * civil.h - dates as logs write them. Private to the readers of traces and prices.
 */
#ifndef SKEP_TOPOLOGIES_CIVIL_H
#define SKEP_TOPOLOGIES_CIVIL_H

#include "core/skep.h"

/* "2020-03-15T10:07:33.000Z", with any number of digits behind the second, at the beginning of a text: how many bytes it has,
 * and *ret the ns since 1970; 0: there is none. */
size_t skep_civil_time(const char *text, skep_time *ret);

#endif
