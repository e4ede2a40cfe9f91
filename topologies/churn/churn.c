/* SPDX-License-Identifier: Apache-2.0
 *
 * churn.c - maps a trace on machines, in three steps: the lives of the trace are collected; each becomes as many moves
 * (a join or a leave of one copy) as it stands for, jittered and sorted; each join in that order takes a free machine.
 *
 * Copies: the slot s of a name (dense: below the most alive at once) stands for floor((s + 1) c) - floor(s c) machines, so
 * that 32 names with c = 12.5 are never more than 400 machines, and exactly so many when all are alive.
 * Jitter: each move of each copy happens up to jitter_ns later than the trace says, drawn evenly; a leave at least 1 ns
 * behind its join. A recorder that polls once a minute shows all losses on the minute: with a jitter of a minute they
 * spread over the minute that follows. Machines that are there at the start get no jitter.
 * A join that finds no free machine of its type is dropped; it does not wait for one.
 * Places: in a recording whose names, or zones, are places of the topology (places.h), a machine joins at its place alone.
 */
#include "topologies/churn/churn.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "core/random.h"
#include "topologies/churn/trace_generate.h"
#include "topologies/places/places.h"

#define DRAWN_STREAM 0x6472617765u /* drawing a trace, apart from jitter and machines */
#define MOVES_MAX (256u << 20)
#define TYPES_MAX 64u
#define NOWHERE UINT32_MAX

struct life {
	skep_time from_ns, to_ns; /* trace time; to_ns SKEP_TIME_NEVER: not ended */
	uint32_t slot, type;
	uint32_t place; /* at which it stands; SKEP_NO_PLACE: any */
};

struct type {
	char name[128];
	uint64_t *suits; /* a bit per machine */
};

struct move {
	skep_time at_ns; /* run time */
	uint32_t copy;   /* of which life's which copy: a running number */
	bool join;
};

struct mapping {
	const struct skep_topology *topology;
	const struct skep_churn_options *options;
	struct skep_churn *churn;
	bool drawn;                  /* like the recording */
	skep_time duration_ns;       /* of what is drawn; 0: as long as that */
	skep_time first_ns, last_ns; /* of the trace */
	bool begun, ended;           /* by a row of its own */
	struct life *life;
	size_t lives;
	size_t *of_slot; /* [slots]: the life in it */
	uint32_t slots;
	struct type type[TYPES_MAX];
	uint32_t types;
	bool too_many_types;
	struct move *move;
	size_t moves;
	struct skep_places places;
	uint32_t named, unnamed;                   /* lives whose name is a place's, and others without a place */
	char first_named[128], first_unnamed[128]; /* a name of each */
	uint32_t *where;                           /* [copies]: its life until it joins, then its machine, or NOWHERE */
	uint32_t copies;
	uint64_t *free; /* a bit per machine */
	uint64_t random;
};

/* Room for one more item of `size` bytes. */
static bool reserve(void *items, size_t count, size_t size)
{
	return count < MOVES_MAX && skep_grow(items, count, size);
}

/* ---- types ------------------------------------------------------------------------------------------------------------ */

static bool same_part(const char *a, size_t a_length, const char *b, size_t b_length)
{
	return a_length == b_length && strncasecmp(a, b, a_length) == 0;
}

bool skep_churn_suits(const char *type, const char *profile)
{
	for (bool first = true; *type; first = false) {
		size_t length = strcspn(type, "-"), there = strcspn(profile, "-");
		while (!same_part(type, length, profile, there)) {
			if (first || profile[there] == 0)
				return false;
			profile += there + 1;
			there = strcspn(profile, "-");
		}
		type += length + (type[length] == '-');
		profile += there + (profile[there] == '-');
		if (*type && *profile == 0)
			return false;
	}
	return true;
}

static bool suits(const struct mapping *m, const char *type, uint32_t machine)
{
	const struct skep_topology *t = m->topology;
	return m->options->any_gpu || type[0] == 0 || skep_churn_suits(type, t->gpu[t->machine[machine].gpu].name);
}

static uint32_t words(const struct mapping *m)
{
	return (m->topology->machines + 63) / 64;
}

/* The type's index; TYPES_MAX: no memory, or too many. */
static uint32_t type_of(struct mapping *m, const char *name)
{
	for (uint32_t i = 0; i < m->types; i++)
		if (strcmp(m->type[i].name, name) == 0)
			return i;
	m->too_many_types = m->types == TYPES_MAX || strlen(name) >= sizeof m->type[0].name;
	uint64_t *bits = m->too_many_types ? NULL : calloc(words(m), sizeof *bits);
	if (!bits)
		return TYPES_MAX;
	struct type *type = &m->type[m->types];
	memcpy(type->name, name, strlen(name) + 1);
	type->suits = bits;
	for (uint32_t i = 0; i < m->topology->machines; i++)
		if (suits(m, name, i))
			bits[i / 64] |= (uint64_t)1 << i % 64;
	return m->types++;
}

