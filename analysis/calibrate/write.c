/* SPDX-License-Identifier: Apache-2.0
 *
 * write.c - the folder of a calibration. It is made under a temporary name beside its own, read back as a scenario, and moved
 * into place when it reads as what was to be written; so no folder is left half made. Of a folder that is there already the files
 * are replaced one by one.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/calibrate/calibration.h"
#include "base/files/outputs.h"
#include "base/files/replace.h"
#include "scenarios/read/sources.h"

#define PATH_BYTES 1024
#define NOISE_LEAST 0.005 /* less is that of the clock */

/* ---- may it be written? ------------------------------------------------------------------------------------------ */

static bool is_own(const char *path, struct skep_diag *reterr)
{
	struct skep_diag other = {0};
	struct stat st;
	bool file = stat(path, &st) == 0 && S_ISREG(st.st_mode);
	return (file && skep_replace_written(path, SKEP_CALIBRATION_HEAD, &other)) ||
	       skep_fail(reterr, "%s was not written by skep calibrate: take another folder, or --force", path);
}

/* Nothing but what a calibration writes. */
static bool holds_own(const char *folder, bool top, struct skep_diag *reterr)
{
	char path[PATH_BYTES];
	DIR *open = opendir(folder);
	if (open == NULL)
		return errno == ENOENT || skep_fail(reterr, "%s: %s", folder, strerror(errno));
	bool fine = true;
	for (struct dirent *entry; fine && (entry = readdir(open)) != NULL;) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
		fine = top && strcmp(entry->d_name, "gpus") == 0 ? holds_own(path, false, reterr)
		                                                 : is_own(path, reterr);
	}
	closedir(open);
	return fine;
}

