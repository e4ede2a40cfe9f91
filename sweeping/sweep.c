/* SPDX-License-Identifier: Apache-2.0
 *
 * sweep.c - see sweep.h.
 *
 * It goes in three steps. All combinations are read and checked, by all processes, so that nothing starts before everything
 * can; each gets its identity (combination.c). The database is asked which of them are there. The others are simulated in
 * processes of their own, hand their run over as the image of a database in memory, and this process, the only one that
 * writes, puts it into the file in one transaction (analysis/store/store_sweep.c).
 *
 * Keeps true: a combination has one run in the database, whole, or none; a process that dies, or a run that cannot be written,
 * costs that combination alone, is said, and makes the exit status 1; the same words again do what is missing.
 */
#include "sweeping/sweep.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "analysis/store/store_sweep.h"
#include "analysis/summary/progress.h"
#include "analysis/summary/sweep_table.h"
#include "base/files/data.h"
#include "base/options.h"
#include "base/process/thread_pool.h"
#include "exec/exec.h"
#include "sweeping/combination.h"
#include "sweeping/farm.h"
#include "sweeping/lengths.h"

#define NAME_BYTES 512
#define LOCKED_MOST 1200 /* tries of half a second each while another program keeps the database locked */
#define LOCKED_SAY 120

struct course { /* of a sweep: what rank 0 knows */
	const struct skep_sweep_request *request;
	struct skep_sweep sweep;
	struct skep_sweep_farm *farm;
	struct skep_store *store;
	struct skep_progress progress;
	uint32_t combinations, next; /* the first that was not handed out */
	uint64_t *seed, *identity;   /* [combinations] */
	int64_t *run;                /* [combinations]; 0: not there */
	int64_t id;                  /* of the sweep */
	char name[64];               /* of the scenario */
	char shipped[512];           /* where it is, if it comes with the program */
	uint64_t memory_bytes;       /* of the largest run, as far as is known */
	uint64_t memory_there;       /* on this host when it began; 0: not known */
	uint32_t jobs, fitting;      /* processes here; as many runs as memory has room for, if fewer */
	struct skep_sweep_left left[SKEP_SWEEP_LEFT_MAX];
	uint32_t lefts;
	uint32_t before, there, failed;
	struct skep_sweep_lengths lengths;
	uint32_t wrong;         /* the first combination that cannot be, or `combinations` */
	struct skep_diag error; /* of that */
	uint32_t unlucky;       /* the first combination whose run failed, of those that ran now, or `combinations` */
	char failure[200];      /* why that one did */
	int signal;             /* that ends it; 0: none */
};

static bool complain(const char *message)
{
	fprintf(stderr, "skep: %s\n", message);
	return false;
}

static bool no_memory(void)
{
	return complain("not enough memory for so many combinations");
}

/* A line among the bars. */
static void clear(struct course *c)
{
	skep_progress_end(&c->progress);
}

/* ---- what was asked for ------------------------------------------------------------------------------------------ */

static bool set_and_varied(const struct skep_sweep_request *request, const struct skep_vary *vary)
{
	for (uint32_t i = 0; i < request->sets; i++)
		for (uint32_t k = 0; k < vary->keys; k++) {
			const char *set = request->set[i], *key = vary->key[k].key;
			size_t length = strlen(key);
			if (strncmp(set, key, length) != 0 || set[length] != '=')
				continue;
			fprintf(stderr, "skep: both --set and --vary give %s: take one of them\n", key);
			return true;
		}
	return false;
}

static bool read_words(const struct skep_sweep_request *request, struct skep_vary *ret)
{
	struct skep_diag error = {0};
	for (uint32_t i = 0; i < request->varies; i++)
		if (!skep_vary_add(ret, request->vary[i], &error))
			return complain(error.message);
	if (request->seeds && request->has_seed)
		return complain("both --seed and --seeds are given: take one of them");
	if (request->seeds && !skep_vary_add_seeds(ret, request->seeds, &error))
		return complain(error.message);
	if (ret->keys == 0 && ret->seeds == 0)
		return complain("sweep needs something to vary: --vary KEY=A,B,C, or --seeds 1..10");
	if (!skep_vary_check(ret, &error))
		return complain(error.message);
	return !set_and_varied(request, ret);
}

static bool read_text(struct skep_sweep *sweep)
{
	struct skep_diag diag = {0};
	bool read = skep_file_read(sweep->path, SKEP_FILE_BYTES_MAX, &sweep->text, &sweep->text_bytes, &diag);
	if (!read)
		skep_report_diag(STATUS_BAD_INPUT, &diag);
	return read;
}

