/* SPDX-License-Identifier: Apache-2.0
 *
 * question.c - see question.h. An error shows the option's text with a caret under the part that is wrong, and says what is
 * expected in its place.
 */
#include "asking/question.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "asking/sites.h"
#include "asking/tables.h"
#include "base/layout.h"
#include "base/reader.h"
#include "base/text.h"
#include "topologies/gpu/gpu.h"

#define TRACE_PATH_BYTES 1024

static const char grammar[] = "COUNTxGPU[@SITE], as in 8xl4@us-central1,8xt4@europe-west4";

void skep_ask_note(struct skep_ask_question *q, const char *format, ...)
{
	va_list list;
	if (q->notes == SKEP_ASK_NOTES_MAX)
		return;
	va_start(list, format);
	vsnprintf(q->note[q->notes], sizeof q->note[0], format, list);
	va_end(list);
	for (uint32_t i = 0; i < q->notes; i++)
		if (strcmp(q->note[i], q->note[q->notes]) == 0)
			return;
	q->notes++;
}

/* ---- groups of machines ------------------------------------------------------------------------------------------ */

static bool copy_part(const struct skep_ask_place *w, const char *from, const char *to, const char *what, char *ret,
	size_t size, struct skep_diag *reterr)
{
	size_t length = (size_t)(to - from);
	if (length == 0)
		return skep_ask_wrong(w, from, reterr, "expected %s: %s", what, grammar);
	if (length >= size)
		return skep_ask_wrong(w, from, reterr, "%s is longer than %zu bytes", what, size - 1);
	for (const char *c = from; c < to; c++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:", *c))
			return skep_ask_wrong(
				w, c, reterr, "%s has letters, digits, - _ and . alone: %s", what, grammar);
	memcpy(ret, from, length);
	ret[length] = '\0';
	return true;
}

/* What a slower or faster card of a kind is called: "l4-x0.5". */
static void name_speed(struct skep_ask_group *g)
{
	char base[sizeof g->base];
	memcpy(base, g->base, sizeof base);
	memcpy(g->gpu, g->base, sizeof g->gpu);
	if (g->speed < 1 || g->speed > 1)
		snprintf(g->gpu, sizeof g->gpu, "%.16s-x%.4g", base, g->speed);
}

static bool read_group(
	struct skep_ask_question *q, const struct skep_ask_place *w, const char *from, struct skep_diag *reterr)
{
	const char *end = w->at + strcspn(w->at, ","), *site = memchr(w->at, '@', (size_t)(end - w->at));
	const char *kind_end = site ? site : end, *x = w->at, *colon;
	struct skep_ask_group *g = &q->group[q->groups];
	char text[48], name[40] = SKEP_ASK_HERE;
	struct skep_diag why = skep_diag_beside(reterr);
	uint64_t count = 0;
	while (x < kind_end && *x >= '0' && *x <= '9' && count <= SKEP_ASK_MACHINES_MAX)
		count = 10 * count + (uint64_t)(*x++ - '0');
	if (x == w->at)
		return skep_ask_wrong(w, w->at, reterr, "expected how many there are: %s", grammar);
	if (count == 0 || count > SKEP_ASK_MACHINES_MAX)
		return skep_ask_wrong(w, w->at, reterr, "expected 1 to %u machines of a kind", SKEP_ASK_MACHINES_MAX);
	if (x == kind_end || *x != 'x')
		return skep_ask_wrong(w, x, reterr, "expected an x between the number and the GPU: %s", grammar);
	*g = (struct skep_ask_group){.count = (uint32_t)count, .speed = 1, .price = {NAN, NAN}};
	colon = memchr(x + 1, ':', (size_t)(kind_end - x) - 1);
	if (!copy_part(w, x + 1, colon ? colon : kind_end, "the GPU", g->base, sizeof g->base, reterr))
		return false;
	if (colon) {
		snprintf(text, sizeof text, "%.*s", (int)(kind_end - colon - 1), colon + 1);
		if (!skep_count_parse(text, &g->speed) || g->speed < 0.01 || g->speed > 100)
			return skep_ask_wrong(w, colon + 1, reterr,
				"expected how fast it is in times of %s %s, 0.01 to 100, as in 1x%s:0.5",
				skep_article(g->base), g->base, g->base);
	}
	if (!skep_gpu_is_there(from, g->base, &why)) {
		const char *message = strstr(why.message, "no GPU profile");
		return skep_ask_wrong(w, x + 1, reterr, "%s", message ? message : why.message);
	}
	name_speed(g);
	if (site && !copy_part(w, site + 1, end, "the site", name, sizeof name, reterr))
		return false;
	struct skep_ask_place place = {
		.option = w->option, .whole = w->whole, .at = site ? site + 1 : w->at, .name = name};
	if (!skep_ask_site_find(q, &place, &g->site, reterr))
		return false;
	q->machines += g->count;
	q->groups++;
	return q->machines <= SKEP_ASK_MACHINES_MAX ||
	       skep_ask_wrong(w, w->at, reterr,
		       "more than %u machines in all: plan so large a pool with a scenario of its own",
		       SKEP_ASK_MACHINES_MAX);
}

static bool read_groups(struct skep_ask_question *q, const char *from, struct skep_diag *reterr)
{
	struct skep_ask_place w = {.option = "--gpus", .whole = q->request->gpus, .at = q->request->gpus};
	for (;;) {
		w.at += strspn(w.at, " ");
		if (q->groups == SKEP_ASK_GROUPS_MAX)
			return skep_ask_wrong(&w, w.at, reterr, "more than %u groups of machines", SKEP_ASK_GROUPS_MAX);
		if (!read_group(q, &w, from, reterr))
			return false;
		w.at += strcspn(w.at, ",");
		if (*w.at++ == '\0')
			return true;
	}
}

/* ---- prices ------------------------------------------------------------------------------------------------------ */

static void note_price(struct skep_ask_question *q, const struct skep_ask_group *g, const struct skep_gpu_price *p)
{
	if (p->elsewhere)
		skep_ask_note(q, "price of %s %s %s: that of %s, %s; none of its own provider is known",
			skep_article(g->base), g->base, q->site[g->site].where, p->provider, p->as_of);
	if (q->request->spot && isnan(p->usd_per_h[1]) && !isnan(p->usd_per_h[0]))
		skep_ask_note(q,
			"no spot price of %s %s at %s is known: the price on demand, %.4g USD/h, stands for it",
			skep_article(g->base), g->base, p->provider, p->usd_per_h[0]);
	if (p->attached)
		skep_ask_note(q, "the price of %s %s at %s is of the card alone: processor and memory come on top",
			skep_article(g->base), g->base, p->provider);
}

static bool usual_price(struct skep_ask_question *q, struct skep_ask_group *g, struct skep_diag *reterr)
{
	const struct skep_ask_site *site = &q->site[g->site];
	struct skep_gpu_price price;
	char provider[40] = "";
	if (site->kind != SKEP_ASK_CLOUD)
		return true; /* one's own machines: what they cost the user says */
	snprintf(provider, sizeof provider, "%.*s", (int)strcspn(site->region, ":"), site->region);
	if (!skep_gpu_price_read(g->base, provider, &price, reterr))
		return false;
	g->price[0] = price.usd_per_h[0];
	g->price[1] = isnan(price.usd_per_h[1]) ? price.usd_per_h[0] : price.usd_per_h[1];
	if (isnan(g->price[0]))
		g->price[0] = g->price[1];
	g->attached = price.attached;
	if (!isnan(g->price[0]))
		note_price(q, g, &price);
	return true;
}

/* GPU[@SITE]=PRICE */
static bool read_price(struct skep_ask_question *q, const char *given, struct skep_diag *reterr)
{
	struct skep_ask_place w = {.option = "--price", .whole = given, .at = given};
	const char *equals = strchr(given, '='), *expected, *at = strchr(given, '@');
	char gpu[64], site[64] = "";
	double usd;
	bool any = false;
	if (!equals)
		return skep_ask_wrong(&w, given, reterr, "expected GPU[@SITE]=PRICE, as in l4@us-central1=0.25USD/h");
	at = at && at < equals ? at : NULL;
	snprintf(gpu, sizeof gpu, "%.*s", (int)((at ? at : equals) - given), given);
	if (at)
		snprintf(site, sizeof site, "%.*s", (int)(equals - at - 1), at + 1);
	if (!skep_quantity_parse(equals + 1, SKEP_PRICE, &usd, &expected) || usd < 0 || usd > 1e6)
		return skep_ask_wrong(&w, equals + 1, reterr, "expected a price with its unit, as in 0.25USD/h");
	for (uint32_t i = 0; i < q->groups; i++) {
		struct skep_ask_group *g = &q->group[i];
		bool here =
			!at || strcmp(q->site[g->site].name, site) == 0 || strcmp(q->site[g->site].region, site) == 0;
		if (strcmp(g->base, gpu) != 0 || !here)
			continue;
		g->price[0] = g->price[1] = usd;
		any = true;
	}
	return any || skep_ask_wrong(&w, given, reterr, "--gpus has no %s%s%s", gpu, at ? " at " : "", site);
}

static bool read_prices(struct skep_ask_question *q, struct skep_diag *reterr)
{
	const struct skep_ask_request *r = q->request;
	for (uint32_t i = 0; i < q->groups; i++)
		if (!usual_price(q, &q->group[i], reterr))
			return false;
	for (uint32_t i = 0; i < r->prices; i++)
		if (!read_price(q, r->price[i], reterr))
			return false;
	for (uint32_t i = 0; i < q->groups; i++)
		if (isnan(q->group[i].price[r->spot])) {
			if (r->objective == SKEP_ASK_MONEY)
				return skep_fail(reterr,
					"--cheapest: no price of %s %s %s is known: give it, as in "
					"--price %s@%s=0.20USD/h",
					skep_article(q->group[i].base), q->group[i].base,
					q->site[q->group[i].site].where, q->group[i].base,
					q->site[q->group[i].site].name);
			skep_ask_note(q,
				"no price of %s %s %s is known, so costs are not: give it, as in --price "
				"%s@%s=0.20USD/h",
				skep_article(q->group[i].base), q->group[i].base, q->site[q->group[i].site].where,
				q->group[i].base, q->site[q->group[i].site].name);
		}
	return true;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static bool read_count(const char *option, const char *text, double least, double *ret, struct skep_diag *reterr)
{
	if (!text)
		return true;
	if (skep_count_parse(text, ret) && *ret >= least && *ret <= 1e16)
		return true;
	skep_diag_set(
		reterr, option, 0, 1, text, "expected a number of tokens, from %.6g, as in 1B, 300M or 5e8", least);
	return false;
}

bool skep_ask_read(const struct skep_ask_request *request, const char *from, struct skep_ask_question *ret,
	struct skep_diag *reterr)
{
	char found[TRACE_PATH_BYTES];
	if (request->trace && !skep_file_find_given(reterr->files, from, request->trace, found, sizeof found)) {
		skep_diag_set(reterr, "--trace", 0, 1, request->trace,
			"there is no such file; recordings are in topologies/traces, and `skep trace "
			"import` makes one");
		return false;
	}
	*ret = (struct skep_ask_question){.request = request, .window_bytes = 4 << 20, .streams = 1};
	return read_count("--tokens", request->tokens, 1e6, &ret->tokens, reterr) &&
	       read_count("--batch", request->batch, 1e3, &ret->batch_tokens, reterr) &&
	       read_groups(ret, from, reterr) && skep_ask_sites_join(ret, reterr) && read_prices(ret, reterr);
}

bool skep_ask_is_gcp(const struct skep_ask_question *q)
{
	for (uint32_t i = 0; i < q->sites; i++)
		if (strncmp(q->site[i].region, "gcp:", 4) == 0)
			return true;
	return false;
}
