/* SPDX-License-Identifier: Apache-2.0
 *
 * repeat.c - the scenario as each run had read it, the files that it named, and the commands that do the same again.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/report/page.h"
#include "analysis/store/database.h"

/* Of the text of a run: is it that of an earlier run of the page too? */
static bool read_same(struct skep_page *page, uint32_t which, uint32_t *ret_same)
{
	*ret_same = which;
	for (uint32_t i = 0; i < which; i++) {
		sqlite3_stmt *row = skep_store_query(page->store,
			"SELECT a.text = b.text FROM runs AS a, runs AS b WHERE a.id = ?1 AND b.id = ?2",
			page->run[i].id, page->run[which].id, page->reterr);
		bool read = row != NULL && skep_store_row(page->store, row), same = read && sqlite3_column_int(row, 0);
		sqlite3_finalize(row);
		if (!read)
			return false;
		if (same) {
			*ret_same = i;
			return true;
		}
	}
	return true;
}

static bool write_sources(struct skep_page *page, int64_t run)
{
	static const char sql[] = "SELECT path, bytes, printf('%016llx', checksum), text FROM sources WHERE run = ?1"
				  " ORDER BY number";
	sqlite3_stmt *row = skep_store_query(page->store, sql, run, 0, page->reterr);
	while (row != NULL && skep_store_row(page->store, row)) {
		fputs("<details><summary>", page->out);
		skep_html_text(page->out, skep_column_text(row, 0));
		if (sqlite3_column_type(row, 1) != SQLITE_NULL)
			skep_html_printf(page->out, " (%lld bytes, checksum %s)",
				(long long)sqlite3_column_int64(row, 1), skep_column_text(row, 2));
		fputs("</summary>\n", page->out);
		if (sqlite3_column_type(row, 3) != SQLITE_NULL)
			skep_html_element(page->out, "pre", skep_column_text(row, 3));
		else
			skep_page_note(page, "The database does not hold this text.");
		fputs("</details>\n", page->out);
	}
	sqlite3_finalize(row);
	return row != NULL;
}

static bool write_scenario(struct skep_page *page, uint32_t which)
{
	char name[SKEP_PAGE_NAME_BYTES];
	uint32_t same;
	if (!read_same(page, which, &same))
		return false;
	skep_html_element(page->out, "h3", skep_page_run_name(&page->run[which], name));
	if (same != which) {
		fputs("<p>The same text as that of ", page->out);
		skep_html_text(page->out, skep_page_run_name(&page->run[same], name));
		fputs(".</p>\n", page->out);
		return true;
	}
	sqlite3_stmt *row = skep_store_query(
		page->store, "SELECT text, path FROM runs WHERE id = ?1", page->run[which].id, 0, page->reterr);
	if (row != NULL && skep_store_row(page->store, row)) {
		skep_html_element(page->out, "p", skep_column_text(row, 1));
		skep_html_element(page->out, "pre", skep_column_text(row, 0));
	}
	sqlite3_finalize(row);
	return row != NULL && write_sources(page, page->run[which].id);
}

/* ---- commands -------------------------------------------------------------------------------------------------------- */

void skep_page_database(struct skep_page *page)
{
	const char *path = sqlite3_db_filename(skep_store_database(page->store), NULL);
	char *here = getcwd(NULL, 0);
	size_t length = here ? strlen(here) : 0;
	if (path != NULL && length > 1 && strncmp(path, here, length) == 0 && path[length] == '/')
		path += length + 1;
	if (path != NULL && strcmp(path, "skep.db") != 0) {
		fputs(" --db ", page->out);
		skep_html_word(page->out, path);
	}
	free(here);
}

void skep_page_command(struct skep_page *page, bool sweep, const int64_t *run, uint32_t runs)
{
	fprintf(page->out, "skep report%s", sweep ? " --sweep" : "");
	for (uint32_t i = 0; i < runs; i++)
		fprintf(page->out, " %" PRId64, run[i]);
	skep_page_database(page);
	fputs(" -o report.html", page->out);
}

/* What --set changed is in the text that the database has, and the command that made the run is not there. */
static bool write_commands(struct skep_page *page, const struct skep_plot_run *run)
{
	static const char sql[] = "SELECT path, version, digest, continues, first_round FROM runs WHERE id = ?1";
	char name[SKEP_PAGE_NAME_BYTES];
	bool real = strcmp(run->world, "real") == 0;
	sqlite3_stmt *row = skep_store_query(page->store, sql, run->id, 0, page->reterr);
	bool read = row != NULL && skep_store_row(page->store, row);
	skep_html_element(page->out, "h3", skep_page_run_name(run, name));
	if (read) {
		fprintf(page->out, "<pre>skep export scenario %" PRId64 " -o again.yaml", run->id);
		skep_page_database(page);
		fprintf(page->out, "\nskep %s again.yaml --seed ", real ? "run" : "sim");
		skep_html_text(page->out, run->seed);
		fprintf(page->out, "%s%s", real && run->pace ? " --pace" : "", real && run->shape ? " --shape" : "");
		if (real && strcmp(run->device, "cpu") != 0)
			skep_html_printf(page->out, " --device %s", run->device);
		fputs("</pre>\n<p class=\"note\">", page->out);
		skep_html_printf(page->out,
			"With skep %s, and with the scenario's text as above, which has what --set changed; it was read as %s, "
			"beside which it finds files that it names so. %s",
			skep_column_text(row, 1), skep_column_text(row, 0),
			real ? "A real run takes its own time, so that its figures come near these."
			     : "A simulation of the same text, files and code gives the same figures");
		if (!real && skep_column_text(row, 2)[0])
			skep_html_printf(page->out, " and the digest %s.", skep_column_text(row, 2));
		else if (!real)
			fputs(".", page->out);
		if (sqlite3_column_int64(row, 4) > 0)
			skep_html_text(page->out, " It began with a checkpoint of another run.");
		fputs("</p>\n", page->out);
	}
	sqlite3_finalize(row);
	return read;
}

bool skep_page_repeat(struct skep_page *page)
{
	bool ok = true;
	skep_page_open(page, "scenario", "The scenario");
	for (uint32_t i = 0; ok && i < page->runs; i++)
		ok = write_scenario(page, i);
	skep_page_close(page);
	skep_page_open(page, "repeat", "How to repeat it");
	for (uint32_t i = 0; ok && i < page->runs; i++)
		ok = write_commands(page, &page->run[i]);
	int64_t run[SKEP_REPORT_RUNS_MAX];
	for (uint32_t i = 0; i < page->runs; i++)
		run[i] = page->run[i].id;
	fputs("<p>And this page:</p>\n<pre>", page->out);
	skep_page_command(page, false, run, page->runs);
	fputs("</pre>\n", page->out);
	skep_page_close(page);
	return ok;
}
