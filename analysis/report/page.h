/* SPDX-License-Identifier: Apache-2.0
 *
 * page.h - what the parts of a report share. Each part writes sections into the page; one that has nothing to show says why, so
 * that every report has the same sections. Private to analysis/report/.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdio.h>

#include "analysis/plot/plot_presence.h"
#include "analysis/report/report.h"
#include "analysis/summary/sweep_table.h"

struct skep_page {
	struct skep_store *store;
	FILE *out;
	struct skep_plot_run run[SKEP_REPORT_RUNS_MAX];
	double end_s[SKEP_REPORT_RUNS_MAX]; /* of the run, or what it has come to */
	uint32_t runs;
	unsigned pictures; /* so far */
	struct skep_diag *reterr;
};

/* A section with its heading; `id` is what links name. */
void skep_page_open(struct skep_page *page, const char *id, const char *heading);
void skep_page_close(struct skep_page *page);
void skep_page_note(struct skep_page *page, const char *text); /* a paragraph in small letters */

/* Behind the rows of a table: its end, or what there is to say without any; and of how many these are a part, if they are:
 * `these` "These are the first", `what` "events". */
void skep_page_end_table(
	struct skep_page *page, int64_t rows, int64_t all, const char *none, const char *these, const char *what);

/* "run 3, simulated"; returns ret. */
#define SKEP_PAGE_NAME_BYTES 128u
const char *skep_page_run_name(const struct skep_plot_run *run, char ret[SKEP_PAGE_NAME_BYTES]);

/* A picture by gnuplot with a caption, or the reason why there is none. */
void skep_page_picture(struct skep_page *page, const char *kind, const int64_t *run, uint32_t runs,
	const struct skep_plot_choice *choice, const char *caption);

/* The same of all runs of the page. */
void skep_page_picture_of_all(
	struct skep_page *page, const char *kind, const struct skep_plot_choice *choice, const char *caption);

/* Head of the page down to its links to sections: pairs of id and words, up to NULL. */
void skep_page_begin(struct skep_page *page, const char *title, const char *under, const char *const links[]);
void skep_page_end(struct skep_page *page);

/* Commands that do it again: the database, where it is not what a command takes by itself, and the report itself, with --sweep
 * for a page of many runs; `runs` 0: those that it takes by itself. */
void skep_page_database(struct skep_page *page);
void skep_page_command(struct skep_page *page, bool sweep, const int64_t *run, uint32_t runs);

/* Sections of a report of runs. False: the database could not be read, or memory lacks. */
bool skep_page_asked(struct skep_page *page);
bool skep_page_machines(struct skep_page *page);
bool skep_page_traffic(struct skep_page *page);
bool skep_page_churn(struct skep_page *page);
bool skep_page_against(struct skep_page *page);
bool skep_page_repeat(struct skep_page *page);

/* What the slider plays: one object for a run (play.c). The numbers of the dots are those of the workers. */
cJSON *skep_page_frames(struct skep_page *page, const struct skep_plot_run *run, double end_s);

/* html.c: how text gets into a page: whatever a name holds, it stays text. */

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

/* sweep_page.c: the sections of a report of many runs. */
#define SKEP_REPORT_MANY_MAX 256u

/* A row for each choice of values, over its seeds. */
bool skep_page_sweep(struct skep_page *page, const struct skep_sweep_table *table, const int64_t *run, uint32_t runs);

/* A row for each run, with the settings in which it differs from the first. */
bool skep_page_many(struct skep_page *page, const int64_t *run, uint32_t runs);
