/* SPDX-License-Identifier: Apache-2.0
 *
 * test_network_oracle.c - random small networks, with caps, ways in and out of places, overheads and messages that take turns,
 * against an oracle that solves everything again at every event; and max-min rates kept up to date against rates solved from
 * nothing.
 */
#include "tests/unit/flow_drive.h"

#include "core/random.h"
#include "topologies/network/sharing.h"

#define MANY 4096u
#define LIMITS 7u

/* ---- random small networks against solving everything again -------------------------------------------------- */

struct oracle_flow {
	const struct transfer *transfer;
	double enter, left, rate, arrival; /* s, bytes, bytes/s, s; arrival < 0: under way */
	double least;                      /* of its limits; bytes/s */
	bool active;                       /* on a connection */
};

/* The limits of a flow. Equal keys are one limit. */
struct limit {
	uint64_t key;
	double capacity;
};

/* NULL: none, as where there is no network at all. */
static const struct skep_link_profile *link_profile_of(
	const struct skep_topology *topology, uint64_t row, uint64_t column)
{
	uint64_t at = row * topology->places + column;
	bool network = topology->pair[at].latency_s > 0 || !isinf(topology->pair[at].capacity_Bps);
	return topology->link_profiles > 0 && network ? &topology->link_profile[topology->link_profile_of[at]] : NULL;
}

/* What one flow may have by itself. */
static double cap_of(const struct skep_topology *topology, uint64_t row, uint64_t column)
{
	const struct skep_link_profile *link_profile = link_profile_of(topology, row, column);
	double rtt = topology->pair[row * topology->places + column].latency_s +
	             topology->pair[column * topology->places + row].latency_s;
	if (!link_profile || rtt <= 0)
		return INFINITY;
	double mathis = link_profile->loss > 0 ? link_profile->mss_bytes * sqrt(1.5) / (rtt * sqrt(link_profile->loss))
	                                       : INFINITY;
	return fmin(link_profile->window_bytes / rtt, mathis);
}

static void limits_of(const struct skep_topology *topology, const struct transfer *t, struct limit ret[LIMITS])
{
	uint64_t row = topology->machine[t->source].place, column = topology->machine[t->destination].place;
	const struct skep_pair *pair = &topology->pair[row * topology->places + column];
	uint64_t machines = (uint64_t)t->source << 20 | t->destination, places = row << 20 | column;
	ret[0] = (struct limit){UINT64_C(1) << 60 | t->source, topology->machine[t->source].up_Bps};
	ret[1] = (struct limit){UINT64_C(2) << 60 | t->destination, topology->machine[t->destination].down_Bps};
	ret[2] = (struct limit){UINT64_C(3) << 60 | machines, pair->capacity_Bps};
	ret[3] = (struct limit){UINT64_C(4) << 60 | places, pair->shared_Bps};
	ret[4] = ret[5] = (struct limit){UINT64_C(8) << 60, INFINITY};
	if (topology->site_link && row != column) {
		ret[4] = (struct limit){UINT64_C(5) << 60 | row, topology->site_link[row].up_Bps};
		ret[5] = (struct limit){UINT64_C(6) << 60 | column, topology->site_link[column].down_Bps};
	}
	ret[6] = (struct limit){UINT64_C(7) << 60 | (uintptr_t)t, cap_of(topology, row, column)};
}

static uint32_t streams_of(const struct skep_topology *topology, const struct transfer *t)
{
	uint64_t at = (uint64_t)topology->machine[t->source].place * topology->places +
	              topology->machine[t->destination].place;
	return topology->link_profiles > 0 ? topology->link_profile[topology->link_profile_of[at]].streams : 1;
}

static bool is_small(const struct oracle_flow *flow)
{
	return flow->transfer->bytes <= SKEP_NETWORK_SMALL_BYTES;
}

/* Of flow[0 .. count - 1] in the order of their starts: those that have a connection at `now`. A message of a pair waits while as
 * many large ones that were started before it have not arrived as the pair has streams. */
