/* SPDX-License-Identifier: Apache-2.0
 *
 * parts.c - see parts.h. A machine of several parts is a place, whose inside is the link between its GPUs and whose uplink and
 * downlink are its own `up` and `down`. Where it is alone at a place, that is it; else it gets one, as far from all others as the
 * place that it was at.
 */
#include "topologies/read/parts.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topologies/read/draft.h"

struct parts {
	struct skep_topology *t;
	const uint32_t *first, *gpus;
	uint32_t places;        /* when all have theirs */
	uint32_t *origin;       /* [places] whose links a place has */
	uint32_t *own;          /* [machines] the place of a machine of several parts, else its old one */
	struct skep_pair *pair; /* these are [places * places], or [places] */
	char (*name)[32];
	struct skep_site_link *site_link;
	bool *dials_out;
	double *egress;
	uint16_t *profile;
	struct skep_unsure_pair *unsure;
};

static bool is_several(const struct parts *p, uint32_t machine)
{
	return p->first[machine + 1] - p->first[machine] > 1;
}

/* No other endpoint stands at its place, the directory included. */
static bool is_alone(const struct skep_topology *t, uint32_t machine)
{
	for (uint32_t i = 0; i <= t->machines; i++)
		if (i != machine && t->machine[i].place == t->machine[machine].place)
			return false;
	return true;
}

const char *skep_parts_refuse(const struct skep_topology *t, uint32_t machine)
{
	uint32_t place = t->machine[machine].place;
	if (is_alone(t, machine))
		return NULL;
	if (t->dials_out && t->dials_out[place])
		return "its site only dials out (`reach: out`), and machines of one such site reach each other";
	if (t->site_link && (!isinf(t->site_link[place].up_Bps) || !isinf(t->site_link[place].down_Bps)))
		return "its site has an uplink or a downlink that it shares with other machines";
	for (uint32_t other = 0; other < t->places; other++)
		if (!isinf(t->pair[(size_t)place * t->places + other].shared_Bps) ||
			!isinf(t->pair[(size_t)other * t->places + place].shared_Bps))
			return "its site has a link that it shares with other machines (`shared`)";
	return NULL;
}

/* ---- kinds of machines ---------------------------------------------------------------------------------------------- */

/* So many GPUs of a machine of kind `gpu`. Tables have no rows yet, which are read when asked for. UINT32_MAX: no room. */
static uint32_t part_kind(struct skep_topology *t, uint32_t gpu, uint32_t gpus)
{
	struct skep_board board = t->gpu[gpu].board;
	if (gpus == board.gpus)
		return gpu;
	board.host_bytes *= (double)gpus / board.gpus;
	board.host_Bps *= (double)gpus / board.gpus;
	board.gpus = gpus;
	for (uint32_t i = 0; i < t->gpus; i++)
		if (strcmp(t->gpu[i].path, t->gpu[gpu].path) == 0 && strcmp(t->gpu[i].name, t->gpu[gpu].name) == 0 &&
			skep_board_equal(&t->gpu[i].board, &board))
			return i;
	struct skep_gpu *kind = &t->gpu[t->gpus];
	size_t bytes = t->gpu[gpu].tables * sizeof *kind->table;
	struct skep_gpu_table *table = bytes > 0 && t->gpus < SKEP_GPU_TYPES_MAX ? malloc(bytes) : NULL;
	if (t->gpus == SKEP_GPU_TYPES_MAX || (bytes > 0 && !table))
		return UINT32_MAX;
	*kind = t->gpu[gpu];
	for (uint32_t i = 0; i < kind->tables; i++) {
		assert(kind->table[i].rows == 0);
		table[i] = kind->table[i];
	}
	assert(kind->stages.rows == 0);
	kind->table = table;
	kind->board = board;
	return t->gpus++;
}

/* ---- places --------------------------------------------------------------------------------------------------------- */

static void name_places(struct parts *p)
{
	const struct skep_topology *t = p->t;
	memcpy(p->name, t->place_name, t->places * sizeof *p->name);
	for (uint32_t i = 0; i < t->machines; i++)
		if (p->own[i] >= t->places)
			snprintf(
				p->name[p->own[i]], sizeof *p->name, "%.20s/%u", t->place_name[t->machine[i].place], i);
}

