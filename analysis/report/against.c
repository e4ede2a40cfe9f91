/* SPDX-License-Identifier: Apache-2.0
 *
 * against.c - prediction against reality: what `skep compare` says of two runs of the page, as tables.
 *
 * The two are the first simulated and the first real run; if all are of one world the first two.
 */
#include <math.h>
#include <string.h>

#include "analysis/report/page.h"
#include "analysis/summary/compare.h"
#include "base/layout.h"

static const char *text_of(const cJSON *object, const char *key)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(object, key));
	return text != NULL ? text : "";
}

static double number_of(const cJSON *object, const char *key)
{
	const cJSON *number = cJSON_GetObjectItem(object, key);
	return cJSON_IsNumber(number) ? number->valuedouble : NAN;
}

static void write_amount(FILE *out, double value, const char *unit)
{
	char text[SKEP_TEXT_BYTES];
	fputs("<td class=\"number\">", out);
	if (isnan(value))
		fputs("-", out);
	else if (strcmp(unit, "s") == 0)
		fputs(value > 0 ? skep_time_text(value, text) : "0", out);
	else if (strcmp(unit, "B") == 0)
		fputs(skep_bytes_text(value, text), out);
	else
		fprintf(out, value == floor(value) && fabs(value) < 1e9 ? "%.0f" : "%.4g", value);
	bool said = strcmp(unit, "s") == 0 || strcmp(unit, "B") == 0 || unit[0] == '\0' || isnan(value);
	fprintf(out, "%s%s</td>", said ? "" : " ", said ? "" : unit);
}

static void write_head(FILE *out, const cJSON *all, const char *first_column)
{
	static const char *const side[] = {"first", "second"};
	fputs("<div class=\"wide\"><table><thead><tr>", out);
	skep_html_element(out, "th", first_column);
	for (int k = 0; k < 2; k++) {
		const cJSON *run = cJSON_GetObjectItem(all, side[k]);
		fputs("<th class=\"number\">", out);
		skep_html_printf(out, "run %.0f, %s", number_of(run, "run_id"), text_of(run, "world"));
		fputs("</th>", out);
	}
	fputs("<th class=\"number\">difference</th></tr></thead><tbody>\n", out);
}

static void write_metrics(FILE *out, const cJSON *all)
{
	const cJSON *metric;
	write_head(out, all, "metric");
	cJSON_ArrayForEach(metric, cJSON_GetObjectItem(all, "metrics"))
	{
		double first = number_of(metric, "first"), second = number_of(metric, "second");
		double percent = number_of(metric, "difference_percent");
		if (isnan(first) && isnan(second))
			continue;
		fputs("<tr>", out);
		skep_html_element(out, "td", text_of(metric, "metric"));
		write_amount(out, first, text_of(metric, "unit"));
		write_amount(out, second, text_of(metric, "unit"));
		if (first == second)
			fputs("<td class=\"number\">=</td></tr>\n", out);
		else if (isnan(percent))
			fputs("<td class=\"number\">-</td></tr>\n", out);
		else
			fprintf(out, "<td class=\"number\">%+.1f %%</td></tr>\n", percent);
	}
	fputs("</tbody></table></div>\n", out);
}

static void write_parts(FILE *out, const cJSON *all)
{
	const cJSON *part;
	const char *largest = text_of(all, "largest_part");
	if (cJSON_GetArraySize(cJSON_GetObjectItem(all, "time_parts")) == 0)
		return;
	skep_html_element(out, "h3", "Where the time of a mean worker goes");
	write_head(out, all, "part");
	cJSON_ArrayForEach(part, cJSON_GetObjectItem(all, "time_parts"))
	{
		char text[SKEP_TEXT_BYTES];
		double difference_s = number_of(part, "difference_s");
		bool most = largest[0] && strcmp(largest, text_of(part, "part")) == 0;
		fprintf(out, "<tr%s>", most ? " class=\"best\"" : "");
		skep_html_element(out, "td", text_of(part, "part"));
		write_amount(out, number_of(part, "first_s"), "s");
		write_amount(out, number_of(part, "second_s"), "s");
		fprintf(out, "<td class=\"number\">%s%s</td></tr>\n", difference_s < 0 ? "\xe2\x88\x92" : "+",
			difference_s != 0 ? skep_time_text(fabs(difference_s), text) : "0");
	}
	fputs("</tbody></table></div>\n<p>", out);
	if (largest[0]) {
		skep_html_printf(out, "Most of the difference in time is in: %s.", largest);
		if (text_of(all, "measure_next")[0])
			skep_html_printf(out, " What to measure next: %s.", text_of(all, "measure_next"));
	} else {
		skep_html_text(out, "The times are within 1 % of each other: nothing is left to measure.");
	}
	fputs("</p>\n", out);
}

/* Settings in which the two differ explain more than any metric. */
static void write_settings(FILE *out, const cJSON *all)
{
	const cJSON *setting, *settings = cJSON_GetObjectItem(all, "scenario_differences");
	if (cJSON_IsTrue(cJSON_GetObjectItem(all, "same_scenario_text")))
		return;
	fputs("<p class=\"warning\">The scenarios of the two runs differ", out);
	if (cJSON_GetArraySize(settings) == 0) {
		fputs(".</p>\n", out);
		return;
	}
	fputs(" in these settings:</p>\n<div class=\"wide\"><table><thead><tr><th>setting</th><th>first</th><th>second</th>"
	      "</tr></thead><tbody>\n",
		out);
	cJSON_ArrayForEach(setting, settings)
	{
		fputs("<tr>", out);
		skep_html_element(out, "td", text_of(setting, "key"));
		skep_html_element(out, "td", text_of(setting, "first")[0] ? text_of(setting, "first") : "not set");
		skep_html_element(out, "td", text_of(setting, "second")[0] ? text_of(setting, "second") : "not set");
		fputs("</tr>\n", out);
	}
	fputs("</tbody></table></div>\n", out);
}

static int64_t first_of(const struct skep_page *page, const char *world)
{
	for (uint32_t i = 0; i < page->runs; i++)
		if (strcmp(page->run[i].world, world) == 0)
			return page->run[i].id;
	return 0;
}

bool skep_page_against(struct skep_page *page)
{
	int64_t sim = first_of(page, "sim"), real = first_of(page, "real");
	bool both = sim != 0 && real != 0;
	cJSON *all = NULL;
	skep_page_open(page, "prediction", "Prediction and reality");
	if (page->runs < 2) {
		skep_page_note(
			page, "This report has one run. Simulate and run the same scenario, and name both runs.");
	} else {
		if (!both)
			skep_page_note(page, "All runs are of one world; these are the first two.");
		all = skep_compare_json(
			page->store, both ? sim : page->run[0].id, both ? real : page->run[1].id, page->reterr);
		if (all != NULL) {
			write_settings(page->out, all);
			write_metrics(page->out, all);
			write_parts(page->out, all);
		}
	}
	skep_page_close(page);
	cJSON_Delete(all);
	return page->runs < 2 || all != NULL;
}
