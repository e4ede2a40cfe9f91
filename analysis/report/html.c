/* SPDX-License-Identifier: Apache-2.0
 *
 * html.c - see page.h.
 */
#include "analysis/report/page.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static const char *entity_of(uint32_t code)
{
	switch (code) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	default:
		return NULL;
	}
}

void skep_html_text(FILE *out, const char *text)
{
	for (size_t left = strlen(text); left > 0;) {
		uint32_t code, bytes = skep_utf8_next(text, left, &code);
		const char *entity = bytes > 0 ? entity_of(code) : NULL;
		if (entity != NULL)
			fputs(entity, out);
		else if (bytes == 0 || skep_utf8_turns(code) || (code >= 0x80 && code < 0xa0))
			fputs("&#xfffd;", out);
		else if ((code < ' ' && code != '\n' && code != '\t') || code == 0x7f)
			fprintf(out, "&#x%x;", code == 0x7f ? 0x2421 : 0x2400 + code);
		else
			fwrite(text, 1, bytes, out);
		bytes = bytes > 0 ? bytes : 1;
		text += bytes;
		left -= bytes;
	}
}

void skep_html_element(FILE *out, const char *tag, const char *text)
{
	fprintf(out, "<%s>", tag);
	skep_html_text(out, text);
	fprintf(out, "</%.*s>\n", (int)strcspn(tag, " "), tag);
}

void skep_html_printf(FILE *out, const char *format, ...)
{
	char *text = NULL;
	va_list list;
	va_start(list, format);
	bool made = vasprintf(&text, format, list) >= 0;
	va_end(list);
	if (made)
		skep_html_text(out, text);
	free(made ? text : NULL);
}

void skep_html_data(FILE *out, const char *name, cJSON *root)
{
	char *text = cJSON_PrintUnformatted(root);
	fprintf(out, "<script type=\"application/json\" class=\"%s\">", name);
	for (const char *c = text ? text : "null"; *c; c++) {
		if (*c == '<' || *c == '>' || *c == '&')
			fprintf(out, "\\u%04x", (unsigned)*c);
		else
			fputc(*c, out);
	}
	fprintf(out, "</script>\n");
	cJSON_free(text);
	cJSON_Delete(root);
}

void skep_html_word(FILE *out, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=,+@%-";
	const char *quote = word[0] != '\0' && word[strspn(word, plain)] == '\0' ? "" : "&#39;";
	char piece[256];
	fputs(quote, out);
	for (const char *c = word; *c;) {
		size_t length = strcspn(c, "'");
		if (length == 0) {
			fputs("&#39;\\&#39;&#39;", out);
			c++;
			continue;
		}
		length = length < sizeof piece ? length : sizeof piece - 1;
		while (length > 1 && ((unsigned char)c[length] & 0xc0) == 0x80)
			length--; /* no character in two pieces */
		snprintf(piece, sizeof piece, "%.*s", (int)length, c);
		skep_html_text(out, piece);
		c += length;
	}
	fputs(quote, out);
}

/* gnuplot calls its marks gpDot, gpPt0 ... and its plots gnuplot_plot_1 ..., and refers to the marks as '#gpPt0'. */
static size_t write_reference(FILE *out, const char *at, unsigned number)
{
	static const char *const mark[] = {" id='", " id=\"", "='#", "=\"#", "url(#"};
	for (size_t i = 0; i < sizeof mark / sizeof mark[0]; i++) {
		size_t length = strlen(mark[i]);
		if (strncmp(at, mark[i], length) != 0)
			continue;
		fprintf(out, "%sp%u-", mark[i], number);
		return length;
	}
	return 0;
}

void skep_html_svg(FILE *out, const char *svg, unsigned number, const char *title)
{
	static const char named[] = "<title>Gnuplot</title>";
	const char *at = strstr(svg, "<svg");
	for (bool tag = false; at != NULL && *at;) {
		size_t read = tag ? write_reference(out, at, number) : 0;
		if (read == 0 && strncmp(at, named, sizeof named - 1) == 0) {
			skep_html_element(out, "title", title);
			read = sizeof named - 1;
		} else if (read == 0) {
			tag = *at == '<' || (tag && *at != '>');
			fputc(*at, out);
			read = 1;
		}
		at += read;
	}
}
