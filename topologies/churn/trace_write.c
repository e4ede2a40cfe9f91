/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_write.c - writes a trace in skep's own format. The file appears under its name when it is whole, or not at all.
 */
#include "topologies/churn/trace.h"

#include <stdlib.h>
#include <string.h>

#include "base/files/outputs.h"
#include "base/units.h"

struct skep_trace_writer {
	struct skep_outputs outputs; /* the trace alone */
	FILE *file;
};

static void comment(FILE *file, const char *key, const char *text)
{
	fprintf(file, "# %s: ", key);
	for (; *text; text++) {
		if (*text == '\n')
			fputs("\n#   ", file);
		else if ((uint8_t)*text >= 0x20)
			putc(*text, file);
	}
	putc('\n', file);
}

struct skep_trace_writer *skep_trace_writer_create(
	const char *path, const char *source, const char *licence, struct skep_diag *reterr)
{
	struct skep_trace_writer *w = calloc(1, sizeof *w);
	if (!w) {
		skep_diag_set(reterr, path, 0, 0, NULL, "cannot be written: not enough memory");
		return NULL;
	}
	w->outputs.diag = reterr;
	w->file = skep_outputs_begin(&w->outputs, path);
	if (!w->file) {
		skep_trace_writer_destroy(w);
		return NULL;
	}
	fputs("# skep trace: who is there when. A row is seconds,join|leave|refused|end,name,gpu,zone\n"
	      "# unit: seconds since the trace began\n" SKEP_TRACE_WRITTEN "\n",
		w->file);
	comment(w->file, "source", source);
	comment(w->file, "licence", licence);
	return w;
}

/* Seconds with as many digits as they need. */
static void write_seconds(FILE *file, skep_time at_ns)
{
	char text[32];
	int n = snprintf(text, sizeof text, "%llu.%09llu", (unsigned long long)(at_ns / SKEP_SECOND_NS),
		(unsigned long long)(at_ns % SKEP_SECOND_NS));
	while (text[n - 1] == '0')
		n--;
	n -= text[n - 1] == '.';
	fwrite(text, 1, (size_t)n, file);
}

bool skep_trace_write(void *writer, const struct skep_trace_event *event)
{
	static const char *const word[] = {",join,", ",leave,", ",refused,", ",end"};
	struct skep_trace_writer *w = writer;
	write_seconds(w->file, event->at_ns);
	fputs(word[event->kind], w->file);
	fputs(event->name, w->file);
	if (event->kind != SKEP_TRACE_LEAVE && (event->gpu[0] || event->zone[0])) {
		putc(',', w->file);
		fputs(event->gpu, w->file);
	}
	if (event->kind != SKEP_TRACE_LEAVE && event->zone[0]) {
		putc(',', w->file);
		fputs(event->zone, w->file);
	}
	putc('\n', w->file);
	return true;
}

bool skep_trace_writer_close(struct skep_trace_writer *writer)
{
	bool ok = skep_outputs_commit(&writer->outputs);
	free(writer);
	return ok;
}

void skep_trace_writer_destroy(struct skep_trace_writer *writer)
{
	if (writer)
		skep_outputs_abandon(&writer->outputs);
	free(writer);
}
