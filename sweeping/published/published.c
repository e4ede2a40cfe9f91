/* SPDX-License-Identifier: Apache-2.0
 *
 * published.c - see published.h. Reads all tables first, so that nothing is simulated before every table is right; then makes the
 * runs of the experiments that are wanted, in processes, those of slow experiments first; then prints.
 *
 * Keeps true: what is printed does not depend on how many processes there were; a run whose scenario is wrong ends everything
 * with its error, and a page is written only when all runs have been made.
 */
#include "sweeping/published/published.h"

#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/summary/progress.h"
#include "base/grow.h"
#include "base/options.h"
#include "base/process/process_pool.h"
#include "base/process/signals.h"
#include "base/process/thread_pool.h"
#include "sweeping/published/print.h"

struct place { /* of a run */
	uint32_t experiment, run;
};

struct course {
	const struct skep_published_request *request;
	struct skep_published_experiment *experiment;
	uint32_t experiments;
	struct place *job; /* [jobs] */
	uint32_t jobs;
	enum status status;
};

struct reply {
	double value;
	char failure[256];
	struct skep_diag error;
};

static bool complain(struct course *c, enum status status, const char *message)
{
	fprintf(stderr, "skep: %s\n", message);
	c->status = status;
	return false;
}

/* ---- tables -------------------------------------------------------------------------------------------------------- */

static bool is_file(const char *name)
{
	size_t length = strlen(name);
	return length > 5 && strcmp(name + length - 5, ".yaml") == 0;
}

static bool read_one(struct course *c, const char *path)
{
	struct skep_diag error = {0};
	if (!skep_grow(&c->experiment, c->experiments, sizeof *c->experiment))
		return complain(c, STATUS_FAILED, "not enough memory for the tables");
	struct skep_published_experiment *more = c->experiment;
	if (!skep_published_read(path, &more[c->experiments], &error)) {
		c->status = skep_report_diag(STATUS_BAD_INPUT, &error);
		return false;
	}
	c->experiments++;
	for (uint32_t i = 0; i + 1 < c->experiments; i++)
		if (strcmp(c->experiment[i].name, more[c->experiments - 1].name) == 0) {
			fprintf(stderr, "skep: %s and %s are both named %s\n", more[i].path,
				more[c->experiments - 1].path, more[i].name);
			c->status = STATUS_BAD_INPUT;
			return false;
		}
	return true;
}

/* In the order of their files' names. */
static bool read_folder(struct course *c)
{
	char pattern[4096];
	glob_t found = {0};
	snprintf(pattern, sizeof pattern, "%s/*.yaml", c->request->folder);
	bool good = glob(pattern, 0, NULL, &found) == 0;
	for (size_t i = 0; good && i < found.gl_pathc; i++)
		good = read_one(c, found.gl_pathv[i]);
	if (found.gl_pathc == 0) {
		fprintf(stderr,
			"skep: %s holds no table: run it in the folder of skep's sources, or name the tables with --tables\n",
			c->request->folder);
		c->status = STATUS_BAD_INPUT;
	}
	globfree(&found);
	return good;
}

static bool read_tables(struct course *c)
{
	bool folder = c->request->names == 0;
	for (uint32_t i = 0; i < c->request->names; i++)
		folder = folder || !is_file(c->request->name[i]);
	if (folder && !read_folder(c))
		return false;
	for (uint32_t i = 0; i < c->request->names; i++)
		if (is_file(c->request->name[i]) && !read_one(c, c->request->name[i]))
			return false;
	return true;
}

/* ---- which are wanted ------------------------------------------------------------------------------------------------ */

static bool means(const char *word, const struct skep_published_experiment *e)
{
	return is_file(word) ? strcmp(word, e->path) == 0 : strncmp(word, e->name, strlen(word)) == 0;
}

