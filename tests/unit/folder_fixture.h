/* SPDX-License-Identifier: Apache-2.0
 *
 * folder_fixture.h - for tests of scenarios that a test writes itself: a folder of its own, with one kind of GPU (gpus/g.yaml)
 * and a model (m.yaml); the test adds a topology (t.yaml).
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static inline void folder_write(const char *name, const char *text)
{
	FILE *file = fopen(name, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
}

/* `folder` ends in XXXXXX, which is filled in; the test goes there. Layers of the model are written as in its file. */
static inline int folder_enter(char *folder, const char *layers)
{
	char model[256];
	if (!mkdtemp(folder) || chdir(folder) != 0 || mkdir("gpus", 0700) != 0)
		return -1;
	folder_write("gpus/g.yaml", "name: g\nsource: assumed for this test\nflops: 1 TFLOP/s\nefficiency: 1\n"
				    "memory_bandwidth: 100 GB/s\nmemory: 16 GB\noverhead: 10 us\n");
	snprintf(model, sizeof model, "name: m\nkind: mlp\nactivation: tanh\nlayers: {%s}\n", layers);
	folder_write("m.yaml", model);
	return 0;
}

static inline int folder_leave(const char *folder)
{
	bool gone = unlink("m.yaml") == 0 && unlink("t.yaml") == 0 && unlink("gpus/g.yaml") == 0;
	return gone && rmdir("gpus") == 0 && rmdir(folder) == 0 ? 0 : -1;
}