static void oracle_turns(const struct skep_topology *topology, struct oracle_flow *flow, uint32_t count, double now)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct transfer *t = flow[i].transfer;
		uint32_t before = 0;
		for (uint32_t j = 0; j < i; j++)
			before += flow[j].arrival < 0 && !is_small(&flow[j]) && flow[j].transfer->source == t->source &&
			          flow[j].transfer->destination == t->destination;
		flow[i].active = flow[i].arrival < 0 && flow[i].enter <= now && before < streams_of(topology, t);
	}
}

/* Of what its share is in proportion to. */
static double weight_of(const struct skep_topology *topology, const struct transfer *t)
{
	size_t row = topology->machine[t->source].place, column = topology->machine[t->destination].place;
	double there = fmax(1e-6, topology->pair[row * topology->places + column].latency_s);
	double back = fmax(1e-6, topology->pair[column * topology->places + row].latency_s);
	if (topology->fairness == SKEP_FAIRNESS_EQUAL)
		return 1;
	return 1 / (there + (topology->fairness == SKEP_FAIRNESS_RTT ? back : 0));
}

/* What each flow without a rate would get of limit `key`, per weight. */
static double oracle_share(const struct skep_topology *topology, const struct oracle_flow *flow, uint32_t count,
	uint64_t key, double capacity)
{
	double open = 0;
	for (uint32_t i = 0; i < count; i++) {
		struct limit limit[LIMITS];
		limits_of(topology, flow[i].transfer, limit);
		for (uint32_t k = 0; k < LIMITS; k++) {
			if (!flow[i].active || limit[k].key != key)
				continue;
			open += flow[i].rate < 0 ? weight_of(topology, flow[i].transfer) : 0;
			capacity -= flow[i].rate < 0 ? 0 : flow[i].rate;
		}
	}
	return capacity / open;
}

/* Of all limits of flows without a rate, the one that gives them least; INFINITY: none. False: every flow has one. */
static bool oracle_lowest(const struct skep_topology *topology, const struct oracle_flow *flow, uint32_t count,
	uint64_t *ret_key, double *ret_share)
{
	bool open = false;
	*ret_share = INFINITY;
	for (uint32_t i = 0; i < count; i++) {
		struct limit limit[LIMITS];
		if (!flow[i].active || flow[i].rate >= 0)
			continue;
		open = true;
		limits_of(topology, flow[i].transfer, limit);
		for (uint32_t k = 0; k < LIMITS; k++) {
			double share = oracle_share(topology, flow, count, limit[k].key, limit[k].capacity);
			if (share < *ret_share) {
				*ret_share = share;
				*ret_key = limit[k].key;
			}
		}
	}
	return open;
}

static void oracle_rates(const struct skep_topology *topology, struct oracle_flow *flow, uint32_t count)
{
	double share;
	uint64_t full = 0;
	struct limit limit[LIMITS];
	for (uint32_t i = 0; i < count; i++)
		flow[i].rate = -1;
	while (oracle_lowest(topology, flow, count, &full, &share)) {
		for (uint32_t i = 0; i < count; i++) {
			limits_of(topology, flow[i].transfer, limit);
			bool hit = isinf(share);
			for (uint32_t k = 0; k < LIMITS; k++)
				hit |= limit[k].key == full;
			if (flow[i].active && flow[i].rate < 0 && hit)
				flow[i].rate = share * weight_of(topology, flow[i].transfer);
		}
	}
}

/* free[]: when each sender is done with what it has sent so far. */
static void oracle_enter(
	const struct skep_topology *topology, struct oracle_flow *flow, const struct transfer *transfer, double *free)
{
	struct limit limit[LIMITS];
	double least = INFINITY;
	limits_of(topology, transfer, limit);
	for (uint32_t k = 0; k < LIMITS; k++)
		least = fmin(least, limit[k].capacity);
	size_t row = topology->machine[transfer->source].place, column = topology->machine[transfer->destination].place;
	double latency = topology->pair[row * topology->places + column].latency_s;
	*flow = (struct oracle_flow){
		.transfer = transfer, .left = (double)transfer->bytes, .arrival = -1, .least = least};
	const struct skep_link_profile *link_profile = link_profile_of(topology, row, column);
	double begin = (double)transfer->start * 1e-9, overhead = link_profile ? link_profile->overhead_s : 0;
	if (overhead > 0)
		begin = free[transfer->source] = fmax(begin, free[transfer->source]) + overhead;
	flow->enter = begin + latency;
}

