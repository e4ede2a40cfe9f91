/* SPDX-License-Identifier: Apache-2.0
 *
 * layout.c - see layout.h. Kept true: no line ends with blanks, and two columns have two blanks between them.
 */
#include "base/layout.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/grow.h"
#include "base/text.h"

/* ---- quantities -------------------------------------------------------------------------------------------------- */

struct unit {
	const char *name;
	double size;
};

static const struct unit TIME[] = {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"min", 60}, {"h", 3600}};
static const struct unit BYTES[] = {{"B", 1}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"PB", 1e15}};
static const struct unit BINARY[] = {{"B", 1}, {"KiB", 1024}, {"MiB", 1048576}, {"GiB", 1073741824}};
static const struct unit LARGE[] = {{"", 1}, {"k", 1e3}, {"M", 1e6}, {"B", 1e9}, {"T", 1e12}};
static const struct unit RATE[] = {{"bit/s", 1}, {"kbit/s", 1e3}, {"Mbit/s", 1e6}, {"Gbit/s", 1e9}, {"Tbit/s", 1e12}};

#define COUNT(units) (sizeof(units) / sizeof((units)[0]))

/* The largest unit that leaves at least 1, but for what rounds up to it. */
static const struct unit *unit_for(double value, const struct unit *unit, size_t units)
{
	size_t i = 0;
	while (i + 1 < units && value >= 0.9995 * unit[i + 1].size)
		i++;
	return &unit[i];
}

/* Minutes and hours take over late: 90 s is read more easily than 1.5 min. */
static const struct unit *time_unit(double seconds)
{
	return unit_for(seconds, TIME, seconds < 600 ? 3 : seconds < 7200 && fmod(seconds, 3600) > 0 ? 4 : 5);
}

/* Three significant digits, and never an exponent. */
static const char *number(double value, char ret[SKEP_TEXT_BYTES])
{
	int decimals = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
	snprintf(ret, SKEP_TEXT_BYTES, "%.*f", decimals, value);
	return ret;
}

static const char *quantity(double value, const struct unit *unit, char ret[SKEP_TEXT_BYTES])
{
	char digits[SKEP_TEXT_BYTES];
	snprintf(ret, SKEP_TEXT_BYTES, "%.36s %s", number(value / unit->size, digits), unit->name);
	return ret;
}

/* What people chose is written as they would: 3 s, not 3.00 s. */
static const char *short_number(double value, char digits[SKEP_TEXT_BYTES])
{
	number(value, digits);
	size_t length = strlen(digits);
	while (strchr(digits, '.') && strchr("0.", digits[length - 1])) {
		bool point = digits[--length] == '.';
		digits[length] = '\0';
		if (point)
			break;
	}
	return digits;
}

static const char *short_quantity(double value, const struct unit *unit, char ret[SKEP_TEXT_BYTES])
{
	char digits[SKEP_TEXT_BYTES];
	snprintf(ret, SKEP_TEXT_BYTES, "%.36s %s", short_number(value / unit->size, digits), unit->name);
	return ret;
}

const char *skep_time_text(double seconds, char ret[SKEP_TEXT_BYTES])
{
	return short_quantity(seconds, time_unit(seconds), ret);
}

const char *skep_time_range_text(double least_s, double most_s, char ret[SKEP_TEXT_BYTES])
{
	char low[SKEP_TEXT_BYTES], high[SKEP_TEXT_BYTES];
	const struct unit *unit = time_unit(least_s);
	quantity(most_s, time_unit(most_s), high);
	if (unit == time_unit(most_s))
		number(least_s / unit->size, low);
	else
		quantity(least_s, unit, low);
	if (least_s < most_s)
		snprintf(ret, SKEP_TEXT_BYTES, "%.20s - %.20s", low, high);
	else
		snprintf(ret, SKEP_TEXT_BYTES, "%s", high);
	return ret;
}

const char *skep_bytes_text(double bytes, char ret[SKEP_TEXT_BYTES])
{
	if (bytes > 0)
		return quantity(bytes, unit_for(bytes, BYTES, COUNT(BYTES)), ret);
	return strcpy(ret, "-");
}

const char *skep_binary_text(double bytes, char ret[SKEP_TEXT_BYTES])
{
	return short_quantity(bytes, unit_for(bytes, BINARY, COUNT(BINARY)), ret);
}

const char *skep_count_text(double count, char ret[SKEP_TEXT_BYTES])
{
	char digits[SKEP_TEXT_BYTES];
	const struct unit *unit = unit_for(count, LARGE, COUNT(LARGE));
	snprintf(ret, SKEP_TEXT_BYTES, "%.36s%s", short_number(count / unit->size, digits), unit->name);
	return ret;
}

const char *skep_rate_text(double Bps, char ret[SKEP_TEXT_BYTES])
{
	if (isinf(Bps))
		return strcpy(ret, "unlimited");
	return short_quantity(8 * Bps, unit_for(8 * Bps, RATE, COUNT(RATE)), ret);
}

