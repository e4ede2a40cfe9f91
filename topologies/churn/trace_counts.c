/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_counts.c - traces of how many machines were alive: rows of seconds,count. A count holds from its second until
 * the next row, so samples and steps are read alike; a change that a sample shows is taken to happen at that sample.
 *
 * Decides which machines come and go. A newcomer is a new name (c0, c1 ...) in the zone with the fewest (the first of
 * several). The victims of a fall are, by options->victims, all drawn from options->seed:
 *   random   any, equally likely           newest   the last to come           oldest   the first to come
 *   zone     one zone is drawn, victims at random in it; when it is empty the next is drawn
 */
#include "topologies/churn/trace_reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "core/random.h"

#define COUNT_MAX 1000000u
#define ZONES_MAX 1000u

struct zone {
	uint64_t *serial; /* [first, count): in the order of coming, as long as victims are taken from one end */
	uint32_t first, count, room;
};

struct crowd {
	struct zone *zone;
	uint32_t zones, alive;
	uint64_t next; /* serial */
};

static bool push(struct zone *zone, uint64_t serial)
{
	if (zone->count == zone->room && zone->first > zone->room / 2) {
		memmove(zone->serial, zone->serial + zone->first, (zone->count - zone->first) * sizeof *zone->serial);
		zone->count -= zone->first;
		zone->first = 0;
	}
	if (zone->count == zone->room) {
		uint32_t room = zone->room ? 2 * zone->room : 64;
		uint64_t *more = realloc(zone->serial, room * sizeof *more);
		if (!more)
			return false;
		zone->serial = more;
		zone->room = room;
	}
	zone->serial[zone->count++] = serial;
	return true;
}

static uint32_t size_of(const struct zone *zone)
{
	return zone->count - zone->first;
}

static uint64_t take(struct zone *zone, uint32_t i)
{
	uint64_t serial = zone->serial[i];
	if (i == zone->first)
		zone->first++;
	else
		zone->serial[i] = zone->serial[--zone->count];
	return serial;
}

/* ---- who goes ------------------------------------------------------------------------------------------------------ */

static uint32_t zone_of_end(const struct crowd *crowd, bool newest)
{
	uint32_t best = UINT32_MAX;
	uint64_t best_serial = 0;
	for (uint32_t i = 0; i < crowd->zones; i++) {
		const struct zone *zone = &crowd->zone[i];
		if (size_of(zone) == 0)
			continue;
		uint64_t serial = zone->serial[newest ? zone->count - 1 : zone->first];
		if (best == UINT32_MAX || (newest ? serial > best_serial : serial < best_serial)) {
			best = i;
			best_serial = serial;
		}
	}
	return best;
}

static uint32_t zone_of_rank(const struct crowd *crowd, uint32_t rank)
{
	uint32_t i = 0;
	while (rank >= size_of(&crowd->zone[i]))
		rank -= size_of(&crowd->zone[i++]);
	return i;
}

/* Draws a zone with machines in it, each equally likely. */
static uint32_t draw_zone(const struct crowd *crowd, uint64_t *random)
{
	uint32_t filled = 0, i = 0;
	for (uint32_t z = 0; z < crowd->zones; z++)
		filled += size_of(&crowd->zone[z]) > 0;
	for (uint32_t skip = skep_random_below(random, filled);; i++)
		if (size_of(&crowd->zone[i]) > 0 && skip-- == 0)
			return i;
}

static uint64_t pick(struct skep_trace_reader *r, struct crowd *crowd, uint32_t *zone)
{
	enum skep_trace_victims rule = r->options->victims;
	if (rule == SKEP_VICTIMS_NEWEST || rule == SKEP_VICTIMS_OLDEST)
		*zone = zone_of_end(crowd, rule == SKEP_VICTIMS_NEWEST);
	else if (rule == SKEP_VICTIMS_RANDOM)
		*zone = zone_of_rank(crowd, skep_random_below(&r->random, crowd->alive));
	else if (*zone == UINT32_MAX || size_of(&crowd->zone[*zone]) == 0)
		*zone = draw_zone(crowd, &r->random);
	struct zone *from = &crowd->zone[*zone];
	if (rule == SKEP_VICTIMS_NEWEST)
		return take(from, from->count - 1);
	if (rule == SKEP_VICTIMS_OLDEST)
		return take(from, from->first);
	return take(from, from->first + skep_random_below(&r->random, size_of(from)));
}

