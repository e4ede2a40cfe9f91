/* SPDX-License-Identifier: Apache-2.0
 *
 * topology.c - reads topology files: what both forms have in common, and the machines.
 *
 * What is kept true of a topology that was read: it has at least one machine, every ordered pair of endpoints that
 * traffic can use has a capacity above 0 and a latency, every machine has a GPU profile, and the directory stands at a
 * place.
 */
#include "topologies/read/draft.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topologies/read/path.h"

#define SPEED_LEAST 0.001 /* times that of a profile */
#define SPEED_MOST 1000.0

/* ---- what sites.c and matrix.c use ------------------------------------------------------------------------------- */

void skep_draft_no_memory(struct skep_draft *d)
{
	skep_diag_set(d->r.diag, d->path, 0, 0, NULL, "not enough memory for this topology");
}

static bool reserve(struct skep_draft *d, uint32_t more)
{
	struct skep_topology *t = d->topology;
	uint32_t need = t->machines + more;
	if (need <= d->capacity)
		return true;
	uint32_t capacity = need > 2 * d->capacity ? need : 2 * d->capacity;
	struct skep_machine *grown = realloc(t->machine, ((size_t)capacity + 1) * sizeof *grown);
	if (!grown) {
		skep_draft_no_memory(d);
		return false;
	}
	t->machine = grown;
	d->capacity = capacity;
	return true;
}

/* An unknown name is a fault of the topology file, shown where the name stands; a fault of the profile is shown there. */
static void read_gpu(struct skep_draft *d, const struct skep_yaml_node *group, const char *name, double speed,
	const struct skep_board *board)
{
	struct skep_topology *t = d->topology;
	if (t->gpus == SKEP_GPU_TYPES_MAX) {
		skep_reader_fail(&d->r, group, "gpu", "more than %u GPU types", SKEP_GPU_TYPES_MAX);
		return;
	}
	struct skep_diag diag = skep_diag_beside(d->r.diag);
	if (skep_gpu_read(d->path, name, &t->gpu[t->gpus], &diag)) {
		t->gpu[t->gpus].board = *board;
		if (speed < 1 || speed > 1)
			skep_gpu_scale(&t->gpu[t->gpus], speed);
		d->speed[t->gpus] = speed;
		d->profile[t->gpus++] = name;
	} else if (strcmp(diag.file, d->path) == 0)
		skep_reader_fail(&d->r, group, "gpu", "%s", diag.message);
	else
		*d->r.diag = diag;
}

/* `gpu: t4`, or `gpu: {base: t4, speed: 0.5}`. */
static const char *read_gpu_name(struct skep_draft *d, const struct skep_yaml_node *group, double *ret_speed)
{
	*ret_speed = 1;
	if (skep_yaml_kind(skep_read_any(&d->r, group, "gpu")) != SKEP_YAML_MAP)
		return skep_read_string(&d->r, group, "gpu", NULL);
	const struct skep_yaml_node *map = skep_read_map(&d->r, group, "gpu", true);
	const char *name = skep_read_string(&d->r, map, "base", NULL);
	*ret_speed = skep_read_number(&d->r, map, "speed", SPEED_LEAST, SPEED_MOST, NAN);
	skep_reader_close_map(&d->r, map);
	return name;
}

/* The index of the profile that the group names, in such a machine; reads each once. */
static uint32_t gpu_index(struct skep_draft *d, const struct skep_yaml_node *group)
{
	struct skep_board board;
	double speed;
	const char *name = read_gpu_name(d, group, &speed);
	skep_board_read(&d->r, group, &board);
	if (d->r.diag->set)
		return 0;
	for (uint32_t i = 0; i < d->topology->gpus; i++)
		if (strcmp(d->profile[i], name) == 0 && !(d->speed[i] < speed || d->speed[i] > speed) &&
			skep_board_equal(&d->topology->gpu[i].board, &board))
			return i;
	read_gpu(d, group, name, speed, &board);
	return d->topology->gpus - 1;
}

static double access_Bps(struct skep_draft *d, const struct skep_yaml_node *group, const char *key)
{
	return skep_read_quantity(&d->r, group, key, SKEP_BANDWIDTH, SKEP_LINK_BPS_MIN, SKEP_LINK_BPS_MAX, INFINITY);
}