static bool want(struct course *c, const char *word)
{
	bool found = false;
	for (uint32_t i = 0; i < c->experiments; i++) {
		struct skep_published_experiment *e = &c->experiment[i];
		bool whole = strcmp(word, e->name) == 0 || is_file(word);
		if (!means(word, e))
			continue;
		found = true;
		e->wanted = e->wanted || !e->slow || whole || c->request->all;
	}
	if (found)
		return true;
	fprintf(stderr, "skep: there is no experiment '%s'; write a name or its beginning:", word);
	for (uint32_t i = 0; i < c->experiments; i++)
		fprintf(stderr, " %s", c->experiment[i].name);
	fputc('\n', stderr);
	c->status = STATUS_BAD_INPUT;
	return false;
}

static bool choose(struct course *c)
{
	for (uint32_t i = 0; i < c->request->names; i++)
		if (!want(c, c->request->name[i]))
			return false;
	for (uint32_t i = 0; c->request->names == 0 && i < c->experiments; i++)
		c->experiment[i].wanted = c->request->all || !c->experiment[i].slow;
	return true;
}

static bool means_any(const struct course *c, const struct skep_published_experiment *e)
{
	for (uint32_t i = 0; i < c->request->names; i++)
		if (means(c->request->name[i], e))
			return true;
	return c->request->names == 0;
}

static void tell_left_out(const struct course *c)
{
	for (uint32_t i = 0; i < c->experiments; i++)
		if (!c->experiment[i].wanted && !c->request->quiet && means_any(c, &c->experiment[i]))
			fprintf(stderr, "skep: %s takes long: run it by its whole name, or with --all\n",
				c->experiment[i].name);
}

/* ---- runs ------------------------------------------------------------------------------------------------------------ */

static bool list_jobs(struct course *c)
{
	uint32_t runs = 0;
	for (uint32_t i = 0; i < c->experiments; i++)
		runs += c->experiment[i].runs;
	c->job = calloc(runs + 1, sizeof *c->job);
	if (c->job == NULL)
		return complain(c, STATUS_FAILED, "not enough memory for the runs");
	for (int slow = 1; slow >= 0; slow--)
		for (uint32_t i = 0; i < c->experiments; i++)
			for (uint32_t k = 0; k < c->experiment[i].runs; k++)
				if (c->experiment[i].wanted && c->experiment[i].slow == (slow == 1))
					c->job[c->jobs++] = (struct place){i, k};
	return true;
}

/* In a process of the pool. */
static bool work_on(void *context, const struct skep_process_pool_job *job, void **ret, uint64_t *ret_count)
{
	struct course *c = context;
	struct skep_published_experiment *e = &c->experiment[c->job[job->number].experiment];
	struct skep_published_run *run = &e->run[c->job[job->number].run];
	struct reply *reply = calloc(1, sizeof *reply);
	if (reply == NULL)
		return false;
	skep_published_measure(e, run);
	reply->value = run->value;
	reply->error = run->error;
	memcpy(reply->failure, run->failure, sizeof reply->failure);
	*ret = reply;
	*ret_count = sizeof *reply;
	return true;
}

static bool hear(struct course *c, const struct skep_process_pool_answer *answer)
{
	const struct reply *reply = answer->bytes;
	const struct place *place = &c->job[answer->job.number];
	struct skep_published_run *run = &c->experiment[place->experiment].run[place->run];
	run->value = reply->value;
	run->error = reply->error;
	memcpy(run->failure, reply->failure, sizeof run->failure);
	if (!run->error.set)
		return true;
	c->status = skep_report_diag(STATUS_BAD_INPUT, &run->error);
	fprintf(stderr, "skep: of %s\n", c->experiment[place->experiment].path);
	return false;
}

