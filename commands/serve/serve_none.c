/* SPDX-License-Identifier: Apache-2.0
 *
 * serve_none.c - `skep serve`, `skep join` and `skep status` of a program that was built without OpenSSL: all say so.
 */
#include "commands/arguments.h"
#include "commands/commands.h"

static enum status missing(struct skep_command_line *line)
{
	(void)line;
	return skep_report_error(
		STATUS_BAD_INPUT, "this program was built without TLS: apt-get install libssl-dev, and build again");
}

static const struct skep_option_group groups[] = {{0}};
static const struct skep_example examples[] = {{0}};

#define MISSING(word, takes, does)                                                                                     \
	{                                                                                                              \
		.name = word, .operands = takes, .summary = does " (not in this build)",                               \
		.text = "This program was built without TLS.", .most = UINT32_MAX, .group = groups,                    \
		.example = examples, .run = missing                                                                    \
	}

const struct skep_command skep_command_serve =
	MISSING("serve", "SCENARIO", "train for real on machines that join and leave");
const struct skep_command skep_command_join =
	MISSING("join", "HOST:PORT", "take part in a run that another machine serves");
const struct skep_command skep_command_status =
	MISSING("status", "HOST:PORT", "who takes part in a run that is served");