static bool prepare(struct course *c, const struct skep_sweep_request *request)
{
	c->request = request;
	c->sweep.request = request;
	c->sweep.path = skep_data_or(request->path, c->shipped, sizeof c->shipped);
	if (!read_words(request, &c->sweep.vary) || !read_text(&c->sweep))
		return false;
	c->combinations = c->wrong = c->unlucky = skep_vary_combinations(&c->sweep.vary);
	c->seed = calloc(c->combinations, sizeof *c->seed);
	c->identity = calloc(c->combinations, sizeof *c->identity);
	c->run = calloc(c->combinations, sizeof *c->run);
	return (c->seed != NULL && c->identity != NULL && c->run != NULL) || no_memory();
}

static void finish(struct course *c)
{
	skep_store_close(c->store);
	skep_vary_finish(&c->sweep.vary);
	free(c->sweep.text);
	free(c->seed);
	free(c->identity);
	free(c->run);
}

/* Of the ranks of a host each is one. */
static uint32_t usual_jobs(void)
{
	return skep_exec_launched() ? 1 : skep_thread_pool_cores();
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* Bytes that this host could give; 0: not known. */
static uint64_t memory_there(void)
{
	char line[128];
	unsigned long long kib = 0;
	FILE *file = fopen("/proc/meminfo", "re");
	while (file != NULL && fgets(line, sizeof line, file) && sscanf(line, "MemAvailable: %llu kB", &kib) != 1)
		;
	if (file != NULL)
		fclose(file);
	return (uint64_t)kib << 10;
}

/* A run takes so much. What was asked for is done, with a warning; what was not is made to fit. */
static void fit_memory(struct course *c, uint64_t bytes)
{
	if (bytes <= c->memory_bytes || c->memory_there == 0)
		return;
	c->memory_bytes = bytes;
	uint64_t fit = c->memory_there / bytes;
	if (fit >= c->fitting)
		return;
	clear(c);
	fprintf(stderr, "skep: a run of this sweep takes %.3g GB, and %.3g GB were free: %u at a time fit",
		(double)bytes / 1e9, (double)c->memory_there / 1e9, (uint32_t)fit);
	if (c->request->jobs > 0)
		fprintf(stderr, ", and --jobs says %u\n", c->jobs);
	else
		fprintf(stderr, ", so there will be no more than %u\n", fit > 0 ? (uint32_t)fit : 1);
	c->fitting = (uint32_t)fit;
	if (c->request->jobs == 0)
		skep_sweep_farm_limit(c->farm, fit > 0 ? c->fitting : 1);
}

/* ---- jobs -------------------------------------------------------------------------------------------------------- */

static void show(struct course *c, uint32_t done)
{
	skep_progress_show(&c->progress, done, c->before, c->combinations, skep_sweep_farm_busy(c->farm));
}

/* Why a process ended that should have answered. */
static struct skep_diag explain_death(const struct skep_process_pool_answer *death)
{
	struct skep_diag why = {0};
	if (death->pid == 0)
		skep_fail(&why, "no process can be started for it, or its rank has died");
	else if (WIFSIGNALED(death->number))
		skep_fail(&why, "process %u was ended by SIG%s%s", death->pid, sigabbrev_np(WTERMSIG(death->number)),
			WTERMSIG(death->number) == SIGKILL ? ", by hand or because memory was short" : "");
	else
		skep_fail(&why, "process %u ended before its run (status %d)", death->pid, WEXITSTATUS(death->number));
	return why;
}

static void fail_combination(struct course *c, uint32_t number, const struct skep_diag *why)
{
	char name[NAME_BYTES];
	skep_vary_name(&c->sweep.vary, number, name, sizeof name);
	clear(c);
	fprintf(stderr, "skep: combination %u of %u failed: %s\n", number + 1, c->combinations, name);
	skep_report_diag(STATUS_FAILED, why);
	c->failed++;
}

/* To every process that is idle. False: there is no process for the job that *ret_failed names. */
static bool hand_out(struct course *c, uint32_t kind, struct skep_process_pool_job *ret_failed)
{
	while (c->signal == 0 && c->wrong == c->combinations && c->next < c->combinations &&
		skep_sweep_farm_idle(c->farm)) {
		const struct skep_process_pool_job job = {kind, c->next, c->identity[c->next]};
		c->next++;
		*ret_failed = job;
		if (c->run[job.number] == 0 && !skep_sweep_farm_give(c->farm, &job))
			return false;
	}
	return true;
}

/* Hands out what there is, and waits for something. False: nothing is left to wait for. A process that has answered
 * gets its next job before the answer is looked at, which may take a while. */
static bool turn(
	struct course *c, uint32_t kind, struct skep_process_pool_answer *ret, enum skep_process_pool_event *ret_event)
{
	struct skep_process_pool_job failed;
	if (!hand_out(c, kind, &failed)) {
		*ret = (struct skep_process_pool_answer){.job = failed};
		*ret_event = SKEP_PROCESS_POOL_DEATH;
		return true;
	}
	if (c->signal != 0 || skep_sweep_farm_busy(c->farm) == 0)
		return false;
	*ret_event = skep_sweep_farm_wait(c->farm, ret);
	if (*ret_event == SKEP_PROCESS_POOL_SIGNAL)
		c->signal = ret->number;
	if (*ret_event == SKEP_PROCESS_POOL_ANSWER && !hand_out(c, kind, &failed))
		c->next = failed.number; /* once more, in the next turn */
	return true;
}

/* ---- first: check all -------------------------------------------------------------------------------------------- */

static void refuse(struct course *c, uint32_t number, const struct skep_diag *why)
{
	if (number > c->wrong)
		return;
	c->wrong = number;
	c->error = *why;
}

/* Those of one law and quantity are one; of very many laws some are left out. */
static struct skep_sweep_left *left_of(struct course *c, const struct skep_sweep_reply *r, uint32_t quantity)
{
	uint32_t i = 0;
	while (i < c->lefts && (c->left[i].quantity != quantity || strcmp(c->left[i].law, r->law) != 0))
		i++;
	if (i == SKEP_SWEEP_LEFT_MAX)
		return NULL;
	struct skep_sweep_left *l = &c->left[i];
	if (i < c->lefts)
		return l;
	c->lefts++;
	*l = (struct skep_sweep_left){.quantity = quantity, .asked = {r->asked[quantity], r->asked[quantity]}};
	memcpy(l->law, r->law, sizeof l->law);
	memcpy(l->model, r->law_model, sizeof l->model);
	memcpy(l->fitted, r->fitted[quantity], sizeof l->fitted);
	return l;
}

static void hear_law(struct course *c, const struct skep_sweep_reply *r)
{
	for (uint32_t i = 0; i < SKEP_SWEEP_QUANTITIES; i++) {
		struct skep_sweep_left *l = r->leaves >> i & 1 ? left_of(c, r, i) : NULL;
		if (!l)
			continue;
		l->runs++;
		l->asked[0] = fmin(l->asked[0], r->asked[i]);
		l->asked[1] = fmax(l->asked[1], r->asked[i]);
	}
}

static void hear_check(struct course *c, const struct skep_process_pool_answer *answer)
{
	const struct skep_sweep_reply *reply = answer->bytes;
	uint32_t number = answer->job.number;
	if (!reply->ok) {
		refuse(c, number, &reply->error);
		return;
	}
	c->identity[number] = reply->identity;
	c->seed[number] = reply->seed;
	fit_memory(c, reply->memory_bytes);
	hear_law(c, reply);
	skep_sweep_lengths_hear(&c->lengths, reply);
	if (number == 0)
		memcpy(c->name, reply->name, sizeof c->name);
}

static void check_all(struct course *c)
{
	struct skep_process_pool_answer answer;
	enum skep_process_pool_event event;
	struct skep_diag why = {0};
	uint32_t checked = 0;
	while (turn(c, SKEP_SWEEP_CHECK, &answer, &event)) {
		checked += event == SKEP_PROCESS_POOL_ANSWER;
		if (event == SKEP_PROCESS_POOL_ANSWER) {
			hear_check(c, &answer);
		} else if (event == SKEP_PROCESS_POOL_DEATH) {
			why = explain_death(&answer);
			refuse(c, answer.job.number, &why);
		}
		free(answer.bytes);
		show(c, checked);
	}
	clear(c);
}

struct place {
	uint64_t identity;
	uint32_t number;
};

static int compare_places(const void *a, const void *b)
{
	const struct place *first = a, *second = b;
	if (first->identity != second->identity)
		return first->identity < second->identity ? -1 : 1;
	return (first->number > second->number) - (first->number < second->number);
}

/* Two combinations that come to the same run: a later key replaces what an earlier one has set. */
static bool all_differ(struct course *c)
{
	char first[NAME_BYTES], second[NAME_BYTES];
	struct place *place = malloc(c->combinations * sizeof *place);
	bool differ = true;
	if (place == NULL)
		return no_memory();
	for (uint32_t i = 0; i < c->combinations; i++)
		place[i] = (struct place){c->identity[i], i};
	qsort(place, c->combinations, sizeof *place, compare_places);
	for (uint32_t i = 0; differ && i + 1 < c->combinations; i++)
		if (place[i].identity == place[i + 1].identity) {
			skep_vary_name(&c->sweep.vary, place[i].number, first, sizeof first);
			skep_vary_name(&c->sweep.vary, place[i + 1].number, second, sizeof second);
			fprintf(stderr, "skep: these two are the same run: %s; and %s\n", first, second);
			differ = false;
		}
	free(place);
	return differ;
}

static enum status check_combinations(struct course *c)
{
	char name[NAME_BYTES];
	bool bar = !c->request->quiet && !c->request->json && skep_say_draws();
	c->progress = skep_progress_begin("check", bar);
	check_all(c);
	if (c->signal != 0) {
		fprintf(stderr, "skep: ended by SIG%s before anything was simulated\n", sigabbrev_np(c->signal));
		return (enum status)(STATUS_SIGNAL + c->signal);
	}
	if (c->wrong == c->combinations) {
		if (!c->request->quiet)
			skep_sweep_lengths_warn(&c->lengths, stderr);
		return all_differ(c) ? STATUS_DONE : STATUS_BAD_INPUT;
	}
	skep_vary_name(&c->sweep.vary, c->wrong, name, sizeof name);
	skep_report_diag(STATUS_BAD_INPUT, &c->error);
	if (skep_sweep_fails_alone(&c->sweep, &c->error))
		fprintf(stderr, "skep: nothing was simulated: the scenario is wrong whatever --vary makes of it\n");
	else
		fprintf(stderr, "skep: nothing was simulated: combination %u of %u cannot be: %s\n", c->wrong + 1,
			c->combinations, name);
	return STATUS_BAD_INPUT;
}

/* ---- then: run those that are not there -------------------------------------------------------------------------- */

/* Waits for a database that another program has locked, and says so; not once a signal came. */
static enum skep_sweep_put put_patiently(
	struct course *c, const struct skep_process_pool_answer *answer, int64_t *ret_run, struct skep_diag *reterr)
{
	const size_t head = sizeof(struct skep_sweep_reply);
	uint32_t tries = 0;
	for (;;) {
		*reterr = (struct skep_diag){0};
		enum skep_sweep_put put = skep_sweep_put(c->store, c->identity[answer->job.number],
			(const char *)answer->bytes + head, answer->count - head, ret_run, reterr);
		if (put != SKEP_SWEEP_PUT_LOCKED || ++tries == LOCKED_MOST)
			return put;
		c->signal = skep_sweep_farm_signal(c->farm);
		if (c->signal != 0)
			return put;
		if (tries % LOCKED_SAY != 2)
			continue;
		clear(c);
		fprintf(stderr, "skep: %s is locked by another program: the sweep waits until it is free\n",
			c->request->db);
	}
}

static void tell(struct course *c, uint32_t number, const struct skep_sweep_reply *reply)
{
	char name[NAME_BYTES];
	if (c->progress.visible || c->request->quiet)
		return;
	skep_vary_name(&c->sweep.vary, number, name, sizeof name);
	fprintf(stderr, "%u of %u: %s: ", c->there, c->combinations, name);
	if (!reply->done)
		fprintf(stderr, "FAILED after ");
	else if (isfinite(reply->throughput))
		fprintf(stderr, "%.5g samples/s, ", reply->throughput);
	fprintf(stderr, "%.5g s", reply->time_s);
	if (isfinite(reply->loss))
		fprintf(stderr, ", loss %.4g", reply->loss);
	fputc('\n', stderr);
}

/* The first one stands for all, whichever ended first. */
static void note_failure(struct course *c, uint32_t number, const struct skep_sweep_reply *reply)
{
	if (reply->done || number >= c->unlucky)
		return;
	c->unlucky = number;
	snprintf(c->failure, sizeof c->failure, "%s", reply->failure);
}

static void say_failed(const struct course *c, uint32_t failed)
{
	char name[NAME_BYTES];
	const char *s = failed > 1 ? "s" : "", *first = failed > 1 ? "; the first: " : ": ";
	if (c->unlucky == c->combinations) {
		skep_say("skep: %u run%s failed in an earlier sweep: `skep runs list` shows them\n", failed, s);
		return;
	}
	skep_vary_name(&c->sweep.vary, c->unlucky, name, sizeof name);
	skep_say("skep: %u run%s failed%s%s: %s\n", failed, s, first, name, c->failure);
}

static void hear_run(struct course *c, const struct skep_process_pool_answer *answer)
{
	const struct skep_sweep_reply *reply = answer->bytes;
	uint32_t number = answer->job.number;
	struct skep_diag error = {0};
	if (!reply->ok) {
		fail_combination(c, number, &reply->error);
		return;
	}
	fit_memory(c, reply->memory_bytes);
	if (put_patiently(c, answer, &c->run[number], &error) == SKEP_SWEEP_PUT_DONE) {
		c->there++;
		note_failure(c, number, reply);
		tell(c, number, reply);
	} else if (c->signal == 0) {
		c->run[number] = 0;
		fail_combination(c, number, &error);
	}
}

static void run_all(struct course *c)
{
	struct skep_process_pool_answer answer;
	enum skep_process_pool_event event;
	struct skep_diag why = {0};
	c->next = 0;
	while (turn(c, SKEP_SWEEP_RUN, &answer, &event)) {
		if (event == SKEP_PROCESS_POOL_ANSWER) {
			hear_run(c, &answer);
		} else if (event == SKEP_PROCESS_POOL_DEATH) {
			why = explain_death(&answer);
			fail_combination(c, answer.job.number, &why);
		}
		free(answer.bytes);
		show(c, c->there);
	}
	clear(c);
}

static bool open_database(struct course *c)
{
	struct skep_diag error = {0};
	const struct skep_sweep_words words = {.scenario = c->name,
		.path = c->sweep.path,
		.vary = &c->sweep.vary,
		.seed = c->seed,
		.identity = c->identity};
	c->store = skep_store_open(c->request->db, true, &error);
	if (c->store == NULL || !skep_sweep_begin(c->store, &words, &c->id, c->run, &error))
		return complain(error.message);
	for (uint32_t i = 0; i < c->combinations; i++)
		c->before += c->run[i] != 0;
	c->there = c->before;
	if (c->before > 0 && !c->request->quiet)
		fprintf(stderr, "skep: %u of %u are there\n", c->before, c->combinations);
	return true;
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

static enum status print_table(struct course *c)
{
	struct skep_sweep_table table;
	struct skep_diag error = {0};
	if (!skep_sweep_table_read(c->store, c->id, &table, &error)) {
		complain(error.message);
		return STATUS_FAILED;
	}
	table.left = c->left;
	table.lefts = c->lefts;
	if (c->request->json)
		skep_sweep_table_print_json(&table, stdout);
	else
		skep_sweep_table_print(&table, stdout);
	bool all = table.done == table.wanted;
	if (table.failed > 0)
		say_failed(c, table.failed);
	skep_sweep_table_finish(&table);
	return all ? STATUS_DONE : STATUS_FAILED;
}

static enum status run_combinations(struct course *c)
{
	uint32_t left = c->combinations - c->before;
	c->progress = skep_progress_begin("sweep", c->progress.visible);
	if (left > 0)
		run_all(c);
	if (c->signal != 0) {
		fprintf(stderr,
			"skep: ended by SIG%s: %u of %u runs are in %s; the same command again does the others\n",
			sigabbrev_np(c->signal), c->there, c->combinations, c->request->db);
		return (enum status)(STATUS_SIGNAL + c->signal);
	}
	if (c->failed > 0)
		fprintf(stderr, "skep: %u of %u combinations are not there; the same command again tries them anew\n",
			c->combinations - c->there, c->combinations);
	return print_table(c);
}

static enum status direct(struct course *c)
{
	enum status status = check_combinations(c);
	if (status != STATUS_DONE)
		return status;
	if (!open_database(c))
		return STATUS_BAD_INPUT;
	return run_combinations(c);
}

/* Rank 0 hands out jobs; another rank does them. */
static enum status work_together(struct course *c)
{
	bool clean;
	enum status status;
	if (skep_sweep_farm_rank(c->farm) == 0) {
		status = direct(c);
		clean = c->signal == 0;
	} else {
		clean = skep_sweep_farm_serve(c->farm);
		status = clean ? STATUS_DONE : STATUS_FAILED;
	}
	skep_sweep_farm_destroy(c->farm, clean, (int)status);
	return status;
}

enum status skep_sweep(const struct skep_sweep_request *request)
{
	struct course c = {0};
	enum status status = STATUS_BAD_INPUT;
	struct skep_diag error = {0};
	if (prepare(&c, request)) {
		c.jobs = request->jobs > 0 ? request->jobs : usual_jobs();
		c.jobs = c.fitting = c.jobs < c.combinations ? c.jobs : c.combinations;
		c.memory_there = memory_there();
		c.farm = skep_sweep_farm_create(c.jobs, skep_sweep_work_on, &c.sweep, &error);
		status = c.farm != NULL ? work_together(&c) : skep_report_diag(STATUS_FAILED, &error);
	}
	finish(&c);
	return status;
}