/* Small ones that have a connection leave at once for where they take no bandwidth. */
static void oracle_release(const struct skep_topology *topology, struct oracle_flow *flow, uint32_t count, double now)
{
	oracle_turns(topology, flow, count, now);
	for (uint32_t i = 0; i < count; i++) {
		if (!flow[i].active || !is_small(&flow[i]))
			continue;
		flow[i].arrival = now + flow[i].left / flow[i].least;
		flow[i].active = false;
	}
}

static void oracle(
	const struct skep_topology *topology, const struct transfer *transfer, struct oracle_flow *flow, uint32_t count)
{
	double free[8] = {0};
	for (uint32_t i = 0; i < count; i++)
		oracle_enter(topology, &flow[i], &transfer[i], free);
	for (double now = 0;;) {
		oracle_release(topology, flow, count, now);
		oracle_rates(topology, flow, count);
		double next = INFINITY;
		for (uint32_t i = 0; i < count; i++) {
			if (flow[i].active)
				next = fmin(next, isinf(flow[i].rate) ? now : now + flow[i].left / flow[i].rate);
			else if (flow[i].enter > now)
				next = fmin(next, flow[i].enter);
		}
		if (isinf(next))
			return;
		for (uint32_t i = 0; i < count; i++) {
			if (!flow[i].active)
				continue;
			double end = isinf(flow[i].rate) ? now : now + flow[i].left / flow[i].rate;
			if (end <= next)
				flow[i].arrival = next;
			else
				flow[i].left -= flow[i].rate * (next - now);
		}
		now = next;
	}
}

static uint64_t draw(uint64_t *seed, uint64_t below)
{
	*seed = skep_mix(*seed);
	return *seed % below;
}

/* Few distinct values, so that ties are common; every third capacity is unlimited. */
static double draw_capacity(uint64_t *seed)
{
	static const double common[] = {INFINITY, INFINITY, 1e6, 2e6};
	uint64_t kind = draw(seed, 6);
	return kind < 4 ? common[kind] : 1e5 + 1e-3 * (double)draw(seed, UINT64_C(5000000000));
}

/* A third of the windows cannot bind, a third may, a third must. */
static void draw_link_profiles(uint64_t *seed, struct skep_topology *topology)
{
	uint32_t pairs = topology->places * topology->places;
	topology->link_profiles = pairs;
	topology->link_profile = calloc(pairs, sizeof *topology->link_profile);
	topology->link_profile_of = calloc(pairs, sizeof *topology->link_profile_of);
	assert_true(topology->link_profile && topology->link_profile_of);
	for (uint32_t i = 0; i < pairs; i++) {
		static const double window[] = {INFINITY, 1e5, 2e4};
		static const uint32_t streams[] = {1, 2, 3, SKEP_STREAMS_EACH};
		topology->link_profile_of[i] = (uint16_t)i;
		topology->link_profile[i] = (struct skep_link_profile){.window_bytes = window[draw(seed, 3)],
			.loss = draw(seed, 4) ? 0 : 1e-5 * (double)(1 + draw(seed, 100)),
			.mss_bytes = 1460,
			.streams = streams[draw(seed, 4)],
			.overhead_s = draw(seed, 4) ? 0 : 1e-3 * (double)draw(seed, 300)};
	}
}

static void draw_topology(uint64_t *seed, struct skep_topology *topology)
{
	uint32_t machines = 2 + (uint32_t)draw(seed, 6), places = 1 + (uint32_t)draw(seed, 4);
	topology_init(topology, machines, places);
	for (uint32_t i = 0; i <= machines; i++)
		topology->machine[i] = (struct skep_machine){.place = (uint32_t)draw(seed, places),
			.up_Bps = draw_capacity(seed),
			.down_Bps = draw_capacity(seed)};
	for (uint32_t i = 0; i < places * places; i++) {
		topology->pair[i].capacity_Bps = draw_capacity(seed);
		topology->pair[i].shared_Bps = draw_capacity(seed);
		topology->pair[i].latency_s = draw(seed, 2) ? 0 : 1e-3 * (double)draw(seed, 500);
	}
	if (draw(seed, 2)) {
		topology_gates(topology);
		for (uint32_t i = 0; i < places; i++)
			topology->site_link[i] = (struct skep_site_link){draw_capacity(seed), draw_capacity(seed)};
	}
	if (draw(seed, 2))
		draw_link_profiles(seed, topology);
}

