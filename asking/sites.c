/* SPDX-License-Identifier: Apache-2.0
 *
 * sites.c - see sites.h.
 */
#include "asking/sites.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "asking/tables.h"
#include "base/layout.h"
#include "base/reader.h"
#include "base/text.h"

#define CLOUD_INSIDE_BPS (4e9 / 8) /* assumed, as in topologies/world-64.yaml */
#define CLOUD_INSIDE_S 0.5e-3
#define HERE_INSIDE_BPS (10e9 / 8)
#define HERE_INSIDE_S 0.1e-3
#define OWN_INSIDE_S 0.2e-3
#define LINE_S 25e-3       /* one way, of a line that is given without its latency and was not measured */
#define HOME_CLOUD_S 30e-3 /* one way, from a home to a data centre */

bool skep_ask_wrong(const struct skep_ask_place *p, const char *at, struct skep_diag *reterr, const char *format, ...)
{
	char message[900];
	va_list list;
	va_start(list, format);
	vsnprintf(message, sizeof message, format, list);
	va_end(list);
	skep_diag_set(reterr, p->option, 0, (uint32_t)(at - p->whole) + 1, p->whole, "%s", message);
	return false;
}

/* ---- which site ---------------------------------------------------------------------------------------------------- */

/* "us-central1" of "gcp:us-central1"; a machine of a zone is one of its region. */
static const char *short_of(const char *region)
{
	const char *colon = strchr(region, ':');
	return colon ? colon + 1 : region;
}

static bool is_region(const char *region, const char *name)
{
	const char *mine = strchr(name, ':') ? region : short_of(region);
	size_t length = strlen(mine);
	if (strncmp(mine, name, length) != 0)
		return false;
	return name[length] == '\0' || (name[length] == '-' && strchr("abcdef", name[length + 1]) && name[length + 1] &&
					       name[length + 2] == '\0');
}

static bool no_region(
	const struct skep_ask_place *p, const struct skep_cloud_regions *regions, struct skep_diag *reterr)
{
	const char *word[2 * SKEP_CLOUD_REGIONS_MAX + 1];
	uint32_t words = 0;
	for (uint32_t i = 0; i < regions->count; i++) {
		word[words++] = regions->name[i];
		word[words++] = short_of(regions->name[i]);
	}
	word[words++] = "home";
	const char *near = skep_text_nearest(p->name, word, words);
	return skep_ask_wrong(p, p->at, reterr,
		"no region of a cloud and no home is called '%s'%s%s%s; a place of your own is one with --site "
		"%s=10Gbit/s, its network",
		p->name, near ? " (near: " : "", near ? near : "", near ? ")" : "", p->name);
}

static bool make_cloud(struct skep_ask_site *site, const char *region, struct skep_diag *reterr)
{
	char provider[40];
	double usd;
	snprintf(provider, sizeof provider, "%.*s", (int)strcspn(region, ":"), region);
	snprintf(site->region, sizeof site->region, "%s", region);
	snprintf(site->name, sizeof site->name, "%.31s", short_of(region));
	site->kind = SKEP_ASK_CLOUD;
	site->inside_Bps = CLOUD_INSIDE_BPS;
	site->inside_s = CLOUD_INSIDE_S;
	site->down_Bps = INFINITY;
	return skep_provider_read(provider, &site->up_Bps, &usd, reterr);
}

