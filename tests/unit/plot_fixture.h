/* SPDX-License-Identifier: Apache-2.0
 *
 * plot_fixture.h - for the tests of pictures: a folder of its own with a database, a made-up run in it, and the script of a
 * picture as gnuplot would get it.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/fresh.h"
#include "tests/unit/plot_call.h"
#include "tests/unit/synthetic.h"

static struct skep_diag error;
static char *path_variable;

static inline int enter(void **state)
{
	static char folder[64];
	snprintf(folder, sizeof folder, "/tmp/skep-plot-XXXXXX");
	if (mkdtemp(folder) == NULL || chmod(folder, 0777) != 0 || chdir(folder) != 0)
		return -1;
	*state = folder;
	path_variable = strdup(getenv("PATH"));
	return path_variable == NULL;
}

static inline int leave(void **state)
{
	char command[128];
	setenv("PATH", path_variable, 1);
	free(path_variable);
	snprintf(command, sizeof command, "rm -rf '%s'", (char *)*state);
	return chdir("/") || system(command);
}

static inline struct skep_store *open_store(void)
{
	struct skep_store *store = skep_store_open("plot.db", true, fresh(&error));
	if (store == NULL)
		fail_msg("%s", error.message);
	return store;
}

static inline int64_t record(struct skep_store *store, const struct synthetic *s, const char *world)
{
	int64_t run;
	if (!skep_store_begin(store, &s->scenario, world, "cpu", true, true, &run, fresh(&error)))
		fail_msg("%s", error.message);
	struct skep_recorder recorder = skep_store_recorder(store);
	synthetic_feed(s, &recorder);
	struct skep_summary summary = {.world = world, .final_loss = NAN, .ok = true};
	if (!skep_store_end(store, &summary, fresh(&error)))
		fail_msg("%s", error.message);
	return run;
}

static inline void write_file(const char *path, const char *text, mode_t mode)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	chmod(path, mode);
}

/* From now on pictures hold the script as gnuplot gets it: `cat` plays gnuplot. */
static inline void play_gnuplot(void)
{
	char path[4200], here[4096];
	mkdir("bin", 0777);
	write_file("bin/gnuplot", "#!/bin/sh\nexec cat\n", 0755);
	assert_non_null(getcwd(here, sizeof here));
	snprintf(path, sizeof path, "%s/bin:/usr/bin:/bin", here);
	setenv("PATH", path, 1);
}

static inline char *read_script(const char *path)
{
	static char text[4000000];
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	text[fread(text, 1, sizeof text - 1, file)] = '\0';
	fclose(file);
	return text;
}

static inline char *script_of_rounds(struct skep_store *store, const char *kind, const struct skep_plot_rounds *rounds)
{
	if (!plot_rounds(store, kind, NULL, 0, "script.png", rounds, fresh(&error)))
		fail_msg("%s", error.message);
	return read_script("script.png");
}

static inline char *script_of(struct skep_store *store, const char *kind)
{
	return script_of_rounds(store, kind, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, enter, leave)
