/* SPDX-License-Identifier: Apache-2.0
 *
 * plot.c - turns a script into a picture file, or says why not.
 *
 * Everything that can be refused is refused before gnuplot starts. The script reaches gnuplot on its standard input and
 * the picture leaves on its standard output, into a pipe: gnuplot does not look whether what it writes arrives, so skep takes
 * all of it and writes it itself, into a file beside the target that is renamed at the end. No name is ever quoted for gnuplot,
 * and a target holds a whole picture or what it held before.
 */
#include "analysis/plot.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analysis/database.h"
#include "analysis/plot_script.h"
#include "scenarios/reader/reader.h"

extern char **environ;

static const struct kind {
	const char *name;
	bool (*write)(struct skep_store *store, const int64_t *run, uint32_t runs, struct skep_picture *picture,
		char *reterr, size_t size);
} KIND[] = {
	{"accuracy", skep_plot_accuracy},
	{"cost", skep_plot_cost},
	{"fit", skep_plot_fit},
	{"matrix", skep_plot_matrix},
	{"pareto", skep_plot_pareto},
	{"sweep", skep_plot_sweep},
	{"throughput", skep_plot_throughput},
	{"timeline", skep_plot_timeline},
	{"utilisation", skep_plot_utilisation},
};

enum format { FORMAT_PNG, FORMAT_SVG, FORMAT_PDF, FORMATS };

static const char *const ENDING[FORMATS] = {".png", ".svg", ".pdf"};

/* ---- shared by the kinds ---------------------------------------------------------------------------------------- */

/* Nothing can be escaped in a single-quoted string of gnuplot but the quote itself, and not everywhere: it becomes the
 * typographic one. */
void skep_script_string(FILE *script, const char *text)
{
	fputc('\'', script);
	for (const char *c = text; *c; c++) {
		if (*c == '\'')
			fputs("\xe2\x80\x99", script);
		else
			fputc((unsigned char)*c < ' ' ? ' ' : *c, script);
	}
	fputc('\'', script);
}

void skep_script_lines(FILE *script, const char *const *line, size_t lines)
{
	for (size_t i = 0; i < lines; i++)
		fputs(line[i], script);
}

const char *skep_plot_colour(uint32_t i)
{
	static const char *const colour[] = {
		"#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000", "#F0E442"};
	return colour[i % (sizeof colour / sizeof colour[0])];
}

bool skep_plot_read_run(struct skep_store *store, int64_t id, struct skep_plot_run *ret, char *reterr, size_t size)
{
	static const char sql[] =
		"SELECT scenario, world, device, printf('%llu', seed), workers, stages, pace, shape,"
		" target_loss, maths, (SELECT count(*) FROM rounds WHERE run = ?1) FROM runs WHERE id = ?1";
	sqlite3_stmt *row = skep_store_query(store, sql, id, 0, reterr, size);
	bool found = row != NULL && skep_store_row(store, row);
	if (found) {
		*ret = (struct skep_plot_run){.id = id};
		snprintf(ret->scenario, sizeof ret->scenario, "%s", skep_column_text(row, 0));
		snprintf(ret->world, sizeof ret->world, "%s", skep_column_text(row, 1));
		snprintf(ret->device, sizeof ret->device, "%s", skep_column_text(row, 2));
		snprintf(ret->seed, sizeof ret->seed, "%s", skep_column_text(row, 3));
		ret->workers = (uint32_t)sqlite3_column_int64(row, 4);
		ret->stages = (uint32_t)sqlite3_column_int64(row, 5);
		ret->pace = sqlite3_column_int(row, 6);
		ret->shape = sqlite3_column_int(row, 7);
		ret->target_loss = skep_column_real(row, 8);
		snprintf(ret->maths, sizeof ret->maths, "%s", skep_column_text(row, 9));
		ret->rounds = (uint32_t)sqlite3_column_int64(row, 10);
	} else if (row != NULL) {
		snprintf(reterr, size, "there is no run %lld in the database", (long long)id);
	}
	sqlite3_finalize(row);
	return found;
}