/* A place of each machine that is taken apart. False: no memory. */
static bool find_places(struct parts *p)
{
	const struct skep_topology *t = p->t;
	uint32_t more = 0;
	p->own = calloc(t->machines, sizeof *p->own);
	p->origin = calloc((size_t)t->places + t->machines, sizeof *p->origin);
	if (!p->own || !p->origin)
		return false;
	for (uint32_t place = 0; place < t->places; place++)
		p->origin[place] = place;
	for (uint32_t i = 0; i < t->machines; i++) {
		p->own[i] = t->machine[i].place;
		if (!is_several(p, i) || is_alone(t, i))
			continue;
		p->own[i] = t->places + more;
		p->origin[t->places + more++] = t->machine[i].place;
	}
	p->places = t->places + more;
	return true;
}

static bool reserve(struct parts *p)
{
	const struct skep_topology *t = p->t;
	size_t pairs = (size_t)p->places * p->places;
	p->pair = calloc(pairs, sizeof *p->pair);
	p->name = calloc(p->places, sizeof *p->name);
	p->site_link = calloc(p->places, sizeof *p->site_link);
	p->dials_out = t->dials_out ? calloc(p->places, sizeof *p->dials_out) : NULL;
	p->egress = t->egress_usd_per_B ? calloc(pairs, sizeof *p->egress) : NULL;
	p->profile = t->link_profiles > 0 ? calloc(pairs, sizeof *p->profile) : NULL;
	p->unsure = t->unsure ? calloc(pairs, sizeof *p->unsure) : NULL;
	return p->pair && p->name && p->site_link && (p->dials_out || !t->dials_out) &&
	       (p->egress || !t->egress_usd_per_B) && (p->profile || t->link_profiles == 0) &&
	       (p->unsure || !t->unsure);
}

static void copy_pair(struct parts *p, uint32_t from, uint32_t to)
{
	const struct skep_topology *t = p->t;
	size_t at = (size_t)from * p->places + to, old = (size_t)p->origin[from] * t->places + p->origin[to];
	p->pair[at] = t->pair[old];
	if (p->egress)
		p->egress[at] = t->egress_usd_per_B[old];
	if (p->profile)
		p->profile[at] = t->link_profile_of ? t->link_profile_of[old] : 0;
	if (p->unsure)
		p->unsure[at] = t->unsure[old];
}

/* `plain`: a link profile that says nothing. */
static void take_inside(struct parts *p, uint32_t machine, uint16_t plain)
{
	const struct skep_machine *m = &p->t->machine[machine];
	const struct skep_board *board = &p->t->gpu[m->gpu].board;
	uint32_t place = p->own[machine];
	size_t at = (size_t)place * p->places + place;
	p->pair[at] = (struct skep_pair){board->inner_Bps, board->inner_latency_s, INFINITY};
	if (p->egress)
		p->egress[at] = 0;
	if (p->profile)
		p->profile[at] = plain;
	if (p->unsure)
		p->unsure[at] = (struct skep_unsure_pair){{0, 0}, {0, 0}};
	p->site_link[place].up_Bps = fmin(p->site_link[place].up_Bps, m->up_Bps);
	p->site_link[place].down_Bps = fmin(p->site_link[place].down_Bps, m->down_Bps);
}

/* One more that says nothing, for the insides of machines. False: no memory. */
static bool add_plain_profile(struct skep_topology *t, uint16_t *ret)
{
	if (t->link_profiles >= UINT16_MAX)
		return false;
	struct skep_link_profile *grown = realloc(t->link_profile, (t->link_profiles + 1u) * sizeof *grown);
	if (!grown)
		return false;
	t->link_profile = grown;
	t->link_profile[t->link_profiles] = (struct skep_link_profile){.window_bytes = INFINITY};
	*ret = (uint16_t)t->link_profiles++;
	return true;
}