/* ---- places ----------------------------------------------------------------------------------------------------------- */

static uint32_t place_of(struct mapping *m, const struct skep_trace_event *event)
{
	if (m->drawn)
		return SKEP_NO_PLACE;
	uint32_t place = skep_places_find(&m->places, event->name);
	bool named = place != SKEP_NO_PLACE;
	if (!named)
		place = skep_places_find(&m->places, event->zone);
	if (named && m->named++ == 0)
		snprintf(m->first_named, sizeof m->first_named, "%s", event->name);
	if (place == SKEP_NO_PLACE && m->unnamed++ == 0)
		snprintf(m->first_unnamed, sizeof m->first_unnamed, "%s", event->name);
	return place;
}

static bool has_several_places(const struct skep_topology *t)
{
	uint32_t named = 0;
	for (uint32_t i = 0; i < t->places; i++)
		named += t->place_name[i][0] != '\0';
	return named > 1;
}

/* A name that is none of the places beside others that are is a slip of the pen, and would take another one's machine. */
static bool check_names(const struct mapping *m, const char *path, struct skep_diag *reterr)
{
	m->churn->unbound = m->named == 0 && m->unnamed > 0 && has_several_places(m->topology);
	if (m->named == 0 || m->unnamed == 0)
		return true;
	const struct skep_topology *t = m->topology;
	char known[200] = "";
	for (uint32_t i = 0; i < t->places; i++) {
		size_t used = strlen(known);
		if (t->place_name[i][0] && used + strlen(t->place_name[i]) + 3 < sizeof known)
			snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", t->place_name[i]);
	}
	skep_diag_set(reterr, path, 0, 0, NULL,
		"'%.40s' names a place of the topology '%s' and '%.40s' none: name all machines of the trace by where they "
		"are, or none of them; there are: %s",
		m->first_named, t->name, m->first_unnamed, known);
	return false;
}

/* ---- collecting lives --------------------------------------------------------------------------------------------------- */

static bool begin_life(struct mapping *m, const struct skep_trace_event *event)
{
	uint32_t type = type_of(m, event->gpu);
	assert(event->slot <= m->slots);
	if (type == TYPES_MAX || !reserve(&m->life, m->lives, sizeof *m->life) ||
		(event->slot == m->slots && !reserve(&m->of_slot, m->slots, sizeof *m->of_slot)))
		return false;
	m->slots = event->slot >= m->slots ? event->slot + 1 : m->slots;
	m->of_slot[event->slot] = m->lives;
	m->life[m->lives++] = (struct life){event->at_ns, SKEP_TIME_NEVER, event->slot, type, place_of(m, event)};
	return true;
}

static bool collect(void *user, const struct skep_trace_event *event)
{
	struct mapping *m = user;
	const struct skep_churn_options *o = m->options;
	if (!m->begun)
		m->first_ns = event->at_ns;
	m->begun = true;
	skep_time at = event->at_ns - m->first_ns;
	m->last_ns = at;
	switch (event->kind) {
	case SKEP_TRACE_JOIN:
		return begin_life(m, event);
	case SKEP_TRACE_LEAVE:
		m->life[m->of_slot[event->slot]].to_ns = event->at_ns;
		return true;
	case SKEP_TRACE_REFUSED:
		m->churn->refused += at >= o->start_ns && at < o->end_ns;
		return true;
	case SKEP_TRACE_END:
		m->ended = !event->implied;
		return true;
	}
	return false;
}

/* ---- moves -------------------------------------------------------------------------------------------------------------- */

/* Trace time from its first event, as run time; what was there before the start is there at 0. */
static skep_time run_time(const struct mapping *m, skep_time at_ns, skep_time jitter_ns)
{
	skep_time start = m->options->start_ns;
	if (at_ns <= start)
		return 0;
	return (skep_time)((double)(at_ns - start + jitter_ns) * m->options->scale);
}

static skep_time draw_jitter(struct mapping *m)
{
	uint64_t draw = skep_random_next(&m->random); /* always, so that the other draws do not depend on it */
	return m->options->jitter_ns > 0 ? draw % m->options->jitter_ns : 0;
}

