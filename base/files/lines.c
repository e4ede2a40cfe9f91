/* SPDX-License-Identifier: Apache-2.0
 *
 * lines.c - reads a text file line by line and takes cells and numbers out of a line.
 *
 * What is kept true: memory is one read buffer, larger only while one line needs it and never beyond the limit of a
 * line; a line that was handed out holds no zero byte; an error stands at the byte that is wrong.
 */
#include "base/files/lines.h"
#include "base/files/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_BYTES (256u << 10)

static void fail_file(struct skep_lines *l, const char *what)
{
	skep_diag_set(l->diag, l->path, 0, 0, NULL, "cannot be read: %s", what);
}

static bool is_file(struct skep_lines *l)
{
	struct stat st;
	if (fstat(l->fd, &st) != 0)
		fail_file(l, strerror(errno));
	else if (S_ISDIR(st.st_mode))
		fail_file(l, "it is a directory");
	else if (!S_ISREG(st.st_mode))
		fail_file(l, "it is not a regular file");
	return !l->diag->set;
}

bool skep_lines_open(struct skep_lines *lines, const char *path, size_t limit, struct skep_diag *reterr)
{
	*lines = (struct skep_lines){.path = path, .diag = reterr, .fd = -1, .limit = limit, .text = ""};
	if (reterr->set)
		return false;
	lines->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (lines->fd < 0) {
		skep_diag_set(reterr, path, 0, 0, NULL, "cannot be opened: %s", strerror(errno));
		return false;
	}
	skep_files_note(reterr->files, path, true);
	lines->room = READ_BYTES;
	lines->buffer = malloc(lines->room);
	if (!lines->buffer)
		fail_file(lines, "not enough memory");
	if (!reterr->set && is_file(lines))
		return true;
	skep_lines_close(lines);
	return false;
}

void skep_lines_close(struct skep_lines *lines)
{
	if (lines->fd >= 0)
		close(lines->fd);
	free(lines->buffer);
	lines->fd = -1;
	lines->buffer = NULL;
	lines->text = "";
}

void skep_lines_rewind(struct skep_lines *lines)
{
	if (lseek(lines->fd, 0, SEEK_SET) < 0)
		fail_file(lines, strerror(errno));
	lines->begin = lines->end = lines->length = 0;
	lines->bytes = 0;
	lines->line = 0;
	lines->at_end = false;
	lines->text = "";
}

/* Moves what is left to the front and reads behind it; one byte stays free for the final 0. */
static bool refill(struct skep_lines *l)
{
	memmove(l->buffer, l->buffer + l->begin, l->end - l->begin);
	l->end -= l->begin;
	l->begin = 0;
	if (l->end + 1 >= l->room) {
		char *more = realloc(l->buffer, 2 * l->room);
		if (!more) {
			fail_file(l, "not enough memory");
			return false;
		}
		l->buffer = more;
		l->room *= 2;
	}
	ssize_t got;
	do
		got = read(l->fd, l->buffer + l->end, l->room - l->end - 1);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		fail_file(l, strerror(errno));
	else if (got == 0)
		l->at_end = true;
	else
		l->end += (size_t)got;
	return got >= 0;
}

static void skip_mark(struct skep_lines *l)
{
	if (l->end - l->begin >= 3 && memcmp(l->buffer + l->begin, "\xef\xbb\xbf", 3) == 0)
		l->begin += 3;
}

/* The first line break at or after `from`: where it begins, and its length; 0: there is none before `end`. */
static size_t find_break(const char **from, const char *end)
{
	const char *c = *from;
	while (c < end && *c != '\n' && *c != '\r')
		c++;
	*from = c;
	if (c == end || *c == '\n')
		return c < end;
	return c + 1 == end ? 0 : c[1] == '\n' ? 2 : 1; /* what follows a CR at the end is not read yet */
}

/* Lengths of the line that starts at begin and of its break; at the end of the file the whole rest. False: nothing is left, or an
 * error. */
static bool find_line(struct skep_lines *l, size_t *ret, size_t *ret_break)
{
	size_t seen = 0;
	for (;;) {
		if (l->line == 0 && seen == 0)
			skip_mark(l);
		const char *from = l->buffer + l->begin, *stop = from + seen;
		*ret_break = find_break(&stop, l->buffer + l->end);
		*ret = (size_t)(stop - from);
		if (*ret_break > 0 || *ret > l->limit)
			return true;
		if (l->at_end) {
			*ret_break = l->end - l->begin - *ret; /* a CR, or nothing */
			return *ret + *ret_break > 0;
		}
		seen = l->line == 0 ? 0 : *ret; /* the mark at the start may be there in part only */
		if (!refill(l))
			return false;
	}
}

bool skep_lines_next(struct skep_lines *lines)
{
	size_t length, line_break;
	if (lines->diag->set || !find_line(lines, &length, &line_break))
		return false;
	char *text = lines->buffer + lines->begin;
	size_t used = length + line_break;
	bool overlong = length > lines->limit;
	if (overlong)
		length = lines->limit;
	text[length] = 0;
	lines->begin += used;
	lines->bytes += used;
	lines->line++;
	lines->text = text;
	lines->length = length;
	const char *zero = memchr(text, 0, length);
	if (zero)
		skep_lines_fail(lines, zero, "is not text: a zero byte (a binary file, or text that is not UTF-8)");
	else if (overlong)
		skep_lines_fail(lines, text + length, "the line is longer than %zu bytes", lines->limit);
	return !lines->diag->set;
}

bool skep_lines_next_row(struct skep_lines *lines)
{
	while (skep_lines_next(lines)) {
		char first = lines->text[strspn(lines->text, " \t")];
		if (first != 0 && first != '#')
			return true;
	}
	return false;
}