/* Decimals with which a number has so many digits that count; a number without a fraction is written in full. */
static int decimals(double number, int digits)
{
	double places = digits - 1 - floor(log10(fabs(number)));
	return !(fabs(number) > 0) || places < 0 ? 0 : places < 9 ? (int)places : 9;
}

const char *skep_mean_text(double mean, double spread, char ret[SKEP_TEXT_BYTES])
{
	int places = decimals(mean, 4);
	if (spread > 0 && decimals(spread, 2) < places)
		places = decimals(spread, 2);
	if (fabs(mean) > 0 && fabs(mean) < 1e-6)
		snprintf(ret, SKEP_TEXT_BYTES, "%.4g", mean);
	else if (spread >= 0.5 * pow(10, -places))
		snprintf(ret, SKEP_TEXT_BYTES, "%.*f ± %.*f", places, mean, places, spread);
	else
		snprintf(ret, SKEP_TEXT_BYTES, "%.*f", places, mean);
	return ret;
}

const char *skep_plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

const char *skep_article(const char *name)
{
	char first = (char)tolower((unsigned char)name[0]);
	/* letters that are spoken one by one: those in front of a number, and of families of devices */
	bool spelled =
		isdigit((unsigned char)name[1]) || strncasecmp(name, "rtx", 3) == 0 || strncasecmp(name, "mi", 2) == 0;
	return first != '\0' && strchr(spelled ? "aefhilmnorsx8" : "aeiou8", first) ? "an" : "a";
}

void skep_wrap(const char *text, int indent, int column, int columns, FILE *out)
{
	bool first = true;
	for (text += strspn(text, " \n"); *text != '\0'; text += strspn(text, " \n")) {
		int length = (int)strcspn(text, " \n");
		if (!first && column + 1 + length > columns) {
			fprintf(out, "\n%*s", indent, "");
			column = indent;
			first = true;
		}
		fprintf(out, "%s%.*s", first ? "" : " ", length, text);
		column += length + !first;
		first = false;
		text += length;
	}
	fputc('\n', out);
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

void skep_layout_begin(struct skep_layout *layout, const char *align, const char *const head[])
{
	*layout = (struct skep_layout){.head = head, .align = align, .columns = (uint32_t)strlen(align)};
	assert(layout->columns > 0 && layout->columns <= SKEP_LAYOUT_COLUMNS_MAX);
}

static char **next_cell(struct skep_layout *layout)
{
	return skep_grow(&layout->cell, layout->cells, sizeof *layout->cell) ? &layout->cell[layout->cells] : NULL;
}

void skep_layout_cell(struct skep_layout *layout, const char *format, ...)
{
	char given[256], text[256];
	va_list list;
	va_start(list, format);
	vsnprintf(given, sizeof given, format, list);
	va_end(list);
	skep_text_show(text, sizeof text, given, strlen(given), UINT32_MAX);
	char **cell = layout->lacking ? NULL : next_cell(layout);
	layout->lacking = !cell || !(*cell = strdup(text));
	layout->cells += layout->lacking ? 0 : 1;
}

/* A byte that goes on with a character (10xxxxxx in UTF-8) is none. */
int skep_layout_width(const char *text)
{
	int characters = 0;
	for (; *text; text++)
		characters += ((unsigned char)*text & 0xc0) != 0x80;
	return characters;
}

/* Blanks are owed until something follows them in the line. */
static void print_cell(
	const struct skep_layout *layout, const int *widest, uint32_t column, const char *text, int *owed, FILE *out)
{
	int blanks = widest[column] - skep_layout_width(text);
	bool left = layout->align[column] == 'l', last = column + 1 == layout->columns;
	*owed += left ? 0 : blanks;
	if (text[0] != '\0') {
		fprintf(out, "%*s%s", *owed, "", text);
		*owed = 0;
	}
	*owed = last ? 0 : *owed + (left ? blanks : 0) + 2;
	if (last)
		fputc('\n', out);
}

void skep_layout_end(struct skep_layout *layout, FILE *out)
{
	int widest[SKEP_LAYOUT_COLUMNS_MAX], owed = 0;
	for (uint32_t column = 0; column < layout->columns; column++)
		widest[column] = skep_layout_width(layout->head[column]);
	for (size_t i = 0; i < layout->cells; i++) {
		int *most = &widest[i % layout->columns], here = skep_layout_width(layout->cell[i]);
		*most = here > *most ? here : *most;
	}
	for (uint32_t column = 0; column < layout->columns; column++)
		print_cell(layout, widest, column, layout->head[column], &owed, out);
	for (size_t i = 0; i < layout->cells; i++)
		print_cell(layout, widest, (uint32_t)(i % layout->columns), layout->cell[i], &owed, out);
	if (layout->lacking)
		fprintf(out, "\n(not enough memory for the rest of this table)\n");
	for (size_t i = 0; i < layout->cells; i++)
		free(layout->cell[i]);
	free(layout->cell);
	*layout = (struct skep_layout){0};
}
