/* SPDX-License-Identifier: Apache-2.0
 *
 * plot.c - turns a script into a picture file, or says why not.
 *
 * Everything that can be refused is refused before gnuplot starts. The script reaches gnuplot on its standard input and
 * the picture leaves on its standard output, into a pipe: gnuplot does not look whether what it writes arrives, so skep takes
 * all of it and writes it itself (base/files/outputs.h). No name is ever quoted for gnuplot, and a target holds a whole picture
 * or what it held before.
 */
#include "analysis/plot/plot.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analysis/plot/plot_script.h"
#include "analysis/store/database.h"
#include "base/files/outputs.h"
#include "base/options.h"

extern char **environ;

static const struct kind {
	const char *name;
	skep_plot_kind *write;
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

/* ---- the target ------------------------------------------------------------------------------------------------- */

static const struct kind *find_kind(const char *name, struct skep_diag *reterr)
{
	for (size_t i = 0; i < sizeof KIND / sizeof KIND[0]; i++)
		if (strcmp(KIND[i].name, name) == 0)
			return &KIND[i];
	skep_fail(reterr,
		"%s: not a kind of plot: take accuracy, complexity, cost, fit, gantt, jobs, matrix, pareto, search, sweep, "
		"throughput, timeline or utilisation",
		name);
	return NULL;
}

bool skep_plot_knows(const char *kind, struct skep_diag *reterr)
{
	return find_kind(kind, reterr) != NULL;
}

static bool find_format(const char *target, enum format *ret, struct skep_diag *reterr)
{
	size_t length = strlen(target);
	for (int i = 0; i < FORMATS; i++) {
		size_t ending = strlen(ENDING[i]);
		if (length > ending && strcmp(target + length - ending, ENDING[i]) == 0) {
			*ret = (enum format)i;
			return true;
		}
	}
	return skep_fail(reterr, "%s: the ending of the file says which format: .png, .svg or .pdf", target);
}

static bool check_target(const char *target, struct skep_diag *reterr)
{
	char folder[PATH_MAX];
	struct stat st;
	if (strlen(target) >= PATH_MAX - 8)
		return skep_fail(reterr, "the name of the picture is too long");
	skep_path_folder(target, folder, sizeof folder);
	if (stat(target, &st) == 0 && !S_ISREG(st.st_mode))
		skep_fail(
			reterr, "%s: %s: name a file", target, S_ISDIR(st.st_mode) ? "a folder" : "not a regular file");
	else if (stat(target, &st) == 0 && euidaccess(target, W_OK) != 0)
		skep_fail(reterr, "%s: cannot be written: %s", target, strerror(errno));
	else if (stat(folder, &st) != 0)
		skep_fail(reterr, "%s: the folder %s is not there: make it first", target, folder);
	else if (!S_ISDIR(st.st_mode))
		skep_fail(reterr, "%s: %s is not a folder", target, folder);
	else if (euidaccess(folder, W_OK | X_OK) != 0)
		skep_fail(reterr, "%s: the folder %s is not writable: %s", target, folder, strerror(errno));
	else
		return true;
	return false;
}

/* ---- gnuplot ---------------------------------------------------------------------------------------------------- */

/* Inside of a page the picture has the page's own background. */
static void write_terminal(FILE *script, enum format format, bool inside, const struct skep_picture *picture)
{
	unsigned width = picture->width, height = picture->height;
	fprintf(script, "set encoding utf8\n");
	if (format == FORMAT_PNG)
		fprintf(script, "set terminal pngcairo noenhanced size %u,%u font 'DejaVu Sans,13'\n", width, height);
	else if (format == FORMAT_SVG)
		fprintf(script, "set terminal svg noenhanced size %u,%u font 'DejaVu Sans,16'%s\n", width, height,
			inside ? "" : " background 'white'");
	else
		fprintf(script,
			"set terminal pdfcairo noenhanced size %.2fin,%.2fin font 'DejaVu Sans,12' fontscale 1\n",
			width / 100.0, height / 100.0);
}

static bool write_script(enum format format, bool inside, skep_picture_write *write, const void *what, FILE *script,
	struct skep_diag *reterr)
{
	char *body = NULL;
	size_t length = 0;
	struct skep_picture picture = {.script = open_memstream(&body, &length), .width = 1200, .height = 800};
	if (picture.script == NULL)
		return skep_fail(reterr, "no memory for the plot");
	bool ok = write(what, &picture, reterr);
	bool whole = fclose(picture.script) == 0;
	if (ok && whole) {
		uint32_t lacking = format == FORMAT_SVG ? 0 : skep_script_cover(body, &length);
		if (lacking > 0)
			skep_say("skep: warning: no font here has U+%04" PRIX32
				 ", so the picture shows ? in its place; .svg has it\n",
				lacking);
		write_terminal(script, format, inside, &picture);
		whole = fwrite(body, 1, length, script) == length && fflush(script) == 0;
	}
	if (ok && !whole)
		skep_fail(reterr, "no memory for the plot: %s", strerror(errno));
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
	/* As a file, which gnuplot reads in large pieces; from its standard input it would read byte by byte. */
	char *argv[] = {"gnuplot", "/dev/stdin", NULL};
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
	const char *reject = strstr(text, "line ");
	if (reject == NULL)
		reject = text + strspn(text, " \t\n^");
	snprintf(ret, size, "%.*s", (int)strcspn(reject, "\n"), reject);
}

/* The caller frees the picture. */
static bool draw(int script, char **ret, size_t *ret_length, struct skep_diag *reterr)
{
	char message[512];
	FILE *picture = open_memstream(ret, ret_length);
	int status = 0, messages = picture ? memfd_create("gnuplot-messages", MFD_CLOEXEC) : -1;
	int rc = messages < 0 ? errno : run_gnuplot(script, picture, messages, &status);
	if (picture && fclose(picture) != 0 && rc == 0)
		rc = ENOMEM;
	bool drawn = rc == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 && *ret_length > 0;
	if (rc != 0) {
		skep_fail(reterr, "gnuplot cannot be started, or what it drew not be kept: %s", strerror(rc));
	} else if (!drawn) {
		read_message(messages, message, sizeof message);
		skep_fail(reterr, "gnuplot failed: %s", message[0] ? message : "it wrote no picture and said nothing");
	}
	if (messages >= 0)
		close(messages);
	return drawn;
}

bool skep_plot_target(const char *target, struct skep_diag *reterr)
{
	enum format format;
	return find_format(target, &format, reterr) && check_target(target, reterr);
}

/* The caller frees the picture. */
static bool make_picture(enum format format, bool inside, skep_picture_write *write, const void *what, char **ret,
	size_t *ret_length, struct skep_diag *reterr)
{
	int fd = memfd_create("gnuplot-script", MFD_CLOEXEC);
	FILE *script = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (script == NULL)
		return skep_fail(reterr, "no memory for the plot: %s", strerror(errno));
	bool ok = write_script(format, inside, write, what, script, reterr);
	bool there = skep_program_find("gnuplot");
	if (ok && !there)
		skep_fail(reterr, "gnuplot is not installed: apt-get install gnuplot-nox");
	ok = ok && there && draw(fd, ret, ret_length, reterr);
	fclose(script);
	return ok;
}

bool skep_plot_picture(const char *target, skep_picture_write *write, const void *what, struct skep_diag *reterr)
{
	enum format format;
	char *picture = NULL;
	size_t length = 0;
	struct skep_diag diag = {0};
	if (!find_format(target, &format, reterr) || !check_target(target, reterr))
		return false;
	bool done = make_picture(format, false, write, what, &picture, &length, reterr);
	if (done && !skep_file_write(target, picture, length, &diag)) {
		skep_fail(reterr, "%s: %s", target, diag.message);
		done = false;
	}
	free(picture);
	return done;
}

/* ---- of runs ---------------------------------------------------------------------------------------------------- */

/* What is asked for is for this kind. */
static bool suits(const char *kind, const struct skep_plot_choice *choice, struct skep_diag *reterr)
{
	if (choice->rounds != NULL && strcmp(kind, "timeline") != 0)
		skep_fail(reterr, "--rounds is for the timeline, not for %s", kind);
	else if (choice->metric != NULL && strcmp(kind, "sweep") != 0 && strcmp(kind, "pareto") != 0)
		skep_fail(reterr, "--metric is for sweep and pareto, not for %s", kind);
	else if (choice->axes != NULL && strcmp(kind, "accuracy") != 0)
		skep_fail(reterr, "--x, --y, --log and --validation are for accuracy, not for %s", kind);
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

static bool write_chosen(const void *what, struct skep_picture *picture, struct skep_diag *reterr)
{
	const struct chosen *c = what;
	picture->rounds = c->choice->rounds;
	picture->metric = c->choice->metric;
	picture->axes = c->choice->axes;
	picture->drawn = c->choice->ret_drawn;
	bool ok = c->kind->write(c->store, c->run, c->runs, picture, reterr);
	return skep_store_read_all(c->store, reterr) && ok;
}

bool skep_plot_chosen(struct skep_store *store, const char *kind_name, const int64_t *run, uint32_t runs,
	const char *target, const struct skep_plot_choice *choice, struct skep_diag *reterr)
{
	const struct chosen chosen = {store, find_kind(kind_name, reterr), run, runs, choice};
	return chosen.kind != NULL && skep_plot_target(target, reterr) && suits(kind_name, choice, reterr) &&
	       skep_plot_picture(target, write_chosen, &chosen, reterr);
}

bool skep_plot_inside(struct skep_store *store, const char *kind_name, const int64_t *run, uint32_t runs,
	const struct skep_plot_choice *choice, char **ret, struct skep_diag *reterr)
{
	const struct chosen chosen = {store, find_kind(kind_name, reterr), run, runs, choice};
	size_t length = 0;
	*ret = NULL;
	if (chosen.kind != NULL && suits(kind_name, choice, reterr) &&
		make_picture(FORMAT_SVG, true, write_chosen, &chosen, ret, &length, reterr))
		return true;
	free(*ret);
	*ret = NULL;
	return false;
}
