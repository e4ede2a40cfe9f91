/* SPDX-License-Identifier: Apache-2.0
 *
 * probe.c - finds out which ranks share a host, which places they form and which device each rank has, then lets
 * probe_rank.h measure. See probe.h.
 */
#include "exec/probe/probe.h"

#include <assert.h>
#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/process/signals.h"
#include "base/process/thread_pool.h"
#include "exec/exec.h"
#include "exec/mpi/startup.h"
#include "exec/mpi/transport_mpi.h"
#include "exec/neighbours.h"
#include "exec/probe/probe_rank.h"
#include "models/device/layer_times.h"
#include "models/device/microbench.h"

#define NAME_BYTES 256
#define WAY_MOST_NS UINT64_C(1000000000)
#define WAY_LEAST_NS UINT64_C(150000000)

struct cluster { /* known to all ranks */
	uint32_t rank, ranks;
	uint32_t *host_of;        /* [ranks]: the lowest rank of its host */
	char (*name)[NAME_BYTES]; /* [ranks]: of its host */
	struct skep_start start;
};

/* ---- who is where ------------------------------------------------------------------------------------------------ */

static void cluster_finish(struct cluster *c)
{
	skep_start_finish(&c->start);
	free(c->host_of);
	free(c->name);
}

static bool cluster_init(struct cluster *c, struct skep_diag *reterr)
{
	int rank, ranks, length = 0;
	char name[MPI_MAX_PROCESSOR_NAME + NAME_BYTES] = "";
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	*c = (struct cluster){.rank = (uint32_t)rank, .ranks = (uint32_t)ranks};
	if (!skep_start_begin(&c->start, SKEP_EXEC_START_LIMIT_S, reterr)) {
		fprintf(stderr, "skep: %s\n", reterr->message);
		skep_exec_abort(1);
	}
	c->host_of = calloc(c->ranks, sizeof *c->host_of);
	c->name = calloc(c->ranks, sizeof *c->name);
	if (c->host_of == NULL || c->name == NULL)
		skep_fail(reterr, "no memory for the names of %d ranks", ranks);
	if (!skep_together_agree(&c->start, "to answer after MPI_Init", 1, reterr))
		return false;
	uint32_t host = skep_together_host(&c->start);
	MPI_Get_processor_name(name, &length);
	name[NAME_BYTES - 1] = '\0';
	MPI_Allgather(&host, 1, MPI_UINT32_T, c->host_of, 1, MPI_UINT32_T, MPI_COMM_WORLD);
	MPI_Allgather(name, NAME_BYTES, MPI_CHAR, c->name, NAME_BYTES, MPI_CHAR, MPI_COMM_WORLD);
	return true;
}

static uint32_t before_on_host(const struct cluster *c, uint32_t rank)
{
	assert(rank < c->ranks);
	uint32_t count = 0;
	for (uint32_t i = 0; i < rank; i++)
		count += c->host_of[i] == c->host_of[rank];
	return count;
}

static uint32_t on_host(const struct cluster *c, uint32_t rank)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < c->ranks; i++)
		count += c->host_of[i] == c->host_of[rank];
	return count;
}

/* The first label of the host's name, with nothing in it that a topology would have to escape. */
static void short_name(const struct cluster *c, uint32_t rank, char ret[NAME_BYTES])
{
	snprintf(ret, NAME_BYTES, "%.*s", (int)strcspn(c->name[rank], "."), c->name[rank]);
	for (char *at = ret; *at; at++)
		if (*at < '!' || *at > '~' || *at == '"' || *at == '\\' || *at == '\'')
			*at = '-';
	if (ret[0] == '\0')
		snprintf(ret, NAME_BYTES, "host");
}

