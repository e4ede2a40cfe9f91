/* SPDX-License-Identifier: Apache-2.0
 *
 * probe.c - `skep probe`: starts the processes, says how far measuring is, and writes the topology. Measuring is done in exec/,
 * writing in topologies/.
 */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "commands/arguments.h"
#include "commands/commands.h"
#include "exec/exec.h"
#include "exec/probe/probe.h"
#include "exec/probe/probe_rank.h"
#include "models/device/microbench.h"
#include "topologies/gpu/gpu.h"
#include "topologies/read/topology_stats.h"

#define DEVICE_S 5.0    /* for a device, about */
#define MODEL_S 25.0    /* for the layers of a model on it */
#define TELL_S 5.0      /* between two lines */
#define WARNINGS_MAX 8u /* links that are named on stderr */

struct request {
	struct arguments common;
	struct skep_probe_options probe;
	double time_s, bytes;
	const char *model_path; /* NULL: none */
	uint32_t ranks;         /* 0: not given */
};

/* A model whose layers can be run. */
static bool read_model(const char *path, struct skep_model *ret, struct skep_diag *reterr)
{
	if (!skep_model_read(path, ret, reterr))
		return false;
	if (ret->kind == SKEP_MODEL_TRANSFORMER && ret->architecture != SKEP_ARCHITECTURE_NONE)
		return true;
	skep_model_finish(ret);
	skep_diag_set(reterr, path, 0, 0, NULL,
		"--model measures the layers of transformers with an `architecture`, and this model has none: leave --model "
		"out, and predict it by the rates of the device");
	return false;
}

/* What the rows of options do not say. */
static enum status complete(struct request *r)
{
	char text[128];
	struct skep_diag diag = {0};
	if (!r->common.output)
		return skep_report_error(STATUS_BAD_INPUT, "expected -o NAME.yaml, the topology that is written");
	snprintf(text, sizeof text, "--size %u: expected a multiple of 64", r->probe.size);
	if (r->probe.size % 64 != 0)
		return skep_report_error(STATUS_BAD_INPUT, text);
	if (r->probe.size == 0)
		r->probe.size = r->probe.device == SKEP_DEVICE_CUDA ? 2048 : 1024;
	r->probe.pair_ns = (uint64_t)(1e9 * r->time_s);
	r->probe.bytes = (uint64_t)r->bytes;
	if (r->probe.gpu != NULL && r->model_path != NULL)
		return skep_report_error(STATUS_BAD_INPUT,
			"--gpu takes a profile as it is and --model measures one: leave one of them out");
	if (r->probe.gpu != NULL && !skep_gpu_is_there(r->common.output, r->probe.gpu, &diag))
		return skep_report_diag(STATUS_BAD_INPUT, &diag);
	return STATUS_DONE;
}

/* ---- what is said meanwhile -------------------------------------------------------------------------------------- */

struct watch {
	double begin_s, told_s;
	bool quiet;
};

struct measuring {
	struct watch watch;
	const struct request *request;
};

static void begin(void *context, const struct skep_probed *probed, uint32_t links, uint32_t turns)
{
	struct measuring *m = context;
	bool devices = m->request->probe.gpu == NULL, twice = probed->hosts < probed->ranks;
	double estimate_s = turns * probed->way_s + (devices ? DEVICE_S * (1 + twice) : 0) +
	                    (m->request->probe.model != NULL ? MODEL_S : 0);
	m->watch.begin_s = m->watch.told_s = skep_monotonic_s();
	if (m->watch.quiet)
		return;
	const double about_s = fmax(1, ceil(estimate_s));
	if (links == 0)
		fprintf(stderr, "skep: 1 rank, whose device is measured in about %.0f s; links need more ranks\n",
			about_s);
	else
		fprintf(stderr, "skep: %u ranks on %u host%s: %u link%s%s to measure, in about %.0f s\n", probed->ranks,
			probed->hosts, probed->hosts == 1 ? "" : "s", links, links == 1 ? "" : "s",
			devices ? " and the devices" : "", about_s);
}

static void tell(void *context, uint32_t done, uint32_t all)
{
	struct measuring *m = context;
	double now_s = skep_monotonic_s(), passed_s = now_s - m->watch.begin_s;
	if (m->watch.quiet || (now_s < m->watch.told_s + TELL_S && done < all))
		return;
	m->watch.told_s = now_s;
	if (done < all)
		fprintf(stderr, "skep: %u of %u measured after %.0f s, about %.0f s left\n", done, all, passed_s,
			ceil(passed_s * (all - done) / done));
	else
		fprintf(stderr, "skep: %u of %u measured in %.1f s\n", done, all, passed_s);
}