static int by_start(const void *a, const void *b)
{
	skep_time x = ((const struct transfer *)a)->start, y = ((const struct transfer *)b)->start;
	return (x > y) - (x < y);
}

static uint32_t draw_transfers(uint64_t *seed, const struct skep_topology *topology, struct transfer *transfer)
{
	uint32_t count = 1 + (uint32_t)draw(seed, 24), ends = topology->machines + 1;
	if (draw(seed, 2)) /* long queues */
		ends = 2;
	for (uint32_t i = 0; i < count; i++) {
		struct transfer t = {.start = draw(seed, 4) * 250000000, .source = (uint32_t)draw(seed, ends)};
		t.destination = (uint32_t)((t.source + 1 + draw(seed, ends - 1)) % ends);
		t.bytes = draw(seed, 5) ? 100000 * (1 + draw(seed, 20)) + draw(seed, 2) * draw(seed, 1000)
		                        : draw(seed, 2 * SKEP_NETWORK_SMALL_BYTES);
		transfer[i] = t;
	}
	qsort(transfer, count, sizeof *transfer, by_start);
	return count;
}

static void random_networks_equal_the_oracle(void **state)
{
	(void)state;
	for (uint64_t s = 0; s < 2 * MANY; s++) {
		uint64_t seed = s;
		struct skep_topology topology;
		struct transfer transfer[24];
		struct oracle_flow flow[24];
		draw_topology(&seed, &topology);
		topology.fairness =
			s < MANY ? SKEP_FAIRNESS_EQUAL : (s % 2 ? SKEP_FAIRNESS_RTT : SKEP_FAIRNESS_LATENCY);
		uint32_t count = draw_transfers(&seed, &topology, transfer);
		drive(&topology, transfer, count);
		oracle(&topology, transfer, flow, count);
		for (uint32_t i = 0; i < count; i++)
			if (fabs((double)transfer[i].arrival * 1e-9 - flow[i].arrival) > 1e-6 + 1e-7 * flow[i].arrival)
				fail_msg("seed %lu transfer %u: %.9f s, expected %.9f s", (unsigned long)s, i,
					(double)transfer[i].arrival * 1e-9, flow[i].arrival);
		topology_free(&topology);
	}
}

/* ---- rates kept up to date against rates solved from nothing -------------------------------------------------------- */

enum { LINKS = 12, FLOWS = 40, KEYS = 6 };

struct want { /* a flow of the test */
	bool there;
	double cap, weight;
	uint32_t crosses;
	uint32_t link[SKEP_CROSSINGS]; /* from LINKS on: one that comes and goes */
};

static void set_capacities(struct skep_sharing *sharing, const double *capacity, bool weighted)
{
	assert_true(skep_sharing_init(sharing, LINKS));
	sharing->weighted = weighted;
	assert_true(skep_sharing_reserve(sharing, FLOWS));
	for (uint32_t l = 0; l < LINKS; l++)
		sharing->link[l].capacity = capacity[l];
}

static void join_all(struct skep_sharing *sharing, uint32_t flow, const struct want *want, const double *capacity)
{
	skep_sharing_begin(sharing, flow, want->cap);
	if (sharing->weighted)
		skep_sharing_weigh(sharing, flow, want->weight);
	for (uint32_t i = 0; i < want->crosses; i++) {
		uint32_t l = want->link[i];
		if (l >= LINKS)
			l = skep_sharing_link(sharing, l, capacity[l]);
		skep_sharing_join(sharing, flow, l);
	}
}

