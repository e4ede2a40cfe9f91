/* SPDX-License-Identifier: Apache-2.0
 *
 * path.c - see path.h.
 *
 * What is of both ways of a relayed pair, each to or from the directory's place, is put together from them.
 *
 * What is kept true: no latency is below 0; a flow on a path whose round trip takes no time is limited by neither window
 * nor loss, since an acknowledgement is there at once.
 */
#include "topologies/read/path.h"

#include <math.h>

#include "core/random.h"
#include "topologies/churn/deviate.h"

/* The place through which messages of a relayed pair go. */
static uint32_t through(const struct skep_topology *t)
{
	return t->machine[t->machines].place;
}

static size_t index_of(const struct skep_topology *t, uint32_t from, uint32_t to)
{
	return (size_t)from * t->places + to;
}

/* Within one machine, or beside the directory, there is no network, so no link profile applies. */
const struct skep_link_profile *skep_path_link_profile(const struct skep_topology *t, uint32_t from, uint32_t to)
{
	size_t at = index_of(t, from, to);
	if (t->link_profiles == 0 || (isinf(t->pair[at].capacity_Bps) && t->pair[at].latency_s <= 0))
		return NULL;
	return &t->link_profile[t->link_profile_of ? t->link_profile_of[at] : 0];
}

void skep_path_join_relayed(struct skep_topology *t)
{
	uint32_t middle = through(t);
	for (uint32_t from = 0; t->dials_out != NULL && from < t->places; from++)
		for (uint32_t to = 0; to < t->places; to++) {
			const struct skep_pair *there = &t->pair[index_of(t, from, middle)];
			const struct skep_pair *on = &t->pair[index_of(t, middle, to)];
			if (!skep_topology_relays(t, from, to))
				continue;
			t->pair[index_of(t, from, to)] =
				(struct skep_pair){.capacity_Bps = fmin(there->capacity_Bps, on->capacity_Bps),
					.latency_s = there->latency_s + on->latency_s,
					.shared_Bps = fmin(there->shared_Bps, on->shared_Bps)};
			if (t->egress_usd_per_B != NULL)
				t->egress_usd_per_B[index_of(t, from, to)] =
					t->egress_usd_per_B[index_of(t, from, middle)] +
					t->egress_usd_per_B[index_of(t, middle, to)];
		}
}

/* Loss: Mathis, Semke, Mahdavi and Ott 1997, MSS / RTT * sqrt(3/2) / sqrt(p). The round trip is that of the latencies, without
 * what waits in queues. */
double skep_path_cap_Bps(const struct skep_topology *t, uint32_t from, uint32_t to)
{
	if (skep_topology_relays(t, from, to))
		return fmin(skep_path_cap_Bps(t, from, through(t)), skep_path_cap_Bps(t, through(t), to));
	const struct skep_link_profile *link_profile = skep_path_link_profile(t, from, to);
	if (!link_profile)
		return INFINITY;
	double rtt_s = t->pair[index_of(t, from, to)].latency_s + t->pair[index_of(t, to, from)].latency_s;
	if (rtt_s <= 0)
		return INFINITY;
	double cap = link_profile->window_bytes / rtt_s;
	if (link_profile->loss > 0)
		cap = fmin(cap, link_profile->mss_bytes / rtt_s * sqrt(1.5 / link_profile->loss));
	return cap;
}

double skep_path_least_Bps(const struct skep_topology *t, uint32_t from, uint32_t to)
{
	if (skep_topology_relays(t, from, to))
		return fmin(skep_path_least_Bps(t, from, through(t)), skep_path_least_Bps(t, through(t), to));
	const struct skep_pair *pair = &t->pair[index_of(t, from, to)];
	double least = pair->capacity_Bps < pair->shared_Bps ? pair->capacity_Bps : pair->shared_Bps;
	if (t->site_link && from != to)
		least = fmin(least, fmin(t->site_link[from].up_Bps, t->site_link[to].down_Bps));
	return least;
}

double skep_path_lone_Bps(const struct skep_topology *t, uint32_t source, uint32_t destination)
{
	const struct skep_machine *a = &t->machine[source], *b = &t->machine[destination];
	if (source == destination)
		return INFINITY;
	double path = fmin(skep_path_least_Bps(t, a->place, b->place), skep_path_cap_Bps(t, a->place, b->place));
	return fmin(path, fmin(a->up_Bps, b->down_Bps));
}

