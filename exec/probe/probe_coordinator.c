/* SPDX-License-Identifier: Apache-2.0
 *
 * probe_coordinator.c - decides on rank 0 which rank measures which way or device, and when.
 *
 * A way between two places is measured between the first ranks there, and inside a place between its first two. Two
 * measurements disturb each other if they have a processor or a line in common, so they follow each other; those of a batch,
 * which is one alone unless more are asked for, are under way together, and no rank is in two of them. Pairs meet as in a
 * tournament (the circle method: place 0 stays, the others move on by one), so that all ways of n places take n - 1 rounds,
 * or n, there and back.
 */
#include "exec/probe/probe_rank_internal.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* The `nth` rank at a place, from 0; UINT32_MAX: there are not so many. */
static uint32_t rank_at(const struct skep_probed *probed, uint32_t place, uint32_t nth)
{
	for (uint32_t i = 0; i < probed->ranks; i++)
		if (probed->place_of[i] == place && nth-- == 0)
			return i;
	return UINT32_MAX;
}

/* ---- what is heard ----------------------------------------------------------------------------------------------- */

static double real(uint64_t word)
{
	double value;
	memcpy(&value, &word, sizeof value);
	return value;
}

static void keep_way(struct probe_rank *p, uint32_t from, uint32_t to, const struct skep_probed_link *way)
{
	assert(from < p->setup->probed->ranks && to < p->setup->probed->ranks && from != to);
	struct skep_probed *probed = p->setup->probed;
	const uint32_t a = probed->place_of[from], b = probed->place_of[to];
	char text[sizeof p->reason];
	*skep_probed_link(probed, a, b) = *way;
	p->batch.heard++;
	if (!isnan(way->Bps))
		return;
	snprintf(text, sizeof text, "%s -> %s: bandwidth not known: %" PRIu32 " messages of up to %" PRIu64 " KiB %s%s",
		probed->place_name[a], a == b ? "itself" : probed->place_name[b], way->transfers, way->bytes >> 10,
		way->falling ? "are slower the larger they are. Try a larger --payload"
			     : "take times that vary more than they grow with size. Try more --time, fewer processes a "
			       "host, a larger --payload",
		probed->at_once ? ", no --at-once" : "");
	skep_probe_rank_fail(p, text);
}

static void keep_device(struct probe_rank *p, uint32_t rank, const struct skep_probed_device *device)
{
	assert(rank < p->setup->probed->ranks);
	struct skep_probed_device *kept = &p->setup->probed->device[rank];
	double alone = p->alone ? device->flops : kept->alone_flops;
	*kept = *device;
	kept->alone_flops = alone;
	p->batch.heard++;
}

static void keep_costs(struct probe_rank *p, uint32_t rank, const struct skep_probed_costs *costs)
{
	assert(rank < p->setup->probed->ranks);
	skep_probed_add_costs(&p->setup->probed->device[rank], &p->setup->probed->model, costs);
	p->batch.heard++;
}

void skep_probe_coordinator_add(struct probe_rank *p, double Bps)
{
	p->batch.Bps += Bps;
	p->batch.heard++;
}

bool skep_probe_coordinator_receive(struct probe_rank *p, uint32_t peer, const struct probe_message *probe_message)
{
	const uint64_t *word = probe_message->word;
	struct skep_probed_device device;
	if (word[0] == PROBE_MESSAGE_MEASURED && probe_message->words == PROBE_MEASURED_WORDS &&
		word[1] < p->transport->ranks && word[1] != peer) {
		const struct skep_probed_link way = {real(word[2]), real(word[3]), real(word[4]), real(word[5]),
			real(word[6]), real(word[7]), (uint32_t)word[8], (uint32_t)word[9], word[10], word[11] != 0};
		keep_way(p, peer, (uint32_t)word[1], &way);
		return true;
	}
	if (word[0] == PROBE_MESSAGE_FLOODED && probe_message->words == 2) {
		skep_probe_coordinator_add(p, real(word[1]));
		return true;
	}
	if (word[0] == PROBE_MESSAGE_REHEARSED && probe_message->words == 4) {
		keep_costs(p, peer, &(struct skep_probed_costs){real(word[1]), real(word[2]), real(word[3])});
		return true;
	}
	if (word[0] != PROBE_MESSAGE_BENCHED || probe_message->words != 1 + (sizeof device + 7) / 8)
		return false;
	memcpy(&device, word + 1, sizeof device);
	device.name[sizeof device.name - 1] = '\0';
	keep_device(p, peer, &device);
	return device.products <= SKEP_PROBED_PRODUCTS_MAX && device.microbatches <= SKEP_PROBED_MICROBATCHES_MAX;
}