/* ---- what is done ------------------------------------------------------------------------------------------------ */

/* As everything else will read it. */
static enum status show(const struct request *r)
{
	struct skep_topology topology;
	struct skep_topology_stats stats;
	struct skep_diag diag = {0};
	if (!skep_topology_read(r->common.output, &topology, &diag))
		return skep_report_diag(STATUS_FAILED, &diag);
	bool made = skep_topology_stats_make(&topology, &stats);
	if (made && r->common.json)
		skep_topology_stats_print_json(&topology, &stats, stdout);
	else if (made && !r->common.quiet)
		skep_topology_stats_print(&topology, &stats, stdout);
	skep_topology_finish(&topology);
	if (made && !r->common.quiet && !r->common.json)
		skep_say("wrote %s%s\n", r->common.output,
			r->probe.model == NULL
				? ""
				: "; a scenario takes the layers with `cluster: {compute: {predictor: table}}`");
	return made ? STATUS_DONE : skep_report_error(STATUS_FAILED, "not enough memory");
}

static void warn_of_shared_gpus(const struct skep_probed *probed)
{
	uint32_t most = 0;
	for (uint32_t i = 0; i < probed->ranks; i++)
		if (probed->device[i].gpu_ranks > most)
			most = probed->device[i].gpu_ranks;
	if (most > 1)
		fprintf(stderr,
			"skep: warning: %u ranks share a GPU: while all of them compute, passes take up to %u times as "
			"long as measured; start one process for each GPU\n",
			most, most);
}

/* Also when quiet: what is written may be wrong by as much. */
static void warn(const struct request *r, const struct skep_probed *probed)
{
	uint32_t uncertain = 0;
	warn_of_shared_gpus(probed);
	for (uint32_t i = 0; i < probed->places * probed->places; i++) {
		const struct skep_probed_link *way = &probed->way[i];
		const uint32_t from = i / probed->places, to = i % probed->places;
		if (isnan(way->latency_s) || !skep_probed_uncertain(way) || uncertain++ >= WARNINGS_MAX)
			continue;
		fprintf(stderr, "skep: warning: %s -> %s: ", probed->place_name[from],
			from == to ? "itself" : probed->place_name[to]);
		skep_probed_put_uncertain(stderr, way);
		putc('\n', stderr);
	}
	const enum skep_probed_outcome outcome = probed->sites.outcome;
	if (outcome != SKEP_PROBED_SITES_UNTRIED && outcome != SKEP_PROBED_SITES_NONE &&
		outcome != SKEP_PROBED_SITES_FOUND)
		skep_probed_put_verdict(stderr, probed, "skep: warning: ");
	if (uncertain == 0)
		return;
	if (uncertain > WARNINGS_MAX)
		fprintf(stderr, "skep: warning: and so %u more, which %s names\n", uncertain - WARNINGS_MAX,
			r->common.output);
	fprintf(stderr,
		"skep: these machines or links are too busy to be measured well, or vary by themselves: try more "
		"--time, fewer processes a host%s\n",
		r->probe.at_once ? ", no --at-once" : "");
}

static enum status finish(const struct request *r, struct skep_probed *probed)
{
	struct skep_diag diag = {0};
	bool written = skep_probed_write(probed, r->common.output, &diag);
	if (written)
		warn(r, probed);
	skep_probed_finish(probed);
	return written ? show(r) : skep_report_diag(STATUS_FAILED, &diag);
}

static enum status measure(struct request *r, uint32_t rank)
{
	struct skep_probed probed;
	struct skep_diag error = {0};
	struct measuring measuring = {.request = r, .watch.quiet = r->common.quiet || r->common.json};
	r->probe.begin = begin;
	r->probe.tell = tell;
	r->probe.context = &measuring;
	bool done = skep_probe_run(&r->probe, &probed, &error);
	if (!done)
		return rank == 0 ? skep_report_diag(STATUS_FAILED, &error) : STATUS_FAILED;
	return rank == 0 ? finish(r, &probed) : STATUS_DONE;
}