/* Some have no cap, some a cap alone. */
static struct want draw_want(uint64_t *seed)
{
	static const double cap[] = {INFINITY, INFINITY, 1, 2, 0.3};
	struct want want = {.there = true, .cap = cap[draw(seed, 5)]};
	if (draw(seed, 4) == 0)
		want.cap = 1e-2 * (double)(1 + draw(seed, 300));
	want.crosses = (uint32_t)draw(seed, SKEP_CROSSINGS + 1);
	if (isinf(want.cap) && want.crosses == 0)
		want.crosses = 1;
	for (uint32_t i = 0; i < want.crosses; i++) { /* all others: LINKS + KEYS = 18 is more than 7 * 2 */
		want.link[i] = (uint32_t)draw(seed, LINKS + KEYS);
		for (uint32_t j = 0; j < i; j++)
			if (want.link[j] == want.link[i]) {
				want.link[i] = (want.link[i] + 1) % (LINKS + KEYS);
				j = UINT32_MAX; /* from the first one again */
			}
	}
	return want;
}

static void check_from_scratch(
	const struct skep_sharing *kept, const struct want *want, const double *capacity, uint64_t seed)
{
	struct skep_sharing fresh;
	double sum[LINKS + KEYS] = {0};
	set_capacities(&fresh, capacity, kept->weighted);
	for (uint32_t f = 0; f < FLOWS; f++)
		if (want[f].there)
			join_all(&fresh, f, &want[f], capacity);
	skep_sharing_solve(&fresh);
	for (uint32_t f = 0; f < FLOWS; f++) {
		double rate = kept->share[f].rate;
		if (!want[f].there)
			continue;
		if (fabs(rate - fresh.share[f].rate) > 1e-9 * rate || rate > want[f].cap)
			fail_msg("seed %lu flow %u: %.12g, from nothing %.12g, cap %g", (unsigned long)seed, f, rate,
				fresh.share[f].rate, want[f].cap);
		for (uint32_t i = 0; i < want[f].crosses; i++)
			sum[want[f].link[i]] += rate;
	}
	for (uint32_t l = 0; l < LINKS + KEYS; l++)
		assert_true(sum[l] <= capacity[l] * (1 + 1e-9));
	skep_sharing_finish(&fresh);
}

/* Flows begin and end, one or several at a time; the list of changes names every flow whose rate is another. */
static void churn(uint64_t *seed, uint64_t name)
{
	struct skep_sharing sharing;
	struct want want[FLOWS] = {0};
	double capacity[LINKS + KEYS], before[FLOWS];
	for (uint32_t l = 0; l < LINKS + KEYS; l++)
		capacity[l] = draw(seed, 3) ? 1 + (double)draw(seed, 3) : 1e-2 * (double)(1 + draw(seed, 500));
	set_capacities(&sharing, capacity, name % 2);
	for (uint32_t step = 0; step < 60; step++) {
		for (uint64_t i = 1 + draw(seed, 4); i-- > 0;) {
			uint32_t f = (uint32_t)draw(seed, FLOWS);
			if (want[f].there && !sharing.share[f].changed) {
				skep_sharing_leave(&sharing, f);
				want[f].there = false;
			} else if (!want[f].there) {
				want[f] = draw_want(seed);
				want[f].weight = sharing.weighted ? 0.1 * (double)(1 + draw(seed, 40)) : 1;
				join_all(&sharing, f, &want[f], capacity);
				before[f] = -1;
			}
		}
		skep_sharing_solve(&sharing);
		for (uint32_t i = 0; i < sharing.changes; i++)
			before[sharing.changed[i]] = sharing.share[sharing.changed[i]].rate;
		for (uint32_t f = 0; f < FLOWS; f++)
			assert_true(!want[f].there ||
				    !(before[f] < sharing.share[f].rate || before[f] > sharing.share[f].rate));
		skep_sharing_noted(&sharing);
		check_from_scratch(&sharing, want, capacity, name);
	}
	skep_sharing_finish(&sharing);
}

static void incremental_rates_equal_those_from_scratch(void **state)
{
	(void)state;
	for (uint64_t s = 0; s < 1024; s++) {
		uint64_t seed = s;
		churn(&seed, s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_networks_equal_the_oracle),
		cmocka_unit_test(incremental_rates_equal_those_from_scratch),
	};
	return cmocka_run_group_tests_name("network_oracle", tests, NULL, NULL);
}
