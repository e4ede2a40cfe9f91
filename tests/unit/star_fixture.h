/* SPDX-License-Identifier: Apache-2.0
 *
 * star_fixture.h - for tests of reductions in a simulated star: a folder for its files, which are star.yaml, gpus/fast.yaml and
 * model.yaml.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/skep-star-XXXXXX";

static inline void star_write(const char *name, const char *text)
{
	char path[128];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static inline int star_enter(void **state)
{
	char path[128];
	(void)state;
	if (mkdtemp(folder) == NULL)
		return -1;
	snprintf(path, sizeof path, "%s/gpus", folder);
	return mkdir(path, 0700);
}

static inline int star_leave(void **state)
{
	const char *const names[] = {"star.yaml", "gpus/fast.yaml", "model.yaml"};
	char path[128];
	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		snprintf(path, sizeof path, "%s/%s", folder, names[i]);
		unlink(path);
	}
	snprintf(path, sizeof path, "%s/gpus", folder);
	rmdir(path);
	return rmdir(folder);
}