/* What every rank sees alike; left clear if nothing is wrong. */
static void check_ranks(const struct request *r, uint32_t ranks, struct skep_diag *reterr)
{
	uint32_t machines = r->probe.shape != NULL ? r->probe.shape->machines : ranks;
	if (ranks < 2 && r->probe.gpu != NULL)
		skep_fail(reterr,
			"one process has no link to measure, and --gpu leaves its device out: start two or more, one for each "
			"device");
	else if (machines != ranks)
		skep_fail(reterr, "--shape %.200s: has %u machines, so %u processes are needed, not %u",
			r->probe.shape_path, machines, machines, ranks);
}

static enum status run_rank(struct request *r)
{
	uint32_t rank, ranks;
	struct skep_exec_result result = {.outcome = SKEP_DONE};
	struct skep_diag error = {0};
	if (!skep_exec_init(SKEP_EXEC_START_LIMIT_S, false, &rank, &ranks, &error))
		return skep_report_diag(STATUS_FAILED, &error);
	enum status status = STATUS_BAD_INPUT;
	check_ranks(r, ranks, &error);
	if (rank == 0 && !error.set && !skep_probed_writable(r->common.output, &error)) {
		skep_report_diag(status, &error); /* the others do not know, and the call below does not return */
		skep_exec_abort((int)status);
	}
	if (!error.set)
		status = measure(r, rank);
	else if (rank == 0)
		skep_report_diag(status, &error);
	skep_exec_finish((int)status, &result);
	return status;
}

/* The first process: what a user can get wrong is said before any other starts. */
static enum status launch(const struct request *r, char **whole)
{
	struct skep_diag error = {0};
	uint32_t ranks = r->ranks > 0 ? r->ranks : r->probe.shape != NULL ? r->probe.shape->machines : 0;
	const struct skep_exec_options exec = {.device = r->probe.device};
	if (!skep_exec_ready(&exec, &error))
		return skep_report_diag(STATUS_BAD_INPUT, &error);
	if (ranks == 0)
		return skep_report_error(STATUS_BAD_INPUT,
			"probe needs -n RANKS, or to be started by mpirun or srun with one process for each device");
	check_ranks(r, ranks, &error);
	if (error.set || (r->probe.gpu == NULL && !skep_device_available(r->probe.device, &error)))
		return skep_report_diag(STATUS_BAD_INPUT, &error);
	if (!skep_probed_writable(r->common.output, &error))
		return skep_report_diag(STATUS_BAD_INPUT, &error);
	int status = skep_exec_launch_ranks(ranks, whole, &error);
	enum status ended = status < 0 ? STATUS_FAILED : (enum status)status;
	return error.set ? skep_report_diag(ended, &error) : ended;
}

static enum status probe(struct request *r, char **whole)
{
	struct skep_topology shape;
	struct skep_diag diag = {0};
	bool shaped = r->probe.shape_path != NULL;
	if (shaped && !skep_topology_read(r->probe.shape_path, &shape, &diag))
		return skep_report_diag(STATUS_BAD_INPUT, &diag);
	r->probe.shape = shaped ? &shape : NULL;
	enum status status = skep_exec_launched() ? run_rank(r) : launch(r, whole);
	if (shaped)
		skep_topology_finish(&shape);
	return status;
}

static enum status run(struct skep_command_line *line)
{
	struct request r = {.probe.threads = 1};
	struct skep_model model;
	struct skep_diag diag = {0};
	enum status status;
	if (!skep_arguments_read(line, &r.common, &status) || (status = complete(&r)) != STATUS_DONE)
		return status;
	if (r.model_path != NULL && !read_model(r.model_path, &model, &diag))
		return skep_report_diag(STATUS_BAD_INPUT, &diag);
	r.probe.model = r.model_path != NULL ? &model : NULL;
	status = probe(&r, line->whole);
	if (r.probe.model != NULL)
		skep_model_finish(&model);
	return status;
}

/* ---- options ----------------------------------------------------------------------------------------------------- */

static bool parse_by(const char *text, void *ret)
{
	*(bool *)ret = strcmp(text, "rank") == 0;
	return *(bool *)ret || strcmp(text, "host") == 0;
}

static const char *const bys[] = {"host", "rank", NULL};

static const struct skep_option process_rows[] = {
	{"ranks", 'n', SKEP_OPTION_U32, offsetof(struct request, ranks), "N",
		.help = "MPI processes to start on this machine; 1 measures the device alone", .least = 1,
		.most = 4096},
};