static bool newest_run(struct skep_store *store, int64_t *ret, char *reterr, size_t size)
{
	static const char sql[] = "SELECT max(CASE WHEN EXISTS (SELECT 1 FROM rounds WHERE run = id) THEN id END),"
				  " count(*) FROM runs WHERE ?1 = 0";
	sqlite3_stmt *row = skep_store_query(store, sql, 0, 0, reterr, size);
	bool read = row != NULL && skep_store_row(store, row);
	*ret = read ? sqlite3_column_int64(row, 0) : 0;
	if (read && *ret == 0)
		snprintf(reterr, size, "the database holds no run%s: `skep sim` and `skep run` make one",
			sqlite3_column_int64(row, 1) > 0 ? " that closed a round" : "");
	else if (row != NULL && !read)
		snprintf(reterr, size, "%s", sqlite3_errmsg(skep_store_database(store)));
	sqlite3_finalize(row);
	return *ret != 0;
}

bool skep_plot_single_run(struct skep_store *store, const int64_t *run, uint32_t runs, struct skep_plot_run *ret,
	char *reterr, size_t size)
{
	int64_t id = runs > 0 ? run[0] : 0;
	if (runs > 1) {
		snprintf(reterr, size, "this picture shows one run, not %u", runs);
		return false;
	}
	if (runs == 0 && !newest_run(store, &id, reterr, size))
		return false;
	return skep_plot_read_run(store, id, ret, reterr, size);
}

/* ---- the target ------------------------------------------------------------------------------------------------- */

static const struct kind *find_kind(const char *name, char *reterr, size_t size)
{
	for (size_t i = 0; i < sizeof KIND / sizeof KIND[0]; i++)
		if (strcmp(KIND[i].name, name) == 0)
			return &KIND[i];
	snprintf(reterr, size,
		"%s: not a kind of plot: take accuracy, complexity, cost, fit, matrix, pareto, search, sweep, "
		"throughput, timeline or utilisation",
		name);
	return NULL;
}

bool skep_plot_knows(const char *kind, char *reterr, size_t size)
{
	return find_kind(kind, reterr, size) != NULL;
}

static bool find_format(const char *target, enum format *ret, char *reterr, size_t size)
{
	size_t length = strlen(target);
	for (int i = 0; i < FORMATS; i++) {
		size_t ending = strlen(ENDING[i]);
		if (length > ending && strcmp(target + length - ending, ENDING[i]) == 0) {
			*ret = (enum format)i;
			return true;
		}
	}
	snprintf(reterr, size, "%s: the ending of the file says which format: .png, .svg or .pdf", target);
	return false;
}

static void folder_of(const char *target, char *ret, size_t size)
{
	const char *slash = strrchr(target, '/');
	if (slash == NULL)
		snprintf(ret, size, ".");
	else
		snprintf(ret, size, "%.*s", slash == target ? 1 : (int)(slash - target), target);
}

static bool check_target(const char *target, char *reterr, size_t size)
{
	char folder[PATH_MAX];
	struct stat st;
	if (strlen(target) >= PATH_MAX - 8) {
		snprintf(reterr, size, "the name of the picture is too long");
		return false;
	}
	folder_of(target, folder, sizeof folder);
	if (stat(target, &st) == 0 && !S_ISREG(st.st_mode))
		snprintf(reterr, size, "%s: %s: name a file", target,
			S_ISDIR(st.st_mode) ? "a folder" : "not a regular file");
	else if (stat(target, &st) == 0 && euidaccess(target, W_OK) != 0)
		snprintf(reterr, size, "%s: cannot be written: %s", target, strerror(errno));
	else if (stat(folder, &st) != 0)
		snprintf(reterr, size, "%s: the folder %s is not there: make it first", target, folder);
	else if (!S_ISDIR(st.st_mode))
		snprintf(reterr, size, "%s: %s is not a folder", target, folder);
	else if (euidaccess(folder, W_OK | X_OK) != 0)
		snprintf(reterr, size, "%s: the folder %s is not writable: %s", target, folder, strerror(errno));
	else
		return true;
	return false;
}

/* ---- gnuplot ---------------------------------------------------------------------------------------------------- */

static void write_terminal(FILE *script, enum format format, const struct skep_picture *picture)
{
	unsigned width = picture->width, height = picture->height;
	fprintf(script, "set encoding utf8\n");
	if (format == FORMAT_PNG)
		fprintf(script, "set terminal pngcairo noenhanced size %u,%u font 'DejaVu Sans,13'\n", width, height);
	else if (format == FORMAT_SVG)
		fprintf(script, "set terminal svg noenhanced size %u,%u font 'DejaVu Sans,16' background 'white'\n",
			width, height);
	else
		fprintf(script,
			"set terminal pdfcairo noenhanced size %.2fin,%.2fin font 'DejaVu Sans,12' fontscale 1\n",
			width / 100.0, height / 100.0);
}