/* The last piece is on the faster way alone, or the first one. */
double skep_path_relay_s(const struct skep_topology *t, uint32_t source, uint32_t destination, double bytes)
{
	if (!skep_topology_relays(t, t->machine[source].place, t->machine[destination].place))
		return 0;
	double there = skep_path_lone_Bps(t, source, t->machines), on = skep_path_lone_Bps(t, t->machines, destination);
	return bytes / skep_path_relay_pieces((uint64_t)bytes) / fmax(there, on);
}

/* A TCP connection that loses packets as often as another one beside it moves in proportion to 1 / RTT (Mathis et al. 1997, as
 * above). SimGrid's models of the network take 1 / the latencies of the way there (Velho and Legrand 2009). */
double skep_path_weight(const struct skep_topology *t, uint32_t from, uint32_t to)
{
	double there_s = fmax(t->pair[index_of(t, from, to)].latency_s, SKEP_PATH_NEAR_S);
	if (t->fairness == SKEP_FAIRNESS_RTT)
		return 1 / (there_s + fmax(t->pair[index_of(t, to, from)].latency_s, SKEP_PATH_NEAR_S));
	return t->fairness == SKEP_FAIRNESS_LATENCY ? 1 / there_s : 1;
}

/* Also within one machine or beside the directory, where a machine's own up and down may still hold messages up. */
uint32_t skep_path_streams(const struct skep_topology *t, uint32_t from, uint32_t to)
{
	if (t->link_profiles == 0)
		return 1;
	uint32_t streams = t->link_profile[t->link_profile_of ? t->link_profile_of[index_of(t, from, to)] : 0].streams;
	return streams > 0 ? streams : 1;
}

bool skep_path_overtakes(const struct skep_topology *t, uint32_t from, uint32_t to)
{
	const struct skep_link_profile *link_profile = skep_path_link_profile(t, from, to);
	return link_profile && link_profile->overtake;
}

double skep_path_overhead_s(const struct skep_topology *t, uint32_t from, uint32_t to)
{
	if (skep_topology_relays(t, from, to))
		return skep_path_overhead_s(t, from, through(t)) + skep_path_overhead_s(t, through(t), to);
	const struct skep_link_profile *link_profile = skep_path_link_profile(t, from, to);
	return link_profile ? link_profile->overhead_s : 0;
}

/* ---- jitter ------------------------------------------------------------------------------------------------------ */

static double deviation_s(const struct skep_jitter *jitter, double latency_s)
{
	return jitter->relative ? jitter->deviation * latency_s : jitter->deviation;
}

double skep_path_mean_s(const struct skep_topology *t, uint32_t from, uint32_t to)
{
	if (skep_topology_relays(t, from, to))
		return skep_path_mean_s(t, from, through(t)) + skep_path_mean_s(t, through(t), to);
	const struct skep_link_profile *link_profile = skep_path_link_profile(t, from, to);
	double latency_s = t->pair[index_of(t, from, to)].latency_s;
	return link_profile ? fmax(0, latency_s + link_profile->jitter.mean_s) : latency_s;
}

double skep_path_late_s(const struct skep_topology *t, uint32_t from, uint32_t to)
{
	if (skep_topology_relays(t, from, to))
		return skep_path_late_s(t, from, through(t)) + skep_path_late_s(t, through(t), to);
	const struct skep_link_profile *link_profile = skep_path_link_profile(t, from, to);
	double latency_s = t->pair[index_of(t, from, to)].latency_s;
	if (!link_profile)
		return latency_s;
	return fmax(0, latency_s + link_profile->jitter.most_s + 4 * deviation_s(&link_profile->jitter, latency_s));
}

/* The log-normal law whose mean is the latency: sigma^2 = ln(1 + (deviation / latency)^2), mu = ln latency - sigma^2 / 2. */
static double draw_lognormal(double latency_s, double deviation, uint64_t *state)
{
	if (latency_s <= 0)
		return 0;
	double ratio = deviation / latency_s, square = skep_deviate_log(1 + ratio * ratio);
	return latency_s * skep_deviate_exp(sqrt(square) * skep_deviate_normal(state) - square / 2);
}

double skep_jitter_draw_s(
	const struct skep_topology *t, const struct skep_jitter *jitter, double latency_s, uint64_t *state)
{
	double deviation = deviation_s(jitter, latency_s);
	switch (jitter->kind) {
	case SKEP_JITTER_NORMAL:
		return fmax(0, latency_s + deviation * skep_deviate_normal(state));
	case SKEP_JITTER_LOGNORMAL:
		return draw_lognormal(latency_s, deviation, state);
	case SKEP_JITTER_EMPIRICAL:
		return fmax(0, latency_s + t->delay_s[jitter->first + skep_random_below(state, jitter->count)]);
	case SKEP_JITTER_NONE:
		break;
	}
	return latency_s;
}