static bool make_home(struct skep_ask_question *q, struct skep_ask_site *site, const struct skep_ask_place *p,
	struct skep_diag *reterr)
{
	const char *region = strcmp(p->name, "home") == 0 ? "europe" : p->name + strlen("home-");
	struct skep_home home = {0};
	char names[300];
	bool found;
	if (!skep_home_read(region, &home, &found, names, sizeof names, reterr))
		return false;
	if (!found)
		return skep_ask_wrong(
			p, p->at, reterr, "no homes are known in '%s'; there are: home, %s", region, names);
	snprintf(site->name, sizeof site->name, "%.31s", p->name);
	snprintf(site->region, sizeof site->region, "%.39s", region);
	site->kind = SKEP_ASK_HOME;
	site->up_Bps = home.up_Bps;
	site->down_Bps = home.down_Bps;
	site->inside_s = home.inside_s;
	site->inside_Bps = fmax(home.up_Bps, home.down_Bps);
	if (strcmp(p->name, "home") == 0)
		skep_ask_note(q, "home is in Europe: %.0f ms one way between two homes (SimBlock, 2019)",
			1e3 * home.inside_s);
	return true;
}

/* Does --site give the network of that name? */
static bool is_own(const struct skep_ask_question *q, const char *name)
{
	size_t length = strlen(name);
	for (uint32_t i = 0; i < q->request->sites; i++)
		if (strncmp(q->request->site[i], name, length) == 0 && q->request->site[i][length] == '=')
			return true;
	return strcmp(name, SKEP_ASK_HERE) == 0;
}

static bool make_site(struct skep_ask_question *q, struct skep_ask_site *site, const struct skep_ask_place *p,
	struct skep_diag *reterr)
{
	struct skep_cloud_regions regions;
	const char *region = NULL;
	*site = (struct skep_ask_site){.up_Bps = INFINITY, .down_Bps = INFINITY};
	if (!skep_cloud_regions_read(&regions, reterr))
		return false;
	for (uint32_t i = 0; i < regions.count; i++) {
		if (!is_region(regions.name[i], p->name))
			continue;
		if (region)
			return skep_ask_wrong(p, p->at, reterr, "'%s' is a region of two clouds: write %s or %s",
				p->name, region, regions.name[i]);
		region = regions.name[i];
	}
	if (region)
		return make_cloud(site, region, reterr);
	if (strcmp(p->name, "home") == 0 || strncmp(p->name, "home-", 5) == 0)
		return make_home(q, site, p, reterr);
	if (!is_own(q, p->name))
		return no_region(p, &regions, reterr);
	if (strchr(p->name, ':') || strlen(p->name) > 31)
		return skep_ask_wrong(p, p->at, reterr, "the name of a site has at most 31 bytes and no colon");
	snprintf(site->name, sizeof site->name, "%.31s", p->name);
	site->kind = SKEP_ASK_OWN;
	site->inside_Bps = HERE_INSIDE_BPS;
	site->inside_s = HERE_INSIDE_S;
	return true;
}

/* UINT32_MAX: there is no such site. */
static uint32_t known(const struct skep_ask_question *q, const char *name)
{
	for (uint32_t i = 0; i < q->sites; i++) {
		const struct skep_ask_site *s = &q->site[i];
		if (strcmp(s->name, name) == 0 || (s->kind == SKEP_ASK_CLOUD && is_region(s->region, name)))
			return i;
	}
	return UINT32_MAX;
}

bool skep_ask_site_find(
	struct skep_ask_question *q, const struct skep_ask_place *p, uint32_t *ret_site, struct skep_diag *reterr)
{
	*ret_site = known(q, p->name);
	if (*ret_site != UINT32_MAX)
		return true;
	if (q->sites == SKEP_ASK_SITES_MAX)
		return skep_ask_wrong(p, p->at, reterr, "more than %u sites", SKEP_ASK_SITES_MAX);
	*ret_site = q->sites;
	struct skep_ask_site *site = &q->site[q->sites++];
	bool made = make_site(q, site, p, reterr);
	if (made && strcmp(site->name, SKEP_ASK_HERE) == 0)
		strcpy(site->where, SKEP_ASK_HERE);
	else if (made)
		strcat(strcpy(site->where, "at "), site->name);
	return made;
}

/* ---- RATE[,TIME] ---------------------------------------------------------------------------------------------------- */

