/* SPDX-License-Identifier: Apache-2.0
 *
 * read_with.h - for tests of plans: a scenario of the tree with some keys set, which may ask for more memory than there is.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scenarios/read/scenario.h"

static inline void read_with(struct skep_scenario *ret, const char *path, const char *const *set, uint32_t sets)
{
	struct skep_diag diag = {0};
	const struct skep_scenario_options options = {.set = set, .sets = sets, .any_memory = true};
	char text[2048] = "";
	bool read = skep_scenario_read(path, &options, ret, &diag);
	if (!read) {
		skep_diag_print(&diag, text, sizeof text);
		print_error("%s\n", text);
	}
	assert_true(read);
}