static bool write_script(
	enum format format, skep_picture_write *write, const void *what, FILE *script, char *reterr, size_t size)
{
	char *body = NULL;
	size_t length = 0;
	struct skep_picture picture = {.script = open_memstream(&body, &length), .width = 1200, .height = 800};
	if (picture.script == NULL) {
		snprintf(reterr, size, "no memory for the plot");
		return false;
	}
	bool ok = write(what, &picture, reterr, size);
	bool whole = fclose(picture.script) == 0;
	if (ok && whole) {
		write_terminal(script, format, &picture);
		whole = fwrite(body, 1, length, script) == length && fflush(script) == 0;
	}
	if (ok && !whole)
		snprintf(reterr, size, "no memory for the plot: %s", strerror(errno));
	free(body);
	return ok && whole;
}

/* All that comes out of a pipe; false without memory for it. */
static bool take(int from, FILE *ret)
{
	char part[65536];
	ssize_t length;
	while ((length = read(from, part, sizeof part)) > 0 || (length < 0 && errno == EINTR))
		if (length > 0 && fwrite(part, 1, (size_t)length, ret) != (size_t)length)
			return false;
	return length == 0;
}

/* Returns 0 and how gnuplot ended, or why it could not be started or what it drew not be taken. */
static int run_gnuplot(int script, FILE *picture, int messages, int *ret_status)
{
	char *argv[] = {"gnuplot", NULL};
	posix_spawn_file_actions_t files;
	pid_t pid;
	int end[2];
	if (pipe2(end, O_CLOEXEC) != 0)
		return errno;
	lseek(script, 0, SEEK_SET);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, script, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&files, end[1], STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&files, messages, STDERR_FILENO);
	int rc = posix_spawnp(&pid, "gnuplot", &files, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&files);
	close(end[1]);
	bool taken = rc != 0 || take(end[0], picture);
	close(end[0]);
	while (rc == 0 && waitpid(pid, ret_status, 0) < 0)
		rc = errno == EINTR ? 0 : errno;
	return rc == 0 && !taken ? ENOMEM : rc;
}

/* What gnuplot complained of: the line "line N: ...", else the first one; without its indent. */
static void read_message(int messages, char *ret, size_t size)
{
	char text[2048];
	ssize_t length = pread(messages, text, sizeof text - 1, 0);
	text[length > 0 ? length : 0] = '\0';
	const char *complaint = strstr(text, "line ");
	if (complaint == NULL)
		complaint = text + strspn(text, " \t\n^");
	snprintf(ret, size, "%.*s", (int)strcspn(complaint, "\n"), complaint);
}

/* The caller frees the picture. */
static bool draw(int script, char **ret, size_t *ret_length, char *reterr, size_t size)
{
	char message[512];
	FILE *picture = open_memstream(ret, ret_length);
	int status = 0, messages = picture ? memfd_create("gnuplot-messages", MFD_CLOEXEC) : -1;
	int rc = messages < 0 ? errno : run_gnuplot(script, picture, messages, &status);
	if (picture && fclose(picture) != 0 && rc == 0)
		rc = ENOMEM;
	bool drawn = rc == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 && *ret_length > 0;
	if (rc != 0) {
		snprintf(reterr, size, "gnuplot cannot be started, or what it drew not be kept: %s", strerror(rc));
	} else if (!drawn) {
		read_message(messages, message, sizeof message);
		snprintf(reterr, size, "gnuplot failed: %s",
			message[0] ? message : "it wrote no picture and said nothing");
	}
	if (messages >= 0)
		close(messages);
	return drawn;
}

static bool write_all(int fd, const char *bytes, size_t length)
{
	while (length > 0) {
		ssize_t written = write(fd, bytes, length);
		if (written < 0 && errno != EINTR)
			return false;
		bytes += written > 0 ? written : 0;
		length -= written > 0 ? (size_t)written : 0;
	}
	return true;
}