/* Reads a history once, however many groups of machines name it. */
static uint32_t add_prices(
	struct skep_draft *d, const struct skep_yaml_node *map, const char *path, const char *type, const char *zone)
{
	struct skep_topology *t = d->topology;
	for (uint32_t i = 0; i < t->prices; i++)
		if (strcmp(t->price[i].path, path) == 0 && strcmp(d->price_type[i], type) == 0 &&
			strcmp(d->price_zone[i], zone) == 0)
			return i + 1;
	if (t->prices == SKEP_PRICES_MAX) {
		skep_reader_fail(&d->r, map, "file", "more than %u price histories", SKEP_PRICES_MAX);
		return 0;
	}
	struct skep_diag diag = skep_diag_beside(d->r.diag);
	if (!skep_price_read(path, type, zone, &t->price[t->prices], &diag)) {
		if (diag.line > 0)
			*d->r.diag = diag;
		else /* what is missing in the file is shown where it was asked for */
			skep_reader_fail(&d->r, map, type[0] ? "type" : "file", "%.200s: %s", path, diag.message);
		return 0;
	}
	d->price_type[t->prices] = type;
	d->price_zone[t->prices] = zone;
	return ++t->prices;
}

/* A machine that is a part of an instance costs that part: a history, or `price`, is of `instance_gpus` GPUs. Where that is not
 * said, of a type of instance with a known number; else the price is that of the machine. */
static void read_instance(struct skep_draft *d, const struct skep_yaml_node *group, struct skep_machine *machine)
{
	const struct skep_topology *t = d->topology;
	bool given = skep_read_has(&d->r, group, "instance_gpus");
	int64_t gpus = skep_read_integer(&d->r, group, "instance_gpus", 1, SKEP_BOARD_GPUS_MAX, 0);
	if (d->r.diag->set)
		return;
	const char *type = machine->prices > 0 ? t->price[machine->prices - 1].type : "";
	uint32_t has = t->gpu[machine->gpu].board.gpus;
	const uint32_t of = given ? (uint32_t)gpus : skep_price_instance_gpus(type);
	machine->instance_gpus = of;
	if (given && !skep_machine_has_price(machine))
		skep_reader_fail(
			&d->r, group, "instance_gpus", "how many GPUs the price is for, but there is no price");
	else if (of > 0 && of < has)
		skep_reader_fail(&d->r, group, given ? "instance_gpus" : "gpus",
			"this machine has %u GPU%s and the instance that is priced %u: it cannot be a part of it", has,
			has > 1 ? "s" : "", of);
	else if (of > 0)
		machine->price_usd_per_h *= (double)has / machine->instance_gpus;
}

/* `prices: {file, type, zone}` instead of `price`; 0: neither. */
static uint32_t read_prices(struct skep_draft *d, const struct skep_yaml_node *group)
{
	char path[512];
	const struct skep_yaml_node *map = skep_read_map(&d->r, group, "prices", false);
	if (!map)
		return 0;
	const char *name = skep_read_string(&d->r, map, "file", NULL);
	const char *type = skep_read_string(&d->r, map, "type", ""), *zone = skep_read_string(&d->r, map, "zone", "");
	skep_reader_close_map(&d->r, map);
	size_t room = sizeof d->topology->price->type;
	if (!d->r.diag->set && (strlen(type) >= room || strlen(zone) >= room))
		skep_reader_fail(
			&d->r, map, strlen(type) >= room ? "type" : "zone", "a name of less than %zu bytes", room);
	else if (!d->r.diag->set && skep_read_has(&d->r, group, "price"))
		skep_reader_fail(&d->r, group, "price", "either `price` or `prices`, not both");
	else if (!d->r.diag->set && !skep_read_find(&d->r, map, "file", d->path, name, path, sizeof path))
		skep_reader_fail(&d->r, map, "file", "no file `%.200s` with prices", name);
	return d->r.diag->set ? 0 : add_prices(d, map, path, type, zone);
}

/* How many machines of a group one after the other are on one host, whose cores they share; 0: the file does not say. */
static uint32_t share_hosts(
	struct skep_draft *d, const struct skep_yaml_node *group, struct skep_board board, uint32_t count)
{
	uint32_t together = board.cores == 0 ? 0 : board.host_machines > 0 ? board.host_machines : count;
	if (together > 0 && count % together != 0)
		skep_reader_fail(&d->r, group, "count",
			"%u machines with %u on each host (host.machines): expected a multiple of that", count,
			together);
	return together;
}

