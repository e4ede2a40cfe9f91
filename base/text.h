/* SPDX-License-Identifier: Apache-2.0
 *
 * text.h - what the files of the reader share about plain text: UTF-8, lines, numbers, near words. Other folders use
 * skep_text_nearest(), and what of UTF-8 they need to show a name.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the first character (1 to 4) and the character; 0 when it is not well-formed UTF-8 or left is 0. */
uint32_t skep_utf8_next(const char *s, size_t left, uint32_t *ret_code);

/* What may stand in a line of text: no control character but the tab, no line break of any kind. */
bool skep_utf8_printable(uint32_t code);

/* Marks and overrides of the direction of writing, behind which a name could hide what it is. */
bool skep_utf8_turns(uint32_t code);

/* Text of strangers as it is shown: "?" for what is no printable UTF-8 and a blank for a tab, so that it neither drives
 * the terminal nor begins a line. The first character of [s, s + left), left > 0: returns its bytes, and writes at most
 * 4 to ret. */
uint32_t skep_text_shown(const char *s, size_t left, char ret[4], uint32_t *ret_bytes);
/* Copies at most `characters` characters of [s, s + left), as many as fit with the final 0; returns how many. */
uint32_t skep_text_show(char *ret, size_t size, const char *s, size_t left, uint32_t characters);

/* Start of line `line` (from 1) of a 0-terminated text; lines end in LF, CR or CR LF. "" when there is none. */
const char *skep_text_line(const char *text, uint32_t line);

bool skep_text_ends(const char *text, const char *with);

/* The decimal number at the start of the text: sign, digits without leading zeros, fraction, exponent; no hexadecimal,
 * no nan, no inf. False when there is none. It may overflow to infinity. */
bool skep_number_parse(const char *text, const char **ret_end, double *ret);

/* A count as people write large ones: "300M", "1B", "1T", "64k" or "5e8". Above 0. */
bool skep_count_parse(const char *text, double *ret);

/* The word nearest to `word`, near enough to be what was meant; else NULL. */
const char *skep_text_nearest(const char *word, const char *const words[], uint32_t count);
