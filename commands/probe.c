/* SPDX-License-Identifier: Apache-2.0
 *
 * probe.c - `skep probe`: options, who starts the processes, what is said meanwhile, and the files at the end. Measuring is done in
 * exec/, writing in topologies/.
 */
#include "commands/probe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "commands/values.h"
#include "exec/exec.h"
#include "exec/probe.h"
#include "exec/prober.h"
#include "models/gauge.h"
#include "topologies/gpu.h"
#include "topologies/topology_stats.h"

#define ERROR_BYTES 2048
#define DEVICE_S 5.0 /* for a device, about */
#define TELL_S 5.0   /* between two lines */

static const char help[] =
	"usage: skep probe -o FILE [-n RANKS] [OPTIONS]\n"
	"\n"
	"Measures what lies between the processes that mpirun or srun has started, one for each device, and how fast the\n"
	"devices are; FILE is a topology for check, sim, plan and run. Started by hand it starts RANKS processes on this\n"
	"machine itself.\n"
	"\n"
	"  -o, --output FILE     NAME.yaml, which is not there yet; profiles of the devices go into gpus/ beside it\n"
	"  -n, --ranks RANKS     processes to start, 2 or more\n"
	"  --by host|rank        ways between hosts, and inside each (default), or between all ranks\n"
	"  --at-once             measure pairs that have no rank in common at the same time: faster, but they may disturb\n"
	"                        each other\n"
	"  --time TIME           for one way, from '10 ms' to '60 s' (default '1 s'); far ways take more\n"
	"  --payload BYTES       of the messages that bandwidth is measured with, such as '1 MiB': what training will send\n"
	"                        (default: what takes long enough, at most 16 MiB)\n"
	"  --device cpu|cuda     what does the arithmetic (default cpu)\n"
	"  --threads N           of each CPU device (default 1)\n"
	"  --size N              of the largest layer that a device is measured with, a multiple of 64 (default 1024, cuda 2048)\n"
	"  --gpu NAME            the profile of all devices, in place of measuring them\n"
	"  --shape TOPOLOGY      hold messages back as on this topology, machine by machine (one host only): a test of the\n"
	"                        measurement\n"
	"  --json                one JSON object on stdout, nothing else\n"
	"  -q, --quiet           nothing on stderr but errors\n";

enum {
	OPTION_BY = 256,
	OPTION_AT_ONCE,
	OPTION_TIME,
	OPTION_PAYLOAD,
	OPTION_DEVICE,
	OPTION_THREADS,
	OPTION_SIZE,
	OPTION_GPU,
	OPTION_SHAPE,
	OPTION_JSON
};