struct rate {               /* of an option's value, behind its last '=' */
	double Bps, second; /* NAN: not given */
};

/* The second part is a time, or with `rates` a rate. */
static bool read_rate(struct skep_ask_place p, bool rates, struct rate *ret, struct skep_diag *reterr)
{
	char first[64];
	const char *comma = strchr(p.at, ','), *expected;
	size_t length = comma ? (size_t)(comma - p.at) : strlen(p.at);
	snprintf(first, sizeof first, "%.*s", (int)(length < sizeof first ? length : sizeof first - 1), p.at);
	*ret = (struct rate){NAN, NAN};
	if (!skep_quantity_parse(first, SKEP_BANDWIDTH, &ret->Bps, &expected) || !(ret->Bps > 1))
		return skep_ask_wrong(&p, p.at, reterr, "expected a bandwidth with its unit, as in 200Mbit/s");
	if (!comma)
		return true;
	p.at = comma + 1;
	if (rates && skep_quantity_parse(p.at, SKEP_BANDWIDTH, &ret->second, &expected) && ret->second > 1)
		return true;
	if (rates)
		return skep_ask_wrong(
			&p, p.at, reterr, "expected the bandwidth upwards with its unit, as in 100Mbit/s,20Mbit/s");
	if (skep_quantity_parse(p.at, SKEP_TIME, &ret->second, &expected) && ret->second >= 0 && ret->second < 3600)
		return true;
	return skep_ask_wrong(&p, p.at, reterr, "expected the latency one way with its unit, as in 200Mbit/s,50ms");
}

/* The site that stands from `at` to `end`. */
static bool read_site(struct skep_ask_question *q, struct skep_ask_place p, const char *end, uint32_t *ret_site,
	struct skep_diag *reterr)
{
	char name[64];
	const char *word[SKEP_ASK_SITES_MAX];
	snprintf(name, sizeof name, "%.*s", (int)(end - p.at < 63 ? end - p.at : 63), p.at);
	*ret_site = known(q, name);
	if (*ret_site != UINT32_MAX)
		return true;
	for (uint32_t i = 0; i < q->sites; i++)
		word[i] = q->site[i].name;
	const char *near = skep_text_nearest(name, word, q->sites);
	return skep_ask_wrong(&p, p.at, reterr, "--gpus has no machines at '%s'%s%s%s", name, near ? " (near: " : "",
		near ? near : "", near ? ")" : "");
}

/* "A:B=RATE[,TIME]", where A or B may be "gcp:us-central1"; "A=RATE[,TIME]" with `one`. */
static bool read_between(struct skep_ask_question *q, const char *option, const char *given, bool one,
	uint32_t *ret_from, uint32_t *ret_to, struct rate *ret, struct skep_diag *reterr)
{
	struct skep_ask_place p = {.option = option, .whole = given, .at = given};
	const char *equals = strchr(given, '='), *colon = NULL;
	if (!equals)
		return skep_ask_wrong(&p, p.at, reterr,
			"expected an = before the bandwidth: %s=200Mbit/s, or with its latency one way "
			"%s=200Mbit/s,50ms",
			one ? "SITE" : "SITE:SITE", one ? "SITE" : "SITE:SITE");
	for (const char *c = given; c < equals && !colon;
		c++) { /* the colon behind which a site that is known begins */
		char left[64], right[64];
		snprintf(left, sizeof left, "%.*s", (int)(c - given < 63 ? c - given : 63), given);
		snprintf(right, sizeof right, "%.*s", (int)(equals - c - 1 < 63 ? equals - c - 1 : 63), c + 1);
		if (*c == ':' && (known(q, left) != UINT32_MAX || !strchr(right, ':')))
			colon = c;
	}
	if (!colon && !one)
		return skep_ask_wrong(&p, p.at, reterr, "expected two sites: SITE:SITE=200Mbit/s");
	if (!read_site(q, p, colon ? colon : equals, ret_from, reterr))
		return false;
	*ret_to = *ret_from;
	p.at = colon ? colon + 1 : given;
	if (colon && !read_site(q, p, equals, ret_to, reterr))
		return false;
	if (colon && *ret_from == *ret_to)
		return skep_ask_wrong(&p, p.at, reterr, "both ends are the same site: --site %s=RATE is its inside",
			q->site[*ret_to].name);
	p.at = equals + 1;
	return read_rate(p, false, ret, reterr);
}