static bool fill_places(struct parts *p)
{
	struct skep_topology *t = p->t;
	uint16_t plain = 0;
	if (p->profile && !add_plain_profile(t, &plain))
		return false;
	for (uint32_t from = 0; from < p->places; from++) {
		p->site_link[from] = (struct skep_site_link){INFINITY, INFINITY};
		if (t->site_link)
			p->site_link[from] = t->site_link[p->origin[from]];
		if (p->dials_out)
			p->dials_out[from] = t->dials_out[p->origin[from]];
		for (uint32_t to = 0; to < p->places; to++)
			copy_pair(p, from, to);
	}
	name_places(p);
	for (uint32_t i = 0; i < t->machines; i++)
		if (is_several(p, i))
			take_inside(p, i, plain);
	return true;
}

/* What was there before becomes what `p` holds, and is freed with it. */
static void exchange_places(struct parts *p)
{
	struct skep_topology *t = p->t;
	const struct parts before = {.pair = t->pair,
		.name = t->place_name,
		.site_link = t->site_link,
		.dials_out = t->dials_out,
		.egress = t->egress_usd_per_B,
		.profile = t->link_profile_of,
		.unsure = t->unsure};
	t->places = p->places;
	t->pair = p->pair;
	t->place_name = p->name;
	t->site_link = p->site_link;
	t->dials_out = p->dials_out;
	t->egress_usd_per_B = p->egress;
	t->link_profile_of = p->profile;
	t->unsure = p->unsure;
	p->pair = before.pair;
	p->name = before.name;
	p->site_link = before.site_link;
	p->dials_out = before.dials_out;
	p->egress = before.egress;
	p->profile = before.profile;
	p->unsure = before.unsure;
}

/* ---- machines ------------------------------------------------------------------------------------------------------- */

/* One part of a machine; its GPUs are those of `kind`. */
static struct skep_machine part_of(const struct parts *p, uint32_t machine, uint32_t kind, uint32_t gpus, uint32_t used)
{
	struct skep_machine m = p->t->machine[machine];
	uint32_t has = p->t->gpu[m.gpu].board.gpus;
	m.price_usd_per_h *= (double)gpus / used;
	if (m.prices > 0)
		m.instance_gpus = (m.instance_gpus > 0 ? m.instance_gpus : has) * used / (double)has;
	m.gpu = kind;
	m.of_site = 1 + m.place;
	m.place = p->own[machine];
	if (is_several(p, machine))
		m.up_Bps = m.down_Bps = INFINITY;
	return m;
}

static uint32_t used_of(const struct parts *p, uint32_t machine)
{
	uint32_t used = 0;
	for (uint32_t k = p->first[machine]; k < p->first[machine + 1]; k++)
		used += p->gpus[k];
	assert(used > 0 && used <= p->t->gpu[p->t->machine[machine].gpu].board.gpus);
	return used;
}

/* [parts + 1], the last is the directory. NULL: no memory, or no room for one more kind. */
static struct skep_machine *make_machines(struct parts *p)
{
	struct skep_topology *t = p->t;
	uint32_t count = p->first[t->machines];
	struct skep_machine *made = calloc((size_t)count + 1, sizeof *made);
	for (uint32_t i = 0; made && i < t->machines; i++)
		for (uint32_t k = p->first[i]; made && k < p->first[i + 1]; k++) {
			uint32_t kind = part_kind(t, t->machine[i].gpu, p->gpus[k]);
			if (kind == UINT32_MAX) {
				free(made);
				made = NULL;
				continue;
			}
			made[k] = part_of(p, i, kind, p->gpus[k], used_of(p, i));
		}
	if (made)
		made[count] = t->machine[t->machines];
	return made;
}

bool skep_parts_take(struct skep_topology *t, const uint32_t *first, const uint32_t *gpus)
{
	struct parts p = {.t = t, .first = first, .gpus = gpus};
	bool ok = find_places(&p) && reserve(&p) && fill_places(&p);
	struct skep_machine *made = ok ? make_machines(&p) : NULL;
	if (made) {
		exchange_places(&p);
		free(t->machine);
		t->machine = made;
		t->machines = first[t->machines];
	}
	free(p.own);
	free(p.origin);
	free(p.pair);
	free(p.name);
	free(p.site_link);
	free(p.dials_out);
	free(p.egress);
	free(p.profile);
	free(p.unsure);
	return made != NULL;
}