void skep_lines_fail(struct skep_lines *lines, const char *at, const char *format, ...)
{
	char message[512];
	uint32_t column = 1;
	va_list args;
	va_start(args, format);
	vsnprintf(message, sizeof message, format, args);
	va_end(args);
	for (const char *c = lines->text; c < at; c++)
		column += ((uint8_t)*c & 0xc0) != 0x80;
	skep_diag_set(lines->diag, lines->path, lines->line, column, lines->text, "%s", message);
}

/* ---- cells ------------------------------------------------------------------------------------------------------- */

static bool blank(char c)
{
	return c == ' ' || c == '\t';
}

static struct skep_cell trimmed(const char *from, const char *to)
{
	while (from < to && blank(*from))
		from++;
	while (from < to && blank(to[-1]))
		to--;
	return (struct skep_cell){from, (size_t)(to - from)};
}

uint32_t skep_lines_cells(const struct skep_lines *lines, struct skep_cell *ret, uint32_t most)
{
	const char *from = lines->text, *end = lines->text + lines->length;
	uint32_t count = 0;
	for (;;) {
		const char *comma = memchr(from, ',', (size_t)(end - from));
		if (count < most)
			ret[count] = trimmed(from, comma ? comma : end);
		count++;
		if (!comma)
			return count;
		from = comma + 1;
	}
}

bool skep_lines_columns(
	const struct skep_lines *lines, const char *const *name, uint32_t columns, uint32_t *ret, uint32_t *ret_missing)
{
	struct skep_cell cell[SKEP_COLUMNS_MAX];
	uint32_t cells = skep_lines_cells(lines, cell, SKEP_COLUMNS_MAX);
	cells = cells < SKEP_COLUMNS_MAX ? cells : SKEP_COLUMNS_MAX;
	for (uint32_t i = 0; i < columns; i++) {
		for (ret[i] = 0; ret[i] < cells && !skep_cell_is(cell[ret[i]], name[i]);)
			ret[i]++;
		*ret_missing = i;
		if (ret[i] == cells)
			return false;
	}
	return true;
}

bool skep_lines_row_cells(struct skep_lines *lines, const uint32_t *at, uint32_t columns, struct skep_cell *ret)
{
	struct skep_cell cell[SKEP_COLUMNS_MAX];
	uint32_t cells = skep_lines_cells(lines, cell, SKEP_COLUMNS_MAX);
	for (uint32_t i = 0; i < columns; i++) {
		if (at[i] >= cells) {
			skep_lines_fail(lines, lines->text + lines->length, "%u cells in the row: too few", cells);
			return false;
		}
		ret[i] = cell[at[i]];
	}
	return true;
}

bool skep_cell_is(struct skep_cell cell, const char *word)
{
	return strlen(word) == cell.length && strncasecmp(cell.at, word, cell.length) == 0;
}

bool skep_cell_copy(struct skep_lines *lines, struct skep_cell cell, const char *what, char *ret, size_t size)
{
	if (cell.length >= size) {
		skep_lines_fail(lines, cell.at, "%s of %zu bytes: at most %zu are taken", what, cell.length, size - 1);
		return false;
	}
	for (size_t i = 0; i < cell.length; i++)
		if ((uint8_t)cell.at[i] < 0x20 || cell.at[i] == 0x7f || cell.at[i] == ',') {
			skep_lines_fail(lines, cell.at + i, "%s with a %s in it", what,
				cell.at[i] == ',' ? "comma" : "control character");
			return false;
		}
	memcpy(ret, cell.at, cell.length);
	ret[cell.length] = 0;
	return true;
}

/* ---- numbers ------------------------------------------------------------------------------------------------------ */

static bool digit(char c)
{
	return c >= '0' && c <= '9';
}

bool skep_cell_time(struct skep_lines *lines, struct skep_cell cell, uint64_t unit_ns, uint64_t *ret_ns)
{
	const char *c = cell.at, *end = cell.at + cell.length;
	const char *unit = unit_ns == 1000000 ? "milliseconds" : "seconds";
	uint64_t most = SKEP_CELL_SECONDS_MAX * (1000000000 / unit_ns), whole = 0, part = 0, place = unit_ns;
	for (; c < end && digit(*c) && whole <= most; c++)
		whole = 10 * whole + (uint64_t)(*c - '0');
	bool any = c > cell.at;
	if (any && c < end && *c == '.')
		for (c++; c < end && digit(*c); c++) {
			place /= 10;
			part += (uint64_t)(*c - '0') * place;
		}
	if (!any || (c < end && whole <= most))
		skep_lines_fail(
			lines, any ? c : cell.at, "expected %s, a plain number of 0 or more such as 90 or 90.5", unit);
	else if (whole >= most)
		skep_lines_fail(lines, cell.at, "expected %s of less than %llu", unit, (unsigned long long)most);
	*ret_ns = lines->diag->set ? 0 : whole * unit_ns + part;
	return !lines->diag->set;
}

bool skep_cell_count(struct skep_lines *lines, struct skep_cell cell, uint64_t most, uint64_t *ret)
{
	uint64_t value = 0;
	bool sound = cell.length > 0 && cell.length <= 18;
	for (size_t i = 0; sound && i < cell.length; i++) {
		sound = digit(cell.at[i]);
		value = 10 * value + (uint64_t)(cell.at[i] - '0');
	}
	*ret = sound && value <= most ? value : 0;
	if (!sound || value > most)
		skep_lines_fail(lines, cell.at, "expected a whole number from 0 to %llu", (unsigned long long)most);
	return sound && value <= most;
}
