/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_write.c - writes a trace in our format. What is kept true: under its name a file is complete; until then it has a
 * name that nobody else has, NAME. and six letters, and goes away when the writing is given up.
 */
#include "topologies/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct skep_trace_writer {
	FILE *file;
	char *path, *part; /* part: NULL unless there is such a file */
	struct skep_diag *diag;
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

static void forget_part(struct skep_trace_writer *w)
{
	free(w->part);
	w->part = NULL;
}

/* A file of its own for each writer, with the rights that any new file gets. */
static FILE *open_part(struct skep_trace_writer *w)
{
	mode_t mask = umask(0);
	umask(mask);
	int fd = mkostemp(w->part, O_CLOEXEC);
	if (fd < 0) {
		forget_part(w);
		return NULL;
	}
	FILE *file = fchmod(fd, 0666 & ~mask) == 0 ? fdopen(fd, "w") : NULL;
	if (!file)
		close(fd);
	return file;
}

struct skep_trace_writer *skep_trace_writer_create(
	const char *path, const char *source, const char *licence, struct skep_diag *reterr)
{
	struct skep_trace_writer *w = calloc(1, sizeof *w);
	if (w && (w->path = strdup(path)) && asprintf(&w->part, "%s.XXXXXX", path) < 0)
		w->part = NULL; /* asprintf leaves it undefined */
	bool named = w && w->path && w->part;
	if (named)
		w->file = open_part(w);
	if (!named || !w->file) {
		skep_diag_set(reterr, path, 0, 0, NULL, "cannot be written: %s",
			named ? strerror(errno) : "not enough memory");
		skep_trace_writer_destroy(w);
		return NULL;
	}
	w->diag = reterr;
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
	int n = snprintf(text, sizeof text, "%llu.%09llu", (unsigned long long)(at_ns / 1000000000),
		(unsigned long long)(at_ns % 1000000000));
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
	bool ok = ferror(writer->file) == 0;
	ok = fclose(writer->file) == 0 && ok;
	writer->file = NULL;
	ok = ok && rename(writer->part, writer->path) == 0;
	if (ok)
		forget_part(writer);
	else
		skep_diag_set(writer->diag, writer->path, 0, 0, NULL, "cannot be written: %s", strerror(errno));
	skep_trace_writer_destroy(writer);
	return ok;
}

void skep_trace_writer_destroy(struct skep_trace_writer *writer)
{
	if (!writer)
		return;
	if (writer->file)
		fclose(writer->file);
	if (writer->part)
		unlink(writer->part);
	free(writer->part);
	free(writer->path);
	free(writer);
}