/* The picture goes into a file beside the target, which takes its place when it is whole and on the disk. */
static bool write_target(const char *bytes, size_t length, const char *target, char *reterr, size_t size)
{
	char name[PATH_MAX];
	snprintf(name, sizeof name, "%s.XXXXXX", target);
	int picture = mkostemp(name, O_CLOEXEC);
	mode_t mask = umask(0);
	umask(mask);
	bool done = picture >= 0 && write_all(picture, bytes, length) && fchmod(picture, 0666 & ~mask) == 0 &&
	            fsync(picture) == 0 && rename(name, target) == 0;
	if (!done)
		snprintf(reterr, size, "%s: cannot be written: %s", target, strerror(errno));
	if (picture >= 0 && !done)
		unlink(name);
	if (picture >= 0)
		close(picture);
	return done;
}

static bool replace_target(int script, const char *target, char *reterr, size_t size)
{
	char *picture = NULL;
	size_t length = 0;
	bool done =
		draw(script, &picture, &length, reterr, size) && write_target(picture, length, target, reterr, size);
	free(picture);
	return done;
}

bool skep_plot_target(const char *target, char *reterr, size_t size)
{
	enum format format;
	return find_format(target, &format, reterr, size) && check_target(target, reterr, size);
}

bool skep_plot_picture(const char *target, skep_picture_write *write, const void *what, char *reterr, size_t size)
{
	enum format format;
	if (!find_format(target, &format, reterr, size) || !check_target(target, reterr, size))
		return false;
	int fd = memfd_create("gnuplot-script", MFD_CLOEXEC);
	FILE *script = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (script == NULL) {
		snprintf(reterr, size, "no memory for the plot: %s", strerror(errno));
		return false;
	}
	bool ok = write_script(format, write, what, script, reterr, size);
	bool there = skep_program_find("gnuplot");
	if (ok && !there)
		snprintf(reterr, size, "gnuplot is not installed: apt-get install gnuplot-nox");
	ok = ok && there && replace_target(fd, target, reterr, size);
	fclose(script);
	return ok;
}

/* ---- of runs ---------------------------------------------------------------------------------------------------- */

bool skep_plot(struct skep_store *store, const char *kind_name, const int64_t *run, uint32_t runs, const char *target,
	const struct skep_plot_rounds *rounds, char *reterr, size_t size)
{
	return skep_plot_metric(store, kind_name, run, runs, target, rounds, NULL, reterr, size);
}

bool skep_plot_metric(struct skep_store *store, const char *kind_name, const int64_t *run, uint32_t runs,
	const char *target, const struct skep_plot_rounds *rounds, const char *metric, char *reterr, size_t size)
{
	const struct skep_plot_choice choice = {.rounds = rounds, .metric = metric};
	return skep_plot_chosen(store, kind_name, run, runs, target, &choice, reterr, size);
}

/* What is asked for is for this kind. */
static bool suits(const char *kind, const struct skep_plot_choice *choice, char *reterr, size_t size)
{
	if (choice->rounds != NULL && strcmp(kind, "timeline") != 0)
		snprintf(reterr, size, "--rounds is for the timeline, not for %s", kind);
	else if (choice->metric != NULL && strcmp(kind, "sweep") != 0 && strcmp(kind, "pareto") != 0)
		snprintf(reterr, size, "--metric is for sweep and pareto, not for %s", kind);
	else if (choice->axes != NULL && strcmp(kind, "accuracy") != 0)
		snprintf(reterr, size, "--x, --y, --log and --validation are for accuracy, not for %s", kind);
	else
		return true;
	return false;
}

struct chosen {
	struct skep_store *store;
	const struct kind *kind;
	const int64_t *run;
	uint32_t runs;
	const struct skep_plot_choice *choice;
};

static bool write_chosen(const void *what, struct skep_picture *picture, char *reterr, size_t size)
{
	const struct chosen *c = what;
	picture->rounds = c->choice->rounds;
	picture->metric = c->choice->metric;
	picture->axes = c->choice->axes;
	bool ok = c->kind->write(c->store, c->run, c->runs, picture, reterr, size);
	return skep_store_read_all(c->store, reterr, size) && ok;
}

bool skep_plot_chosen(struct skep_store *store, const char *kind_name, const int64_t *run, uint32_t runs,
	const char *target, const struct skep_plot_choice *choice, char *reterr, size_t size)
{
	const struct chosen chosen = {store, find_kind(kind_name, reterr, size), run, runs, choice};
	return chosen.kind != NULL && skep_plot_target(target, reterr, size) &&
	       suits(kind_name, choice, reterr, size) && skep_plot_picture(target, write_chosen, &chosen, reterr, size);
}