/* ---- rows ----------------------------------------------------------------------------------------------------------- */

static bool emit(
	struct skep_trace_reader *r, struct crowd *crowd, struct skep_trace_row *row, uint64_t serial, uint32_t zone)
{
	snprintf(row->name, sizeof row->name, "c%llu", (unsigned long long)serial);
	if (crowd->zones > 1)
		snprintf(row->zone, sizeof row->zone, "zone%u", zone);
	return skep_trace_emit(r, row);
}

static bool grow(struct skep_trace_reader *r, struct crowd *crowd, struct skep_trace_row *row)
{
	uint32_t best = 0;
	for (uint32_t i = 1; i < crowd->zones; i++)
		if (size_of(&crowd->zone[i]) < size_of(&crowd->zone[best]))
			best = i;
	row->kind = SKEP_TRACE_JOIN;
	if (!push(&crowd->zone[best], crowd->next)) {
		skep_lines_fail(&r->lines, r->lines.text, "not enough memory for %u alive", crowd->alive + 1);
		return false;
	}
	crowd->alive++;
	return emit(r, crowd, row, crowd->next++, best);
}

static bool shrink(struct skep_trace_reader *r, struct crowd *crowd, struct skep_trace_row *row, uint32_t *zone)
{
	uint64_t serial = pick(r, crowd, zone);
	row->kind = SKEP_TRACE_LEAVE;
	crowd->alive--;
	return emit(r, crowd, row, serial, *zone);
}

static bool read_row(struct skep_trace_reader *r, struct crowd *crowd)
{
	struct skep_cell cell[2];
	struct skep_trace_row row = {.time_at = r->lines.text};
	uint64_t count;
	uint32_t zone = UINT32_MAX;
	if (skep_lines_cells(&r->lines, cell, 2) != 2) {
		skep_lines_fail(&r->lines, r->lines.text, "expected seconds,count");
		return false;
	}
	row.time_at = cell[0].at;
	row.name_at = cell[1].at;
	if (!skep_cell_time(&r->lines, cell[0], SKEP_SECOND_NS, &row.at_ns) ||
		!skep_cell_count(&r->lines, cell[1], COUNT_MAX, &count))
		return false;
	if (crowd->alive == count)
		return skep_trace_see(r, row.at_ns, row.time_at);
	while (crowd->alive < count)
		if (!grow(r, crowd, &row))
			return false;
	while (crowd->alive > count)
		if (!shrink(r, crowd, &row, &zone))
			return false;
	return true;
}

bool skep_trace_read_counts(struct skep_trace_reader *r)
{
	uint32_t zones = r->options->zones > 0 ? r->options->zones : 1;
	struct crowd crowd = {.zones = zones < ZONES_MAX ? zones : ZONES_MAX};
	bool ok = true;
	crowd.zone = calloc(crowd.zones, sizeof *crowd.zone);
	if (!crowd.zone)
		skep_diag_set(r->lines.diag, r->lines.path, 0, 0, NULL, "cannot be read: not enough memory");
	for (bool first = true; ok && skep_lines_next_row(&r->lines); first = false) {
		const char *text = r->lines.text + strspn(r->lines.text, " \t");
		bool column_names =
			first && (text[0] < '0' || text[0] > '9') && strchr(text, ',') && strstr(text, "count");
		ok = column_names || read_row(r, &crowd);
	}
	for (uint32_t i = 0; crowd.zone && i < crowd.zones; i++)
		free(crowd.zone[i].serial);
	free(crowd.zone);
	return ok && !r->lines.diag->set;
}
