/* SPDX-License-Identifier: Apache-2.0
 *
 * civil.c - see civil.h.
 */
#include "topologies/civil.h"

/* Days since 1970 of the civil calendar, for years from 1970; months are counted from March so that leap days end a year. */
static int64_t days(int64_t year, int64_t month, int64_t day)
{
	int64_t y = month > 2 ? year : year - 1, m = month > 2 ? month - 3 : month + 9;
	return 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 719469;
}

static bool digits(const char *text, uint32_t count, int64_t low, int64_t high, int64_t *ret)
{
	*ret = 0;
	for (uint32_t i = 0; i < count; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		*ret = 10 * *ret + (text[i] - '0');
	}
	return *ret >= low && *ret <= high;
}

static bool punctuation(const char *text, const char *pattern)
{
	for (; *pattern; pattern++, text++)
		if (*text == 0 || (*pattern != '0' && *pattern != *text))
			return false;
	return true;
}

size_t skep_civil_time(const char *t, skep_time *ret)
{
	int64_t year, month, day, hour, minute, second, fraction = 0, scale = 1000000000;
	bool sound = punctuation(t, "0000-00-00T00:00:00") && digits(t, 4, 1970, 2200, &year) &&
	             digits(t + 5, 2, 1, 12, &month) && digits(t + 8, 2, 1, 31, &day) &&
	             digits(t + 11, 2, 0, 23, &hour) && digits(t + 14, 2, 0, 59, &minute) &&
	             digits(t + 17, 2, 0, 60, &second);
	const char *c = sound ? t + 19 : t;
	if (sound && *c == '.')
		for (c++; *c >= '0' && *c <= '9'; c++) {
			scale /= 10;
			fraction += scale * (*c - '0');
		}
	if (!sound || *c != 'Z')
		return 0;
	int64_t seconds = ((days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
	*ret = (skep_time)(seconds * 1000000000 + fraction);
	return (size_t)(c + 1 - t);
}