static const struct skep_option link_rows[] = {
	{"by", 0, SKEP_OPTION_PARSED, offsetof(struct request, probe.by_rank), "host|rank",
		.help = "links between hosts and inside each host, or between all ranks", .parse = parse_by,
		.choice = bys, .usual = "host", .example = "rank"},
	{"at-once", 0, SKEP_OPTION_FLAG, offsetof(struct request, probe.at_once),
		.help = "measure pairs without a common rank at the same time: faster, but pairs may disturb each other"},
	{"time", 0, SKEP_OPTION_QUANTITY, offsetof(struct request, time_s), "TIME",
		.help = "for each link, from '10 ms' to '60 s'; links of long latency take more, and so do busy machines",
		.dimension = SKEP_TIME, .low = 0.01, .high = 60, .usual = "1 s, less with more than 40 links",
		.example = "1 s", .expected = "a time of 10 ms to 60 s, such as '1 s'"},
	{"payload", 0, SKEP_OPTION_QUANTITY, offsetof(struct request, bytes), "BYTES",
		.help = "size of the messages that bandwidth is measured with; take what training will send",
		.dimension = SKEP_BYTES, .low = 2049, .high = SKEP_PROBE_RANK_BYTES_MAX,
		.usual = "what takes long enough, at most 24 MiB", .example = "1 MiB",
		.expected = "a size above 2 KiB, up to 1 GiB, such as '1 MiB'"},
	{"shape", 0, SKEP_OPTION_PATH, offsetof(struct request, probe.shape_path), "TOPOLOGY",
		.help = "delay messages as this topology would, one host only: a test of the measurement"},
};

static const struct skep_option device_rows[] = {
	{"device", 0, SKEP_OPTION_CHOICE, offsetof(struct request, probe.device), "cpu|cuda",
		.help = "what does the arithmetic", .choice = skep_device_words, .usual = "cpu"},
	{"threads", 0, SKEP_OPTION_U32, offsetof(struct request, probe.threads), "N",
		.help = "threads of each CPU device", .least = 1, .most = 1024, .usual = "1"},
	{"bind", 0, SKEP_OPTION_FLAG, offsetof(struct request, probe.bind),
		.help = "keep each process to cores of its own, as `skep run --bind` does"},
	{"size", 0, SKEP_OPTION_U32, offsetof(struct request, probe.size), "N",
		.help = "width of the largest layer that devices are measured with, a multiple of 64",
		.least = SKEP_MICROBENCH_SIZE_MIN, .most = SKEP_MICROBENCH_SIZE_MAX, .usual = "1024, with cuda 2048"},
	{"model", 0, SKEP_OPTION_PATH, offsetof(struct request, model_path), "FILE",
		.help = "measure the layers of this transformer too, for `cluster.compute.predictor: table`"},
	{"gpu", 0, SKEP_OPTION_TEXT, offsetof(struct request, probe.gpu), "NAME",
		.help = "take this profile for all devices instead of measuring them", .least = 1, .most = 63},
};

static const struct skep_option output_rows[] = {
	{"output", 'o', SKEP_OPTION_PATH, offsetof(struct request, common.output), "FILE",
		.help = "the topology, a new file NAME.yaml; device profiles go into gpus/ beside it; required"},
};

static const struct skep_option_group groups[] = {SKEP_OWN_OPTIONS("Processes", process_rows),
	SKEP_OWN_OPTIONS("Links", link_rows), SKEP_OWN_OPTIONS("Devices", device_rows),
	SKEP_OWN_OPTIONS("Output", output_rows), SKEP_OUTPUT_OPTIONS, {0}};
static const struct skep_example examples[] = {
	{"mpirun --hostfile hosts skep probe -o cluster.yaml --device cuda",
		"on a cluster, with one process for each GPU"},
	{"skep probe -o laptop.yaml -n 2", "two processes on this machine"},
	{"skep probe -o gpu.yaml -n 1 --device cuda --model models/gpt2-124m.yaml",
		"the one GPU of this machine, with the layers of a model"},
	{0},
};

const struct skep_command skep_command_probe = {
	.name = "probe",
	.operands = "-o FILE [-n N]",
	.summary = "measure a cluster's links and GPUs; write a topology",
	.text = "Measures latency and bandwidth between the processes that mpirun or srun has started, one for each "
		"device, and how fast the devices are, and writes a topology for check, sim, plan and run. Started by "
		"hand it starts the processes on this machine itself.",
	.group = groups,
	.example = examples,
	.run = run,
};
