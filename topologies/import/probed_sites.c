/* SPDX-License-Identifier: Apache-2.0
 *
 * probed_sites.c - writes a measured cluster whose hosts share lines as sites: what leaves and enters each, and the median pair
 * within it and to each other one.
 */
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>

#include "topologies/import/probed_internal.h"

bool skep_probed_sites_create(struct skep_probed_sites *ret, uint32_t places)
{
	*ret = (struct skep_probed_sites){.together = NAN};
	ret->of = calloc(places, sizeof *ret->of);
	ret->up_Bps = calloc(places, sizeof *ret->up_Bps);
	ret->down_Bps = calloc(places, sizeof *ret->down_Bps);
	ret->line_Bps = calloc((size_t)places * places, sizeof *ret->line_Bps);
	return ret->of && ret->up_Bps && ret->down_Bps && ret->line_Bps;
}

void skep_probed_sites_finish(struct skep_probed_sites *sites)
{
	free(sites->of);
	free(sites->up_Bps);
	free(sites->down_Bps);
	free(sites->line_Bps);
}

void skep_probed_put_verdict(FILE *file, const struct skep_probed *p, const char *begin)
{
	switch (p->sites.outcome) {
	case SKEP_PROBED_SITES_UNTRIED:
		return;
	case SKEP_PROBED_SITES_NONE:
		fprintf(file,
			"%sPairs without a common host had at once what each has alone: no shared line was seen.\n",
			begin);
		return;
	case SKEP_PROBED_SITES_HIDDEN:
		fprintf(file,
			"%sall hosts at once had %.0f %% of what pairs have alone: they share a line, but which hosts do\n",
			begin, 100 * p->sites.together);
		fprintf(file, "%swas not found out; what is written has each pair by itself\n", begin);
		return;
	case SKEP_PROBED_SITES_UNCERTAIN:
		fprintf(file,
			"%swhether hosts share lines is not certain: what several pairs had at once varied by more than 15 %%;\n",
			begin);
		fprintf(file, "%swhat is written has each pair by itself: try more --time\n", begin);
		return;
	case SKEP_PROBED_SITES_MIXED:
		fprintf(file,
			"%shosts of several sites take turns in the order of ranks, and a topology lists machines by site:\n",
			begin);
		fprintf(file,
			"%slist hosts of a site next to each other and probe again; what is written has each pair by itself\n",
			begin);
		return;
	case SKEP_PROBED_SITES_FOUND:
		fprintf(file,
			"%sSites and their lines: several pairs of hosts without a common one were measured at once.\n",
			begin);
		return;
	}
	return;
}

static const char *name_of(const struct skep_probed *p, uint32_t site, char ret[48])
{
	uint32_t first = 0;
	while (p->sites.of[first] != site)
		first++;
	snprintf(ret, 48, "site%u-%.20s", site + 1, p->place_name[first]);
	return ret;
}

/* Of the pairs from a site to a site. */
static double median(const struct skep_probed *p, uint32_t from, uint32_t to, size_t member, double *room)
{
	uint32_t count = 0;
	for (uint32_t a = 0; a < p->places; a++)
		for (uint32_t b = 0; b < p->places; b++)
			if (a != b && p->sites.of[a] == from && p->sites.of[b] == to)
				room[count++] = *(const double *)((const char *)skep_probed_link(p, a, b) + member);
	gsl_sort(room, 1, count);
	return count > 0 ? gsl_stats_median_from_sorted_data(room, 1, count) : NAN;
}

