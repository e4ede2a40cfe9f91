/* SPDX-License-Identifier: Apache-2.0
 *
 * clock.h - the machine's clocks: one that only rises, for durations, and the date. core/ reads no clock; the time of a real
 * run is that of exec/loop/clock.h.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Since an instant of the machine that stays the same until it restarts. */
uint64_t skep_monotonic_ns(void);
double skep_monotonic_s(void);

/* What all threads of this process have had of processors. */
uint64_t skep_processor_ns(void);

/* ns since 1970, UTC. */
uint64_t skep_date_now(void);
/* In UTC, by the format of strftime(); "" if it does not fit. */
void skep_date_text(uint64_t date_ns, const char *format, char *ret, size_t size);
/* Reads a date in UTC at the beginning of a text, as "2020-03-15T10:07:33.000Z", of the years 1970 to 2200, with any
 * number of digits behind the second. Returns how many bytes it has; 0: there is none. */
size_t skep_date_parse(const char *text, uint64_t *ret_date_ns);