/* Different places have different names, of at most 31 bytes. */
static void name_place(struct skep_probed *p, const struct cluster *c, uint32_t place, uint32_t rank, bool by_rank)
{
	assert(place < p->places && rank < c->ranks);
	char name[NAME_BYTES], end[24] = "";
	short_name(c, rank, name);
	if (by_rank && on_host(c, rank) > 1)
		snprintf(end, sizeof end, ":%" PRIu32, before_on_host(c, rank));
	for (uint32_t i = 0, again = 2; i < place; i++) {
		snprintf(p->place_name[place], sizeof *p->place_name, "%.*s%s", (int)(31 - strlen(end)), name, end);
		if (strcmp(p->place_name[i], p->place_name[place]) == 0) {
			snprintf(end, sizeof end, "#%" PRIu32, again++);
			i = UINT32_MAX; /* from the first one */
		}
	}
	snprintf(p->place_name[place], sizeof *p->place_name, "%.*s%s", (int)(31 - strlen(end)), name, end);
}

/* What tells its place: the rank, the place in the topology that is imposed, or the host. */
static uint32_t key_of(const struct skep_probe_options *o, const struct cluster *c, uint32_t rank)
{
	return o->by_rank ? rank : o->shape != NULL ? o->shape->machine[rank].place : c->host_of[rank];
}

/* Places are numbered by the first rank there. */
static bool find_places(const struct skep_probe_options *o, const struct cluster *c, struct skep_probed *ret)
{
	uint32_t places = 0, hosts = 0;
	uint32_t *place_of = calloc(c->ranks, sizeof *place_of);
	for (uint32_t i = 0; place_of != NULL && i < c->ranks; i++) {
		uint32_t first = 0;
		while (key_of(o, c, first) != key_of(o, c, i))
			first++;
		place_of[i] = first == i ? places++ : place_of[first];
		hosts += c->host_of[i] == i;
	}
	if (place_of == NULL || !skep_probed_create(ret, c->ranks, places)) {
		free(place_of);
		return false;
	}
	ret->hosts = hosts;
	memcpy(ret->place_of, place_of, c->ranks * sizeof *place_of);
	memcpy(ret->host_of, c->host_of, c->ranks * sizeof *place_of);
	free(place_of);
	for (uint32_t i = 0, named = 0; i < c->ranks; i++) {
		if (ret->place_of[i] != named)
			continue;
		if (o->shape != NULL && !o->by_rank)
			memcpy(ret->place_name[named], o->shape->place_name[o->shape->machine[i].place],
				sizeof *ret->place_name);
		else
			name_place(ret, c, named, i, o->by_rank);
		named++;
	}
	return true;
}

/* ---- devices ----------------------------------------------------------------------------------------------------- */

struct own_device {
	const struct skep_probe_options *options;
	struct skep_device_place place;
	double memory_bytes; /* this rank's part */
	uint32_t gpu_ranks;  /* that share its GPU, itself one of them; 0: a CPU */
	char name[64];
};

static void find_device(const struct skep_probe_options *o, const struct cluster *c, struct own_device *ret)
{
	uint32_t here = on_host(c, c->rank), count = skep_device_count(o->device);
	assert(here > 0);
	*ret = (struct own_device){.options = o, .place.threads = o->device == SKEP_DEVICE_CPU ? o->threads : 1};
	ret->place.ordinal = count > 0 ? before_on_host(c, c->rank) % count : 0;
	skep_device_describe(o->device, ret->place.ordinal, ret->name, sizeof ret->name, &ret->memory_bytes);
	if (o->device == SKEP_DEVICE_CPU)
		ret->memory_bytes /= here;
	else if (count > 0)
		ret->gpu_ranks = (here + count - 1) / count;
	if (ret->gpu_ranks > 1)
		ret->memory_bytes /= ret->gpu_ranks;
}

static bool measure_layers(const struct own_device *own, struct skep_probed_device *ret, struct skep_diag *reterr)
{
	struct skep_layer_times times;
	static_assert(SKEP_PROBED_MICROBATCHES_MAX >= SKEP_LAYER_TIMES_MAX && SKEP_PROBED_LAYERS == SKEP_LAYER_PARTS &&
			      SKEP_PROBED_COLUMNS == SKEP_LAYER_COLUMNS,
		"all parts of a model have room");
	if (!skep_layer_times_measure(own->options->device, &own->place, own->options->model, &times, reterr))
		return false;
	ret->microbatches = times.microbatches;
	for (uint32_t l = 0; l < SKEP_LAYER_PARTS; l++)
		for (uint32_t b = 0; b < times.microbatches; b++)
			memcpy(ret->layer[l][b].s, times.part[l][b].s, sizeof ret->layer[l][b].s);
	return true;
}