static bool add_move(struct mapping *m, skep_time at_ns, bool join)
{
	if (!reserve(&m->move, m->moves, sizeof *m->move))
		return false;
	m->move[m->moves++] = (struct move){at_ns, m->copies, join};
	return true;
}

/* One copy of a life, if it falls into the time that is played. */
static bool add_copy(struct mapping *m, const struct life *life)
{
	bool cut = m->options->end_ns < m->last_ns;
	skep_time start = m->options->start_ns, end = cut ? m->options->end_ns : m->last_ns;
	skep_time from = life->from_ns - m->first_ns, late = draw_jitter(m), later = draw_jitter(m);
	bool ends = life->to_ns != SKEP_TIME_NEVER;
	skep_time to = ends ? life->to_ns - m->first_ns : SKEP_TIME_NEVER;
	bool too_late = from == end && from > start && (cut || m->ended); /* nothing is known behind it */
	if (from > end || to <= start || too_late)
		return true;
	skep_time join_ns = from <= start ? 0 : run_time(m, from, late);
	if (!reserve(&m->where, m->copies, sizeof *m->where) || m->copies == NOWHERE - 1)
		return false;
	m->where[m->copies] = (uint32_t)(life - m->life);
	if (!add_move(m, join_ns, true))
		return false;
	if (ends && to <= end) {
		skep_time leave_ns = run_time(m, to, later);
		if (!add_move(m, leave_ns > join_ns ? leave_ns : join_ns + 1, false))
			return false;
	}
	m->copies++;
	return true;
}

static int by_time(const void *a, const void *b)
{
	const struct move *x = a, *y = b;
	if (x->at_ns != y->at_ns)
		return x->at_ns < y->at_ns ? -1 : 1;
	if (x->join != y->join)
		return x->join ? 1 : -1;
	return x->copy < y->copy ? -1 : x->copy > y->copy;
}

static bool add_moves(struct mapping *m)
{
	double c = m->options->copies;
	if (c == 0 && m->slots > 0)
		c = m->topology->machines > m->slots ? (double)m->topology->machines / m->slots : 1;
	for (size_t i = 0; i < m->lives; i++) {
		const struct life *life = &m->life[i];
		double from = floor(life->slot * c + 1e-9), to = floor((life->slot + 1) * c + 1e-9);
		for (double copy = from; copy < to; copy++)
			if (!add_copy(m, life))
				return false;
	}
	if (m->moves > 0)
		qsort(m->move, m->moves, sizeof *m->move, by_time);
	return true;
}

/* ---- machines ------------------------------------------------------------------------------------------------------------ */

/* Of 64 machines those that may be a life's: of its type, and at its place. */
static uint64_t suitable_of(const struct mapping *m, const struct life *life, uint32_t word)
{
	uint64_t bits = m->type[life->type].suits[word], at_place = 0;
	if (life->place == SKEP_NO_PLACE)
		return bits;
	for (uint64_t left = bits; left != 0; left &= left - 1) {
		uint32_t bit = (uint32_t)__builtin_ctzll(left);
		if (m->topology->machine[64 * word + bit].place == life->place)
			at_place |= (uint64_t)1 << bit;
	}
	return at_place;
}

/* A free machine that suits, or NOWHERE: the lowest, or the one with `rank` others below it. */
static uint32_t find_free(const struct mapping *m, const struct life *life, uint32_t rank)
{
	for (uint32_t w = 0; w < words(m); w++) {
		uint64_t bits = m->free[w] == 0 ? 0 : m->free[w] & suitable_of(m, life, w);
		uint32_t count = (uint32_t)__builtin_popcountll(bits);
		if (rank >= count) {
			rank -= count;
			continue;
		}
		while (rank-- > 0)
			bits &= bits - 1;
		return 64 * w + (uint32_t)__builtin_ctzll(bits);
	}
	return NOWHERE;
}

static uint32_t take_machine(struct mapping *m, const struct life *life)
{
	uint32_t suitable = 0, rank = 0;
	if (m->options->random_machine) {
		for (uint32_t w = 0; w < words(m); w++)
			suitable += (uint32_t)__builtin_popcountll(m->free[w] & suitable_of(m, life, w));
		rank = suitable > 0 ? skep_random_below(&m->random, suitable) : 0;
	}
	uint32_t machine = find_free(m, life, rank);
	if (machine != NOWHERE)
		m->free[machine / 64] &= ~((uint64_t)1 << machine % 64);
	return machine;
}

