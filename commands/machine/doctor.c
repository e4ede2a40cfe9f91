/* SPDX-License-Identifier: Apache-2.0
 *
 * doctor.c - `skep doctor`: what this machine has of all that the commands need, what is missing, and the line that installs it.
 * It looks and changes nothing.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "analysis/store/store.h"
#include "base/files/data.h"
#include "base/json.h"
#include "base/layout.h"
#include "base/process/thread_pool.h"
#include "commands/arguments.h"
#include "commands/commands.h"
#include "exec/exec.h"
#include "exec/replicas/replicas.h"
#include "models/device/device.h"
#include "version.h"

#define FINDINGS_MAX 16u
#define TEXT_BYTES 400u
#define TMPDIR_BYTES_MOST 70u /* MPI adds to it, and a socket's name has 108 bytes */
#define TMPDIR_LEAST (UINT64_C(256) << 20)

struct finding {
	const char *name;
	bool good;
	char says[TEXT_BYTES], advice[TEXT_BYTES]; /* advice "": there is nothing to do */
};

struct report {
	struct finding finding[FINDINGS_MAX];
	uint32_t findings;
};

static struct finding *add(struct report *r, const char *name, bool good, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

static struct finding *add(struct report *r, const char *name, bool good, const char *format, ...)
{
	struct finding *f = &r->finding[r->findings < FINDINGS_MAX - 1 ? r->findings++ : FINDINGS_MAX - 1];
	va_list list;
	*f = (struct finding){.name = name, .good = good};
	va_start(list, format);
	vsnprintf(f->says, sizeof f->says, format, list);
	va_end(list);
	return f;
}

static void advise(struct finding *f, const char *advice)
{
	snprintf(f->advice, sizeof f->advice, "%s", advice);
}

/* ---- programs and libraries ------------------------------------------------------------------------------------------- */

static void look_for_mpi(struct report *r)
{
	struct skep_diag why = {0};
	const struct skep_exec_options options = {0};
	if (!skep_exec_ready(&options, &why)) {
		advise(add(r, "MPI", false, "%s", why.message),
			"apt-get install openmpi-bin libopenmpi-dev, and build anew");
		return;
	}
	add(r, "MPI", true, "`skep run` and `skep probe` can start");
	bool survives = skep_exec_survives();
	struct finding *f = add(r, "preemptions over MPI", survives, "%s",
		survives ? "a run survives the death of its processes (ULFM)"
			 : "the death of a process ends the run: this MPI lacks ULFM");
	if (!survives)
		advise(f, "Open MPI 5, as in Debian 13; or `skep serve` and `skep join`, which need no MPI");
}

static void look_for_cuda(struct report *r)
{
	struct skep_diag why = {0};
	bool there = skep_device_available(SKEP_DEVICE_CUDA, &why);
	struct finding *f = add(r, "CUDA", there, "%s", there ? "`--device cuda` has a GPU" : why.message);
	if (!there)
		advise(f,
			"nothing for `--device cpu`; else NVIDIA's driver and CUDA 12, and meson setup -Dcuda=enabled");
}

static void look_for_replicas(struct report *r)
{
#ifdef SKEP_HAS_TLS
	struct skep_diag why = {0};
	bool ready = skep_replicas_ready(&why);
#else
	bool ready = false;
#endif
	struct finding *f = add(r, "libraft", ready, "%s",
		ready ? "`serve --replicas` is built in" : "built without: no `serve --replicas`");
	if (!ready)
		advise(f, "apt-get install libraft-dev libuv1-dev, and build anew");
}

static void look_for_programs(struct report *r)
{
	bool gnuplot = skep_program_find("gnuplot");
	struct finding *f =
		add(r, "gnuplot", gnuplot, "%s", gnuplot ? "`skep plot` can draw" : "`skep plot` cannot draw");
	if (!gnuplot)
		advise(f, "apt-get install gnuplot-nox");
#ifdef SKEP_HAS_TLS
	add(r, "OpenSSL", true, "`skep serve` and `skep join` are built in");
#else
	advise(add(r, "OpenSSL", false, "built without: no `skep serve` and `skep join`"),
		"apt-get install libssl-dev, and build anew");
#endif
	look_for_replicas(r);
	struct skep_data_folders folders;
	skep_data_folders(&folders);
	f = add(r, "data", folders.count > 0, "%s",
		folders.count > 0 ? folders.path[0] : "no folder with models, topologies and scenarios");
	if (folders.count == 0)
		advise(f, "meson install, or XDG_DATA_DIRS=FOLDER with skep/topologies in it");
}

/* ---- the machine ------------------------------------------------------------------------------------------------------ */

/* The first line of a file of /proc or /sys that begins with `key`, behind that; "" if there is none. */
static void read_line(const char *path, const char *key, char *ret, size_t size)
{
	char line[256];
	size_t length = strlen(key);
	FILE *file = fopen(path, "re");
	ret[0] = 0;
	while (file != NULL && ret[0] == 0 && fgets(line, sizeof line, file) != NULL)
		if (strncmp(line, key, length) == 0)
			snprintf(ret, size, "%.*s", (int)strcspn(line + length, "\n"), line + length);
	if (file != NULL)
		fclose(file);
}

static void look_at_machine(struct report *r)
{
	char text[128], size[SKEP_TEXT_BYTES];
	struct timespec step = {0};
	add(r, "cores", true, "%u", skep_thread_pool_cores());
	read_line("/proc/meminfo", "MemAvailable:", text, sizeof text);
	double bytes = strtod(text, NULL) * 1024;
	add(r, "memory", bytes > 0, "%s free", bytes > 0 ? skep_binary_text(bytes, size) : "not known how much is");
	clock_getres(CLOCK_MONOTONIC, &step);
	read_line("/sys/devices/system/clocksource/clocksource0/current_clocksource", "", text, sizeof text);
	bool fine = step.tv_sec == 0 && step.tv_nsec <= 1000;
	struct finding *f =
		add(r, "clock", fine, "steps of %ld ns, from %s", step.tv_nsec, text[0] ? text : "an unknown source");
	if (!fine)
		advise(f, "durations of real runs are as coarse as that");
}

static void look_at_tmpdir(struct report *r)
{
	const char *folder = getenv("TMPDIR");
	struct statvfs fs;
	char size[SKEP_TEXT_BYTES];
	folder = folder != NULL && folder[0] != 0 ? folder : "/tmp";
	bool writable = euidaccess(folder, W_OK | X_OK) == 0 && statvfs(folder, &fs) == 0;
	uint64_t room = writable ? (uint64_t)fs.f_bavail * fs.f_frsize : 0;
	bool brief = strlen(folder) <= TMPDIR_BYTES_MOST, roomy = room >= TMPDIR_LEAST;
	struct finding *f = add(r, "TMPDIR", writable && brief && roomy, "%.200s, %s%s", folder,
		!writable ? "which cannot be written to" : skep_bytes_text((double)room, size),
		writable ? " free" : "");
	if (!writable || !roomy)
		advise(f, "TMPDIR=FOLDER with 256 MB free");
	else if (!brief)
		advise(f, "a folder with a shorter name: MPI's sockets in it have names of 108 bytes at most");
}

static void look_at_database(struct report *r, const char *db)
{
	struct skep_diag why = {0};
	struct stat st;
	char size[SKEP_TEXT_BYTES];
	if (stat(db, &st) != 0) {
		add(r, "database", true, "%.200s is not there yet: `skep sim` and `skep run` make it", db);
		return;
	}
	struct skep_store *store = skep_store_open(db, false, &why);
	add(r, "database", store != NULL, "%s%s%s", store != NULL ? db : why.message, store != NULL ? ", " : "",
		store != NULL ? skep_bytes_text((double)st.st_size, size) : "");
	skep_store_close(store);
}

/* ---- the command ------------------------------------------------------------------------------------------------------ */

static void print_json(const struct report *r)
{
	cJSON *root = cJSON_CreateObject();
	cJSON_AddStringToObject(root, "version", SKEP_VERSION);
	cJSON *list = cJSON_AddArrayToObject(root, "findings");
	for (uint32_t i = 0; i < r->findings; i++) {
		const struct finding *f = &r->finding[i];
		cJSON *object = skep_json_add_row(list);
		cJSON_AddStringToObject(object, "name", f->name);
		cJSON_AddBoolToObject(object, "good", f->good);
		cJSON_AddStringToObject(object, "says", f->says);
		cJSON_AddStringToObject(object, "advice", f->advice);
	}
	skep_json_print(root, stdout);
}

static void print(const struct report *r)
{
	printf("skep %s\n", SKEP_VERSION);
	for (uint32_t i = 0; i < r->findings; i++) {
		const struct finding *f = &r->finding[i];
		printf("  %-4s %-21s %s\n", f->good ? "yes" : "no", f->name, f->says);
		if (f->advice[0] != 0)
			printf("  %-4s %-21s -> %s\n", "", "", f->advice);
	}
}

static enum status run(struct skep_command_line *line)
{
	struct arguments a = {0};
	enum status status;
	if (!skep_arguments_read(line, &a, &status))
		return status;
	struct report r = {.findings = 0};
	look_for_mpi(&r);
	look_for_cuda(&r);
	look_for_programs(&r);
	look_at_machine(&r);
	look_at_tmpdir(&r);
	look_at_database(&r, a.db);
	if (a.json)
		print_json(&r);
	else
		print(&r);
	return STATUS_DONE;
}

static const struct skep_option_group groups[] = {SKEP_DATABASE_OPTIONS, {0}};
static const struct skep_example examples[] = {
	{"skep doctor", "before the first real run, or with a report of a fault"},
	{0},
};

const struct skep_command skep_command_doctor = {
	.name = "doctor",
	.operands = "",
	.summary = "look at what this machine has, and what is missing",
	.text = "Looks for what commands need: an MPI and whether it survives the death of processes, CUDA, gnuplot, OpenSSL, "
		"libraft, the data that comes with the program, cores, memory, the clock, TMPDIR and the database. Of what is "
		"missing it prints the line that installs it. It changes nothing.",
	.group = groups,
	.example = examples,
	.run = run,
};