static bool microbench(void *context, bool alone, struct skep_probed_device *ret, struct skep_diag *reterr)
{
	const struct own_device *own = context;
	struct skep_microbench *microbench = calloc(1, sizeof *microbench);
	if (microbench == NULL)
		return skep_fail(reterr, "no memory to measure the device");
	bool done = skep_microbench_measure(own->options->device, &own->place, own->options->size, microbench, reterr);
	*ret = (struct skep_probed_device){.cuda = own->options->device == SKEP_DEVICE_CUDA,
		.cores = skep_thread_pool_cores(),
		.gpu_ranks = own->gpu_ranks,
		.memory_bytes = own->memory_bytes,
		.flops = microbench->flops,
		.memory_Bps = microbench->memory_Bps,
		.overhead_s = microbench->overhead_s,
		.products = microbench->products};
	snprintf(ret->name, sizeof ret->name, "%s", own->name);
	static_assert(SKEP_PROBED_PRODUCTS_MAX >= SKEP_MICROBENCH_PRODUCTS_MAX, "all products of a device have room");
	for (uint32_t i = 0; i < microbench->products; i++)
		ret->product[i] = (struct skep_probed_product){microbench->product[i].m, microbench->product[i].k,
			microbench->product[i].n, microbench->product[i].seconds};
	free(microbench);
	return done && (alone || own->options->model == NULL || measure_layers(own, ret, reterr));
}

static void *begin_passes(void *context, uint64_t *ret_bytes, struct skep_diag *reterr)
{
	const struct own_device *own = context;
	return skep_single_passes_begin(own->options->device, &own->place, ret_bytes, reterr);
}

static bool next_pass(void *passes, struct skep_diag *reterr)
{
	return skep_single_passes_next(passes, reterr);
}

static void finish_passes(void *passes)
{
	skep_single_passes_finish(passes);
}