/* ---- what is between ------------------------------------------------------------------------------------------------ */

static bool read_lines(struct skep_ask_question *q, struct skep_diag *reterr)
{
	struct skep_ask_place p = {.option = "--line", .whole = q->request->line, .at = q->request->line};
	struct rate rate;
	bool any = false;
	if (!p.whole)
		return true;
	if (!read_rate(p, true, &rate, reterr))
		return false;
	for (uint32_t i = 0; i < q->sites; i++) {
		struct skep_ask_site *s = &q->site[i];
		if (s->kind != SKEP_ASK_HOME)
			continue;
		any = true;
		s->down_Bps = rate.Bps;
		s->up_Bps = isnan(rate.second) ? rate.Bps : rate.second;
		s->inside_Bps = fmax(s->up_Bps, s->down_Bps);
	}
	return any || skep_ask_wrong(&p, p.at, reterr,
			      "--gpus has no machines at home: @home or @home-REGION; between other sites it is "
			      "--link A:B=RATE");
}

static bool read_insides(struct skep_ask_question *q, struct skep_diag *reterr)
{
	for (uint32_t i = 0; i < q->request->sites; i++) {
		uint32_t site, same;
		struct rate rate;
		if (!read_between(q, "--site", q->request->site[i], true, &site, &same, &rate, reterr))
			return false;
		q->site[site].inside_Bps = rate.Bps;
		if (!isnan(rate.second))
			q->site[site].inside_s = rate.second;
		else if (q->site[site].kind == SKEP_ASK_OWN)
			q->site[site].inside_s = OWN_INSIDE_S;
	}
	for (uint32_t i = 0; i < q->sites; i++) {
		char rate[SKEP_TEXT_BYTES];
		const struct skep_ask_site *s = &q->site[i];
		if (s->kind != SKEP_ASK_HOME && !is_own(q, s->name))
			skep_ask_note(q,
				"inside of a region two machines have %s and %.1f ms: `skep probe` measures it",
				skep_rate_text(s->inside_Bps, rate), 1e3 * s->inside_s);
		else if (s->kind == SKEP_ASK_OWN)
			skep_ask_note(q, "two machines %s have %s and %.1f ms; --site %s=RATE,TIME is another",
				s->where, skep_rate_text(s->inside_Bps, rate), 1e3 * s->inside_s, s->name);
	}
	return true;
}

static bool measured(struct skep_ask_question *q, uint32_t from, uint32_t to, struct skep_diag *reterr)
{
	const struct skep_ask_site *a = &q->site[from], *b = &q->site[to];
	struct skep_ask_link *l = &q->link[from][to];
	struct skep_region_link m = {NAN, NAN, NAN};
	double up, usd = NAN;
	char provider[40];
	*l = (struct skep_ask_link){.Bps = NAN, .latency_s = NAN, .usd_per_byte = a->kind == SKEP_ASK_CLOUD ? NAN : 0};
	if (a->kind == SKEP_ASK_CLOUD) { /* what leaves for elsewhere costs what most other regions cost */
		snprintf(provider, sizeof provider, "%.*s", (int)strcspn(a->region, ":"), a->region);
		if (!skep_provider_read(provider, &up, &usd, reterr))
			return false;
	}
	if (a->kind == SKEP_ASK_CLOUD && b->kind == SKEP_ASK_CLOUD) {
		if (!skep_region_link_read(a->region, b->region, &m, reterr))
			return false;
		l->Bps = m.Bps;
		l->latency_s = m.latency_s;
	}
	if (a->kind == SKEP_ASK_CLOUD)
		l->usd_per_byte = isnan(m.usd_per_byte) ? usd : m.usd_per_byte;
	if (a->kind == SKEP_ASK_CLOUD && isnan(m.usd_per_byte))
		skep_ask_note(q, "traffic from %s to %s costs %.3g USD/GB, what this provider takes most often",
			a->name, b->name, 1e9 * usd);
	l->known = !isnan(l->Bps);
	return true;
}