static bool hear_all(
	struct course *c, struct skep_process_pool *pool, uint32_t processes, struct skep_progress *progress)
{
	uint32_t given = 0, done = 0;
	while (done < c->jobs) {
		struct skep_process_pool_answer answer = {0};
		bool good = true;
		while (good && given < c->jobs && skep_process_pool_busy(pool) < processes) {
			const struct skep_process_pool_job job = {.kind = 1, .number = given++};
			good = skep_process_pool_give(pool, &job);
		}
		enum skep_process_pool_event event =
			good ? skep_process_pool_wait(pool, -1, &answer) : SKEP_PROCESS_POOL_DEATH;
		if (event == SKEP_PROCESS_POOL_SIGNAL) {
			fprintf(stderr, "skep: ended by SIG%s before all was simulated\n", sigabbrev_np(answer.number));
			c->status = (enum status)(STATUS_SIGNAL + answer.number);
			return false;
		}
		if (event == SKEP_PROCESS_POOL_DEATH)
			return complain(c, STATUS_FAILED, "a process that simulates has ended before its run");
		if (event != SKEP_PROCESS_POOL_ANSWER)
			continue;
		good = hear(c, &answer);
		free(answer.bytes);
		if (!good)
			return false;
		skep_progress_show(progress, ++done, 0, c->jobs, skep_process_pool_busy(pool));
	}
	return true;
}

static bool run_all(struct course *c)
{
	struct skep_diag error = {0};
	struct skep_quit_before before;
	uint32_t cores = c->request->jobs > 0 ? c->request->jobs : skep_thread_pool_cores();
	uint32_t processes = cores < c->jobs ? cores : c->jobs;
	bool bar = !c->request->quiet && !c->request->json && skep_say_draws();
	struct skep_progress progress = skep_progress_begin("published", bar);
	skep_quit_block(&before);
	struct skep_process_pool *pool = skep_process_pool_create(processes, work_on, c, &error);
	bool good = pool != NULL && hear_all(c, pool, processes, &progress);
	skep_process_pool_destroy(pool);
	skep_quit_restore(&before);
	skep_progress_end(&progress);
	if (pool == NULL)
		c->status = skep_report_diag(STATUS_FAILED, &error);
	for (uint32_t i = 0; good && i < c->experiments; i++)
		if (c->experiment[i].wanted)
			skep_published_settle(&c->experiment[i]);
	return good;
}

/* ---- what is shown --------------------------------------------------------------------------------------------------- */

static bool write_page(struct course *c)
{
	FILE *file = fopen(c->request->output, "we");
	bool good = file != NULL;
	if (good)
		skep_published_print_page(c->experiment, c->experiments, file);
	good = good && !ferror(file);
	if (file != NULL && fclose(file) != 0)
		good = false;
	if (!good) {
		fprintf(stderr, "skep: %s: %s\n", c->request->output, strerror(errno));
		c->status = STATUS_BAD_INPUT;
	} else if (!c->request->quiet) {
		skep_say("wrote %s\n", c->request->output);
	}
	return good;
}

static bool any_failed(const struct course *c)
{
	for (uint32_t i = 0; i < c->jobs; i++)
		if (c->experiment[c->job[i].experiment].run[c->job[i].run].failure[0] != '\0')
			return true;
	return false;
}

static void show(struct course *c)
{
	if (c->request->output != NULL && !write_page(c))
		return;
	if (c->request->json)
		skep_published_print_json(c->experiment, c->experiments, stdout);
	else if (c->request->output == NULL)
		skep_published_print(c->experiment, c->experiments, stdout);
	if (any_failed(c))
		c->status = STATUS_FAILED;
}

static void list(const struct course *c)
{
	if (c->request->json)
		skep_published_print_list_json(c->experiment, c->experiments, stdout);
	else
		skep_published_print_list(c->experiment, c->experiments, stdout);
}

enum status skep_published(const struct skep_published_request *request)
{
	struct course c = {.request = request, .status = STATUS_DONE};
	bool good = read_tables(&c) && choose(&c);
	if (good && request->list) {
		list(&c);
	} else if (good && list_jobs(&c)) {
		tell_left_out(&c);
		if (run_all(&c))
			show(&c);
	}
	for (uint32_t i = 0; i < c.experiments; i++)
		skep_published_finish(&c.experiment[i]);
	free(c.experiment);
	free(c.job);
	return c.status;
}