/* What a pair has, or what all pairs share. */
static void put_median(FILE *file, const struct skep_probed *p, uint32_t from, uint32_t to, double *room)
{
	const double line_Bps = p->sites.line_Bps[from * p->sites.count + to];
	struct skep_probed_link way = {.Bps = median(p, from, to, offsetof(struct skep_probed_link, Bps), room),
		.latency_s = median(p, from, to, offsetof(struct skep_probed_link, latency_s), room),
		.deviation_s = median(p, from, to, offsetof(struct skep_probed_link, deviation_s), room),
		.latency_spread = median(p, from, to, offsetof(struct skep_probed_link, latency_spread), room),
		.Bps_spread = median(p, from, to, offsetof(struct skep_probed_link, Bps_spread), room)};
	way.Bps_spread = way.Bps > line_Bps ? 0 : way.Bps_spread; /* how far a line is off was not measured */
	way.Bps = fmin(way.Bps, line_Bps);
	skep_probed_put_link(file, &way);
	fputs(isinf(line_Bps) ? "" : ", shared: true", file);
}

static uint32_t hosts_of(const struct skep_probed *p, uint32_t site)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < p->places; i++)
		count += p->sites.of[i] == site;
	return count;
}

static void put_machines(const struct work *w, FILE *file, uint32_t site)
{
	const struct skep_probed *p = w->probed;
	fputs("    machines:\n", file);
	for (uint32_t i = 0, end; i < p->ranks; i = end) {
		end = i + 1;
		if (p->sites.of[p->place_of[i]] != site)
			continue;
		while (end < p->ranks && w->kind_of[end] == w->kind_of[i] && p->sites.of[p->place_of[end]] == site)
			end++;
		fprintf(file, "      - {count: %u, gpu: \"%s\"}\n", end - i, w->kind[w->kind_of[i]].name);
	}
}

static void put_shared(FILE *file, const char *key, double Bps)
{
	if (isinf(Bps))
		return;
	fprintf(file, "    %s: ", key);
	skep_put_quantity(file, SKEP_BANDWIDTH, Bps, false);
	putc('\n', file);
}

static void put_site(const struct work *w, FILE *file, uint32_t site, double *room)
{
	const struct skep_probed *p = w->probed;
	uint32_t inside = site;
	char name[48];
	fprintf(file, "  \"%s\": # %u host%s\n", name_of(p, site, name), hosts_of(p, site),
		hosts_of(p, site) == 1 ? "" : "s");
	put_machines(w, file, site);
	if (hosts_of(p, site) < 2 && site == p->sites.of[p->place_of[0]]) {
		while (hosts_of(p, inside) < 2)
			inside = (inside + 1) % p->sites.count; /* there is one, or there would be no sites */
		fprintf(file, "    # One host beside the directory: not measured, taken from %s.\n",
			name_of(p, inside, name));
	}
	if (hosts_of(p, inside) > 1) {
		fputs("    inside: {", file);
		put_median(file, p, inside, inside, room);
		fputs("}\n", file);
	}
	put_shared(file, "uplink", p->sites.up_Bps[site]);
	put_shared(file, "downlink", p->sites.down_Bps[site]);
}

void skep_probed_put_shared_form(struct work *w, FILE *file)
{
	const struct skep_probed *p = w->probed;
	char from[48], to[48];
	double *room = calloc((size_t)p->places * p->places, sizeof *room);
	if (!room) {
		skep_diag_set(w->outputs.diag, w->path, 0, 0, NULL, "not enough memory");
		return;
	}
	fprintf(file, "directory: \"%s\"\nsites:\n", name_of(p, p->sites.of[p->place_of[0]], from));
	for (uint32_t s = 0; s < p->sites.count; s++)
		put_site(w, file, s, room);
	fputs("# The median of the pairs of each two sites.\nlinks:\n", file);
	for (uint32_t i = 0; i < p->sites.count * p->sites.count; i++) {
		if (i / p->sites.count == i % p->sites.count)
			continue;
		fprintf(file, "  - {from: \"%s\", to: \"%s\", ", name_of(p, i / p->sites.count, from),
			name_of(p, i % p->sites.count, to));
		put_median(file, p, i / p->sites.count, i % p->sites.count, room);
		fputs("}\n", file);
	}
	free(room);
}
