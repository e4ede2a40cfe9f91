/* SPDX-License-Identifier: Apache-2.0
 *
 * topology_fixture.h - for tests of topology files that a test writes itself: a folder of its own, and texts of which a part is
 * changed.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "topologies/read/topology.h"

static char folder[] = "/tmp/skep-topology-XXXXXX";

static inline const char *in_folder(const char *name)
{
	static char path[128];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	return path;
}

static inline void put(const char *name, const char *text)
{
	FILE *file = fopen(in_folder(name), "w");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

/* Writes `text` with its first `find` replaced. */
static inline void put_changed(const char *name, const char *text, const char *find, const char *replace)
{
	char changed[4096];
	const char *at = strstr(text, find);
	if (!at)
		fail_msg("'%s' is not in the text", find);
	snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, replace, at + strlen(find));
	put(name, changed);
}

static inline struct skep_topology read_good(const char *name)
{
	struct skep_topology topology;
	struct skep_diag diag = {0};
	if (!skep_topology_read(in_folder(name), &topology, &diag))
		fail_msg("%s:%u: %s", diag.file, diag.line, diag.message);
	assert_false(diag.set);
	return topology;
}

static inline int remove_folder(void **state)
{
	char command[256];
	(void)state;
	snprintf(command, sizeof command, "rm -r %s", folder);
	return system(command);
}