static const struct option long_options[] = {
	{"output", required_argument, NULL, 'o'},
	{"ranks", required_argument, NULL, 'n'},
	{"by", required_argument, NULL, OPTION_BY},
	{"at-once", no_argument, NULL, OPTION_AT_ONCE},
	{"time", required_argument, NULL, OPTION_TIME},
	{"payload", required_argument, NULL, OPTION_PAYLOAD},
	{"device", required_argument, NULL, OPTION_DEVICE},
	{"threads", required_argument, NULL, OPTION_THREADS},
	{"size", required_argument, NULL, OPTION_SIZE},
	{"gpu", required_argument, NULL, OPTION_GPU},
	{"shape", required_argument, NULL, OPTION_SHAPE},
	{"json", no_argument, NULL, OPTION_JSON},
	{"quiet", no_argument, NULL, 'q'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

struct request {
	struct skep_probe_options probe;
	const char *output;
	uint32_t ranks; /* 0: not given */
	bool json, quiet, help;
	struct skep_complaint complaint;
};

/* ---- options ----------------------------------------------------------------------------------------------------- */

static bool take_word(struct request *r, int option, const char *value)
{
	static const char *const bys[] = {"host", "rank", NULL}, *const devices[] = {"cpu", "cuda", NULL};
	const char *const *word = option == OPTION_BY ? bys : devices;
	bool second = strcmp(value, word[1]) == 0;
	if (!second && strcmp(value, word[0]) != 0)
		return skep_value_refuse_word(&r->complaint, option == OPTION_BY ? "--by" : "--device", value, word);
	if (option == OPTION_BY)
		r->probe.by_rank = second;
	else
		r->probe.device = second ? SKEP_DEVICE_CUDA : SKEP_DEVICE_CPU;
	return true;
}

static bool take_quantity(struct request *r, int option, const char *value)
{
	const char *expected;
	double number;
	bool time = option == OPTION_TIME;
	double low = time ? 0.01 : 2049, high = time ? 60 : (double)SKEP_PROBER_BYTES_MAX;
	if (!skep_quantity_parse(value, time ? SKEP_TIME : SKEP_BYTES, &number, &expected) || number < low ||
		!(number <= high))
		return skep_value_refuse(&r->complaint, "--%s %.60s: expected %s", time ? "time" : "payload", value,
			time ? "a time of 10 ms to 60 s, such as '1 s'"
			     : "a size above 2 KiB, up to 1 GiB, such as '1 MiB'");
	if (time)
		r->probe.pair_ns = (uint64_t)(1e9 * number);
	else
		r->probe.bytes = (uint64_t)number;
	return true;
}

static bool take_number(struct request *r, int option, const char *name, const char *value)
{
	uint64_t number = 0;
	switch (option) {
	case 'n':
		if (!skep_value_integer(&r->complaint, name, value, 2, 4096, &number))
			return false;
		r->ranks = (uint32_t)number;
		return true;
	case OPTION_THREADS:
		if (!skep_value_integer(&r->complaint, name, value, 1, 1024, &number))
			return false;
		r->probe.threads = (uint32_t)number;
		return true;
	case OPTION_SIZE:
		if (!skep_value_integer(&r->complaint, name, value, SKEP_GAUGE_SIZE_MIN, SKEP_GAUGE_SIZE_MAX, &number))
			return false;
		r->probe.size = (uint32_t)number;
		return number % 64 == 0 ||
		       skep_value_refuse(&r->complaint, "--size %s: expected a multiple of 64", value);
	default:
		return take_quantity(r, option, value);
	}
}

static bool take(void *context, int option, const char *name, const char *value)
{
	struct request *r = context;
	switch (option) {
	case 'o':
		r->output = value;
		return true;
	case 'q':
		return r->quiet = true;
	case 'h':
		return r->help = true;
	case OPTION_JSON:
		return r->json = true;
	case OPTION_AT_ONCE:
		return r->probe.at_once = true;
	case OPTION_GPU:
		r->probe.gpu = value;
		return (value[0] && strlen(value) < 64) ||
		       skep_value_refuse(&r->complaint, "--gpu: expected the name of a profile");
	case OPTION_SHAPE:
		r->probe.shape_path = value;
		return true;
	case OPTION_BY:
	case OPTION_DEVICE:
		return take_word(r, option, value);
	default:
		return take_number(r, option, name, value);
	}
}

static bool parse(struct request *r, int argc, char **argv, char *error, size_t size)
{
	char **operand;
	int operands;
	struct skep_diag diag = {0};
	struct skep_gpu gpu;
	*r = (struct request){.probe = {.threads = 1, .pair_ns = 1000000000}, .complaint = {error, size}};
	if (!skep_options_read(argc, argv, long_options, take, r, &r->complaint, &operand, &operands))
		return false;
	if (r->help)
		return true;
	if (operands > 0)
		return skep_value_refuse(
			&r->complaint, "skep probe takes no '%.60s'; see skep probe --help", operand[0]);
	if (!r->output)
		return skep_value_refuse(&r->complaint, "expected -o NAME.yaml, the topology that is written");
	if (r->probe.size == 0)
		r->probe.size = r->probe.device == SKEP_DEVICE_CUDA ? 2048 : 1024;
	if (r->probe.gpu == NULL)
		return true;
	bool known = skep_gpu_read(r->output, r->probe.gpu, &gpu, &diag);
	if (known)
		skep_gpu_finish(&gpu);
	return known || skep_value_refuse_diag(&r->complaint, &diag);
}

/* ---- what is said meanwhile -------------------------------------------------------------------------------------- */

struct watch {
	double begin_s, told_s;
	bool quiet;
};

static double seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

struct measuring {
	struct watch watch;
	const struct request *request;
};

static void begin(void *context, const struct skep_probed *probed, uint32_t ways, uint32_t turns)
{
	struct measuring *m = context;
	bool devices = m->request->probe.gpu == NULL, twice = probed->hosts < probed->ranks;
	double estimate_s = turns * 1e-9 * (double)m->request->probe.pair_ns + (devices ? DEVICE_S * (1 + twice) : 0);
	m->watch.begin_s = m->watch.told_s = seconds();
	if (m->watch.quiet)
		return;
	fprintf(stderr, "skep: %u ranks on %u host%s: %u way%s%s to measure, in some %.0f s\n", probed->ranks,
		probed->hosts, probed->hosts == 1 ? "" : "s", ways, ways == 1 ? "" : "s",
		devices ? " and the devices" : "", fmax(1, ceil(estimate_s)));
}

static void tell(void *context, uint32_t done, uint32_t all)
{
	struct measuring *m = context;
	double now_s = seconds(), passed_s = now_s - m->watch.begin_s;
	if (m->watch.quiet || (now_s < m->watch.told_s + TELL_S && done < all))
		return;
	m->watch.told_s = now_s;
	if (done < all)
		fprintf(stderr, "skep: %u of %u measured after %.0f s, some %.0f s left\n", done, all, passed_s,
			ceil(passed_s * (all - done) / done));
	else
		fprintf(stderr, "skep: %u of %u measured in %.1f s\n", done, all, passed_s);
}

/* ---- what is done ------------------------------------------------------------------------------------------------ */

static enum status complain(enum status status, const char *text)
{
	fprintf(stderr, "%s%s\n", strstr(text, "error:") ? "" : "skep: ", text);
	return status;
}

static enum status complain_diag(enum status status, const struct skep_diag *diag)
{
	char text[ERROR_BYTES];
	skep_diag_print(diag, text, sizeof text);
	fputs(text, stderr);
	return status;
}

/* As everything else will read it. */
static enum status show(const struct request *r)
{
	struct skep_topology topology;
	struct skep_topology_stats stats;
	struct skep_diag diag = {0};
	if (!skep_topology_read(r->output, &topology, &diag))
		return complain_diag(STATUS_FAILED, &diag);
	bool made = skep_topology_stats_make(&topology, &stats);
	if (made && r->json)
		skep_topology_stats_print_json(&topology, &stats, stdout);
	else if (made && !r->quiet)
		skep_topology_stats_print(&topology, &stats, stdout);
	skep_topology_finish(&topology);
	if (made && !r->quiet && !r->json)
		fprintf(stderr, "wrote %s\n", r->output);
	return made ? STATUS_DONE : complain(STATUS_FAILED, "not enough memory");
}

static enum status finish(const struct request *r, struct skep_probed *probed)
{
	struct skep_diag diag = {0};
	bool written = skep_probed_write(probed, r->output, &diag);
	skep_probed_finish(probed);
	return written ? show(r) : complain_diag(STATUS_FAILED, &diag);
}

static enum status measure(struct request *r, uint32_t rank)
{
	struct skep_probed probed;
	char error[ERROR_BYTES] = "";
	struct measuring measuring = {.request = r, .watch.quiet = r->quiet || r->json};
	r->probe.begin = begin;
	r->probe.tell = tell;
	r->probe.context = &measuring;
	bool done = skep_probe_run(&r->probe, &probed, error, sizeof error);
	if (!done)
		return rank == 0 ? complain(STATUS_FAILED, error) : STATUS_FAILED;
	return rank == 0 ? finish(r, &probed) : STATUS_DONE;
}

/* What every rank sees alike; empty: nothing is wrong. */
static void check_ranks(const struct request *r, uint32_t ranks, char *error, size_t size)
{
	uint32_t machines = r->probe.shape != NULL ? r->probe.shape->machines : ranks;
	if (ranks < 2)
		snprintf(error, size,
			"one process has nobody to measure a way to: start two or more, one for each device");
	else if (machines != ranks)
		snprintf(error, size, "--shape %.200s: has %u machines, so %u processes are needed, not %u",
			r->probe.shape_path, machines, machines, ranks);
}

static enum status run_rank(struct request *r)
{
	uint32_t rank, ranks;
	struct skep_exec_result result = {.outcome = SKEP_DONE};
	struct skep_diag diag = {0};
	char error[ERROR_BYTES] = "";
	if (!skep_exec_init(&rank, &ranks, error, sizeof error))
		return complain(STATUS_FAILED, error);
	enum status status = STATUS_BAD_INPUT;
	check_ranks(r, ranks, error, sizeof error);
	if (rank == 0 && error[0] == '\0' && !skep_probed_writable(r->output, &diag)) {
		complain_diag(status, &diag); /* the others do not know, and nobody comes back from there */
		skep_exec_abort((int)status);
	}
	if (error[0] == '\0')
		status = measure(r, rank);
	else if (rank == 0)
		complain(status, error);
	skep_exec_finish((int)status, &result);
	return status;
}

/* The first process: what a user can get wrong is said before any other starts. */
static enum status launch(const struct request *r, char **whole)
{
	char error[ERROR_BYTES] = "";
	struct skep_diag diag = {0};
	uint32_t ranks = r->ranks > 0 ? r->ranks : r->probe.shape != NULL ? r->probe.shape->machines : 0;
	const struct skep_exec_options exec = {.device = r->probe.device};
	if (!skep_exec_ready(&exec, error, sizeof error))
		return complain(STATUS_BAD_INPUT, error);
	if (ranks == 0)
		return complain(STATUS_BAD_INPUT,
			"probe needs -n RANKS, or to be started by mpirun or srun with one process for each device");
	check_ranks(r, ranks, error, sizeof error);
	if (error[0] != '\0' || (r->probe.gpu == NULL && !skep_device_available(r->probe.device, error, sizeof error)))
		return complain(STATUS_BAD_INPUT, error);
	if (!skep_probed_writable(r->output, &diag))
		return complain_diag(STATUS_BAD_INPUT, &diag);
	int status = skep_exec_launch_ranks(ranks, whole, error, sizeof error);
	enum status ended = status < 0 ? STATUS_FAILED : (enum status)status;
	return error[0] != '\0' ? complain(ended, error) : ended;
}

static enum status run(struct request *r, char **whole)
{
	struct skep_topology shape;
	struct skep_diag diag = {0};
	bool shaped = r->probe.shape_path != NULL;
	if (shaped && !skep_topology_read(r->probe.shape_path, &shape, &diag))
		return complain_diag(STATUS_BAD_INPUT, &diag);
	r->probe.shape = shaped ? &shape : NULL;
	enum status status = skep_exec_launched() ? run_rank(r) : launch(r, whole);
	if (shaped)
		skep_topology_finish(&shape);
	return status;
}

enum status skep_probe_command(int argc, char **argv)
{
	struct request request;
	char error[ERROR_BYTES] = "";
	char **whole = malloc((size_t)(argc + 1) * sizeof *whole); /* getopt reorders; mpirun gets the original */
	if (!whole)
		return complain(STATUS_FAILED, "out of memory");
	memcpy(whole, argv, (size_t)(argc + 1) * sizeof *whole);
	enum status status = STATUS_DONE;
	if (!parse(&request, argc - 1, argv + 1, error, sizeof error))
		status = complain(STATUS_BAD_INPUT, error);
	else if (request.help)
		fputs(help, stdout);
	else
		status = run(&request, whole);
	free(whole);
	return status;
}
