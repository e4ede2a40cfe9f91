/* SPDX-License-Identifier: Apache-2.0
 *
 * diag.c - one error, and how it is shown.
 *
 * Keeps true: the first error stays; what is shown is valid UTF-8 without control characters, one column per character,
 * so that a file cannot drive the terminal and the caret stands under the right place.
 */
#include "base/diag.h"
#include "base/text.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define BEFORE 40u /* characters left of the caret in a line that is cut */

static size_t skip(const char *s, size_t left, uint32_t characters)
{
	size_t at = 0;
	while (at < left && characters-- > 0) {
		char c[4];
		uint32_t bytes;
		at += skep_text_shown(s + at, left - at, c, &bytes);
	}
	return at;
}

/* The whole line if it fits, else the part around the column between dots. */
static void show_line(struct skep_diag *diag, const char *line)
{
	size_t left = strcspn(line, "\r\n");
	uint32_t at = diag->column > 0 ? diag->column - 1 : 0;
	diag->caret = at;
	if (left < sizeof diag->text) {
		uint32_t length = skep_text_show(diag->text, sizeof diag->text, line, left, UINT32_MAX);
		diag->caret = at < length ? at : length;
		return;
	}
	char *to = diag->text;
	if (at > BEFORE) {
		size_t first = skip(line, left, at - BEFORE);
		line += first;
		left -= first;
		diag->caret = BEFORE + 3;
		memcpy(to, "...", 3);
		to += 3;
	}
	size_t room = (size_t)(diag->text + sizeof diag->text - to) - 3;
	uint32_t length = skep_text_show(to, room, line, left, 2 * BEFORE);
	if (diag->caret > length + (uint32_t)(to - diag->text))
		diag->caret = length + (uint32_t)(to - diag->text);
	if (skip(line, left, length) < left)
		memcpy(to + strlen(to), "...", 4);
}

static void set_message(struct skep_diag *diag, const char *format, va_list args)
{
	char message[sizeof diag->message];
	vsnprintf(message, sizeof message, format, args);
	skep_text_show(diag->message, sizeof diag->message, message, strlen(message), UINT32_MAX);
}

struct skep_diag skep_diag_beside(const struct skep_diag *diag)
{
	return (struct skep_diag){.files = diag->files};
}

void skep_diag_set(struct skep_diag *diag, const char *file, uint32_t line, uint32_t column, const char *text,
	const char *format, ...)
{
	if (diag->set)
		return;
	*diag = skep_diag_beside(diag);
	diag->set = true;
	diag->line = line;
	diag->column = column;
	skep_text_show(diag->file, sizeof diag->file, file, strlen(file), UINT32_MAX);
	if (text)
		show_line(diag, text);
	va_list args;
	va_start(args, format);
	set_message(diag, format, args);
	va_end(args);
}

bool skep_fail(struct skep_diag *reterr, const char *format, ...)
{
	if (reterr->set)
		return false;
	*reterr = skep_diag_beside(reterr);
	reterr->set = true;
	va_list args;
	va_start(args, format);
	set_message(reterr, format, args);
	va_end(args);
	return false;
}

bool skep_diag_is_memory(const struct skep_diag *diag)
{
	return diag->set && strstr(diag->message, "not enough memory") != NULL;
}

void skep_diag_print(const struct skep_diag *diag, char *ret, size_t size)
{
	assert(size > 0);
	char place[32] = "";
	if (diag->line > 0)
		snprintf(place, sizeof place, ":%u:%u", diag->line, diag->column);
	const char *colon = diag->file[0] ? ": " : "";
	if (diag->line == 0 && diag->column == 0)
		snprintf(ret, size, "%s%serror: %s\n", diag->file, colon, diag->message);
	else
		snprintf(ret, size, "%s%s%serror: %s\n  %s\n  %*s^\n", diag->file, place, colon, diag->message,
			diag->text, (int)diag->caret, "");
}
