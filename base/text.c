/* SPDX-License-Identifier: Apache-2.0
 *
 * text.c - UTF-8, lines, numbers and near words. Works on any bytes; keeps no state.
 */
#include "base/text.h"
#include "base/reader.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WORD_MAX 48u /* longer words have no near ones */

uint32_t skep_utf8_next(const char *s, size_t left, uint32_t *ret_code)
{
	static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000}; /* an overlong form is not UTF-8 */
	if (left == 0)
		return 0;
	uint8_t first = (uint8_t)s[0];
	uint32_t length = first < 0x80   ? 1
	                  : first < 0xc0 ? 0
	                  : first < 0xe0 ? 2
	                  : first < 0xf0 ? 3
	                  : first < 0xf8 ? 4
	                                 : 0;
	if (length == 0 || length > left)
		return 0;
	uint32_t code = length == 1 ? first : first & (0x7fu >> length);
	for (uint32_t i = 1; i < length; i++) {
		if (((uint8_t)s[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | ((uint8_t)s[i] & 0x3fu);
	}
	if (code < least[length] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
		return 0;
	*ret_code = code;
	return length;
}

bool skep_text_is_utf8(const char *text, size_t size)
{
	uint32_t code, length = 1;
	for (size_t at = 0; at < size && length > 0; at += length)
		length = skep_utf8_next(text + at, size - at, &code);
	return length > 0;
}

bool skep_utf8_turns(uint32_t code)
{
	return code == 0x200e || code == 0x200f || code == 0x061c || (code >= 0x202a && code <= 0x202e) ||
	       (code >= 0x2066 && code <= 0x2069);
}

bool skep_utf8_printable(uint32_t code)
{
	if (code < 0x20)
		return code == '\t';
	bool breaks = code == 0x2028 || code == 0x2029;
	bool directs = (code >= 0x202a && code <= 0x202e) ||
	               (code >= 0x2066 && code <= 0x2069); /* text that reorders itself */
	return !(code >= 0x7f && code < 0xa0) && !breaks && !directs && code != 0xfffe && code != 0xffff;
}

uint32_t skep_text_shown(const char *s, size_t left, char ret[4], uint32_t *ret_bytes)
{
	uint32_t code, length = skep_utf8_next(s, left, &code);
	bool plain = length > 0 && skep_utf8_printable(code) && code != '\t';
	*ret_bytes = plain ? length : 1;
	memcpy(ret, plain ? s : length > 0 && code == '\t' ? " " : "?", *ret_bytes);
	return length > 0 ? length : 1;
}

uint32_t skep_text_show(char *ret, size_t size, const char *s, size_t left, uint32_t characters)
{
	size_t used = 0;
	uint32_t count = 0;
	while (left > 0 && count < characters) {
		char c[4];
		uint32_t bytes, length = skep_text_shown(s, left, c, &bytes);
		if (used + bytes >= size)
			break;
		memcpy(ret + used, c, bytes);
		used += bytes;
		s += length;
		left -= length;
		count++;
	}
	ret[used] = 0;
	return count;
}

const char *skep_text_line(const char *text, uint32_t line)
{
	for (; line > 1 && *text; line--) {
		text += strcspn(text, "\r\n");
		if (*text)
			text += text[0] == '\r' && text[1] == '\n' ? 2 : 1;
	}
	return text;
}

static const char *digits(const char *s)
{
	while (*s >= '0' && *s <= '9')
		s++;
	return s;
}

bool skep_text_ends(const char *text, const char *with)
{
	size_t length = strlen(text), n = strlen(with);
	return length >= n && strcmp(text + length - n, with) == 0;
}

bool skep_number_parse(const char *text, const char **ret_end, double *ret)
{
	const char *whole = text + (*text == '-' || *text == '+');
	const char *end = digits(whole);
	if (end - whole > 1 && *whole == '0')
		return false;
	bool any = end > whole;
	if (*end == '.' && digits(end + 1) > end + 1) {
		end = digits(end + 1);
		any = true;
	}
	if (!any)
		return false;
	if (*end == 'e' || *end == 'E') {
		const char *power = end + 1 + (end[1] == '-' || end[1] == '+');
		if (digits(power) > power)
			end = digits(power);
	}
	/* strtod knows more forms (0x10), all of which go on behind `end` and are refused there by the caller. */
	*ret = strtod(text, NULL);
	*ret_end = end;
	return true;
}

/* Edit distance with swaps of neighbours (optimal string alignment). Both words shorter than WORD_MAX. */
static uint32_t distance(const char *a, const char *b)
{
	size_t m = strlen(a), n = strlen(b);
	uint32_t d[WORD_MAX][WORD_MAX];
	for (uint32_t i = 0; i <= m; i++) {
		for (uint32_t j = 0; j <= n; j++) {
			if (i == 0 || j == 0) {
				d[i][j] = i + j;
				continue;
			}
			uint32_t change = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
			uint32_t one = (d[i - 1][j] < d[i][j - 1] ? d[i - 1][j] : d[i][j - 1]) + 1;
			d[i][j] = change < one ? change : one;
			bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
			if (swapped && d[i - 2][j - 2] + 1 < d[i][j])
				d[i][j] = d[i - 2][j - 2] + 1;
		}
	}
	return d[m][n];
}

bool skep_count_parse(const char *text, double *ret)
{
	static const struct {
		char letter;
		double factor;
	} suffix[] = {{'k', 1e3}, {'m', 1e6}, {'b', 1e9}, {'g', 1e9}, {'t', 1e12}}; /* a count has no thousandths */
	const char *end;
	if (!skep_number_parse(text, &end, ret))
		return false;
	for (size_t i = 0; i < sizeof suffix / sizeof suffix[0]; i++)
		if (tolower((unsigned char)*end) == suffix[i].letter) {
			*ret *= suffix[i].factor;
			end++;
			break;
		}
	return *end == '\0' && isfinite(*ret) && *ret > 0;
}

const char *skep_text_nearest(const char *word, const char *const words[], uint32_t count)
{
	const char *nearest = NULL;
	size_t length = strnlen(word, WORD_MAX);
	uint32_t best =
		length < 7 ? 2 : (uint32_t)(length + 1) / 4 + 1; /* one more than the most that counts as near */
	for (uint32_t i = 0; i < count && length < WORD_MAX; i++) {
		if (strnlen(words[i], WORD_MAX) == WORD_MAX)
			continue;
		if (strcasecmp(word, words[i]) == 0)
			return words[i];
		uint32_t d = distance(word, words[i]);
		if (d < best) {
			best = d;
			nearest = words[i];
		}
	}
	return nearest;
}
