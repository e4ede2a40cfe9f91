/* SPDX-License-Identifier: Apache-2.0
 *
 * html.h - how text gets into a page: whatever a name holds, it stays text. Private to analysis/report/.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdio.h>

/* Text between tags or inside a quoted attribute. A control character becomes its picture (U+2400 and on), one that turns the
 * direction of writing and what is no UTF-8 the replacement character; tabs and line ends stay. */
void skep_html_text(FILE *out, const char *text);

/* <tag>text</tag> */
void skep_html_element(FILE *out, const char *tag, const char *text);

/* What is formatted, as text. */
void skep_html_printf(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A word of a command, for a shell: what is more than letters, digits and a few marks stands in single quotes. */
void skep_html_word(FILE *out, const char *word);

/* Data for the page's script, which looks for it under the class `name`; deletes it. No value can end the element. */
void skep_html_data(FILE *out, const char *name, cJSON *root);

/* An SVG file as gnuplot writes it, without what stands before its root element, and with identifiers of its own, for several
 * share a page: `number` tells them apart. `title`: what it is called where a reader cannot see it. */
void skep_html_svg(FILE *out, const char *svg, unsigned number, const char *title);
