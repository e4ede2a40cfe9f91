/* SPDX-License-Identifier: Apache-2.0
 *
 * values.c - see values.h. Complaints have no line break at their end.
 */
#include "commands/values.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool skep_value_refuse(struct skep_complaint *complaint, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(complaint->text, complaint->size, format, args);
	va_end(args);
	return false;
}

bool skep_value_refuse_diag(struct skep_complaint *complaint, const struct skep_diag *diag)
{
	skep_diag_print(diag, complaint->text, complaint->size);
	size_t length = strlen(complaint->text);
	if (length > 0 && complaint->text[length - 1] == '\n')
		complaint->text[length - 1] = 0;
	return false;
}

bool skep_value_refuse_word(
	struct skep_complaint *complaint, const char *what, const char *text, const char *const *word)
{
	char known[200] = "";
	for (int i = 0; word[i]; i++)
		snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "", word[i]);
	return skep_value_refuse(complaint, "%s %.60s: expected one of %s", what, text, known);
}

bool skep_value_integer(struct skep_complaint *complaint, const char *name, const char *text, uint64_t least,
	uint64_t most, uint64_t *ret)
{
	char *end;
	errno = 0;
	*ret = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end != 0 || errno != 0 || *ret < least || *ret > most)
		return skep_value_refuse(complaint, "--%s %.40s: expected a whole number from %" PRIu64 " to %" PRIu64,
			name, text, least, most);
	return true;
}

bool skep_options_read(int argc, char **argv, const struct option *row, skep_option_take *take, void *context,
	struct skep_complaint *complaint, char ***ret_operand, int *ret_operands)
{
	int option;
	optind = 0;
	opterr = 0;
	while ((option = getopt_long(argc, argv, ":n:o:qh", row, NULL)) != -1) {
		const struct option *taken = row;
		if (option == '?')
			return skep_value_refuse(complaint, "unknown option '%.60s'", argv[optind - 1]);
		if (option == ':')
			return skep_value_refuse(complaint, "'%.60s' needs a value", argv[optind - 1]);
		while (taken->name && taken->val != option)
			taken++;
		if (!taken->name)
			return skep_value_refuse(complaint, "unknown option '-%c'", option);
		if (!take(context, option, taken->name, optarg))
			return false;
	}
	*ret_operand = argv + optind;
	*ret_operands = argc - optind;
	return true;
}