static void leave_out(struct mapping *m, const struct life *life)
{
	struct skep_churn *c = m->churn;
	const bool bound = life->place != SKEP_NO_PLACE;
	bool suited = false;
	for (uint32_t w = 0; w < words(m); w++)
		suited = suited || suitable_of(m, life, w) != 0;
	c->unplaced++;
	c->unsuited += !suited;
	if (!suited && c->unsuited_type[0] == '\0')
		snprintf(c->unsuited_type, sizeof c->unsuited_type, "%.80s%s%.31s", m->type[life->type].name,
			bound ? " at " : "", bound ? m->topology->place_name[life->place] : "");
}

static void place_moves(struct mapping *m)
{
	struct skep_churn *c = m->churn;
	uint32_t alive = 0;
	for (size_t i = 0; i < m->moves; i++) {
		const struct move *move = &m->move[i];
		uint32_t *machine = &m->where[move->copy];
		if (move->join) {
			const struct life *life = &m->life[*machine];
			*machine = take_machine(m, life);
			if (*machine == NOWHERE)
				leave_out(m, life);
		}
		if (*machine == NOWHERE)
			continue;
		if (!move->join)
			m->free[*machine / 64] |= (uint64_t)1 << *machine % 64;
		alive = move->join ? alive + 1 : alive - 1;
		c->most = alive > c->most ? alive : c->most;
		if (move->at_ns == 0) {
			assert(move->join);
			continue;
		}
		c->event[c->events++] = (struct skep_churn_event){move->at_ns, *machine, move->join};
		c->joins += move->join;
		c->leaves += !move->join;
	}
}

/* Who stands at 0: the moves with time 0 are joins only, and they come first. */
static void list_present(struct mapping *m)
{
	struct skep_churn *c = m->churn;
	memset(m->free, 0, words(m) * sizeof *m->free);
	for (size_t i = 0; i < m->moves && m->move[i].at_ns == 0; i++) {
		uint32_t machine = m->where[m->move[i].copy];
		if (machine != NOWHERE)
			m->free[machine / 64] |= (uint64_t)1 << machine % 64;
	}
	for (uint32_t i = 0; i < m->topology->machines; i++)
		if (m->free[i / 64] >> i % 64 & 1)
			c->present[c->presents++] = i;
}

static bool place(struct mapping *m)
{
	struct skep_churn *c = m->churn;
	c->event = malloc((m->moves + 1) * sizeof *c->event);
	c->present = malloc(((size_t)m->topology->machines + 1) * sizeof *c->present);
	m->free = calloc(words(m) + 1, sizeof *m->free);
	if (!c->event || !c->present || !m->free)
		return false;
	for (uint32_t i = 0; i < m->topology->machines; i++)
		m->free[i / 64] |= (uint64_t)1 << i % 64;
	m->random = skep_mix(m->options->seed + 1);
	place_moves(m);
	list_present(m);
	if (c->events > 0 && c->event[c->events - 1].at_ns > c->end_ns)
		c->end_ns = c->event[c->events - 1].at_ns;
	return true;
}

/* ---- all of it ------------------------------------------------------------------------------------------------------------ */

/* A trace whose GPU types no machine of the topology has is an error: without this check the run would have no
 * machines. */
static bool check_types(const struct mapping *m, const char *path, struct skep_diag *reterr)
{
	for (uint32_t i = 0; i < m->types; i++)
		for (uint32_t w = 0; w < words(m); w++)
			if (m->type[i].suits[w])
				return true;
	if (m->types > 0)
		skep_diag_set(reterr, path, 0, 0, NULL,
			"no machine of the topology '%s' suits the GPU types in the trace ('%s'%s): name other "
			"machines, or play the trace on any GPU, with cluster.trace.any_gpu: true",
			m->topology->name, m->type[0].name, m->types > 1 ? " and others" : "");
	return m->types == 0;
}

static bool check_options(const struct skep_churn_options *o, const char *path, struct skep_diag *reterr)
{
	if (!(o->scale > 0 && o->scale <= 1000))
		skep_diag_set(reterr, path, 0, 0, NULL, "expected a time scale above 0 and up to 1000");
	else if (!(o->copies >= 0 && o->copies <= 1e6))
		skep_diag_set(reterr, path, 0, 0, NULL, "expected 0 to 1e6 machines for each name of the trace");
	else if (o->jitter_ns > SKEP_CHURN_JITTER_MAX_NS)
		skep_diag_set(reterr, path, 0, 0, NULL, "expected a jitter of at most a day");
	else if (o->end_ns <= o->start_ns)
		skep_diag_set(reterr, path, 0, 0, NULL, "expected an end of the trace behind the start");
	return !reterr->set;
}