static void add_group(struct skep_draft *d, const struct skep_yaml_node *group, uint32_t place)
{
	struct skep_reader *r = &d->r;
	struct skep_topology *t = d->topology;
	int64_t count = skep_read_integer(r, group, "count", 1, SKEP_MACHINES_MAX, 1);
	struct skep_machine machine = {.gpu = gpu_index(d, group),
		.up_Bps = access_Bps(d, group, "up"),
		.down_Bps = access_Bps(d, group, "down"),
		.price_usd_per_h = skep_read_quantity(r, group, "price", SKEP_PRICE, 0, 1e6, 0),
		.prices = read_prices(d, group),
		.unsure = skep_draft_read_unsure_group(d, group)};
	machine.is_free = machine.price_usd_per_h == 0 && skep_read_has(r, group, "price");
	if (!r->diag->set)
		read_instance(d, group, &machine);
	skep_reader_close_map(r, group);
	if (!r->diag->set && count > SKEP_MACHINES_MAX - t->machines)
		skep_reader_fail(r, group, "count", "more than %u machines", SKEP_MACHINES_MAX);
	if (r->diag->set || !reserve(d, (uint32_t)count))
		return;
	uint32_t together = share_hosts(d, group, t->gpu[machine.gpu].board, (uint32_t)count);
	for (int64_t i = 0; i < count && !r->diag->set; i++) {
		if (together > 0 && i % together == 0)
			t->hosts++;
		machine.host = together > 0 ? t->hosts : 0;
		machine.place = place == SKEP_OWN_PLACE ? t->machines : place;
		t->machine[t->machines++] = machine;
	}
}

uint32_t skep_draft_gpu(struct skep_draft *d, const struct skep_yaml_node *map)
{
	return gpu_index(d, map);
}

bool skep_draft_reserve(struct skep_draft *d, uint32_t more)
{
	return reserve(d, more);
}

void skep_draft_add_machines(struct skep_draft *d, const struct skep_yaml_node *map, bool required, uint32_t place)
{
	const struct skep_yaml_node *list = skep_read_list(&d->r, map, "machines", required);
	for (uint32_t i = 0; !d->r.diag->set && list && i < skep_yaml_length(list); i++) {
		const struct skep_yaml_node *group = skep_yaml_item(list, i);
		if (skep_yaml_kind(group) == SKEP_YAML_MAP)
			add_group(d, group, place);
		else
			skep_reader_fail(&d->r, group, NULL, "expected machines as {count, gpu, up, down, price}");
	}
}

void skep_draft_add_places(struct skep_draft *d, uint32_t places)
{
	struct skep_topology *t = d->topology;
	size_t pairs = (size_t)places * places;
	t->places = places;
	t->pair = calloc(pairs, sizeof *t->pair);
	t->place_name = calloc(places, sizeof *t->place_name);
	if (!t->pair || !t->place_name) {
		skep_draft_no_memory(d);
		return;
	}
	for (size_t i = 0; i < pairs; i++)
		t->pair[i] = (struct skep_pair){.capacity_Bps = NAN, .latency_s = NAN, .shared_Bps = INFINITY};
}

void skep_draft_name_place(
	struct skep_draft *d, const struct skep_yaml_node *at, const char *key, uint32_t place, const char *name)
{
	size_t length = strlen(name), size = sizeof d->topology->place_name[place];
	if (length == 0 || length >= size)
		skep_reader_fail(
			&d->r, at, key, "expected a name of 1 to %zu bytes, this one has %zu", size - 1, length);
	else
		memcpy(d->topology->place_name[place], name, length + 1);
}

struct skep_draft_link skep_draft_read_link(struct skep_draft *d, const struct skep_yaml_node *map)
{
	struct skep_draft_link link = {.unsure = skep_draft_read_unsure(d, map)};
	double spread_s;
	link.pair.capacity_Bps =
		skep_read_quantity(&d->r, map, "bandwidth", SKEP_BANDWIDTH, SKEP_LINK_BPS_MIN, SKEP_LINK_BPS_MAX, NAN);
	link.pair.latency_s = skep_read_spread(&d->r, map, "latency", SKEP_TIME, 0, SKEP_LATENCY_S_MAX, NAN, &spread_s);
	link.pair.shared_Bps = skep_read_bool(&d->r, map, "shared", false) ? link.pair.capacity_Bps : INFINITY;
	link.egress_usd_per_B = skep_draft_read_egress(d, map);
	link.link_profile = skep_draft_read_link_profile(d, map, spread_s);
	return link;
}