static bool read_links(struct skep_ask_question *q, struct skep_diag *reterr)
{
	for (uint32_t i = 0; i < q->request->links; i++) {
		uint32_t from, to;
		struct rate rate;
		if (!read_between(q, "--link", q->request->link[i], false, &from, &to, &rate, reterr))
			return false;
		for (uint32_t side = 0; side < 2; side++) {
			struct skep_ask_link *l = side ? &q->link[to][from] : &q->link[from][to];
			l->Bps = rate.Bps;
			l->shared = l->known = true;
			if (!isnan(rate.second))
				l->latency_s = rate.second;
		}
	}
	return true;
}

/* What is still open between two sites. */
static bool fill_link(struct skep_ask_question *q, uint32_t from, uint32_t to, struct skep_diag *reterr)
{
	const struct skep_ask_site *a = &q->site[from], *b = &q->site[to];
	struct skep_ask_link *l = &q->link[from][to], *back = &q->link[to][from];
	bool homes = a->kind == SKEP_ASK_HOME || b->kind == SKEP_ASK_HOME;
	if (!l->known && !homes && back->known) {
		l->Bps = back->Bps;
		l->known = true;
	}
	if (!l->known && !homes)
		return skep_fail(reterr,
			"what joins %s and %s is not known: give it, as in --link %s:%s=1Gbit/s,20ms (the "
			"latency is one way)",
			a->name, b->name, a->name, b->name);
	if (!l->known) {
		l->Bps = 1e9 / 8; /* the homes' own lines are thinner */
		l->known = true;
	}
	if (isnan(l->latency_s)) {
		l->latency_s = !isnan(back->latency_s) ? back->latency_s
		               : homes ? fmax(HOME_CLOUD_S, fmax(a->kind == SKEP_ASK_HOME ? a->inside_s : 0,
								    b->kind == SKEP_ASK_HOME ? b->inside_s : 0))
		                       : LINE_S;
		skep_ask_note(q, "%s to %s: %.0f ms one way; --link %s:%s=RATE,TIME is another", a->name, b->name,
			1e3 * l->latency_s, a->name, b->name);
	}
	return true;
}

static bool read_changes(struct skep_ask_question *q, struct skep_diag *reterr)
{
	for (uint32_t i = 0; i < q->request->what_ifs; i++) {
		const char *given = q->request->what_if[i];
		struct skep_ask_change *c = &q->change[q->changes++];
		struct rate rate;
		if (!read_between(q, "--what-if", given, true, &c->from, &c->to, &rate, reterr))
			return false;
		c->text = given;
		c->Bps = rate.Bps;
		c->latency_s = rate.second;
	}
	return true;
}

bool skep_ask_sites_join(struct skep_ask_question *q, struct skep_diag *reterr)
{
	for (uint32_t i = 0; i < q->sites; i++)
		for (uint32_t j = 0; j < q->sites; j++)
			if (i != j && !measured(q, i, j, reterr))
				return false;
	if (!read_lines(q, reterr) || !read_insides(q, reterr) || !read_links(q, reterr))
		return false;
	for (uint32_t i = 0; i < q->sites; i++)
		for (uint32_t j = 0; j < q->sites; j++)
			if (i != j && !fill_link(q, i, j, reterr))
				return false;
	return read_changes(q, reterr);
}