/* What a pass of each part does, as a table of layers has it beside its time. */
static void describe_model(const struct skep_model *model, struct skep_probed_model *ret)
{
	const uint32_t layer[] = {
		[SKEP_PART_EMBEDDING] = 0, [SKEP_PART_BLOCK] = 1, [SKEP_PART_HEAD] = model->layers - 1};
	assert(model->architecture != SKEP_ARCHITECTURE_NONE && model->layers > 2);
	snprintf(ret->name, sizeof ret->name, "%s", model->name);
	for (uint32_t b = 0; b < SKEP_LAYER_TIMES_MAX; b++) {
		const double samples = 1u << b;
		for (uint32_t l = 0; l < SKEP_PART_EDGE; l++) {
			struct skep_layer_products products;
			skep_model_products(model, layer[l], 1u << b, &products);
			ret->flop[l][b] = products.flop;
			ret->bytes[l][b] = sizeof(float) * (products.parameters + products.numbers);
		}
		ret->bytes[SKEP_PART_EDGE][b] = sizeof(float) * samples * model->sequence * model->hidden;
	}
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static void check(const struct skep_probe_options *o, const struct cluster *c, bool one, struct skep_diag *reterr)
{
	assert(c->ranks > 0 && (o->shape == NULL || o->shape->machines == c->ranks));
	if (o->shape != NULL && !one)
		skep_fail(reterr, "--shape plays the network on one host, and these processes are on several");
	else if (o->gpu == NULL && o->device == SKEP_DEVICE_CPU && o->threads > skep_thread_pool_cores())
		skep_fail(reterr, "--threads: rank %" PRIu32 " on %.64s may use %" PRIu32 " cores", c->rank,
			c->name[c->rank], skep_thread_pool_cores());
	else if (o->gpu == NULL)
		skep_device_available(o->device, reterr);
}

static bool measure(const struct skep_probe_options *o, struct cluster *c, const struct skep_clock *clock,
	uint64_t pair_ns, struct skep_probed *probed, struct skep_diag *reterr)
{
	struct skep_rejects rejects = {.rank = c->rank};
	struct skep_transport transport = {0};
	static const struct skep_probe_passes passes = {begin_passes, next_pass, finish_passes};
	struct own_device own;
	bool clean = false;
	uint64_t name;
	if (!skep_transport_mpi_create(&transport, &rejects))
		skep_fail(reterr, "no memory for the transport");
	if (!skep_together_agree(&c->start, "its transport", 1, reterr) ||
		!skep_together_name(&c->start, &name, reterr))
		return false;
	if (!skep_transport_mpi_connect(&transport, name))
		skep_fail(reterr, "MPI does not connect the transport");
	if (!skep_together_agree(&c->start, "its transport", 1, reterr))
		return false;
	if (o->bind)
		skep_neighbours_bind(o->device == SKEP_DEVICE_CPU ? o->threads : 1);
	find_device(o, c, &own);
	const struct skep_probe_rank_setup setup = {.transport = &transport,
		.clock = clock,
		.shape = o->shape,
		.shaped = o->shape != NULL,
		.host_of = c->host_of,
		.pair_ns = pair_ns,
		.bytes = o->bytes,
		.signal_fd = c->rank == 0 ? skep_quit_open() : -1,
		.microbench = o->gpu != NULL ? NULL : microbench,
		.passes = o->gpu != NULL ? NULL : &passes,
		.microbench_context = &own,
		.tell = c->rank == 0 ? o->tell : NULL,
		.tell_context = o->context,
		.probed = probed};
	bool done = skep_probe_rank_run(&setup, &clean, reterr);
	skep_rejects_close(&rejects);
	skep_transport_mpi_destroy(&transport, clean);
	if (setup.signal_fd >= 0)
		close(setup.signal_fd);
	return done;
}

/* A second for each way; with many of them such a part of it that all take less than a minute, as long as it bears a figure. */
static uint64_t usual_ns(uint32_t turns)
{
	const uint64_t part_ns = UINT64_C(40000000000) / (turns > 0 ? turns : 1);
	return part_ns > WAY_MOST_NS ? WAY_MOST_NS : part_ns < WAY_LEAST_NS ? WAY_LEAST_NS : part_ns;
}

static bool run(
	const struct skep_probe_options *o, struct cluster *c, struct skep_probed *ret, struct skep_diag *reterr)
{
	bool one = skep_together_one_host(&c->start);
	uint64_t pair_ns = o->pair_ns;
	check(o, c, one, reterr);
	if (!skep_together_agree(&c->start, "its device", SKEP_START_AT_WORK, reterr))
		return false;
	if (c->rank == 0 && !find_places(o, c, ret))
		skep_fail(reterr, "no memory for the ways between %" PRIu32 " ranks", c->ranks);
	if (!skep_together_agree(&c->start, "the ways", 1, reterr))
		return false;
	if (c->rank == 0) {
		uint32_t ways, turns;
		ret->at_once = o->at_once;
		if (o->model != NULL)
			describe_model(o->model, &ret->model);
		skep_date_text(skep_date_now(), "%Y-%m-%d %H:%M UTC", ret->date, sizeof ret->date);
		snprintf(ret->gpu, sizeof ret->gpu, "%s", o->gpu != NULL ? o->gpu : "");
		snprintf(ret->shaped, sizeof ret->shaped, "%s", o->shape != NULL ? o->shape_path : "");
		skep_probe_rank_count(ret, &ways, &turns);
		pair_ns = pair_ns > 0 ? pair_ns : usual_ns(turns);
		ret->way_s = 1e-9 * (double)pair_ns;
		if (o->begin != NULL)
			o->begin(o->context, ret, ways, turns);
	}
	struct skep_clock clock;
	if (!skep_together_tell(&c->start, "how long each way takes", 1, &pair_ns, sizeof pair_ns, reterr) ||
		!skep_together_clock(&c->start, one, &clock, reterr))
		return false;
	return measure(o, c, &clock, pair_ns, ret, reterr);
}

bool skep_probe_run(const struct skep_probe_options *options, struct skep_probed *ret, struct skep_diag *reterr)
{
	struct cluster cluster;
	*ret = (struct skep_probed){0};
	bool done = cluster_init(&cluster, reterr) && run(options, &cluster, ret, reterr);
	cluster_finish(&cluster);
	if (!done)
		skep_probed_finish(ret);
	return done;
}
