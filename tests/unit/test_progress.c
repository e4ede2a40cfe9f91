/* SPDX-License-Identifier: Apache-2.0
 *
 * test_progress.c - what a run says of itself where no terminal shows a bar: a line now and then, also while a round lasts, and
 * nothing when it was told to be quiet. Time is made by setting back when the last line was written.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "analysis/summary/progress.h"

/* What one note, or one round of four, writes on stderr. */
static void said(struct skep_progress *progress, bool round, uint32_t done, char *ret, size_t bytes)
{
	struct skep_recorder recorder = skep_progress_recorder(progress);
	const struct skep_note note = {.kind = SKEP_NOTE_ROUND_CLOSED};
	FILE *file = tmpfile();
	int kept = dup(STDERR_FILENO);
	assert_true(file && kept >= 0);
	fflush(stderr);
	assert_true(dup2(fileno(file), STDERR_FILENO) >= 0);
	if (round)
		recorder.progress(recorder.context, 2500000000, done, 4);
	else
		recorder.note(recorder.context, 2500000000, (struct skep_peer){0}, &note);
	fflush(stderr);
	dup2(kept, STDERR_FILENO);
	close(kept);
	rewind(file);
	ret[fread(ret, 1, bytes - 1, file)] = '\0';
	fclose(file);
}

static void wait_s(struct skep_progress *progress, double s)
{
	progress->begin_s -= s;
	progress->drawn_s -= s;
}

static void test_lines(void **state)
{
	struct skep_progress progress = skep_progress_begin("sim", false);
	char text[256];
	(void)state;
	progress.lines = true;
	said(&progress, false, 0, text, sizeof text);
	assert_string_equal(text, "");
	wait_s(&progress, 31);
	said(&progress, false, 0, text, sizeof text);
	assert_string_equal(text, "skep: sim, at 2.5 s: no round is done yet\n");
	said(&progress, true, 1, text, sizeof text); /* too soon after the last line */
	assert_string_equal(text, "");
	wait_s(&progress, 31);
	said(&progress, false, 0, text, sizeof text); /* while the second round lasts */
	assert_non_null(strstr(text, "skep: sim, at 2.5 s: round 1 of 4, 18"));
	assert_non_null(strstr(text, " s left\n"));
	wait_s(&progress, 31);
	progress.validated = true;
	progress.validation_loss = 2.25;
	said(&progress, true, 3, text, sizeof text);
	assert_non_null(strstr(text, "round 3 of 4, validation 2.25, 31 s left\n"));
}

static void test_quiet(void **state)
{
	struct skep_progress progress = skep_progress_begin("sim", false);
	char text[256];
	(void)state;
	wait_s(&progress, 3600);
	said(&progress, false, 0, text, sizeof text);
	assert_string_equal(text, "");
	said(&progress, true, 1, text, sizeof text);
	assert_string_equal(text, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_quiet),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
