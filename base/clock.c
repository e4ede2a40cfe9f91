/* SPDX-License-Identifier: Apache-2.0
 *
 * clock.c - see clock.h.
 */
#include "base/clock.h"

#include <string.h>
#include <time.h>

#include "base/units.h"

static uint64_t read_ns(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * SKEP_SECOND_NS + (uint64_t)now.tv_nsec;
}

uint64_t skep_monotonic_ns(void)
{
	return read_ns(CLOCK_MONOTONIC);
}

double skep_monotonic_s(void)
{
	return 1e-9 * (double)skep_monotonic_ns();
}

uint64_t skep_processor_ns(void)
{
	return read_ns(CLOCK_PROCESS_CPUTIME_ID);
}

uint64_t skep_date_now(void)
{
	return read_ns(CLOCK_REALTIME);
}

void skep_date_text(uint64_t date_ns, const char *format, char *ret, size_t size)
{
	time_t seconds = (time_t)(date_ns / SKEP_SECOND_NS);
	struct tm utc;
	ret[0] = '\0';
	if (gmtime_r(&seconds, &utc) && strftime(ret, size, format, &utc) == 0)
		ret[0] = '\0';
}

size_t skep_date_parse(const char *text, uint64_t *ret_date_ns)
{
	enum { LENGTH = 19, YEAR_LEAST = 70, YEAR_MOST = 300 }; /* tm_year counts from 1900 */
	struct tm utc = {0};
	uint64_t fraction = 0, place = SKEP_SECOND_NS;
	const char *end = strptime(text, "%Y-%m-%dT%H:%M:%S", &utc);
	if (!end || end - text != LENGTH || strspn(text, "0123456789-T:") < LENGTH || utc.tm_sec > 60 ||
		utc.tm_year < YEAR_LEAST || utc.tm_year > YEAR_MOST)
		return 0;
	if (*end == '.')
		for (end++; *end >= '0' && *end <= '9'; end++) {
			place /= 10;
			fraction += place * (uint64_t)(*end - '0');
		}
	if (*end != 'Z')
		return 0;
	*ret_date_ns = (uint64_t)timegm(&utc) * SKEP_SECOND_NS + fraction;
	return (size_t)(end + 1 - text);
}
