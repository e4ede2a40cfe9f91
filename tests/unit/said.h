/* SPDX-License-Identifier: Apache-2.0
 *
 * said.h - for tests of what is refused: a text and what has to be said of it, and where; and the file that it is written to.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/reader.h"

static char path[] = "/tmp/skep-said-XXXXXX";

static inline int make_file(void **state)
{
	(void)state;
	int fd = mkstemp(path);
	return fd < 0 ? -1 : close(fd);
}

static inline int remove_file(void **state)
{
	(void)state;
	return unlink(path);
}

struct refused {
	const char *text;
	uint32_t line, column;
	const char *part; /* of the message */
};

static inline void assert_said(const struct skep_diag *diag, const struct refused *refused)
{
	if (diag->line != refused->line || diag->column != refused->column || !strstr(diag->message, refused->part))
		fail_msg("%s: %u:%u: %s", refused->text, diag->line, diag->column, diag->message);
}