/* What the run was read from stays as it is, whatever is forced. */
static bool keeps_sources(const struct skep_scenario *s, const char *folder, struct skep_diag *reterr)
{
	char here[PATH_BYTES], gpus[PATH_BYTES], of[SKEP_PATH_BYTES];
	snprintf(here, sizeof here, "%s", folder);
	snprintf(gpus, sizeof gpus, "%s/gpus", folder);
	const char *path = s->path;
	for (uint32_t i = 0; path; path = skep_scenario_source(s, i++)) {
		skep_path_folder(path, of, sizeof of);
		if (skep_replace_same(of, here) || skep_replace_same(of, gpus))
			return skep_fail(reterr, "%s: %s, which the run was read from, lies there: take another folder",
				folder, path);
	}
	return true;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

struct files { /* of a calibration, relative to its folder */
	const struct skep_calibration *c;
	const char *folder;
	char temporary[PATH_BYTES];
	struct skep_diag *diag;
};

static FILE *begin(struct files *f, const char *name)
{
	char path[2 * PATH_BYTES];
	snprintf(path, sizeof path, "%s/%s", f->temporary, name);
	FILE *file = f->diag->set ? NULL : fopen(path, "we");
	if (file == NULL && !f->diag->set)
		skep_fail(f->diag, "%s: %s", path, strerror(errno));
	return file;
}

static void end(struct files *f, const char *name, FILE *file)
{
	bool whole = file == NULL || !ferror(file);
	if (file != NULL && (fclose(file) != 0 || !whole))
		skep_fail(f->diag, "%s/%s: %s", f->folder, name, strerror(errno));
}

static void write_gpu(struct files *f, uint32_t gpu)
{
	char name[SKEP_CALIBRATION_NAME_BYTES], path[SKEP_CALIBRATION_NAME_BYTES + 32];
	skep_calibration_gpu_name(f->c, gpu, name);
	snprintf(path, sizeof path, "gpus/%s.yaml", name);
	FILE *file = begin(f, path);
	if (file != NULL)
		skep_calibration_put_profile(f->c, gpu, name, file);
	end(f, path, file);
	snprintf(path, sizeof path, "gpus/%s-stages.csv", name);
	file = begin(f, path);
	if (file != NULL)
		skep_calibration_put_stages(f->c, gpu, file);
	end(f, path, file);
}

static void write_topology(struct files *f)
{
	FILE *file = begin(f, "topology.yaml");
	if (file != NULL)
		skep_calibration_put_topology(f->c, file);
	end(f, "topology.yaml", file);
}

/* ---- the scenario ------------------------------------------------------------------------------------------------ */

/* The largest of the GPUs', as far as a scenario can have it; 0: none worth a word. */
static double noise_of(const struct skep_calibration *c)
{
	double noise = 0;
	for (uint32_t i = 0; i < c->scenario->topology.gpus; i++)
		noise = fmax(noise, c->gpu[i].noise);
	return noise < NOISE_LEAST ? 0 : fmin(noise, SKEP_COMPUTE_NOISE_MAX);
}

#define SETS 8
#define SET_BYTES (PATH_BYTES + 64)

struct sets {
	char text[SETS][SET_BYTES];
	const char *set[SETS];
	uint32_t count;
};

static void set(struct sets *s, const char *key, const char *value)
{
	snprintf(s->text[s->count], SET_BYTES, "%s=%s", key, value);
	s->set[s->count] = s->text[s->count];
	s->count++;
}

/* A file that is not found by its name from the folder is named by its whole path. */
static void set_path(struct sets *s, const char *key, const char *path)
{
	char *whole = path[0] ? realpath(path, NULL) : NULL;
	if (whole != NULL)
		set(s, key, whole);
	free(whole);
}

static void set_calibrated(const struct skep_calibration *c, struct sets *s)
{
	char noise[32];
	set(s, "cluster.topology", "topology.yaml");
	set(s, "cluster.compute.predictor", "table");
	snprintf(noise, sizeof noise, "%.4g", noise_of(c));
	if (fabs(c->scenario->bandwidth_scale - 1) > 0)
		set(s, "cluster.bandwidth_scale", "1"); /* it is in the links */
	if (c->scenario->extra_latency_s > 0)
		set(s, "cluster.extra_latency", "0 s");
	if (noise_of(c) > 0 || c->scenario->compute.noise > 0)
		set(s, "cluster.compute.noise", noise);
}

static bool read_from(const char *path, const struct skep_scenario *s, const struct sets *sets,
	struct skep_scenario *ret, struct skep_diag *reterr)
{
	struct skep_scenario_options options = {.set = sets->set, .sets = sets->count, .any_memory = true};
	return skep_scenario_read_text(path, s->text, strlen(s->text), &options, ret, reterr);
}

static void set_paths(const struct skep_scenario *s, struct sets *sets)
{
	set_path(sets, "model.file", s->model.path);
	set_path(sets, "train.data.file", s->data_path);
	set_path(sets, "train.init.weights", s->weights_path);
	if (s->has_trace)
		set_path(sets, "cluster.trace.file", s->trace_path);
}

static bool near(double a, double b)
{
	return isinf(a) ? isinf(b) || b >= 1e15 : fabs(a - b) <= 1e-6 * fmax(fabs(a), fabs(b)) + 1e-12;
}

/* What was written says what it was to say. */
static bool same_topology(const struct files *f, const struct skep_scenario *again)
{
	const struct skep_topology *t = &f->c->scenario->topology, *u = &again->topology;
	bool same = t->machines == u->machines && t->places == u->places;
	for (uint32_t i = 0; same && i <= t->machines; i++)
		same = t->machine[i].place == u->machine[i].place &&
		       (i == t->machines ||
			       strcmp(t->gpu[t->machine[i].gpu].name, u->gpu[u->machine[i].gpu].name) == 0);
	for (uint32_t i = 0; same && i < t->places * t->places; i++) {
		const struct skep_link_figures *link = &f->c->link[i];
		same = near(skep_figure_value(&link->bandwidth), u->pair[i].capacity_Bps) &&
		       near(skep_calibration_latency_s(f->c, link), u->pair[i].latency_s);
	}
	return same;
}

static void put_scenario(struct files *f, const struct skep_scenario *again)
{
	FILE *file = begin(f, "scenario.yaml");
	if (file != NULL) {
		skep_calibration_put_head(f->c, file);
		fputs("# The run's own, with topology.yaml, times of passes from tables, and the noise of these times.\n",
			file);
		fputs(again->text, file);
	}
	end(f, "scenario.yaml", file);
}

static void write_scenario(struct files *f)
{
	struct sets *sets = calloc(1, sizeof *sets);
	struct skep_scenario again = {0};
	struct skep_diag first = {0};
	char path[PATH_BYTES + 32];
	if (sets == NULL || f->diag->set) {
		free(sets);
		return;
	}
	snprintf(path, sizeof path, "%s/scenario.yaml", f->temporary);
	set_calibrated(f->c, sets);
	bool read = read_from(path, f->c->scenario, sets, &again, &first);
	if (!read) {
		set_paths(f->c->scenario, sets);
		read = read_from(path, f->c->scenario, sets, &again, f->diag);
	}
	if (read && !same_topology(f, &again))
		skep_fail(f->diag,
			"this topology cannot be written: machines of a place do not follow each other in its file, or it has "
			"links that sites do not have");
	if (read && !f->diag->set)
		put_scenario(f, &again);
	skep_scenario_finish(&again);
	free(sets);
}

/* ---- into place -------------------------------------------------------------------------------------------------- */

/* Removes what was made, or moves it: `to` NULL or a folder that is there. */
static void empty_folder(const char *from, const char *to, struct skep_diag *reterr)
{
	char path[2 * PATH_BYTES], target[2 * PATH_BYTES];
	DIR *open = opendir(from);
	for (struct dirent *entry; open != NULL && (entry = readdir(open)) != NULL;) {
		if (entry->d_type == DT_DIR)
			continue;
		snprintf(path, sizeof path, "%s/%s", from, entry->d_name);
		snprintf(target, sizeof target, "%s/%s", to ? to : "", entry->d_name);
		if (to == NULL)
			unlink(path);
		else if (rename(path, target) != 0)
			skep_fail(reterr, "%s: %s", target, strerror(errno));
	}
	if (open != NULL)
		closedir(open);
}

static void remove_temporary(const char *temporary)
{
	char gpus[PATH_BYTES + 8];
	struct skep_diag ignored = {0};
	snprintf(gpus, sizeof gpus, "%s/gpus", temporary);
	empty_folder(gpus, NULL, &ignored);
	rmdir(gpus);
	empty_folder(temporary, NULL, &ignored);
	rmdir(temporary);
}

static void install(struct files *f)
{
	char from[PATH_BYTES + 8], to[PATH_BYTES + 8];
	if (rename(f->temporary, f->folder) == 0) /* nothing is there, or an empty folder */
		return;
	snprintf(from, sizeof from, "%s/gpus", f->temporary);
	snprintf(to, sizeof to, "%s/gpus", f->folder);
	if (mkdir(to, 0777) != 0 && errno != EEXIST)
		skep_fail(f->diag, "%s: %s", to, strerror(errno));
	if (!f->diag->set)
		empty_folder(from, to, f->diag);
	if (!f->diag->set)
		empty_folder(f->temporary, f->folder, f->diag);
	remove_temporary(f->temporary);
}

static bool begin_folder(struct files *f)
{
	char gpus[PATH_BYTES + 8];
	size_t length = strlen(f->folder);
	while (length > 1 && f->folder[length - 1] == '/')
		length--;
	if (length == 0 || length > PATH_BYTES - 64)
		return skep_fail(f->diag, "-o: expected the name of a folder");
	snprintf(f->temporary, sizeof f->temporary, "%.*s.XXXXXX", (int)length, f->folder);
	if (mkdtemp(f->temporary) == NULL)
		return skep_fail(f->diag, "%s: cannot be made: %s", f->folder, strerror(errno));
	snprintf(gpus, sizeof gpus, "%s/gpus", f->temporary);
	if (mkdir(gpus, 0777) == 0 && chmod(f->temporary, 0755) == 0)
		return true;
	rmdir(f->temporary);
	return skep_fail(f->diag, "%s: cannot be made: %s", f->folder, strerror(errno));
}

bool skep_calibration_write(const struct skep_calibration *c, const char *folder, bool force, struct skep_diag *reterr)
{
	struct files f = {.c = c, .folder = folder, .diag = reterr};
	if (!keeps_sources(c->scenario, folder, reterr) || (!force && !holds_own(folder, true, reterr)) ||
		!begin_folder(&f))
		return false;
	for (uint32_t gpu = 0; gpu < c->topology.gpus; gpu++)
		write_gpu(&f, gpu);
	write_topology(&f);
	write_scenario(&f);
	if (reterr->set)
		remove_temporary(f.temporary);
	else
		install(&f);
	return !reterr->set;
}