/* ---- what is asked ----------------------------------------------------------------------------------------------- */

static void wait_for_batch(struct probe_rank *p)
{
	while (!p->over && p->batch.heard < p->batch.asked)
		skep_probe_rank_poll(p);
	p->done += p->batch.asked;
	p->batch = (struct batch){0};
	if (p->setup->tell != NULL && !p->over)
		p->setup->tell(p->setup->tell_context, p->done, p->all);
}

/* What rank 0 has to do itself it does when all others have begun. */
struct own {
	uint32_t to; /* UINT32_MAX: nothing */
};

static void ask_way(struct probe_rank *p, uint32_t from, uint32_t to, struct own *own)
{
	assert(from != to && from < p->transport->ranks && to < p->transport->ranks);
	struct probe_message probe_message = {.words = 2, .word = {PROBE_MESSAGE_MEASURE, to}};
	p->batch.asked++;
	if (from == 0)
		own->to = to;
	else
		skep_probe_rank_write(p, from, &probe_message);
}

static void end_batch(struct probe_rank *p, struct own *own)
{
	struct skep_probed_link way;
	if (own->to != UINT32_MAX && !p->over) {
		skep_probe_rank_measure(p, own->to, &way);
		if (!p->over)
			keep_way(p, 0, own->to, &way);
	}
	own->to = UINT32_MAX;
	wait_for_batch(p);
}

/* In round r place 0 meets place seat(r), and so on; with an odd number of places one of them rests. */
static uint32_t slot(uint32_t round, uint32_t nth, uint32_t even)
{
	assert(even >= 2 && even % 2 == 0 && nth < even && round < even - 1);
	return nth == 0 ? 0 : 1 + (nth - 1 + round) % (even - 1);
}

static void measure_between(struct probe_rank *p)
{
	const struct skep_probed *probed = p->setup->probed;
	const uint32_t n = probed->places, even = n + n % 2;
	struct own own = {UINT32_MAX};
	for (uint32_t round = 0; n > 1 && round < even - 1; round++)
		for (int back = 0; back < 2; back++) {
			for (uint32_t i = 0; i < even / 2 && !p->over; i++) {
				uint32_t a = slot(round, i, even), b = slot(round, even - 1 - i, even);
				if (a >= n || b >= n)
					continue;
				uint32_t first = rank_at(probed, a, 0), second = rank_at(probed, b, 0);
				ask_way(p, back ? second : first, back ? first : second, &own);
				if (!probed->at_once)
					end_batch(p, &own);
			}
			if (p->batch.asked > 0)
				end_batch(p, &own);
		}
}

static void measure_inside(struct probe_rank *p)
{
	const struct skep_probed *probed = p->setup->probed;
	struct own own = {UINT32_MAX};
	for (uint32_t i = 0; i < probed->places && !p->over; i++) {
		uint32_t second = rank_at(probed, i, 1);
		if (second == UINT32_MAX)
			continue;
		ask_way(p, rank_at(probed, i, 0), second, &own);
		if (!probed->at_once)
			end_batch(p, &own);
	}
	if (p->batch.asked > 0)
		end_batch(p, &own);
}

static bool first_of_host(const struct probe_rank *p, uint32_t rank)
{
	for (uint32_t i = 0; i < rank; i++)
		if (p->setup->probed->host_of[i] == p->setup->probed->host_of[rank])
			return false;
	return true;
}