static void free_mapping(struct mapping *m)
{
	for (uint32_t i = 0; i < m->types; i++)
		free(m->type[i].suits);
	skep_places_finish(&m->places);
	free(m->life);
	free(m->of_slot);
	free(m->move);
	free(m->where);
	free(m->free);
	free(m);
}

static bool collect_recorded(struct mapping *m, const char *path, struct skep_diag *reterr)
{
	bool read = skep_trace_read(path, &m->options->trace, collect, m, &m->churn->trace, reterr);
	if (m->too_many_types) {
		*reterr = skep_diag_beside(reterr);
		skep_diag_set(reterr, path, 0, 0, NULL, "more than %u GPU types in a trace", TYPES_MAX);
	}
	return read && check_names(m, path, reterr) && check_types(m, path, reterr);
}

static bool draw(struct mapping *m, const struct skep_trace_stats *like, const char *path, struct skep_diag *reterr)
{
	struct skep_generate_options o;
	bool known = skep_generate_like(like, &o);
	o.machines = m->topology->machines;
	o.seed = m->options->seed ^ DRAWN_STREAM;
	if (m->duration_ns > 0)
		o.duration_s = 1e-9 * (double)m->duration_ns;
	const char *why = known ? skep_generate_check(&o) : "no life ends in it, so there is no law to draw from";
	if (why)
		skep_diag_set(reterr, path, 0, 0, NULL, "no trace can be drawn like this one: %s", why);
	else if (!skep_trace_generate(&o, collect, m))
		skep_diag_set(reterr, path, 0, 0, NULL, "not enough memory to draw a trace like this one");
	m->churn->drawn_from = o.life;
	return !reterr->set;
}

static bool collect_drawn(struct mapping *m, const char *path, struct skep_diag *reterr)
{
	struct skep_trace_stats like;
	if (!skep_trace_stats_read(path, &m->options->trace, &like, reterr))
		return false;
	bool drawn = draw(m, &like, path, reterr);
	skep_trace_stats_finish(&like);
	return drawn;
}

static bool map(struct mapping *m, const char *path, struct skep_diag *reterr)
{
	const struct skep_churn_options *o = m->options;
	if (!(m->drawn ? collect_drawn(m, path, reterr) : collect_recorded(m, path, reterr)))
		return false;
	if (o->start_ns > m->last_ns) {
		skep_diag_set(reterr, path, 0, 0, NULL, "the start lies behind the end of the trace, %.10g s",
			1e-9 * (double)m->last_ns);
		return false;
	}
	if ((double)(m->last_ns - o->start_ns) * o->scale > 9e18) {
		skep_diag_set(reterr, path, 0, 0, NULL, "the trace is too long at this time scale");
		return false;
	}
	m->churn->end_ns = run_time(m, o->end_ns < m->last_ns ? o->end_ns : m->last_ns, 0);
	if (add_moves(m) && place(m))
		return true;
	skep_diag_set(reterr, path, 0, 0, NULL, "not enough memory to play the trace");
	return false;
}

static bool play(const char *path, const struct mapping *how, struct skep_churn *ret, struct skep_diag *reterr)
{
	*ret = (struct skep_churn){0};
	if (reterr->set || !check_options(how->options, path, reterr))
		return false;
	struct mapping *m = calloc(1, sizeof *m);
	if (!m) {
		skep_diag_set(reterr, path, 0, 0, NULL, "not enough memory");
		return false;
	}
	*m = *how;
	if (!skep_places_make(m->topology, &m->places)) {
		free_mapping(m);
		return skep_fail(reterr, "%s: not enough memory", path);
	}
	m->churn = ret;
	m->random = skep_mix(m->options->seed);
	bool ok = map(m, path, reterr);
	free_mapping(m);
	if (!ok)
		skep_churn_finish(ret);
	return ok;
}

bool skep_churn_read(const char *path, const struct skep_topology *topology, const struct skep_churn_options *options,
	struct skep_churn *ret, struct skep_diag *reterr)
{
	const struct mapping how = {.topology = topology, .options = options};
	return play(path, &how, ret, reterr);
}

bool skep_churn_draw(const char *path, skep_time duration_ns, const struct skep_topology *topology,
	const struct skep_churn_options *options, struct skep_churn *ret, struct skep_diag *reterr)
{
	const struct mapping how = {
		.topology = topology, .options = options, .drawn = true, .duration_ns = duration_ns};
	return play(path, &how, ret, reterr);
}

void skep_churn_finish(struct skep_churn *churn)
{
	free(churn->event);
	free(churn->present);
	*churn = (struct skep_churn){0};
}