/* Most files have no link profile, or one for all: the table is made when a link has another. */
void skep_draft_set_pair(
	struct skep_draft *d, uint32_t source, uint32_t destination, const struct skep_draft_link *link)
{
	struct skep_topology *t = d->topology;
	size_t at = (size_t)source * t->places + destination;
	t->pair[at] = link->pair;
	skep_draft_set_unsure(d, at, &link->unsure);
	skep_draft_set_egress(d, source, destination, link->egress_usd_per_B);
	if (link->link_profile > 0 && !t->link_profile_of) {
		t->link_profile_of = calloc((size_t)t->places * t->places, sizeof *t->link_profile_of);
		if (!t->link_profile_of)
			skep_draft_no_memory(d);
	}
	if (t->link_profile_of)
		t->link_profile_of[at] = link->link_profile;
}

struct skep_pair skep_pair_unlimited(void)
{
	return (struct skep_pair){.capacity_Bps = INFINITY, .latency_s = 0, .shared_Bps = INFINITY};
}

/* ---- a topology file --------------------------------------------------------------------------------------------- */

static void read_fallback(struct skep_draft *d, const struct skep_yaml_node *root)
{
	const struct skep_yaml_node *map = skep_read_map(&d->r, root, "fallback", false);
	if (d->r.diag->set || !map)
		return;
	d->has_fallback = true;
	d->fallback = skep_draft_read_link(d, map);
	skep_reader_close_map(&d->r, map);
}

static void add_directory(struct skep_draft *d)
{
	struct skep_topology *t = d->topology;
	if (!reserve(d, 0))
		return;
	t->machine[t->machines] = (struct skep_machine){
		.place = d->directory_place, .gpu = UINT32_MAX, .up_Bps = INFINITY, .down_Bps = INFINITY};
}

static const struct skep_mistaken MISTAKEN[] = {
	{"cluster", "a scenario, which names one there"},
	{"kind", "a model; a scenario names it at `model.file`"},
	{"flops", "the profile of a GPU; machines of a topology name it at `gpu`"},
};

static void read_file(struct skep_draft *d)
{
	static const char *const fairness[] = {"equal", "rtt", "latency", NULL}; /* enum skep_fairness */
	struct skep_reader *r = &d->r;
	struct skep_topology *t = d->topology;
	const struct skep_yaml_node *root = skep_yaml_root(r->yaml);
	skep_reader_refuse_mistaken(r, root, "topology", MISTAKEN, sizeof MISTAKEN / sizeof MISTAKEN[0]);
	skep_label_read(r, root, t->name, sizeof t->name, t->source, sizeof t->source);
	t->fairness = (enum skep_fairness)skep_read_choice(r, root, "fairness", fairness, SKEP_FAIRNESS_EQUAL);
	skep_draft_read_link_profiles(d, root);
	read_fallback(d, root);
	bool sites = skep_read_has(r, root, "sites"), matrix = skep_read_has(r, root, "matrix");
	bool peers = skep_read_has(r, root, "peers");
	if (r->diag->set)
		return;
	if (sites && matrix)
		skep_reader_fail(r, root, "matrix", "expected either 'sites' or 'matrix', not both");
	else if (peers && (sites || matrix))
		skep_reader_fail(r, root, "peers", "expected either 'sites', 'matrix' or 'peers', not two of them");
	else if (sites)
		skep_draft_read_sites(d, root);
	else if (matrix)
		skep_draft_read_matrix(d, root);
	else if (peers)
		skep_draft_read_peers(d, root);
	else
		skep_reader_fail(
			r, root, NULL, "expected 'sites' (with 'links'), 'matrix' (with 'machines') or 'peers'");
	skep_reader_close_map(r, root);
	if (!r->diag->set)
		add_directory(d);
	if (!r->diag->set)
		skep_path_join_relayed(t);
	skep_draft_finish_link_profiles(d);
}