static void microbench_own(struct probe_rank *p, bool alone)
{
	struct skep_probed_device device = {0};
	struct skep_diag error = {0};
	if (p->setup->microbench(p->setup->microbench_context, alone, &device, &error))
		keep_device(p, 0, &device);
	else
		skep_probe_rank_fail(p, error.message);
}

/* One of each host, then all: those that compute at once share what a host has, as they will in a run. */
static void microbench(struct probe_rank *p, bool alone)
{
	struct probe_message probe_message = {.words = 2, .word = {PROBE_MESSAGE_BENCH, alone}};
	p->alone = alone;
	for (uint32_t i = 0; i < p->transport->ranks; i++) {
		if (alone && !first_of_host(p, i))
			continue;
		p->batch.asked++;
		if (i > 0)
			skep_probe_rank_write(p, i, &probe_message);
	}
	microbench_own(p, alone); /* rank 0 is the first of its host */
	wait_for_batch(p);
}

/* Another rank of its host, if there is one without a partner; of hosts with one rank each, another host's. */
static uint32_t partner_of(const struct skep_probed *probed, uint32_t rank)
{
	uint32_t at = 0, nth[2] = {UINT32_MAX, UINT32_MAX};
	const bool alone = probed->hosts == probed->ranks;
	for (uint32_t i = 0; i < rank; i++)
		at += alone || probed->host_of[i] == probed->host_of[rank];
	for (uint32_t i = 0, seen = 0; i < probed->ranks; i++) {
		if (!alone && probed->host_of[i] != probed->host_of[rank])
			continue;
		if (seen / 2 == at / 2)
			nth[seen % 2] = i;
		seen++;
	}
	return nth[1 - at % 2];
}

/* All at once, as in a run; with a network that is imposed there are no payloads, which it would hold back. */
static void rehearse(struct probe_rank *p)
{
	const uint32_t ranks = p->transport->ranks;
	for (uint32_t i = 0; i < ranks; i++) {
		const uint32_t to = p->setup->shaped ? UINT32_MAX : partner_of(p->setup->probed, i);
		struct probe_message order = {.words = 2, .word = {PROBE_MESSAGE_REHEARSE, to}};
		p->batch.asked++;
		if (i > 0)
			skep_probe_rank_write(p, i, &order);
	}
	const struct skep_probed_costs costs =
		skep_probe_rank_rehearse(p, p->setup->shaped ? UINT32_MAX : partner_of(p->setup->probed, 0));
	if (!p->over)
		keep_costs(p, 0, &costs);
	wait_for_batch(p);
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

void skep_probe_rank_count(const struct skep_probed *probed, uint32_t *ret_ways, uint32_t *ret_turns)
{
	const uint32_t n = probed->places;
	uint32_t inside = 0;
	for (uint32_t i = 0; i < n; i++)
		inside += rank_at(probed, i, 1) != UINT32_MAX;
	*ret_ways = n * (n - 1) + inside;
	*ret_turns = probed->at_once ? (n > 1 ? 2 * (n + n % 2 - 1) : 0) + (inside > 0) : *ret_ways;
}

void skep_probe_coordinator_run(struct probe_rank *p)
{
	assert(p->transport->rank == 0 && p->setup->probed != NULL);
	struct skep_probed *probed = p->setup->probed;
	uint32_t ways, turns, hosts = 0;
	skep_probe_rank_count(probed, &ways, &turns);
	for (uint32_t i = 0; i < probed->ranks; i++) {
		probed->device[i].alone_flops = NAN;
		hosts += first_of_host(p, i);
	}
	p->all = ways + (p->setup->microbench != NULL ? probed->ranks + (hosts < probed->ranks ? hosts : 0) : 0) +
	         (p->setup->passes != NULL ? probed->ranks : 0);
	if (p->setup->microbench != NULL && hosts < probed->ranks)
		microbench(p, true);
	if (p->setup->microbench != NULL && !p->over)
		microbench(p, false);
	if (p->setup->passes != NULL && !p->over)
		rehearse(p);
	if (!p->over)
		measure_inside(p);
	if (!p->over)
		measure_between(p);
	if (!p->over)
		skep_probe_coordinator_find_lines(p);
}
