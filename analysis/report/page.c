/* SPDX-License-Identifier: Apache-2.0
 *
 * page.c - the frame of a page: head, style, script, sections, pictures.
 */
#include "analysis/report/page.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "version.h"

static const char *const STYLE[] = {
#include "page.css.inc"
};
static const char *const SCRIPT[] = {
#include "play.js.inc"
};

static void write_lines(FILE *out, const char *const *line, size_t lines)
{
	for (size_t i = 0; i < lines; i++)
		fputs(line[i], out);
}

void skep_page_open(struct skep_page *page, const char *id, const char *heading)
{
	fprintf(page->out, "<section id=\"%s\">\n", id);
	skep_html_element(page->out, "h2", heading);
}

void skep_page_close(struct skep_page *page)
{
	fputs("</section>\n", page->out);
}

void skep_page_note(struct skep_page *page, const char *text)
{
	fputs("<p class=\"note\">", page->out);
	skep_html_text(page->out, text);
	fputs("</p>\n", page->out);
}

void skep_page_end_table(
	struct skep_page *page, int64_t rows, int64_t all, const char *none, const char *these, const char *what)
{
	if (rows > 0)
		fputs("</tbody></table></div>\n", page->out);
	else
		skep_page_note(page, none);
	if (all > rows) {
		fputs("<p class=\"note\">", page->out);
		skep_html_printf(page->out, "%s %lld of %lld %s.", these, (long long)rows, (long long)all, what);
		fputs("</p>\n", page->out);
	}
}

const char *skep_page_run_name(const struct skep_plot_run *run, char ret[SKEP_PAGE_NAME_BYTES])
{
	char world[SKEP_PAGE_NAME_BYTES / 2];
	skep_plot_world(run, world, sizeof world);
	snprintf(ret, SKEP_PAGE_NAME_BYTES, "run %lld, %s", (long long)run->id, world);
	return ret;
}

void skep_page_picture(struct skep_page *page, const char *kind, const int64_t *run, uint32_t runs,
	const struct skep_plot_choice *choice, const char *caption)
{
	static const struct skep_plot_choice usual;
	struct skep_diag why = skep_diag_beside(page->reterr);
	char *svg = NULL;
	fputs("<figure>\n", page->out);
	if (skep_plot_inside(page->store, kind, run, runs, choice ? choice : &usual, &svg, &why)) {
		fputs("<div class=\"plot\" tabindex=\"0\">", page->out);
		skep_html_svg(page->out, svg, ++page->pictures, caption);
		fputs("</div>\n", page->out);
	} else {
		fputs("<p class=\"lacks\">No picture: ", page->out);
		skep_html_text(page->out, why.message);
		fputs("</p>\n", page->out);
	}
	skep_html_element(page->out, "figcaption", caption);
	fputs("</figure>\n", page->out);
	free(svg);
}

void skep_page_picture_of_all(
	struct skep_page *page, const char *kind, const struct skep_plot_choice *choice, const char *caption)
{
	int64_t run[SKEP_REPORT_RUNS_MAX];
	for (uint32_t i = 0; i < page->runs; i++)
		run[i] = page->run[i].id;
	skep_page_picture(page, kind, run, page->runs, choice, caption);
}

void skep_page_begin(struct skep_page *page, const char *title, const char *under, const char *const links[])
{
	FILE *out = page->out;
	fputs(SKEP_REPORT_HEAD
		"<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		"<meta name=\"color-scheme\" content=\"light dark\">\n"
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
		"script-src 'unsafe-inline'; img-src data:\">\n",
		out);
	skep_html_element(out, "title", title);
	fputs("<style>\n", out);
	write_lines(out, STYLE, sizeof STYLE / sizeof STYLE[0]);
	fputs("</style>\n</head>\n<body>\n<header>\n", out);
	skep_html_element(out, "h1", title);
	fputs("<p class=\"under\">", out);
	skep_html_text(out, under);
	fputs("</p>\n<nav>\n", out);
	for (size_t i = 0; links[i] != NULL; i += 2)
		fprintf(out, "<a href=\"#%s\">%s</a>\n", links[i], links[i + 1]);
	fputs("</nav>\n</header>\n<main>\n", out);
}

void skep_page_end(struct skep_page *page)
{
	char when[32] = "";
	time_t now = time(NULL);
	struct tm utc;
	if (gmtime_r(&now, &utc) != NULL)
		strftime(when, sizeof when, "%Y-%m-%d %H:%M UTC", &utc);
	fprintf(page->out, "</main>\n<footer>Written by skep %s on %s.</footer>\n<script>\n", SKEP_VERSION, when);
	write_lines(page->out, SCRIPT, sizeof SCRIPT / sizeof SCRIPT[0]);
	fputs("</script>\n</body>\n</html>\n", page->out);
}