bool skep_topology_read(const char *path, struct skep_topology *ret, struct skep_diag *reterr)
{
	char *text;
	size_t size;
	*ret = (struct skep_topology){0};
	if (!skep_file_read(path, SKEP_FILE_BYTES_MAX, &text, &size, reterr))
		return false;
	snprintf(ret->path, sizeof ret->path, "%s", path);
	struct skep_draft draft = {
		.r = {skep_yaml_parse(path, text, size, reterr), reterr}, .path = path, .topology = ret};
	ret->gpu = calloc(SKEP_GPU_TYPES_MAX, sizeof *ret->gpu);
	ret->price = calloc(SKEP_PRICES_MAX, sizeof *ret->price);
	if (!ret->gpu || !ret->price)
		skep_draft_no_memory(&draft);
	if (draft.r.yaml && ret->gpu && ret->price)
		read_file(&draft);
	skep_yaml_destroy(draft.r.yaml);
	free(text);
	if (reterr->set)
		skep_topology_finish(ret);
	return !reterr->set;
}

void skep_topology_finish(struct skep_topology *t)
{
	free(t->machine);
	free(t->pair);
	free(t->place_name);
	for (uint32_t i = 0; i < t->gpus; i++)
		skep_gpu_finish(&t->gpu[i]);
	free(t->site_link);
	free(t->dials_out);
	free(t->egress_usd_per_B);
	free(t->link_profile);
	free(t->link_profile_of);
	free(t->delay_s);
	free(t->delay_file);
	free(t->unsure);
	free(t->unsure_group);
	free(t->gpu);
	for (uint32_t i = 0; i < t->prices; i++)
		skep_price_finish(&t->price[i]);
	free(t->price);
	*t = (struct skep_topology){0};
}

struct skep_pair skep_topology_pair(const struct skep_topology *t, uint32_t source, uint32_t destination)
{
	assert(source <= t->machines && destination <= t->machines);
	if (source == destination)
		return skep_pair_unlimited();
	return t->pair[(size_t)t->machine[source].place * t->places + t->machine[destination].place];
}

bool skep_topology_is_link(const struct skep_pair *pair)
{
	return !isinf(pair->capacity_Bps) || pair->latency_s > 0;
}

void skep_topology_add_latency(struct skep_topology *t, double latency_s)
{
	for (size_t i = 0; i < (size_t)t->places * t->places; i++)
		t->pair[i].latency_s += skep_topology_is_link(&t->pair[i]) ? latency_s : 0;
}

void skep_topology_scale_bandwidth(struct skep_topology *t, double factor)
{
	for (size_t i = 0; i < (size_t)t->places * t->places; i++) {
		t->pair[i].capacity_Bps *= factor;
		t->pair[i].shared_Bps *= factor;
	}
	for (uint32_t i = 0; i < t->machines; i++) {
		t->machine[i].up_Bps *= factor;
		t->machine[i].down_Bps *= factor;
	}
	for (uint32_t i = 0; t->site_link != NULL && i < t->places; i++) {
		t->site_link[i].up_Bps *= factor;
		t->site_link[i].down_Bps *= factor;
	}
}

/* ---- prices ------------------------------------------------------------------------------------------------------ */

/* How much of the priced instance a machine is. */
static double part_of_instance(const struct skep_topology *t, const struct skep_machine *m)
{
	return m->instance_gpus > 0 ? (double)t->gpu[m->gpu].board.gpus / m->instance_gpus : 1;
}

const struct skep_price_series *skep_topology_start_prices(struct skep_topology *t, skep_time start_ns)
{
	t->price_start_ns = start_ns;
	for (uint32_t i = 0; i < t->prices; i++)
		if (start_ns < t->price[i].step[0].at_ns)
			return &t->price[i];
	for (uint32_t i = 0; i < t->machines; i++)
		if (t->machine[i].prices > 0)
			t->machine[i].price_usd_per_h = part_of_instance(t, &t->machine[i]) *
			                                skep_price_at(&t->price[t->machine[i].prices - 1], start_ns);
	return NULL;
}

double skep_topology_cost_usd(const struct skep_topology *t, uint32_t machine, skep_time begin_ns, skep_time end_ns)
{
	const struct skep_machine *m = &t->machine[machine];
	skep_time start = t->price_start_ns;
	if (m->prices > 0)
		return part_of_instance(t, m) *
		       skep_price_cost_usd(&t->price[m->prices - 1], start + begin_ns, start + end_ns);
	return skep_machine_has_price(m) ? m->price_usd_per_h * (double)(end_ns - begin_ns) / 3600e9 : NAN;
}
